// SPDX-License-Identifier: GPL-2.0
/* C helpers for waiting and deferring. */

#include <linux/cpumask.h>
#include <linux/device.h>
#include <linux/export.h>

#include "sync.h"

/**
 * rc_helper_completion_reinit() - Forget events that came before
 * @completion: nobody waits for it at this time
 *
 * Unlike reinit_completion(), safe against a complete() at the same time.
 *
 * Context: Any.
 */
void rc_helper_completion_reinit(struct completion *completion)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&completion->wait.lock, flags);
	completion->done = 0;
	raw_spin_unlock_irqrestore(&completion->wait.lock, flags);
}
EXPORT_SYMBOL_GPL(rc_helper_completion_reinit);

/**
 * rc_helper_work_init() - Initialise work
 * @work: uninitialised memory
 * @func: what it does
 * @key: lockdep's class of it; static
 *
 * Context: Process.
 */
void rc_helper_work_init(struct delayed_work *work, work_func_t func,
			 struct lock_class_key *key)
{
	INIT_DELAYED_WORK(work, func);
#ifdef CONFIG_LOCKDEP
	/* Not the one class of all work that is initialised here. */
	lockdep_init_map(&work->work.lockdep_map, "rc_work", key, 0);
#endif
}
EXPORT_SYMBOL_GPL(rc_helper_work_init);

/**
 * rc_helper_work_schedule() - Have work run on the system's work queue
 * @work: initialised work; nothing happens if it is disabled
 * @delay: when, in jiffies; counts instead of an earlier call's
 *
 * Context: Any.
 */
void rc_helper_work_schedule(struct delayed_work *work, unsigned long delay)
{
	mod_delayed_work(system_percpu_wq, work, delay);
}
EXPORT_SYMBOL_GPL(rc_helper_work_schedule);

/**
 * rc_helper_device_trylock() - Take the lock of a device, unless somebody has it
 * @dev: device
 *
 * Context: Process.
 * Return: Whether it was taken.
 */
bool rc_helper_device_trylock(struct device *dev)
{
	return device_trylock(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_device_trylock);

/**
 * rc_helper_device_unlock() - Release the lock of a device
 * @dev: device whose lock the caller has
 *
 * Context: Process.
 */
void rc_helper_device_unlock(struct device *dev)
{
	device_unlock(dev);
}
EXPORT_SYMBOL_GPL(rc_helper_device_unlock);

/**
 * rc_helper_cpus_online() - Number of CPUs online
 *
 * Context: Any; it changes at any time unless cpus_read_lock() is held.
 * Return: The number, at least 1.
 */
u32 rc_helper_cpus_online(void)
{
	return num_online_cpus();
}
EXPORT_SYMBOL_GPL(rc_helper_cpus_online);

/**
 * rc_helper_cpus_possible() - Number of CPUs that may ever be online
 *
 * Context: Any.
 * Return: The number, at least 1.
 */
u32 rc_helper_cpus_possible(void)
{
	return num_possible_cpus();
}
EXPORT_SYMBOL_GPL(rc_helper_cpus_possible);

/**
 * rc_helper_cpu_online() - Is a CPU online?
 * @cpu: number of the CPU, below nr_cpu_ids
 *
 * Context: Any; it changes at any time unless cpus_read_lock() is held.
 */
bool rc_helper_cpu_online(u32 cpu)
{
	return cpu_online(cpu);
}
EXPORT_SYMBOL_GPL(rc_helper_cpu_online);
