// SPDX-License-Identifier: GPL-2.0
//! The PCI function: registers, shared memory, doorbells, and the session behind them.

use std::time::Instant;

use nic::{Bar, Bus, Fault, Identity, Model, Rule};
use serde_json::{json, Value};

use crate::{
    abi::{eqe, reconfig},
    limits::KNOBS,
    regs::{self, Doorbell, Place, BAR0_SIZE},
    rules,
    session::{hwc_id, Session},
    shm::{Establish, Request, Shm},
    stats::GfStats,
};

/// Numbers of the requests in the shared memory for [`Bus::command`], where they share the space with commands.
const ESTABLISH_HWC: u64 = (1 << 32) | 1;
const DESTROY_HWC: u64 = (1 << 32) | 2;

/// One MANA VF.
pub struct Mana {
    ports: usize,
    shm: Shm,
    /// Request in the shared memory that the PF has not served yet.
    pending: Option<Request>,
    session: Option<Session>,
    /// The driver cannot know whether there is a session: a request for one failed on purpose, or a reset ended it.
    is_unsure: bool,
    /// Statistics outlive sessions.
    stats: GfStats,
}

impl Mana {
    /// A VF with this many ports.
    pub fn new(ports: usize) -> Self {
        Self {
            ports,
            shm: Shm::default(),
            pending: None,
            session: None,
            is_unsure: false,
            stats: GfStats::default(),
        }
    }

    fn end_session(&mut self, bus: &Bus) {
        if let Some(session) = self.session.take() {
            self.stats = session.stats;
        }
        bus.report.gauge("live_objects").set(0);
        bus.report.excuse(false);
    }

    fn write_shm(&mut self, bus: &mut Bus, offset: u64, value: u32) {
        if self.shm.is_busy() {
            bus.report
                .violate(&rules::SHM_BUSY, format_args!("{value:#x} at {offset:#x}"));
            return;
        }
        self.pending = self.shm.write(offset, value);
        if bus.knobs.complete_inside_doorbell {
            self.serve_shm(bus);
        }
    }

    /// Serves the request in the shared memory, if there is one.
    fn serve_shm(&mut self, bus: &mut Bus) {
        let Some(request) = self.pending.take() else {
            return;
        };
        let fault = match request {
            Request::Establish(_) => bus.command(ESTABLISH_HWC, "ESTABLISH_HWC"),
            Request::Destroy => bus.command(DESTROY_HWC, "DESTROY_HWC"),
            Request::Malformed(_) => None,
        };
        let is_done = match request {
            _ if matches!(fault, Some(Fault::Error | Fault::Nothing | Fault::Die)) => false,
            Request::Establish(at) => self.establish(bus, &at),
            Request::Destroy => self.destroy(bus),
            Request::Malformed(header) => {
                bus.report
                    .violate(&rules::SHM_MESSAGE, format_args!("header {header:#x}"));
                false
            }
        };
        match fault {
            None => self.shm.answer(is_done),
            Some(fault) => {
                self.is_unsure = true;
                bus.report.excuse(self.session.is_some());
                self.shm.fail(fault);
            }
        }
    }

    fn establish(&mut self, bus: &mut Bus, at: &Establish) -> bool {
        if self.session.is_some() {
            // A driver that was refused the end leaves, and the next one starts anew.
            if !self.is_unsure && !bus.report.has_lied() {
                bus.report
                    .violate(&rules::SHM_ORDER, "ESTABLISH_HWC while an HWC is there");
                return false;
            }
            self.end_session(bus);
        }
        if at.vector >= bus.irq.count() {
            bus.report.violate(
                &rules::SHM_VECTOR,
                format_args!("vector {} of {}", at.vector, bus.irq.count()),
            );
            return false;
        }
        bus.report.add("hwc_established", 1);
        self.is_unsure = false;
        let session = Session::establish(bus, at, self.ports, self.stats);
        session.tell_live(&bus.report);
        self.session = Some(session);
        true
    }

    fn destroy(&mut self, bus: &Bus) -> bool {
        let Some(session) = &self.session else {
            // A driver that resets the function in the middle of its work still takes down what it had set up.
            if std::mem::take(&mut self.is_unsure) {
                return true;
            }
            bus.report
                .violate(&rules::SHM_ORDER, "DESTROY_HWC without an HWC");
            return false;
        };
        if session.is_registered {
            bus.report
                .violate(&rules::HWC_DESTROY_IN_USE, "DESTROY_HWC");
        }
        self.end_session(bus);
        true
    }

    fn write_doorbell(&mut self, bus: &mut Bus, page: u32, offset: u64, len: usize, value: u64) {
        let doorbell = Doorbell::decode(offset, value).filter(|_| len == 8);
        let Some(doorbell) = doorbell else {
            bus.report.violate(
                &rules::DOORBELL_ACCESS,
                format_args!("{len} bytes, {value:#x} at {offset:#x} of page {page}"),
            );
            return;
        };
        let Some(session) = &mut self.session else {
            // The interrupt handler that saw the last answer rings the HWC's doorbells while another CPU
            // already destroys the HWC: no fault of the driver.
            bus.report.add("doorbell_after_destroy", 1);
            return;
        };
        session.doorbell(bus, page, doorbell);
        if bus.knobs.complete_inside_doorbell {
            session.work(bus);
        }
    }

