// SPDX-License-Identifier: GPL-2.0
//! Packets, completions, events and interrupts of a driver that does everything right.

mod common;

use common::{
    lso, lso_wqe, other, tcp, tx_wqe, udp, Raw, CQ_SIZE, IPV4, IP_CSUM, TCP_CSUM, UDP_CSUM, WQ_SIZE,
};
use mana::{
    abi::{cqe, eqe, hash_type, rx_flag, RxCompOob, TxCompOob, CQE_SIZE},
    messages::{code, queue_type, status, DEVICE_MANA},
    regs::doorbell_offset,
    session::mana_id,
};
use nic::{
    offload::{verify, HashTypes, Headers, Toeplitz, Verdict},
    testing::Interrupt,
};
use zerocopy::{FromBytes, IntoBytes};

fn rx_oob(entry: &mana::abi::Cqe) -> RxCompOob {
    RxCompOob::read_from_prefix(&entry.data)
        .expect("60 bytes")
        .0
}

fn read_bytes(raw: &Raw, address: u64, len: usize) -> Vec<u8> {
    let all: [u8; 2048] = raw.memory.read(address).expect("buffer");
    all[..len].to_vec()
}

#[test]
fn a_frame_goes_out_as_it_is() {
    let mut raw = Raw::running();
    let frame = other(100);
    let oob = raw.oob(0, 0);
    assert_eq!(raw.send_frame(&frame, oob), Some(cqe::TX_OKAY));
    assert_eq!(raw.sent_frame(), Some(frame));
    assert_eq!(
        (raw.counter("tx_packets"), raw.counter("tx_bytes")),
        (1, 100)
    );
    assert_eq!(raw.counter("port0_txq0_packets"), 1);
    raw.assert_clean();
}

#[test]
fn a_frame_is_gathered_and_its_completion_names_the_wqe() {
    let mut raw = Raw::running();
    let frame = other(1000);
    let sges: Vec<_> = frame.chunks(100).map(|piece| raw.data(piece)).collect();
    let oob = raw.oob(0, 0);
    raw.send_frame(&other(60), oob);
    let wqe = tx_wqe(oob.as_bytes(), &sges, 0);
    raw.post_sq(&wqe);
    raw.ring_sq();
    let mut cq = raw.sq.cq;
    let entry = raw.next_cqe(&mut cq).expect("a completion");
    let done = TxCompOob::read_from_prefix(&entry.data).expect("OOB").0;
    assert_eq!(
        done.offsets.get() >> 5,
        1,
        "the second WQE begins at unit 1"
    );
    assert_eq!(entry.info.get() & 0xff_ffff, raw.sq.id);
    assert_eq!(raw.sent_frame(), Some(other(60)));
    assert_eq!(raw.sent_frame(), Some(frame));
    raw.assert_clean();
}

#[test]
fn checksums_are_filled() {
    let mut raw = Raw::running();
    let oob = raw.oob(IPV4 | TCP_CSUM, 34);
    assert_eq!(
        raw.send_frame(&tcp(b"hello, world"), oob),
        Some(cqe::TX_OKAY)
    );
    assert_eq!(
        verify(&raw.sent_frame().expect("a frame")).l4,
        Verdict::Good
    );
    // The C driver gives no offset for UDP.
    let oob = raw.oob(IPV4 | UDP_CSUM, 0);
    assert_eq!(
        raw.send_frame(&udp(b"hello, world"), oob),
        Some(cqe::TX_OKAY)
    );
    assert_eq!(
        verify(&raw.sent_frame().expect("a frame")).l4,
        Verdict::Good
    );
    assert_eq!(raw.counter("tx_csum_packets"), 2);
    raw.assert_clean();
}

#[test]
fn lso_cuts_and_tags() {
    let mut raw = Raw::running();
    let payload: Vec<u8> = (0..5000u32).map(|n| n as u8).collect();
    let frame = lso(&payload);
    let sges = [raw.data(&frame[..54]), raw.data(&frame[54..])];
    let mut oob = raw
        .oob(1 | IPV4 | IP_CSUM | TCP_CSUM, 34)
        .as_bytes()
        .to_vec();
    // inject_vlan, pcp 5, id 100.
    oob.extend_from_slice(raw.long_oob((1 << 3) | (5 << 16) | (100 << 20)).as_bytes());
    assert_eq!(
        raw.send_wqe(&lso_wqe(&oob, &sges, 2000)),
        Some(cqe::TX_OKAY)
    );
    let mut sent = Vec::new();
    for _ in 0..3 {
        let segment = raw.sent_frame().expect("a segment");
        assert_eq!(segment[12..16], [0x81, 0x00, 0xa0, 0x64]);
        let verdicts = verify(&segment);
        assert_eq!((verdicts.ip, verdicts.l4), (Verdict::Good, Verdict::Good));
        sent.extend_from_slice(&segment[58..]);
    }
    assert_eq!(sent, payload);
    assert_eq!(raw.sent_frame(), None);
    assert_eq!(
        (
            raw.counter("tx_lso_packets"),
            raw.counter("tx_lso_segments")
        ),
        (1, 3)
    );
    raw.assert_clean();
}

