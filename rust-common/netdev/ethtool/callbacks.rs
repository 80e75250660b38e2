// SPDX-License-Identifier: GPL-2.0

//! The C side of [`Operations`].

use super::{
    Channels,
    Coalesce,
    ExtAck,
    HashFunction,
    Operations,
    Ringparam,
    RxfhChange,
    StringsWriter,
    Text,
    Tunable, //
};
use crate::{
    bindings,
    device::{
        Device,
        Sizes, //
    },
    lock::{
        OpsLock,
        RtnlLock, //
    },
};
use core::{
    marker::PhantomData,
    slice,
    sync::atomic::{
        AtomicUsize,
        Ordering, //
    },
};
use kernel::{
    bindings::net_device,
    error::from_result,
    prelude::*, //
};

/// Returns the table of ethtool operations for `T`.
pub(crate) const fn operations<T: Operations>() -> &'static bindings::ethtool_ops {
    &Callbacks::<T>::ETHTOOL
}

/// `Some` of a callback, if the operation by that name is there.
macro_rules! callback {
    ($has:ident, $f:ident) => {
        if T::$has {
            Some(Self::$f)
        } else {
            None
        }
    };
}

/// The callbacks for `T`.
///
/// # Safety
///
/// The functions are called by the core only, as members of the table of a
/// `Device<T>`: with that device, its instance lock held, for those in
/// `op_needs_rtnl` rtnl, too, and with the other pointers valid as the core's
/// documentation of the members says (include/linux/ethtool.h).
struct Callbacks<T>(PhantomData<T>);

impl<T: Operations> Callbacks<T> {
    const ETHTOOL: bindings::ethtool_ops = bindings::ethtool_ops {
        supported_ring_params: T::RING_KINDS.0,
        supported_coalesce_params: T::COALESCE_KINDS.0,
        op_needs_rtnl: bindings::ETHTOOL_OP_NEEDS_RTNL_SRINGPARAM
            | bindings::ETHTOOL_OP_NEEDS_RTNL_SCHANNELS,
        get_drvinfo: callback!(HAS_FIRMWARE_VERSION, drvinfo),
        get_link: Some(kernel::bindings::ethtool_op_get_link),
        get_ts_info: Some(kernel::bindings::ethtool_op_get_ts_info),
        get_sset_count: Some(Self::sset_count),
        get_strings: Some(Self::strings),
        get_ethtool_stats: Some(Self::statistics),
        get_ringparam: callback!(HAS_RINGPARAM, ringparam),
        set_ringparam: callback!(HAS_SET_RINGPARAM, set_ringparam),
        get_channels: callback!(HAS_CHANNELS, channels),
        set_channels: callback!(HAS_SET_CHANNELS, set_channels),
        get_rx_ring_count: Some(Self::rx_ring_count),
        get_rxfh_indir_size: callback!(HAS_RXFH_INDIR_SIZE, rxfh_indir_size),
        get_rxfh_key_size: callback!(HAS_RXFH_KEY_SIZE, rxfh_key_size),
        get_rxfh: callback!(HAS_RXFH, rxfh),
        set_rxfh: callback!(HAS_SET_RXFH, set_rxfh),
        get_link_ksettings: callback!(HAS_LINK_SETTINGS, link_settings),
        get_coalesce: callback!(HAS_COALESCE, coalesce),
        set_coalesce: callback!(HAS_SET_COALESCE, set_coalesce),
        get_tunable: callback!(HAS_TUNABLE, tunable),
        set_tunable: callback!(HAS_SET_TUNABLE, set_tunable),
        ..pin_init::zeroed()
    };

