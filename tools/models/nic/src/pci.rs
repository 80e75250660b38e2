// SPDX-License-Identifier: GPL-2.0
//! PCI configuration space of an Express endpoint with power management and MSI-X.
//!
//! The client emulates what decides where BARs and the MSI-X table appear in the guest; it passes every write
//! on, so that this side sees bus mastering and function level resets.

use crate::{Bar, Identity};

/// Size of the configuration space of a PCI Express function.
pub const CONFIG_SIZE: usize = 4096;

// Offsets in the type 0 header (PCI Local Bus Specification 3.0, 6.1).
const VENDOR: usize = 0x00;
const DEVICE: usize = 0x02;
const COMMAND: usize = 0x04;
const STATUS: usize = 0x06;
const REVISION: usize = 0x08;
const CLASS: usize = 0x09;
const BAR0: usize = 0x10;
const SUBSYSTEM_VENDOR: usize = 0x2c;
const SUBSYSTEM: usize = 0x2e;
const CAPABILITIES: usize = 0x34;
const INTERRUPT_LINE: usize = 0x3c;

const COMMAND_MASTER: u8 = 1 << 2;
const STATUS_CAPABILITIES: u16 = 1 << 4;
const BAR_64BIT_PREFETCHABLE: u32 = 0xc;

// Where the capabilities are in this function, and their ids.
const PM: usize = 0x40;
const PM_ID: u8 = 0x01;
const MSIX: usize = 0x50;
const MSIX_ID: u8 = 0x11;
const EXPRESS: usize = 0x60;
const EXPRESS_ID: u8 = 0x10;

// Power management capability: version 3, no soft reset from D3hot.
const PM_CAPABILITIES: u16 = 0x0003;
const PM_CONTROL: usize = PM + 4;
const PM_NO_SOFT_RESET: u16 = 1 << 3;
const PM_STATE: u16 = 3;

const MSIX_CONTROL: usize = MSIX + 2;
const MSIX_TABLE: usize = MSIX + 4;
const MSIX_PBA: usize = MSIX + 8;
const MSIX_ENABLE_AND_MASK: u16 = 0xc000;

// PCI Express capability (PCI Express Base Specification, 7.5.3): version 2, endpoint.
const EXPRESS_CAPABILITIES: u16 = 0x0002;
const EXPRESS_DEVICE: usize = EXPRESS + 0x04;
const EXPRESS_DEVICE_CONTROL: usize = EXPRESS + 0x08;
const EXPRESS_LINK: usize = EXPRESS + 0x0c;
const EXPRESS_LINK_CONTROL: usize = EXPRESS + 0x10;
const EXPRESS_LINK_STATUS: usize = EXPRESS + 0x12;
const EXPRESS_DEVICE_CONTROL_2: usize = EXPRESS + 0x28;
/// Role-based error reporting, function level reset, payloads up to 256 bytes.
const DEVICE_CAPABILITIES: u32 = (1 << 28) | (1 << 15) | 1;
const DEVICE_CONTROL_FLR: u16 = 1 << 15;
/// Relaxed ordering and no snoop enabled, read requests up to 512 bytes.
const DEVICE_CONTROL_DEFAULT: u16 = 0x2810;
/// 8 GT/s, 8 lanes.
const LINK: u16 = 0x0083;

/// What a write to configuration space asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing beyond the registers.
    None,
    /// Function level reset.
    Reset,
}

/// The registers, and which of their bits the driver may write.
pub struct Config {
    identity: Identity,
    registers: Box<[u8; CONFIG_SIZE]>,
    writable: Box<[u8; CONFIG_SIZE]>,
}

/// Size of the BAR for the MSI-X table and PBA: half of it for each.
pub fn msix_bar_size(vectors: u16) -> u64 {
    2 * (u64::from(vectors) * 16).next_power_of_two().max(4096)
}

impl Config {
    /// The configuration space after power-on.
    pub fn new(identity: &Identity) -> Self {
        let mut config = Self {
            identity: identity.clone(),
            registers: Box::new([0; CONFIG_SIZE]),
            writable: Box::new([0; CONFIG_SIZE]),
        };
        config.reset();
        config
    }

