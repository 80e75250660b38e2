// SPDX-License-Identifier: GPL-2.0
//! Configuration space, BARs, interrupts and control commands of a function.

mod common;

use std::time::{Duration, Instant};

use common::function;
use nic::{
    testing::{Access, Interrupt, Memory},
    Function,
};
use serde_json::json;
use vfio_user::{Device, CONFIG_REGION, MSIX_IRQ};

fn config(function: &mut Function<common::Puppet>, offset: u64, len: usize) -> u32 {
    let mut data = [0; 4];
    function
        .read(CONFIG_REGION, offset, &mut data[..len])
        .unwrap();
    u32::from_le_bytes(data)
}

/// Where the capability of an id is, found as a guest finds it.
fn capability(function: &mut Function<common::Puppet>, id: u32) -> u64 {
    let mut at = config(function, 0x34, 1);
    while at != 0 {
        if config(function, at.into(), 1) == id {
            return at.into();
        }
        at = config(function, u64::from(at) + 1, 1);
    }
    panic!("no capability {id:#x}");
}

#[test]
fn identity_and_capabilities() {
    let mut f = function();
    assert_eq!(config(&mut f, 0, 4), 0x5678_1234);
    assert_eq!(config(&mut f, 8, 4), 0x0200_0001);
    assert_eq!(config(&mut f, 0x2c, 4), 0x0001_1234);
    let msix = capability(&mut f, 0x11);
    assert_eq!(config(&mut f, msix + 2, 2), 299);
    // 300 vectors of 16 bytes need 8192 bytes; the PBA is in the second half of BAR 4.
    assert_eq!(
        (config(&mut f, msix + 4, 4), config(&mut f, msix + 8, 4)),
        (4, 8192 | 4)
    );
    assert_eq!(f.region_size(4), 16384);
    let express = capability(&mut f, 0x10);
    assert_eq!(
        config(&mut f, express + 2, 2) & 0xff,
        0x02,
        "version 2, endpoint"
    );
    assert_ne!(
        config(&mut f, express + 4, 4) & (1 << 28),
        0,
        "function level reset"
    );
    capability(&mut f, 0x01);
    assert_eq!(
        (
            f.region_size(0),
            f.region_size(1),
            f.region_size(6),
            f.irq_count(MSIX_IRQ)
        ),
        (1 << 16, 0, 0, 300)
    );
}

#[test]
fn only_writable_bits_change() {
    let mut f = function();
    f.write(CONFIG_REGION, 0, &[0xff; 16]).unwrap();
    assert_eq!(config(&mut f, 0, 4), 0x5678_1234);
    assert_eq!(config(&mut f, 4, 2), 0x0546);
    // The BAR shows its size and type; the upper half of the address is writable too.
    f.write(CONFIG_REGION, 0x10, &[0xff; 8]).unwrap();
    assert_eq!(
        (config(&mut f, 0x10, 4), config(&mut f, 0x14, 4)),
        (0xffff_000c, 0xffff_ffff)
    );
    // Beyond the end: nothing there, nothing lost.
    f.write(CONFIG_REGION, 4094, &[0xff; 4]).unwrap();
}

#[test]
fn accesses_reach_the_model_whole() {
    let mut f = function();
    f.write(0, 0x18, &0x1122_3344_5566_7788u64.to_le_bytes())
        .unwrap();
    f.write(0, 0x1e, &[0x34, 0x12]).unwrap();
    let mut data = [0; 4];
    f.read(0, 0x20, &mut data).unwrap();
    assert_eq!(data, [0x11, 0x22, 0x33, 0x44]);
    assert_eq!(
        f.model.calls,
        [
            "write 0 0x18 8 0x1122334455667788",
            "write 0 0x1e 2 0x1234",
            "read 0 0x20 4"
        ]
    );
}

#[test]
fn memory_is_out_of_reach_until_bus_mastering_is_on() {
    let mut f = function();
    let memory = Memory::new(0, 4096).unwrap();
    f.dma_map(memory.map(0, 4096, Access::Both).unwrap())
        .unwrap();
    f.bus.dma.write(0, &[1]).unwrap_err();
    f.write(CONFIG_REGION, 4, &[0x06, 0]).unwrap();
    f.bus.dma.write(0, &[1]).unwrap();
    f.reset();
    f.bus.dma.write(0, &[1]).unwrap_err();
}

#[test]
fn a_reset_forgets_what_is_pending() {
    let mut f = function();
    f.bus.irq.raise(9);
    f.reset();
    let vector9 = Interrupt::connect(&mut f.bus.irq, 9).unwrap();
    assert_eq!(vector9.take(), 0);
}

#[test]
fn function_level_reset_and_device_reset() {
    let mut f = function();
    let express = capability(&mut f, 0x10);
    f.write(CONFIG_REGION, 4, &[0x06, 0]).unwrap();
    f.write(CONFIG_REGION, express + 8, &[0, 0x80]).unwrap();
    assert_eq!(f.model.calls, ["reset"]);
    assert_eq!(
        config(&mut f, 4, 2),
        0,
        "bus mastering is off after a reset"
    );
    assert_eq!(
        config(&mut f, express + 8, 2) & 0x8000,
        0,
        "the reset bit reads as 0"
    );
    f.reset();
    assert_eq!(f.model.calls, ["reset", "reset"]);
    assert_eq!(f.bus.report.get("pci.resets"), 2);
}