#[test]
fn a_large_vport_offset_needs_the_long_format() {
    let mut raw = Raw::running_with(&[("vport_offset", "300")]);
    let mut short = raw.oob(1, 0);
    short.second = (short.second.get() & 0xff_ffff).into();
    let mut long = raw.long_oob(0);
    long.second = (300 << 16).into();
    let mut oob = short.as_bytes().to_vec();
    oob.extend_from_slice(long.as_bytes());
    let sge = raw.data(&other(64));
    assert_eq!(raw.send_wqe(&tx_wqe(&oob, &[sge], 0)), Some(cqe::TX_OKAY));
    raw.assert_clean();
}

#[test]
fn refused_packets_are_completed_with_their_reason() {
    let mut raw = Raw::running_with(&[("source_check", "1")]);
    let oob = raw.oob(0, 0);
    // The frames of the tests come from another address.
    assert_eq!(raw.send_frame(&other(64), oob), Some(cqe::TX_SA_DROP));
    raw.assert_clean();
    assert_eq!(raw.send_frame(&other(9300), oob), Some(cqe::TX_MTU_DROP));
    let bad = raw.oob(0x80 << 8, 0);
    assert_eq!(raw.send_frame(&other(64), bad), Some(cqe::TX_INVALID_OOB));
    assert_eq!(raw.sent_frame(), None);
    assert_eq!(raw.counter("tx_errors"), 3);
}

#[test]
fn suppressed_completions_do_not_come() {
    let mut raw = Raw::running();
    let oob = raw.oob(1 << 7, 0);
    assert_eq!(raw.send_frame(&other(64), oob), None);
    assert_eq!(raw.sent_frame(), Some(other(64)));
}

#[test]
fn a_frame_comes_in_with_hash_and_checksum() {
    let mut raw = Raw::running();
    let buffer = raw.post_rq(2048);
    let mut frame = tcp(b"payload");
    let headers = Headers::parse(&frame).expect("headers");
    nic::offload::fill_l4(&mut frame, &headers).expect("checksum");
    let entry = raw.receive(&frame).expect("a completion");
    let oob = rx_oob(&entry);
    assert_eq!(oob.header.get() & 0xff, cqe::RX_OKAY | (1 << 6));
    assert_eq!(
        oob.flags.get(),
        rx_flag::IPHDR_CSUM_SUCCEED | rx_flag::TCP_CSUM_SUCCEED | (hash_type::TCP_IPV4 << 16)
    );
    assert_eq!(oob.ppi[0].word0.get(), frame.len() as u32);
    let mut key = [0; 40];
    key.copy_from_slice(&raw.steer_request(1, 1, 0).0.hashkey);
    let hashed = Toeplitz::new(&key)
        .hash_frame(&frame, &headers, &HashTypes::ALL)
        .expect("a hash");
    assert_eq!(oob.ppi[0].word2.get(), hashed.hash);
    assert_eq!(read_bytes(&raw, buffer, frame.len()), frame);
    raw.assert_clean();
}

#[test]
fn wrong_checksums_are_told() {
    let mut raw = Raw::running();
    raw.post_rq(2048);
    // The seed of an offloaded packet is no checksum.
    let entry = raw.receive(&tcp(b"payload")).expect("a completion");
    let flags = rx_oob(&entry).flags.get();
    assert_ne!(flags & rx_flag::TCP_CSUM_FAIL, 0);
    assert_eq!(flags & rx_flag::TCP_CSUM_SUCCEED, 0);
}

#[test]
fn a_vlan_tag_is_taken_out() {
    let mut raw = Raw::running();
    let buffer = raw.post_rq(2048);
    let mut frame = other(80);
    nic::offload::insert_vlan(&mut frame, 0xa064).expect("a tag");
    let oob = rx_oob(&raw.receive(&frame).expect("a completion"));
    assert_eq!(oob.flags.get() & 0xfff, 0x064);
    assert_ne!(oob.flags.get() & rx_flag::VLANTAG_PRESENT, 0);
    assert_eq!(oob.ppi[0].word0.get(), 80);
    assert_eq!(read_bytes(&raw, buffer, 80), other(80));
}

