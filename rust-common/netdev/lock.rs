// SPDX-License-Identifier: GPL-2.0

//! The locks of a network device's configuration, as types.
//!
//! Two locks protect it: rtnl, one for the whole system, and the instance lock,
//! one per device (`net_device.lock`). Every device made by [`crate::device`]
//! is "ops locked": the core runs its callbacks under the instance lock, and
//! many under rtnl besides (Documentation/networking/netdevices.rst). Lock
//! order: rtnl, then the instance lock.
//!
//! [`OpsLock`] and [`RtnlLock`] are proofs that the locks are held. A proof
//! names its device, and what needs the lock is a method of the proof, so a
//! proof for one device is no use on another. Callbacks are given one; other
//! process context gets one from [`Device::lock`] or [`Device::rtnl_lock`].
//!
//! [`Device::lock`]: crate::device::Device::lock
//! [`Device::rtnl_lock`]: crate::device::Device::rtnl_lock

use crate::{
    bindings,
    log::AsNetdev, //
};
use core::{
    marker::PhantomData,
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    error::to_result,
    fmt::{
        self,
        Write, //
    },
    prelude::*, //
};

/// Proof that the instance lock of one network device is held.
///
/// # Invariants
///
/// `dev` is valid, and the current task holds its instance lock, for `'a`.
pub struct OpsLock<'a> {
    dev: NonNull<bindings::net_device>,
    // Neither `Send` nor `Sync`: a mutex belongs to the task that took it.
    _not_send: PhantomData<(&'a (), *mut ())>,
}

impl OpsLock<'_> {
    /// Makes a proof.
    ///
    /// # Safety
    ///
    /// For as long as the proof lives, `dev` is valid and the current task
    /// holds its instance lock.
    pub(crate) unsafe fn assume(dev: NonNull<bindings::net_device>) -> Self {
        // INVARIANT: The caller promises both.
        Self {
            dev,
            _not_send: PhantomData,
        }
    }

    /// Returns the device whose lock is held.
    pub(crate) fn device_ptr(&self) -> *mut bindings::net_device {
        self.dev.as_ptr()
    }

    /// Takes a reference to the device that may outlive the lock.
    ///
    /// # Errors
    ///
    /// `ENODEV`: the device is not registered, or is being unregistered.
    pub fn hold(&self) -> Result<DeviceRef> {
        if !self.is_registered() {
            return Err(ENODEV);
        }
        // SAFETY: The device is valid by the type invariant, and registered.
        unsafe { bindings::rc_helper_dev_hold(self.device_ptr()) };
        // INVARIANT: The reference was taken just now, and while the instance
        // lock is held the device cannot begin to unregister.
        Ok(DeviceRef { dev: self.dev })
    }

    /// Is the device registered, and not yet being unregistered?
    pub fn is_registered(&self) -> bool {
        // SAFETY:
        // - The device is valid by the type invariant.
        // - The state changes under the instance lock, which is held.
        let state = unsafe { (*self.device_ptr()).reg_state };
        u32::from(state) == bindings::netdev_reg_state_NETREG_REGISTERED
    }

    /// Is the device up?
    pub fn is_running(&self) -> bool {
        // SAFETY: The device is valid by the type invariant.
        unsafe { bindings::rc_helper_netif_running(self.device_ptr()) }
    }

    /// Is the device present, so that the stack may send and configure?
    pub fn is_present(&self) -> bool {
        // SAFETY: The device is valid by the type invariant.
        unsafe { bindings::rc_helper_netif_device_present(self.device_ptr()) }
    }

    /// Number of TX queues that the stack uses now.
    pub fn real_tx_queues(&self) -> u32 {
        // SAFETY:
        // - The device is valid by the type invariant.
        // - The number changes under the instance lock only, which is held.
        unsafe { (*self.device_ptr()).real_num_tx_queues }
    }

    /// Number of RX queues that the stack uses now.
    pub fn real_rx_queues(&self) -> u32 {
        // SAFETY: As in `real_tx_queues`.
        unsafe { (*self.device_ptr()).real_num_rx_queues }
    }

    /// Did a user set the RX indirection table? Then it is to be kept as long as
    /// its queues exist (the core refuses to take away those), else it follows
    /// the number of queues.
    pub fn is_rxfh_configured(&self) -> bool {
        // SAFETY:
        // - The device is valid by the type invariant.
        // - What is read changes under the instance lock only, which is held.
        unsafe { bindings::netif_is_rxfh_configured(self.device_ptr()) }
    }

    /// Lets the stack use all TX queues, and sends what waits.
    pub fn wake_all_queues(&self) {
        // SAFETY: The device is valid by the type invariant; its number of
        // queues is stable under the instance lock.
        unsafe { bindings::rc_helper_netif_tx_wake_all_queues(self.device_ptr()) };
    }

    /// Stops all TX queues; no `xmit` runs any more when this returns, nor
    /// starts until a queue is started or woken.
    pub fn tx_disable(&self) {
        // SAFETY: The device is valid by the type invariant; a task that holds
        // a mutex holds no TX lock.
        unsafe { bindings::rc_helper_netif_tx_disable(self.device_ptr()) };
    }
}

