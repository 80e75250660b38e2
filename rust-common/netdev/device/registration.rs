// SPDX-License-Identifier: GPL-2.0

//! From allocation to registration and back.

use super::{
    callbacks::{
        device_operations,
        statistics_operations, //
    },
    reset::Reset,
    Device,
    Operations,
    Private,
    Sizes, //
};
use crate::{
    bindings,
    ethtool,
    features::Features,
    mac::MacAddress, //
};
use core::{
    marker::PhantomData,
    mem::offset_of,
    ops::Deref,
    ptr::NonNull,
    sync::atomic::{
        AtomicUsize,
        Ordering, //
    },
};
use kernel::{
    device,
    error::to_result,
    prelude::*,
    sync::aref::ARef, //
};

/// Identity of a device, for those that compare; the device may be gone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DeviceId(NonNull<bindings::net_device>);

impl DeviceId {
    /// Returns the address that identifies the device.
    pub(crate) fn as_ptr(self) -> *mut bindings::net_device {
        self.0.as_ptr()
    }
}

// SAFETY: The pointer is compared, never dereferenced.
unsafe impl Send for DeviceId {}

// SAFETY: As above.
unsafe impl Sync for DeviceId {}

/// Memory of a `net_device` whose private data is not initialised.
///
/// # Invariants
///
/// `0` is valid and owned, and not registered.
struct Allocation(NonNull<bindings::net_device>);

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the device is owned and not registered,
        // and nobody else knows it.
        unsafe { bindings::free_netdev(self.0.as_ptr()) };
    }
}

/// Owner of a `net_device` and the data in it.
///
/// # Invariants
///
/// The device meets the invariants of `Device<T>`, and is not registered when
/// this is dropped.
struct Owned<T: Operations> {
    // Freed after `drop` below has dropped what lies inside.
    dev: Allocation,
    // The core keeps a plain pointer to the parent until the device is freed.
    _parent: ARef<device::Device>,
    _data: PhantomData<T>,
}

// SAFETY: The owner of a device may be any task; the data is `Send`.
unsafe impl<T: Operations> Send for Owned<T> {}

// SAFETY: Shared use leads to `Device<T>` only, which is `Sync`.
unsafe impl<T: Operations> Sync for Owned<T> {}

impl<T: Operations> Owned<T> {
    fn as_ptr(&self) -> *mut bindings::net_device {
        self.dev.0.as_ptr()
    }
}

impl<T: Operations> Deref for Owned<T> {
    type Target = Device<T>;

    fn deref(&self) -> &Device<T> {
        // SAFETY: By the type invariants.
        unsafe { Device::from_raw(self.as_ptr()) }
    }
}

impl<T: Operations> Drop for Owned<T> {
    fn drop(&mut self) {
        self.private().reset.disable();
        // SAFETY:
        // - The data is initialised by the type invariants, and pinned; it is
        //   dropped in place, once, and the memory lives until `dev` is dropped.
        // - Nobody else uses it: the device is not registered, unregistering
        //   has waited for all callbacks and references, and the reset work
        //   neither runs nor can be queued.
        unsafe { core::ptr::drop_in_place(self.private_ptr()) };
    }
}

/// Writes a field of a device that is not registered.
macro_rules! set {
    ($self:ident, $field:ident = $value:expr) => {{
        let value = $value;
        // SAFETY: The device is valid. It is not registered, so nobody but its
        // owner, borrowed mutably, writes this field, and nobody reads it.
        unsafe { (*$self.0.as_ptr()).$field = value }
    }};
}

/// A device that is set up and not known to the system yet.
///
/// The setters may be called in any order. Dropping it drops the data and frees
/// the device. Context: process.
pub struct Unregistered<T: Operations>(Owned<T>);

