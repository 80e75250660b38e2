// SPDX-License-Identifier: GPL-2.0

//! The TX path of one queue: from the stack to the device, and back to the stack as completions.
//!
//! The two halves run on different CPUs. [`Producer`] is used under the core's lock of the queue,
//! [`Consumer`] in NAPI. Between them: the packets that the device has ([`spsc`]), the mappings of
//! their pieces ([`netdev::dma`]), and in [`TxQueue`] one count of units each way.
//!
//! The order in [`Producer::enqueue`] is what makes a lying device harmless: BQL hears of a packet before
//! NAPI can see it, and NAPI sees it before the device does. A completion out of nowhere finds no
//! packet, and is counted.

use kernel::{
    device,
    prelude::*,
    sync::Arc, //
};
use netdev::{
    dma::{
        piece_ring,
        MapError,
        PieceMapper,
        PieceUnmapper,
        Pieces, //
    },
    lock::OpsLock,
    napi::{
        Arm,
        Budget,
        PollContext, //
    },
    skb::{
        InFlightSkb,
        Reason,
        TxMeta,
        TxSkb, //
    },
    tx_queue::{
        Room,
        TxQueue, //
    },
    xdp::{
        FrameBulk,
        PooledFrame,
        XdpBurst,
        XdpFrame, //
    },
};
use ring_core::{
    doorbell::{
        Decision,
        Deferred,
        Rung,
        TxDoorbell, //
    },
    index::RingSize,
    stop::StopWake, //
};

use crate::{
    nic::{
        TxDone,
        TxReap,
        TxSend, //
    },
    spsc,
    stats::{
        ChannelStats,
        TxStats, //
    },
};

/// A packet that the device has.
struct InFlight {
    what: What,
    /// Units of the ring.
    units: u32,
    /// Mapped pieces.
    pieces: u32,
    /// Bytes that BQL was told of.
    bytes: u32,
}

enum What {
    Skb(InFlightSkb),
    Frame(XdpFrame),
}

impl What {
    #[cold]
    fn drop_reason(self, reason: Reason) {
        match self {
            Self::Skb(skb) => skb.drop_reason(reason),
            Self::Frame(frame) => drop(frame),
        }
    }
}

/// What xmit owes the doorbell at its end.
///
/// Every exit of [`Producer::xmit`] has to come up with one of the two proofs.
enum Exit {
    Rung(Rung),
    Deferred(Deferred),
}

/// The half under the core's lock of the queue, on cache lines of its own.
#[repr(align(64))]
pub(crate) struct Producer<S> {
    // Dropped first: then the device no longer reads what the rest owns.
    hw: S,
    ring: ring_core::index::Producer,
    size: RingSize,
    thresholds: StopWake,
    /// Units that must be free for an XDP frame.
    frame_room: u32,
    doorbell: TxDoorbell,
    in_flight: spsc::Sender<InFlight>,
    pieces: PieceMapper,
    index: u16,
    queue: Arc<TxQueue>,
    stats: Arc<ChannelStats>,
}

/// The half in NAPI.
pub(crate) struct Consumer<R> {
    // Dropped first, as above.
    hw: R,
    /// Units given back since the ring was made, as the queue was told.
    units: u32,
    /// Units that the device has completed beyond the last whole packet.
    credit: u32,
    /// Packets that the device has completed, and a poll without a budget had to leave.
    owed: u32,
    size: RingSize,
    packets: Packets,
    queue: Arc<TxQueue>,
    stats: Arc<ChannelStats>,
}

/// The packets that the device has, as NAPI owns them.
///
/// Dropping it frees what is left: the device side is gone by then.
struct Packets {
    in_flight: spsc::Receiver<InFlight>,
    pieces: PieceUnmapper,
    queue: Arc<TxQueue>,
    stats: Arc<ChannelStats>,
}

/// All memory of a TX queue that is not the vendor's.
pub(crate) struct Memory {
    index: u16,
    size: RingSize,
    thresholds: StopWake,
    in_flight: (spsc::Sender<InFlight>, spsc::Receiver<InFlight>),
    pieces: (PieceMapper, PieceUnmapper),
    queue: Arc<TxQueue>,
    stats: Arc<ChannelStats>,
}

impl Memory {
    /// Allocates the memory of a queue of `entries` units. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the ring cannot hold the largest packet of `S`, `ENOMEM` if there is no memory.
    pub(crate) fn new<S: TxSend>(
        lock: &OpsLock<'_>,
        index: u16,
        dev: &device::Device,
        entries: u32,
        stats: Arc<ChannelStats>,
    ) -> Result<Self> {
        let size = RingSize::new(entries).ok_or(EINVAL)?;
        let thresholds = StopWake::new(size, S::MAX_UNITS).ok_or(EINVAL)?;
        let capacity = entries
            .checked_mul(S::PIECES_PER_UNIT)
            .and_then(u32::checked_next_power_of_two)
            .ok_or(EINVAL)?;
        let room = Room {
            size: size.get(),
            stop_at: thresholds.stop(),
            wake_at: thresholds.wake(),
        };
        Ok(Self {
            index,
            size,
            thresholds,
            in_flight: spsc::channel(size)?,
            pieces: piece_ring(dev, capacity)?,
            queue: Arc::new(TxQueue::new(lock, index.into(), room)?, GFP_KERNEL)?,
            stats,
        })
    }

