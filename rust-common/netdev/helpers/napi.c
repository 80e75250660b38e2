// SPDX-License-Identifier: GPL-2.0
/* C helpers for NAPI. */

#include <linux/export.h>
#include <linux/sched.h>
#include <net/netdev_lock.h>

#include "napi.h"

static bool locked_by_us(struct net_device *dev)
{
#ifdef CONFIG_PREEMPT_RT
	unsigned long owner = (unsigned long)READ_ONCE(dev->lock.rtmutex.owner);
	const unsigned long flags = 0x01;
#else
	unsigned long owner = atomic_long_read(&dev->lock.owner);
	const unsigned long flags = 0x07;
#endif

	return (owner & ~flags) == (unsigned long)current;
}

/**
 * rc_helper_napi_lock() - Take the instance lock unless the task holds it
 * @dev: network device
 *
 * A NAPI goes away with the queues that it serves: in ndo_stop() or a failed
 * ndo_open(), which hold the lock, or in an unwinding work item, which may not.
 * Only the task itself can make itself the owner, so the answer stays true.
 *
 * Context: Process.
 * Return: true if the lock was taken and must be released.
 */
bool rc_helper_napi_lock(struct net_device *dev)
{
	if (locked_by_us(dev))
		return false;
	netdev_lock(dev);
	return true;
}
EXPORT_SYMBOL_GPL(rc_helper_napi_lock);

/**
 * rc_helper_napi_add() - Add a NAPI with settings that outlive it
 * @dev: registered network device
 * @napi: zeroed memory
 * @poll: poll function
 * @index: slot of the settings, below the larger of the queue counts given to
 *	   alloc_etherdev_mqs()
 *
 * Context: Process, under the instance lock.
 */
void rc_helper_napi_add(struct net_device *dev, struct napi_struct *napi,
			int (*poll)(struct napi_struct *, int), u32 index)
{
	netif_napi_add_config_locked(dev, napi, poll, index);
}
EXPORT_SYMBOL_GPL(rc_helper_napi_add);

/**
 * rc_helper_napi_del() - Remove a NAPI; its memory can be freed afterwards
 * @napi: disabled NAPI
 *
 * Context: Process, under the instance lock.
 */
void rc_helper_napi_del(struct napi_struct *napi)
{
	netif_napi_del_locked(napi);
}
EXPORT_SYMBOL_GPL(rc_helper_napi_del);

/**
 * rc_helper_napi_enable() - Enable a NAPI
 * @napi: disabled NAPI
 * @irq: interrupt that schedules it, or -1; the core watches its affinity while
 *	 the NAPI is enabled
 *
 * Context: Process, under the instance lock.
 */
void rc_helper_napi_enable(struct napi_struct *napi, int irq)
{
	netif_napi_set_irq_locked(napi, irq);
	napi_enable_locked(napi);
}
EXPORT_SYMBOL_GPL(rc_helper_napi_enable);

/**
 * rc_helper_napi_disable() - Disable a NAPI, after waiting for its poll to end
 * @napi: enabled NAPI
 *
 * Context: Process, under the instance lock.
 */
void rc_helper_napi_disable(struct napi_struct *napi)
{
	napi_disable_locked(napi);
	/* Before free_irq(), which does not like to be watched. */
	netif_napi_set_irq_locked(napi, -1);
}
EXPORT_SYMBOL_GPL(rc_helper_napi_disable);

/**
 * rc_helper_napi_schedule() - Have a NAPI polled
 * @napi: NAPI; nothing happens while it is disabled
 *
 * Context: Any.
 */
void rc_helper_napi_schedule(struct napi_struct *napi)
{
	napi_schedule(napi);
}
EXPORT_SYMBOL_GPL(rc_helper_napi_schedule);