impl<T: Operations> Unregistered<T> {
    /// Allocates a device with up to `tx_queues` and `rx_queues` queues, child
    /// of `parent` in sysfs, with the data that `init` makes inside.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: a number of queues is 0 or above `u16::MAX`.
    /// - `ENOMEM`: no memory for the device.
    /// - What `init` returns.
    pub fn alloc<I: PinInit<T, Error>>(
        parent: &device::Device,
        tx_queues: u32,
        rx_queues: u32,
        init: impl FnOnce(DeviceId) -> I,
    ) -> Result<Self> {
        // `netdev_priv()` is aligned to a cache line of at least 64 bytes. The
        // slab allocator aligns to the largest power of two that divides the
        // size, so the size is kept a multiple of 64, too.
        const ALIGN: usize = 64;
        const {
            assert!(align_of::<Private<T>>() <= ALIGN);
            assert!(offset_of!(bindings::net_device, priv_) % ALIGN == 0);
            assert!(size_of::<Private<T>>() < 1 << 20);
        };
        let size = size_of::<Private<T>>().next_multiple_of(ALIGN);

        let is_valid = |queues| (1..=u32::from(u16::MAX)).contains(&queues);
        if !is_valid(tx_queues) || !is_valid(rx_queues) {
            return Err(EINVAL);
        }
        // CAST: The size is below 1 MiB, as asserted above.
        // SAFETY: Has no preconditions but sensible numbers, checked above.
        let dev = unsafe { bindings::alloc_etherdev_mqs(size as c_int, tx_queues, rx_queues) };
        // INVARIANT: The device was just made, for us.
        let dev = Allocation(NonNull::new(dev).ok_or(ENOMEM)?);
        let raw = dev.0.as_ptr();

        let private = try_pin_init!(Private {
            // SAFETY:
            // - This initialises the private data of `dev`.
            // - `schedule` is reachable through `Device<T>` only.
            // - `Owned::drop` calls `disable` first.
            reset <- unsafe { Reset::new::<T>(dev.0) },
            sizes: Sizes {
                statistics: AtomicUsize::new(0),
                rxfh_indir: AtomicUsize::new(0),
                rxfh_key: AtomicUsize::new(0),
            },
            data <- init(DeviceId(dev.0)),
        }? Error);
        // SAFETY:
        // - The memory has the size and the alignment, as shown above, and is
        //   ours alone.
        // - It does not move; on error nothing in it is used or dropped.
        unsafe { private.__init(Device::<T>::private_of(raw))? };

        // SAFETY: The device is ours alone; so are its fields.
        unsafe {
            (*raw).dev.parent = core::ptr::from_ref(parent).cast_mut().cast();
            (*raw).netdev_ops = device_operations::<T>();
            (*raw).stat_ops = statistics_operations::<T>();
            (*raw).ethtool_ops = ethtool::operations::<T>();
            (*raw).request_ops_lock = true;
        }
        // SAFETY: The device is ours alone, and has its `napi_config`s.
        unsafe { bindings::netif_set_affinity_auto(raw) };

        // INVARIANT: The device is valid and holds an initialised `Private<T>`
        // that nobody moves; it is not registered.
        Ok(Self(Owned {
            dev,
            _parent: parent.into(),
            _data: PhantomData,
        }))
    }

    /// Sets the permanent address. Without one the device has all zeros, and
    /// does not open.
    pub fn set_mac_address(&mut self, address: MacAddress) {
        // SAFETY: The device is not registered; the address is six bytes long.
        unsafe {
            bindings::rc_helper_eth_hw_addr_set(self.0.as_ptr(), address.as_bytes().as_ptr())
        };
    }

    /// Sets a random address, for hardware that has none.
    pub fn set_random_mac_address(&mut self) {
        // SAFETY: The device is not registered.
        unsafe { bindings::rc_helper_eth_hw_addr_random(self.0.as_ptr()) };
    }

    /// Sets the MTU, and the bounds between which users may set it, in bytes.
    pub fn set_mtu(&mut self, mtu: u32, bounds: core::ops::RangeInclusive<u32>) {
        set!(self, mtu = mtu);
        set!(self, min_mtu = *bounds.start());
        set!(self, max_mtu = *bounds.end());
    }

    /// Sets the features that are on.
    pub fn set_features(&mut self, features: Features) {
        set!(self, features = features.into_raw());
    }

    /// Sets the features that users may switch.
    pub fn set_hw_features(&mut self, features: Features) {
        set!(self, hw_features = features.into_raw());
    }

    /// Sets the features that VLAN devices on this one may use.
    pub fn set_vlan_features(&mut self, features: Features) {
        set!(self, vlan_features = features.into_raw());
    }

