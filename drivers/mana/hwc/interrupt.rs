// SPDX-License-Identifier: GPL-2.0

//! The interrupt of the hardware channel.

use core::sync::atomic::Ordering;

use kernel::{
    device,
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    }, //
};
use netdev::{
    irq::{
        Handler,
        IrqReturn, //
    },
    mmio::{
        Bar,
        Doorbell64, //
    },
    napi::Arm, //
};

use super::{
    wire::{
        InitData,
        Reconfig,
        RxOob, //
    },
    Shared, //
};
use crate::{
    gdma::{
        cq::{
            CompletionReader,
            CompletionRing, //
        },
        eq::{
            EventReader,
            EventRing, //
        },
        Event, //
    },
    link::Trouble,
    regs::{
        self,
        Layout, //
    }, //
};

/// Handles the events of the channel. It owns the rings that it reads.
pub(super) struct HwcInterrupt {
    dev: ARef<device::Device>,
    shared: Arc<Shared>,
    bar: Arc<Bar>,
    layout: Layout,
    events: EventRing,
    event_reader: EventReader,
    /// Known once the device has told the id and the page.
    event_doorbell: Option<Doorbell64>,
    completions: CompletionRing,
    /// Known once the device has told the ids.
    completion_reader: Option<CompletionReader>,
}

impl HwcInterrupt {
    /// Handles what comes into `events` and `completions`, into which the device
    /// has written nothing yet.
    pub(super) fn new(
        dev: ARef<device::Device>,
        shared: Arc<Shared>,
        bar: Arc<Bar>,
        layout: Layout,
        events: EventRing,
        completions: CompletionRing,
    ) -> Result<Self> {
        Ok(Self {
            dev,
            shared,
            bar,
            layout,
            event_reader: EventReader::new(&events)?,
            events,
            event_doorbell: None,
            completions,
            completion_reader: None,
        })
    }

    fn event(&mut self, event: Event) {
        let shared = &self.shared;
        match event {
            Event::Completion { cq: _ } => self.complete(),
            Event::Test => shared.tested.complete(),
            // Once the channel is up, where it is read and what rings it does not change under it.
            Event::HwcInitEqIdDb { .. } | Event::HwcInitData { .. } | Event::HwcInitDone
                if self.completion_reader.is_some() =>
            {
                if netdev::log::ratelimit() {
                    dev_warn!(
                        self.dev,
                        "the device starts a channel that is up, ignored\n"
                    );
                }
            }
            Event::HwcInitEqIdDb { eq, doorbell } => {
                shared.eq.store(eq, Ordering::Relaxed);
                shared.doorbell_page.store(doorbell, Ordering::Relaxed);
                self.event_doorbell = self.doorbell(regs::DOORBELL_OFFSET_EQ);
            }
            Event::HwcInitData { kind, value } => {
                // CAST: `usize` has 64 bits.
                if let Some(slot) = shared.init.get(kind as usize) {
                    slot.store(value, Ordering::Relaxed);
                }
            }
            Event::HwcInitDone => {
                self.completion_reader =
                    self.doorbell(regs::DOORBELL_OFFSET_CQ)
                        .and_then(|doorbell| {
                            let id = shared.init(InitData::CqId);
                            CompletionReader::new(&self.completions, id, doorbell).ok()
                        });
                shared.ready.complete();
            }
            Event::HwcReconfig { kind, value } => match Reconfig::new(kind, value) {
                Reconfig::Timeout(ms) => shared.set_timeout_ms(ms),
                Reconfig::Link(up) => shared.link.changed(up),
                Reconfig::Unknown(kind) => self.unexpected("reconfiguration", kind),
            },
            Event::ResetRequest => {
                if netdev::log::ratelimit() {
                    dev_warn!(self.dev, "the device is about to reset\n");
                }
                shared.link.lose(Trouble::ResetRequest);
            }
            Event::Unknown(kind) => self.unexpected("event", kind),
        }
    }

    /// Looks for the response among the completions.
    fn complete(&mut self) {
        let Some(reader) = &mut self.completion_reader else {
            return;
        };
        // At most one lap, as of events.
        for _ in 0..self.completions.size().get() {
            let Some(cqe) = reader.next(&self.completions) else {
                break;
            };
            // The request has left its buffer, which is not used again before the
            // response.
            if cqe.is_sq() {
                continue;
            }
            if cqe.wq() != self.shared.init(InitData::RqId) {
                continue;
            }
            let RxOob { wqe_offset, len } = RxOob::from(&cqe.data);
            let answer = u64::from(len) << 32 | u64::from(wqe_offset);
            self.shared.answer.store(answer, Ordering::Relaxed);
            self.shared.answered.complete();
        }
        reader.settle(Arm::Yes);
    }

    fn doorbell(&self, offset: usize) -> Option<Doorbell64> {
        let page = self.shared.doorbell_page.load(Ordering::Relaxed);
        let page = self.layout.doorbell_page(page)?;
        Doorbell64::new(&self.bar, page + offset).ok()
    }

    fn unexpected(&self, what: &str, kind: u32) {
        if netdev::log::ratelimit() {
            dev_warn!(
                self.dev,
                "unknown {} {} from the device, ignored\n",
                what,
                kind
            );
        }
    }
}

impl Handler for HwcInterrupt {
    fn handle(&mut self) -> IrqReturn {
        // At most one lap, so that a device gone mad does not keep the CPU.
        for _ in 0..self.events.size().get() {
            let Some(event) = self.event_reader.next(&self.events) else {
                break;
            };
            self.event(event);
        }
        if self.event_reader.take_overrun() {
            dev_err!(
                self.dev,
                "the device overran its event queue; remove and rescan the PCI function\n"
            );
        }
        if let Some(doorbell) = &self.event_doorbell {
            let id = self.shared.eq.load(Ordering::Relaxed);
            self.event_reader.arm(doorbell, id);
        }
        IrqReturn::Handled
    }
}
