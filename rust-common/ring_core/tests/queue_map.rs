// SPDX-License-Identifier: GPL-2.0

//! Every online mask of up to eight CPUs with every number of queues.

use std::num::NonZeroU16;

use ring_core::queue_map::{
    CpuEntry,
    QueueMap, //
};

const CPUS: usize = 8;

fn check(map: &QueueMap<Vec<CpuEntry>>, mask: u32, queues: u16) {
    let online = |cpu: &usize| (mask >> cpu) & 1 == 1;
    let cpus: Vec<usize> = (0..CPUS).filter(online).collect();

    for cpu in 0..CPUS + 3 {
        assert!(map.queue_of(cpu) < queues);
    }
    // Online CPUs take the queues in turn, holes or not.
    for (rank, cpu) in cpus.iter().enumerate() {
        assert_eq!(map.queue_of(*cpu), rank as u16 % queues);
    }
    for queue in 0..queues {
        let senders = cpus.iter().filter(|cpu| map.queue_of(**cpu) == queue);
        let senders: Vec<usize> = senders.copied().collect();
        assert_eq!(
            map.is_shared(queue),
            senders.len() > 1,
            "{mask:b} {queue}/{queues}"
        );
        let servers: Vec<usize> = (0..CPUS + 3)
            .filter(|cpu| map.serves(*cpu, queue))
            .collect();
        if senders.is_empty() && !cpus.is_empty() {
            assert_eq!(servers, [cpus[queue as usize % cpus.len()]]);
        } else {
            assert_eq!(servers, senders);
        }
    }
    for queue in [queues, queues.saturating_add(1), u16::MAX] {
        assert!(!map.is_shared(queue));
        assert!((0..CPUS).all(|cpu| !map.serves(cpu, queue)));
    }
}

#[test]
fn every_mask_and_every_number_of_queues() {
    let one = NonZeroU16::MIN;
    let mut map = QueueMap::new(vec![CpuEntry::default(); CPUS], one, |_| true).unwrap();
    for mask in 0..1u32 << CPUS {
        for queues in 1..=2 * CPUS as u16 + 1 {
            map.rebuild(NonZeroU16::new(queues).unwrap(), |cpu| {
                (mask >> cpu) & 1 == 1
            });
            check(&map, mask, queues);
        }
    }
}

#[test]
fn tables_that_cannot_be() {
    let one = NonZeroU16::MIN;
    assert!(QueueMap::new(vec![], one, |_| true).is_none());
    let many = vec![CpuEntry::default(); usize::from(u16::MAX) + 1];
    assert!(QueueMap::new(many, one, |_| true).is_none());
}

#[test]
fn the_largest_table() {
    let many = vec![CpuEntry::default(); usize::from(u16::MAX)];
    let map = QueueMap::new(many, NonZeroU16::MAX, |_| true).unwrap();
    assert_eq!(map.queue_of(65_534), 65_534);
    assert!(!map.is_shared(0) && !map.is_shared(65_534));
}
