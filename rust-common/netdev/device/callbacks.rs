// SPDX-License-Identifier: GPL-2.0

//! The C side of [`Operations`].

use super::{
    Device,
    Operations, //
};
use crate::{
    bindings,
    ethtool::ExtAck,
    features::Features,
    lock::{
        OpsLock,
        RtnlLock, //
    },
    mac::MacAddress,
    skb::{
        Reason,
        TxSkb, //
    },
    tx_lock::TxLocked,
    xdp::{
        XdpBurst,
        XdpProg, //
    },
};
use core::mem::{
    ManuallyDrop,
    MaybeUninit, //
};
use kernel::{
    error::from_result,
    prelude::*, //
};

/// Returns the table of network device operations for `T`.
pub(super) const fn device_operations<T: Operations>() -> &'static bindings::net_device_ops {
    &Callbacks::<T>::DEVICE
}

/// Returns the table of queue statistics operations for `T`.
pub(super) const fn statistics_operations<T: Operations>() -> &'static bindings::netdev_stat_ops {
    &Callbacks::<T>::STATISTICS
}

/// The callbacks for `T`.
///
/// # Safety
///
/// The functions are called by the core only, as members of the tables of a
/// `Device<T>`: with that device, with the locks that
/// Documentation/networking/netdevices.rst states for "ops locked" devices, and
/// with the other pointers valid as the core's documentation of the members
/// says (include/linux/netdevice.h, include/net/netdev_queues.h).
struct Callbacks<T>(core::marker::PhantomData<T>);

impl<T: Operations> Callbacks<T> {
    const DEVICE: bindings::net_device_ops = bindings::net_device_ops {
        ndo_open: Some(Self::open),
        ndo_stop: Some(Self::stop),
        ndo_start_xmit: Some(Self::xmit),
        ndo_get_stats64: Some(Self::stats64),
        ndo_tx_timeout: Some(Self::tx_timeout),
        ndo_validate_addr: Some(bindings::eth_validate_addr),
        ndo_change_mtu: if T::HAS_CHANGE_MTU {
            Some(Self::change_mtu)
        } else {
            None
        },
        ndo_set_mac_address: if T::HAS_SET_MAC_ADDRESS {
            Some(Self::set_mac_address)
        } else {
            None
        },
        ndo_fix_features: if T::HAS_FIX_FEATURES {
            Some(Self::fix_features)
        } else {
            None
        },
        ndo_set_features: if T::HAS_SET_FEATURES {
            Some(Self::set_features)
        } else {
            None
        },
        ndo_features_check: if T::HAS_FEATURES_CHECK {
            Some(Self::features_check)
        } else {
            None
        },
        ndo_bpf: if T::HAS_SET_XDP {
            Some(Self::bpf)
        } else {
            None
        },
        ndo_xdp_xmit: if T::HAS_XDP_XMIT {
            Some(Self::xdp_xmit)
        } else {
            None
        },
        ..pin_init::zeroed()
    };

    const STATISTICS: bindings::netdev_stat_ops = bindings::netdev_stat_ops {
        get_queue_stats_rx: Some(Self::rx_queue_stats),
        get_queue_stats_tx: Some(Self::tx_queue_stats),
        get_base_stats: Some(Self::base_stats),
    };

    /// Calls `f` with the device and the proof of both locks.
    ///
    /// # Safety
    ///
    /// `dev` is a `Device<T>`; rtnl and its instance lock are held.
    unsafe fn with_rtnl<R>(
        dev: *mut bindings::net_device,
        f: impl FnOnce(&Device<T>, &RtnlLock<'_>) -> R,
    ) -> R {
        // SAFETY: The caller promises that `dev` is a `Device<T>`.
        let device = unsafe { Device::from_raw(dev) };
        // SAFETY: The caller promises that the locks are held; the proof is lent
        // during the call only.
        f(device, &unsafe { RtnlLock::assume(device.as_non_null()) })
    }

    /// Calls `f` with the device and the proof of the instance lock.
    ///
    /// # Safety
    ///
    /// `dev` is a `Device<T>`; its instance lock is held.
    unsafe fn with_lock<R>(
        dev: *mut bindings::net_device,
        f: impl FnOnce(&Device<T>, &OpsLock<'_>) -> R,
    ) -> R {
        // SAFETY: The caller promises that `dev` is a `Device<T>`.
        let device = unsafe { Device::from_raw(dev) };
        // SAFETY: The caller promises that the lock is held; the proof is lent
        // during the call only.
        f(device, &unsafe { OpsLock::assume(device.as_non_null()) })
    }

    /// C: `ndo_open`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn open(dev: *mut bindings::net_device) -> c_int {
        // SAFETY: The core calls this on a `Device<T>`, with both locks held.
        unsafe {
            Self::with_rtnl(dev, |dev, lock| {
                from_result(|| T::open(dev, lock).map(|()| 0))
            })
        }
    }

    /// C: `ndo_stop`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn stop(dev: *mut bindings::net_device) -> c_int {
        // SAFETY: The core calls this on a `Device<T>`, with both locks held.
        unsafe { Self::with_rtnl(dev, |dev, lock| T::stop(dev, lock)) };
        0
    }

