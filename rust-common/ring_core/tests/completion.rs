// SPDX-License-Identifier: GPL-2.0

//! Completion rings: generations and lap budgets against a device that writes laps.

use ring_core::arm::LapBudget;
use ring_core::index::{
    Cursor,
    RingIndex,
    RingSize, //
};
use ring_core::owner::{
    Entry,
    Generation,
    Phase, //
};

/// Every fill of every small ring over many laps, the wrap of the count among
/// them: exactly the entries written are new.
fn every_fill<const BITS: u32>() {
    for log2 in 1..=3 {
        let size = RingSize::new(1 << log2).unwrap();
        let len = size.get();
        let generation = Generation::<BITS>::new(size).unwrap();
        let laps = 1u32 << BITS;
        for start in [0, len, (3 * len).wrapping_neg(), len.wrapping_neg()] {
            // Memory as one lap before the start left it.
            let before = generation.at(Cursor::at(start.wrapping_sub(len), size));
            let mut memory = vec![before; len as usize];
            let mut ring = RingIndex::starting_at(size, start);
            for step in 0..4 * laps * len {
                let fill = step % (len + 1);
                for _ in 0..fill {
                    let claim = ring.reserve(1).unwrap();
                    let at = claim.span().start();
                    memory[at.slot() as usize] = generation.at(at);
                    claim.commit();
                }
                for _ in 0..fill {
                    let at = ring.consumer().next();
                    let seen = memory[at.slot() as usize];
                    assert_eq!(generation.classify(at, seen), Entry::New);
                    ring.take(1).unwrap().commit();
                }
                let at = ring.consumer().next();
                let seen = memory[at.slot() as usize];
                assert_eq!(generation.classify(at, seen), Entry::Old);
            }
        }
    }
}

#[test]
fn generations_of_one_two_and_three_bits() {
    every_fill::<1>();
    every_fill::<2>();
    every_fill::<3>();
}

#[test]
fn three_bits_show_an_overrun_one_bit_does_not() {
    let size = RingSize::new(4).unwrap();
    let mana = Generation::<3>::new(size).unwrap();
    let at = Cursor::at(4, size);
    let verdicts: Vec<Entry> = (0..8).map(|seen| mana.classify(at, seen)).collect();
    assert_eq!(verdicts[..2], [Entry::Old, Entry::New]);
    assert!(verdicts[2..].iter().all(|v| *v == Entry::Overrun));
    // A device's garbage above the field.
    assert_eq!(mana.classify(at, 9), Entry::Overrun);

    let mlx5 = Phase::new(size).unwrap();
    assert_eq!(mlx5.classify(at, 0), Entry::Old);
    assert_eq!(mlx5.classify(at, 1), Entry::New);
}

#[test]
fn generations_need_room_in_the_count() {
    let size = |len| RingSize::new(len).unwrap();
    assert!(Generation::<3>::new(size(6)).is_none());
    assert!(Generation::<0>::new(size(8)).is_none());
    assert!(Generation::<3>::new(size(1 << 29)).is_some());
    assert!(Generation::<3>::new(size(1 << 30)).is_none());
    assert!(Generation::<31>::new(size(2)).is_some());
    assert!(Generation::<32>::new(size(2)).is_none());
}

#[test]
fn the_doorbell_form_is_the_count_modulo_slots_and_laps() {
    let size = RingSize::new(16).unwrap();
    let mana = Generation::<3>::new(size).unwrap();
    for count in (0..600).chain(u32::MAX - 600..=u32::MAX) {
        assert_eq!(
            mana.slot_and_lap(Cursor::at(count, size)),
            count % (16 << 3)
        );
    }
    let most = Generation::<31>::new(RingSize::new(2).unwrap()).unwrap();
    let last = Cursor::at(u32::MAX, RingSize::new(2).unwrap());
    assert_eq!(most.slot_and_lap(last), u32::MAX);
}

/// Whatever polls of a lap at most consume, the device hears in time.
fn never_too_late<const LAPS: u32>(lap: u32) {
    let due = LAPS / 2 * lap;
    for first in 0..=lap {
        let mut laps = LapBudget::<LAPS>::new(RingSize::new(lap).unwrap()).unwrap();
        let mut silent = 0;
        let polls = [first, lap, 1, lap - 1, lap];
        for n in polls.into_iter().cycle().take(20) {
            silent += n;
            assert!(silent <= LAPS * lap);
            if laps.consumed(n) {
                assert!(silent >= due, "rang early");
                laps.rung();
                silent = 0;
            }
            assert!(silent < due);
        }
    }
}

#[test]
fn the_device_hears_within_its_laps() {
    for len in [2, 3, 8] {
        never_too_late::<2>(len);
        never_too_late::<3>(len);
        never_too_late::<8>(len);
    }
}

#[test]
fn lap_budgets_that_make_no_sense() {
    let size = |len| RingSize::new(len).unwrap();
    assert!(LapBudget::<0>::new(size(8)).is_none());
    assert!(LapBudget::<1>::new(size(8)).is_none());
    assert!(LapBudget::<8>::new(size(1 << 28)).is_some());
    assert!(LapBudget::<8>::new(size(1 << 29)).is_none());
}
