// SPDX-License-Identifier: GPL-2.0

//! No descriptor may wait for a packet that never comes.

use proptest::prelude::*;
use ring_core::doorbell::{
    Decision,
    RxDoorbell,
    SentQueue,
    TxDoorbell, //
};

#[derive(Clone, Copy, Debug)]
enum Packet {
    Sent { n: u32, kick: bool, stopped: bool },
    Dropped,
}

fn packets() -> Vec<Packet> {
    let mut all = vec![Packet::Dropped];
    for n in [1, 3] {
        for (kick, stopped) in [(false, false), (false, true), (true, false), (true, true)] {
            all.push(Packet::Sent { n, kick, stopped });
        }
    }
    all
}

/// Runs `sequence`; the oracle is a list of descriptors not told of.
fn run(limit: u32, sequence: &[Packet]) {
    let mut doorbell = TxDoorbell::new(limit);
    let mut waiting = 0;
    let mut rings = 0;
    for &packet in sequence {
        let mut told = None;
        let rung = match packet {
            Packet::Dropped => {
                let _rung = doorbell.dropped().ring(|n| told = Some(n));
                true
            }
            Packet::Sent { n, kick, stopped } => {
                waiting += n;
                match doorbell.sent(n, SentQueue { kick, stopped }) {
                    Decision::Ring(must) => {
                        let _rung = must.ring(|n| told = Some(n));
                        true
                    }
                    Decision::Defer(_) => {
                        assert!(!kick && !stopped && waiting < limit, "{sequence:?}");
                        false
                    }
                }
            }
        };
        if rung {
            // Told of all that waited, and not rung for nothing.
            assert_eq!(told, (waiting > 0).then_some(waiting), "{sequence:?}");
            rings += u64::from(waiting > 0);
            waiting = 0;
        } else {
            assert_eq!(told, None);
        }
        assert_eq!((doorbell.unannounced(), doorbell.rings()), (waiting, rings));
    }
}

#[test]
fn every_sequence_of_four_packets() {
    let all = packets();
    for limit in [1, 4, u32::MAX] {
        for a in &all {
            for b in &all {
                for c in &all {
                    for d in &all {
                        run(limit, &[*a, *b, *c, *d]);
                    }
                }
            }
        }
    }
}

#[test]
fn a_burst_of_32_rings_once() {
    let mut doorbell = TxDoorbell::new(256);
    for i in 1..=32 {
        let answer = SentQueue {
            kick: i == 32,
            stopped: false,
        };
        if let Decision::Ring(must) = doorbell.sent(1, answer) {
            let _rung = must.ring(|n| assert_eq!(n, 32));
        }
    }
    assert_eq!((doorbell.rings(), doorbell.unannounced()), (1, 0));
}

#[test]
fn a_burst_of_frames_rings_at_its_end() {
    for (limit, frames) in [(256, 64), (8, 64), (1, 3)] {
        let mut doorbell = TxDoorbell::new(limit);
        let mut told = 0;
        for _ in 0..frames {
            if doorbell.queued(1) {
                let _rung = doorbell.dropped().ring(|n| {
                    assert!(n <= limit);
                    told += n;
                });
            }
        }
        let _rung = doorbell.dropped().ring(|n| told += n);
        assert_eq!((told, doorbell.unannounced()), (frames, 0));
        assert_eq!(doorbell.rings(), u64::from(frames.div_ceil(limit)));
    }
}

#[test]
fn a_counting_doorbell_never_exceeds_its_width() {
    // mvneta announces at most 255 at once; a packet has up to 18 descriptors.
    let more = SentQueue {
        kick: false,
        stopped: false,
    };
    let mut doorbell = TxDoorbell::new(255 - 18);
    for _ in 0..1000 {
        if let Decision::Ring(must) = doorbell.sent(18, more) {
            let _rung = must.ring(|n| assert!(n <= 255));
        }
    }
}

#[test]
fn rx_bounds() {
    for (len, bound) in [(2, 0), (4, 1), (128, 32), (256, 64), (257, 64), (8192, 64)] {
        let mut doorbell = RxDoorbell::new(len);
        for n in 1..=64 {
            assert_eq!(doorbell.posted(1), n >= bound, "ring of {len}, {n} posted");
        }
        doorbell.flush(|n| assert_eq!(n, 64));
        assert_eq!((doorbell.unannounced(), doorbell.rings()), (0, 1));
        doorbell.flush(|_| panic!("rang for nothing"));
    }
}

proptest! {
    #[test]
    fn rx_announces_each_buffer_once(
        len in 2u32..10_000,
        polls in prop::collection::vec(0u32..600, 1..20),
    ) {
        let mut doorbell = RxDoorbell::new(len);
        let (mut posted, mut told, mut due) = (0, 0, 0);
        for &poll in &polls {
            for _ in 0..poll {
                posted += 1;
                if doorbell.posted(1) {
                    doorbell.flush(|n| told += n);
                    due += 1;
                }
                prop_assert!(posted - told < (len / 4).clamp(1, RxDoorbell::MAX_BOUND));
            }
            doorbell.flush(|n| told += n);
            prop_assert_eq!(told, posted);
        }
        prop_assert!(doorbell.rings() <= due + polls.len() as u64);
    }
}
