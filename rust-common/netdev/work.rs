// SPDX-License-Identifier: GPL-2.0

//! Work in process context, that ends with its owner.
//!
//! As `kernel::workqueue`, but dropping it cancels it and waits.

use core::cell::UnsafeCell;

use kernel::{
    prelude::*,
    sync::LockClassKey,
    time::{
        msecs_to_jiffies,
        Delta, //
    },
    types::Opaque, //
};

use crate::bindings;

/// What is to be done.
pub trait Run: Send + 'static {
    /// Does it. Process context; never runs twice at a time.
    ///
    /// Returns whether it is to run again.
    fn run(&mut self) -> Again;
}

/// Whether work is to run again by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// Not until it is scheduled.
    No,
    /// After this time, rounded up to a jiffy.
    After(Delta),
}

/// # Invariants
///
/// `work` is initialised with `callback::<T>`.
#[pin_data]
struct Inner<T> {
    #[pin]
    work: Opaque<bindings::delayed_work>,
    task: UnsafeCell<T>,
}

/// Work that is scheduled at will, now or later.
///
/// Dropping it cancels it, and waits for one that runs: `T::run` must not drop it, nor wait for who
/// does. Context: made and dropped in process context, scheduled from any.
pub struct Work<T: Run> {
    inner: Pin<KBox<Inner<T>>>,
}

// SAFETY: Only the work queue uses the task, which may be sent to it.
unsafe impl<T: Run> Send for Work<T> {}

// SAFETY: Shared use is scheduling only, which the work queue locks.
unsafe impl<T: Run> Sync for Work<T> {}

impl<T: Run> Work<T> {
    /// Makes work; it is not scheduled yet. `class` is lockdep's for it:
    /// [`static_lock_class!`](kernel::static_lock_class).
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there is no memory.
    pub fn new(task: T, class: Pin<&'static LockClassKey>) -> Result<Self> {
        let inner = KBox::pin_init(
            pin_init!(Inner {
                work <- Opaque::ffi_init(|work: *mut bindings::delayed_work| {
                    // SAFETY: `work` is valid for writes, and pinned. The class is static.
                    unsafe {
                        bindings::rc_helper_work_init(work, Some(callback::<T>), class.as_ptr())
                    };
                }),
                task: UnsafeCell::new(task),
            }),
            GFP_KERNEL,
        )?;
        Ok(Self { inner })
    }

    /// Has it run soon. It runs once, however often it is scheduled before.
    pub fn schedule(&self) {
        // SAFETY: The work is initialised, and cancelled before it goes away.
        unsafe { bindings::rc_helper_work_schedule(self.inner.work.get(), 0) };
    }

    /// Has it run after `delay`, rounded up to a jiffy, instead of when it was scheduled for before.
    pub fn schedule_after(&self, delay: Delta) {
        // SAFETY: The work is initialised, and cancelled before it goes away.
        unsafe { bindings::rc_helper_work_schedule(self.inner.work.get(), jiffies(delay)) };
    }
}

impl<T: Run> Drop for Work<T> {
    fn drop(&mut self) {
        // SAFETY: The work is initialised. Once disabled, it neither runs nor can it be scheduled,
        // not even by itself.
        unsafe { bindings::disable_delayed_work_sync(self.inner.work.get()) };
    }
}

pub(crate) fn jiffies(delay: Delta) -> c_ulong {
    msecs_to_jiffies(u32::try_from(delay.as_millis_ceil().max(0)).unwrap_or(u32::MAX))
}

/// # Safety
///
/// `work` is the first field of the `work` of an [`Inner<T>`] that is not dropped.
unsafe extern "C" fn callback<T: Run>(work: *mut bindings::work_struct) {
    // SAFETY: By the safety requirement.
    let delayed = unsafe { kernel::container_of!(work, bindings::delayed_work, work) };
    // SAFETY: By the safety requirement; `Opaque` is a transparent wrapper.
    let inner = unsafe { &*kernel::container_of!(Opaque::cast_from(delayed), Inner<T>, work) };
    // SAFETY: The task is used here only, and work never runs twice at a time, so this is the only
    // reference.
    let task = unsafe { &mut *inner.task.get() };
    if let Again::After(delay) = task.run() {
        // SAFETY: The work is initialised, and not dropped while it runs.
        unsafe { bindings::rc_helper_work_schedule(inner.work.get(), jiffies(delay)) };
    }
}
