// SPDX-License-Identifier: GPL-2.0

//! The mapped parts of the packets that a TX queue has in flight.
//!
//! A FIFO between the two sides of the queue: [`PieceMapper`] under the queue's xmit lock,
//! [`PieceUnmapper`] in NAPI. One C call maps a packet.

use core::{
    cell::UnsafeCell,
    iter::FusedIterator,
    marker::PhantomData,
    // What these compile to is `smp_load_acquire()` and `smp_store_release()`; those of the kernel
    // crate are a call each.
    sync::atomic::{
        AtomicU32,
        Ordering, //
    },
};

use kernel::{
    device,
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    },
};

use super::{
    coherent::raw_device,
    DmaAddr, //
};
use crate::{
    bindings,
    napi::PollContext,
    skb::{
        InFlightSkb,
        Reason,
        TxSkb, //
    },
    xdp::{
        FrameBulk,
        PooledFrame,
        XdpFrame, //
    },
};

/// A position on a cache line of its own, since the two sides run on different CPUs.
#[repr(align(64))]
struct Position(AtomicU32);

/// The pieces of one queue.
///
/// # Invariants
///
/// - `raw` describes `dev` and `slots`, the length of which is a power of two.
/// - `tail <= head <= tail + slots.len()`, both free-running.
/// - The slots from `tail` to `head` are accessed only by the one [`PieceUnmapper`], which moves `tail`.
///   Those from its own position on hold mappings of `dev` that are alive; once there is no unmapper,
///   all of them do.
/// - The other slots are accessed only by the one [`PieceMapper`], which moves `head`.
struct Ring {
    raw: bindings::rc_helper_pieces,
    #[expect(dead_code, reason = "keeps `raw.dev` alive")]
    dev: ARef<device::Device>,
    #[expect(dead_code, reason = "keeps `raw.slots` alive")]
    slots: KVVec<UnsafeCell<bindings::rc_helper_piece>>,
    head: Position,
    tail: Position,
}

// SAFETY: By the type invariant each slot is accessed by one side at a time. Moving a position with
// `Release` and reading it with `Acquire` orders the accesses. A mapping belongs to no thread.
unsafe impl Send for Ring {}

// SAFETY: As above.
unsafe impl Sync for Ring {}

impl Drop for Ring {
    fn drop(&mut self) {
        let head = *self.head.0.get_mut();
        let tail = *self.tail.0.get_mut();
        // SAFETY: By the type invariant these slots hold living mappings; both sides are gone.
        unsafe { bindings::rc_helper_tx_unmap(&self.raw, tail, head.wrapping_sub(tail)) };
    }
}

/// Makes a FIFO of `capacity` pieces, at least 2 and a power of two, for DMA by `dev`. Sleeps.
///
/// Whatever is still mapped when both sides are dropped is unmapped then; that must be before
/// the driver is unbound from `dev`.
///
/// # Errors
///
/// - `EINVAL` for another capacity.
/// - `ENOMEM` if there is no memory.
pub fn piece_ring(dev: &device::Device, capacity: u32) -> Result<(PieceMapper, PieceUnmapper)> {
    if capacity < 2 || !capacity.is_power_of_two() {
        return Err(EINVAL);
    }
    // CAST: `usize` has 64 bits on every target.
    let len = capacity as usize;
    let mut slots = KVVec::with_capacity(len, GFP_KERNEL)?;
    for _ in 0..len {
        slots.push(
            UnsafeCell::new(bindings::rc_helper_piece { addr: 0, len: 0 }),
            GFP_KERNEL,
        )?;
    }
    let raw = bindings::rc_helper_pieces {
        dev: raw_device(dev),
        // `UnsafeCell` is a transparent wrapper, so its slices have the layout of arrays in C.
        slots: UnsafeCell::raw_get(slots.as_ptr()),
        mask: capacity - 1,
    };
    // INVARIANT: The FIFO is empty; there is one of each side.
    let ring = Arc::new(
        Ring {
            raw,
            dev: dev.into(),
            slots,
            head: Position(AtomicU32::new(0)),
            tail: Position(AtomicU32::new(0)),
        },
        GFP_KERNEL,
    )?;
    Ok((
        PieceMapper {
            ring: ring.clone(),
            head: 0,
            pending: 0,
        },
        PieceUnmapper {
            ring,
            next: 0,
            seen: 0,
        },
    ))
}

/// Why a packet was not mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// The FIFO is full.
    Full,
    /// The DMA layer has no room, or the device cannot reach the packet.
    Dma,
}

/// The side that maps. Context: that of xmit.
///
/// # Invariants
///
/// - `head` is the ring's head.
/// - The `pending` slots from there on hold living mappings.
pub struct PieceMapper {
    ring: Arc<Ring>,
    head: u32,
    pending: u32,
}

