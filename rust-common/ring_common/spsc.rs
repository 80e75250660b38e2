// SPDX-License-Identifier: GPL-2.0

//! A queue between one producer and one consumer, without locks: what a TX ring remembers of the
//! packets that the device has.
//!
//! The order of accesses is [`ring_core::shared`]'s, which a model checker has seen on the host.

use core::{
    cell::UnsafeCell,
    mem::MaybeUninit,
    sync::atomic::{
        AtomicU32,
        Ordering, //
    },
};

use kernel::{
    prelude::*,
    sync::Arc, //
};
use ring_core::{
    index::{
        Consumer,
        Producer,
        RingSize, //
    },
    shared::{
        Count,
        Counts, //
    },
};

/// A published count on a cache line of its own.
///
/// It is core's atomic rather than the kernel's: with inline helpers off each access to the latter is
/// a call. Acquire and release are the same on both targets (plain moves on x86-64, `ldar` and
/// `stlr` on arm64).
#[repr(align(64))]
struct Published(AtomicU32);

impl Count for Published {
    #[inline(always)]
    fn load_acquire(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn store_release(&self, value: u32) {
        self.0.store(value, Ordering::Release);
    }
}

/// What both halves share.
///
/// # Invariants
///
/// - `slots` has as many elements as the ring of the two halves' positions.
/// - Slots that are published as filled are accessed by the [`Receiver`] alone, all others by the
///   [`Sender`] alone.
/// - Those from the receiver's position on that are published as filled hold a value.
struct Shared<T> {
    counts: Counts<Published>,
    slots: KVVec<UnsafeCell<MaybeUninit<T>>>,
}

// SAFETY: By the type invariant a slot is accessed by one half at a time, and the positions are handed
// over with release and acquire. So a value is moved from one context to another, which `T: Send`
// allows.
unsafe impl<T: Send> Sync for Shared<T> {}

// SAFETY: As above; dropping the values elsewhere is also a move.
unsafe impl<T: Send> Send for Shared<T> {}

/// The half that pushes.
pub(crate) struct Sender<T> {
    shared: Arc<Shared<T>>,
    producer: Producer,
}

/// The half that pops.
pub(crate) struct Receiver<T> {
    shared: Arc<Shared<T>>,
    consumer: Consumer,
}

/// Makes a queue for up to `size` values. Process context.
///
/// # Errors
///
/// `ENOMEM` if there is no memory.
pub(crate) fn channel<T: Send>(size: RingSize) -> Result<(Sender<T>, Receiver<T>)> {
    // CAST: `usize` has 64 bits on every target.
    let mut slots = KVVec::with_capacity(size.get() as usize, GFP_KERNEL)?;
    for _ in 0..size.get() {
        slots.push(UnsafeCell::new(MaybeUninit::uninit()), GFP_KERNEL)?;
    }
    let counts = Counts::new(Published(AtomicU32::new(0)), Published(AtomicU32::new(0)));
    // INVARIANT: Both positions are 0: no slot is published as filled.
    let shared = Arc::new(Shared { counts, slots }, GFP_KERNEL)?;
    Ok((
        Sender {
            shared: shared.clone(),
            producer: Producer::new(size, 0),
        },
        Receiver {
            shared,
            consumer: Consumer::new(size, 0),
        },
    ))
}

impl<T> Sender<T> {
    /// Adds a value and publishes it; gives it back if the queue is full.
    #[inline]
    pub(crate) fn push(&mut self, value: T) -> Result<(), T> {
        let Some(claim) = self.shared.counts.reserve(&mut self.producer, 1) else {
            return Err(value);
        };
        // CAST: `usize` has 64 bits on every target.
        let Some(slot) = self.shared.slots.get(claim.span().start().slot() as usize) else {
            return Err(value);
        };
        // SAFETY: The slot is claimed, hence not published as filled: by the type invariant this
        // half alone accesses it, and `&mut self` excludes another push.
        unsafe { (*slot.get()).write(value) };
        // INVARIANT: From here on the slot, with its value, is the receiver's.
        self.shared.counts.publish_produced(claim);
        Ok(())
    }
}

impl<T> Receiver<T> {
    /// Whether there is a value.
    pub(crate) fn has_any(&self) -> bool {
        self.shared.counts.used(&self.consumer) != 0
    }

    /// Takes values, the oldest first, and hands each to `each`, for as long as `wanted` says so of the
    /// next one. The sender does not see the room that this makes before [`publish`](Self::publish).
    #[inline(always)]
    pub(crate) fn drain(&mut self, mut wanted: impl FnMut(&T) -> bool, mut each: impl FnMut(T)) {
        let counts = &self.shared.counts;
        let slots = &*self.shared.slots;
        let used = counts.used(&self.consumer);
        let Some(all) = counts.take(&mut self.consumer, used) else {
            return;
        };
        let mut taken = 0u32;
        'runs: for run in all.span().runs() {
            // CAST: `usize` has 64 bits on every target.
            let filled = slots.iter().skip(run.slot as usize).take(run.len as usize);
            for slot in filled {
                let slot = slot.get();
                // SAFETY: The slot is published as filled and not taken yet: by the type invariant it
                // holds a value, which this half alone accesses; `&mut self` excludes another drain.
                if !wanted(unsafe { (*slot).assume_init_ref() }) {
                    break 'runs;
                }
                taken = taken.wrapping_add(1);
                // SAFETY: As above. The slot is not read again: the position moves past it below, and
                // nothing unwinds in between.
                each(unsafe { (*slot).assume_init_read() });
            }
        }
        // INVARIANT: The emptied slots are behind the receiver's position now.
        if let Some(claim) = counts.take(&mut self.consumer, taken) {
            claim.commit();
        }
    }

    /// Gives the room of all that was taken back to the sender.
    #[inline(always)]
    pub(crate) fn publish(&self) {
        // INVARIANT: From here on the emptied slots are the sender's.
        self.shared.counts.publish_all_consumed(&self.consumer);
    }
}

impl<T> Drop for Receiver<T> {
    /// Drops what is left. What a sender pushes later is leaked: it goes first.
    fn drop(&mut self) {
        self.drain(|_| true, drop);
        self.publish();
    }
}
