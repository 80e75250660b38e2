// SPDX-License-Identifier: GPL-2.0

//! What a vendor tells `ring_common` about its hardware.
//!
//! A vendor implements [`Nic`] for one network port, and four small traits for what a queue of
//! that port does: [`TxSend`], [`TxReap`], [`RxRing`] and [`Interrupt`]. Everything else, from the
//! `net_device` to the NAPI loop, is [`crate::port::Port`].
//!
//! | trait | called from | exclusive because |
//! |---|---|---|
//! | [`Nic`] | process context, under the instance lock | of that lock |
//! | [`TxSend`] | softirq or process context, BH off | of the core's lock of that TX queue |
//! | [`TxReap`], [`RxRing`], [`Vector`] | softirq | a NAPI never runs twice at a time |
//! | [`Interrupt`] | hard interrupt | an interrupt line never runs twice at a time |
//!
//! A position `head` counts units (see [`TxSend`]): [`Cursor::count`] is free-running since the
//! queue was made and wraps at 2^32, [`Cursor::slot`] is the place in the ring.

use kernel::{
    device,
    prelude::*,
    sync::Arc, //
};

use netdev::{
    dma::{
        DmaAddr,
        Pieces, //
    },
    irq::IrqLine,
    napi::{
        Arm,
        Order, //
    },
    skb::{
        Reason,
        RxInfo,
        TxMeta,
        TxSkb, //
    },
};
use ring_core::{
    index::Cursor,
    stop::Limits, //
};

use crate::stats::{
    ChannelStats,
    Keys, //
};

/// How a port is cut into queues: what the user asked for and what is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Combined channels: queue pairs, each with a vector and a NAPI of its own.
    pub queues: u32,
    /// Units of each TX ring.
    pub tx_entries: u32,
    /// Buffers of each RX ring.
    pub rx_entries: u32,
    /// Largest packet behind the link-layer header, in bytes.
    pub mtu: u32,
    /// Whether RX buffers are such that XDP programs can run on them.
    pub xdp: bool,
}

/// What a port can do at most; read once, at registration.
pub struct PortLimits {
    /// Combined channels.
    pub queues: Limits,
    /// Units of a TX ring.
    pub tx_entries: Limits,
    /// Buffers of an RX ring.
    pub rx_entries: Limits,
    /// Largest MTU, in bytes.
    pub max_mtu: u32,
    /// Entries of the RSS table, 0 where the port cannot spread.
    pub rss_entries: u32,
}

/// What one port offers to the network stack.
#[derive(Clone, Copy, Default)]
pub struct Offloads {
    /// TCP and UDP checksums over IPv4 and IPv6, on TX.
    pub tx_csum: bool,
    /// TCP and UDP checksums over IPv4 and IPv6, on RX.
    pub rx_csum: bool,
    /// Segmentation of TCP over IPv4 and IPv6.
    pub tso: bool,
    /// Largest TSO packet in bytes, where it is not the stack's own limit.
    pub tso_max_size: Option<u32>,
    /// A VLAN tag travels beside the packet on TX.
    pub vlan_tx: bool,
    /// A VLAN tag is taken out of the packet on RX.
    pub vlan_rx: bool,
    /// The device computes an RSS hash and reports it.
    pub rx_hash: bool,
}

/// RSS state: who programs the device with it is [`Nic::steer`].
pub struct Rss<'a> {
    /// RX queue of each entry of the table.
    pub table: &'a [u32],
    /// Toeplitz key.
    pub key: &'a [u8; RSS_KEY_LEN],
}

/// Bytes of a Toeplitz key for IPv6 with ports.
pub const RSS_KEY_LEN: usize = 40;

