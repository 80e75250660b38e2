// SPDX-License-Identifier: GPL-2.0

//! The RX path of one queue, all of it in NAPI.
//!
//! Each slot of the ring owns the buffer that the device may write. A received packet leaves with its
//! buffer, and a new one takes its place at once; where there is none, the packet is dropped and
//! its buffer goes back: a ring never shrinks, so nothing has to be started again later.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use netdev::{
    napi::{
        Arm,
        PollContext, //
    },
    page_pool::{
        PagePool,
        RxBuffer, //
    },
    skb::RxInfo,
    xdp::{
        self,
        PooledFrame,
        Verdict,
        XdpSlot, //
    },
};
use ring_core::{
    doorbell::RxDoorbell,
    index::{
        RingIndex,
        RingSize, //
    },
};

use crate::{
    nic::{
        RxDone,
        RxRing, //
    },
    stats::ChannelStats,
};

/// Shortest frame that a packet can be built from: its Ethernet header.
const MIN_FRAME: u32 = 14;

/// An RX queue.
///
/// # Invariants
///
/// The slots of the positions between the two of `ring` hold a buffer.
pub(crate) struct Queue<R> {
    // Dropped first: then the device no longer writes to the buffers.
    hw: R,
    slots: KVVec<Option<RxBuffer>>,
    ring: RingIndex,
    doorbell: RxDoorbell,
    pool: PagePool,
    index: u16,
    stats: Arc<ChannelStats>,
    xdp: Option<Xdp>,
}

/// Frames that are sent back under one lock of the TX queue, with one doorbell. NAPI's usual budget.
const SEND_BACK: u32 = 64;

/// What a queue has for programs.
struct Xdp {
    slot: Arc<XdpSlot>,
    /// What takes the place of a buffer that leaves. It is had before the program runs: a verdict cannot be
    /// taken back.
    spare: Option<RxBuffer>,
    /// What is to be sent back; its memory was allocated beforehand.
    back: KVVec<PooledFrame>,
    redirected: bool,
}

/// Where frames go that are to be sent back.
pub(crate) trait SendBack {
    /// Sends them, and returns how many it took. Within a poll.
    fn send_back(&self, frames: impl Iterator<Item = PooledFrame>) -> u32;

    /// Traces one that it did not take.
    fn trace_failure(&self, slot: &XdpSlot, cx: &PollContext<'_>);
}

/// All memory of an RX queue that is not the vendor's: a buffer for each unit.
pub(crate) struct Memory {
    size: RingSize,
    slots: KVVec<Option<RxBuffer>>,
    pool: PagePool,
    xdp: Option<Xdp>,
}

impl Memory {
    /// Takes `entries` buffers out of `pool`, whose NAPI is disabled, and which was made for programs if there
    /// is a slot. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a ring of less than two, `ENOMEM` if there is no memory.
    pub(crate) fn new(pool: PagePool, entries: u32, slot: Option<Arc<XdpSlot>>) -> Result<Self> {
        let size = RingSize::new(entries).ok_or(EINVAL)?;
        // CAST: `usize` has 64 bits on every target.
        let mut slots = KVVec::with_capacity(entries as usize, GFP_KERNEL)?;
        for _ in 0..entries {
            slots.push(Some(pool.alloc_disabled().ok_or(ENOMEM)?), GFP_KERNEL)?;
        }
        let xdp = match slot {
            Some(slot) => Some(Xdp {
                slot,
                spare: None,
                // CAST: `usize` has 64 bits on every target.
                back: KVVec::with_capacity(SEND_BACK as usize, GFP_KERNEL)?,
                redirected: false,
            }),
            None => None,
        };
        Ok(Self {
            size,
            slots,
            pool,
            xdp,
        })
    }

    /// Bytes that the device may write to each buffer.
    pub(crate) fn buffer_len(&self) -> u32 {
        self.pool.buffer_len()
    }
}

impl<R: RxRing> Queue<R> {
    /// Makes the queue and posts every buffer.
    pub(crate) fn new(hw: R, memory: Memory, index: u16, stats: Arc<ChannelStats>) -> Self {
        let Memory {
            size,
            slots,
            pool,
            xdp,
        } = memory;
        let mut queue = Self {
            hw,
            slots,
            ring: RingIndex::new(size),
            doorbell: RxDoorbell::new(size.get()),
            pool,
            index,
            stats,
            xdp,
        };
        while queue.ring.free() != 0 {
            queue.post();
        }
        queue.announce();
        queue
    }

    /// Posts the buffer that lies in the next free slot.
    #[inline(always)]
    fn post(&mut self) {
        let head = self.ring.producer().next();
        // CAST: `usize` has 64 bits on every target.
        let Some(Some(buffer)) = self.slots.get(head.slot() as usize) else {
            return;
        };
        self.hw.post(head, buffer.addr(), buffer.capacity());
        if let Some(claim) = self.ring.reserve(1) {
            claim.commit();
        }
        if self.doorbell.posted(1) {
            self.announce();
        }
    }

    /// Tells the device of all buffers that it does not know yet.
    #[inline(always)]
    fn announce(&mut self) {
        let Self {
            hw,
            ring,
            doorbell,
            stats,
            ..
        } = self;
        doorbell.flush(|fresh| {
            stats.rx.doorbells.add(1);
            hw.ring(ring.producer().next(), fresh);
        });
    }