    /// Makes the two halves of the queue.
    pub(crate) fn split<S: TxSend, R: TxReap>(
        self,
        (send, reap): (S, R),
    ) -> (Producer<S>, Consumer<R>) {
        let Self {
            index,
            size,
            thresholds,
            in_flight: (push, pop),
            pieces: (mapper, unmapper),
            queue,
            stats,
        } = self;
        let producer = Producer {
            hw: send,
            ring: ring_core::index::Producer::new(size, 0),
            size,
            thresholds,
            frame_room: thresholds.sharing(size, S::MAX_UNITS),
            doorbell: TxDoorbell::new(size.get()),
            in_flight: push,
            pieces: mapper,
            index,
            queue: queue.clone(),
            stats: stats.clone(),
        };
        let consumer = Consumer {
            hw: reap,
            units: 0,
            credit: 0,
            owed: 0,
            size,
            packets: Packets {
                in_flight: pop,
                pieces: unmapper,
                queue: queue.clone(),
                stats: stats.clone(),
            },
            queue,
            stats,
        };
        (producer, consumer)
    }
}

impl<S: TxSend> Producer<S> {
    /// Whether the device has given everything back. Under no lock: nothing is sent any more.
    pub(crate) fn is_idle(&self) -> bool {
        self.free() == self.size.get()
    }

    /// Takes a packet from the stack. Softirq or process context, under the queue's lock.
    #[inline]
    pub(crate) fn xmit(&mut self, mut skb: TxSkb, meta: &mut TxMeta) {
        let _exit = match self.enqueue(&mut skb, meta) {
            Ok(posted) => self.commit(skb, meta, posted),
            Err(reason) => {
                self.stats.tx.dropped.add(1);
                skb.drop_reason(reason);
                Exit::Rung(self.announce())
            }
        };
    }

    /// Maps the packet and writes its descriptors, behind the announced ones.
    #[inline(always)]
    fn enqueue(&mut self, skb: &mut TxSkb, meta: &mut TxMeta) -> Result<Posted, Reason> {
        let split = self.hw.prepare(skb, meta)?;
        let stats = &self.stats.tx;
        let tail = self.queue.tail();
        if self.thresholds.must_stop(self.ring.free(tail)) {
            return Err(Reason::RingFull);
        }
        let pieces = self.pieces.map(skb, split).map_err(|e| match e {
            MapError::Full => Reason::RingFull,
            MapError::Dma => {
                stats.map_errors.add(1);
                Reason::MapFailed
            }
        })?;
        stats.dma_maps.add(u64::from(pieces));
        let units = self.hw.post(self.ring.next(), meta, self.pieces.pieces());
        Ok(Posted {
            units,
            pieces,
            tail,
        })
    }

    /// Hands the packet over: to BQL, to NAPI, to the device.
    #[inline(always)]
    fn commit(&mut self, skb: TxSkb, meta: &TxMeta, posted: Posted) -> Exit {
        let Posted {
            units,
            pieces,
            tail,
        } = posted;
        let Some(claim) = self.ring.reserve(units, tail) else {
            // The vendor took more units than it promised; nothing is announced yet.
            self.pieces.undo();
            self.stats.tx.dropped.add(1);
            skb.drop_reason(Reason::RingFull);
            return Exit::Rung(self.announce());
        };
        let head = claim.commit();
        count(&self.stats.tx, meta);
        let answer = self.queue.sent(&skb, meta, head);
        let in_flight = InFlight {
            what: What::Skb(skb.into_in_flight()),
            units,
            pieces,
            bytes: meta.bytes_on_wire(),
        };
        self.pieces.commit();
        // There is room: a packet takes at least one unit of the ring, and NAPI gives the room for
        // packets back before that for units.
        if let Err(lost) = self.in_flight.push(in_flight) {
            lost.what.drop_reason(Reason::RingFull);
        }
        if answer.stopped {
            self.stats.tx.stop.add(1);
        }
        match self.doorbell.sent(units, answer) {
            Decision::Defer(deferred) => {
                self.stats.tx.more.add(1);
                Exit::Deferred(deferred)
            }
            Decision::Ring(_) => Exit::Rung(self.announce()),
        }
    }

