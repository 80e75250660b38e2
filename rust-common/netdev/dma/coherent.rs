// SPDX-License-Identifier: GPL-2.0

//! Consistent memory: rings, command buffers.

use core::{
    hint::assert_unchecked,
    marker::PhantomData,
    mem::{
        size_of,
        MaybeUninit, //
    },
    ptr::NonNull, //
};

use kernel::{
    device,
    prelude::*,
    sync::aref::ARef, //
};
use zerocopy::{
    FromBytes,
    Immutable,
    IntoBytes, //
};

use super::DmaAddr;
use crate::bindings;

/// The page size that devices count in, in bytes, whatever the CPU's is.
pub const DEVICE_PAGE_SIZE: usize = 4096;

/// Zeroed memory that CPU and device share without syncing.
///
/// It is aligned to the CPU's page and of whole [`DEVICE_PAGE_SIZE`] pages, so that the device can
/// be given all of a page. It must be dropped before the driver is unbound from its device.
///
/// Accesses may race with those of the device and of other contexts: what is read is a copy that cannot
/// change any more, but may mix old and new chunks of 8 bytes or less. Order them by
/// [`rmb`](super::rmb) and [`wmb`](super::wmb).
///
/// Context: allocation and drop sleep; access from any context.
///
/// # Invariants
///
/// - `cpu` points to `size` bytes from `dma_alloc_attrs()` for `dev`, which the device sees at `dma`. It
///   is aligned to [`DEVICE_PAGE_SIZE`].
/// - `len <= size`, and `size` is a multiple of [`DEVICE_PAGE_SIZE`].
pub struct CoherentMem {
    dev: ARef<device::Device>,
    cpu: NonNull<u8>,
    dma: bindings::dma_addr_t,
    len: usize,
    size: usize,
}

// SAFETY: The memory belongs to no thread, and may be freed by any.
unsafe impl Send for CoherentMem {}

// SAFETY: No reference into the memory is formed. Reads are volatile, so that others, as the device does, may
// write at the same time: the values are of types for which every bit pattern is valid. Writes are plain, for
// the sake of what the compiler makes of a descriptor: two that meet at the same bytes would be a data race. The
// positions of a ring give each unit to one writer at a time; that is part of the trusted base.
unsafe impl Sync for CoherentMem {}

impl CoherentMem {
    /// Allocates `len` bytes. Sleeps.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if `len` is 0 or does not fit in memory.
    /// - `ENOMEM` if there is no such memory.
    pub fn alloc(dev: &device::Device, len: usize) -> Result<Self> {
        let size = len
            .checked_next_multiple_of(DEVICE_PAGE_SIZE)
            .ok_or(EINVAL)?;
        if size == 0 {
            return Err(EINVAL);
        }
        let dev: ARef<device::Device> = dev.into();
        let mut dma = 0;
        // SAFETY:
        // - `dev` is valid while `dev` holds its count.
        // - `dma` outlives the call.
        let cpu = unsafe {
            bindings::dma_alloc_attrs(raw_device(&dev), size, &mut dma, bindings::GFP_KERNEL, 0)
        };
        let cpu = NonNull::new(cpu.cast::<u8>()).ok_or(ENOMEM)?;
        // INVARIANT: The allocation of `size` bytes has just succeeded; `dma_alloc_attrs()` clears
        // the memory, and hands out whole pages of the CPU, which are at least those of devices.
        Ok(Self {
            dev,
            cpu,
            dma,
            len,
            size,
        })
    }

