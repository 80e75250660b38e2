// SPDX-License-Identifier: GPL-2.0

//! The two counts through which xmit and completion share a ring.
//!
//! A TX ring is filled under the core's per-queue lock on one CPU and emptied
//! in NAPI on another. Each side owns its [`Producer`] or [`Consumer`] and
//! publishes one count here, which only the other side reads. Nothing else is
//! shared, so there is no lock:
//!
//! * [`Counts::publish_produced`] is a release: what xmit wrote into its side
//!   table is visible to the completion that sees the count.
//! * [`Counts::publish_consumed`] is a release: what completion did to a slot
//!   is over before xmit may fill it again.
//!
//! Since the counts run freely, `length - (produced - consumed)` slots are free
//! for any length: what C code such as `netif_txq_maybe_stop()` evaluates again
//! after its barrier.
//!
//! The order towards the device is not covered: the doorbell's own barrier is.
//!
//! Atomics come from a shim, the kernel's memory model in the module and a
//! model checker on the host.

use crate::index::{
    Claim,
    Consumer,
    Producer, //
};

/// An atomic `u32` with the two orders needed here.
///
/// In the kernel: `smp_load_acquire()` and `smp_store_release()`.
pub trait Count {
    /// Loads the value; later accesses stay after it.
    fn load_acquire(&self) -> u32;

    /// Stores the value; earlier accesses stay before it.
    fn store_release(&self, value: u32);
}

/// The published counts of a ring. Both start at the count its sides start at.
///
/// ```
/// use core::sync::atomic::{AtomicU32, Ordering};
/// use ring_core::index::{Consumer, Producer, RingSize};
/// use ring_core::shared::{Count, Counts};
///
/// struct Atomic(AtomicU32);
/// impl Count for Atomic {
///     fn load_acquire(&self) -> u32 { self.0.load(Ordering::Acquire) }
///     fn store_release(&self, v: u32) { self.0.store(v, Ordering::Release) }
/// }
///
/// let size = RingSize::new(8).unwrap();
/// let counts = Counts::new(Atomic(0.into()), Atomic(0.into()));
/// let mut xmit = Producer::new(size, 0);
/// let mut clean = Consumer::new(size, 0);
///
/// let claim = counts.reserve(&mut xmit, 3).unwrap();
/// counts.publish_produced(claim);
/// assert_eq!(counts.used(&clean), 3);
///
/// let claim = counts.take(&mut clean, 2).unwrap();
/// counts.publish_consumed(claim);
/// assert_eq!(counts.free(&xmit), 7);
/// ```
#[derive(Debug)]
pub struct Counts<C> {
    produced: C,
    consumed: C,
}

impl<C: Count> Counts<C> {
    /// Wraps two counts, each of which the caller set to the start count.
    pub const fn new(produced: C, consumed: C) -> Self {
        Self { produced, consumed }
    }

    /// Slots that xmit may fill now; completion can only raise it.
    #[inline]
    pub fn free(&self, producer: &Producer) -> u32 {
        producer.free(self.consumed.load_acquire())
    }

    /// Slots that completion may empty now; xmit can only raise it.
    #[inline]
    pub fn used(&self, consumer: &Consumer) -> u32 {
        consumer.used(self.produced.load_acquire())
    }

    /// [`Producer::reserve`] against what completion has published.
    #[inline]
    pub fn reserve<'a>(&self, producer: &'a mut Producer, n: u32) -> Option<Claim<'a>> {
        producer.reserve(n, self.consumed.load_acquire())
    }

    /// [`Consumer::take`] against what xmit has published.
    #[inline]
    pub fn take<'a>(&self, consumer: &'a mut Consumer, n: u32) -> Option<Claim<'a>> {
        consumer.take(n, self.produced.load_acquire())
    }

    /// Commits what [`Counts::reserve`] claimed and shows it to completion.
    ///
    /// Call it before the doorbell: the device may complete the slots within
    /// the doorbell write.
    #[inline]
    pub fn publish_produced(&self, filled: Claim<'_>) {
        self.produced.store_release(filled.commit());
    }

    /// Commits what [`Counts::take`] claimed and shows it to xmit.
    #[inline]
    pub fn publish_consumed(&self, emptied: Claim<'_>) {
        self.consumed.store_release(emptied.commit());
    }

    /// Shows xmit all that was taken and committed so far: once for a burst.
    #[inline]
    pub fn publish_all_consumed(&self, consumer: &Consumer) {
        self.consumed.store_release(consumer.next().count());
    }
}
