// SPDX-License-Identifier: GPL-2.0
//! Provokes each common violation rule, and what is next to it but allowed.

mod common;

use std::collections::BTreeSet;

use nic::{
    offload::{Transmit, Transport},
    testing::{self, Access, Memory},
    Bus, Report, Rule,
};
use vfio_user::{Device, DmaMap};

const BASE: u64 = 0x1000_0000;
const PAGE: u64 = 4096;

/// A bus of which the test maps the memory itself.
fn unmapped() -> (Bus, Memory) {
    let memory = Memory::new(BASE, 16 * PAGE).unwrap();
    let mut bus = testing::bus(&memory, 4, 1, &[]).unwrap();
    bus.dma.set_bus_master(false);
    bus.dma.unmap_all();
    bus.dma.set_bus_master(true);
    (bus, memory)
}

fn ethernet(len: usize) -> Vec<u8> {
    vec![0x22; len]
}

/// A rule, and a raw use of the common parts that breaks it; gives back the report.
type Case = (&'static Rule, fn() -> Report);

const CASES: &[Case] = &[
    (&nic::DMA_UNMAPPED, || {
        let (mut bus, memory) = unmapped();
        bus.dma
            .map(memory.map(BASE, PAGE, Access::Both).unwrap())
            .unwrap();
        bus.dma.write(BASE, &[1; PAGE as usize]).unwrap();
        // One byte past the mapping, and an address that wraps around.
        assert_eq!(
            bus.dma
                .write(BASE, &[1; PAGE as usize + 1])
                .unwrap_err()
                .rule,
            &nic::DMA_UNMAPPED
        );
        assert_eq!(
            bus.dma.read(u64::MAX, &mut [0; 2]).unwrap_err().rule,
            &nic::DMA_UNMAPPED
        );
        bus.report
    }),
    (&nic::DMA_AFTER_UNMAP, || {
        let (mut bus, memory) = unmapped();
        bus.dma
            .map(memory.map(BASE, PAGE, Access::Both).unwrap())
            .unwrap();
        bus.dma.unmap(BASE, PAGE).unwrap();
        // Told once for each place.
        bus.dma.write(BASE + 8, &[1]).unwrap_err();
        bus.dma.write(BASE + 8, &[1]).unwrap_err();
        assert_eq!(
            bus.report.json()["violations"][0]["where"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
        // Mapped again, the same address is fine.
        bus.dma
            .map(memory.map(BASE, PAGE, Access::Both).unwrap())
            .unwrap();
        bus.dma.write(BASE + 8, &[1]).unwrap();
        bus.report
    }),
    (&nic::DMA_READ_ONLY, || {
        let (mut bus, memory) = unmapped();
        bus.dma
            .map(memory.map(BASE, PAGE, Access::ReadOnly).unwrap())
            .unwrap();
        bus.dma.read(BASE, &mut [0; 4]).unwrap();
        bus.dma.write(BASE, &[1; 4]).unwrap_err();
        assert_eq!(memory.read::<[u8; 4]>(BASE).unwrap(), [0; 4]);
        bus.report
    }),
    (&nic::DMA_WRITE_ONLY, || {
        let (mut bus, memory) = unmapped();
        bus.dma
            .map(memory.map(BASE, PAGE, Access::WriteOnly).unwrap())
            .unwrap();
        bus.dma.write(BASE, &[1; 4]).unwrap();
        bus.dma.read(BASE, &mut [0; 4]).unwrap_err();
        bus.report
    }),
    (&nic::DMA_NOT_MEMORY, || {
        let (mut bus, memory) = unmapped();
        let rom = DmaMap {
            fd: None,
            ..memory.map(BASE, PAGE, Access::ReadOnly).unwrap()
        };
        bus.dma.map(rom).unwrap();
        bus.dma.read(BASE, &mut [0; 4]).unwrap_err();
        bus.report
    }),
    (&nic::DMA_BUS_MASTER_OFF, || {
        let (mut bus, memory) = unmapped();
        bus.dma
            .map(memory.map(BASE, PAGE, Access::Both).unwrap())
            .unwrap();
        bus.dma.set_bus_master(false);
        bus.dma.write(BASE, &[1; 4]).unwrap_err();
        bus.dma.set_bus_master(true);
        bus.dma.write(BASE, &[1; 4]).unwrap();
        bus.report
    }),
    (&nic::IRQ_VECTOR_RANGE, || {
        let (mut bus, _memory) = unmapped();
        bus.irq.raise(3);
        bus.irq.raise(4);
        bus.report
    }),
    (&nic::MMIO_ACCESS, || {
        let mut function = common::function();
        function.write(0, 0x10, &[0; 8]).unwrap();
        function.write(0, 0x14, &[0; 8]).unwrap();
        let mut data = [0; 3];
        function.read(0, 0, &mut data).unwrap();
        assert_eq!(data, [0xff; 3]);
        assert_eq!(function.model.calls, ["write 0 0x10 8 0x0"]);
        function.bus.report
    }),
    (&nic::FRAME_LENGTH, || {
        let (mut bus, _memory) = unmapped();
        bus.wires[0].set_max_frame(1514);
        for len in [13, 1515] {
            bus.wires[0].send(&ethernet(len));
        }
        for len in [14, 1514] {
            bus.wires[0].send(&ethernet(len));
        }
        assert_eq!(bus.report.get("port0.out_frames"), 2);
        bus.report
    }),
    (&nic::OFFLOAD_HEADERS, || {
        let (mut bus, _memory) = unmapped();
        let tcp = Some(Transport::Tcp);
        for ask in [
            Transmit {
                ip_checksum: true,
                ..Transmit::default()
            },
            Transmit {
                l4_checksum: tcp,
                ..Transmit::default()
            },
            Transmit {
                l4_checksum: tcp,
                segment: Some(1448),
                ..Transmit::default()
            },
        ] {
            bus.wires[0].transmit(&mut ethernet(60), &ask).unwrap_err();
        }
        bus.wires[0]
            .transmit(
                &mut ethernet(60),
                &Transmit {
                    vlan: Some(5),
                    ..Transmit::default()
                },
            )
            .unwrap();
        assert_eq!(bus.report.get("port0.out_frames"), 1);
        bus.report
    }),
];

#[test]
fn each_rule_is_provoked_alone() {
    for (rule, provoke) in CASES {
        let report = provoke();
        assert!(
            report.violations(rule) > 0,
            "{} was not provoked",
            rule.name
        );
        for other in nic::RULES.iter().filter(|other| other.name != rule.name) {
            assert_eq!(
                report.violations(other),
                0,
                "{} instead of {}",
                other.name,
                rule.name
            );
        }
        let listed = &report.json()["violations"][0];
        assert_eq!(listed["rule"], rule.name);
        assert_eq!(listed["count"], report.violations(rule));
        assert!(!listed["where"].as_array().unwrap().is_empty());
    }
}

#[test]
fn every_rule_has_a_case() {
    let names = |rules: &mut dyn Iterator<Item = &'static Rule>| {
        rules.map(|rule| rule.name).collect::<BTreeSet<_>>()
    };
    let cases = names(&mut CASES.iter().map(|(rule, _)| *rule));
    assert_eq!(cases, names(&mut nic::RULES.iter().copied()));
    assert_eq!(nic::RULES.len(), cases.len(), "a name is used twice");
}

#[test]
fn a_failed_device_excuses_its_driver_but_not_for_everything() {
    nic::rules! {
        OWN:
        TOLD = "told", "something that a device which fails may cause";
    }
    let report = Report::default();
    report.excuse(true);
    report.violate(OWN[0], "here");
    report.violate(&nic::DMA_BUS_MASTER_OFF, "here");
    report.violate(&nic::DMA_AFTER_UNMAP, "here");
    let count = |rule| report.violations(rule);
    assert_eq!((count(&TOLD), count(&nic::DMA_BUS_MASTER_OFF)), (0, 0));
    assert_eq!(count(&nic::DMA_AFTER_UNMAP), 1);
    assert_eq!(report.get("excused_violations"), 2);
    report.excuse(false);
    report.violate(&TOLD, "here");
    assert_eq!(count(&TOLD), 1);
}
