// SPDX-License-Identifier: GPL-2.0

//! Formats of the MANA driver, against words put together by hand from
//! `include/net/mana/{gdma,mana}.h` and `shm_channel.c`.

#![cfg(test)]
#![allow(dead_code, reason = "tests use a part of each file")]

#[path = "../bits.rs"]
mod bits;
#[path = "../rx/completion.rs"]
mod completion;
#[path = "../tx/oob.rs"]
mod oob;
#[path = "../regs.rs"]
mod regs;
#[path = "../shm/window.rs"]
mod window;

mod doorbells {
    use crate::regs::{cq_doorbell, eq_doorbell, wq_doorbell};

    #[test]
    fn work_queues_count_bytes_and_wrap() {
        assert_eq!(wq_doorbell(0x12_3456, 3), 96 << 32 | 0x12_3456);
        assert_eq!(wq_doorbell(1, 1 << 27), 1);
        assert_eq!(wq_doorbell(1, u32::MAX), 0xffff_ffe0 << 32 | 1);
    }

    #[test]
    fn completion_queues_arm_by_the_top_bit() {
        assert_eq!(cq_doorbell(5, 7, false), 7 << 32 | 5);
        assert_eq!(cq_doorbell(5, 7, true), 1 << 63 | 7 << 32 | 5);
    }

    #[test]
    fn event_queues_are_always_armed() {
        assert_eq!(eq_doorbell(9, 0x800), 1 << 63 | 0x800 << 32 | 9);
    }
}

mod layout {
    use crate::regs::Layout;

    const BAR: usize = 0x10_0000;

    #[test]
    fn pages_end_with_the_bar() {
        let layout = Layout::new(0x1_0000, 0x1000, 0x2000, BAR).unwrap();
        assert_eq!(layout.shm(), 0x2000);
        assert_eq!(layout.doorbell_page(0), Some(0x1_0000));
        assert_eq!(layout.doorbell_page(0xef), Some(0xf_f000));
        assert_eq!(layout.doorbell_page(0xf0), None);
        assert_eq!(layout.doorbell_page(u32::MAX), None);
    }

    #[test]
    fn upper_half_of_the_page_size_means_nothing() {
        let layout = Layout::new(0x1_0000, 0xabcd_1000, 0x2000, BAR).unwrap();
        assert_eq!(layout.doorbell_page(1), Some(0x1_1000));
    }

    #[test]
    fn nonsense_is_refused() {
        for (doorbells, size, shm) in [
            (0x1_0000, 0xff8, 0x2000),
            (0x1_0000, 0x1001, 0x2000),
            (0x1_0004, 0x1000, 0x2000),
            (0xf_f001, 0x1000, 0x2000),
            (0x10_0000, 0x1000, 0x2000),
            (u64::MAX, u32::MAX, 0x2000),
            (0x1_0000, 0x1000, 0x2002),
            (0x1_0000, 0x1000, 0xf_ffe4),
            (0x1_0000, 0x1000, u64::MAX),
        ] {
            assert!(Layout::new(doorbells, size, shm, BAR).is_none());
        }
        assert!(Layout::new(0x1_0000, 0x1000, 0xf_ffe0, BAR).is_some());
    }
}

mod shared_memory {
    use crate::window::{establish, Header, Message, Refusal};

    #[test]
    fn four_frames_of_52_bits_fill_the_window() {
        let frames = [
            0x1_2345_6789_abcd,
            0x2_1111_2222_3333,
            0xf_ffff_ffff_ffff,
            0x4_0000_0000_0001,
        ];
        let window = establish(frames, 0x55aa).unwrap();
        assert_eq!(
            window,
            [
                0x6789_abcd,
                0x3333_2345,
                0x1111_2222,
                0xffff_ffff,
                0x0001_ffff,
                0x0000_0000,
                0x55aa_4f21,
                0x0000_0001,
            ]
        );
    }

    #[test]
    fn a_frame_of_53_bits_does_not_fit() {
        assert!(establish([0, 0, 1 << 52, 0], 0).is_none());
    }

    #[test]
    fn answers() {
        let answer = |bits| Header(bits).check_response(Message::EstablishHwc);
        assert_eq!(answer(0x81), Ok(()));
        assert_eq!(answer(0x0381), Err(Refusal::Status(3)));
        // A request, the answer to another message, one of a later version.
        assert_eq!(answer(0x01), Err(Refusal::Protocol));
        assert_eq!(answer(0x82), Err(Refusal::Protocol));
        assert_eq!(answer(0x89), Err(Refusal::Protocol));
        assert_eq!(Header::request(Message::DestroyHwc), Header(2));
    }

    #[test]
    fn owner_and_reset() {
        assert!(Header(0x8000_0001).is_busy());
        assert!(!Header(0x81).is_busy());
        assert!(Header(u32::MAX).is_gone());
        assert!(!Header(0x8000_0001).is_gone());
    }
}

mod receive {
    use crate::completion::{Completion, CqeType, Hashed, Packet};

    fn completion(kind: u32, flags: u32, entries: [[u32; 3]; 4]) -> Completion<15> {
        let mut words = [0; 15];
        words[0] = kind | 1 << 6;
        words[1] = flags;
        for (i, word) in entries.concat().into_iter().enumerate() {
            words[2 + i] = word;
        }
        // Behind the entries: not a fifth one.
        words[14] = 99;
        Completion::new(words)
    }

    fn packets(completion: &Completion<15>) -> Vec<(u32, u32)> {
        (0..)
            .map_while(|i| completion.packet(i))
            .map(|Packet { len, hash }| (len, hash))
            .collect()
    }