    /// Takes up to `budget` packets. Softirq. Returns how many completions that were.
    pub(crate) fn poll(&mut self, cx: &PollContext<'_>, budget: u32, out: &impl SendBack) -> u32 {
        let mut done = 0u32;
        while done < budget {
            let Some(completion) = self.hw.next() else {
                break;
            };
            done = done.wrapping_add(1);
            if matches!(completion, RxDone::Nothing) {
                continue;
            }
            // INVARIANT: The slot is filled again, or was never emptied, by the time of `post`.
            let Some(claim) = self.ring.take(1) else {
                // All buffers are with the device only as long as it says nothing of them.
                self.stats.rx.errors.add(1);
                continue;
            };
            let slot = claim.span().start().slot();
            claim.commit();
            self.complete(cx, slot, completion, out);
            self.post();
        }
        self.announce();
        if let Some(xdp) = &mut self.xdp {
            xdp.flush(cx, &self.stats, out);
        }
        done
    }

    /// Hands the packet in `slot` to the stack and puts another buffer there, or leaves the buffer.
    #[inline(always)]
    fn complete(
        &mut self,
        cx: &PollContext<'_>,
        slot: u32,
        completion: RxDone,
        out: &impl SendBack,
    ) {
        let stats = &self.stats.rx;
        let RxDone::Packet { len, info } = completion else {
            stats.errors.add(1);
            return;
        };
        // CAST: `usize` has 64 bits on every target.
        let Some(slot) = self.slots.get_mut(slot as usize) else {
            return;
        };
        let fits = |buffer: &RxBuffer| (MIN_FRAME..=buffer.capacity()).contains(&len);
        if !slot.as_ref().is_some_and(fits) {
            stats.bad_length.add(1);
            return;
        }
        if let Some(xdp) = &mut self.xdp {
            let packet = Packet {
                len,
                index: self.index,
                info: &info,
            };
            xdp.run(cx, &self.pool, slot, &packet, &self.stats, out);
            return;
        }
        let Some(fresh) = self.pool.alloc(cx) else {
            stats.no_buffer.add(1);
            return;
        };
        if let Some(buffer) = slot.replace(fresh) {
            match cx.receive(buffer, len, self.index, &info) {
                Ok(()) => {
                    stats.packets.add(1);
                    stats.bytes.add(u64::from(len));
                }
                Err(_) => stats.no_buffer.add(1),
            }
        }
    }

    /// Buffers of the ring.
    #[inline(always)]
    pub(crate) fn size(&self) -> u32 {
        // CAST: The ring's size has 32 bits.
        self.slots.len() as u32
    }

    /// As [`TxReap::take_lost`](crate::nic::TxReap::take_lost).
    pub(crate) fn take_lost(&mut self) -> bool {
        self.hw.take_lost()
    }

    /// Ends a poll on the device's side.
    pub(crate) fn settle(&mut self, arm: Arm) {
        self.hw.settle(arm);
    }
}

/// A received packet of a length that its buffer can hold.
struct Packet<'a> {
    len: u32,
    index: u16,
    info: &'a RxInfo,
}

impl Xdp {
    /// Runs the program on the packet in `slot`, and puts another buffer there unless that stays.
    // Not within the loop of those who have no program.
    #[inline(never)]
    fn run(
        &mut self,
        cx: &PollContext<'_>,
        pool: &PagePool,
        slot: &mut Option<RxBuffer>,
        packet: &Packet<'_>,
        stats: &ChannelStats,
        out: &impl SendBack,
    ) {
        let &Packet { len, index, info } = packet;
        let Some(spare) = self.spare.take().or_else(|| pool.alloc(cx)) else {
            stats.rx.no_buffer.add(1);
            return;
        };
        // INVARIANT: The slot is filled again in each case.
        let Some(buffer) = slot.replace(spare) else {
            return;
        };
        match pool.run_xdp(cx, &self.slot, buffer, len, index, info) {
            Verdict::Pass => {}
            Verdict::NoMemory => {
                stats.rx.no_buffer.add(1);
                return;
            }
            Verdict::Redirect => {
                self.redirected = true;
                stats.rx.xdp_redirect.add(1);
            }
            Verdict::Tx(frame) => {
                if self.back.len() == self.back.capacity() {
                    self.send_back(cx, stats, out);
                }
                // There is room; a frame without is freed.
                let _ = self.back.push_within_capacity(frame);
            }
            Verdict::Drop(buffer) => {
                self.spare = slot.replace(buffer);
                stats.rx.xdp_drop.add(1);
            }
            Verdict::Aborted(buffer) => {
                self.spare = slot.replace(buffer);
                stats.rx.xdp_drop.add(1);
                stats.rx.xdp_faults.add(1);
            }
        }
        stats.rx.packets.add(1);
        stats.rx.bytes.add(u64::from(len));
    }

    /// Ends a poll.
    #[inline(never)]
    fn flush(&mut self, cx: &PollContext<'_>, stats: &ChannelStats, out: &impl SendBack) {
        if !self.back.is_empty() {
            self.send_back(cx, stats, out);
        }
        if self.redirected {
            self.redirected = false;
            xdp::flush_redirects(cx);
        }
    }

    /// Sends back what was collected, or drops what does not fit.
    fn send_back(&mut self, cx: &PollContext<'_>, stats: &ChannelStats, out: &impl SendBack) {
        // CAST: At most `SEND_BACK`.
        let all = self.back.len() as u32;
        let sent = out.send_back(self.back.drain_all());
        let lost = all.saturating_sub(sent);
        stats.rx.xdp_tx.add(sent.into());
        stats.rx.xdp_drop.add(lost.into());
        stats.rx.xdp_faults.add(lost.into());
        for _ in 0..lost {
            out.trace_failure(&self.slot, cx);
        }
    }
}