#[test]
fn frames_without_room_are_dropped_or_truncated() {
    let mut raw = Raw::running();
    assert!(raw.receive(&other(64)).is_none());
    assert_eq!(raw.counter("rx_no_wqe"), 1);
    raw.post_rq(100);
    let oob = rx_oob(&raw.receive(&other(101)).expect("a completion"));
    assert_eq!(oob.header.get() & 0x3f, cqe::RX_TRUNCATED);
    raw.assert_clean();
}

#[test]
fn frames_for_others_are_filtered() {
    let mut raw = Raw::running();
    raw.post_rq(2048);
    let mut frame = other(64);
    frame[5] ^= 0x80;
    assert!(raw.receive(&frame).is_none());
    assert_eq!(raw.counter("rx_filtered"), 1);
    frame[..6].fill(0xff);
    assert!(raw.receive(&frame).is_some());
}

#[test]
fn packets_are_steered_by_hash() {
    let mut raw = Raw::running();
    let first = raw.rq;
    let second = raw.create_wq(queue_type::RQ);
    let (request, mut table) = raw.steer_request(1, 1, first.handle);
    for entry in table.iter_mut().skip(32) {
        *entry = second.handle;
    }
    assert_eq!(raw.steer(&request, &table), status::OK);
    raw.rq = second;
    for _ in 0..64 {
        raw.post_rq(2048);
    }
    let second = raw.rq;
    raw.rq = first;
    for _ in 0..64 {
        raw.post_rq(2048);
    }
    for port in 0..64 {
        let mut frame = tcp(b"");
        frame[35] = port;
        raw.frame_in(&frame);
    }
    let (one, two) = (
        raw.counter("port0_rxq0_packets"),
        raw.counter("port0_rxq1_packets"),
    );
    assert_eq!(one + two, 64);
    assert!(one > 10 && two > 10, "{one} and {two}");
    // What has no hash goes to the default queue.
    raw.frame_in(&other(64));
    assert_eq!(raw.counter("port0_rxq0_packets"), one + 1);
    // Without RSS, everything does.
    let (request, table) = raw.steer_request(1, 0, second.handle);
    assert_eq!(raw.steer(&request, &table), status::OK);
    raw.frame_in(&tcp(b""));
    assert_eq!(raw.counter("port0_rxq1_packets"), two + 1);
    raw.assert_clean();
}

#[test]
fn packets_share_a_completion() {
    for (eight, kind, most) in [(0, cqe::RX_COALESCED_4, 4), (1, cqe::RX_COALESCED_8, 8)] {
        let mut raw = Raw::running_with(&[("cqe8_coalescing", "1")]);
        let (mut request, table) = raw.steer_request(1, 1, raw.rq.handle);
        request.cqe_coalescing_enable = 1;
        request.cqe8_coalescing_enable = eight;
        assert_eq!(raw.steer(&request, &table), status::OK);
        for _ in 0..most + 2 {
            raw.post_rq(2048);
        }
        for n in 0..most + 1 {
            raw.frame_in(&other(60 + n));
        }
        raw.tick();
        let full = rx_oob(&raw.received().expect("a full completion"));
        assert_eq!(full.header.get() & 0x3f, kind);
        let lengths: Vec<u32> = full
            .ppi
            .iter()
            .flat_map(|ppi| match eight {
                0 => vec![ppi.word0.get()],
                _ => vec![ppi.word1.get() & 0xffff, ppi.word1.get() >> 16],
            })
            .collect();
        assert_eq!(lengths, (60..60 + most as u32).collect::<Vec<_>>());
        let rest = rx_oob(&raw.received().expect("one more"));
        assert_eq!(
            (rest.header.get() & 0x3f, rest.ppi[0].word0.get()),
            (cqe::RX_OKAY, 60 + most as u32)
        );
        assert!(raw.received().is_none());
        raw.assert_clean();
    }
}