    /// Bytes that were asked for.
    #[inline(always)]
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Address of the first byte.
    #[inline(always)]
    pub fn base(&self) -> DmaAddr<'_> {
        // SAFETY: The memory lives as long as `self`.
        unsafe { DmaAddr::new(self.dma) }
    }

    /// Address of the byte at `offset`, or `None` outside of the memory.
    #[inline]
    pub fn addr(&self, offset: usize) -> Option<DmaAddr<'_>> {
        if offset >= self.len {
            return None;
        }
        // CAST: `usize` has 64 bits on every target, as has an address.
        // SAFETY: The byte belongs to memory that lives as long as `self`.
        Some(unsafe { DmaAddr::new(self.dma.wrapping_add(offset as u64)) })
    }

    /// Addresses of the device's pages that hold the memory, in order.
    pub fn pages(&self) -> impl ExactSizeIterator<Item = DmaAddr<'_>> + '_ {
        (0..self.size / DEVICE_PAGE_SIZE).map(|page| {
            // CAST: As in `addr`.
            let offset = page.wrapping_mul(DEVICE_PAGE_SIZE) as u64;
            // SAFETY: The page belongs to memory that lives as long as `self`.
            unsafe { DmaAddr::new(self.dma.wrapping_add(offset)) }
        })
    }

    /// Returns a pointer to `len` bytes at `offset` if all of them are inside.
    #[inline(always)]
    fn at(&self, offset: usize, len: usize) -> Option<*mut u8> {
        if offset > self.len || len > self.len - offset {
            return None;
        }
        let base = self.cpu.as_ptr();
        // SAFETY: By the type invariant.
        unsafe { assert_unchecked(base.addr() % DEVICE_PAGE_SIZE == 0) };
        // SAFETY: `offset <= len <= size`, so the result is within the allocation, or one past it.
        Some(unsafe { base.add(offset) })
    }

    /// Takes a copy of the `T` at `offset`; `None` where it does not lie inside.
    #[inline(always)]
    pub fn read<T: FromBytes>(&self, offset: usize) -> Option<T> {
        let src = self.at(offset, size_of::<T>())?;
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY:
        // - `src` is valid for reads of `size_of::<T>()` bytes, which lie inside.
        // - `value` is valid for writes of as many, and nothing else can see it.
        unsafe { copy_from(src, value.as_mut_ptr().cast(), size_of::<T>()) };
        // SAFETY: All bytes were written, and `FromBytes` takes any.
        Some(unsafe { value.assume_init() })
    }

    /// The `LEN` bytes at `offset`, for several reads after one check; `None` where they do not lie
    /// inside.
    #[inline(always)]
    pub fn part<const LEN: usize>(&self, offset: usize) -> Option<Part<'_, LEN>> {
        // INVARIANT: The bytes lie inside of memory that is borrowed.
        Some(Part {
            start: self.at(offset, LEN)?,
            _mem: PhantomData,
        })
    }

    /// Copies `dst.len()` bytes at `offset` into `dst`.
    ///
    /// Returns whether they lie inside; nothing is copied if not.
    #[must_use = "nothing is copied from outside"]
    pub fn read_bytes(&self, offset: usize, dst: &mut [u8]) -> bool {
        let Some(src) = self.at(offset, dst.len()) else {
            return false;
        };
        // SAFETY:
        // - `src` is valid for reads of `dst.len()` bytes, which lie inside.
        // - `dst` is valid for writes of as many, and borrowed exclusively.
        unsafe { copy_from(src, dst.as_mut_ptr(), dst.len()) };
        true
    }

    /// Writes `value` at `offset`.
    ///
    /// Returns whether it lies inside; nothing is written if not.
    #[inline(always)]
    pub fn write<T: IntoBytes + Immutable>(&self, offset: usize, value: &T) -> bool {
        self.write_bytes(offset, value.as_bytes())
    }

    /// Writes `bytes` at `offset`.
    ///
    /// Returns whether they lie inside; nothing is written if not.
    #[inline(always)]
    pub fn write_bytes(&self, offset: usize, bytes: &[u8]) -> bool {
        let Some(dst) = self.at(offset, bytes.len()) else {
            return false;
        };
        // SAFETY:
        // - `bytes` is valid for reads of its length, and does not overlap what no reference leads to.
        // - `dst` is valid for writes of as many bytes, which lie inside, and which nobody else writes, as
        //   said above. What orders them against the device is a call into C, so they are written by then.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), dst, bytes.len()) };
        true
    }
}

/// Some bytes of a [`CoherentMem`].
///
/// # Invariants
///
/// `start` points to `LEN` bytes of the memory.
pub struct Part<'a, const LEN: usize> {
    start: *const u8,
    _mem: PhantomData<&'a CoherentMem>,
}

impl<const LEN: usize> Part<'_, LEN> {
    /// Takes a copy of the `T` at `OFFSET`.
    #[inline(always)]
    pub fn read<T: FromBytes, const OFFSET: usize>(&self) -> T {
        const { assert!(OFFSET <= LEN && size_of::<T>() <= LEN - OFFSET) };
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY:
        // - By the type invariant and the assertion the `T` lies inside.
        // - `value` is valid for writes of as many bytes, and nothing else can see it.
        unsafe {
            copy_from(
                self.start.add(OFFSET),
                value.as_mut_ptr().cast(),
                size_of::<T>(),
            )
        };
        // SAFETY: All bytes were written, and `FromBytes` takes any.
        unsafe { value.assume_init() }
    }
}

impl Drop for CoherentMem {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this is what `dma_alloc_attrs()` returned, and nothing
        // refers to it any more.
        unsafe {
            bindings::dma_free_attrs(
                raw_device(&self.dev),
                self.size,
                self.cpu.as_ptr().cast(),
                self.dma,
                0,
            )
        };
    }
}

/// The C side of a device.
pub(crate) fn raw_device(dev: &device::Device) -> *mut bindings::device {
    // `device::Device` is a transparent wrapper of `struct device`.
    core::ptr::from_ref(dev).cast_mut().cast()
}

/// Copies `len` bytes out of shared memory, by words where `shared` is aligned to them.
///
/// # Safety
///
/// - `shared` is valid for volatile reads of `len` bytes.
/// - `private` is valid for writes of `len` bytes, and does not overlap.
#[inline(always)]
unsafe fn copy_from(shared: *const u8, private: *mut u8, len: usize) {
    let mut done = 0;
    if shared.cast::<u64>().is_aligned() {
        while len - done >= size_of::<u64>() {
            // SAFETY: `done + 8 <= len`, and `shared + done` is aligned to 8 as `shared` is.
            unsafe {
                let word = shared.add(done).cast::<u64>().read_volatile();
                private.add(done).cast::<u64>().write_unaligned(word);
            }
            done += size_of::<u64>();
        }
    }
    // SAFETY: `done <= len`.
    let rest = unsafe { shared.add(done) };
    if rest.cast::<u32>().is_aligned() {
        while len - done >= size_of::<u32>() {
            // SAFETY: `done + 4 <= len`, and `shared + done` is aligned to 4 as `rest` is.
            unsafe {
                let word = shared.add(done).cast::<u32>().read_volatile();
                private.add(done).cast::<u32>().write_unaligned(word);
            }
            done += size_of::<u32>();
        }
    }
    while done < len {
        // SAFETY: `done < len`.
        unsafe { private.add(done).write(shared.add(done).read_volatile()) };
        done += 1;
    }
}