    /// Sends what a program of this port sends back, the oldest first, and returns how many fitted. The rest
    /// is freed. Under the queue's lock, softirqs off.
    pub(crate) fn send_back(&mut self, frames: impl Iterator<Item = PooledFrame>) -> u32 {
        let mut sent = 0u32;
        for frame in frames {
            let Some(tail) = self.frame_tail() else {
                continue;
            };
            let meta = TxMeta::of_frame(self.index, frame.len(), frame.vlan());
            let pieces = Pieces::of_frame(&frame);
            let units = self.hw.post(self.ring.next(), &meta, pieces);
            let posted = Posted {
                units,
                pieces: 0,
                tail,
            };
            if self.commit_frame(frame.into_frame(), &meta, posted).is_ok() {
                sent = sent.wrapping_add(1);
            }
        }
        let _rung = self.announce();
        sent
    }

    /// Sends what was redirected to this port, as far as it fits. Under the queue's lock, softirqs off.
    pub(crate) fn send_burst(&mut self, burst: &mut XdpBurst<'_>) {
        while let Some(frame) = burst.take() {
            if let Err(frame) = self.send_frame(frame) {
                burst.give_back(frame);
                break;
            }
        }
        // CAST: `u64` holds a `usize`.
        self.stats.tx.xdp_xmit.add(burst.taken() as u64);
        self.stats.tx.dropped.add(burst.left() as u64);
        if burst.flush() {
            let _rung = self.announce();
        }
    }

    fn send_frame(&mut self, frame: XdpFrame) -> Result<(), XdpFrame> {
        let Some(tail) = self.frame_tail() else {
            return Err(frame);
        };
        if let Err(e) = self.pieces.map_frame(&frame) {
            if e == MapError::Dma {
                self.stats.tx.map_errors.add(1);
            }
            return Err(frame);
        }
        self.stats.tx.dma_maps.add(1);
        let meta = TxMeta::of_frame(self.index, frame.len(), None);
        let units = self.hw.post(self.ring.next(), &meta, self.pieces.pieces());
        let posted = Posted {
            units,
            pieces: 1,
            tail,
        };
        self.commit_frame(frame, &meta, posted)
    }

    /// Units that NAPI has given back, if there is room for an XDP frame, and then for the stack.
    #[inline(always)]
    fn frame_tail(&self) -> Option<u32> {
        let tail = self.queue.tail();
        (self.ring.free(tail) >= self.frame_room).then_some(tail)
    }

    /// As [`commit`](Self::commit), for a frame, of which BQL hears nothing; the doorbell is up to the end of
    /// the burst.
    #[inline(always)]
    fn commit_frame(
        &mut self,
        frame: XdpFrame,
        meta: &TxMeta,
        posted: Posted,
    ) -> Result<(), XdpFrame> {
        let Posted {
            units,
            pieces,
            tail,
        } = posted;
        let Some(claim) = self.ring.reserve(units, tail) else {
            self.pieces.undo();
            return Err(frame);
        };
        let head = claim.commit();
        count(&self.stats.tx, meta);
        self.queue.posted(head);
        self.pieces.commit();
        let in_flight = InFlight {
            what: What::Frame(frame),
            units,
            pieces,
            bytes: 0,
        };
        // There is room, as in `commit`; what is lost all the same is freed.
        let _ = self.in_flight.push(in_flight);
        if self.doorbell.queued(units) {
            let _rung = self.announce();
        }
        Ok(())
    }

    /// Tells the device of what a burst of frames whose end is still to come has left, so that it does not
    /// stay. Under the queue's lock.
    pub(crate) fn end_burst(&mut self) {
        let _rung = self.announce();
    }

    /// Tells the device of all that it does not know yet.
    #[inline(always)]
    fn announce(&mut self) -> Rung {
        let Self {
            hw,
            ring,
            doorbell,
            stats,
            ..
        } = self;
        doorbell.dropped().ring(|fresh| {
            stats.tx.doorbells.add(1);
            hw.ring(ring.next(), fresh);
        })
    }

    #[inline(always)]
    fn free(&self) -> u32 {
        self.ring.free(self.queue.tail())
    }
}

/// What [`Producer::enqueue`] wrote.
struct Posted {
    units: u32,
    pieces: u32,
    /// Units that NAPI had given back by then.
    tail: u32,
}

#[inline(always)]
fn count(stats: &TxStats, meta: &TxMeta) {
    stats.packets.add(u64::from(meta.packets()));
    stats.bytes.add(u64::from(meta.bytes_on_wire()));
    if meta.gso_size() != 0 {
        let payload = u64::from(meta.len().saturating_sub(meta.hdr_len()));
        if meta.encapsulated() {
            stats.tso_inner_packets.add(1);
            stats.tso_inner_bytes.add(payload);
        } else {
            stats.tso_packets.add(1);
            stats.tso_bytes.add(payload);
        }
    } else if meta.csum_partial() {
        stats.csum_partial.add(1);
    }
}

