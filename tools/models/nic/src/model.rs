// SPDX-License-Identifier: GPL-2.0
//! The seam between one NIC model and the common parts.

use std::{collections::VecDeque, time::Instant};

use serde_json::{json, Value};

use crate::{
    dma::GuestDma,
    knobs::{Fault, Knobs},
    msix::MsiX,
    report::Report,
    report::Rule,
    wire::Wire,
};

/// One memory BAR of the function.
#[derive(Clone, Debug)]
pub struct Bar {
    /// BAR number, 0-5. A 64-bit BAR also takes the next number.
    pub index: u8,
    /// Size in bytes, a power of two, at least 4096.
    pub size: u64,
    /// Whether the BAR is 64 bits wide (and then prefetchable).
    pub is_64bit: bool,
}

/// What the PCI function says it is.
#[derive(Clone, Debug)]
pub struct Identity {
    /// PCI vendor id.
    pub vendor: u16,
    /// PCI device id.
    pub device: u16,
    /// PCI subsystem vendor id.
    pub subsystem_vendor: u16,
    /// PCI subsystem id.
    pub subsystem: u16,
    /// Class code, 24 bits: 0x020000 is an Ethernet controller.
    pub class: u32,
    /// Revision id.
    pub revision: u8,
    /// The BARs whose accesses reach [`Model::read`] and [`Model::write`].
    pub bars: Vec<Bar>,
    /// Number of MSI-X vectors, 1 to 2048; the knob `msix_vectors` lowers it.
    pub msix_vectors: u16,
    /// BAR that holds the MSI-X table and PBA, and nothing else. Not one of `bars`.
    pub msix_bar: u8,
}

/// What the model can reach: guest memory, interrupts, wires, report and knobs.
pub struct Bus {
    /// Guest memory.
    pub dma: GuestDma,
    /// Interrupts.
    pub irq: MsiX,
    /// One wire per port.
    pub wires: Vec<Wire>,
    /// Counters and violations.
    pub report: Report,
    /// Settings that change behaviour, for tests.
    pub knobs: Knobs,
    /// Commands that the driver sent lately.
    pub commands: Commands,
}

impl Bus {
    /// Notes that the driver sent a command, and tells how it has to fail, if it has to. A model calls this once for
    /// each command, before it executes it.
    pub fn command(&mut self, opcode: u64, name: &str) -> Option<Fault> {
        self.report.add(format!("command.{name}"), 1);
        let fault = self.knobs.command_fault(opcode, name);
        self.commands.note(name, fault);
        fault
    }
}

/// The commands that the driver sent since somebody asked, oldest first.
#[derive(Default)]
pub struct Commands(VecDeque<(String, Option<Fault>)>);

/// Stands among the names of commands for a reset of the function.
const RESET: &str = "RESET";

impl Commands {
    /// How many are kept.
    const KEPT: usize = 4096;

    fn note(&mut self, name: &str, fault: Option<Fault>) {
        if self.0.len() == Self::KEPT {
            self.0.pop_front();
        }
        self.0.push_back((name.to_owned(), fault));
    }

    /// The function was reset: what comes next is a start from nothing.
    pub(crate) fn reset(&mut self) {
        self.note(RESET, None);
    }

    /// Their names and faults as JSON; forgets them.
    pub(crate) fn take(&mut self) -> Value {
        let each = self.0.drain(..);
        each.map(|(name, fault)| json!([name, fault.map(Fault::name)]))
            .collect()
    }
}

/// One NIC. All calls come from the one thread of the event loop and must not block.
pub trait Model {
    /// What the PCI function says it is; asked once, before the client connects.
    fn identity(&self) -> Identity;

    /// All violation rules of this model, beside the common ones.
    fn rules(&self) -> &'static [&'static Rule] {
        &[]
    }

    /// Names of the knobs that only this model has; see [`Knobs::number`] and [`Knobs::text`].
    fn knobs(&self) -> &'static [&'static str] {
        &[]
    }

    /// MMIO read of `len` (1, 2, 4 or 8) bytes, naturally aligned and inside the BAR.
    fn read(&mut self, bus: &mut Bus, bar: u8, offset: u64, len: usize) -> u64;

    /// MMIO write of `len` (1, 2, 4 or 8) bytes, naturally aligned and inside the BAR.
    fn write(&mut self, bus: &mut Bus, bar: u8, offset: u64, len: usize, value: u64);

    /// A frame (without FCS) came in from the wire of `port`.
    fn frame(&mut self, bus: &mut Bus, port: usize, frame: &[u8]);

    /// Whether the driver has dealt with all that the port gave it, waits for an interrupt, and has room for this
    /// many frames on each queue.
    fn is_rx_ready(&self, port: usize, frames: usize) -> bool;

    /// Deferred work; runs after each batch of messages and frames, and when the deadline that it
    /// returned has come. Returns the next deadline.
    fn tick(&mut self, bus: &mut Bus, now: Instant) -> Option<Instant>;

    /// PCI reset (FLR or reset of the machine): back to the state of power-on.
    fn reset(&mut self, bus: &mut Bus);

    /// The cable of `port` was plugged in or pulled out; the wire itself already knows.
    fn link(&mut self, bus: &mut Bus, port: usize, up: bool);

    /// A command on the control socket that only this model knows.
    ///
    /// # Errors
    /// A sentence for the user who sent the command.
    fn control(&mut self, bus: &mut Bus, command: &str, args: &Value) -> Result<Value, String>;
}
