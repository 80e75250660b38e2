// SPDX-License-Identifier: GPL-2.0

//! Stop and wake thresholds, and ring lengths, against a search by hand.

use proptest::prelude::*;
use ring_core::index::RingSize;
use ring_core::stop::{
    Limits,
    Neighbours,
    Step,
    StopWake, //
};

const MAX_SKB_FRAGS: u32 = 17;

#[test]
fn no_ring_stays_stopped() {
    for worst in 1..=40 {
        for len in 2..=200 {
            let stop = StopWake::new(RingSize::new(len).unwrap(), worst);
            assert_eq!(
                stop.is_some(),
                len > worst,
                "ring of {len}, packet of {worst}"
            );
            let Some(stop) = stop else { continue };
            // A running queue takes any packet; a woken one too.
            assert!((0..worst).all(|free| stop.must_stop(free)));
            assert!(!stop.must_stop(worst));
            assert!(stop.wake() >= stop.stop());
            // An idle ring wakes, with one slot kept empty as well.
            assert!(stop.may_wake(len) && stop.may_wake(len - 1));
            // At two packets if the ring has that much.
            if len > 2 * worst {
                assert!(stop.may_wake(2 * worst) && !stop.may_wake(2 * worst - 1));
            }
        }
    }
}

#[test]
fn who_shares_a_ring_leaves_room_to_wake() {
    for worst in 1..=40 {
        for len in worst + 1..=200 {
            let size = RingSize::new(len).unwrap();
            let stop = StopWake::new(size, worst).unwrap();
            let room = stop.sharing(size, worst);
            // There is such a moment, and then room for the packet.
            assert!((worst..=len).contains(&room));
            // A stopped queue wakes behind the largest packet, unless the ring is too small for that;
            // then behind one of the smallest.
            assert!(stop.may_wake(room - worst) || room == len && stop.may_wake(len - 1));
        }
    }
}

#[test]
fn the_smallest_ring_is_max_skb_frags_plus_two() {
    let worst = StopWake::worst_packet(MAX_SKB_FRAGS, 0);
    let smallest = (2..).find(|len| StopWake::new(RingSize::new(*len).unwrap(), worst).is_some());
    assert_eq!(smallest, Some(MAX_SKB_FRAGS + 2));
}

#[test]
fn extreme_packets() {
    let largest = RingSize::new(RingSize::MAX).unwrap();
    assert_eq!(StopWake::new(largest, 0), None);
    assert_eq!(StopWake::new(largest, RingSize::MAX), None);
    let stop = StopWake::new(largest, RingSize::MAX - 1).unwrap();
    assert_eq!(
        (stop.stop(), stop.wake()),
        (RingSize::MAX - 1, RingSize::MAX - 1)
    );
    assert_eq!(StopWake::worst_packet(u32::MAX, 7), u32::MAX);
}

fn accepts(min: u32, max: u32, step: Step, len: u32) -> bool {
    let on_step = match step {
        Step::PowerOfTwo => len != 0 && len & (len - 1) == 0,
        Step::Multiple(n) => len % n == 0,
    };
    on_step && min <= len && len <= max
}

#[test]
fn every_length_of_small_limits() {
    let multiples = (1..=9).map(Step::Multiple);
    for step in multiples.chain([Step::PowerOfTwo]) {
        for min in 0..=40 {
            for max in 0..=40 {
                let valid: Vec<u32> = (0..=40).filter(|l| accepts(min, max, step, *l)).collect();
                let expected = min >= 1 && valid.contains(&min) && valid.contains(&max);
                let limits = Limits::new(min, min, max, step);
                assert_eq!(limits.is_some(), expected, "{min}..={max}, {step:?}");
                let Some(limits) = limits else { continue };
                for len in 0..=50 {
                    let expected = if valid.contains(&len) {
                        Ok(len)
                    } else {
                        Err(Neighbours {
                            lower: valid.iter().copied().rfind(|v| *v < len),
                            upper: valid.iter().copied().find(|v| *v > len),
                        })
                    };
                    assert_eq!(limits.check(len), expected, "{len} in {limits:?}");
                }
            }
        }
    }
}

#[test]
fn defaults_and_nonsense() {
    let rx = Limits::new(128, 1024, 8192, Step::PowerOfTwo).unwrap();
    assert_eq!((rx.min(), rx.default(), rx.max()), (128, 1024, 8192));
    assert_eq!(Limits::new(128, 64, 8192, Step::PowerOfTwo), None);
    assert_eq!(Limits::new(128, 16384, 8192, Step::PowerOfTwo), None);
    assert_eq!(Limits::new(128, 200, 8192, Step::PowerOfTwo), None);
    assert_eq!(Limits::new(8, 8, 8, Step::Multiple(0)), None);
}

proptest! {
    #[test]
    fn neighbours_are_valid_and_nearest(n in 1u32..=4096, lo: u32, hi: u32, len: u32) {
        let min = (lo / n).max(1).saturating_mul(n) / n * n;
        let max = hi / n * n;
        prop_assume!(min <= max);
        let limits = Limits::new(min, min, max, Step::Multiple(n)).unwrap();
        if let Err(Neighbours { lower, upper }) = limits.check(len) {
            for neighbour in lower.into_iter().chain(upper) {
                prop_assert_eq!(limits.check(neighbour), Ok(neighbour));
            }
            prop_assert!(lower.is_some() || upper.is_some());
            if let (Some(lower), Some(upper)) = (lower, upper) {
                prop_assert!(lower < len && len < upper && upper - lower == n);
            }
        }
    }
}
