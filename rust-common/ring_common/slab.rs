// SPDX-License-Identifier: GPL-2.0

//! Equal pieces of consistent DMA memory, all in one allocation.

use kernel::{
    device,
    prelude::*, //
};
use netdev::dma::{
    CoherentMem,
    DmaAddr, //
};
use ring_core::slab::Slab as Layout;
use zerocopy::{
    FromBytes,
    Immutable,
    IntoBytes, //
};

/// One block of memory that CPU and device share, cut into elements: messages, headers or gather lists.
///
/// Which element lies where is arithmetic; nothing is mapped after the slab was made.
///
/// Context: any. Locking: none; who may use which element is the user's matter.
///
/// # Invariants
///
/// `mem` has `layout.bytes()` bytes.
pub struct Slab {
    mem: CoherentMem,
    layout: Layout,
}

impl Slab {
    /// Makes `count` zeroed elements of `size` bytes, aligned to `align` bytes, at most a page. Process
    /// context.
    ///
    /// # Errors
    ///
    /// - `EINVAL` for sizes that cannot be.
    /// - `ENOMEM` if there is no such memory.
    pub fn new(dev: &device::Device, size: usize, count: u32, align: usize) -> Result<Self> {
        let layout = Layout::new(size, count, align).ok_or(EINVAL)?;
        let mem = CoherentMem::alloc(dev, layout.bytes())?;
        // INVARIANT: As just allocated.
        Ok(Self { mem, layout })
    }

    /// Element `index`, or `None` past the last.
    #[inline]
    pub fn element(&self, index: u32) -> Option<Element<'_>> {
        let offset = self.layout.offset(index)?;
        Some(Element { slab: self, offset })
    }
}

/// One element of a [`Slab`].
#[derive(Clone, Copy)]
pub struct Element<'a> {
    slab: &'a Slab,
    offset: usize,
}

impl<'a> Element<'a> {
    /// Bytes of the element.
    pub fn size(self) -> usize {
        self.slab.layout.size()
    }

    /// Where the device finds it.
    #[inline]
    pub fn addr(self) -> Option<DmaAddr<'a>> {
        self.slab.mem.addr(self.offset)
    }

    /// Takes a copy of what lies `offset` bytes into the element, which the device may write at any time.
    ///
    /// `None` where it does not lie inside.
    #[inline]
    pub fn read<T: FromBytes>(self, offset: usize) -> Option<T> {
        self.slab.mem.read(self.at(offset, size_of::<T>())?)
    }

    /// Writes `value` `offset` bytes into the element.
    ///
    /// Returns whether it lies inside; nothing is written if not.
    #[inline]
    pub fn write<T: IntoBytes + Immutable>(self, offset: usize, value: &T) -> bool {
        self.at(offset, size_of::<T>())
            .is_some_and(|at| self.slab.mem.write(at, value))
    }

    fn at(self, offset: usize, len: usize) -> Option<usize> {
        let end = offset.checked_add(len)?;
        (end <= self.size()).then(|| self.offset.wrapping_add(offset))
    }
}
