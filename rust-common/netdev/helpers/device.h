/* SPDX-License-Identifier: GPL-2.0 */
/* C helpers of device.rs, lock.rs, ethtool.rs and log.rs. */
#ifndef RC_HELPERS_DEVICE_H
#define RC_HELPERS_DEVICE_H

#include <linux/netdevice.h>

void rc_helper_netdev_lock(struct net_device *dev);
void rc_helper_netdev_unlock(struct net_device *dev);
void rc_helper_dev_hold(struct net_device *dev);
void rc_helper_dev_put(struct net_device *dev);
bool rc_helper_netif_device_present(const struct net_device *dev);
bool rc_helper_netif_running(const struct net_device *dev);
bool rc_helper_netif_carrier_ok(const struct net_device *dev);
void rc_helper_netif_tx_lock_bh(struct net_device *dev, unsigned int queue);
void rc_helper_netif_tx_unlock_bh(struct net_device *dev, unsigned int queue);
void rc_helper_netif_tx_stop(struct net_device *dev, unsigned int queue);
void rc_helper_netif_tx_disable(struct net_device *dev);
void rc_helper_netif_tx_wake_all_queues(struct net_device *dev);
void rc_helper_eth_hw_addr_set(struct net_device *dev, const u8 *addr);
void rc_helper_eth_hw_addr_random(struct net_device *dev);
bool rc_helper_net_ratelimit(void);
void rc_helper_extack_set(struct netlink_ext_ack *extack, const void *arguments);

#endif
