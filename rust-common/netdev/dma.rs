// SPDX-License-Identifier: GPL-2.0

//! Memory that the device reads and writes.
//!
//! A DMA address is worth as much as a pointer: whoever can put any number into a descriptor can
//! have the device write anywhere. So an address is a type, [`DmaAddr`], that only the owners of
//! memory lend, and descriptors take it as [`LeAddr`] or [`BeAddr`], which are made from nothing
//! else. What is lent ends with the owner; that the owner lives until the device is done is the
//! matter of who keeps it (a ring's slot, until the completion).
//!
//! The device may write at any time. So memory that it shares with the CPU is copied in and out by
//! volatile access ([`CoherentMem`]), and no reference into it is ever formed.

pub(crate) use self::coherent::raw_device;

mod coherent;
mod pieces;

use core::marker::PhantomData;

use zerocopy::{
    big_endian,
    little_endian, //
};
use zerocopy_derive::{
    FromZeros,
    Immutable,
    IntoBytes,
    KnownLayout, //
};

use crate::bindings;

pub use self::{
    coherent::{
        CoherentMem,
        Part,
        DEVICE_PAGE_SIZE, //
    },
    pieces::{
        piece_ring,
        MapError,
        Piece,
        PieceMapper,
        PieceUnmapper,
        Pieces, //
    },
};

/// An address as the device sees it, of memory that is lent for `'a`.
///
/// # Invariants
///
/// The address belongs to a mapping that lives for `'a`.
#[derive(Clone, Copy, Debug)]
pub struct DmaAddr<'a> {
    addr: bindings::dma_addr_t,
    _owner: PhantomData<&'a ()>,
}

impl DmaAddr<'_> {
    /// Lends an address.
    ///
    /// # Safety
    ///
    /// `addr` belongs to a mapping that lives for the lifetime of the result.
    #[inline(always)]
    pub(crate) unsafe fn new(addr: bindings::dma_addr_t) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            addr,
            _owner: PhantomData,
        }
    }

    /// The number, to look at and for registers that are no descriptor.
    #[inline(always)]
    pub fn raw(self) -> u64 {
        self.addr
    }

    /// Bits 31 to 0.
    #[inline(always)]
    pub fn lo32(self) -> u32 {
        // CAST: The upper half is cut off on purpose.
        self.addr as u32
    }

    /// Bits 63 to 32.
    #[inline(always)]
    pub fn hi32(self) -> u32 {
        // CAST: The upper half of 64 bits fits.
        (self.addr >> 32) as u32
    }
}

/// The address field of a little-endian descriptor, without alignment.
#[derive(Clone, Copy, Debug, FromZeros, Immutable, IntoBytes, KnownLayout)]
#[repr(transparent)]
pub struct LeAddr(little_endian::U64);

impl From<DmaAddr<'_>> for LeAddr {
    #[inline(always)]
    fn from(addr: DmaAddr<'_>) -> Self {
        Self(addr.raw().into())
    }
}

/// The address field of a big-endian descriptor, without alignment.
#[derive(Clone, Copy, Debug, FromZeros, Immutable, IntoBytes, KnownLayout)]
#[repr(transparent)]
pub struct BeAddr(big_endian::U64);

impl From<DmaAddr<'_>> for BeAddr {
    #[inline(always)]
    fn from(addr: DmaAddr<'_>) -> Self {
        Self(addr.raw().into())
    }
}

/// Orders reads of memory that the device writes: the ones before it happen before the ones after.
///
/// Between the word that says who owns a descriptor and the rest of it.
#[inline(always)]
pub fn rmb() {
    // On x86 the CPU keeps loads in order, as `dma_rmb()` there knows; no call is needed.
    #[cfg(CONFIG_X86)]
    // SAFETY: An empty asm block; it keeps the compiler from moving memory accesses over it.
    unsafe {
        core::arch::asm!("", options(nostack, preserves_flags))
    };
    #[cfg(not(CONFIG_X86))]
    // SAFETY: Barriers have no preconditions.
    unsafe {
        bindings::dma_rmb()
    };
}

/// Orders writes to memory that the device reads: the ones before it are seen before the ones after.
///
/// Between the rest of a descriptor and the word that hands it over, where the device looks at
/// memory by itself. In front of a doorbell it is not needed: [`crate::mmio`] has it.
#[inline(always)]
pub fn wmb() {
    // On x86 the CPU keeps stores in order, as `dma_wmb()` there knows; no call is needed.
    #[cfg(CONFIG_X86)]
    // SAFETY: An empty asm block; it keeps the compiler from moving memory accesses over it.
    unsafe {
        core::arch::asm!("", options(nostack, preserves_flags))
    };
    #[cfg(not(CONFIG_X86))]
    // SAFETY: Barriers have no preconditions.
    unsafe {
        bindings::dma_wmb()
    };
}