#[test]
fn one_arming_gives_one_event_and_one_interrupt() {
    let mut raw = Raw::running();
    let irq = Interrupt::connect(&mut raw.bus.irq, 1).expect("vector 1");
    let oob = raw.oob(0, 0);
    let mut eq = raw.eq;
    // Not armed: no event.
    raw.send_frame(&other(64), oob);
    assert!(raw.next_eqe(&mut eq).is_none());
    // Arming behind the last entry fires at once.
    let page = mana_id::DOORBELL;
    let modulo = CQ_SIZE / CQE_SIZE * 8;
    raw.ring_index(
        page,
        doorbell_offset::CQ,
        raw.sq.cq.id,
        raw.sq.cq.head - 1,
        true,
    );
    let event = raw.next_eqe(&mut eq).expect("an event");
    assert_eq!(
        (event.info.get() & 0xff, event.details[0].get()),
        (u32::from(eqe::COMPLETION), raw.sq.cq.id)
    );
    assert_eq!(irq.take(), 1);
    // One more completion: the CQ is not armed any more.
    raw.send_frame(&other(64), oob);
    assert!(raw.next_eqe(&mut eq).is_none());
    // Armed at the last entry: the next completion fires, once; the EQ is not armed, so no interrupt.
    raw.ring_index(
        page,
        doorbell_offset::CQ,
        raw.sq.cq.id,
        raw.sq.cq.head % modulo,
        true,
    );
    assert!(raw.next_eqe(&mut eq).is_none());
    raw.send_frame(&other(64), oob);
    raw.send_frame(&other(64), oob);
    assert!(raw.next_eqe(&mut eq).is_some());
    assert!(raw.next_eqe(&mut eq).is_none());
    assert_eq!(irq.take(), 0);
    // Arming the EQ behind the last event interrupts at once; at the last event it does not.
    raw.ring_index(page, doorbell_offset::EQ, eq.id, eq.head - 1, true);
    assert_eq!(irq.take(), 1);
    raw.ring_index(page, doorbell_offset::EQ, eq.id, eq.head, true);
    assert_eq!(irq.take(), 0);
    raw.try_command(code::GENERATE_TEST_EQE, DEVICE_MANA, &eq.id.to_le_bytes());
    assert_eq!(irq.take(), 1);
    raw.assert_clean();
}

#[test]
fn rings_wrap_many_times() {
    let mut raw = Raw::running();
    let (eq_page, cq_offset) = (mana_id::DOORBELL, doorbell_offset::CQ);
    let modulo = CQ_SIZE / CQE_SIZE * 8;
    let oob = raw.oob(0, 0);
    let sges: Vec<_> = other(300)
        .chunks(100)
        .map(|piece| raw.data(piece))
        .collect();
    // Three elements: 64 bytes of WQE, so a WQE begins at each second unit and none is cut by the ring's end.
    for n in 0..20 * WQ_SIZE / 64 {
        let sent = raw.send_wqe(&tx_wqe(oob.as_bytes(), &sges, 0));
        assert_eq!(sent, Some(cqe::TX_OKAY), "packet {n}");
        raw.sent_frame();
        if n % 40 == 0 {
            let index = raw.sq.cq.head % modulo;
            raw.ring_index(eq_page, cq_offset, raw.sq.cq.id, index, false);
        }
    }
    raw.assert_clean();
}

#[test]
fn a_wqe_wraps_at_the_end_of_its_ring() {
    let mut raw = Raw::running();
    let oob = raw.oob(0, 0);
    let sge = raw.data(&other(64));
    for _ in 0..WQ_SIZE / 32 - 1 {
        raw.send_wqe(&tx_wqe(oob.as_bytes(), &[sge], 0));
        raw.sent_frame();
    }
    let sges: Vec<_> = other(900)
        .chunks(100)
        .map(|piece| raw.data(piece))
        .collect();
    assert_eq!(
        raw.send_wqe(&tx_wqe(oob.as_bytes(), &sges, 0)),
        Some(cqe::TX_OKAY)
    );
    assert_eq!(raw.sent_frame(), Some(other(900)));
    raw.assert_clean();
}

#[test]
fn everything_can_be_taken_down_and_up_again() {
    let mut raw = Raw::running();
    for _ in 0..3 {
        raw.post_rq(2048);
        assert!(raw.receive(&other(64)).is_some());
        raw.down();
        raw.up();
    }
    raw.down();
    assert_eq!(
        raw.try_command(code::DEREGISTER_DEVICE, DEVICE_MANA, &[]).0,
        status::OK
    );
    raw.smc_served([0, 0, 0, 0, 0, 0, 0, 2]);
    raw.establish();
    raw.register();
    raw.up();
    raw.assert_clean();
}

#[test]
fn a_fence_comes_after_what_was_received() {
    let mut raw = Raw::running();
    raw.post_rq(2048);
    raw.frame_in(&other(64));
    raw.try_command(code::FENCE_RQ, DEVICE_MANA, &raw.rq.handle.to_le_bytes());
    assert_eq!(
        rx_oob(&raw.received().expect("the packet")).header.get() & 0x3f,
        cqe::RX_OKAY
    );
    assert_eq!(
        rx_oob(&raw.received().expect("the fence")).header.get() & 0x3f,
        cqe::RX_OBJECT_FENCE
    );
    raw.assert_clean();
}
