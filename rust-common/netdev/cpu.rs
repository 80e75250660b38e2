// SPDX-License-Identifier: GPL-2.0

//! CPUs, as far as the number of queues follows them.

use crate::bindings;

/// CPUs that are online now.
pub fn online() -> u32 {
    // SAFETY: Has no preconditions.
    unsafe { bindings::rc_helper_cpus_online() }
}

/// The CPU that this runs on, as long as softirqs are off.
#[inline]
pub fn current() -> u32 {
    kernel::cpu::CpuId::current().as_u32()
}

/// One more than the largest number that a CPU may ever have.
pub fn ids() -> u32 {
    kernel::cpu::nr_cpu_ids()
}

/// Whether a CPU is online now. There is none beyond [`ids`].
pub fn is_online(cpu: u32) -> bool {
    // SAFETY: The number is below that of CPU numbers.
    cpu < ids() && unsafe { bindings::rc_helper_cpu_online(cpu) }
}

/// CPUs that may ever be online.
pub fn possible() -> u32 {
    // SAFETY: Has no preconditions.
    unsafe { bindings::rc_helper_cpus_possible() }
}