    /// Calls `f` with the device and the proof of its instance lock.
    ///
    /// # Safety
    ///
    /// `dev` is a `Device<T>`; its instance lock is held.
    unsafe fn with_lock<R>(
        dev: *mut net_device,
        f: impl FnOnce(&Device<T>, &OpsLock<'_>) -> R,
    ) -> R {
        // SAFETY: The caller promises that `dev` is a `Device<T>`.
        let device = unsafe { Device::<T>::from_raw(dev.cast()) };
        // SAFETY: The caller promises that the lock is held; the proof is lent
        // during the call only.
        f(device, &unsafe { OpsLock::assume(device.as_non_null()) })
    }

    /// Calls `f` with the device and the proof of both locks.
    ///
    /// # Safety
    ///
    /// `dev` is a `Device<T>`; rtnl and its instance lock are held.
    unsafe fn with_rtnl(
        dev: *mut net_device,
        f: impl FnOnce(&Device<T>, &RtnlLock<'_>) -> Result,
    ) -> c_int {
        // SAFETY: The caller promises that `dev` is a `Device<T>`.
        let device = unsafe { Device::<T>::from_raw(dev.cast()) };
        // SAFETY: The caller promises that the locks are held; the proof is lent
        // during the call only.
        let lock = unsafe { RtnlLock::assume(device.as_non_null()) };
        from_result(|| f(device, &lock).map(|()| 0))
    }

    /// C: `get_drvinfo`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn drvinfo(dev: *mut net_device, info: *mut bindings::ethtool_drvinfo) {
        // SAFETY: The core lends the structure during the call.
        let text = &mut Text::new(unsafe { &mut (*info).fw_version });
        // SAFETY: By the contract of `Callbacks`.
        unsafe { Self::with_lock(dev, |dev, lock| T::firmware_version(dev, text, lock)) };
    }

    /// C: `get_sset_count`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn sset_count(dev: *mut net_device, set: c_int) -> c_int {
        // CAST: The sets count up from 0; the number of statistics is small.
        match set as u32 {
            bindings::ethtool_stringset_ETH_SS_STATS => {
                // SAFETY: By the contract of `Callbacks`.
                let sizes = unsafe { Device::<T>::from_raw(dev.cast()) }.sizes();
                sizes.statistics.load(Ordering::Relaxed) as c_int
            }
            _ => EOPNOTSUPP.to_errno(),
        }
    }