// SAFETY: The device is valid by the type invariant.
unsafe impl AsNetdev for OpsLock<'_> {
    fn as_netdev(&self) -> *mut bindings::net_device {
        self.device_ptr()
    }
}

/// Proof that rtnl and the instance lock of one network device are held.
///
/// # Invariants
///
/// The current task holds rtnl for `'a`.
pub struct RtnlLock<'a>(OpsLock<'a>);

impl RtnlLock<'_> {
    /// Makes a proof.
    ///
    /// # Safety
    ///
    /// For as long as the proof lives, `dev` is valid and the current task
    /// holds rtnl and the instance lock of `dev`.
    pub(crate) unsafe fn assume(dev: NonNull<bindings::net_device>) -> Self {
        // INVARIANT: The caller promises that rtnl is held.
        // SAFETY: The caller promises that the instance lock is held.
        Self(unsafe { OpsLock::assume(dev) })
    }

    /// Sets the numbers of TX and RX queues that the stack uses.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: a number is 0 or above what the device was allocated with.
    /// - `ENOMEM`: no memory for a queue's sysfs objects; nothing changed.
    pub fn set_real_queues(&self, tx: u32, rx: u32) -> Result {
        // SAFETY: The device is valid, and rtnl and the instance lock are held,
        // by the type invariants.
        to_result(unsafe { bindings::netif_set_real_num_queues(self.device_ptr(), tx, rx) })
    }

    /// Computes the active features again, after something that
    /// `fix_features` looks at has changed.
    pub fn update_features(&self) {
        // SAFETY: The device is valid, and rtnl and the instance lock are held,
        // by the type invariants.
        unsafe { bindings::netdev_update_features(self.device_ptr()) };
    }

    /// Marks the device as absent, and stops its queues: the stack neither
    /// sends nor configures until [`attach`](Self::attach).
    pub fn detach(&self) {
        // SAFETY: The device is valid by the type invariant.
        unsafe { bindings::netif_device_detach(self.device_ptr()) };
    }

    /// Marks the device as present again, and wakes its queues if it is up.
    pub fn attach(&self) {
        // SAFETY: The device is valid by the type invariant.
        unsafe { bindings::netif_device_attach(self.device_ptr()) };
    }

    /// Sets the largest MTU that users may set, in bytes.
    pub fn set_max_mtu(&self, mtu: u32) {
        // SAFETY: The device is valid by the type invariant. Writers are ordered by rtnl, which is held;
        // readers use READ_ONCE(), which a volatile write pairs with.
        unsafe { (&raw mut (*self.device_ptr()).max_mtu).write_volatile(mtu) };
    }

    /// Name of the interface, as it is now.
    pub fn name(&self) -> Name {
        // SAFETY:
        // - The device is valid by the type invariant.
        // - The name changes under rtnl only, which is held.
        Name(unsafe { (*self.device_ptr()).name })
    }
}

impl<'a> Deref for RtnlLock<'a> {
    type Target = OpsLock<'a>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// Name of a network interface at one moment.
#[derive(Clone, Copy)]
pub struct Name([c_char; 16]);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .take_while(|&&c| c != 0)
            .try_for_each(|&c| f.write_char(char::from(c)))
    }
}

