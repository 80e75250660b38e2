// SPDX-License-Identifier: GPL-2.0

//! Network devices.
//!
//! A driver implements [`Operations`] for its per-device data, allocates a
//! device with that data inside ([`Unregistered::alloc`]), sets it up, and
//! registers it. [`Registered`] unregisters, drops the data and frees the
//! device when it is dropped.
//!
//! C header: [`include/linux/netdevice.h`](srctree/include/linux/netdevice.h).

mod callbacks;
mod operations;
mod registration;
mod reset;

pub use self::{
    operations::Operations,
    registration::{
        DeviceId,
        Registered,
        Unregistered, //
    },
};
pub use crate::lock::DeviceRef;

use self::reset::Reset;
use crate::{
    bindings,
    features::Features,
    lock::{
        OpsGuard,
        OpsLock,
        RtnlGuard, //
    },
    log::AsNetdev,
    tx_lock::TxLocked, //
};
use core::{
    marker::PhantomData,
    mem::offset_of,
    ops::Deref,
    ptr::NonNull,
    sync::atomic::AtomicUsize, //
};
use kernel::{
    cpumask::Cpumask,
    error::to_result,
    prelude::*,
    time::Delta,
    types::Opaque, //
};

/// Sizes of what the driver writes into memory of the core. They never change
/// once the device is registered, which orders them before all reads.
pub(crate) struct Sizes {
    /// Number of statistics.
    pub(crate) statistics: AtomicUsize,
    /// Entries of the RX indirection table.
    pub(crate) rxfh_indir: AtomicUsize,
    /// Bytes of the RX hash key.
    pub(crate) rxfh_key: AtomicUsize,
}

/// What lies in the memory that the core allocates behind `net_device`.
#[pin_data]
struct Private<T> {
    #[pin]
    reset: Reset,
    sizes: Sizes,
    #[pin]
    data: T,
}

/// A network device with the data `T` of its driver in place.
///
/// Derefs to `T`.
///
/// # Invariants
///
/// The `net_device` is valid, made by [`Unregistered::alloc`] for this `T`, and
/// its private data is a pinned, initialised `Private<T>`.
#[repr(transparent)]
pub struct Device<T>(Opaque<bindings::net_device>, PhantomData<T>);

// SAFETY: All methods that take `&self` may be called from any task: what needs
// a lock asks for the proof of it. `T` is shared besides.
unsafe impl<T: Send + Sync> Send for Device<T> {}

// SAFETY: As above.
unsafe impl<T: Send + Sync> Sync for Device<T> {}

impl<T> Device<T> {
    /// Borrows a device.
    ///
    /// # Safety
    ///
    /// For `'a`, `dev` meets the type invariants of `Device<T>`.
    pub(crate) unsafe fn from_raw<'a>(dev: *mut bindings::net_device) -> &'a Self {
        // SAFETY: The caller promises validity; the type is transparent over an
        // `Opaque`, so the reference claims nothing about the contents.
        unsafe { &*dev.cast() }
    }

    pub(crate) fn as_ptr(&self) -> *mut bindings::net_device {
        self.0.get()
    }

    pub(crate) fn as_non_null(&self) -> NonNull<bindings::net_device> {
        NonNull::from(&self.0).cast()
    }

    pub(crate) fn sizes(&self) -> &Sizes {
        &self.private().sizes
    }

    /// Returns where the private data of `dev` lies.
    fn private_of(dev: *mut bindings::net_device) -> *mut Private<T> {
        const OFFSET: usize = offset_of!(bindings::net_device, priv_);
        dev.wrapping_byte_add(OFFSET).cast()
    }

    fn private_ptr(&self) -> *mut Private<T> {
        Self::private_of(self.as_ptr())
    }

    fn private(&self) -> &Private<T> {
        // SAFETY: By the type invariants, the device is valid and its private
        // data is an initialised `Private<T>`, which lives as long.
        unsafe { &*self.private_ptr() }
    }