    /// C: `get_strings`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn strings(dev: *mut net_device, set: u32, data: *mut u8) {
        if set != bindings::ethtool_stringset_ETH_SS_STATS {
            return;
        }
        // SAFETY: By the contract of `Callbacks`.
        let device = unsafe { Device::<T>::from_raw(dev.cast()) };
        // SAFETY: The core lends room for as many strings as `sset_count` says,
        // which never changes, or none if that is 0.
        let names = unsafe { Self::slice_mut(data.cast(), &device.sizes().statistics) };
        if let Some(names) = names {
            T::statistics_names(device, &mut StringsWriter::new(names));
        }
    }

    /// C: `get_ethtool_stats`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn statistics(
        dev: *mut net_device,
        _stats: *mut bindings::ethtool_stats,
        data: *mut u64,
    ) {
        let write = |dev: &Device<T>, lock: &OpsLock<'_>| {
            // SAFETY: The core lends room for as many values as `sset_count`
            // says, which never changes, zeroed, or none if that is 0.
            if let Some(values) = unsafe { Self::slice_mut(data, &dev.sizes().statistics) } {
                T::statistics(dev, values, lock);
            }
        };
        // SAFETY: By the contract of `Callbacks`.
        unsafe { Self::with_lock(dev, write) };
    }

    /// C: `get_ringparam`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn ringparam(
        dev: *mut net_device,
        ring: *mut bindings::ethtool_ringparam,
        kernel_ring: *mut bindings::kernel_ethtool_ringparam,
        _extack: *mut bindings::netlink_ext_ack,
    ) {
        // SAFETY: By the contract of `Callbacks`.
        let param = unsafe { Self::with_lock(dev, |dev, lock| T::ringparam(dev, lock)) };
        // SAFETY: The core lends both structures during the call.
        unsafe { param.fill(&mut *ring, &mut *kernel_ring) };
    }

    /// C: `set_ringparam`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn set_ringparam(
        dev: *mut net_device,
        ring: *mut bindings::ethtool_ringparam,
        kernel_ring: *mut bindings::kernel_ethtool_ringparam,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: The core lends both structures during the call.
        let wanted = unsafe { Ringparam::from_raw(&*ring, &*kernel_ring) };
        // SAFETY: The core lends the extended ACK, if any, during the call.
        let extack = &mut unsafe { ExtAck::from_raw(extack) };
        // SAFETY: By the contract of `Callbacks`; in `op_needs_rtnl`.
        unsafe {
            Self::with_rtnl(dev, |dev, lock| {
                T::set_ringparam(dev, &wanted, extack, lock)
            })
        }
    }

    /// C: `get_channels`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn channels(dev: *mut net_device, channels: *mut bindings::ethtool_channels) {
        // SAFETY: By the contract of `Callbacks`.
        let numbers = unsafe { Self::with_lock(dev, |dev, lock| T::channels(dev, lock)) };
        // SAFETY: The core lends the structure during the call.
        numbers.fill(unsafe { &mut *channels });
    }

    /// C: `set_channels`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn set_channels(
        dev: *mut net_device,
        channels: *mut bindings::ethtool_channels,
    ) -> c_int {
        // SAFETY: The core lends the structure during the call.
        let wanted = Channels::from_raw(unsafe { &*channels });
        // SAFETY: By the contract of `Callbacks`; in `op_needs_rtnl`.
        unsafe { Self::with_rtnl(dev, |dev, lock| T::set_channels(dev, &wanted, lock)) }
    }

    /// C: `get_rx_ring_count`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn rx_ring_count(dev: *mut net_device) -> u32 {
        // SAFETY: By the contract of `Callbacks`.
        unsafe { Self::with_lock(dev, |_, lock| lock.real_rx_queues()) }
    }

    /// C: `get_rxfh_indir_size`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn rxfh_indir_size(dev: *mut net_device) -> u32 {
        // SAFETY: By the contract of `Callbacks`.
        let sizes = unsafe { Device::<T>::from_raw(dev.cast()) }.sizes();
        // CAST: The driver gave a `u32`.
        sizes.rxfh_indir.load(Ordering::Relaxed) as u32
    }

    /// C: `get_rxfh_key_size`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn rxfh_key_size(dev: *mut net_device) -> u32 {
        // SAFETY: By the contract of `Callbacks`.
        let sizes = unsafe { Device::<T>::from_raw(dev.cast()) }.sizes();
        // CAST: The driver gave a `u32`.
        sizes.rxfh_key.load(Ordering::Relaxed) as u32
    }

    /// Borrows the table and the key of `param`, where there are.
    ///
    /// The core does not state the sizes always (`ethtool_check_max_channel()`
    /// does not), but asks the device for them always.
    ///
    /// # Safety
    ///
    /// `param` is what the core calls `get_rxfh` or `set_rxfh` of `dev` with.
    unsafe fn table_and_key<'a>(
        dev: &Device<T>,
        param: &'a bindings::ethtool_rxfh_param,
    ) -> (Option<&'a mut [u32]>, Option<&'a mut [u8]>) {
        let Sizes {
            rxfh_indir,
            rxfh_key,
            ..
        } = dev.sizes();
        // SAFETY:
        // - The core lends a table and a key of the sizes that it asked for, or
        //   null for what nobody wants. They do not overlap.
        // - Nobody else uses them during the call, for which `param` is borrowed.
        unsafe {
            (
                Self::slice_mut(param.indir, rxfh_indir),
                Self::slice_mut(param.key, rxfh_key),
            )
        }
    }

    /// Makes a slice; `None` of a null pointer, or without elements.
    ///
    /// # Safety
    ///
    /// `data` is null, or valid for reads and writes of `len` elements, and used
    /// by nobody else, while the slice lives.
    unsafe fn slice_mut<'a, E>(data: *mut E, len: &AtomicUsize) -> Option<&'a mut [E]> {
        let len = len.load(Ordering::Relaxed);
        if data.is_null() || len == 0 {
            return None;
        }
        // SAFETY: The caller promises that `data` is valid.
        Some(unsafe { slice::from_raw_parts_mut(data, len) })
    }

    /// C: `get_rxfh`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn rxfh(
        dev: *mut net_device,
        param: *mut bindings::ethtool_rxfh_param,
    ) -> c_int {
        // SAFETY: The core lends the structure during the call.
        let param = unsafe { &mut *param };
        let get = |dev: &Device<T>, lock: &OpsLock<'_>| {
            // SAFETY: The core called with `param`.
            let (indir, key) = unsafe { Self::table_and_key(dev, param) };
            T::rxfh(dev, indir, key, lock)
        };
        // SAFETY: By the contract of `Callbacks`.
        let function = unsafe { Self::with_lock(dev, get) };
        from_result(|| {
            param.hfunc = function?.into_raw();
            Ok(0)
        })
    }

    /// C: `set_rxfh`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn set_rxfh(
        dev: *mut net_device,
        param: *mut bindings::ethtool_rxfh_param,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: The core lends the structure during the call.
        let param = unsafe { &*param };
        // SAFETY: The core lends the extended ACK, if any, during the call.
        let extack = &mut unsafe { ExtAck::from_raw(extack) };
        let mut set = |dev: &Device<T>, lock: &OpsLock<'_>| {
            let function = match u32::from(param.hfunc) {
                bindings::ETH_RSS_HASH_NO_CHANGE => None,
                _ => Some(HashFunction::from_raw(param.hfunc).ok_or(EOPNOTSUPP)?),
            };
            // SAFETY: The core called with `param`.
            let (indir, key) = unsafe { Self::table_and_key(dev, param) };
            let change = RxfhChange {
                function,
                indir: indir.as_deref(),
                key: key.as_deref(),
            };
            T::set_rxfh(dev, &change, extack, lock).map(|()| 0)
        };
        // SAFETY: By the contract of `Callbacks`.
        unsafe { Self::with_lock(dev, |dev, lock| from_result(|| set(dev, lock))) }
    }

    /// C: `get_link_ksettings`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn link_settings(
        dev: *mut net_device,
        settings: *mut bindings::ethtool_link_ksettings,
    ) -> c_int {
        // SAFETY: By the contract of `Callbacks`.
        let state = unsafe { Self::with_lock(dev, |dev, lock| T::link_settings(dev, lock)) };
        from_result(|| {
            // SAFETY: The core lends the structure, zeroed, during the call.
            state?.fill(unsafe { &mut (*settings).base });
            Ok(0)
        })
    }

    /// C: `get_coalesce`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn coalesce(
        dev: *mut net_device,
        coalesce: *mut bindings::ethtool_coalesce,
        _kernel_coalesce: *mut bindings::kernel_ethtool_coalesce,
        _extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: By the contract of `Callbacks`.
        let settings = unsafe { Self::with_lock(dev, |dev, lock| T::coalesce(dev, lock)) };
        from_result(|| {
            // SAFETY: The core lends the structure during the call.
            settings?.fill(unsafe { &mut *coalesce });
            Ok(0)
        })
    }

    /// C: `set_coalesce`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn set_coalesce(
        dev: *mut net_device,
        coalesce: *mut bindings::ethtool_coalesce,
        _kernel_coalesce: *mut bindings::kernel_ethtool_coalesce,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: The core lends the structure during the call.
        let wanted = Coalesce::from_raw(unsafe { &*coalesce });
        // SAFETY: The core lends the extended ACK, if any, during the call.
        let extack = &mut unsafe { ExtAck::from_raw(extack) };
        let mut set = |dev: &Device<T>, lock: &OpsLock<'_>| {
            T::set_coalesce(dev, &wanted, extack, lock).map(|()| 0)
        };
        // SAFETY: By the contract of `Callbacks`.
        unsafe { Self::with_lock(dev, |dev, lock| from_result(|| set(dev, lock))) }
    }

    /// C: `get_tunable`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn tunable(
        dev: *mut net_device,
        tunable: *const bindings::ethtool_tunable,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: The core lends the structure during the call.
        let id = unsafe { (*tunable).id };
        let get = |dev: &Device<T>, lock: &OpsLock<'_>| {
            let value = T::tunable(dev, Tunable::from_raw(id).ok_or(EOPNOTSUPP)?, lock)?;
            // SAFETY: The core lends room for a `u32`, for all that `Tunable`
            // has.
            unsafe { data.cast::<u32>().write(value) };
            Ok(0)
        };
        // SAFETY: By the contract of `Callbacks`.
        unsafe { Self::with_lock(dev, |dev, lock| from_result(|| get(dev, lock))) }
    }

    /// C: `set_tunable`.
    ///
    /// # Safety
    ///
    /// That of all [`Callbacks`].
    unsafe extern "C" fn set_tunable(
        dev: *mut net_device,
        tunable: *const bindings::ethtool_tunable,
        data: *const c_void,
    ) -> c_int {
        // SAFETY: The core lends the structure during the call.
        let id = unsafe { (*tunable).id };
        let set = |dev: &Device<T>, lock: &OpsLock<'_>| {
            let tunable = Tunable::from_raw(id).ok_or(EOPNOTSUPP)?;
            // SAFETY: The core lends a `u32`, for all that `Tunable` has.
            let value = unsafe { data.cast::<u32>().read() };
            T::set_tunable(dev, tunable, value, lock).map(|()| 0)
        };
        // SAFETY: By the contract of `Callbacks`.
        unsafe { Self::with_lock(dev, |dev, lock| from_result(|| set(dev, lock))) }
    }
}
