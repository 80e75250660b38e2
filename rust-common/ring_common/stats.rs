// SPDX-License-Identifier: GPL-2.0

//! Counters of queues, and the names under which each driver's users know them.
//!
//! The counters belong to the port, not to the rings: they outlive down, up and a change of
//! channels. Each has one writer (the TX producer half, or NAPI) and any number of readers.

use core::cell::UnsafeCell;

use kernel::{
    prelude::*,
    sync::Arc, //
};
use netdev::{
    ethtool::StringsWriter,
    stats::{
        RxQueueStats,
        TxQueueStats, //
    }, //
};

/// A 64-bit counter with one writer.
#[repr(transparent)]
pub struct Counter(UnsafeCell<u64>);

// SAFETY: All accesses are volatile, aligned and of machine word size, hence not torn: a reader sees a
// value that the counter had. Writers are serialised as [`Counter::add`] demands; where that were
// broken, counts would be lost, nothing more.
unsafe impl Sync for Counter {}

impl Counter {
    const fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    /// Adds `n`. One context at a time: the owner of the queue half that counts.
    #[inline(always)]
    pub fn add(&self, n: u64) {
        let p = self.0.get();
        // SAFETY:
        // - `p` is valid and aligned: it comes from a live `UnsafeCell<u64>`.
        // - No reference to the value exists, here or elsewhere.
        unsafe { p.write_volatile(p.read_volatile().wrapping_add(n)) }
    }

    /// The value now. Any context.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        // SAFETY: As in `add`.
        unsafe { self.0.get().read_volatile() }
    }
}

macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident,)* }) => {
        $(#[$doc])*
        #[repr(align(64))]
        pub struct $name {
            $($(#[$fdoc])* pub $field: Counter,)*
        }

        impl $name {
            /// All zero.
            pub const fn new() -> Self {
                Self { $($field: Counter::new(),)* }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }
    };
}

counters! {
    /// What a TX queue counts. Written by the producer half, except where noted.
    TxStats {
        /// Packets on the wire: a TSO packet counts its segments.
        packets,
        /// Bytes on the wire, without FCS.
        bytes,
        /// TSO packets of the stack.
        tso_packets,
        /// Payload bytes of TSO packets.
        tso_bytes,
        /// TSO packets of the stack inside a tunnel.
        tso_inner_packets,
        /// Payload bytes of TSO packets inside a tunnel.
        tso_inner_bytes,
        /// Packets in the shorter of two formats that the device has.
        short_format,
        /// Packets in the longer of two formats that the device has.
        long_format,
        /// Packets whose checksum the device filled in, TSO aside.
        csum_partial,
        /// XDP frames that were redirected to the port, and sent.
        xdp_xmit,
        /// Packets dropped before the device saw them.
        dropped,
        /// Packets dropped because a piece could not be mapped.
        map_errors,
        /// Streaming DMA mappings made.
        dma_maps,
        /// Doorbells rung.
        doorbells,
        /// Packets whose doorbell was left to a later one.
        more,
        /// Times the queue was stopped for want of room.
        stop,
        /// Times the queue was woken. Written by NAPI.
        wake,
        /// Completions that no packet on the ring explains. Written by NAPI.
        bad_completions,
    }
}

counters! {
    /// What an RX queue counts. Written by NAPI.
    RxStats {
        /// Packets handed to the stack, of which an XDP program is the first part.
        packets,
        /// Their bytes on the wire, without FCS.
        bytes,
        /// Packets that an XDP program has dropped, or that its faults have.
        xdp_drop,
        /// Packets that an XDP program has sent back.
        xdp_tx,
        /// Packets that an XDP program has redirected.
        xdp_redirect,
        /// Of the dropped ones, those that an XDP program did not ask to drop: it aborted, its verdict is
        /// unknown, or there was no room where it sent them.
        xdp_faults,
        /// Packets dropped for want of a buffer or an skb.
        no_buffer,
        /// Packets of a length that their buffer cannot hold.
        bad_length,
        /// Buffers that came back with an error.
        errors,
        /// Doorbells rung.
        doorbells,
    }
}

/// The counters of one channel.
#[derive(Default)]
pub struct ChannelStats {
    /// TX queue.
    pub tx: TxStats,
    /// RX queue.
    pub rx: RxStats,
}

/// A key of `ethtool -S` and the counter behind it.
pub struct Key<S: 'static> {
    /// Last part of the key.
    pub name: &'static str,
    /// The counter.
    pub counter: fn(&S) -> &Counter,
}

/// Names the counters of one kind: `key!("packets", packets)`.
#[macro_export]
macro_rules! key {
    ($name:literal, $field:ident) => {
        $crate::stats::Key {
            name: $name,
            counter: |stats| &stats.$field,
        }
    };
}

/// How a driver's users know the counters.
///
/// A queue's key is `<prefix><index><separator><name>`, at most 31 characters in all.
pub struct Keys {
    /// Counters of the port, filled by [`crate::nic::Nic::port_stats`].
    pub port: &'static [&'static str],
    /// Starts the keys of a TX queue, e.g. `"tx_"`.
    pub tx_prefix: &'static str,
    /// Starts the keys of an RX queue, e.g. `"rx_"`.
    pub rx_prefix: &'static str,
    /// Between index and name, e.g. `"_"`.
    pub separator: &'static str,
    /// Counters of a TX queue that this driver's users know.
    pub tx: &'static [Key<TxStats>],
    /// Counters of an RX queue that this driver's users know.
    pub rx: &'static [Key<RxStats>],
}

/// Counters of a TX queue that every driver has, behind the driver's own.
const COMMON_TX: &[Key<TxStats>] = &[
    key!("dropped", dropped),
    key!("doorbells", doorbells),
    key!("dma_maps", dma_maps),
    key!("map_errors", map_errors),
    key!("more", more),
    key!("stop", stop),
    key!("wake", wake),
    key!("bad_completions", bad_completions),
];

/// Counters of an RX queue that every driver has, behind the driver's own.
const COMMON_RX: &[Key<RxStats>] = &[
    key!("no_buffer", no_buffer),
    key!("bad_length", bad_length),
    key!("xdp_faults", xdp_faults),
    key!("errors", errors),
    key!("doorbells", doorbells),
];

impl Keys {
    /// The RX keys of a channel: the driver's own, then everybody's.
    fn rx_keys(&self) -> impl Iterator<Item = &'static Key<RxStats>> {
        Iterator::chain(self.rx.iter(), COMMON_RX)
    }

    /// The TX keys of a channel: the driver's own, then everybody's.
    fn tx_keys(&self) -> impl Iterator<Item = &'static Key<TxStats>> {
        Iterator::chain(self.tx.iter(), COMMON_TX)
    }

    /// Number of keys for `channels` channels.
    pub fn count(&self, channels: usize) -> usize {
        let per_channel = self.rx_keys().count().wrapping_add(self.tx_keys().count());
        self.port
            .len()
            .wrapping_add(per_channel.wrapping_mul(channels))
    }

    /// Writes the keys for `channels` channels, in the order of [`Keys::values`].
    pub fn strings(&self, channels: usize, out: &mut StringsWriter<'_>) {
        for key in self.port {
            out.push(fmt!("{key}"));
        }
        for i in 0..channels {
            for key in self.rx_keys() {
                out.push(fmt!("{}{i}{}{}", self.rx_prefix, self.separator, key.name));
            }
            for key in self.tx_keys() {
                out.push(fmt!("{}{i}{}{}", self.tx_prefix, self.separator, key.name));
            }
        }
    }

    /// Writes the values of the channels behind those of the port.
    pub fn values(&self, channels: &[Arc<ChannelStats>], values: &mut [u64]) {
        let all = channels.iter().flat_map(|channel| {
            Iterator::chain(
                self.rx_keys().map(|key| (key.counter)(&channel.rx).get()),
                self.tx_keys().map(|key| (key.counter)(&channel.tx).get()),
            )
        });
        for (slot, value) in values.iter_mut().zip(all) {
            *slot = value;
        }
    }
}