    /// Posts an event on the HWC's EQ, as the PF does on its own; false if there is no HWC.
    fn hwc_event(&mut self, bus: &mut Bus, kind: u8, detail: u32) -> bool {
        let Some(session) = &mut self.session else {
            return false;
        };
        if matches!(kind, eqe::HWC_RESET_REQUEST | eqe::HWC_FPGA_RECONFIG) {
            bus.report.excuse(true);
        }
        session.events.event(bus, hwc_id::EQ, kind, detail);
        true
    }
}

impl Model for Mana {
    fn identity(&self) -> Identity {
        Identity {
            vendor: 0x1414,
            device: 0x00ba,
            subsystem_vendor: 0x1414,
            subsystem: 0x00ba,
            class: 0x02_0000,
            revision: 0,
            bars: vec![Bar {
                index: 0,
                size: BAR0_SIZE,
                is_64bit: true,
            }],
            msix_vectors: 65,
            msix_bar: 4,
        }
    }

    fn rules(&self) -> &'static [&'static Rule] {
        rules::RULES
    }

    fn knobs(&self) -> &'static [&'static str] {
        KNOBS
    }

    fn read(&mut self, bus: &mut Bus, _bar: u8, offset: u64, len: usize) -> u64 {
        match regs::place(offset) {
            Place::Shm(byte) if len == 4 => self.shm.read(byte).into(),
            Place::Register(offset) => match regs::register(offset) {
                Some((value, size)) if size == len => value,
                _ => {
                    bus.report.violate(
                        &rules::REG_ACCESS,
                        format_args!("read of {len} bytes at {offset:#x}"),
                    );
                    0
                }
            },
            Place::Shm(_) => {
                bus.report.violate(
                    &rules::REG_ACCESS,
                    format_args!("read of {len} bytes at {offset:#x}"),
                );
                0
            }
            Place::Doorbell { page, offset } => {
                bus.report.violate(
                    &rules::DOORBELL_ACCESS,
                    format_args!("read at {offset:#x} of page {page}"),
                );
                0
            }
        }
    }

    fn write(&mut self, bus: &mut Bus, _bar: u8, offset: u64, len: usize, value: u64) {
        match regs::place(offset) {
            Place::Shm(byte) if len == 4 => self.write_shm(bus, byte, value as u32),
            Place::Doorbell { page, offset } => self.write_doorbell(bus, page, offset, len, value),
            Place::Shm(_) | Place::Register(_) => {
                bus.report.violate(
                    &rules::REG_ACCESS,
                    format_args!("write of {len} bytes at {offset:#x}"),
                );
            }
        }
    }

    fn frame(&mut self, bus: &mut Bus, port: usize, frame: &[u8]) {
        match &mut self.session {
            Some(session) => session.receive(bus, port, frame),
            None => bus.report.add("rx_disabled", 1),
        }
    }

    fn is_rx_ready(&self, port: usize, frames: usize) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.is_rx_ready(port, frames))
    }

    fn tick(&mut self, bus: &mut Bus, now: Instant) -> Option<Instant> {
        self.serve_shm(bus);
        self.session.as_mut()?.tick(bus, now)
    }

    fn reset(&mut self, bus: &mut Bus) {
        self.is_unsure |= self.session.is_some();
        self.end_session(bus);
        self.shm = Shm::default();
        self.pending = None;
    }

    /// The driver hears of the adapter's link only: it is up while one port's is.
    fn link(&mut self, bus: &mut Bus, _port: usize, up: bool) {
        let ports_up = bus
            .wires
            .iter()
            .take(self.ports)
            .filter(|wire| wire.is_up())
            .count();
        let kind = match (up, ports_up) {
            (true, 1) => reconfig::LINK_CONNECT,
            (false, 0) => reconfig::LINK_DISCONNECT,
            _ => return,
        };
        self.hwc_event(bus, eqe::HWC_SOC_RECONFIG_DATA, kind << 24);
    }

    /// `event` (args `type`, `value`): an event of the PF on the HWC's EQ.
    fn control(&mut self, bus: &mut Bus, command: &str, args: &Value) -> Result<Value, String> {
        match command {
            "event" => {
                let kind = args["type"]
                    .as_u64()
                    .and_then(|kind| u8::try_from(kind).ok());
                let kind = kind.ok_or("event takes {\"type\": 0 to 255, \"value\": number}")?;
                if !self.hwc_event(bus, kind, args["value"].as_u64().unwrap_or(0) as u32) {
                    return Err("the driver has not established the HWC".into());
                }
                Ok(json!({}))
            }
            _ => Err(format!("no command \"{command}\"; this model has: event")),
        }
    }
}
