// SPDX-License-Identifier: GPL-2.0
//! Memory that the driver described to the device: DMA regions, and rings in them.

use std::collections::{BTreeMap, BTreeSet};

use nic::{fuzz::Layout, Bus, DmaError, GuestDma};

use crate::abi::MANA_PAGE_SIZE;

/// A DMA region: 4 KiB pages of guest memory.
pub struct Region {
    /// Bus addresses of the pages that were given so far.
    pub pages: Vec<u64>,
    /// Pages that the region will have.
    pub page_count: usize,
    /// Size, bytes.
    pub length: u64,
}

impl Region {
    /// Whether all pages were given.
    pub fn is_complete(&self) -> bool {
        self.pages.len() == self.page_count
    }
}

/// All DMA regions that no queue took over yet, and the handles that were given out.
#[derive(Default)]
pub struct Regions {
    free: BTreeMap<u64, Region>,
    taken: BTreeSet<u64>,
    created: u64,
}

impl Regions {
    /// Adds a region; returns its handle.
    pub fn add(&mut self, region: Region) -> u64 {
        self.created += 1;
        let handle = 0x4d41_0000_0000 + self.created;
        self.free.insert(handle, region);
        handle
    }

    /// The region of this handle, if no queue owns it.
    pub fn get(&mut self, handle: u64) -> Option<&mut Region> {
        self.free.get_mut(&handle)
    }

    /// Forgets the region of this handle.
    pub fn remove(&mut self, handle: u64) -> Option<Region> {
        self.free.remove(&handle)
    }

    /// Gives the region of this handle to a queue.
    pub fn take(&mut self, handle: u64) -> Option<Ring> {
        let region = self.free.remove(&handle)?;
        self.taken.insert(handle);
        Some(Ring {
            pages: region.pages,
            size: region.length as u32,
            handle,
        })
    }

    /// The queue that had this region is gone.
    pub fn release(&mut self, ring: &Ring) {
        self.taken.remove(&ring.handle);
    }

    /// Whether a queue owns the region of this handle.
    pub fn is_taken(&self, handle: u64) -> bool {
        self.taken.contains(&handle)
    }

    /// Forgets all regions. Handles that were given out stay invalid.
    pub fn clear(&mut self) {
        self.free.clear();
        self.taken.clear();
    }

    /// Number of regions that no queue owns.
    pub fn unused(&self) -> usize {
        self.free.len()
    }
}

/// The memory of one queue.
pub struct Ring {
    pages: Vec<u64>,
    size: u32,
    handle: u64,
}

impl Ring {
    /// A ring in one page of memory (the HWC's rings).
    pub fn one_page(address: u64) -> Self {
        Self {
            pages: vec![address],
            size: MANA_PAGE_SIZE as u32,
            handle: 0,
        }
    }

    /// Size, bytes; a power of two.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Calls `each` with the bus address and the range of `len` for each page that `len` bytes from the
    /// free-running byte `position` touch.
    fn pieces(
        &self,
        position: u32,
        len: usize,
        mut each: impl FnMut(u64, std::ops::Range<usize>) -> Result<(), DmaError>,
    ) -> Result<(), DmaError> {
        let mut done = 0;
        while done < len {
            let offset = u64::from(position.wrapping_add(done as u32) & (self.size - 1));
            let in_page = offset % MANA_PAGE_SIZE;
            let step = (len - done).min((MANA_PAGE_SIZE - in_page) as usize);
            each(
                self.pages[(offset / MANA_PAGE_SIZE) as usize] + in_page,
                done..done + step,
            )?;
            done += step;
        }
        Ok(())
    }

    /// Reads from the ring at a free-running byte position, wrapping at its end.
    ///
    /// # Errors
    /// If the memory is not mapped for the device; the violation is then recorded.
    pub fn read(&self, dma: &GuestDma, position: u32, buf: &mut [u8]) -> Result<(), DmaError> {
        self.pieces(position, buf.len(), |address, range| {
            dma.read(address, &mut buf[range])
        })
    }

    /// Writes an entry, which crosses no page, at a free-running byte position.
    ///
    /// # Errors
    /// If the memory is not mapped for the device; the violation is then recorded.
    pub fn write_entry(
        &self,
        bus: &mut Bus,
        layout: &Layout,
        position: u32,
        entry: &[u8],
    ) -> Result<(), DmaError> {
        let Bus { dma, knobs, .. } = bus;
        self.pieces(position, entry.len(), |address, range| {
            knobs.fuzz.write(dma, layout, address, &entry[range])
        })
    }
}
