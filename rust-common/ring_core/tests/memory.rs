// SPDX-License-Identifier: GPL-2.0

//! Slabs and the bounce ring against the bytes they hand out.

use std::collections::VecDeque;

use proptest::prelude::*;
use ring_core::bounce::{
    BounceRing,
    Piece,
    User, //
};
use ring_core::copybreak::{
    decide,
    Copied, //
};
use ring_core::index::RingSize;
use ring_core::slab::Slab;

#[test]
fn slab_elements_are_aligned_and_apart() {
    for size in 1..=40 {
        for count in 1..=5 {
            for align in [1, 2, 8, 64] {
                let slab = Slab::new(size, count, align).unwrap();
                let mut free_from = 0;
                for i in 0..count {
                    let offset = slab.offset(i).unwrap();
                    assert!(offset % align == 0 && offset >= free_from);
                    assert!(offset - free_from < align, "no more padding than needed");
                    free_from = offset + slab.size();
                }
                assert!(free_from <= slab.bytes());
                assert_eq!(slab.bytes(), slab.stride() * slab.count() as usize);
                assert_eq!(slab.offset(count), None);
                for offset in 0..slab.bytes() + 70 {
                    let expected = (0..count).find(|i| slab.offset(*i) == Some(offset));
                    assert_eq!(slab.index(offset), expected);
                }
            }
        }
    }
}

#[test]
fn slabs_that_cannot_be() {
    assert_eq!(Slab::new(0, 1, 1), None);
    assert_eq!(Slab::new(1, 0, 1), None);
    assert_eq!(Slab::new(1, 1, 0), None);
    assert_eq!(Slab::new(1, 1, 24), None);
    assert_eq!(Slab::new(usize::MAX, 1, 64), None);
    assert_eq!(Slab::new(usize::MAX / 2 + 2, 1, 1), None);
    assert_eq!(Slab::new(usize::MAX / 2, u32::MAX, 1), None);
    assert!(Slab::new(usize::MAX / 2, 1, 1).is_some());
}

/// The bounce ring beside a map of its bytes.
struct Bounce {
    ring: BounceRing,
    freed: u32,
    /// Pieces not freed, oldest first, with the bytes charged to each.
    pieces: VecDeque<(Piece, Vec<usize>)>,
    held: Vec<bool>,
    next: usize,
}

impl Bounce {
    fn new(len: u32, start: u32) -> Self {
        Self {
            ring: BounceRing::starting_at(RingSize::new(len).unwrap(), start),
            freed: start,
            pieces: VecDeque::new(),
            held: vec![false; len as usize],
            next: 0,
        }
    }

    /// The first place from `next` on where the piece lies aligned and in one,
    /// and the bytes up to its end; `None` if one of them is held.
    fn place(&self, len: usize, align: usize) -> Option<(usize, Vec<usize>)> {
        let size = self.held.len();
        let next = if self.pieces.is_empty() { 0 } else { self.next };
        let skip = (0..size).find(|skip| {
            let at = (next + skip) % size;
            at % align == 0 && at + len <= size
        })?;
        if skip + len > size {
            return None;
        }
        let bytes: Vec<usize> = (0..skip + len).map(|i| (next + i) % size).collect();
        bytes
            .iter()
            .all(|byte| !self.held[*byte])
            .then_some(((next + skip) % size, bytes))
    }

    fn take(&mut self, len: u32, align: u32) {
        let expected = self.place(len as usize, align as usize);
        let got = self.ring.take(len, align, User::Packet, self.freed);
        let offset = got.as_ref().map(|piece| piece.offset() as usize);
        assert_eq!(offset, expected.as_ref().map(|(offset, _)| *offset));
        if let (Some(piece), Some((_, bytes))) = (got, expected) {
            assert_eq!(piece.len(), len);
            self.next = (bytes[bytes.len() - 1] + 1) % self.held.len();
            bytes.iter().for_each(|byte| self.held[*byte] = true);
            self.pieces.push_back((piece, bytes));
        }
        self.check();
    }

    fn free_oldest(&mut self) {
        if let Some((piece, bytes)) = self.pieces.pop_front() {
            bytes.iter().for_each(|byte| self.held[*byte] = false);
            self.freed = piece.free(self.freed);
        }
        self.check();
    }

