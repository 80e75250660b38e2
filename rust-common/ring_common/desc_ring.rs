// SPDX-License-Identifier: GPL-2.0

//! A descriptor ring in consistent DMA memory.

use kernel::{
    device,
    prelude::*, //
};
use netdev::dma::{
    CoherentMem,
    DmaAddr, //
};
use ring_core::index::RingSize;
use zerocopy::{
    FromBytes,
    Immutable,
    IntoBytes, //
};

/// A ring of units of `UNIT` bytes that CPU and device share: one allocation for the life of a queue.
///
/// What is written past the last unit continues at the first one, as devices have it whose WQEs
/// span several units.
///
/// Context: any. Locking: none; who may write which units is the matter of the queue's positions.
///
/// # Invariants
///
/// - `mem` has `UNIT * size.get()` bytes.
/// - `UNIT` is not 0.
pub struct DescRing<const UNIT: usize> {
    mem: CoherentMem,
    size: RingSize,
}

impl<const UNIT: usize> DescRing<UNIT> {
    /// Makes a ring of `units` zeroed units. Process context.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if `units` is below 2 or the ring has more bytes than can be counted.
    /// - `ENOMEM` if there is no such memory.
    pub fn new(dev: &device::Device, units: u32) -> Result<Self> {
        const { assert!(UNIT != 0 && UNIT <= 4096) };
        let size = RingSize::new(units).ok_or(EINVAL)?;
        // CAST: `usize` has 64 bits on every target.
        let len = (units as usize).checked_mul(UNIT).ok_or(EINVAL)?;
        let mem = CoherentMem::alloc(dev, len)?;
        // INVARIANT: `len` is `UNIT * units`.
        Ok(Self { mem, size })
    }

    /// Number of units.
    pub fn size(&self) -> RingSize {
        self.size
    }

    /// Bytes of the ring.
    pub fn len_bytes(&self) -> usize {
        self.mem.len()
    }

    /// Address of the first unit.
    pub fn addr(&self) -> DmaAddr<'_> {
        self.mem.base()
    }

    /// The memory, for devices that want a list of its pages.
    pub fn mem(&self) -> &CoherentMem {
        &self.mem
    }

    /// Writes `bytes` from unit `slot` on; what reaches past the end continues at the start.
    ///
    /// A `slot` outside of the ring, or more bytes than the ring has, changes nothing.
    #[inline]
    pub fn write_bytes(&self, slot: u32, bytes: &[u8]) {
        // CAST: `usize` has 64 bits on every target.
        let offset = (slot as usize).wrapping_mul(UNIT);
        let Some(room) = self.mem.len().checked_sub(offset) else {
            return;
        };
        if bytes.len() <= room {
            self.mem.write_bytes(offset, bytes);
        } else if let Some((first, second)) = bytes.split_at_checked(room) {
            self.mem.write_bytes(offset, first);
            self.mem.write_bytes(0, second);
        }
    }

    /// Writes one descriptor at unit `slot`.
    #[inline]
    pub fn write<T: IntoBytes + Immutable>(&self, slot: u32, desc: &T) {
        self.write_bytes(slot, desc.as_bytes());
    }

    /// Takes a copy of the descriptor at unit `slot`, which the device may write at any time.
    ///
    /// `None` where it does not lie inside of the ring.
    #[inline]
    pub fn read<T: FromBytes>(&self, slot: u32) -> Option<T> {
        // CAST: `usize` has 64 bits on every target.
        self.mem.read((slot as usize).wrapping_mul(UNIT))
    }
}
