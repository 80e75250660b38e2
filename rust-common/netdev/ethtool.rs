// SPDX-License-Identifier: GPL-2.0

//! What users see and set with ethtool.
//!
//! The core calls the operations under the instance lock. Those that change
//! rings or channels run under rtnl besides (`op_needs_rtnl`), because they end
//! in functions that need it.
//!
//! C header: [`include/linux/ethtool.h`](srctree/include/linux/ethtool.h).

mod callbacks;
mod ext_ack;
mod settings;
mod strings;

pub(crate) use self::callbacks::operations;
pub use self::{
    ext_ack::ExtAck,
    settings::{
        Channels,
        Coalesce,
        CoalesceKinds,
        HashFunction,
        LinkSettings,
        RingKinds,
        Ringparam,
        RxfhChange,
        Tunable, //
    },
    strings::{
        StringsWriter,
        Text, //
    },
};

use crate::{
    device::Device,
    lock::{
        OpsLock,
        RtnlLock, //
    },
};
use kernel::{
    build_error,
    error::VTABLE_DEFAULT_ERROR,
    prelude::*, //
};

/// The ethtool operations of a network device, implemented for the driver's
/// data in it.
///
/// Always there, and not to be implemented: driver name, bus address and kernel
/// version (`-i`), link state, number of RX rings, software timestamps (`-T`).
///
/// C: `struct ethtool_ops`.
#[vtable]
pub trait Operations: Sized + 'static {
    /// What else than counts of descriptors `-g` shows and `-G` takes.
    const RING_KINDS: RingKinds = RingKinds::NONE;

    /// What `-c` shows and `-C` takes.
    const COALESCE_KINDS: CoalesceKinds = CoalesceKinds::NONE;

    /// Writes the version of the device's firmware (`-i`).
    fn firmware_version(_dev: &Device<Self>, _out: &mut Text<'_>, _lock: &OpsLock<'_>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Number of statistics (`-S`). Asked for once, before registration: it
    /// follows from what the device can have, not from what it has now.
    fn statistics_count(_dev: &Device<Self>) -> u32 {
        0
    }

    /// Writes the names of the statistics.
    fn statistics_names(_dev: &Device<Self>, _names: &mut StringsWriter<'_>) {}

    /// Writes the statistics, in the order of their names.
    fn statistics(_dev: &Device<Self>, _values: &mut [u64], _lock: &OpsLock<'_>) {}

    /// Returns the sizes of the rings (`-g`).
    fn ringparam(_dev: &Device<Self>, _lock: &OpsLock<'_>) -> Ringparam {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Sets the sizes of the rings (`-G`). The core has checked the counts
    /// against the maxima, and the kinds.
    ///
    /// # Errors
    ///
    /// Any, explained in `extack`; the old sizes hold then.
    fn set_ringparam(
        _dev: &Device<Self>,
        _wanted: &Ringparam,
        _extack: &mut ExtAck<'_>,
        _lock: &RtnlLock<'_>,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Returns the numbers of channels (`-l`).
    fn channels(_dev: &Device<Self>, _lock: &OpsLock<'_>) -> Channels {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Sets the numbers of channels (`-L`). The core has checked them against
    /// the maxima, and that there is at least one for RX and one for TX.
    ///
    /// # Errors
    ///
    /// Any; the old numbers hold then.
    fn set_channels(_dev: &Device<Self>, _wanted: &Channels, _lock: &RtnlLock<'_>) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Number of entries in the RX indirection table; 0 for none. Asked for
    /// once, before registration.
    fn rxfh_indir_size(_dev: &Device<Self>) -> u32 {
        0
    }

    /// Number of bytes in the RX hash key; 0 for none. Asked for once, before
    /// registration.
    fn rxfh_key_size(_dev: &Device<Self>) -> u32 {
        0
    }

    /// Writes the RX indirection table and hash key where asked for (`-x`), and
    /// returns the hash function. The slices are of the sizes given above.
    ///
    /// # Errors
    ///
    /// Any.
    fn rxfh(
        _dev: &Device<Self>,
        _indir: Option<&mut [u32]>,
        _key: Option<&mut [u8]>,
        _lock: &OpsLock<'_>,
    ) -> Result<HashFunction> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Changes how RX queues are chosen (`-X`). The core has checked the entries
    /// against the number of RX rings.
    ///
    /// # Errors
    ///
    /// Any, explained in `extack`; the old choice holds then.
    fn set_rxfh(
        _dev: &Device<Self>,
        _change: &RxfhChange<'_>,
        _extack: &mut ExtAck<'_>,
        _lock: &OpsLock<'_>,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Returns speed and duplex of the link (no option).
    ///
    /// # Errors
    ///
    /// Any.
    fn link_settings(_dev: &Device<Self>, _lock: &OpsLock<'_>) -> Result<LinkSettings> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Returns how interrupts are delayed (`-c`).
    ///
    /// # Errors
    ///
    /// Any.
    fn coalesce(_dev: &Device<Self>, _lock: &OpsLock<'_>) -> Result<Coalesce> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Sets how interrupts are delayed (`-C`).
    ///
    /// # Errors
    ///
    /// Any, explained in `extack`; the old settings hold then.
    fn set_coalesce(
        _dev: &Device<Self>,
        _wanted: &Coalesce,
        _extack: &mut ExtAck<'_>,
        _lock: &OpsLock<'_>,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Returns a tunable.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP`: the device does not have it.
    fn tunable(_dev: &Device<Self>, _tunable: Tunable, _lock: &OpsLock<'_>) -> Result<u32> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Sets a tunable. The core does not take rtnl for these.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP`: the device does not have it. Any other; the old value holds
    /// then, and the log has the reason, as there is no extended ACK.
    fn set_tunable(
        _dev: &Device<Self>,
        _tunable: Tunable,
        _value: u32,
        _lock: &OpsLock<'_>,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}