impl PieceMapper {
    /// Maps a packet for the device to read, and returns the number of its pieces.
    ///
    /// The first piece ends behind `split` bytes of the linear part; 0 for no split.
    /// The mappings are undone unless [`commit`](Self::commit) follows.
    ///
    /// # Errors
    ///
    /// See [`MapError`]; nothing is left mapped.
    #[inline]
    pub fn map(&mut self, skb: &TxSkb, split: u32) -> Result<u32, MapError> {
        self.undo();
        let ring = &*self.ring;
        let room = self.room();
        // SAFETY:
        // - The device and the packet are valid.
        // - By the invariants of `Ring`, of `mask + 1` slots the `room` ones from `head` on are
        //   this side's. The unmapping side has finished with them, as `Acquire` on `tail` says.
        let n =
            unsafe { bindings::rc_helper_tx_map(&ring.raw, skb.as_ptr(), split, self.head, room) };
        match u32::try_from(n) {
            // INVARIANT: The helper mapped `n` pieces.
            Ok(n) => {
                self.pending = n;
                Ok(n)
            }
            Err(_) if n == -(bindings::ENOSPC as i32) => Err(MapError::Full),
            Err(_) => Err(MapError::Dma),
        }
    }

    /// Maps an XDP frame for the device to read: one piece.
    ///
    /// # Errors
    ///
    /// As [`map`](Self::map); [`MapError::Dma`] also for a frame of several pieces.
    #[inline]
    pub fn map_frame(&mut self, frame: &XdpFrame) -> Result<(), MapError> {
        self.undo();
        if self.room() == 0 {
            return Err(MapError::Full);
        }
        // SAFETY: As in `map`; one slot is this side's.
        let err =
            unsafe { bindings::rc_helper_tx_map_frame(&self.ring.raw, frame.as_ptr(), self.head) };
        if err != 0 {
            return Err(MapError::Dma);
        }
        // INVARIANT: The helper mapped one piece.
        self.pending = 1;
        Ok(())
    }

    /// Slots from `head` on that are this side's.
    #[inline(always)]
    fn room(&self) -> u32 {
        let ring = &*self.ring;
        let used = self.head.wrapping_sub(ring.tail.0.load(Ordering::Acquire));
        ring.raw.mask.wrapping_add(1).wrapping_sub(used)
    }

    /// The pieces of the packet that was mapped last, for its descriptors.
    #[inline]
    pub fn pieces(&self) -> Pieces<'_> {
        // INVARIANT: By the type invariant these slots hold living mappings. They stay alive while
        // `self` is borrowed, since only this side can undo or hand them over.
        Pieces {
            base: self.ring.raw.slots,
            mask: self.ring.raw.mask,
            next: self.head,
            len: self.pending,
            _owner: PhantomData,
        }
    }

    /// Hands the pieces of the packet that was mapped last to the unmapping side.
    ///
    /// Before the device is told of the packet, so that its completion finds them.
    #[inline]
    pub fn commit(&mut self) {
        // INVARIANT: Nothing is pending any more; the slots now belong to the other side.
        self.head = self.head.wrapping_add(self.pending);
        self.pending = 0;
        self.ring.head.0.store(self.head, Ordering::Release);
    }

    /// Unmaps the packet that was mapped last, unless it was committed.
    #[inline]
    pub fn undo(&mut self) {
        if self.pending == 0 {
            return;
        }
        // SAFETY: By the type invariant these slots hold living mappings of the device, and are
        // this side's.
        unsafe { bindings::rc_helper_tx_unmap(&self.ring.raw, self.head, self.pending) };
        // INVARIANT: They are unmapped.
        self.pending = 0;
    }
}

impl Drop for PieceMapper {
    fn drop(&mut self) {
        self.undo();
    }
}

/// The side that unmaps. Context: NAPI, or process context while the queue is down.
///
/// # Invariants
///
/// - `next` is this side's position: the ring's tail, or behind it up to the ring's head.
/// - `seen` is a former value of the ring's head, not before `next`.
pub struct PieceUnmapper {
    ring: Arc<Ring>,
    next: u32,
    /// The ring's head as this side saw it last.
    seen: u32,
}

