// SPDX-License-Identifier: GPL-2.0

//! Event queues.

use core::{
    mem::offset_of,
    sync::atomic::AtomicBool, //
};

use kernel::{
    device,
    prelude::*,
    sync::Arc, //
};
use netdev::{
    dma,
    mmio::Doorbell64, //
};
use ring_common::desc_ring::DescRing;

use super::{
    laps::Laps,
    region::DmaRegion,
    Eqe,
    Event,
    MANA_PAGE_SIZE, //
};
use crate::{
    adapter::Adapter,
    hwc::commands::{
        CreateQueue,
        DisableQueue, //
    },
    regs, //
};

/// Bytes of an event queue: one event per completion queue is outstanding.
pub(crate) const EQ_SIZE: usize = 8 * MANA_PAGE_SIZE;
/// Events that the device may hold back (`LOG2_EQ_THROTTLE`).
const LOG2_EQ_THROTTLE: u32 = 3;

/// Memory of an event queue.
pub(crate) type EventRing = DescRing<{ size_of::<Eqe>() }>;

/// Makes the memory of an event queue of `bytes`.
pub(crate) fn ring(dev: &device::Device, bytes: usize) -> Result<EventRing> {
    EventRing::new(dev, u32::try_from(bytes / size_of::<Eqe>())?)
}

/// The consumer of an event queue. Hard interrupt context.
pub(crate) struct EventReader {
    laps: Laps,
    fresh: bool,
}

impl EventReader {
    /// A reader of `ring`, in which the device has written nothing yet.
    pub(crate) fn new(ring: &EventRing) -> Result<Self> {
        Ok(Self {
            laps: Laps::new(ring.size())?,
            fresh: false,
        })
    }

    /// Takes the next event of `ring`, the ring that the reader was made for.
    pub(crate) fn next(&mut self, ring: &EventRing) -> Option<Event> {
        let entry = ring.unit(self.laps.slot())?;
        let info = entry.read::<u32, { offset_of!(Eqe, info) }>();
        if !self.laps.is_ready(Eqe::owner(info)) {
            return None;
        }
        dma::rmb();
        let eqe = entry.read::<Eqe, 0>();
        self.laps.advance();
        self.fresh = true;
        Some(eqe.event())
    }

    /// Whether the device has lost events; true once. No more come then.
    pub(crate) fn take_overrun(&mut self) -> bool {
        self.laps.take_overrun()
    }

    /// Tells the device what was taken since the last call, if anything, and
    /// lets it raise the next interrupt.
    pub(crate) fn arm(&mut self, doorbell: &Doorbell64, id: u32) {
        if core::mem::take(&mut self.fresh) {
            doorbell.write(regs::eq_doorbell(id, self.laps.head()));
        }
    }
}

/// An event queue of the Ethernet function.
///
/// Its interrupt and all completion queues on it share it; the last one destroys
/// it on the device, which sleeps, and then frees the memory.
pub(crate) struct EventQueue {
    adapter: Arc<Adapter>,
    id: u32,
    ring: EventRing,
    lost: Arc<AtomicBool>,
}

impl EventQueue {
    /// Makes an event queue that raises the MSI-X vector `vector`, in the memory
    /// `ring`. Process context, sleeps.
    ///
    /// # Errors
    ///
    /// - `EPROTO` if the device gives an id that cannot be.
    /// - What the channel returns.
    pub(crate) fn new(adapter: &Arc<Adapter>, vector: u32, ring: EventRing) -> Result<Self> {
        let lost = Arc::new(AtomicBool::new(false), GFP_KERNEL)?;
        let region = DmaRegion::new(adapter, ring.mem())?;
        let created = adapter.call(&CreateQueue::event(
            adapter.registered(),
            region.memory(),
            LOG2_EQ_THROTTLE,
            vector,
        ))?;
        region.taken_over();
        let queue = Self {
            adapter: adapter.clone(),
            id: created.queue_index,
            ring,
            lost,
        };
        // Checked last: from here on, dropping the queue destroys it.
        if queue.id > regs::EQ_ID.max() {
            adapter.complain(format_args!(
                "the device gave an event queue the id {}",
                queue.id
            ));
            return Err(EPROTO);
        }
        Ok(queue)
    }

    /// Id of the queue, 16 bits.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Whether the device has overrun the queue, as its interrupt has seen.
    pub(crate) fn lost(&self) -> &Arc<AtomicBool> {
        &self.lost
    }

    /// Memory of the queue.
    pub(crate) fn ring(&self) -> &EventRing {
        &self.ring
    }
}

impl Drop for EventQueue {
    fn drop(&mut self) {
        self.adapter.take_back(&DisableQueue::event(self.id));
    }
}
