// SPDX-License-Identifier: GPL-2.0

//! Extended ACKs.

use crate::bindings;
use core::{
    marker::PhantomData,
    ptr::from_ref, //
};
use kernel::prelude::*;

/// Where the reason for a refusal goes, `struct netlink_ext_ack`.
///
/// Users see it beside the error; it is not logged. Over the old ioctl there is
/// none, and the reason is lost.
///
/// # Invariants
///
/// `0` is null, or valid and exclusively ours for `'a`.
pub struct ExtAck<'a>(
    *mut bindings::netlink_ext_ack,
    PhantomData<&'a mut bindings::netlink_ext_ack>,
);

impl ExtAck<'_> {
    /// Wraps what a callback was given.
    ///
    /// # Safety
    ///
    /// While the result lives, `extack` is null, or valid and used by nobody
    /// else.
    pub(crate) unsafe fn from_raw(extack: *mut bindings::netlink_ext_ack) -> Self {
        // INVARIANT: By the safety contract.
        Self(extack, PhantomData)
    }

    /// Sets the reason, without a newline; of what is longer than 79 bytes the
    /// end is cut: `extack.set(fmt!("rings hold 32 to 8192 packets"))`.
    pub fn set(&mut self, reason: core::fmt::Arguments<'_>) {
        // SAFETY:
        // - The extended ACK is null or valid by the type invariants.
        // - The arguments live during the call.
        unsafe { bindings::rc_helper_extack_set(self.0, from_ref(&reason).cast::<c_void>()) };
    }
}
