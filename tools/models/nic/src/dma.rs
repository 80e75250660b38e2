// SPDX-License-Identifier: GPL-2.0
//! Guest memory as the device sees it: through the mappings that the client announced, and no others.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    fmt, io,
    os::fd::OwnedFd,
    ptr::NonNull,
    rc::Rc,
};

use rustix::{
    fs::fstat,
    io::Errno,
    mm::{mmap, munmap, MapFlags, ProtFlags},
};
use vfio_user::DmaMap;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{Counter, Report, Rule};

/// How many ended mappings are remembered, to tell "never mapped" from "unmapped too early".
const ENDED: usize = 4096;

/// The device could not access guest memory; the violation is already in the report.
#[derive(Clone, Copy, Debug)]
pub struct DmaError {
    /// The rule that was broken.
    pub rule: &'static Rule,
    /// First byte of the access.
    pub address: u64,
}

impl fmt::Display for DmaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}", self.rule.name, self.address)
    }
}

impl std::error::Error for DmaError {}

/// A shared file of guest memory, mapped whole into this process.
///
/// # Invariants
/// `base` points to `len` bytes that stay mapped, readable and writable, until the value is dropped.
struct Memory {
    base: NonNull<u8>,
    len: usize,
}

impl Memory {
    fn map(fd: &OwnedFd, len: usize) -> io::Result<Self> {
        // SAFETY:
        // - no address is asked for, so no existing mapping of this process is replaced;
        // - `fd` is open during the call, and the mapping outlives it by itself.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                fd,
                0,
            )?
        };
        let base = NonNull::new(base.cast()).ok_or(Errno::FAULT)?;
        // INVARIANT: mmap(2) succeeded for `len` bytes with both permissions.
        Ok(Self { base, len })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY:
        // - by the invariant, `base` and `len` are those of a mapping made by this type;
        // - no reference into it exists: the accessors of `GuestDma` copy and keep none.
        if let Err(error) = unsafe { munmap(self.base.as_ptr().cast(), self.len) } {
            eprintln!("cannot unmap guest memory: {error}");
        }
    }
}

/// One range that the device may access.
struct Mapping {
    /// Address of the last byte: the end of a range may be the end of the address space.
    last: u64,
    /// Where the range begins in `memory`.
    offset: u64,
    read: bool,
    write: bool,
    /// Absent where the range is not RAM.
    memory: Option<Rc<Memory>>,
}

/// A file is recognized by device and inode: QEMU passes a new descriptor of the same memfd with each mapping.
type FileId = (u64, u64);

struct Counters {
    reads: Counter,
    read_bytes: Counter,
    writes: Counter,
    written_bytes: Counter,
    maps: Counter,
    maps_read_only: Counter,
    unmaps: Counter,
    live: Counter,
}

/// Guest memory.
///
/// Accesses are copies: the guest's CPUs write the same bytes at the same time, so no reference to them is made.
pub struct GuestDma {
    report: Report,
    counters: Counters,
    maps: BTreeMap<u64, Mapping>,
    files: HashMap<FileId, Rc<Memory>>,
    ended: VecDeque<(u64, u64)>,
    bus_master: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Read,
    Write,
}

/// Address of the last byte of a range.
fn last_byte(address: u64, size: u64) -> Result<u64, Errno> {
    let last = size
        .checked_sub(1)
        .and_then(|more| address.checked_add(more));
    last.ok_or(Errno::INVAL)
}

impl GuestDma {
    /// No memory yet; counts and violations go to `report`.
    pub fn new(report: &Report) -> Self {
        let counters = Counters {
            reads: report.counter("dma.reads"),
            read_bytes: report.counter("dma.read_bytes"),
            writes: report.counter("dma.writes"),
            written_bytes: report.counter("dma.written_bytes"),
            maps: report.counter("dma.maps"),
            maps_read_only: report.counter("dma.maps_read_only"),
            unmaps: report.counter("dma.unmaps"),
            live: report.gauge("dma.live_maps"),
        };
        Self {
            report: report.clone(),
            counters,
            maps: BTreeMap::new(),
            files: HashMap::new(),
            ended: VecDeque::new(),
            bus_master: false,
        }
    }

