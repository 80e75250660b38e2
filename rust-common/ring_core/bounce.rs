// SPDX-License-Identifier: GPL-2.0

//! A byte ring from which TX takes contiguous pieces of mapped memory.
//!
//! One block, mapped once, serves packets that are copied instead of mapped and
//! tables that the device reads (scatter lists). Pieces are freed in the order
//! they were taken, as TX completes. What a piece costs besides its own bytes,
//! for alignment and for skipping the end of the block, is charged to it and
//! returns with it.
//!
//! xmit owns the [`BounceRing`]; completion only adds up what it frees and
//! publishes that count (see [`shared`](crate::shared) for the orders needed).

use crate::index::{
    Cursor,
    RingSize, //
};

/// What a piece is for; completion treats the users differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// Packet bytes.
    Packet,
    /// A table of addresses and lengths.
    Table,
}

/// A contiguous piece of the block.
///
/// Not freed by dropping: its slot keeps it until the packet completes.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a piece that is neither freed nor rolled back is lost"]
pub struct Piece {
    before: Cursor,
    offset: u32,
    len: u32,
    charged: u32,
    user: User,
}

impl Piece {
    /// First byte, counted from the start of the block.
    #[inline]
    pub const fn offset(&self) -> u32 {
        self.offset
    }

    /// Bytes asked for.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// False: a piece has at least one byte.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Who asked for it.
    #[inline]
    pub const fn user(&self) -> User {
        self.user
    }

    /// Gives the piece back: the count to publish, given the one before.
    /// Pieces are freed in the order they were taken.
    #[inline]
    pub const fn free(self, freed: u32) -> u32 {
        freed.wrapping_add(self.charged)
    }
}

/// The taking side. All counts and lengths are bytes.
///
/// ```
/// use ring_core::bounce::{BounceRing, User};
/// use ring_core::index::RingSize;
///
/// let mut ring = BounceRing::new(RingSize::new(4096).unwrap());
/// let mut freed = 0; // published by completion
///
/// let first = ring.take(1500, 64, User::Packet, freed).unwrap();
/// let second = ring.take(1500, 64, User::Packet, freed).unwrap();
/// assert_eq!(second.offset(), 1536);
/// // 1060 bytes are left up to the end, none yet at the start.
/// assert!(ring.take(1500, 64, User::Packet, freed).is_none());
///
/// freed = first.free(freed);
/// let third = ring.take(1500, 64, User::Packet, freed).unwrap();
/// assert_eq!(third.offset(), 0);
///
/// freed = third.free(second.free(freed));
/// assert_eq!(ring.used(freed), 0);
/// ```
#[derive(Debug)]
pub struct BounceRing {
    next: Cursor,
    size: RingSize,
}

impl BounceRing {
    /// An empty ring over a block of `size` bytes. The freed count starts at 0.
    pub const fn new(size: RingSize) -> Self {
        Self::starting_at(size, 0)
    }

    /// An empty ring whose freed count starts at `start`.
    pub const fn starting_at(size: RingSize, start: u32) -> Self {
        Self {
            next: Cursor::rewound(start),
            size,
        }
    }

    /// Bytes taken and not freed, charges included.
    #[inline]
    pub const fn used(&self, freed: u32) -> u32 {
        self.next.count().wrapping_sub(freed)
    }

    /// Takes `len` contiguous bytes at a multiple of `align` within the block.
    ///
    /// `None` if `len` is 0, `align` is no power of two, or no such bytes are
    /// free: then the caller maps the packet instead. An idle ring serves any
    /// `len` up to its size.
    #[inline]
    pub fn take(&mut self, len: u32, align: u32, user: User, freed: u32) -> Option<Piece> {
        if len == 0 || !align.is_power_of_two() {
            return None;
        }
        let used = self.used(freed);
        let free = self.size.get().checked_sub(used)?;
        let before = if used == 0 {
            // Nothing is in the block: what it skipped up to here is nobody's.
            Cursor::rewound(freed)
        } else {
            self.next
        };

        let aligned = before.slot().checked_next_multiple_of(align)?;
        let fits = aligned.checked_add(len)? <= self.size.get();
        let (offset, skipped) = if fits {
            (aligned, aligned.wrapping_sub(before.slot()))
        } else {
            (0, self.size.get().wrapping_sub(before.slot()))
        };
        let charged = skipped.checked_add(len)?;
        if charged > free {
            return None;
        }

        self.next = before.advanced(charged, self.size);
        Some(Piece {
            before,
            offset,
            len,
            charged,
            user,
        })
    }

    /// Undoes the last [`BounceRing::take`], for a packet that is dropped after
    /// all. Several are undone last first.
    ///
    /// # Errors
    ///
    /// Hands the piece back if it is not the last one taken.
    #[inline]
    pub fn roll_back(&mut self, piece: Piece) -> Result<(), Piece> {
        if piece.before.advanced(piece.charged, self.size) != self.next {
            return Err(piece);
        }
        self.next = piece.before;
        Ok(())
    }
}
