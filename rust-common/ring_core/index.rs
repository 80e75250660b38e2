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
//! used. A device that wants one slot kept empty gets it from its
//! [`stop`](crate::stop) thresholds.

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
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Binary logarithm of the length if it is a power of two.
    pub const fn log2(self) -> Option<u32> {
        if self.0.is_power_of_two() {
            Some(self.0.trailing_zeros())
        } else {
            None
        }
    }

    /// `length - 1` if the length is a power of two.
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
    pub const fn count(self) -> u32 {
        self.count
    }

    /// The slot at this position, below the ring's length.
    pub const fn slot(self) -> u32 {
        self.slot
    }

    /// Slot 0 at `count`: for a ring that is empty and may start over anywhere.
    pub(crate) const fn rewound(count: u32) -> Self {
        Self { count, slot: 0 }
    }

    /// The position `n` slots on; `n` is at most the ring's length.
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
    pub const fn len(self) -> u32 {
        self.len
    }

    /// Position of the first slot.
    pub const fn start(self) -> Cursor {
        self.start
    }

    /// Position after the last slot.
    pub const fn end(self) -> Cursor {
        self.start.advanced(self.len, self.size)
    }

    /// The `i`-th slot, or `None` past the end.
    pub const fn slot(self, i: u32) -> Option<u32> {
        if i >= self.len {
            return None;
        }
        Some(self.start.advanced(i, self.size).slot)
    }

    /// The span as a run up to the ring's end and one from slot 0, which is
    /// empty unless the span wraps.
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
    pub fn span(&self) -> Span {
        self.span
    }

    /// Moves the side past the slots and returns its new count.
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
    pub const fn next(&self) -> Cursor {
        self.next
    }

    /// Slots free when the other side has consumed up to count `consumed`.
    ///
    /// A count that is impossible for this ring leaves 0 free.
    pub const fn free(&self, consumed: u32) -> u32 {
        let used = self.next.count.wrapping_sub(consumed);
        self.size.0.saturating_sub(used)
    }

    /// Slots from the next one up to the ring's end, at least 1: what a
    /// descriptor that may not wrap has to fit in, or be preceded by padding.
    pub const fn until_wrap(&self) -> u32 {
        self.size.0.wrapping_sub(self.next.slot)
    }

    /// Claims `n` slots; `None` if `n` is 0 or more than are free.
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
    pub const fn next(&self) -> Cursor {
        self.next
    }

    /// Slots filled when the other side has produced up to count `produced`.
    ///
    /// A count that is impossible for this ring, say from a device, counts as
    /// nothing.
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
    pub fn take(&mut self, n: u32, produced: u32) -> Option<Claim<'_>> {
        let used = self.used(produced);
        claim(&mut self.next, n, used, self.size)
    }
}

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
    pub const fn producer(&self) -> &Producer {
        &self.producer
    }

    /// The emptying side.
    pub const fn consumer(&self) -> &Consumer {
        &self.consumer
    }

    /// Slots filled.
    pub const fn used(&self) -> u32 {
        self.consumer.used(self.producer.next.count)
    }

    /// Slots free.
    pub const fn free(&self) -> u32 {
        self.producer.free(self.consumer.next.count)
    }

    /// Claims `n` slots to fill; `None` if `n` is 0 or more than are free.
    pub fn reserve(&mut self, n: u32) -> Option<Claim<'_>> {
        self.producer.reserve(n, self.consumer.next.count)
    }

    /// Claims `n` slots to empty; `None` if `n` is 0 or more than are filled.
    pub fn take(&mut self, n: u32) -> Option<Claim<'_>> {
        self.consumer.take(n, self.producer.next.count)
    }
}