    /// Follows the bus master enable bit of the PCI command register.
    pub fn set_bus_master(&mut self, on: bool) {
        if on && !self.bus_master {
            // What was mapped before the driver took the device (all of RAM, until an IOMMU is turned on) was
            // not unmapped by the driver.
            self.ended.clear();
        }
        self.bus_master = on;
    }

    /// Adds a mapping.
    ///
    /// # Errors
    /// EINVAL for a range that overflows, overlaps another or leaves its file; else what mmap(2) says.
    pub fn map(&mut self, map: DmaMap) -> Result<(), Errno> {
        let last = last_byte(map.address, map.size)?;
        let before = self.maps.range(..=last).next_back();
        if before.is_some_and(|(_, other)| other.last >= map.address) {
            return Err(Errno::INVAL);
        }
        let memory = map.fd.map(|fd| self.memory(&fd)).transpose()?;
        if let Some(memory) = &memory {
            let file_end = map.offset.checked_add(map.size).ok_or(Errno::INVAL)?;
            if file_end > memory.len as u64 {
                return Err(Errno::INVAL);
            }
        }
        self.counters.maps.add(1);
        self.counters.maps_read_only.add((!map.write).into());
        let mapping = Mapping {
            last,
            offset: map.offset,
            read: map.read,
            write: map.write,
            memory,
        };
        self.maps.insert(map.address, mapping);
        self.counters.live.set(self.maps.len() as u64);
        Ok(())
    }

