// SPDX-License-Identifier: GPL-2.0
//! A function of registers only, for tests of what is around a model.

use std::time::Instant;

use nic::{Bar, Bus, Function, Identity, Knobs, Model, Report, Wire};
use serde_json::{json, Value};

/// Notes what it was asked.
#[derive(Default)]
pub struct Puppet {
    pub calls: Vec<String>,
    /// Frames that its receive ring has room for.
    pub room: usize,
}

impl Model for Puppet {
    fn identity(&self) -> Identity {
        Identity {
            vendor: 0x1234,
            device: 0x5678,
            subsystem_vendor: 0x1234,
            subsystem: 0x0001,
            class: 0x02_00_00,
            revision: 1,
            bars: vec![Bar {
                index: 0,
                size: 1 << 16,
                is_64bit: true,
            }],
            msix_vectors: 300,
            msix_bar: 4,
        }
    }

    fn knobs(&self) -> &'static [&'static str] {
        &["limit"]
    }

    fn read(&mut self, _bus: &mut Bus, bar: u8, offset: u64, len: usize) -> u64 {
        self.calls.push(format!("read {bar} {offset:#x} {len}"));
        0x8877_6655_4433_2211
    }

    fn write(&mut self, _bus: &mut Bus, bar: u8, offset: u64, len: usize, value: u64) {
        self.calls
            .push(format!("write {bar} {offset:#x} {len} {value:#x}"));
    }

    fn frame(&mut self, _bus: &mut Bus, port: usize, frame: &[u8]) {
        self.calls.push(format!("frame {port} {}", frame.len()));
    }

    fn is_rx_ready(&self, _port: usize, frames: usize) -> bool {
        frames <= self.room
    }

    fn tick(&mut self, _bus: &mut Bus, _now: Instant) -> Option<Instant> {
        None
    }

    fn reset(&mut self, _bus: &mut Bus) {
        self.calls.push("reset".into());
    }

    fn link(&mut self, _bus: &mut Bus, port: usize, up: bool) {
        self.calls.push(format!("link {port} {up}"));
    }

    fn control(&mut self, _bus: &mut Bus, command: &str, args: &Value) -> Result<Value, String> {
        if command == "echo" {
            Ok(json!(args))
        } else {
            Err(format!("no command \"{command}\""))
        }
    }
}

/// A function with a puppet and one wire that drops everything.
pub fn function() -> Function<Puppet> {
    let report = Report::default();
    let wires = vec![Wire::null(&report, 0)];
    let puppet = Puppet::default();
    let knobs = Knobs::new(puppet.knobs());
    Function::new(puppet, report, wires, knobs, None)
}
