// SPDX-License-Identifier: GPL-2.0

//! Where a ring's producer and consumer stand.
//!
//! Each side keeps a [`Cursor`]: a free-running `u32` count and, beside it, the
//! slot that the count has reached. Keeping both makes one code path serve
//! every length: the difference of two counts is right across `u32::MAX` for
//! any length, and the slot advances with a compare instead of a division
//! (hns3 and mvneta rings need not be powers of two, and 2^32 is no multiple of
//! such a length). For a power of two the slot equals `count & mask` for ever,
//! which the generations of [`owner`](crate::owner) rely on.
//!
//! A full and an empty ring are told apart by the counts, so every slot can be
//! used. For a device that wants one kept empty, count that slot into its
//! largest packet ([`StopWake::worst_packet`](crate::stop::StopWake::worst_packet)).

mod sides;

pub use sides::{
    Claim,
    Consumer,
    Producer,
    RingIndex, //
};

/// Length of a ring, in slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSize(u32);

impl RingSize {
    /// Longest ring whose counts can be subtracted and whose slots can be
    /// added without overflow.
    pub const MAX: u32 = 1 << 31;

    /// Returns `None` unless `2 <= len <= RingSize::MAX`.
    pub const fn new(len: u32) -> Option<Self> {
        if len < 2 || len > Self::MAX {
            return None;
        }
        Some(Self(len))
    }

    /// Number of slots.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Binary logarithm of the length if it is a power of two.
    #[inline]
    pub const fn log2(self) -> Option<u32> {
        if self.0.is_power_of_two() {
            Some(self.0.trailing_zeros())
        } else {
            None
        }
    }

    /// `length - 1` if the length is a power of two.
    #[inline]
    pub const fn mask(self) -> Option<u32> {
        if self.0.is_power_of_two() {
            Some(self.0.wrapping_sub(1))
        } else {
            None
        }
    }
}

/// A position: how many slots were passed since the start, and the next slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    count: u32,
    slot: u32,
}

impl Cursor {
    /// A position that starts at `count`, at slot `count % size`.
    ///
    /// Most rings start at 0. MANA's completion rings start one lap ahead, at
    /// `size`, since zeroed memory carries generation 0.
    pub const fn at(count: u32, size: RingSize) -> Self {
        // A `RingSize` is never 0.
        Self {
            count,
            slot: match count.checked_rem(size.0) {
                Some(slot) => slot,
                None => 0,
            },
        }
    }

    /// Free-running count of slots; wraps at 2^32.
    #[inline]
    pub const fn count(self) -> u32 {
        self.count
    }

    /// The slot at this position, below the ring's length.
    #[inline]
    pub const fn slot(self) -> u32 {
        self.slot
    }

    /// Slot 0 at `count`: for a ring that is empty and may start over anywhere.
    #[inline]
    pub(crate) const fn rewound(count: u32) -> Self {
        Self { count, slot: 0 }
    }

    /// The position `n` slots on; `n` is at most the ring's length.
    #[inline]
    pub(crate) const fn advanced(self, n: u32, size: RingSize) -> Self {
        // No overflow: slot < 2^31 and n <= 2^31.
        let slot = self.slot.wrapping_add(n);
        Self {
            count: self.count.wrapping_add(n),
            slot: if slot >= size.0 {
                slot.wrapping_sub(size.0)
            } else {
                slot
            },
        }
    }
}

/// Slots that lie one after another without crossing the ring's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First slot.
    pub slot: u32,
    /// Number of slots; 0 for an empty run.
    pub len: u32,
}

/// Consecutive ring slots; they may continue at slot 0 after the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    start: Cursor,
    len: u32,
    size: RingSize,
}

impl Span {
    /// Number of slots, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a span is never empty")]
    #[inline]
    pub const fn len(self) -> u32 {
        self.len
    }

    /// Position of the first slot.
    #[inline]
    pub const fn start(self) -> Cursor {
        self.start
    }

    /// Position after the last slot.
    #[inline]
    pub const fn end(self) -> Cursor {
        self.start.advanced(self.len, self.size)
    }

    /// The `i`-th slot, or `None` past the end.
    #[inline]
    pub const fn slot(self, i: u32) -> Option<u32> {
        if i >= self.len {
            return None;
        }
        Some(self.start.advanced(i, self.size).slot)
    }

    /// The span as a run up to the ring's end and one from slot 0, which is
    /// empty unless the span wraps.
    #[inline]
    pub const fn runs(self) -> [Run; 2] {
        let room = self.size.0.wrapping_sub(self.start.slot);
        let first = if self.len < room { self.len } else { room };
        [
            Run {
                slot: self.start.slot,
                len: first,
            },
            Run {
                slot: 0,
                len: self.len.wrapping_sub(first),
            },
        ]
    }
}
