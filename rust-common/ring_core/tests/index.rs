// SPDX-License-Identifier: GPL-2.0

//! Ring positions against a queue of slot numbers.

use std::collections::VecDeque;

use proptest::prelude::*;
use ring_core::index::{
    Consumer,
    Cursor,
    Producer,
    RingIndex,
    RingSize,
    Span, //
};

/// The obvious ring: the slots in use, oldest first, and the next slot.
#[derive(Clone)]
struct Oracle {
    len: u32,
    used: VecDeque<u32>,
    next: u32,
}

impl Oracle {
    fn new(len: u32, start: u32) -> Self {
        Self {
            len,
            used: VecDeque::new(),
            next: start % len,
        }
    }

    fn reserve(&mut self, n: u32) -> Option<Vec<u32>> {
        if n == 0 || self.used.len() as u32 + n > self.len {
            return None;
        }
        let slots: Vec<u32> = (0..n).map(|i| (self.next + i) % self.len).collect();
        self.next = (self.next + n) % self.len;
        self.used.extend(&slots);
        Some(slots)
    }

    fn take(&mut self, n: u32) -> Option<Vec<u32>> {
        if n == 0 || self.used.len() < n as usize {
            return None;
        }
        Some(self.used.drain(..n as usize).collect())
    }
}

fn slots(span: Span) -> Vec<u32> {
    let by_index: Vec<u32> = (0..span.len()).map(|i| span.slot(i).unwrap()).collect();
    let by_run: Vec<u32> = span
        .runs()
        .iter()
        .flat_map(|run| run.slot..run.slot + run.len)
        .collect();
    assert_eq!(by_index, by_run);
    assert_eq!(span.slot(span.len()), None);
    by_index
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Fill(u32),
    RollBack(u32),
    Empty(u32),
}

fn apply(op: Op, ring: &mut RingIndex, oracle: &mut Oracle) {
    match op {
        Op::Fill(n) => {
            let got = ring.reserve(n).map(|claim| {
                let got = slots(claim.span());
                let end = claim.span().end().count();
                assert_eq!(claim.commit(), end);
                got
            });
            assert_eq!(got, oracle.reserve(n));
        }
        Op::RollBack(n) => {
            let got = ring.reserve(n).map(|claim| slots(claim.span()));
            assert_eq!(got, oracle.clone().reserve(n));
        }
        Op::Empty(n) => {
            let got = ring.take(n).map(|claim| {
                let got = slots(claim.span());
                claim.commit();
                got
            });
            assert_eq!(got, oracle.take(n));
        }
    }
    assert_eq!(ring.used(), oracle.used.len() as u32);
    assert_eq!(ring.free(), oracle.len - ring.used());
    assert_eq!(ring.producer().next().slot(), oracle.next);
    assert_eq!(ring.producer().until_wrap(), oracle.len - oracle.next);
    if let Some(&oldest) = oracle.used.front() {
        assert_eq!(ring.consumer().next().slot(), oldest);
    }
}

