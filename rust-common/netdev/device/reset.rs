// SPDX-License-Identifier: GPL-2.0

//! The work item that resets a device.

use super::{
    Device,
    Operations, //
};
use crate::bindings;
use core::{
    marker::PhantomPinned,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::LockClassKey,
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
    work: Opaque<bindings::work_struct>,
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
        let key: Pin<&'static LockClassKey> = kernel::static_lock_class!();
        // INVARIANT: `work` is initialised here with `run::<T>`; the caller
        // promises what `dev` is.
        pin_init!(Self {
            // SAFETY:
            // - `slot` is valid for writes, and stays in place.
            // - The function, the name and the key live as long as the module.
            work <- Opaque::ffi_init(|slot| unsafe {
                bindings::init_work_with_key(
                    slot,
                    Some(run::<T>),
                    false,
                    c"netdev::Reset".as_char_ptr(),
                    key.as_ptr(),
                )
            }),
            dev,
            _pin: PhantomPinned,
        })
    }

    /// Has the work run soon. Context: any.
    pub(super) fn schedule(&self) {
        // SAFETY:
        // - The system's workqueue lives as long as the system.
        // - The work item is initialised by the type invariants, and lives until
        //   after `disable`, which waits for it, by the contract of `new`.
        unsafe {
            bindings::queue_work_on(
                bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int,
                bindings::system_dfl_long_wq,
                self.work.get(),
            )
        };
    }

    /// Waits until the work does not run, and lets it never run again. Sleeps;
    /// the caller holds neither rtnl nor the instance lock.
    pub(super) fn disable(&self) {
        // SAFETY: The work item is initialised by the type invariants.
        unsafe { bindings::disable_work_sync(self.work.get()) };
    }
}

/// Work function.
///
/// # Safety
///
/// `work` is that of a `Reset` which meets its invariants for this `T`.
unsafe extern "C" fn run<T: Operations>(work: *mut bindings::work_struct) {
    // SAFETY: `work` is the field of a `Reset`, by the contract of this
    // function; `Opaque` is transparent.
    let reset = unsafe { &*kernel::container_of!(Opaque::cast_from(work), Reset, work) };
    // SAFETY: `dev` is a `Device<T>` by the invariants of `Reset`, and waits for
    // this work before it goes.
    let dev = unsafe { Device::<T>::from_raw(reset.dev.as_ptr()) };
    let lock = dev.rtnl_lock();
    // The device may have gone while the work waited for the locks.
    if lock.is_registered() {
        T::reset(dev, &lock);
    }
}
