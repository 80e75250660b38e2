// SPDX-License-Identifier: GPL-2.0
/* C helpers of device.rs, lock.rs, ethtool.rs and log.rs. */

#include <linux/etherdevice.h>
#include <linux/export.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/netlink.h>

#include "device.h"

/**
 * rc_helper_netdev_lock() - Take the instance lock of a network device
 * @dev: network device
 *
 * Context: Process; may sleep. Lock order: rtnl_lock, then this one.
 */
void rc_helper_netdev_lock(struct net_device *dev)
{
	netdev_lock(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_netdev_lock);

/**
 * rc_helper_netdev_unlock() - Release the instance lock of a network device
 * @dev: network device
 *
 * Context: The caller holds the lock.
 */
void rc_helper_netdev_unlock(struct net_device *dev)
{
	netdev_unlock(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_netdev_unlock);

/**
 * rc_helper_dev_hold() - Take a reference that unregistering waits for
 * @dev: network device, registered
 *
 * Context: Any.
 */
void rc_helper_dev_hold(struct net_device *dev)
{
	dev_hold(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_dev_hold);

/**
 * rc_helper_dev_put() - Give back a reference of rc_helper_dev_hold()
 * @dev: network device
 *
 * Context: Any.
 */
void rc_helper_dev_put(struct net_device *dev)
{
	dev_put(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_dev_put);

/**
 * rc_helper_netif_device_present() - Is the device not detached?
 * @dev: network device
 *
 * Context: Any; stable under the instance lock only.
 * Return: Whether it is.
 */
bool rc_helper_netif_device_present(const struct net_device *dev)
{
	return netif_device_present(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_netif_device_present);

/**
 * rc_helper_netif_running() - Is the device up, or on its way up or down?
 * @dev: network device
 *
 * Context: Any; the answer is stable under the instance lock.
 */
bool rc_helper_netif_running(const struct net_device *dev)
{
	return netif_running(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_netif_running);

/**
 * rc_helper_netif_carrier_ok() - Did the driver report a link?
 * @dev: network device
 *
 * Context: Any.
 */
bool rc_helper_netif_carrier_ok(const struct net_device *dev)
{
	return netif_carrier_ok(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_netif_carrier_ok);

/**
 * rc_helper_netif_tx_lock_bh() - Take the xmit lock of a TX queue
 * @dev: network device
 * @queue: index of the queue, below num_tx_queues
 *
 * Context: Process or softirq; softirqs are off until the lock is released.
 */
void rc_helper_netif_tx_lock_bh(struct net_device *dev, unsigned int queue)
{
	__netif_tx_lock_bh(netdev_get_tx_queue(dev, queue));
}
EXPORT_SYMBOL_GPL(rc_helper_netif_tx_lock_bh);

/**
 * rc_helper_netif_tx_unlock_bh() - Release the xmit lock of a TX queue
 * @dev: network device
 * @queue: index of the queue, below num_tx_queues
 *
 * Context: The caller took the lock with rc_helper_netif_tx_lock_bh().
 */
void rc_helper_netif_tx_unlock_bh(struct net_device *dev, unsigned int queue)
{
	__netif_tx_unlock_bh(netdev_get_tx_queue(dev, queue));
}
EXPORT_SYMBOL_GPL(rc_helper_netif_tx_unlock_bh);

/**
 * rc_helper_netif_tx_stop() - Stop a TX queue
 * @dev: network device
 * @queue: index of a TX queue
 *
 * Context: Any, the queue's xmit lock held.
 */
void rc_helper_netif_tx_stop(struct net_device *dev, unsigned int queue)
{
	netif_tx_stop_queue(netdev_get_tx_queue(dev, queue));
}
EXPORT_SYMBOL_GPL(rc_helper_netif_tx_stop);

/**
 * rc_helper_netif_tx_disable() - Stop all TX queues and wait for running xmits
 * @dev: network device
 *
 * Context: Process or softirq, no TX lock held.
 */
void rc_helper_netif_tx_disable(struct net_device *dev)
{
	netif_tx_disable(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_netif_tx_disable);

/**
 * rc_helper_netif_tx_wake_all_queues() - Start and reschedule all TX queues
 * @dev: network device
 *
 * Context: Any; the instance lock keeps the number of queues.
 */
void rc_helper_netif_tx_wake_all_queues(struct net_device *dev)
{
	netif_tx_wake_all_queues(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_netif_tx_wake_all_queues);

/**
 * rc_helper_eth_hw_addr_set() - Set the device's address
 * @dev: network device
 * @addr: ETH_ALEN bytes
 *
 * Context: Before registration, or under rtnl_lock.
 */
void rc_helper_eth_hw_addr_set(struct net_device *dev, const u8 *addr)
{
	eth_hw_addr_set(dev, addr);
}
EXPORT_SYMBOL_GPL(rc_helper_eth_hw_addr_set);

/**
 * rc_helper_eth_hw_addr_random() - Give the device a random local address
 * @dev: network device
 *
 * Context: Before registration, or under rtnl_lock.
 */
void rc_helper_eth_hw_addr_random(struct net_device *dev)
{
	eth_hw_addr_random(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_eth_hw_addr_random);

/**
 * rc_helper_net_ratelimit() - May the network code print one more message?
 *
 * Context: Any.
 */
bool rc_helper_net_ratelimit(void)
{
	return net_ratelimit();
}
EXPORT_SYMBOL_GPL(rc_helper_net_ratelimit);

/**
 * rc_helper_extack_set() - Set the message of an extended ACK
 * @extack: extended ACK or NULL
 * @arguments: Rust's fmt::Arguments, alive during the call
 *
 * Cuts what is longer than NETLINK_MAX_FMTMSG_LEN - 1 bytes.
 *
 * Context: The caller owns @extack.
 */
void rc_helper_extack_set(struct netlink_ext_ack *extack, const void *arguments)
{
	NL_SET_ERR_MSG_FMT(extack, "%pA", arguments);
}
EXPORT_SYMBOL_GPL(rc_helper_extack_set);
