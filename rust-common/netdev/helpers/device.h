/* SPDX-License-Identifier: GPL-2.0 */
/* C helpers of device.rs, lock.rs, ethtool.rs and log.rs. */
#ifndef RC_HELPERS_DEVICE_H
#define RC_HELPERS_DEVICE_H

#include <linux/ethtool.h>
#include <linux/netdevice.h>

/* Bits of ethtool_ops::op_needs_rtnl, as constants that bindgen can evaluate. */
static const u32 RC_HELPER_RTNL_FOR_SRINGPARAM = ETHTOOL_OP_NEEDS_RTNL_SRINGPARAM;
static const u32 RC_HELPER_RTNL_FOR_SCHANNELS = ETHTOOL_OP_NEEDS_RTNL_SCHANNELS;

void rc_helper_netdev_lock(struct net_device *dev);
void rc_helper_netdev_unlock(struct net_device *dev);
void rc_helper_dev_hold(struct net_device *dev);
void rc_helper_dev_put(struct net_device *dev);
bool rc_helper_netif_running(const struct net_device *dev);
bool rc_helper_netif_carrier_ok(const struct net_device *dev);
void rc_helper_netif_tx_disable(struct net_device *dev);
void rc_helper_netif_tx_start_all_queues(struct net_device *dev);
void rc_helper_netif_tx_wake_all_queues(struct net_device *dev);
void rc_helper_eth_hw_addr_set(struct net_device *dev, const u8 *addr);
void rc_helper_eth_hw_addr_random(struct net_device *dev);
bool rc_helper_net_ratelimit(void);
void rc_helper_extack_set(struct netlink_ext_ack *extack, const void *arguments);

#endif