/// One network port of a vendor's hardware.
///
/// The objects that its methods return own what they made on the device: dropping them takes it
/// down again, in bounded time, also when the device no longer answers. `ring_common` drops in
/// the reverse order of creation.
pub trait Nic: Send + Sync + Sized + 'static {
    /// Whether the interrupt is armed before or after NAPI is completed.
    type Order: Order;
    /// What stays on the device while the port is open, beside its queues.
    type Session: Send + Sync;
    /// Device side of a vector, as NAPI sees it.
    type Vector: Vector;
    /// Device side of a vector, as the interrupt sees it.
    type Interrupt: Interrupt;
    /// Memory of a vector, `()` where it has none of its own.
    type VectorMemory: Send;
    /// Memory of the rings of a TX queue.
    type TxMemory: Send;
    /// Memory of the rings of an RX queue.
    type RxMemory: Send;
    /// Producer half of a TX queue.
    type TxSend: TxSend;
    /// Consumer half of a TX queue.
    type TxReap: TxReap;
    /// An RX queue.
    type RxRing: RxRing;

    /// The device that does the port's DMA.
    fn device(&self) -> &device::Device;

    /// Number of the port among those of its function.
    fn index(&self) -> u16;

    /// What the port can do at most.
    fn limits(&self) -> Result<PortLimits>;

    /// What the port offers to the stack.
    fn offloads(&self) -> Offloads;

    /// The address that the device was given.
    fn mac(&self) -> [u8; 6];

    /// Whether the link is up, as the device last told.
    fn link_up(&self) -> bool;

    /// Link speed in Mbit/s, as the device last told; `None` where it does not say.
    fn speed(&self) -> Option<u32>;

    /// Allocates the memory of a vector. The device is told nothing; other queues may be in use.
    fn vector_memory(&self) -> Result<Self::VectorMemory>;

    /// Allocates the memory of a TX queue with `entries` units, as [`Nic::vector_memory`].
    fn tx_memory(&self, entries: u32) -> Result<Self::TxMemory>;

    /// Allocates the memory of an RX queue with room for `entries` buffers, as [`Nic::vector_memory`].
    fn rx_memory(&self, entries: u32) -> Result<Self::RxMemory>;

    /// Makes the port ready for queues.
    fn open(&self, config: &Config) -> Result<Self::Session>;

    /// Makes the vector for queue pair `index`.
    ///
    /// Interrupts are delivered only after `ring_common` has requested the line.
    fn vector(
        &self,
        session: &Self::Session,
        index: u32,
        memory: Self::VectorMemory,
    ) -> Result<VectorParts<Self::Interrupt, Self::Vector>>;

    /// Makes TX queue `index` on `vector`. What is the producer half's to count of `stats`, the vendor may
    /// count where `ring_common` does not know it.
    fn tx(
        &self,
        session: &Self::Session,
        vector: &Self::Vector,
        index: u32,
        memory: Self::TxMemory,
        stats: &Arc<ChannelStats>,
    ) -> Result<(Self::TxSend, Self::TxReap)>;

    /// Makes RX queue `index`, for buffers of `buffer_len` bytes, on `vector`.
    fn rx(
        &self,
        session: &Self::Session,
        vector: &Self::Vector,
        index: u32,
        memory: Self::RxMemory,
        buffer_len: u32,
    ) -> Result<Self::RxRing>;

    /// Lets packets in, spread over all RX queues by `rss`; also called while they already flow, when the
    /// table or the key changes.
    fn steer(&self, session: &Self::Session, rss: &Rss<'_>) -> Result;

    /// Keeps packets out. NAPI still runs. Afterwards the device writes to no RX buffer.
    ///
    /// Never fails and takes bounded time: a device that does not answer has been reported, and the
    /// queues are destroyed next.
    fn quiesce(&self, session: &Self::Session);

    /// Names of the per-queue counters, as this driver's users know them.
    fn keys(&self) -> &'static Keys;

    /// Fills in the values behind [`Keys::port`], in that order. `channels` are all that there can be, for
    /// keys that sum over queues. Must not sleep.
    fn port_stats(&self, channels: &[Arc<ChannelStats>], values: &mut [u64]);
}

/// What [`Nic::vector`] made.
pub struct VectorParts<I, V> {
    /// The half for the interrupt handler.
    pub interrupt: I,
    /// The half for NAPI, and for the queues that are made on it.
    pub vector: V,
    /// The interrupt line.
    pub line: IrqLine,
}

/// Device side of a vector, as the interrupt handler sees it. Hard interrupt context.
pub trait Interrupt: Send + 'static {
    /// Takes what the device has to say, and tells whether NAPI must run.
    fn interrupt(&mut self) -> Wake;
}

