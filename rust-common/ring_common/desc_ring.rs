// SPDX-License-Identifier: GPL-2.0

//! A descriptor ring in consistent DMA memory.

use kernel::{
    device,
    prelude::*, //
};
use netdev::dma::{
    CoherentMem,
    DmaAddr,
    Part, //
};
use ring_core::index::RingSize;
use zerocopy::{
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
    #[inline(always)]
    pub fn write_bytes(&self, slot: u32, bytes: &[u8]) {
        // CAST: `usize` has 64 bits on every target.
        let offset = (slot as usize).wrapping_mul(UNIT);
        if !self.mem.write_bytes(offset, bytes) {
            self.write_wrapped(offset, bytes);
        }
    }

    /// Writes what does not lie inside as a whole.
    #[cold]
    fn write_wrapped(&self, offset: usize, bytes: &[u8]) {
        let room = self.mem.len().checked_sub(offset);
        let parts = room
            .filter(|_| bytes.len() <= self.mem.len())
            .and_then(|room| bytes.split_at_checked(room));
        if let Some((first, second)) = parts {
            self.mem.write_bytes(offset, first);
            self.mem.write_bytes(0, second);
        }
    }

    /// Writes one descriptor at unit `slot`. A `slot` outside of the ring changes nothing.
    #[inline(always)]
    pub fn write<T: IntoBytes + Immutable>(&self, slot: u32, desc: &T) {
        if size_of::<T>() <= UNIT {
            // It cannot wrap.
            // CAST: `usize` has 64 bits on every target.
            self.mem.write((slot as usize).wrapping_mul(UNIT), desc);
        } else {
            self.write_bytes(slot, desc.as_bytes());
        }
    }

    /// The descriptor at unit `slot`, which the device may write at any time; `None` outside of the ring.
    #[inline(always)]
    pub fn unit(&self, slot: u32) -> Option<Part<'_, UNIT>> {
        // CAST: `usize` has 64 bits on every target.
        self.mem.part((slot as usize).wrapping_mul(UNIT))
    }
}