    /// C: `ndo_start_xmit`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn xmit(
        skb: *mut bindings::sk_buff,
        dev: *mut bindings::net_device,
    ) -> bindings::netdev_tx_t {
        // SAFETY: The core calls this on a `Device<T>`.
        let device = unsafe { Device::<T>::from_raw(dev) };
        // SAFETY: The core gives the skb away: NETDEV_TX_OK is returned always.
        let skb = unsafe { TxSkb::from_raw(skb) };
        let mut meta = MaybeUninit::uninit();
        // SAFETY: This is within xmit of the device, which is valid.
        let Some(meta) = (unsafe { skb.describe(dev, &mut meta) }) else {
            skb.drop_reason(Reason::Unsupported);
            return bindings::netdev_tx_NETDEV_TX_OK;
        };
        // SAFETY:
        // - This CPU holds the xmit lock of the queue, as just looked up, until the
        //   core takes it back behind this call: `lltx` is never set.
        // - This is the only token for it; it is gone when this returns.
        let mut lock = unsafe { TxLocked::assume(dev, meta.queue()) };
        T::xmit(device, skb, meta, &mut lock);
        bindings::netdev_tx_NETDEV_TX_OK
    }

    /// C: `ndo_get_stats64`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn stats64(
        dev: *mut bindings::net_device,
        stats: *mut bindings::rtnl_link_stats64,
    ) {
        // SAFETY: The core calls this on a `Device<T>`.
        let stats64 = T::stats64(unsafe { Device::from_raw(dev) });
        // SAFETY: The core lends a zeroed structure during the call.
        stats64.fill(unsafe { &mut *stats });
    }

    /// C: `ndo_tx_timeout`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn tx_timeout(dev: *mut bindings::net_device, queue: c_uint) {
        // SAFETY: The core calls this on a `Device<T>`.
        T::tx_timeout(unsafe { Device::from_raw(dev) }, queue);
    }

    /// C: `ndo_change_mtu`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn change_mtu(dev: *mut bindings::net_device, mtu: c_int) -> c_int {
        let change = |device: &Device<T>, lock: &RtnlLock<'_>| {
            let mtu = u32::try_from(mtu).map_err(|_| EINVAL)?;
            T::change_mtu(device, mtu, lock)?;
            // SAFETY: The device is valid. Writers are ordered by rtnl, which is
            // held; readers use READ_ONCE(), which a volatile write pairs with.
            unsafe { (&raw mut (*device.as_ptr()).mtu).write_volatile(mtu) };
            Ok(0)
        };
        // SAFETY: The core calls this on a `Device<T>`, with both locks held.
        unsafe { Self::with_rtnl(dev, |dev, lock| from_result(|| change(dev, lock))) }
    }

    /// C: `ndo_set_mac_address`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn set_mac_address(
        dev: *mut bindings::net_device,
        address: *mut c_void,
    ) -> c_int {
        // SAFETY: The core passes a `struct sockaddr` with the address behind the
        // 16-bit family, valid for reads during the call.
        let bytes = unsafe { address.byte_add(2).cast::<[u8; 6]>().read() };
        let set = |device: &Device<T>, lock: &RtnlLock<'_>| {
            T::set_mac_address(device, MacAddress::new(bytes).ok_or(EADDRNOTAVAIL)?, lock)?;
            // SAFETY: The device is valid and rtnl is held.
            unsafe { bindings::rc_helper_eth_hw_addr_set(device.as_ptr(), bytes.as_ptr()) };
            Ok(0)
        };
        // SAFETY: The core calls this on a `Device<T>`, with both locks held.
        unsafe { Self::with_rtnl(dev, |dev, lock| from_result(|| set(dev, lock))) }
    }

    /// C: `ndo_fix_features`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn fix_features(
        dev: *mut bindings::net_device,
        wanted: bindings::netdev_features_t,
    ) -> bindings::netdev_features_t {
        let fix = |device: &Device<T>, lock: &RtnlLock<'_>| {
            T::fix_features(device, Features::from_raw(wanted), lock).into_raw()
        };
        // SAFETY: The core calls this on a `Device<T>`, with both locks held.
        unsafe { Self::with_rtnl(dev, fix) }
    }

    /// C: `ndo_set_features`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn set_features(
        dev: *mut bindings::net_device,
        features: bindings::netdev_features_t,
    ) -> c_int {
        let set = |device: &Device<T>, lock: &RtnlLock<'_>| {
            T::set_features(device, Features::from_raw(features), lock).map(|()| 0)
        };
        // SAFETY: The core calls this on a `Device<T>`, with both locks held.
        unsafe { Self::with_rtnl(dev, |dev, lock| from_result(|| set(dev, lock))) }
    }

    /// C: `ndo_bpf`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn bpf(
        dev: *mut bindings::net_device,
        bpf: *mut bindings::netdev_bpf,
    ) -> c_int {
        // SAFETY: The core lends the structure during the call.
        let command = unsafe { (*bpf).command };
        if command != bindings::bpf_netdev_command_XDP_SETUP_PROG {
            return EOPNOTSUPP.to_errno();
        }
        // SAFETY: For this command this is the field of the union that is filled in.
        let setup = unsafe { &(*bpf).__bindgen_anon_1.__bindgen_anon_1 };
        let (program, extack) = (setup.prog, setup.extack);
        let set = |device: &Device<T>, lock: &RtnlLock<'_>| {
            // SAFETY: The core passes a valid program or null.
            let own = unsafe { XdpProg::get(program) };
            // SAFETY: The core lends the extended ACK, or null, during the call.
            let mut extack = unsafe { ExtAck::from_raw(extack) };
            T::set_xdp(device, own, &mut extack, lock)?;
            if !program.is_null() {
                // SAFETY: On success the core's count is the driver's, which has taken one of its own.
                unsafe { bindings::bpf_prog_put(program) };
            }
            Ok(0)
        };
        // SAFETY: The core calls this on a `Device<T>`, with both locks held.
        unsafe { Self::with_rtnl(dev, |dev, lock| from_result(|| set(dev, lock))) }
    }

    /// C: `ndo_xdp_xmit`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn xdp_xmit(
        dev: *mut bindings::net_device,
        n: c_int,
        frames: *mut *mut bindings::xdp_frame,
        flags: u32,
    ) -> c_int {
        if flags & !bindings::XDP_XMIT_FLAGS_MASK != 0 {
            return EINVAL.to_errno();
        }
        let Ok(len) = usize::try_from(n) else {
            return EINVAL.to_errno();
        };
        let flush = flags & bindings::XDP_XMIT_FLUSH != 0;
        // SAFETY: The core lends `n` frames, and gives up as many as the result says.
        let mut burst = unsafe { XdpBurst::new(frames, len, flush) };
        // SAFETY: The core calls this on a `Device<T>`.
        let sent = T::xdp_xmit(unsafe { Device::from_raw(dev) }, &mut burst);
        match sent {
            Err(e) if burst.taken() == 0 => e.to_errno(),
            // CAST: At most `n`.
            _ => burst.taken() as c_int,
        }
    }

    /// C: `ndo_features_check`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn features_check(
        skb: *mut bindings::sk_buff,
        dev: *mut bindings::net_device,
        features: bindings::netdev_features_t,
    ) -> bindings::netdev_features_t {
        // SAFETY: The core calls this on a `Device<T>`.
        let device = unsafe { Device::<T>::from_raw(dev) };
        // SAFETY: The core lends a valid skb; it is not dropped here, and a
        // shared reference only reads it.
        let skb = ManuallyDrop::new(unsafe { TxSkb::from_raw(skb) });
        T::features_check(device, &skb, Features::from_raw(features)).into_raw()
    }

    /// C: `get_queue_stats_rx`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn rx_queue_stats(
        dev: *mut bindings::net_device,
        queue: c_int,
        stats: *mut bindings::netdev_queue_stats_rx,
    ) {
        // CAST: The core counts queues up from 0.
        // SAFETY: The core calls this on a `Device<T>`, with its lock held.
        let counters =
            unsafe { Self::with_lock(dev, |dev, lock| T::rx_queue_stats(dev, queue as u32, lock)) };
        // SAFETY: The core lends the structure during the call.
        counters.fill(unsafe { &mut *stats });
    }

    /// C: `get_queue_stats_tx`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn tx_queue_stats(
        dev: *mut bindings::net_device,
        queue: c_int,
        stats: *mut bindings::netdev_queue_stats_tx,
    ) {
        // CAST: The core counts queues up from 0.
        // SAFETY: The core calls this on a `Device<T>`, with its lock held.
        let counters =
            unsafe { Self::with_lock(dev, |dev, lock| T::tx_queue_stats(dev, queue as u32, lock)) };
        // SAFETY: The core lends the structure during the call.
        counters.fill(unsafe { &mut *stats });
    }

    /// C: `get_base_stats`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn base_stats(
        dev: *mut bindings::net_device,
        rx: *mut bindings::netdev_queue_stats_rx,
        tx: *mut bindings::netdev_queue_stats_tx,
    ) {
        // SAFETY: The core calls this on a `Device<T>`, with its lock held.
        let (rx_counters, tx_counters) =
            unsafe { Self::with_lock(dev, |dev, lock| T::base_queue_stats(dev, lock)) };
        // SAFETY: The core lends both structures during the call.
        rx_counters.fill(unsafe { &mut *rx });
        // SAFETY: As above.
        tx_counters.fill(unsafe { &mut *tx });
    }
}
