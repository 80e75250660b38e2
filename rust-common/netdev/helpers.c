// SPDX-License-Identifier: GPL-2.0
/*
 * C helpers of crate netdev, for what the kernel offers as inline functions or
 * macros only.
 */

#include <linux/export.h>
#include <linux/netdevice.h>

#include "helpers.h"

/**
 * rc_helper_netdev_priv() - Private data of a network device
 * @dev: network device
 *
 * Context: Any.
 * Return: The private data, of the size given to alloc_etherdev_mqs().
 */
void *rc_helper_netdev_priv(const struct net_device *dev)
{
	return netdev_priv(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_netdev_priv);