    #[test]
    fn one_packet() {
        let one = completion(1, 0, [[0x0001_05ea, 7, 0xcafe], [60, 0, 1], [0; 3], [0; 3]]);
        assert_eq!(one.kind(), CqeType::Okay);
        assert_eq!(packets(&one), [(0x5ea, 0xcafe)]);
        assert!(packets(&completion(1, 0, [[0; 3]; 4])).is_empty());
    }

    #[test]
    fn up_to_four_packets() {
        let all = completion(2, 0, [[60, 0, 1], [61, 0, 2], [62, 0, 3], [63, 0, 4]]);
        assert_eq!(packets(&all), [(60, 1), (61, 2), (62, 3), (63, 4)]);
        let two = completion(2, 0, [[60, 0, 1], [61, 0, 2], [0; 3], [63, 0, 4]]);
        assert_eq!(packets(&two), [(60, 1), (61, 2)]);
    }

    #[test]
    fn up_to_eight_packets() {
        let pair = |n: u32| [n, (61 + n) << 16 | (60 + n), n + 1];
        let all = completion(7, 0, [pair(0), pair(2), pair(4), pair(6)]);
        let expected: Vec<_> = (0..8).map(|n| (60 + n, n)).collect();
        assert_eq!(packets(&all), expected);
        let three = completion(7, 0, [pair(0), [2, 62, 9], [0; 3], pair(6)]);
        assert_eq!(packets(&three), [(60, 0), (61, 1), (62, 2)]);
    }

    #[test]
    fn others_have_no_packets() {
        for (kind, expected) in [
            (3, CqeType::Fence),
            (4, CqeType::Truncated),
            (0, CqeType::Unknown),
            (33, CqeType::Unknown),
        ] {
            let other = completion(kind, 0, [[60, 60, 60]; 4]);
            assert_eq!(other.kind(), expected);
            assert!(packets(&other).is_empty());
        }
    }

    #[test]
    fn flags() {
        let flags = |bits| completion(1, bits, [[60, 0, 1]; 4]);
        assert!(flags(1 << 25 | 1 << 27).l4_csum_succeed());
        assert!(flags(1 << 25 | 1 << 29).l4_csum_succeed());
        assert!(!flags(1 << 27 | 1 << 29).l4_csum_succeed());
        assert!(!flags(1 << 25 | 1 << 28).l4_csum_succeed());

        assert_eq!(flags(0).hash_kind(), None);
        assert_eq!(flags(1 << 16).hash_kind(), Some(Hashed::L3));
        assert_eq!(flags(1 << 17).hash_kind(), Some(Hashed::L4));
        assert_eq!(flags(1 << 22).hash_kind(), Some(Hashed::L3));
        assert_eq!(flags(1 << 24).hash_kind(), Some(Hashed::L4));

        assert_eq!(flags(100).vlan(), None);
        assert_eq!(flags(1 << 12 | 0xfff).vlan(), Some(0xfff));
        assert_eq!(flags(1 << 12).vlan(), Some(0));
    }
}

mod send {
    use zerocopy::IntoBytes;

    use crate::oob::{on_queue, Checksum, LongOob, ShortOob};

    fn words(bytes: &[u8]) -> Vec<u32> {
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
        bytes.chunks(4).map(word).collect()
    }

    fn queue(vp_offset: u16) -> (ShortOob, LongOob, bool) {
        on_queue(0xab_cdef, 0x12_3456, vp_offset).unwrap()
    }

    #[test]
    fn plain_packet() {
        let (short, _, always_long) = queue(0xfe);
        // Bits 23:10 of 0xabcdef are 0x2af3.
        assert_eq!(
            words(short.as_bytes()),
            [0x1234_5600, 0xfe << 24 | 0x2af3 << 10]
        );
        assert!(!always_long);
    }

    #[test]
    fn large_offset_needs_the_long_format() {
        let (short, long, always_long) = queue(0x100);
        assert!(always_long);
        assert_eq!(
            words(short.followed_by_long().as_bytes()),
            [0x1234_5601, 0x2af3 << 10]
        );
        assert_eq!(words(long.as_bytes()), [0, 0x100 << 16, 0, 0]);
        assert!(on_queue(1, 1, 0x1000).is_none());
    }

    #[test]
    fn checksums() {
        let (short, ..) = queue(0);
        let of = |kind, tso, ipv6| words(short.offload(kind, tso, ipv6, 34).as_bytes());
        let place = 0x2af3 << 10;
        assert_eq!(
            of(Checksum::Tcp, false, false),
            [0x1234_5600 | 1 << 2 | 1 << 5, place | 34]
        );
        assert_eq!(
            of(Checksum::Tcp, true, true),
            [0x1234_5600 | 1 << 3 | 1 << 4 | 1 << 5, place | 34]
        );
        assert_eq!(
            of(Checksum::Udp, false, true),
            [0x1234_5600 | 1 << 3 | 1 << 6, place]
        );
    }

    #[test]
    fn vlan_tag() {
        let (_, long, _) = queue(0);
        let tag = |tci| words(long.vlan(tci).as_bytes())[0];
        assert_eq!(tag(None), 0);
        assert_eq!(tag(Some(0)), 1 << 3);
        // Priority 5, drop eligible, VLAN 0x123.
        assert_eq!(tag(Some(0xb123)), 1 << 3 | 5 << 16 | 1 << 19 | 0x123 << 20);
    }
}
