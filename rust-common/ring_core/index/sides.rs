// SPDX-License-Identifier: GPL-2.0

//! The two sides of a ring and what they claim.

use super::{
    Cursor,
    RingSize,
    Span, //
};

/// Slots claimed from one side of a ring, until [`Claim::commit`].
///
/// Dropping it is the rollback: the side has not moved.
#[derive(Debug)]
#[must_use = "dropping a claim gives its slots back"]
pub struct Claim<'a> {
    side: &'a mut Cursor,
    span: Span,
}

impl Claim<'_> {
    /// The slots claimed.
    #[inline]
    pub fn span(&self) -> Span {
        self.span
    }

    /// Moves the side past the slots and returns its new count.
    #[inline]
    pub fn commit(self) -> u32 {
        *self.side = self.span.end();
        self.side.count
    }
}

/// The side that fills slots.
#[derive(Debug)]
pub struct Producer {
    next: Cursor,
    size: RingSize,
}

impl Producer {
    /// A producer whose first slot is at count `start` (see [`Cursor::at`]).
    pub const fn new(size: RingSize, start: u32) -> Self {
        Self {
            next: Cursor::at(start, size),
            size,
        }
    }

    /// The next slot to fill.
    #[inline]
    pub const fn next(&self) -> Cursor {
        self.next
    }

    /// Slots free when the other side has consumed up to count `consumed`.
    ///
    /// A count that is impossible for this ring leaves 0 free.
    #[inline]
    pub const fn free(&self, consumed: u32) -> u32 {
        let used = self.next.count.wrapping_sub(consumed);
        self.size.0.saturating_sub(used)
    }

    /// Slots from the next one up to the ring's end, at least 1: what a
    /// descriptor that may not wrap has to fit in, or be preceded by padding.
    #[inline]
    pub const fn until_wrap(&self) -> u32 {
        self.size.0.wrapping_sub(self.next.slot)
    }

    /// Claims `n` slots; `None` if `n` is 0 or more than are free.
    #[inline]
    pub fn reserve(&mut self, n: u32, consumed: u32) -> Option<Claim<'_>> {
        let free = self.free(consumed);
        claim(&mut self.next, n, free, self.size)
    }
}

/// The side that empties slots.
#[derive(Debug)]
pub struct Consumer {
    next: Cursor,
    size: RingSize,
}

impl Consumer {
    /// A consumer whose first slot is at count `start` (see [`Cursor::at`]).
    pub const fn new(size: RingSize, start: u32) -> Self {
        Self {
            next: Cursor::at(start, size),
            size,
        }
    }

    /// The next slot to empty.
    #[inline]
    pub const fn next(&self) -> Cursor {
        self.next
    }

    /// Slots filled when the other side has produced up to count `produced`.
    ///
    /// A count that is impossible for this ring, say from a device, counts as
    /// nothing.
    #[inline]
    pub const fn used(&self, produced: u32) -> u32 {
        let used = produced.wrapping_sub(self.next.count);
        if used > self.size.0 {
            0
        } else {
            used
        }
    }

    /// How many slots lie before `slot`, for a device that reports the slot it
    /// has reached (hns3's head register) and not a count (liquidio, mvneta).
    ///
    /// `None` if that slot does not exist or lies past what was produced. The
    /// consumer's own slot reads as 0, so such a ring may not be filled
    /// completely.
    #[inline]
    pub const fn distance(&self, slot: u32, produced: u32) -> Option<u32> {
        if slot >= self.size.0 {
            return None;
        }
        let n = if slot >= self.next.slot {
            slot.wrapping_sub(self.next.slot)
        } else {
            slot.wrapping_add(self.size.0).wrapping_sub(self.next.slot)
        };
        if n > self.used(produced) {
            return None;
        }
        Some(n)
    }

    /// Claims the next `n` filled slots; `None` if `n` is 0 or more than are
    /// filled. Commit once nothing in them is needed any more.
    #[inline]
    pub fn take(&mut self, n: u32, produced: u32) -> Option<Claim<'_>> {
        let used = self.used(produced);
        claim(&mut self.next, n, used, self.size)
    }
}

#[inline]
fn claim(side: &mut Cursor, n: u32, limit: u32, size: RingSize) -> Option<Claim<'_>> {
    if n == 0 || n > limit {
        return None;
    }
    let span = Span {
        start: *side,
        len: n,
        size,
    };
    Some(Claim { side, span })
}

/// Both sides of a ring that one context owns, such as an RX ring in its NAPI.
///
/// ```
/// use ring_core::index::{RingIndex, RingSize};
///
/// let mut ring = RingIndex::new(RingSize::new(6).unwrap());
/// let claim = ring.reserve(4).unwrap();
/// assert_eq!(claim.span().slot(3), Some(3));
/// claim.commit();
/// assert_eq!((ring.used(), ring.free()), (4, 2));
///
/// ring.take(3).unwrap().commit();
/// // Five more slots: two up to the end of the ring, three from its start.
/// let [first, second] = ring.reserve(5).unwrap().span().runs();
/// assert_eq!((first.slot, first.len, second.len), (4, 2, 3));
/// // That claim was dropped: nothing changed.
/// assert_eq!(ring.free(), 5);
/// ```
#[derive(Debug)]
pub struct RingIndex {
    producer: Producer,
    consumer: Consumer,
}

impl RingIndex {
    /// An empty ring that starts at count 0.
    pub const fn new(size: RingSize) -> Self {
        Self::starting_at(size, 0)
    }

    /// An empty ring that starts at count `start` (see [`Cursor::at`]).
    pub const fn starting_at(size: RingSize, start: u32) -> Self {
        Self {
            producer: Producer::new(size, start),
            consumer: Consumer::new(size, start),
        }
    }

    /// The filling side.
    #[inline]
    pub const fn producer(&self) -> &Producer {
        &self.producer
    }

    /// The emptying side.
    #[inline]
    pub const fn consumer(&self) -> &Consumer {
        &self.consumer
    }

    /// Slots filled.
    #[inline]
    pub const fn used(&self) -> u32 {
        self.consumer.used(self.producer.next.count)
    }

    /// Slots free.
    #[inline]
    pub const fn free(&self) -> u32 {
        self.producer.free(self.consumer.next.count)
    }

    /// Claims `n` slots to fill; `None` if `n` is 0 or more than are free.
    #[inline]
    pub fn reserve(&mut self, n: u32) -> Option<Claim<'_>> {
        self.producer.reserve(n, self.consumer.next.count)
    }

    /// Claims `n` slots to empty; `None` if `n` is 0 or more than are filled.
    #[inline]
    pub fn take(&mut self, n: u32) -> Option<Claim<'_>> {
        self.consumer.take(n, self.producer.next.count)
    }
}
