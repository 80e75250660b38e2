// SPDX-License-Identifier: GPL-2.0

//! Work queues of the Ethernet function, each with its completion queue.

use kernel::{
    device,
    prelude::*,
    sync::Arc, //
};
use netdev::mmio::Doorbell64;
use ring_common::desc_ring::DescRing;

use super::{
    cq::{
        CompletionReader,
        CompletionRing, //
    },
    eq::EventQueue,
    region::DmaRegion,
    QueueType, //
};
use crate::{
    adapter::Adapter,
    hwc::commands::{
        CreateWqObj,
        DestroyWqObj,
        INVALID_MANA_HANDLE, //
    },
    regs::{
        self,
        GDMA_WQE_BU_SIZE, //
    }, //
};

// CAST: 32.
const UNIT: usize = GDMA_WQE_BU_SIZE as usize;

/// Memory of a work queue, in basic units.
pub(crate) type WorkRing = DescRing<UNIT>;

/// Memory of a work queue and of its completion queue.
pub(crate) struct QueueRings {
    work: WorkRing,
    completions: CompletionRing,
}

impl QueueRings {
    /// Allocates `units` basic units and `completions` entries (powers of two).
    /// Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there is no such memory.
    pub(crate) fn new(dev: &device::Device, units: u32, completions: u32) -> Result<Self> {
        Ok(Self {
            work: WorkRing::new(dev, units)?,
            completions: CompletionRing::new(dev, completions)?,
        })
    }
}

/// A work queue and its completion queue on the device.
///
/// The halves of a queue share it; the last one destroys it on the device, which
/// sleeps, and then frees the memory.
pub(crate) struct WorkQueue {
    adapter: Arc<Adapter>,
    kind: QueueType,
    handle: u64,
    id: u32,
    cq_id: u32,
    work: WorkRing,
    completions: CompletionRing,
    // Behind the memory, and behind `drop`: no event queue goes before those
    // that report to it.
    _events: Arc<EventQueue>,
}

impl WorkQueue {
    /// Makes a work queue and a completion queue, which reports to `events`, in
    /// the memory `rings`. Process context, sleeps.
    ///
    /// # Errors
    ///
    /// - `EPROTO` if the device gives ids that cannot be.
    /// - What the channel returns.
    pub(crate) fn new(
        adapter: &Arc<Adapter>,
        vport: u64,
        kind: QueueType,
        rings: QueueRings,
        events: Arc<EventQueue>,
    ) -> Result<Self> {
        let QueueRings { work, completions } = rings;
        let wq_region = DmaRegion::new(adapter, work.mem())?;
        let cq_region = DmaRegion::new(adapter, completions.mem())?;
        let object = adapter.call(&CreateWqObj::new(
            vport,
            kind,
            wq_region.memory(),
            cq_region.memory(),
            events.id(),
        ))?;
        if object.wq_obj == INVALID_MANA_HANDLE {
            adapter.complain(format_args!("the device created a queue without a handle"));
            return Err(EPROTO);
        }
        wq_region.taken_over();
        cq_region.taken_over();
        let queue = Self {
            adapter: adapter.clone(),
            kind,
            handle: object.wq_obj,
            id: object.wq_id,
            cq_id: object.cq_id,
            work,
            completions,
            _events: events,
        };
        // Checked last: from here on, dropping the queue destroys it.
        let max = regs::QUEUE_ID.max();
        if queue.id > max || queue.cq_id > max {
            adapter.complain(format_args!(
                "the device gave a queue the id {}, its completions {}",
                queue.id, queue.cq_id
            ));
            return Err(EPROTO);
        }
        Ok(queue)
    }

    /// Id of the work queue, 24 bits.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Id of the completion queue, 24 bits.
    pub(crate) fn cq_id(&self) -> u32 {
        self.cq_id
    }

    /// Handle of both.
    pub(crate) fn handle(&self) -> u64 {
        self.handle
    }

    /// Memory of the work queue.
    pub(crate) fn work(&self) -> &WorkRing {
        &self.work
    }

    /// Memory of the completion queue.
    pub(crate) fn completions(&self) -> &CompletionRing {
        &self.completions
    }

    /// The consumer of the completion queue; there may be only one.
    pub(crate) fn reader(&self) -> Result<CompletionReader> {
        let doorbell = self.adapter.doorbell(regs::DOORBELL_OFFSET_CQ)?;
        CompletionReader::new(&self.completions, self.cq_id, doorbell)
    }

    /// The doorbell of the work queue.
    pub(crate) fn doorbell(&self) -> Result<Doorbell64> {
        self.adapter.doorbell(match self.kind {
            QueueType::Send => regs::DOORBELL_OFFSET_SQ,
            QueueType::Receive => regs::DOORBELL_OFFSET_RQ,
            QueueType::Event => return Err(EINVAL),
        })
    }
}

impl Drop for WorkQueue {
    fn drop(&mut self) {
        self.adapter
            .take_back(&DestroyWqObj::new(self.kind, self.handle));
    }
}