impl PieceUnmapper {
    /// Unmaps the `n` oldest pieces, or as many as there are.
    #[inline(always)]
    fn unmap(&mut self, n: u32) {
        let ring = &*self.ring;
        let bindings::rc_helper_pieces { dev, slots, mask } = ring.raw;
        if n > self.seen.wrapping_sub(self.next) {
            // INVARIANT: The head only moves on.
            self.seen = ring.head.0.load(Ordering::Acquire);
        }
        for _ in 0..n.min(self.seen.wrapping_sub(self.next)) {
            // CAST: `usize` has 64 bits on every target.
            let slot = (self.next & mask) as usize;
            // SAFETY: By the invariants of `Ring` and of this type the slot is inside of the ring,
            // this side's, and was written.
            let piece = unsafe { slots.add(slot).read() };
            // INVARIANT: The mapping is not used again.
            self.next = self.next.wrapping_add(1);
            // SAFETY: By the invariant of `Ring` this is a living mapping of the device, made with the
            // same length and direction.
            unsafe {
                bindings::dma_unmap_phys(
                    dev,
                    piece.addr,
                    // CAST: `usize` has 64 bits on every target.
                    piece.len as usize,
                    bindings::dma_data_direction_DMA_TO_DEVICE,
                    0,
                )
            };
        }
    }

    /// Gives the room of what was unmapped back to the mapping side: once for a burst.
    #[inline(always)]
    pub fn publish(&self) {
        // INVARIANT: The slots are handed back, which `Release` orders behind the reads of them.
        self.ring.tail.0.store(self.next, Ordering::Release);
    }

    /// Unmaps the `n` oldest pieces, those of `skb`, and frees the packet as sent.
    ///
    /// The mapping side does not see the room before [`publish`](Self::publish).
    #[inline(always)]
    pub fn consume(&mut self, n: u32, skb: InFlightSkb, cx: &PollContext<'_>) {
        self.unmap(n);
        // SAFETY: `into_raw` gives the packet up. `napi_budget` is that of the poll this runs in.
        unsafe { bindings::napi_consume_skb(skb.into_raw(), cx.napi_budget()) };
    }

    /// Unmaps the `n` oldest pieces, those of `frame`, and adds it to those that go back to their memory.
    ///
    /// The mapping side does not see the room before [`publish`](Self::publish).
    #[inline]
    pub fn consume_frame(&mut self, n: u32, frame: XdpFrame, bulk: &mut FrameBulk<'_>) {
        self.unmap(n);
        bulk.add(frame);
    }

    /// Unmaps the `n` oldest pieces, those of `frame`, and gives it back, sent or not.
    pub fn drop_frame(&mut self, n: u32, frame: XdpFrame) {
        self.unmap(n);
        drop(frame);
    }

    /// Unmaps the `n` oldest pieces, those of `skb`, and drops the packet, which the device has not
    /// sent.
    pub fn drop_reason(&mut self, n: u32, skb: InFlightSkb, reason: Reason) {
        self.unmap(n);
        skb.drop_reason(reason);
    }
}

impl Drop for PieceUnmapper {
    fn drop(&mut self) {
        self.publish();
    }
}

/// A part of a packet, mapped for the device.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// Where the device reads it.
    pub addr: DmaAddr<'a>,
    /// Bytes, never 0.
    pub len: u32,
}

/// The pieces of one packet, in order.
///
/// # Invariants
///
/// The `len` slots from `next` on, modulo `mask + 1`, hold mappings that live, and that nobody
/// writes to, for `'a`.
#[derive(Clone)]
pub struct Pieces<'a> {
    base: *const bindings::rc_helper_piece,
    mask: u32,
    next: u32,
    len: u32,
    _owner: PhantomData<&'a PieceMapper>,
}

impl<'a> Pieces<'a> {
    /// The one piece of a frame that its page pool keeps mapped.
    #[inline(always)]
    pub fn of_frame(frame: &'a PooledFrame) -> Self {
        // INVARIANT: The one slot is that of the frame, which is borrowed and so keeps its buffer, hence
        // its mapping.
        Self {
            base: &frame.piece,
            mask: 0,
            next: 0,
            len: 1,
            _owner: PhantomData,
        }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    #[inline]
    fn next(&mut self) -> Option<Piece<'a>> {
        self.len = self.len.checked_sub(1)?;
        // CAST: `usize` has 64 bits on every target.
        let slot = (self.next & self.mask) as usize;
        self.next = self.next.wrapping_add(1);
        // SAFETY: `slot` is inside of the ring, and nobody writes to it for `'a`, by the type
        // invariant.
        let piece = unsafe { self.base.add(slot).read() };
        Some(Piece {
            // SAFETY: By the type invariant the mapping lives for `'a`.
            addr: unsafe { DmaAddr::new(piece.addr) },
            len: piece.len,
        })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        // CAST: `usize` has 64 bits on every target.
        let len = self.len as usize;
        (len, Some(len))
    }
}

impl ExactSizeIterator for Pieces<'_> {}

impl FusedIterator for Pieces<'_> {}
