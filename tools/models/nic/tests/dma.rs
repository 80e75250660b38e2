// SPDX-License-Identifier: GPL-2.0
//! Mappings: bookkeeping, and data through them.

use nic::{
    testing::{Access, Memory},
    GuestDma, Report,
};
use vfio_user::{DmaMap, Errno};

const BASE: u64 = 0x1_0000_0000;
const PAGE: u64 = 4096;
const PAGES: u64 = 4096;

fn setup() -> (GuestDma, Memory, Report) {
    let report = Report::default();
    let mut dma = GuestDma::new(&report);
    dma.set_bus_master(true);
    (dma, Memory::new(BASE, PAGES * PAGE).unwrap(), report)
}

/// As an IOMMU in strict mode does: each page on its own.
#[test]
fn thousands_of_pages_and_one_access_over_all() {
    let (mut dma, memory, report) = setup();
    for page in 0..PAGES {
        dma.map(memory.map(BASE + page * PAGE, PAGE, Access::Both).unwrap())
            .unwrap();
    }
    assert_eq!(dma.live_maps() as u64, PAGES);
    let data: Vec<u8> = (0..PAGES * PAGE).map(|n| (n / 3) as u8).collect();
    dma.write(BASE, &data).unwrap();
    let mut back = vec![0; data.len()];
    dma.read(BASE, &mut back).unwrap();
    assert!(data == back);
    assert_eq!(
        memory.read::<[u8; 8]>(BASE + PAGE - 4).unwrap(),
        data[PAGE as usize - 4..][..8]
    );

    for page in (0..PAGES).step_by(2) {
        dma.unmap(BASE + page * PAGE, PAGE).unwrap();
    }
    assert_eq!(dma.live_maps() as u64, PAGES / 2);
    dma.write(BASE + PAGE, &[1; PAGE as usize]).unwrap();
    dma.write(BASE + PAGE, &[1; PAGE as usize + 1]).unwrap_err();
    dma.unmap(BASE, PAGES * PAGE).unwrap();
    assert_eq!(report.get("dma.maps"), PAGES);
    assert_eq!(report.get("dma.unmaps"), PAGES);
    assert_eq!(report.get("dma.live_maps"), 0);
}

#[test]
fn objects() {
    let (mut dma, memory, report) = setup();
    dma.map(memory.map(BASE, PAGE, Access::Both).unwrap())
        .unwrap();
    memory.write(BASE + 1, &0x1122_3344_5566_7788u64).unwrap();
    assert_eq!(
        dma.read_obj::<u64>(BASE + 1).unwrap(),
        0x1122_3344_5566_7788
    );
    dma.write_obj(BASE + 3, &7u32).unwrap();
    assert_eq!(memory.read::<u32>(BASE + 3).unwrap(), 7);
    assert_eq!(report.get("dma.read_bytes"), 8);
    assert_eq!(report.get("dma.written_bytes"), 4);
    memory.write(BASE + memory.len - 1, &[0u8; 2]).unwrap_err();
    memory.read::<u16>(BASE - 1).unwrap_err();
}

#[test]
fn refuses_maps_that_cannot_be() {
    let (mut dma, memory, report) = setup();
    let map = |address, size| DmaMap {
        address,
        size,
        ..memory.map(BASE, PAGE, Access::Both).unwrap()
    };
    dma.map(map(BASE + PAGE, 2 * PAGE)).unwrap();
    for (address, size) in [
        (BASE, PAGE + 1),
        (BASE + PAGE, PAGE),
        (BASE + 3 * PAGE - 1, PAGE),
        (BASE, 0),
        (BASE, u64::MAX),
        (u64::MAX, 2),
        // Beyond the end of the file.
        (0, (PAGES + 1) * PAGE),
    ] {
        assert_eq!(
            dma.map(map(address, size)),
            Err(Errno::INVAL),
            "{address:#x} {size:#x}"
        );
    }
    dma.map(map(BASE, PAGE)).unwrap();
    dma.map(map(BASE + 3 * PAGE, PAGE)).unwrap();
    assert_eq!(report.get("dma.live_maps"), 3);
}

#[test]
fn refuses_unmaps_that_cut_a_mapping() {
    let (mut dma, memory, _report) = setup();
    dma.map(memory.map(BASE + PAGE, 2 * PAGE, Access::Both).unwrap())
        .unwrap();
    for (address, size) in [
        (BASE, 2 * PAGE),
        (BASE + 2 * PAGE, PAGE),
        (BASE + PAGE, PAGE),
        (u64::MAX, 2),
    ] {
        assert_eq!(
            dma.unmap(address, size),
            Err(Errno::INVAL),
            "{address:#x} {size:#x}"
        );
    }
    assert_eq!(dma.unmap(BASE, PAGE), Ok(()), "nothing to do");
    assert_eq!(dma.live_maps(), 1);
    // The upper half of the address space, as QEMU unmaps it, and then all below.
    assert_eq!(dma.unmap(1 << 63, 1 << 63), Ok(()));
    assert_eq!(dma.live_maps(), 1);
    assert_eq!(dma.unmap(0, 1 << 63), Ok(()));
    assert_eq!(dma.live_maps(), 0);
}
