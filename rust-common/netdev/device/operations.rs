// SPDX-License-Identifier: GPL-2.0

//! What a driver does for a network device.

use super::Device;
use crate::{
    ethtool,
    features::Features,
    lock::{
        OpsLock,
        RtnlLock, //
    },
    mac::MacAddress,
    skb::{
        TxMeta,
        TxSkb, //
    },
    stats::{
        LinkStats,
        RxQueueStats,
        TxQueueStats, //
    },
    tx_lock::TxLocked,
    xdp::{
        XdpBurst,
        XdpProg, //
    },
};
use kernel::{
    build_error,
    error::VTABLE_DEFAULT_ERROR,
    prelude::*,
    time::Delta, //
};

/// Callbacks of a network device, implemented for the driver's data in it.
///
/// The callbacks are given the device, which derefs to the data, and proofs of
/// the locks that the core holds around them. Those without a proof run in the
/// context that they state.
///
/// C: `struct net_device_ops`, `struct netdev_stat_ops`.
#[vtable]
pub trait Operations: ethtool::Operations + Send + Sync + Sized + 'static {
    /// Brings the device up. It may send and receive when this returns.
    ///
    /// # Errors
    ///
    /// Any; the device is then down, and all that was done is undone.
    fn open(dev: &Device<Self>, lock: &RtnlLock<'_>) -> Result;

    /// Brings the device down: no DMA, interrupt or NAPI poll when this returns,
    /// and no [`DeviceRef`](super::DeviceRef) left.
    fn stop(dev: &Device<Self>, lock: &RtnlLock<'_>);

    /// Sends `skb`, which `meta` describes, or drops it with a reason.
    ///
    /// Context: softirq, or process with softirqs off; interrupts may be off.
    fn xmit(dev: &Device<Self>, skb: TxSkb, meta: &mut TxMeta, lock: &mut TxLocked<'_>);

    /// Returns the counters of the device, over its whole life.
    ///
    /// Context: any, under RCU; parallel to everything else.
    fn stats64(dev: &Device<Self>) -> LinkStats;

    /// Prepares for packets of up to `mtu` bytes above Ethernet. [`Device::mtu`]
    /// follows when this returns `Ok`.
    ///
    /// # Errors
    ///
    /// Any; the old size holds then, as in [`open`](Self::open).
    fn change_mtu(_dev: &Device<Self>, _mtu: u32, _lock: &RtnlLock<'_>) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Sets the device's address. The stack follows when this returns `Ok`.
    ///
    /// # Errors
    ///
    /// Any; the old address holds then.
    fn set_mac_address(_dev: &Device<Self>, _address: MacAddress, _lock: &RtnlLock<'_>) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// A TX queue was stopped for longer than the watchdog allows.
    ///
    /// Context: softirq, all TX queues frozen.
    fn tx_timeout(dev: &Device<Self>, queue: u32) {
        crate::netdev_err_ratelimited!(dev, "TX queue {} is stuck, resetting\n", queue);
        dev.schedule_reset(Delta::ZERO);
    }

    /// Brings a device that misbehaved back to work, some time after
    /// [`Device::schedule_reset`]. It may be up or down.
    ///
    /// Context: process.
    fn reset(dev: &Device<Self>, lock: &RtnlLock<'_>);

    /// Removes features that do not go together. Keeps no state.
    fn fix_features(_dev: &Device<Self>, _wanted: Features, _lock: &RtnlLock<'_>) -> Features {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Makes the device use `features`. [`Device::features`] follows when this
    /// returns `Ok`. Also called while the device is being registered.
    ///
    /// # Errors
    ///
    /// Late ones of the device only; [`fix_features`](Self::fix_features) and
    /// the features set before registration rule out the rest.
    fn set_features(_dev: &Device<Self>, _features: Features, _lock: &RtnlLock<'_>) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Has `program` run on each received packet, or none. It takes the place of the one before.
    ///
    /// # Errors
    ///
    /// Any, with the reason in `extack`; the one before runs on then. Without a program it must not fail.
    fn set_xdp(
        _dev: &Device<Self>,
        _program: Option<XdpProg>,
        _extack: &mut ethtool::ExtAck<'_>,
        _lock: &RtnlLock<'_>,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Sends frames that were redirected to the device, as many as there is room for. The core frees those
    /// that were not taken.
    ///
    /// Context: softirqs off, no xmit lock held.
    ///
    /// # Errors
    ///
    /// Any, if none was taken.
    fn xdp_xmit(_dev: &Device<Self>, _burst: &mut XdpBurst<'_>) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Returns those of `features` that the device can do for `skb`.
    ///
    /// Context: softirq, or process with softirqs off.
    fn features_check(_dev: &Device<Self>, _skb: &TxSkb, _features: Features) -> Features {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Returns the counters of RX queue `queue` (below the real number) since
    /// the queue exists.
    fn rx_queue_stats(dev: &Device<Self>, queue: u32, lock: &OpsLock<'_>) -> RxQueueStats;

    /// Returns the counters of TX queue `queue` (below the real number) since
    /// the queue exists.
    fn tx_queue_stats(dev: &Device<Self>, queue: u32, lock: &OpsLock<'_>) -> TxQueueStats;

    /// Returns what the queues in use do not show: the history of queues that
    /// are gone. A counter that is `None` is not reported for the device.
    fn base_queue_stats(dev: &Device<Self>, lock: &OpsLock<'_>) -> (RxQueueStats, TxQueueStats);
}
