// SPDX-License-Identifier: GPL-2.0
//! Knobs, control commands and resets.

mod common;

use std::{thread::sleep, time::Duration};

use common::{other, tx_wqe, Raw};
use mana::{
    abi::{cqe, eqe, reconfig},
    messages::*,
    regs::doorbell_offset,
    session::{hwc_id, mana_id},
};
use nic::Model;
use serde_json::json;
use zerocopy::{FromZeros, IntoBytes};

fn list_devices() -> Vec<u8> {
    Raw::header(code::LIST_DEVICES, 0, REQ_HDR)
        .as_bytes()
        .to_vec()
}

#[test]
fn a_command_fails_as_told() {
    let mut raw = Raw::registered();
    raw.bus.knobs.set("fail_command", "2:error").expect("knob");
    assert_eq!(raw.try_command(code::LIST_DEVICES, 0, &[]).0, status::OK);
    assert_eq!(
        raw.try_command(code::LIST_DEVICES, 0, &[]).0,
        status::INJECTED
    );
    assert_eq!(raw.try_command(code::LIST_DEVICES, 0, &[]).0, status::OK);
    raw.bus
        .knobs
        .set("fail_command", "1:nothing")
        .expect("knob");
    assert_eq!(raw.send_message(&list_devices()), None);
    raw.bus.knobs.set("fail_command", "1:wrong").expect("knob");
    let (status, body) = raw.try_command(code::LIST_DEVICES, 0, &[]);
    assert_eq!(status, status::OK);
    assert_eq!(body, [0xff; size_of::<ListDevicesResp>()]);
    raw.bus.knobs.set("fail_command", "1:zero").expect("knob");
    let (status, body) = raw.try_command(code::LIST_DEVICES, 0, &[]);
    assert_eq!(status, status::OK);
    assert_eq!(body, [0; size_of::<ListDevicesResp>()]);
    raw.bus.knobs.set("fail_command", "1:short").expect("knob");
    assert_eq!(
        raw.send_message(&list_devices()).map(|answer| answer.len()),
        Some(RESP_HDR + size_of::<ListDevicesResp>() / 2)
    );
    // A command that is refused has done nothing.
    raw.bus.knobs.set("fail_opcode", "12:error").expect("knob");
    let (_, request) = raw.eq_request();
    assert_eq!(
        raw.try_command(code::CREATE_QUEUE, DEVICE_MANA, request.as_bytes())
            .0,
        status::INJECTED
    );
    raw.bus.knobs.set("fail_opcode", "").expect("knob");
    assert_eq!(
        raw.try_command(code::CREATE_QUEUE, DEVICE_MANA, request.as_bytes())
            .0,
        status::OK
    );
    raw.assert_clean();
}

#[test]
fn an_answer_without_a_body_is_spoiled_in_its_header() {
    let mut raw = Raw::running();
    let request = Raw::header(code::DEREGISTER_DEVICE, DEVICE_MANA, REQ_HDR);
    for (fault, answer) in [
        ("wrong", vec![0xff; RESP_HDR]),
        ("zero", vec![0; RESP_HDR]),
        (
            "short",
            vec![0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 32, 0, 0, 0],
        ),
    ] {
        raw.bus
            .knobs
            .set("fail_command", &format!("1:{fault}"))
            .expect("knob");
        assert_eq!(raw.send_message(request.as_bytes()), Some(answer));
        // What the driver is not told has still been done.
        raw.bus.report.excuse(false);
        assert_eq!(
            raw.bus.report.get("live_objects"),
            1,
            "only the HWC is left"
        );
        raw.command::<RegisterResp>(code::REGISTER_DEVICE, DEVICE_MANA, &());
    }
}

#[test]
fn the_shared_memory_fails_as_told() {
    let header = |raw: &mut Raw, fault: &str| {
        raw.bus
            .knobs
            .set("fail_command", &format!("1:{fault}"))
            .expect("knob");
        raw.smc_served([0, 0, 0, 0, 0, 0, 0, 2]);
        raw.read_reg(0x41c, 4)
    };
    for (fault, left) in [("error", 0x182), ("short", 2), ("zero", 0)] {
        let mut raw = Raw::established();
        assert_eq!(header(&mut raw, fault), left);
        // Only who was refused finds the session still there; both may start anew.
        assert_eq!(
            raw.bus.report.get("live_objects"),
            u64::from(fault == "error")
        );
        raw.establish();
        raw.assert_clean();
    }
    let mut raw = Raw::established();
    assert_eq!(
        header(&mut raw, "nothing"),
        (1 << 31) | 2,
        "kept until a reset"
    );
    raw.model.reset(&mut raw.bus);
    raw.establish();
    raw.assert_clean();
}

