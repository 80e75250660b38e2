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
}

/// All memory of an RX queue that is not the vendor's: a buffer for each unit.
pub(crate) struct Memory {
    size: RingSize,
    slots: KVVec<Option<RxBuffer>>,
    pool: PagePool,
}

impl Memory {
    /// Takes `entries` buffers out of `pool`, whose NAPI is disabled. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a ring of less than two, `ENOMEM` if there is no memory.
    pub(crate) fn new(pool: PagePool, entries: u32) -> Result<Self> {
        let size = RingSize::new(entries).ok_or(EINVAL)?;
        // CAST: `usize` has 64 bits on every target.
        let mut slots = KVVec::with_capacity(entries as usize, GFP_KERNEL)?;
        for _ in 0..entries {
            slots.push(Some(pool.alloc_disabled().ok_or(ENOMEM)?), GFP_KERNEL)?;
        }
        Ok(Self { size, slots, pool })
    }

    /// Bytes that the device may write to each buffer.
    pub(crate) fn buffer_len(&self) -> u32 {
        self.pool.buffer_len()
    }
}

impl<R: RxRing> Queue<R> {
    /// Makes the queue and posts every buffer.
    pub(crate) fn new(hw: R, memory: Memory, index: u16, stats: Arc<ChannelStats>) -> Self {
        let Memory { size, slots, pool } = memory;
        let mut queue = Self {
            hw,
            slots,
            ring: RingIndex::new(size),
            doorbell: RxDoorbell::new(size.get()),
            pool,
            index,
            stats,
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
    pub(crate) fn poll(&mut self, cx: &PollContext<'_>, budget: u32) -> u32 {
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
            self.complete(cx, slot, completion);
            self.post();
        }
        self.announce();
        done
    }

    /// Hands the packet in `slot` to the stack and puts another buffer there, or leaves the buffer.
    #[inline(always)]
    fn complete(&mut self, cx: &PollContext<'_>, slot: u32, completion: RxDone) {
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
