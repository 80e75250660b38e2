// SPDX-License-Identifier: GPL-2.0

//! CPUs, as far as the number of queues follows them.

use crate::bindings;

/// CPUs that are online now.
pub fn online() -> u32 {
    // SAFETY: Has no preconditions.
    unsafe { bindings::rc_helper_cpus_online() }
}

/// CPUs that may ever be online.
pub fn possible() -> u32 {
    // SAFETY: Has no preconditions.
    unsafe { bindings::rc_helper_cpus_possible() }
}