    /// Back to the state after power-on.
    pub fn reset(&mut self) {
        self.registers.fill(0);
        self.writable.fill(0);
        let identity = self.identity.clone();
        self.set(VENDOR, &identity.vendor.to_le_bytes());
        self.set(DEVICE, &identity.device.to_le_bytes());
        // Memory space, bus master, parity and SERR reporting, INTx disable.
        self.set_writable(COMMAND, &0x0546u16.to_le_bytes());
        self.set(STATUS, &STATUS_CAPABILITIES.to_le_bytes());
        self.set(REVISION, &[identity.revision]);
        self.set(CLASS, &identity.class.to_le_bytes()[..3]);
        self.set(SUBSYSTEM_VENDOR, &identity.subsystem_vendor.to_le_bytes());
        self.set(SUBSYSTEM, &identity.subsystem.to_le_bytes());
        self.set_writable(INTERRUPT_LINE, &[0xff]);
        for bar in &identity.bars {
            self.bar(bar);
        }
        let msix_size = msix_bar_size(identity.msix_vectors);
        self.bar(&Bar {
            index: identity.msix_bar,
            size: msix_size,
            is_64bit: false,
        });

        self.set(CAPABILITIES, &[PM as u8]);
        self.set(PM, &[PM_ID, MSIX as u8]);
        self.set(PM + 2, &PM_CAPABILITIES.to_le_bytes());
        self.set(PM_CONTROL, &PM_NO_SOFT_RESET.to_le_bytes());
        self.set_writable(PM_CONTROL, &PM_STATE.to_le_bytes());

        self.set(MSIX, &[MSIX_ID, EXPRESS as u8]);
        self.set(MSIX_CONTROL, &(identity.msix_vectors - 1).to_le_bytes());
        self.set_writable(MSIX_CONTROL, &MSIX_ENABLE_AND_MASK.to_le_bytes());
        let bar = u32::from(identity.msix_bar);
        self.set(MSIX_TABLE, &bar.to_le_bytes());
        self.set(MSIX_PBA, &((msix_size as u32 / 2) | bar).to_le_bytes());

        self.set(EXPRESS, &[EXPRESS_ID, 0]);
        self.set(EXPRESS + 2, &EXPRESS_CAPABILITIES.to_le_bytes());
        self.set(EXPRESS_DEVICE, &DEVICE_CAPABILITIES.to_le_bytes());
        self.set(
            EXPRESS_DEVICE_CONTROL,
            &DEVICE_CONTROL_DEFAULT.to_le_bytes(),
        );
        self.set_writable(EXPRESS_DEVICE_CONTROL, &(!DEVICE_CONTROL_FLR).to_le_bytes());
        self.set(EXPRESS_LINK, &u32::from(LINK).to_le_bytes());
        self.set_writable(EXPRESS_LINK_CONTROL, &0x01cbu16.to_le_bytes());
        self.set(EXPRESS_LINK_STATUS, &LINK.to_le_bytes());
        self.set_writable(EXPRESS_DEVICE_CONTROL_2, &0x001fu16.to_le_bytes());
    }

    fn bar(&mut self, bar: &Bar) {
        let at = BAR0 + 4 * usize::from(bar.index);
        let mask = !(bar.size - 1);
        if bar.is_64bit {
            self.set(at, &BAR_64BIT_PREFETCHABLE.to_le_bytes());
            self.set_writable(at, &mask.to_le_bytes());
        } else {
            self.set_writable(at, &(mask as u32).to_le_bytes());
        }
    }

    fn set(&mut self, at: usize, bytes: &[u8]) {
        self.registers[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn set_writable(&mut self, at: usize, bytes: &[u8]) {
        self.writable[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Reads registers; what is beyond the configuration space is 0.
    pub fn read(&self, offset: usize, data: &mut [u8]) {
        for (byte, at) in data.iter_mut().zip(offset..) {
            *byte = self.registers.get(at).copied().unwrap_or(0);
        }
    }

    /// Writes the writable bits of registers.
    pub fn write(&mut self, offset: usize, data: &[u8]) -> Effect {
        let mut effect = Effect::None;
        for (&byte, at) in data.iter().zip(offset..CONFIG_SIZE) {
            let mask = self.writable[at];
            self.registers[at] = (self.registers[at] & !mask) | (byte & mask);
            if at == EXPRESS_DEVICE_CONTROL + 1 && byte & (DEVICE_CONTROL_FLR >> 8) as u8 != 0 {
                effect = Effect::Reset;
            }
        }
        effect
    }

    /// Whether the function may access memory.
    pub fn bus_master(&self) -> bool {
        self.registers[COMMAND] & COMMAND_MASTER != 0
    }
}
