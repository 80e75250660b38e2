// SPDX-License-Identifier: GPL-2.0

//! Waiting for one event, with a time limit.
//!
//! As `kernel::sync::Completion`, which can neither time out nor be used again.

use kernel::{
    prelude::*,
    time::{
        msecs_to_jiffies,
        Delta, //
    },
    types::Opaque, //
};

use crate::bindings;

/// The event did not come in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout;

impl From<Timeout> for Error {
    fn from(_: Timeout) -> Self {
        ETIMEDOUT
    }
}

/// An event that one context waits for and another reports.
///
/// # Invariants
///
/// `inner` is initialised.
#[pin_data]
pub struct Completion {
    #[pin]
    inner: Opaque<bindings::completion>,
}

// SAFETY: A completion belongs to no thread.
unsafe impl Send for Completion {}

// SAFETY: Its functions lock.
unsafe impl Sync for Completion {}

impl Completion {
    /// Makes an event that has not come.
    pub fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            inner <- Opaque::ffi_init(|inner: *mut bindings::completion| {
                // SAFETY: `inner` is valid for writes, and pinned.
                unsafe { bindings::init_completion(inner) };
            }),
        })
    }

    /// Forgets events that came before. Nobody waits at this time.
    pub fn reinit(&self) {
        // SAFETY: It is initialised; the helper takes the lock that `complete` takes.
        unsafe { bindings::rc_helper_completion_reinit(self.inner.get()) };
    }

    /// Reports the event to one who waits, or the next one who will. Any context.
    pub fn complete(&self) {
        // SAFETY: It is initialised.
        unsafe { bindings::complete(self.inner.get()) };
    }

    /// Waits for the event, and takes it. Sleeps.
    ///
    /// # Errors
    ///
    /// [`Timeout`] if it did not come within `limit`, rounded up to a jiffy.
    pub fn wait_timeout(&self, limit: Delta) -> Result<(), Timeout> {
        let millis = u32::try_from(limit.as_millis_ceil().max(0)).unwrap_or(u32::MAX);
        // SAFETY: It is initialised.
        let left = unsafe {
            bindings::wait_for_completion_timeout(self.inner.get(), msecs_to_jiffies(millis))
        };
        if left == 0 {
            Err(Timeout)
        } else {
            Ok(())
        }
    }
}
