/* SPDX-License-Identifier: GPL-2.0 */
/* C helpers of completion.rs, work.rs and cpu.rs; documented in sync.c. */
#ifndef RC_HELPERS_SYNC_H
#define RC_HELPERS_SYNC_H

#include <linux/completion.h>
#include <linux/workqueue.h>

void rc_helper_completion_reinit(struct completion *completion);
void rc_helper_work_init(struct delayed_work *work, work_func_t func,
			 struct lock_class_key *key);
void rc_helper_work_schedule(struct delayed_work *work, unsigned long delay);
bool rc_helper_device_trylock(struct device *dev);
void rc_helper_device_unlock(struct device *dev);
u32 rc_helper_cpus_online(void);
u32 rc_helper_cpus_possible(void);
bool rc_helper_cpu_online(u32 cpu);

#endif