#[test]
fn the_living_are_counted() {
    let mut raw = Raw::registered();
    let live = |raw: &Raw| raw.bus.report.get("live_objects");
    assert_eq!(live(&raw), 2, "the HWC and the device");
    raw.up();
    assert_eq!(live(&raw), 5, "and an EQ, an SQ and an RQ");
    let (_, region) = raw.region(4096);
    assert_eq!(live(&raw), 6);
    // Refused to make one: nothing is excused.
    raw.bus.knobs.set("fail_opcode", "25:error").expect("knob");
    raw.send_message(Raw::header(code::CREATE_DMA_REGION, 0, REQ_HDR).as_bytes());
    raw.bus.knobs.set("fail_opcode", "").expect("knob");
    raw.down();
    raw.try_command(code::DEREGISTER_DEVICE, DEVICE_MANA, &[]);
    assert_eq!(raw.violations(&mana::rules::REGION_LEAK), 1, "{region:#x}");
    assert_eq!(live(&raw), 1);
    raw.smc_served([0, 0, 0, 0, 0, 0, 0, 2]);
    assert_eq!(live(&raw), 0);
}

#[test]
fn answers_are_delayed() {
    let mut raw = Raw::registered();
    raw.bus.knobs.set("answer_delay_us", "20000").expect("knob");
    assert_eq!(raw.send_message(&list_devices()), None);
    let due = raw.tick().expect("a deadline");
    assert!(due > std::time::Instant::now());
    sleep(Duration::from_millis(25));
    raw.tick();
    let mut cq = raw.hwc_cq;
    assert!(raw.next_cqe(&mut cq).is_some());
}

#[test]
fn the_driver_is_told_how_long_to_wait() {
    let mut raw = Raw::running_with(&[("command_timeout_ms", "700")]);
    let answer: HwcTimeout = raw.command(code::QUERY_HWC_TIMEOUT, 0, &[0u8; 8]);
    assert_eq!(answer.timeout_ms.get(), 700);
}

#[test]
fn what_a_failed_command_left_behind_is_excused() {
    let mut raw = Raw::running();
    raw.bus
        .knobs
        .set("fail_opcode", "0x20005:error")
        .expect("knob");
    let (request, table) = raw.steer_request(0, 0, 0);
    raw.steer(&request, &table);
    assert_eq!(
        raw.destroy_wq(queue_type::RQ, raw.rq.handle),
        status::INJECTED
    );
    assert_eq!(
        raw.destroy_wq(queue_type::SQ, raw.sq.handle),
        status::INJECTED
    );
    assert_eq!(raw.disable_eq(raw.eq.id), status::INVALID);
    raw.try_command(code::DEREGISTER_DEVICE, DEVICE_MANA, &[]);
    raw.smc_served([0, 0, 0, 0, 0, 0, 0, 2]);
    raw.assert_clean();
}

#[test]
fn completions_are_delayed_in_order() {
    let mut raw = Raw::running_with(&[("completion_delay_us", "20000")]);
    let oob = raw.oob(0, 0);
    assert_eq!(raw.send_frame(&other(64), oob), None);
    assert!(
        raw.sent_frame().is_some(),
        "the frame itself is not delayed"
    );
    let due = raw.tick().expect("a deadline");
    assert!(due > std::time::Instant::now());
    // The next completion has no delay of its own but does not overtake.
    raw.bus.knobs.set("completion_delay_us", "0").expect("knob");
    assert_eq!(raw.send_frame(&other(64), oob), None);
    sleep(Duration::from_millis(25));
    raw.tick();
    assert_eq!(
        (raw.sent(), raw.sent(), raw.sent()),
        (Some(cqe::TX_OKAY), Some(cqe::TX_OKAY), None)
    );
}

#[test]
fn completions_get_lost() {
    let mut raw = Raw::running();
    raw.bus.knobs.set("drop_completions", "1").expect("knob");
    let oob = raw.oob(0, 0);
    assert_eq!(raw.send_frame(&other(64), oob), None);
    assert_eq!(raw.send_frame(&other(64), oob), Some(cqe::TX_OKAY));
    assert_eq!(raw.counter("dropped_completions"), 1);
}

#[test]
fn the_device_lies_about_what_it_did_as_told() {
    const FRAMES: u64 = 50;
    let mut raw = Raw::running();
    let oob = raw.oob(0, 0);
    for (setting, is_true) in [("1:1:command", true), ("1:1:completion", false)] {
        raw.bus.knobs.set("fuzz", setting).expect("knob");
        let before = raw.counter("fuzz.mutations");
        let done: Vec<_> = (0..FRAMES)
            .map(|_| raw.send_frame(&other(64), oob))
            .collect();
        let sent = (0..FRAMES).filter(|_| raw.sent_frame().is_some()).count();
        assert_eq!(sent, FRAMES as usize, "what it does stays right");
        assert_eq!(
            done.iter().all(|kind| *kind == Some(cqe::TX_OKAY)),
            is_true,
            "{setting}: {done:?}"
        );
        assert_eq!(
            raw.counter("fuzz.mutations") == before,
            is_true,
            "{setting}"
        );
    }
}

