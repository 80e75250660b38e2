// SPDX-License-Identifier: GPL-2.0
//! A PCI function without a network: shows how accesses of a guest arrive, and what the rig can do.
//!
//! | BAR 0 offset | register |
//! |---|---|
//! | 0x00 | a value of 8 bytes, also readable and writable in parts |
//! | 0x08 | write: raise this MSI-X vector |
//! | 0x10 | write: store the value at this guest address |
//! | 0x18 | write: load the value from this guest address |
//! | 0x20 | write: a command of this number, which does nothing |
//!
//! The report counts the accesses by size: `read.4`, `write.8`, ...

use std::{process::ExitCode, time::Instant};

use nic::{Bar, Bus, Identity, Model};
use serde_json::Value;

#[derive(Default)]
struct Probe {
    value: [u8; 8],
}

impl Model for Probe {
    fn identity(&self) -> Identity {
        Identity {
            vendor: 0x1234,
            device: 0x0001,
            subsystem_vendor: 0x1234,
            subsystem: 0x0002,
            // No class that a driver of the guest would claim.
            class: 0xff_00_00,
            revision: 3,
            bars: vec![Bar {
                index: 0,
                size: 1 << 20,
                is_64bit: true,
            }],
            msix_vectors: 4,
            msix_bar: 2,
        }
    }

    fn read(&mut self, bus: &mut Bus, _bar: u8, offset: u64, len: usize) -> u64 {
        bus.report.add(format!("read.{len}"), 1);
        let mut value = [0; 8];
        if offset < 8 {
            let at = offset as usize;
            value[..len].copy_from_slice(&self.value[at..at + len]);
        }
        u64::from_le_bytes(value)
    }

    fn write(&mut self, bus: &mut Bus, _bar: u8, offset: u64, len: usize, value: u64) {
        bus.report.add(format!("write.{len}"), 1);
        match offset {
            0..8 => {
                let at = offset as usize;
                self.value[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
            }
            0x08 => bus.irq.raise(value as u16),
            // A failed access is in the report already.
            0x10 => drop(bus.dma.write(value, &self.value)),
            0x18 => drop(bus.dma.read(value, &mut self.value)),
            0x20 => drop(bus.command(value, "NOTHING")),
            _ => {}
        }
    }

    fn frame(&mut self, _bus: &mut Bus, _port: usize, _frame: &[u8]) {}

    fn is_rx_ready(&self, _port: usize, _frames: usize) -> bool {
        false
    }

    fn tick(&mut self, _bus: &mut Bus, _now: Instant) -> Option<Instant> {
        None
    }

    fn reset(&mut self, _bus: &mut Bus) {
        self.value = [0; 8];
    }

    fn link(&mut self, _bus: &mut Bus, _port: usize, _up: bool) {}

    fn control(&mut self, _bus: &mut Bus, command: &str, _args: &Value) -> Result<Value, String> {
        Err(format!("no command \"{command}\""))
    }
}

fn main() -> ExitCode {
    nic::run::run("model-probe", |_ports| Probe::default())
}
