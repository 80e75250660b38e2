// SPDX-License-Identifier: GPL-2.0
//! What every NIC model needs, so that a model is only its registers, commands and rings.
//!
//! A model implements [`Model`] and hands itself to [`run`](run::run), which serves it as a PCI function over
//! vfio-user, connects its ports to wires, and answers the control socket.
//! Everything runs in one thread that sleeps in poll(2): a busy model would starve a guest of few CPUs.

pub mod control;
pub mod dma;
pub mod flood;
pub mod function;
pub mod fuzz;
pub mod knobs;
pub mod model;
pub mod msix;
pub mod offload;
pub mod pcap;
pub mod pci;
pub mod report;
pub mod run;
pub mod testing;
pub mod wire;

pub use dma::{DmaError, GuestDma};
pub use function::Function;
pub use fuzz::Fuzz;
pub use knobs::{Fault, Knobs, TX_PATIENCE};
pub use model::{Bar, Bus, Commands, Identity, Model};
pub use msix::MsiX;
pub use report::{Counter, Report, Rule};
pub use wire::Wire;

rules! {
    /// The rules that the common parts check for every model.
    pub RULES:
    DMA_UNMAPPED = "dma-unmapped", "the device was given an address that is not mapped for it";
    DMA_AFTER_UNMAP = "dma-after-unmap", "the device was still using an address when the driver unmapped it";
    DMA_READ_ONLY = "dma-read-only", "the device was told to write to memory that is mapped for reading only";
    DMA_WRITE_ONLY = "dma-write-only", "the device was told to read memory that is mapped for writing only";
    DMA_NOT_MEMORY = "dma-not-memory", "the device was given an address where no RAM is";
    DMA_BUS_MASTER_OFF = "dma-bus-master-off", "the device was told to access memory while bus mastering is off";
    IRQ_VECTOR_RANGE = "irq-vector-range", "the device was given an interrupt vector that it does not have";
    MMIO_ACCESS = "mmio-access", "a register was accessed with a size or alignment that no PCI function takes";
    FRAME_LENGTH = "frame-length", "a frame to send was shorter than an Ethernet header or longer than the port takes";
    OFFLOAD_HEADERS = "offload-headers", "an offload was asked for a frame whose headers do not fit the request";
}
