// SPDX-License-Identifier: GPL-2.0
//! Server side of the vfio-user protocol: a PCI function served to QEMU's `vfio-user-pci` over a unix socket.
//!
//! A [`Device`] says what it is and takes accesses; a [`Connection`] turns messages into calls of it. The
//! caller owns the event loop: it polls the connection's file descriptor together with its own and calls
//! [`Connection::serve`] when it is readable.
//!
//! # Why not the crate `vfio_user`
//! Version 0.1.7 hides the stream behind a blocking `run()`, so a device cannot sleep on its wires and its guest
//! at the same time; it announces fixed capabilities without `write_multiple`, which makes each posted write a
//! message of its own; its error replies carry errno 0 and are sent where no reply was asked for; an unknown
//! command leaves its payload in the stream. What a NIC model needs of the protocol is this small crate.
//!
//! # What is left out
//! Regions that the client maps (they turn off posting of writes in QEMU), ioeventfds, migration, and DMA by
//! message: every mapping of RAM carries a file descriptor in QEMU with a shared memory backend.

mod connection;
mod wire;

use std::os::fd::OwnedFd;

pub use connection::{Connection, ProtocolError, State};
pub use rustix::io::Errno;

/// Index of the PCI configuration space region; regions 0 to 5 are the BARs.
pub const CONFIG_REGION: u32 = 7;
/// Number of regions of a PCI function: six BARs, ROM, configuration space, VGA.
pub const REGIONS: u32 = 9;
/// Index of the MSI-X interrupts.
pub const MSIX_IRQ: u32 = 2;
/// Number of interrupt indices of a PCI function: INTx, MSI, MSI-X, error, request.
pub const IRQS: u32 = 5;

/// A range of guest memory that the device may access from now on.
#[derive(Debug)]
pub struct DmaMap {
    /// First bus address of the range.
    pub address: u64,
    /// Length in bytes.
    pub size: u64,
    /// Where the range begins in `fd`.
    pub offset: u64,
    /// Whether the device may read it.
    pub read: bool,
    /// Whether the device may write it.
    pub write: bool,
    /// The memory; absent where the range is not RAM (for example a ROM).
    pub fd: Option<OwnedFd>,
}

/// What the client wants done with some interrupts of one index.
#[derive(Debug)]
pub enum IrqAction {
    /// Signal these eventfds from now on, in the order of the vectors; no eventfd disables the vectors.
    Connect(Vec<OwnedFd>),
    /// Disable all vectors of the index.
    DisableAll,
    /// Raise the vectors as if the device had.
    Trigger,
    /// Keep the vectors pending instead of raising them.
    Mask,
    /// Undo [`IrqAction::Mask`].
    Unmask,
}

/// A PCI function.
///
/// Errors are sent to the client, which prints them.
pub trait Device {
    /// Size in bytes of a region; 0 if there is none of this index.
    fn region_size(&self, region: u32) -> u64;

    /// Number of interrupts of an index; 0 if it has none.
    fn irq_count(&self, index: u32) -> u32;

    /// Reads from a region; the range is inside it.
    fn read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> Result<(), Errno>;

    /// Writes to a region; the range is inside it.
    fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<(), Errno>;

    /// Maps guest memory.
    fn dma_map(&mut self, map: DmaMap) -> Result<(), Errno>;

    /// Unmaps a range of guest memory.
    fn dma_unmap(&mut self, address: u64, size: u64) -> Result<(), Errno>;

    /// Unmaps all guest memory.
    fn dma_unmap_all(&mut self);

    /// Acts on the vectors `start .. start + count`, which exist.
    fn set_irqs(
        &mut self,
        index: u32,
        start: u32,
        count: u32,
        action: IrqAction,
    ) -> Result<(), Errno>;

    /// Resets the function.
    fn reset(&mut self);
}