    fn roll_back(&mut self) {
        if let Some((piece, bytes)) = self.pieces.pop_back() {
            bytes.iter().for_each(|byte| self.held[*byte] = false);
            self.next = bytes[0];
            self.ring.roll_back(piece).unwrap();
        }
        self.check();
    }

    /// Only the newest piece can be rolled back.
    fn refuse_roll_back(&mut self) {
        if self.pieces.len() > 1 {
            let (piece, bytes) = self.pieces.pop_front().unwrap();
            let piece = self.ring.roll_back(piece).unwrap_err();
            self.pieces.push_front((piece, bytes));
        }
        self.check();
    }

    fn check(&self) {
        let held = self.held.iter().filter(|held| **held).count();
        assert_eq!(self.ring.used(self.freed) as usize, held);
    }

    /// Once idle, every byte is there again, in one piece.
    fn drain(mut self) {
        while !self.pieces.is_empty() {
            self.free_oldest();
        }
        let all = self.held.len() as u32;
        self.take(all, 1);
        assert_eq!(self.pieces.len(), 1);
    }
}

enum Op {
    Take(u32, u32),
    FreeOldest,
    RollBack,
}

/// Every sequence of five operations.
#[test]
fn every_short_history_of_small_bounce_rings() {
    for len in 2..=4u32 {
        let takes = (1..=len + 1).flat_map(|n| [(n, 1), (n, 2)]);
        let mut ops: Vec<Op> = takes.map(|(n, align)| Op::Take(n, align)).collect();
        ops.extend([Op::FreeOldest, Op::RollBack]);
        for history in 0..ops.len().pow(5) {
            let mut bounce = Bounce::new(len, u32::MAX - 3);
            let mut rest = history;
            for _ in 0..5 {
                match ops[rest % ops.len()] {
                    Op::Take(n, align) => bounce.take(n, align),
                    Op::FreeOldest => bounce.free_oldest(),
                    Op::RollBack => {
                        bounce.refuse_roll_back();
                        bounce.roll_back();
                    }
                }
                rest /= ops.len();
            }
            bounce.drain();
        }
    }
}

proptest! {
    #[test]
    fn long_histories_of_bounce_rings(
        len in 2u32..3000,
        before_wrap in 0u32..100_000,
        ops in prop::collection::vec((0u8..8, 1u32..2000, 0u32..8), 1..120),
    ) {
        let mut bounce = Bounce::new(len, before_wrap.wrapping_neg());
        for (op, n, align) in ops {
            match op {
                0..=3 => bounce.take(n % (len + 1) + 1, 1 << align),
                4..=5 => bounce.free_oldest(),
                6 => bounce.roll_back(),
                _ => bounce.refuse_roll_back(),
            }
        }
        bounce.drain();
    }
}

#[test]
fn bounce_requests_that_cannot_be() {
    let mut ring = BounceRing::new(RingSize::new(RingSize::MAX).unwrap());
    assert_eq!(ring.take(0, 1, User::Table, 0), None);
    assert_eq!(ring.take(8, 0, User::Table, 0), None);
    assert_eq!(ring.take(8, 3, User::Table, 0), None);
    assert_eq!(ring.take(u32::MAX, 1 << 31, User::Table, 0), None);
    // A freed count that is ahead of what was taken.
    assert_eq!(ring.take(8, 1, User::Table, 1), None);
    let piece = ring.take(RingSize::MAX, 1 << 31, User::Table, 0).unwrap();
    assert_eq!((piece.user(), piece.is_empty()), (User::Table, false));
    assert_eq!(ring.take(1, 1, User::Packet, 0), None);
}

#[test]
fn copybreak_edges() {
    assert_eq!(decide(0, 0, 256), Copied::Nothing);
    assert_eq!(decide(257, 257, 256), Copied::Nothing);
    assert_eq!(decide(257, 256, 256), Copied::Head);
    // Nothing linear: there is no head to copy.
    assert_eq!(decide(257, 0, 256), Copied::Nothing);
    assert_eq!(decide(u32::MAX, u32::MAX, u32::MAX), Copied::Whole);
}
