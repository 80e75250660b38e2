// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use kernel::prelude::*;
use netdev::{
    dma::{
        self,
        Part, //
    },
    mmio::Doorbell64,
    napi::Arm, //
};
use ring_common::desc_ring::DescRing;
use ring_core::arm::LapBudget;
use zerocopy::FromBytes;

use super::{
    laps::Laps,
    Cqe,
    CqeInfo,
    CQE_INFO,
    GDMA_CQE_SIZE, //
};
use crate::regs;

/// Memory of a completion queue.
pub(crate) type CompletionRing = DescRing<GDMA_CQE_SIZE>;

/// The device wants to hear of the consumer once in this many laps.
const LAPS_PER_DOORBELL: u32 = 8;

/// The consumer of a completion queue. One context at a time.
pub(crate) struct CompletionReader {
    laps: Laps,
    budget: LapBudget<LAPS_PER_DOORBELL>,
    /// Where the last poll has ended.
    settled: u32,
    id: u32,
    doorbell: Doorbell64,
}

impl CompletionReader {
    /// A reader of `ring`, in which the device has written nothing yet, for the
    /// completion queue `id`.
    pub(crate) fn new(ring: &CompletionRing, id: u32, doorbell: Doorbell64) -> Result<Self> {
        let laps = Laps::new(ring.size())?;
        Ok(Self {
            settled: laps.count(),
            laps,
            budget: LapBudget::new(ring.size()).ok_or(EINVAL)?,
            id,
            doorbell,
        })
    }

    /// Takes the next completion of `ring`, the ring that the reader was made
    /// for, and of its data the first part `T`. A poll takes one lap at most.
    #[inline(always)]
    pub(crate) fn next<T: FromBytes>(&mut self, ring: &CompletionRing) -> Option<Cqe<T>> {
        const { assert!(size_of::<T>() <= CQE_INFO) };
        self.next_with(ring, |entry| entry.read::<T, 0>())
    }

    /// [`CompletionReader::next`], with the data as `read` makes it of the entry.
    /// What the device does to that meanwhile, each read may see.
    #[inline(always)]
    pub(crate) fn next_with<T>(
        &mut self,
        ring: &CompletionRing,
        read: impl FnOnce(&Part<'_, GDMA_CQE_SIZE>) -> T,
    ) -> Option<Cqe<T>> {
        let entry = ring.unit(self.laps.slot())?;
        let info = CqeInfo(entry.read::<u32, CQE_INFO>());
        if !self.laps.is_ready(info.owner()) {
            return None;
        }
        dma::rmb();
        let data = read(&entry);
        self.laps.advance();
        Some(Cqe::new(data, info))
    }

    /// Whether the device has lost completions; true once. No more come then.
    pub(crate) fn take_overrun(&mut self) -> bool {
        self.laps.take_overrun()
    }

    /// Ends a poll: arms the queue if `arm` says so, and tells the device in time
    /// that there is room again.
    pub(crate) fn settle(&mut self, arm: Arm) {
        let count = self.laps.count();
        let due = self.budget.consumed(count.wrapping_sub(self.settled));
        self.settled = count;
        match arm {
            Arm::Yes => self.ring(true),
            Arm::No if due => self.ring(false),
            Arm::No => {}
        }
    }

    fn ring(&mut self, arm: bool) {
        self.doorbell
            .write(regs::cq_doorbell(self.id, self.laps.head(), arm));
        self.budget.rung();
    }
}