    /// Takes the instance lock. Sleeps; who needs rtnl as well uses
    /// [`rtnl_lock`](Self::rtnl_lock), which takes the two in order.
    pub fn lock(&self) -> OpsGuard<'_> {
        // SAFETY: The device is valid for as long as `self` is borrowed.
        unsafe { OpsGuard::new(self.as_non_null()) }
    }

    /// Takes rtnl and the instance lock. Sleeps; the caller holds neither.
    pub fn rtnl_lock(&self) -> RtnlGuard<'_> {
        // SAFETY: The device is valid for as long as `self` is borrowed.
        unsafe { RtnlGuard::new(self.as_non_null()) }
    }

    /// Reports a link to the stack. Context: any.
    pub fn carrier_on(&self) {
        // SAFETY: The device is valid by the type invariants.
        unsafe { bindings::netif_carrier_on(self.as_ptr()) };
    }

    /// Reports the loss of the link to the stack. Context: any.
    pub fn carrier_off(&self) {
        // SAFETY: The device is valid by the type invariants.
        unsafe { bindings::netif_carrier_off(self.as_ptr()) };
    }

    /// Was a link reported? Context: any.
    pub fn carrier_ok(&self) -> bool {
        // SAFETY: The device is valid by the type invariants.
        unsafe { bindings::rc_helper_netif_carrier_ok(self.as_ptr()) }
    }

    /// Is the device up, or on its way there? Context: any; stable under the
    /// instance lock only.
    pub fn is_running(&self) -> bool {
        // SAFETY: The device is valid by the type invariants.
        unsafe { bindings::rc_helper_netif_running(self.as_ptr()) }
    }

    /// Largest packet above Ethernet, in bytes. Context: any.
    pub fn mtu(&self) -> u32 {
        // SAFETY: The device is valid by the type invariants. Others write the
        // field meanwhile with WRITE_ONCE(); a volatile access pairs with that.
        unsafe { (&raw const (*self.as_ptr()).mtu).read_volatile() }
    }

    /// Active features. Context: any; stable under the instance lock only.
    pub fn features(&self) -> Features {
        // SAFETY: As in `mtu`.
        Features::from_raw(unsafe { (&raw const (*self.as_ptr()).features).read_volatile() })
    }

    /// Number of TX queues that the device was allocated with.
    pub fn max_tx_queues(&self) -> u32 {
        // SAFETY: The device is valid by the type invariants; the number never
        // changes.
        unsafe { (*self.as_ptr()).num_tx_queues }
    }

    /// Number of RX queues that the device was allocated with.
    pub fn max_rx_queues(&self) -> u32 {
        // SAFETY: As in `max_tx_queues`.
        unsafe { (*self.as_ptr()).num_rx_queues }
    }

    /// Makes the stack send from the CPUs in `cpus` on TX queue `queue`.
    ///
    /// Sleeps; takes the CPU hotplug lock.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there is no such queue.
    /// - `ENOMEM`: no memory for the map; the old one stays.
    pub fn set_xps(&self, queue: u16, cpus: &Cpumask) -> Result {
        if u32::from(queue) >= self.max_tx_queues() {
            return Err(EINVAL);
        }
        // SAFETY:
        // - The device is valid by the type invariants, and has this queue.
        // - The mask is read during the call only.
        to_result(unsafe {
            bindings::netif_set_xps_queue(self.as_ptr(), cpus.as_raw().cast_const(), queue)
        })
    }

    /// Runs `f` under the xmit lock of TX queue `queue`. Context: process or
    /// softirq; no xmit lock held.
    ///
    /// # Errors
    ///
    /// `EINVAL`: there is no such queue.
    pub fn lock_tx<R>(&self, queue: u16, f: impl FnOnce(&mut TxLocked<'_>) -> R) -> Result<R> {
        if u32::from(queue) >= self.max_tx_queues() {
            return Err(EINVAL);
        }
        // SAFETY: The device is valid by the type invariants, and has this queue.
        unsafe { bindings::rc_helper_netif_tx_lock_bh(self.as_ptr(), queue.into()) };
        // SAFETY: The lock was taken above and is released below, after the
        // token is gone; only who takes the lock makes a token.
        let result = f(&mut unsafe { TxLocked::assume(self.as_ptr(), queue) });
        // SAFETY: The lock was taken above.
        unsafe { bindings::rc_helper_netif_tx_unlock_bh(self.as_ptr(), queue.into()) };
        Ok(result)
    }

    /// Has [`Operations::reset`] run once, `delay` from now, instead of when it
    /// was to run by an earlier call. Context: any.
    ///
    /// Does nothing if the device is going.
    pub fn schedule_reset(&self, delay: Delta) {
        self.private().reset.schedule(delay);
    }

    /// Takes [`schedule_reset`](Self::schedule_reset) back, unless the reset has begun. Context: any.
    pub fn cancel_reset(&self) {
        self.private().reset.cancel();
    }

    /// Takes a reference to the device that may outlive the lock.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `lock` is that of another device.
    /// - `ENODEV`: the device is not registered, or is being unregistered.
    pub fn hold(&self, lock: &OpsLock<'_>) -> Result<Held<T>> {
        if lock.device_ptr() != self.as_ptr() {
            return Err(EINVAL);
        }
        // INVARIANT: `self` meets the invariants of `Device<T>`, and the data
        // lives until unregistering, which waits for the reference, is over.
        Ok(Held {
            dev: lock.hold()?,
            _data: PhantomData,
        })
    }
}

impl<T> Deref for Device<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.private().data
    }
}

// SAFETY: The device is valid by the type invariants.
unsafe impl<T> AsNetdev for Device<T> {
    fn as_netdev(&self) -> *mut bindings::net_device {
        self.as_ptr()
    }
}

/// A counted reference to a network device and the data in it.
///
/// Unregistering the device waits until all of these are gone, so whatever
/// keeps one must be dropped when the device is stopped.
///
/// # Invariants
///
/// While this exists, the device meets the invariants of `Device<T>`.
pub struct Held<T> {
    dev: DeviceRef,
    _data: PhantomData<Device<T>>,
}

// The data stays where it is when a reference to it moves.
impl<T> Unpin for Held<T> {}

impl<T> Clone for Held<T> {
    fn clone(&self) -> Self {
        // INVARIANT: As for `self`; the clone holds the device, too.
        Self {
            dev: self.dev.clone(),
            _data: PhantomData,
        }
    }
}

impl<T> Deref for Held<T> {
    type Target = Device<T>;

    fn deref(&self) -> &Device<T> {
        // SAFETY: By the type invariants the device meets those of `Device<T>`.
        unsafe { Device::from_raw(self.dev.as_ptr()) }
    }
}

/// Fills `key` with the key for RX hashing that all devices of this boot share.
pub fn fill_rss_key<const N: usize>(key: &mut [u8; N]) {
    // NETDEV_RSS_KEY_LEN; the kernel does not survive a request for more.
    const { assert!(N <= 256) };
    // SAFETY: `key` is valid for writes of `N` bytes, and `N` is in range.
    unsafe { bindings::netdev_rss_key_fill(key.as_mut_ptr().cast(), N) };
}
