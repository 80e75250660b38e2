// SPDX-License-Identifier: GPL-2.0

//! The core's side of a TX queue: stopped or not, and the byte queue limits (BQL).

// What these compile to is `smp_load_acquire()` and `smp_store_release()`; those of the kernel crate
// are a call each.
use core::sync::atomic::{
    AtomicBool,
    AtomicU32,
    Ordering, //
};

use kernel::prelude::*;
use ring_core::doorbell::SentQueue;

use crate::{
    bindings,
    lock::{
        DeviceRef,
        OpsLock, //
    },
    skb::{
        TxMeta,
        TxSkb, //
    }, //
};

/// When the queue of a ring stops and starts, in units of the ring.
pub struct Room {
    /// Units of the ring.
    pub size: u32,
    /// Stop with fewer units than this free.
    pub stop_at: u32,
    /// Start again with this many free.
    pub wake_at: u32,
}

/// A count of units, free-running, on a cache line of its own: one side writes it, the other reads.
#[repr(align(64))]
struct Position(AtomicU32);

/// TX queue `index` of a device, and how far the one ring behind it has come.
///
/// # Invariants
///
/// `txq` is a queue of the device of `device`.
pub struct TxQueue {
    txq: *mut bindings::netdev_queue,
    room: bindings::rc_helper_tx_room,
    /// Whether completions leave the queue stopped.
    down: AtomicBool,
    #[expect(dead_code, reason = "keeps `txq` alive")]
    device: DeviceRef,
    /// Units posted, for who completes them.
    head: Position,
    /// Units completed, for who posts.
    tail: Position,
}

// SAFETY: The queue belongs to no thread.
unsafe impl Send for TxQueue {}

// SAFETY: The core expects one side that sends, and one that completes, at the same time. A second one
// of a side, or completing what was not sent, would make BQL count wrong, on which `dql_completed()`
// stops the machine; memory is safe. That is part of the trusted base: `ring_common` alone calls these.
unsafe impl Sync for TxQueue {}

impl TxQueue {
    /// Looks up a queue of the device whose lock is held, for a ring in which nothing is posted yet.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the device has no such queue.
    /// - `ENODEV` if the device is not registered.
    pub fn new(lock: &OpsLock<'_>, index: u32, room: Room) -> Result<Self> {
        let dev = lock.device_ptr();
        // SAFETY: The device is valid while its lock is held; the number never changes.
        if index >= unsafe { (*dev).num_tx_queues } {
            return Err(EINVAL);
        }
        let device = lock.hold()?;
        // CAST: `usize` has 64 bits on every target.
        // SAFETY: The device has more than `index` queues, which live as long as it.
        let txq = unsafe { (*dev)._tx.add(index as usize) };
        // INVARIANT: As just looked up.
        Ok(Self {
            txq,
            room: bindings::rc_helper_tx_room {
                size: room.size,
                stop: room.stop_at,
                wake: room.wake_at,
            },
            down: AtomicBool::new(false),
            device,
            head: Position(AtomicU32::new(0)),
            tail: Position(AtomicU32::new(0)),
        })
    }

    /// Units completed, as [`completed`](Self::completed) was told last; free-running.
    #[inline(always)]
    pub fn tail(&self) -> u32 {
        self.tail.0.load(Ordering::Acquire)
    }

    /// Accounts the packet `skb` that was posted, and stops the queue if the ring is almost full. Stamps
    /// the packet with the time if its sender has asked for that.
    ///
    /// `head` counts the posted units, this packet included; free-running. The answer says whether the
    /// doorbell must be rung. Context: under the queue's xmit lock, before the device is told of the
    /// packet.
    #[inline(always)]
    pub fn sent(&self, skb: &TxSkb, meta: &TxMeta, head: u32) -> SentQueue {
        self.head.0.store(head, Ordering::Release);
        // SAFETY:
        // - The queue is valid by the type invariant, and so is the packet.
        // - `tail` may be read at any time while `self` is borrowed.
        let sent = unsafe {
            bindings::rc_helper_txq_sent(
                self.txq,
                skb.as_ptr(),
                meta.as_raw(),
                &self.room,
                self.tail.0.as_ptr(),
                head,
            )
        };
        SentQueue {
            kick: sent & bindings::RC_HELPER_SENT_KICK != 0,
            stopped: sent & bindings::RC_HELPER_SENT_STOPPED != 0,
        }
    }

    /// Takes note that an XDP frame was posted, which neither BQL nor the queue's state is told of.
    ///
    /// `head` and context as for [`sent`](Self::sent).
    #[inline(always)]
    pub fn posted(&self, head: u32) {
        self.head.0.store(head, Ordering::Release);
    }

    /// Accounts completed packets, and wakes the queue if there is room again. Returns whether it did.
    ///
    /// `tail` counts the completed units, those of the packets included; free-running. XDP frames count as
    /// packets, of no bytes. Context: NAPI, at most once in a poll.
    #[inline]
    pub fn completed(&self, packets: u32, bytes: u32, tail: u32) -> bool {
        self.tail.0.store(tail, Ordering::Release);
        // SAFETY:
        // - The queue is valid by the type invariant.
        // - `head` and `down` may be read at any time while `self` is borrowed; a `bool` is a byte.
        unsafe {
            bindings::rc_helper_txq_completed(
                self.txq,
                &self.room,
                self.head.0.as_ptr(),
                tail,
                packets,
                bytes,
                self.down.as_ptr().cast(),
            )
        }
    }

    /// Has completions leave the queue stopped from here on, for who takes it down.
    ///
    /// A poll that runs now may still wake it: wait for a grace period before the queue is stopped.
    pub fn keep_stopped(&self) {
        self.down.store(true, Ordering::Relaxed);
    }

    /// Has BQL forget what is in flight, once all of it was freed, and what it learned. Process context,
    /// with the queue stopped.
    ///
    /// Does nothing for a ring that was not taken down by [`keep_stopped`](Self::keep_stopped): it never
    /// was in use, and the queue may be that of another ring.
    pub fn reset(&self) {
        if !self.down.load(Ordering::Relaxed) {
            return;
        }
        // SAFETY: The queue is valid by the type invariant.
        unsafe { bindings::rc_helper_txq_reset(self.txq) };
    }
}
