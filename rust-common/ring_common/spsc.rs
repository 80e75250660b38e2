// SPDX-License-Identifier: GPL-2.0

//! A queue between one producer and one consumer, without locks: what a TX ring remembers of the
//! packets that the device has.
//!
//! The order of accesses is [`ring_core::shared`]'s, which a model checker has seen on the host.

use core::{
    cell::UnsafeCell,
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
struct Shared<T> {
    counts: Counts<Published>,
    slots: KVVec<UnsafeCell<Option<T>>>,
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
        slots.push(UnsafeCell::new(None), GFP_KERNEL)?;
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
    /// Whether another value fits.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.shared.counts.free(&self.producer) != 0
    }

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
        unsafe { *slot.get() = Some(value) };
        // INVARIANT: From here on the slot is the receiver's.
        self.shared.counts.publish_produced(claim);
        Ok(())
    }
}

impl<T> Receiver<T> {
    /// Whether there is a value.
    pub(crate) fn has_any(&self) -> bool {
        self.shared.counts.used(&self.consumer) != 0
    }

    /// Takes the oldest value if `wanted` says so of it.
    #[inline]
    pub(crate) fn pop_if(&mut self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        let claim = self.shared.counts.take(&mut self.consumer, 1)?;
        // CAST: `usize` has 64 bits on every target.
        let slot = self
            .shared
            .slots
            .get(claim.span().start().slot() as usize)?
            .get();
        // SAFETY: The slot is published as filled: by the type invariant this half alone accesses
        // it, and `&mut self` excludes another pop.
        let slot = unsafe { &mut *slot };
        let value = slot.take_if(|value| wanted(value))?;
        // INVARIANT: From here on the slot is the sender's.
        self.shared.counts.publish_consumed(claim);
        Some(value)
    }

    /// Takes the oldest value.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.pop_if(|_| true)
    }
}