/// Every operation in every state of every small ring, at several starts, the
/// wrap of the count among them.
#[test]
fn every_state_of_small_rings() {
    for len in 2..=9 {
        let size = RingSize::new(len).unwrap();
        for start in [0, 1, len, u32::MAX - 2 * len, u32::MAX - 1, u32::MAX] {
            for (lead, fill) in (0..len).flat_map(|l| (0..=len).map(move |f| (l, f))) {
                for n in 0..=len + 1 {
                    for op in [Op::Fill(n), Op::RollBack(n), Op::Empty(n)] {
                        let mut ring = RingIndex::starting_at(size, start);
                        let mut oracle = Oracle::new(len, start);
                        for op in [Op::Fill(lead), Op::Empty(lead), Op::Fill(fill), op] {
                            apply(op, &mut ring, &mut oracle);
                        }
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn large_rings_across_the_wrap(
        len in 2u32..5000,
        before_wrap in 0u32..20_000,
        ops in prop::collection::vec((0u8..3, 0u32..6000), 1..200),
    ) {
        let start = before_wrap.wrapping_neg();
        let mut ring = RingIndex::starting_at(RingSize::new(len).unwrap(), start);
        let mut oracle = Oracle::new(len, start);
        for (kind, n) in ops {
            let op = match kind {
                0 => Op::Fill(n % (len + 2)),
                1 => Op::RollBack(n % (len + 2)),
                _ => Op::Empty(n % (len + 2)),
            };
            apply(op, &mut ring, &mut oracle);
        }
    }

    #[test]
    fn powers_of_two_keep_slot_and_count_together(
        log2 in 1u32..=31,
        start: u32,
        steps in prop::collection::vec(any::<u32>(), 1..50),
    ) {
        let size = RingSize::new(1 << log2).unwrap();
        let mut ring = RingIndex::starting_at(size, start);
        for n in steps {
            let n = n % size.get() + 1;
            ring.reserve(n).unwrap().commit();
            ring.take(n).unwrap().commit();
            let at = ring.producer().next();
            prop_assert_eq!(at.slot(), at.count() & size.mask().unwrap());
        }
    }
}

#[test]
fn distance_finds_the_slot_reached() {
    for len in 2..=9 {
        for start in (0..len).chain(u32::MAX - len..=u32::MAX) {
            let consumer = Consumer::new(RingSize::new(len).unwrap(), start);
            for used in 0..len {
                let produced = start.wrapping_add(used);
                for slot in 0..len + 2 {
                    let reached = |n: &u32| (consumer.next().slot() + n) % len == slot;
                    let expected = (0..=used).find(reached);
                    assert_eq!(consumer.distance(slot, produced), expected);
                }
            }
        }
    }
}

#[test]
fn sizes() {
    assert_eq!(RingSize::new(0), None);
    assert_eq!(RingSize::new(1), None);
    assert_eq!(RingSize::new(RingSize::MAX + 1), None);
    let largest = RingSize::new(RingSize::MAX).unwrap();
    assert_eq!(
        (largest.log2(), largest.mask()),
        (Some(31), Some(0x7fff_ffff))
    );
    let odd = RingSize::new(6).unwrap();
    assert_eq!((odd.get(), odd.log2(), odd.mask()), (6, None, None));
}

#[test]
fn the_longest_ring_fills_and_empties() {
    let mut ring = RingIndex::starting_at(RingSize::new(RingSize::MAX).unwrap(), u32::MAX);
    for _ in 0..3 {
        ring.reserve(RingSize::MAX).unwrap().commit();
        assert_eq!((ring.free(), ring.used()), (0, RingSize::MAX));
        ring.take(RingSize::MAX).unwrap().commit();
        assert_eq!((ring.free(), ring.used()), (RingSize::MAX, 0));
    }
}

#[test]
fn impossible_counts_of_the_other_side_move_nothing() {
    let size = RingSize::new(8).unwrap();
    let mut producer = Producer::new(size, 100);
    let mut consumer = Consumer::new(size, 100);
    // "Consumed" ahead of what was produced, or further behind than the ring.
    for consumed in [101, 91, 0, u32::MAX] {
        assert_eq!(producer.free(consumed), 0);
        assert!(producer.reserve(1, consumed).is_none());
    }
    // "Produced" behind what was consumed, or further ahead than the ring.
    for produced in [99, 109, 0, u32::MAX] {
        assert_eq!(consumer.used(produced), 0);
        assert!(consumer.take(1, produced).is_none());
        assert_eq!(consumer.distance(5, produced), None);
    }
    assert_eq!(consumer.distance(8, 108), None);
}

#[test]
fn a_cursor_starts_at_its_count() {
    let size = RingSize::new(6).unwrap();
    assert_eq!(
        (Cursor::at(13, size).count(), Cursor::at(13, size).slot()),
        (13, 1)
    );
}