/// Whether an interrupt has work for NAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Schedule NAPI.
    Poll,
    /// Nothing for NAPI.
    Nothing,
    /// The device has lost events: no more come until the port is reset.
    Lost,
}

/// Device side of a vector, as NAPI sees it.
pub trait Vector: Send + 'static {
    /// Called once at the end of each poll, behind the [`TxReap::settle`] and [`RxRing::settle`] of
    /// its queues: unmasks the vector where `arm` says so.
    ///
    /// Devices whose queues arm themselves keep the default, which does nothing.
    fn settle(&mut self, _arm: Arm) {}
}

/// Producer half of a TX queue.
///
/// A *unit* is what the ring is counted in: a buffer descriptor, a command, or a basic block of a
/// WQE. A packet takes one or more.
pub trait TxSend: Send + 'static {
    /// Most units that a packet of `MAX_SKB_FRAGS + 2` pieces takes.
    const MAX_UNITS: u32;
    /// Most pieces that one unit ever stands for; bounds the side table.
    const PIECES_PER_UNIT: u32;

    /// Looks at a packet before it is mapped, and may change its head.
    ///
    /// Returns how many bytes of it need a piece of their own at the front, 0 for none.
    ///
    /// # Errors
    ///
    /// The reason for which the packet must be dropped.
    fn prepare(&mut self, skb: &mut TxSkb, meta: &mut TxMeta) -> Result<u32, Reason>;

    /// Writes the descriptors of one packet at `head` and returns how many units they took, at least 1.
    ///
    /// There is room for [`TxSend::MAX_UNITS`]. The device must not see the packet before
    /// [`TxSend::ring`]. XDP frames come without [`TxSend::prepare`]: one piece that asks for nothing but
    /// perhaps a VLAN tag.
    fn post(&mut self, head: Cursor, meta: &TxMeta, pieces: Pieces<'_>) -> u32;

    /// Tells the device that all units before `head` are ready, of which `fresh` are new.
    fn ring(&mut self, head: Cursor, fresh: u32);
}

/// Consumer half of a TX queue.
pub trait TxReap: Send + 'static {
    /// Takes one completion, in ring order; `None` when there is none now.
    ///
    /// Looks at one entry at most, so that `ring_common` can bound a poll.
    fn next(&mut self) -> Option<TxDone>;

    /// Called once at the end of each poll, arms the queue where the device has that per queue.
    fn settle(&mut self, arm: Arm);

    /// Whether the device has lost completions (MANA, mlx5: it overran the queue), so that no more come until the
    /// port is reset; true once. Called behind the last [`TxReap::next`] of each poll.
    fn take_lost(&mut self) -> bool {
        false
    }
}

/// What the device said about sent packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxDone {
    /// The oldest packet is done.
    Packet,
    /// The oldest this many units are done; more or fewer than whole packets is the device's fault
    /// and is noticed by `ring_common`.
    Units(u32),
    /// Nothing of this queue; the vendor has counted it.
    Nothing,
}

/// An RX queue. One buffer takes one unit.
pub trait RxRing: Send + 'static {
    /// Writes the descriptor for a buffer of `len` bytes at `head`.
    fn post(&mut self, head: Cursor, addr: DmaAddr<'_>, len: u32);

    /// Tells the device that all buffers before `head` are ready, of which `fresh` are new.
    fn ring(&mut self, head: Cursor, fresh: u32);

    /// Takes one completion, for the oldest buffer; `None` when there is none now.
    ///
    /// Looks at one entry at most, so that `ring_common` can bound a poll.
    fn next(&mut self) -> Option<RxDone>;

    /// Called once at the end of each poll, arms the queue where the device has that per queue.
    fn settle(&mut self, arm: Arm);

    /// As [`TxReap::take_lost`].
    fn take_lost(&mut self) -> bool {
        false
    }
}

/// What the device said about the oldest RX buffer.
pub enum RxDone {
    /// It holds a packet of `len` bytes. `len` comes from the device: `ring_common` checks it.
    Packet {
        /// Bytes from the start of the buffer.
        len: u32,
        /// What the device found out about the packet.
        info: RxInfo,
    },
    /// It holds nothing to use; the vendor has counted why.
    Error,
    /// Nothing about a buffer: an event of the vendor's own, or nonsense that it has counted.
    Nothing,
}