    /// Sets the features that the device can do for encapsulated packets.
    pub fn set_hw_enc_features(&mut self, features: Features) {
        set!(self, hw_enc_features = features.into_raw());
    }

    /// Says that programs run on received packets, may redirect them, and that frames that others redirect
    /// are sent; for frames of one piece.
    pub fn set_xdp(&mut self) {
        let features = bindings::netdev_xdp_act_NETDEV_XDP_ACT_BASIC
            | bindings::netdev_xdp_act_NETDEV_XDP_ACT_REDIRECT
            | bindings::netdev_xdp_act_NETDEV_XDP_ACT_NDO_XMIT;
        // SAFETY: The device is not registered, and nobody holds its lock.
        unsafe { bindings::xdp_set_features_flag(self.0.as_ptr(), features) };
    }

    /// Sets the limits of one packet to segment: its size in bytes, and the
    /// number of segments.
    pub fn set_tso_limits(&mut self, size: u32, segments: u16) {
        let dev = self.0.as_ptr();
        // SAFETY: The device is not registered.
        unsafe { bindings::netif_set_tso_max_size(dev, size) };
        // SAFETY: As above.
        unsafe { bindings::netif_set_tso_max_segs(dev, segments.into()) };
    }

    /// Sets how long a TX queue may be stopped before
    /// [`Operations::tx_timeout`] is called; the default is 5 s.
    pub fn set_watchdog(&mut self, timeout: kernel::time::Delta) {
        let jiffies = kernel::time::msecs_to_jiffies(
            // A watchdog of 49 days and one of more are the same.
            timeout.as_millis().try_into().unwrap_or(u32::MAX),
        );
        set!(
            self,
            watchdog_timeo = jiffies.try_into().unwrap_or(c_int::MAX)
        );
    }

    /// Sets the number of the port among those of one function (`dev_port`).
    pub fn set_port(&mut self, port: u16) {
        set!(self, dev_port = port);
    }

    /// Sets the numbers of TX and RX queues that the stack uses.
    ///
    /// # Errors
    ///
    /// `EINVAL`: a number is 0 or above what the device was allocated with.
    pub fn set_real_queues(&mut self, tx: u32, rx: u32) -> Result {
        // SAFETY: The device is not registered, so no lock is needed.
        to_result(unsafe { bindings::netif_set_real_num_queues(self.0.as_ptr(), tx, rx) })
    }

    /// Makes the device known to the system; callbacks may run before this
    /// returns. Sleeps; the caller does not hold rtnl.
    ///
    /// # Errors
    ///
    /// What the core or a notifier returns. The device is gone then.
    pub fn register(self) -> Result<Registered<T>> {
        let dev = self.0;
        // CAST: usize has at least 32 bits.
        for (size, value) in [
            (&dev.sizes().statistics, T::statistics_count(&dev)),
            (&dev.sizes().rxfh_indir, T::rxfh_indir_size(&dev)),
            (&dev.sizes().rxfh_key, T::rxfh_key_size(&dev)),
        ] {
            size.store(value as usize, Ordering::Relaxed);
        }
        // SAFETY: The device is initialised and not registered. If this fails
        // it is, again, not registered, and no callback runs any more.
        to_result(unsafe { bindings::register_netdev(dev.as_ptr()) })?;
        // INVARIANT: The device is registered.
        Ok(Registered(dev))
    }
}

impl<T: Operations> Deref for Unregistered<T> {
    type Target = Device<T>;

    fn deref(&self) -> &Device<T> {
        &self.0
    }
}

/// A device known to the system.
///
/// Dropping it closes and unregisters the device, waits for all callbacks and
/// references, drops the data, and frees the device. Context of that: process,
/// rtnl and the instance lock not held. It must be dropped, not leaked, before
/// the driver's module goes.
///
/// # Invariants
///
/// The device is registered.
pub struct Registered<T: Operations>(Owned<T>);

impl<T: Operations> Drop for Registered<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the device is registered, by this.
        unsafe { bindings::unregister_netdev(self.0.as_ptr()) };
    }
}

impl<T: Operations> Deref for Registered<T> {
    type Target = Device<T>;

    fn deref(&self) -> &Device<T> {
        &self.0
    }
}