    /// The mapping of a whole file, made at the first use and then shared.
    fn memory(&mut self, fd: &OwnedFd) -> Result<Rc<Memory>, Errno> {
        let stat = fstat(fd)?;
        let id = (stat.st_dev, stat.st_ino);
        if let Some(memory) = self.files.get(&id) {
            return Ok(memory.clone());
        }
        let len = usize::try_from(stat.st_size).map_err(|_| Errno::INVAL)?;
        let memory = Rc::new(
            Memory::map(fd, len)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOMEM))?,
        );
        self.files.insert(id, memory.clone());
        Ok(memory)
    }

    /// Ends all mappings inside a range, of which there may be none: QEMU unmaps whole windows of an IOMMU.
    ///
    /// # Errors
    /// EINVAL if the range cuts a mapping.
    pub fn unmap(&mut self, address: u64, size: u64) -> Result<(), Errno> {
        let last = last_byte(address, size)?;
        let before = self.maps.range(..address).next_back();
        let within = self.maps.range(address..=last).next_back();
        if before.is_some_and(|(_, other)| other.last >= address)
            || within.is_some_and(|(_, other)| other.last > last)
        {
            return Err(Errno::INVAL);
        }
        while let Some((&at, _)) = self.maps.range(address..=last).next() {
            if let Some(mapping) = self.maps.remove(&at) {
                self.end_mapping(at, mapping.last);
            }
        }
        self.counters.live.set(self.maps.len() as u64);
        Ok(())
    }

    /// Ends all mappings.
    pub fn unmap_all(&mut self) {
        for (at, mapping) in std::mem::take(&mut self.maps) {
            self.end_mapping(at, mapping.last);
        }
        self.counters.live.set(0);
    }

    fn end_mapping(&mut self, at: u64, last: u64) {
        self.counters.unmaps.add(1);
        if self.ended.len() == ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((at, last));
    }

    /// Counters and violations.
    pub(crate) fn report(&self) -> &Report {
        &self.report
    }

    /// Number of mappings now.
    pub fn live_maps(&self) -> usize {
        self.maps.len()
    }

    /// Reads guest memory.
    ///
    /// # Errors
    /// The access broke a rule, which is in the report; `data` may be partly filled.
    pub fn read(&self, address: u64, data: &mut [u8]) -> Result<(), DmaError> {
        self.counters.reads.add(1);
        self.counters.read_bytes.add(data.len() as u64);
        self.pieces(address, data.len(), Direction::Read, |source, range| {
            let piece = &mut data[range];
            // SAFETY:
            // - `pieces` hands out `piece.len()` mapped bytes at `source`;
            // - `piece` is memory of this process, which no mapping of guest memory overlaps;
            // - bytes that the guest changes meanwhile are only ever copied, so any mix of them is valid.
            unsafe { std::ptr::copy_nonoverlapping(source, piece.as_mut_ptr(), piece.len()) }
        })
    }

    /// Writes guest memory.
    ///
    /// # Errors
    /// The access broke a rule, which is in the report; a first part of `data` may be written.
    pub fn write(&self, address: u64, data: &[u8]) -> Result<(), DmaError> {
        self.counters.writes.add(1);
        self.counters.written_bytes.add(data.len() as u64);
        self.pieces(address, data.len(), Direction::Write, |target, range| {
            let piece = &data[range];
            // SAFETY:
            // - `pieces` hands out `piece.len()` mapped bytes at `target`;
            // - `piece` is memory of this process, which no mapping of guest memory overlaps;
            // - no reference to guest memory exists in this process.
            unsafe { std::ptr::copy_nonoverlapping(piece.as_ptr(), target, piece.len()) }
        })
    }

    /// Reads a structure.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_obj<T: FromBytes + IntoBytes>(&self, address: u64) -> Result<T, DmaError> {
        let mut object = T::new_zeroed();
        self.read(address, object.as_mut_bytes())?;
        Ok(object)
    }

    /// Writes a structure. The order in which its bytes become visible is not defined: write an owner bit on
    /// its own, after a [`fence`](Self::fence).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_obj<T: IntoBytes + Immutable>(
        &self,
        address: u64,
        object: &T,
    ) -> Result<(), DmaError> {
        self.write(address, object.as_bytes())
    }

    /// Orders the writes before it against those after it, as PCI orders the writes of a device.
    pub fn fence(&self) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }

    /// Calls `copy` for each mapped piece of a range: where it is, and which part of the range it is.
    fn pieces(
        &self,
        address: u64,
        len: usize,
        direction: Direction,
        mut copy: impl FnMut(*mut u8, std::ops::Range<usize>),
    ) -> Result<(), DmaError> {
        if !self.bus_master {
            return Err(self.violate(&crate::DMA_BUS_MASTER_OFF, address, len, address));
        }
        let mut done = 0;
        while done < len {
            let fault = |rule| self.violate(rule, address, len, address.wrapping_add(done as u64));
            let Some(at) = address.checked_add(done as u64) else {
                return Err(fault(&crate::DMA_UNMAPPED));
            };
            let found = self
                .maps
                .range(..=at)
                .next_back()
                .filter(|(_, map)| at <= map.last);
            let Some((start, map)) = found else {
                return Err(fault(self.unmapped_rule(at)));
            };
            match direction {
                Direction::Read if !map.read => return Err(fault(&crate::DMA_WRITE_ONLY)),
                Direction::Write if !map.write => return Err(fault(&crate::DMA_READ_ONLY)),
                _ => {}
            }
            let Some(memory) = &map.memory else {
                return Err(fault(&crate::DMA_NOT_MEMORY));
            };
            let inside = at - start;
            let piece = usize::try_from((map.last - at).saturating_add(1))
                .unwrap_or(usize::MAX)
                .min(len - done);
            // SAFETY:
            // - `map` checked that the whole range, moved by `offset`, is inside the memory, and `at` is inside
            //   the range: the sum is less than `memory.len`, so it fits in an isize;
            // - by the invariant of `Memory`, `base` and the result are in one mapping of that length.
            let place = unsafe { memory.base.as_ptr().add((map.offset + inside) as usize) };
            copy(place, done..done + piece);
            done += piece;
        }
        Ok(())
    }

    fn unmapped_rule(&self, at: u64) -> &'static Rule {
        let ended = self
            .ended
            .iter()
            .any(|(start, last)| (*start..=*last).contains(&at));
        if ended {
            &crate::DMA_AFTER_UNMAP
        } else {
            &crate::DMA_UNMAPPED
        }
    }

    fn violate(&self, rule: &'static Rule, address: u64, len: usize, at: u64) -> DmaError {
        self.report.violate(
            rule,
            format_args!("{len} bytes at {address:#x}, failed at {at:#x}"),
        );
        DmaError { rule, address }
    }
}
