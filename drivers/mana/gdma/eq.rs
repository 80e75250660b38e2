// SPDX-License-Identifier: GPL-2.0

//! Event queues.

use core::mem::offset_of;

use kernel::{
    device,
    prelude::*, //
};
use netdev::{
    dma,
    mmio::Doorbell64, //
};
use ring_common::desc_ring::DescRing;

use super::{
    laps::Laps,
    Eqe,
    Event, //
};
use crate::regs;

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
        let slot = self.laps.slot();
        // CAST: `usize` has 64 bits.
        let info = (slot as usize) * size_of::<Eqe>() + offset_of!(Eqe, info);
        let info = ring.mem().read::<u32>(info)?;
        if !self.laps.is_ready(Eqe::owner(info)) {
            return None;
        }
        dma::rmb();
        let eqe = ring.read::<Eqe>(slot)?;
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
