/* SPDX-License-Identifier: GPL-2.0 */
/*
 * C helpers of crate netdev, for what the kernel offers as inline functions or
 * macros only. Each is documented in helpers.c.
 */
#ifndef RC_HELPERS_H
#define RC_HELPERS_H

#include <linux/netdevice.h>

void *rc_helper_netdev_priv(const struct net_device *dev);

#endif
