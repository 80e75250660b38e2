// SPDX-License-Identifier: GPL-2.0

//! Index publication between xmit and completion, in a model checker that
//! tries every interleaving and every stale value that C11 allows.

use loom::sync::atomic::{
    AtomicU32,
    Ordering, //
};
use loom::sync::Arc;
use ring_core::index::{
    Consumer,
    Producer,
    RingSize, //
};
use ring_core::shared::{
    Count,
    Counts, //
};

const LEN: usize = 2;
const TRIES: usize = 3;

/// The shim; without `ordered` it forgets the orders.
struct Shim {
    value: AtomicU32,
    ordered: bool,
}

impl Count for Shim {
    fn load_acquire(&self) -> u32 {
        self.value.load(if self.ordered {
            Ordering::Acquire
        } else {
            Ordering::Relaxed
        })
    }

    fn store_release(&self, value: u32) {
        let order = if self.ordered {
            Ordering::Release
        } else {
            Ordering::Relaxed
        };
        self.value.store(value, order);
    }
}

/// xmit numbers the slots of a side table, each of which it must find cleared;
/// completion must find the numbers in order, and clears them. Neither waits.
fn exchange(produced_ordered: bool, consumed_ordered: bool) {
    let start = u32::MAX; // the count wraps on the way
    let size = RingSize::new(LEN as u32).unwrap();
    let count = |ordered| Shim {
        value: AtomicU32::new(start),
        ordered,
    };
    let counts = Arc::new(Counts::new(
        count(produced_ordered),
        count(consumed_ordered),
    ));
    let table = Arc::new([0; LEN].map(AtomicU32::new));

    let xmit = {
        let (counts, table) = (counts.clone(), table.clone());
        loom::thread::spawn(move || {
            let mut producer = Producer::new(size, start);
            let mut sent = 0;
            for _ in 0..TRIES {
                let Some(claim) = counts.reserve(&mut producer, 1) else {
                    continue;
                };
                let entry = &table[claim.span().slot(0).unwrap() as usize];
                assert_eq!(entry.load(Ordering::Relaxed), 0, "still in use");
                sent += 1;
                entry.store(sent, Ordering::Relaxed);
                counts.publish_produced(claim);
            }
            sent
        })
    };

    let mut consumer = Consumer::new(size, start);
    let mut completed = 0;
    let mut complete = || {
        let Some(claim) = counts.take(&mut consumer, 1) else {
            return completed;
        };
        let entry = &table[claim.span().slot(0).unwrap() as usize];
        completed += 1;
        assert_eq!(entry.load(Ordering::Relaxed), completed, "not yet written");
        entry.store(0, Ordering::Relaxed);
        counts.publish_consumed(claim);
        completed
    };
    for _ in 0..TRIES {
        complete();
    }
    let sent = xmit.join().unwrap();
    for _ in 0..LEN {
        complete();
    }
    assert_eq!(complete(), sent);
}

#[test]
fn each_side_sees_what_the_other_published() {
    loom::model(|| exchange(true, true));
}

// The model would notice: without either pair of orders it fails.

#[test]
#[should_panic(expected = "not yet written")]
fn produced_without_orders_breaks() {
    loom::model(|| exchange(false, true));
}

#[test]
#[should_panic(expected = "still in use")]
fn consumed_without_orders_breaks() {
    loom::model(|| exchange(true, false));
}