#[test]
fn interrupts_before_they_are_enabled_stay_pending() {
    let mut f = function();
    let mut pba = [0; 8];
    f.bus.irq.raise(9);
    f.read(4, 8192, &mut pba).unwrap();
    assert_eq!(u64::from_le_bytes(pba), 1 << 9);
    let vector9 = Interrupt::connect(&mut f.bus.irq, 9).unwrap();
    assert_eq!(vector9.take(), 1);
    f.read(4, 8192, &mut pba).unwrap();
    assert_eq!(pba, [0; 8]);

    f.bus.irq.raise(9);
    f.bus.irq.raise(9);
    assert_eq!(vector9.take(), 2);
    let set = |f: &mut Function<_>, action| f.set_irqs(MSIX_IRQ, 9, 1, action).unwrap();
    set(&mut f, vfio_user::IrqAction::Mask);
    f.bus.irq.raise(9);
    assert_eq!(vector9.take(), 0);
    set(&mut f, vfio_user::IrqAction::Unmask);
    assert_eq!(vector9.take(), 1);
    set(&mut f, vfio_user::IrqAction::Trigger);
    assert_eq!(vector9.take(), 1);
    set(&mut f, vfio_user::IrqAction::DisableAll);
    f.bus.irq.raise(9);
    assert_eq!(vector9.take(), 0);
    assert_eq!(
        (
            f.bus.report.get("irq.vector9"),
            f.bus.report.get("irq.pended")
        ),
        (5, 3)
    );
}

#[test]
fn control_commands() {
    let mut f = function();
    let mut ask = |command| f.command(&command);
    assert_eq!(
        ask(json!({"set": {"drop_completions": 3, "limit": "0x10"}}))["limit"],
        "0x10"
    );
    assert!(ask(json!({"set": {"nonsense": 1}}))["error"]
        .as_str()
        .unwrap()
        .contains("limit"));
    assert_eq!(
        ask(json!({"do": "link", "args": {"port": 0, "up": false}})),
        json!({})
    );
    assert!(ask(json!({"do": "link", "args": {"port": 1, "up": false}}))["error"].is_string());
    assert!(ask(json!({"do": "link"}))["error"].is_string());
    assert_eq!(ask(json!({"do": "echo", "args": [1, 2]})), json!([1, 2]));
    assert!(ask(json!({"do": "nothing"}))["error"].is_string());
    for unknown in [
        json!({}),
        json!(1),
        json!({"get": "nothing"}),
        json!({"clear": 1}),
        json!({"args": {}}),
    ] {
        assert!(ask(unknown.clone())["error"].is_string(), "{unknown}");
    }
    f.bus.wires[0].send(&[0; 60]);
    assert_eq!(f.model.calls, ["link 0 false"]);
    let report = f.command(&json!({"get": "report"}));
    assert_eq!(report["counters"]["port0.drop.link_down"], 1);
    assert_eq!(report["knobs"]["drop_completions"], 3);
    assert!(report["rules"]
        .as_array()
        .unwrap()
        .contains(&json!("dma-unmapped")));
    f.bus.irq.raise(300);
    f.command(&json!({"clear": "counters"}));
    let report = f.command(&json!({"get": "report"}));
    assert_eq!(report["counters"]["port0.drop.link_down"], 0);
    assert_eq!(report["violations"][0]["rule"], "irq-vector-range");
    f.command(&json!({"clear": "violations"}));
    assert_eq!(
        f.command(&json!({"get": "report"}))["violations"],
        json!([])
    );
}

#[test]
fn a_flood_waits_for_room_and_ends() {
    let mut f = function();
    let frames: Vec<String> = ["00", "11"].iter().map(|byte| byte.repeat(60)).collect();
    let args = json!({"port": 0, "frames": frames, "count": 5, "burst": 3});
    assert_eq!(f.command(&json!({"do": "flood", "args": args})), json!({}));
    let left = |f: &Function<common::Puppet>| f.bus.report.get("flood.left");
    let later = Instant::now() + Duration::from_secs(1);
    assert_eq!(f.tick(later), None, "no time helps where there is no room");
    f.model.room = 3;
    let due = f.tick(later).expect("the burst comes a little later");
    assert_eq!((f.model.calls.len(), left(&f)), (0, 5));
    assert_eq!(f.tick(due), None);
    assert_eq!((f.model.calls.len(), left(&f)), (3, 2));
    for now in [
        later,
        later + Duration::from_secs(1),
        later + Duration::from_secs(2),
    ] {
        f.tick(now);
    }
    assert_eq!(f.model.calls, ["frame 0 60"; 5]);
    assert_eq!(left(&f), 0);
}

#[test]
fn a_flood_is_refused_with_what_it_takes() {
    let mut f = function();
    for args in [
        json!({}),
        json!({"port": 0, "frames": [], "count": 1, "burst": 1}),
        json!({"port": 0, "frames": ["0"], "count": 1, "burst": 1}),
        json!({"port": 0, "frames": ["zz".repeat(60)], "count": 1, "burst": 1}),
        json!({"port": 7, "frames": ["00".repeat(60)], "count": 1, "burst": 1}),
    ] {
        let answer = f.command(&json!({"do": "flood", "args": args}));
        assert!(answer["error"].is_string(), "{args} was taken");
    }
}

#[test]
fn interrupts_of_a_batch_come_at_its_end() {
    let mut f = function();
    let raised = |f: &Function<common::Puppet>| f.bus.report.get("irq.raised");
    f.bus.irq.hold();
    for vector in [1, 2, 1] {
        f.bus.irq.raise(vector);
    }
    assert_eq!(raised(&f), 0);
    f.bus.irq.release();
    assert_eq!(raised(&f), 2);
    f.bus.irq.raise(1);
    assert_eq!(raised(&f), 3);
}
