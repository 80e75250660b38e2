// SPDX-License-Identifier: GPL-2.0

//! Counters, under the names that users of the adapter know.

use core::sync::atomic::{
    AtomicU64,
    Ordering, //
};

use kernel::sync::Arc;
use ring_common::{
    key,
    stats::{
        ChannelStats,
        Keys, //
    }, //
};

/// An event counter that several queues of a port share; nothing else depends
/// on it, so all accesses are relaxed.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Any context.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! port_counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What the driver counts per port.
        #[derive(Default)]
        pub(crate) struct PortCounters {
            $($(#[$doc])* pub(crate) $name: Counter,)*
        }

        impl PortCounters {
            const NAMES: &'static [&'static str] = &[$(stringify!($name),)*];

            fn all(&self) -> impl Iterator<Item = u64> + '_ {
                [$(&self.$name,)*].into_iter().map(Counter::get)
            }
        }
    };
}

port_counters! {
    /// Packets that the device has dropped.
    tx_cq_err,
    /// Send completions of an unknown type, or of another queue.
    tx_cqe_unknown_type,
    /// Receive completions of an unknown type, or of another queue.
    rx_cqe_unknown_type,
    /// Receive completions without a packet.
    rx_pkt_len0_err,
    /// Events of an unknown type.
    eqe_unknown_type,
    /// Completion queues that the device has overrun; they stand still.
    cq_overrun,
    /// Event queues that the device has overrun; they stand still.
    eq_overrun,
}

/// What the device counts for the whole function, as it told last.
#[derive(Default)]
pub(crate) struct HcStats([Counter; HC_NAMES.len()]);

impl HcStats {
    /// Takes over what the device told.
    pub(crate) fn update(&self, counters: &[u64; HC_NAMES.len()]) {
        for (slot, value) in self.0.iter().zip(counters) {
            slot.set(*value);
        }
    }
}

/// In the order of `struct mana_query_gf_stat_resp`.
const HC_NAMES: &[&str] = &[
    "hc_rx_discards_no_wqe",
    "hc_rx_err_vport_disabled",
    "hc_rx_bytes",
    "hc_rx_ucast_pkts",
    "hc_rx_ucast_bytes",
    "hc_rx_bcast_pkts",
    "hc_rx_bcast_bytes",
    "hc_rx_mcast_pkts",
    "hc_rx_mcast_bytes",
    "hc_tx_err_gf_disabled",
    "hc_tx_err_vport_disabled",
    "hc_tx_err_inval_vportoffset_pkt",
    "hc_tx_err_vlan_enforcement",
    "hc_tx_err_eth_type_enforcement",
    "hc_tx_err_sa_enforcement",
    "hc_tx_err_sqpdid_enforcement",
    "hc_tx_err_cqpdid_enforcement",
    "hc_tx_err_mtu_violation",
    "hc_tx_err_inval_oob",
    "hc_tx_bytes",
    "hc_tx_ucast_pkts",
    "hc_tx_ucast_bytes",
    "hc_tx_bcast_pkts",
    "hc_tx_bcast_bytes",
    "hc_tx_mcast_pkts",
    "hc_tx_mcast_bytes",
    "hc_tx_err_gdma",
];

/// Sums over all queues.
const SUM_NAMES: &[&str] = &["stop_queue", "wake_queue"];

const PORT_KEYS: usize = SUM_NAMES.len() + PortCounters::NAMES.len() + HC_NAMES.len();

/// Names of the counters of a port: sums over its queues, its own, then those of
/// the function.
static PORT_NAMES: [&str; PORT_KEYS] = {
    let lists = [SUM_NAMES, PortCounters::NAMES, HC_NAMES];
    let mut names = [""; PORT_KEYS];
    let (mut list, mut i, mut n) = (0, 0, 0);
    while list < lists.len() {
        while i < lists[list].len() {
            names[n] = lists[list][i];
            n += 1;
            i += 1;
        }
        i = 0;
        list += 1;
    }
    names
};

/// Values for [`PORT_NAMES`].
pub(crate) fn port_values(
    channels: &[Arc<ChannelStats>],
    port: &PortCounters,
    function: &HcStats,
    values: &mut [u64],
) {
    let (mut stop, mut wake) = (0u64, 0u64);
    for channel in channels {
        stop = stop.wrapping_add(channel.tx.stop.get());
        wake = wake.wrapping_add(channel.tx.wake.get());
    }
    let all = [stop, wake]
        .into_iter()
        .chain(port.all())
        .chain(function.0.iter().map(Counter::get));
    for (slot, value) in values.iter_mut().zip(all) {
        *slot = value;
    }
}

/// Keys of `ethtool -S`.
pub(crate) static KEYS: Keys = Keys {
    port: &PORT_NAMES,
    tx_prefix: "tx_",
    rx_prefix: "rx_",
    separator: "_",
    tx: &[
        key!("packets", packets),
        key!("bytes", bytes),
        key!("xdp_xmit", xdp_xmit),
        key!("tso_packets", tso_packets),
        key!("tso_bytes", tso_bytes),
        key!("tso_inner_packets", tso_inner_packets),
        key!("tso_inner_bytes", tso_inner_bytes),
        key!("long_pkt_fmt", long_format),
        key!("short_pkt_fmt", short_format),
        key!("csum_partial", csum_partial),
        key!("mana_map_err", map_errors),
    ],
    rx: &[
        key!("packets", packets),
        key!("bytes", bytes),
        key!("xdp_drop", xdp_drop),
        key!("xdp_tx", xdp_tx),
        key!("xdp_redirect", xdp_redirect),
    ],
};