impl<R> Consumer<R> {
    /// The core's side of the queue.
    pub(crate) fn queue(&self) -> &Arc<TxQueue> {
        &self.queue
    }
}

impl<R: TxReap> Consumer<R> {
    /// Takes completions and frees their packets. Softirq, budget 0 included.
    ///
    /// Returns whether there may be more: the device is not allowed to keep NAPI in here for longer than
    /// one ring.
    pub(crate) fn poll(&mut self, cx: &PollContext<'_>) -> bool {
        let mut turns = self.size.get();
        let mut packets = 0u32;
        while let Some(completion) = self.hw.next() {
            match completion {
                TxDone::Packet => packets = packets.wrapping_add(1),
                TxDone::Units(units) => self.credit = self.credit.saturating_add(units),
                TxDone::Nothing => {}
            }
            turns = turns.wrapping_sub(1);
            if turns == 0 {
                break;
            }
        }
        if packets | self.credit | self.owed != 0 {
            self.finish(cx, packets);
        }
        turns == 0
    }

    /// Frees the oldest `packets`, and those that the credit covers.
    #[inline(always)]
    fn finish(&mut self, cx: &PollContext<'_>, packets: u32) {
        let packets = packets.wrapping_add(core::mem::take(&mut self.owed));
        let done = self.packets.finish(cx, packets, &mut self.credit);
        let mut strange = packets.saturating_sub(done.packets);
        if cx.budget() == Budget::TxOnly && self.packets.in_flight.has_any() {
            self.owed = core::mem::take(&mut strange);
        }
        if self.credit != 0 && !self.packets.in_flight.has_any() {
            // More than was ever sent: it must not count for packets to come.
            self.credit = 0;
            strange = strange.wrapping_add(1);
        }
        if strange != 0 {
            self.stats.tx.bad_completions.add(strange.into());
        }
        if done.packets != 0 {
            self.units = self.units.wrapping_add(done.units);
            self.packets.publish();
            if self.queue.completed(done.packets, done.bytes, self.units) {
                self.stats.tx.wake.add(1);
            }
        }
    }

    /// As [`TxReap::take_lost`].
    pub(crate) fn take_lost(&mut self) -> bool {
        self.hw.take_lost()
    }

    /// Ends a poll on the device's side.
    pub(crate) fn settle(&mut self, arm: Arm) {
        self.hw.settle(arm);
    }
}

/// What one poll has finished.
#[derive(Default)]
struct Tally {
    packets: u32,
    bytes: u32,
    units: u32,
}

impl Packets {
    /// Frees the oldest `packets`, and then those whose units `credit` covers. Without a budget, when
    /// interrupts may be off, up to the first XDP frame: page pools do not take theirs back there.
    #[inline(always)]
    fn finish(&mut self, cx: &PollContext<'_>, mut packets: u32, credit: &mut u32) -> Tally {
        let mut done = Tally::default();
        let Self {
            in_flight, pieces, ..
        } = self;
        let mut frames = FrameBulk::new(cx);
        let all = cx.budget() != Budget::TxOnly;
        in_flight.drain(
            |packet| {
                if !all && matches!(packet.what, What::Frame(_)) {
                    return false;
                }
                if let Some(left) = packets.checked_sub(1) {
                    packets = left;
                    return true;
                }
                match credit.checked_sub(packet.units) {
                    Some(left) if *credit != 0 => {
                        *credit = left;
                        true
                    }
                    _ => false,
                }
            },
            |packet| {
                done.packets = done.packets.wrapping_add(1);
                done.bytes = done.bytes.wrapping_add(packet.bytes);
                done.units = done.units.wrapping_add(packet.units);
                match packet.what {
                    What::Skb(skb) => pieces.consume(packet.pieces, skb, cx),
                    What::Frame(frame) => {
                        pieces.consume_frame(packet.pieces, frame, &mut frames);
                    }
                }
            },
        );
        done
    }

    /// Gives the room of what was freed back to xmit.
    #[inline(always)]
    fn publish(&self) {
        self.in_flight.publish();
        self.pieces.publish();
    }
}

impl Drop for Packets {
    fn drop(&mut self) {
        let Self {
            in_flight,
            pieces,
            queue,
            stats,
        } = self;
        in_flight.drain(
            |_| true,
            |packet| {
                // The producer half, whose counter it is, is gone.
                stats.tx.dropped.add(1);
                match packet.what {
                    What::Skb(skb) => {
                        pieces.drop_reason(packet.pieces, skb, Reason::DeviceGone);
                    }
                    What::Frame(frame) => pieces.drop_frame(packet.pieces, frame),
                }
            },
        );
        queue.reset();
    }
}