#[test]
fn work_is_done_inside_the_doorbell() {
    let mut raw = Raw::running();
    let oob = raw.oob(0, 0);
    let sge = raw.data(&other(64));
    let value = |raw: &Raw| u64::from(raw.sq.id) | (u64::from(raw.sq.tail) << 32);
    raw.post_sq(&tx_wqe(oob.as_bytes(), &[sge], 0));
    raw.ring_page(mana_id::DOORBELL, doorbell_offset::SQ, value(&raw));
    assert_eq!(raw.sent(), None);
    raw.tick();
    assert_eq!(raw.sent(), Some(cqe::TX_OKAY));
    raw.bus
        .knobs
        .set("complete_inside_doorbell", "1")
        .expect("knob");
    raw.post_sq(&tx_wqe(oob.as_bytes(), &[sge], 0));
    raw.ring_page(mana_id::DOORBELL, doorbell_offset::SQ, value(&raw));
    assert_eq!(raw.sent(), Some(cqe::TX_OKAY));
    raw.assert_clean();
}

#[test]
fn limits_are_told_and_kept() {
    let settings = [
        ("max_sq", "1"),
        ("vport_max_queues", "3"),
        ("adapter_mtu", "1514"),
        ("indirection_entries", "64"),
    ];
    let mut raw = Raw::running_with(&settings);
    let limits: MaxResourcesResp = raw.command(code::QUERY_MAX_RESOURCES, 0, &());
    assert_eq!(
        (limits.max_sq.get(), limits.max_msix.get()),
        (1, u32::from(common::VECTORS))
    );
    let config: DevConfigResp = raw.command(
        code::QUERY_DEV_CONFIG,
        DEVICE_MANA,
        &DevConfigReq::new_zeroed(),
    );
    assert_eq!(
        (config.adapter_mtu.get(), config.max_num_vports.get()),
        (1514, 2)
    );
    let port: VportConfigResp =
        raw.command(code::QUERY_VPORT_CONFIG, DEVICE_MANA, &1u32.to_le_bytes());
    assert_eq!((port.max_num_sq.get(), port.mac_addr[5]), (3, 1));
    let (_, _, request) = raw.wq_request(queue_type::SQ);
    assert_eq!(
        raw.try_command(code::CREATE_WQ_OBJ, DEVICE_MANA, request.as_bytes())
            .0,
        status::NO_RESOURCES
    );
    assert_eq!(raw.violations(&mana::rules::QUEUE_LIMIT), 1);
}

#[test]
fn moderation_delays_the_event() {
    let mut raw = Raw::running_with(&[("dim", "1")]);
    // 10 ms or two completions, by doorbell: both fields valid.
    raw.bus.report.clear_counters();
    let dim = 1000 | (1 << 15) | (2 << 16) | (1 << 31);
    raw.ring_wq(doorbell_offset::DIM, raw.sq.cq.id, dim);
    let oob = raw.oob(0, 0);
    let mut eq = raw.eq;
    raw.ring_index(
        mana_id::DOORBELL,
        doorbell_offset::CQ,
        raw.sq.cq.id,
        raw.sq.cq.head,
        true,
    );
    raw.send_frame(&other(64), oob);
    assert!(raw.next_eqe(&mut eq).is_none());
    raw.send_frame(&other(64), oob);
    assert!(raw.next_eqe(&mut eq).is_some());
    raw.ring_index(
        mana_id::DOORBELL,
        doorbell_offset::CQ,
        raw.sq.cq.id,
        raw.sq.cq.head,
        true,
    );
    raw.send_frame(&other(64), oob);
    sleep(Duration::from_millis(2));
    raw.tick();
    assert!(raw.next_eqe(&mut eq).is_some());
    assert_eq!(raw.counter("moderated_events"), 2);
    raw.assert_clean();
}