/// Sums RX queues for the stack.
pub(crate) fn rx_sum<'a>(
    channels: impl IntoIterator<Item = &'a Arc<ChannelStats>>,
) -> RxQueueStats {
    let [mut packets, mut bytes, mut alloc_fail] = [0u64; 3];
    for ChannelStats { rx, .. } in channels.into_iter().map(|channel| &**channel) {
        packets = packets.wrapping_add(rx.packets.get());
        bytes = bytes.wrapping_add(rx.bytes.get());
        alloc_fail = alloc_fail.wrapping_add(rx.no_buffer.get());
    }
    RxQueueStats {
        packets: Some(packets),
        bytes: Some(bytes),
        alloc_fail: Some(alloc_fail),
        ..RxQueueStats::default()
    }
}

/// Sums TX queues for the stack.
pub(crate) fn tx_sum<'a>(
    channels: impl IntoIterator<Item = &'a Arc<ChannelStats>>,
) -> TxQueueStats {
    let [mut packets, mut bytes, mut stop, mut wake] = [0u64; 4];
    for ChannelStats { tx, .. } in channels.into_iter().map(|channel| &**channel) {
        packets = packets.wrapping_add(tx.packets.get());
        bytes = bytes.wrapping_add(tx.bytes.get());
        stop = stop.wrapping_add(tx.stop.get());
        wake = wake.wrapping_add(tx.wake.get());
    }
    TxQueueStats {
        packets: Some(packets),
        bytes: Some(bytes),
        stop: Some(stop),
        wake: Some(wake),
        ..TxQueueStats::default()
    }
}
