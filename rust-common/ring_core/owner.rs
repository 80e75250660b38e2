// SPDX-License-Identifier: GPL-2.0

//! Whose a completion entry is, told by a lap number in the entry.
//!
//! The device writes into each entry the low `BITS` bits of the lap it is in,
//! so an entry of this lap is new and one of the lap before is still old. MANA
//! has 3 bits, which also show that the device has lapped the driver; mlx5's
//! ownership bit is the same with one bit, where an overrun looks like an old
//! entry. Plain valid bits, which the driver clears, need no arithmetic.

use crate::index::{
    Cursor,
    RingSize, //
};

/// What an entry's generation says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The device has not written it in this lap.
    Old,
    /// The device has written it. Read the rest of it only after a read
    /// barrier (`dma_rmb()`).
    New,
    /// Neither this lap nor the one before: the device overran the ring, or is
    /// broken. Entries were lost.
    Overrun,
}

/// Generations of `BITS` bits over a ring whose length is a power of two.
///
/// ```
/// use ring_core::index::{Cursor, RingSize};
/// use ring_core::owner::{Entry, Generation};
///
/// // MANA: three bits; starts one lap ahead of zeroed memory.
/// let size = RingSize::new(8).unwrap();
/// let generation = Generation::<3>::new(size).unwrap();
/// let next = Cursor::at(8, size);
/// assert_eq!(generation.classify(next, 0), Entry::Old);
/// assert_eq!(generation.classify(next, 1), Entry::New);
/// assert_eq!(generation.classify(next, 2), Entry::Overrun);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Generation<const BITS: u32> {
    shift: u32,
    lap_mask: u32,
}

/// mlx5's ownership bit: toggles with each lap.
pub type Phase = Generation<1>;

impl<const BITS: u32> Generation<BITS> {
    /// `None` unless the length is a power of two, `BITS` at least 1, and slot
    /// and generation together fit a free-running 32-bit count: otherwise the
    /// sequence would break where the count wraps.
    pub const fn new(size: RingSize) -> Option<Self> {
        let Some(shift) = size.log2() else {
            return None;
        };
        if BITS == 0 || BITS > 32u32.wrapping_sub(shift) {
            return None;
        }
        // BITS is at most 31, since a ring has two slots or more.
        Some(Self {
            shift,
            lap_mask: 1u32.wrapping_shl(BITS).wrapping_sub(1),
        })
    }

    /// The generation that the device writes at position `at`.
    #[inline]
    pub const fn at(self, at: Cursor) -> u32 {
        at.count().wrapping_shr(self.shift) & self.lap_mask
    }

    /// Judges the entry at position `next`, in which `seen` was read. Bits of
    /// `seen` above the generation make it an overrun.
    #[inline]
    pub const fn classify(self, next: Cursor, seen: u32) -> Entry {
        let new = self.at(next);
        if seen == new {
            Entry::New
        } else if seen == new.wrapping_sub(1) & self.lap_mask {
            Entry::Old
        } else {
            Entry::Overrun
        }
    }

    /// Position as slot and generation in one number, below `length << BITS`:
    /// the form of MANA's completion and event doorbells.
    #[inline]
    pub const fn slot_and_lap(self, at: Cursor) -> u32 {
        let laps = self.lap_mask.wrapping_shl(self.shift);
        at.count() & (laps | 1u32.wrapping_shl(self.shift).wrapping_sub(1))
    }
}