#[test]
fn the_link_and_other_events_reach_the_driver() {
    let mut raw = Raw::registered();
    let details = |raw: &mut Raw| {
        let mut eq = raw.hwc_eq;
        let entry = raw
            .next_eqe(&mut eq)
            .map(|event| (event.info.get() as u8, event.details[0].get()));
        raw.hwc_eq = eq;
        entry
    };
    let link = |raw: &mut Raw, port: usize, up| {
        raw.bus.wires[port].set_up(up);
        raw.model.link(&mut raw.bus, port, up);
    };
    link(&mut raw, 0, false);
    assert_eq!(details(&mut raw), None, "port 1 is still up");
    link(&mut raw, 1, false);
    assert_eq!(
        details(&mut raw),
        Some((eqe::HWC_SOC_RECONFIG_DATA, reconfig::LINK_DISCONNECT << 24))
    );
    link(&mut raw, 0, true);
    assert_eq!(
        details(&mut raw),
        Some((eqe::HWC_SOC_RECONFIG_DATA, reconfig::LINK_CONNECT << 24))
    );
    raw.model
        .control(&mut raw.bus, "event", &json!({"type": 135}))
        .expect("an event");
    assert_eq!(details(&mut raw), Some((eqe::HWC_RESET_REQUEST, 0)));
    assert!(raw
        .model
        .control(&mut raw.bus, "event", &json!({"type": 300}))
        .is_err());
    assert!(raw
        .model
        .control(&mut raw.bus, "nonsense", &json!({}))
        .is_err());
}

#[test]
fn a_reset_forgets_everything() {
    let mut raw = Raw::running();
    raw.post_rq(2048);
    raw.model.reset(&mut raw.bus);
    raw.model.frame(&mut raw.bus, 0, &other(64));
    assert_eq!(raw.counter("rx_disabled"), 1);
    // A late interrupt handler may still ring.
    raw.ring_page(hwc_id::DOORBELL, doorbell_offset::EQ, 0);
    assert_eq!(raw.counter("doorbell_after_destroy"), 1);
    // The driver does not know that a reset took the HWC away.
    raw.smc_served([0, 0, 0, 0, 0, 0, 0, 2]);
    raw.establish();
    raw.register();
    raw.up();
    raw.assert_clean();
}

#[test]
fn statistics_survive_and_are_told() {
    let mut raw = Raw::running();
    raw.post_rq(2048);
    raw.receive(&other(64));
    raw.receive(&other(64));
    raw.model.reset(&mut raw.bus);
    raw.establish();
    raw.register();
    let stats: GfStatResp = raw.command(code::QUERY_GF_STAT, DEVICE_MANA, &0x1du64.to_le_bytes());
    assert_eq!(stats.reported_stats.get(), 0x1d);
    let value = |n: usize| stats.values[n].get();
    assert_eq!((value(0), value(2), value(3), value(4)), (1, 64, 1, 64));
}

#[test]
fn packets_wait_for_their_batch() {
    let mut raw = Raw::running_with(&[("tx_batch", "2")]);
    let oob = raw.oob(0, 0);
    let arm = |raw: &mut Raw| {
        let cq = raw.sq.cq;
        let index = cq.head % (cq.entries * 8);
        raw.ring_index(mana_id::DOORBELL, doorbell_offset::CQ, cq.id, index, true);
    };
    arm(&mut raw);
    assert_eq!(raw.send_frame(&other(64), oob), None);
    assert_eq!(raw.sent_frame(), None, "it waits for another");
    assert_eq!(raw.send_frame(&other(64), oob), Some(cqe::TX_OKAY));
    assert_eq!(raw.sent(), Some(cqe::TX_OKAY));
    // The next two wait for the driver, and a third is of the next batch.
    for _ in 0..3 {
        assert_eq!(raw.send_frame(&other(64), oob), None);
    }
    arm(&mut raw);
    let sent = [raw.sent(), raw.sent(), raw.sent()];
    assert_eq!(sent, [Some(cqe::TX_OKAY), Some(cqe::TX_OKAY), None]);
    // What no other follows is sent all the same.
    let due = raw.tick().expect("a deadline");
    sleep(due.saturating_duration_since(std::time::Instant::now()));
    raw.tick();
    assert_eq!((raw.sent(), raw.sent()), (Some(cqe::TX_OKAY), None));
    raw.assert_clean();
}

#[test]
fn a_port_is_ready_when_it_has_buffers_and_wants_an_event() {
    let mut raw = Raw::running();
    let ready = |raw: &Raw, frames| raw.model.is_rx_ready(0, frames);
    let cq = raw.rq.cq;
    raw.post_rq(2048);
    assert!(!ready(&raw, 1), "its CQ is not armed");
    let index = cq.head % (cq.entries * 8);
    raw.ring_index(mana_id::DOORBELL, doorbell_offset::CQ, cq.id, index, true);
    assert!(ready(&raw, 1) && !ready(&raw, 2));
    raw.frame_in(&other(64));
    assert!(!ready(&raw, 0), "the driver has not seen the frame");
    raw.assert_clean();
}