/// The instance lock of a device, until dropped.
///
/// # Invariants
///
/// The instance lock was taken for this guard.
#[must_use = "the lock is released when the guard is dropped"]
pub struct OpsGuard<'a>(OpsLock<'a>);

impl OpsGuard<'_> {
    /// Takes the instance lock of `dev`. Sleeps.
    ///
    /// # Safety
    ///
    /// `dev` is valid for as long as the guard lives.
    pub(crate) unsafe fn new(dev: NonNull<bindings::net_device>) -> Self {
        // SAFETY: The caller promises that `dev` is valid.
        unsafe { bindings::rc_helper_netdev_lock(dev.as_ptr()) };
        // INVARIANT: The lock was taken in the line above.
        // SAFETY: `dev` is valid while the guard lives, and only its `drop`
        // releases the lock.
        Self(unsafe { OpsLock::assume(dev) })
    }
}

impl Drop for OpsGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: The device is valid, and by the type invariant this guard
        // owns the lock, which the current task took (the type is not `Send`).
        unsafe { bindings::rc_helper_netdev_unlock(self.0.device_ptr()) };
    }
}

impl<'a> Deref for OpsGuard<'a> {
    type Target = OpsLock<'a>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// Rtnl and the instance lock of a device, until dropped.
///
/// # Invariants
///
/// Both locks were taken for this guard.
#[must_use = "the locks are released when the guard is dropped"]
pub struct RtnlGuard<'a>(RtnlLock<'a>);

impl RtnlGuard<'_> {
    /// Takes rtnl, then the instance lock of `dev`. Sleeps.
    ///
    /// # Safety
    ///
    /// `dev` is valid for as long as the guard lives.
    pub(crate) unsafe fn new(dev: NonNull<bindings::net_device>) -> Self {
        // SAFETY: Has no preconditions.
        unsafe { bindings::rtnl_lock() };
        // SAFETY: The caller promises that `dev` is valid.
        unsafe { bindings::rc_helper_netdev_lock(dev.as_ptr()) };
        // INVARIANT: Both locks were taken above.
        // SAFETY: `dev` is valid while the guard lives, and only its `drop`
        // releases the locks.
        Self(unsafe { RtnlLock::assume(dev) })
    }
}

impl Drop for RtnlGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: The device is valid, and by the type invariant this guard
        // owns the lock, which the current task took (the type is not `Send`).
        unsafe { bindings::rc_helper_netdev_unlock(self.0.device_ptr()) };
        // SAFETY: By the type invariant this guard owns rtnl.
        unsafe { bindings::rtnl_unlock() };
    }
}

impl<'a> Deref for RtnlGuard<'a> {
    type Target = RtnlLock<'a>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// A counted reference to a network device, without its type.
///
/// Unregistering the device waits until all of these are gone, so whatever
/// keeps one must be dropped when the device is stopped.
///
/// # Invariants
///
/// - `dev` is valid, and was registered when the reference was taken.
/// - This owns one count of its references (`dev_hold()`).
pub struct DeviceRef {
    dev: NonNull<bindings::net_device>,
}

impl DeviceRef {
    /// Returns the device.
    pub(crate) fn as_ptr(&self) -> *mut bindings::net_device {
        self.dev.as_ptr()
    }
}

impl Clone for DeviceRef {
    fn clone(&self) -> Self {
        // SAFETY: The device is valid by the type invariant; it is registered
        // or waits in unregistering for the count that `self` owns.
        unsafe { bindings::rc_helper_dev_hold(self.as_ptr()) };
        // INVARIANT: The count was taken above.
        Self { dev: self.dev }
    }
}

impl Drop for DeviceRef {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, this owns the count that is given back.
        unsafe { bindings::rc_helper_dev_put(self.as_ptr()) };
    }
}

// SAFETY: References are counted per CPU or atomically, and may be given back
// by any task.
unsafe impl Send for DeviceRef {}

// SAFETY: Shared use only clones, which counts as above, or reads the pointer.
unsafe impl Sync for DeviceRef {}

// SAFETY: The device is valid by the type invariant.
unsafe impl AsNetdev for DeviceRef {
    fn as_netdev(&self) -> *mut bindings::net_device {
        self.as_ptr()
    }
}
