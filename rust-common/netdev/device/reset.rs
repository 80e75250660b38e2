// SPDX-License-Identifier: GPL-2.0

//! The work item that resets a device.

use super::{
    Device,
    Operations, //
};
use crate::{
    bindings,
    work::jiffies, //
};
use core::{
    marker::PhantomPinned,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::LockClassKey,
    time::Delta,
    types::Opaque, //
};

/// A work item that runs [`Operations::reset`] of the device it lies in.
///
/// # Invariants
///
/// - `work` is initialised, with `run::<T>` as its function.
/// - `dev` is the `Device<T>` whose private data this is part of.
#[pin_data]
pub(super) struct Reset {
    #[pin]
    work: Opaque<bindings::delayed_work>,
    dev: NonNull<bindings::net_device>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: The workqueue serialises all that is done to a work item.
unsafe impl Send for Reset {}

// SAFETY: As above.
unsafe impl Sync for Reset {}

impl Reset {
    /// Makes the work item of `dev`.
    ///
    /// # Safety
    ///
    /// - The result is initialised inside the private data of `dev`.
    /// - `dev` is a `Device<T>` when, and for as long as, `schedule` is called.
    /// - `disable` is called before the private data goes.
    pub(super) unsafe fn new<T: Operations>(
        dev: NonNull<bindings::net_device>,
    ) -> impl PinInit<Self> {
        let class: Pin<&'static LockClassKey> = kernel::static_lock_class!();
        // INVARIANT: `work` is initialised here with `run::<T>`; the caller
        // promises what `dev` is.
        pin_init!(Self {
            // SAFETY: `slot` is valid for writes, and stays in place. The class is
            // static.
            work <- Opaque::ffi_init(|slot| unsafe {
                bindings::rc_helper_work_init(slot, Some(run::<T>), class.as_ptr())
            }),
            dev,
            _pin: PhantomPinned,
        })
    }

    /// Has the work run after `delay`, instead of when it was scheduled for before. Context: any.
    pub(super) fn schedule(&self, delay: Delta) {
        // SAFETY:
        // - The system's workqueue lives as long as the system.
        // - The work item is initialised by the type invariants, and lives until
        //   after `disable`, which waits for it, by the contract of `new`.
        unsafe {
            bindings::mod_delayed_work_on(
                bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int,
                bindings::system_dfl_long_wq,
                self.work.get(),
                jiffies(delay),
            )
        };
    }

    /// Takes `schedule` back, unless the work has begun. Context: any.
    pub(super) fn cancel(&self) {
        // SAFETY: The work item is initialised by the type invariants.
        unsafe { bindings::cancel_delayed_work(self.work.get()) };
    }

    /// Waits until the work does not run, and lets it never run again. Sleeps;
    /// the caller holds neither rtnl nor the instance lock.
    pub(super) fn disable(&self) {
        // SAFETY: The work item is initialised by the type invariants.
        unsafe { bindings::disable_delayed_work_sync(self.work.get()) };
    }
}

/// Work function.
///
/// # Safety
///
/// `work` is the first field of that of a `Reset` which meets its invariants
/// for this `T`.
unsafe extern "C" fn run<T: Operations>(work: *mut bindings::work_struct) {
    // SAFETY: By the contract of this function.
    let delayed = unsafe { kernel::container_of!(work, bindings::delayed_work, work) };
    // SAFETY: `delayed` is the field of a `Reset`, by the contract of this
    // function; `Opaque` is transparent.
    let reset = unsafe { &*kernel::container_of!(Opaque::cast_from(delayed), Reset, work) };
    // SAFETY: `dev` is a `Device<T>` by the invariants of `Reset`, and waits for
    // this work before it goes.
    let dev = unsafe { Device::<T>::from_raw(reset.dev.as_ptr()) };
    let lock = dev.rtnl_lock();
    // The device may have gone while the work waited for the locks.
    if lock.is_registered() {
        T::reset(dev, &lock);
    }
}
