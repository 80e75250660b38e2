// SPDX-License-Identifier: GPL-2.0

//! XDP: programs that see each received packet before there is an skb, and the frames that they send.
//!
//! | what | who has it |
//! |---|---|
//! | [`XdpProg`] | the port, through the [`XdpSlot`] that all of its RX queues read |
//! | [`PooledFrame`] | the port's own frame on its way back to the wire: a buffer of one of its page pools |
//! | [`XdpFrame`] | any frame, once its mapping is noted elsewhere: it came from another device, or is in flight |
//!
//! A NAPI poll is an RCU reader, so a program that is taken out of the slot goes away only behind the
//! polls that run it. The core sets up `bpf_net_context` around each poll.
//!
//! C header: [`include/net/xdp.h`](srctree/include/net/xdp.h).

use core::{
    marker::PhantomData,
    mem::{
        forget,
        ManuallyDrop,
        MaybeUninit, //
    },
    ptr::NonNull,
    sync::atomic::{
        AtomicPtr,
        Ordering, //
    },
};

use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};

use crate::{
    bindings,
    device::Device,
    lock::{
        DeviceRef,
        RtnlLock, //
    },
    napi::PollContext,
    page_pool::RxBuffer, //
};

/// An XDP program.
///
/// # Invariants
///
/// The program is valid, and one count of it belongs to this.
pub struct XdpProg(NonNull<bindings::bpf_prog>);

// SAFETY: A program belongs to no thread, and counts are atomic.
unsafe impl Send for XdpProg {}

// SAFETY: Nothing can be done through a shared reference.
unsafe impl Sync for XdpProg {}

impl XdpProg {
    /// Takes a count of a program, besides the caller's.
    ///
    /// # Safety
    ///
    /// `prog` is null or valid.
    pub(crate) unsafe fn get(prog: *mut bindings::bpf_prog) -> Option<Self> {
        let prog = NonNull::new(prog)?;
        // SAFETY: The program is valid by the safety requirement.
        unsafe { bindings::bpf_prog_inc(prog.as_ptr()) };
        // INVARIANT: The count was taken just now.
        Some(Self(prog))
    }

    fn into_raw(self) -> *mut bindings::bpf_prog {
        let prog = self.0.as_ptr();
        forget(self);
        prog
    }
}

impl Drop for XdpProg {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the count is given back here. The memory is freed behind a
        // grace period.
        unsafe { bindings::bpf_prog_put(self.0.as_ptr()) };
    }
}

/// Where the program of a port is published.
///
/// # Invariants
///
/// The pointer is null, or a program of which one count belongs to this.
pub struct XdpSlot(AtomicPtr<bindings::bpf_prog>);

impl XdpSlot {
    /// No program.
    pub const fn new() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }

    /// Publishes a program, or none, and returns the one before. Polls that run may still use that one.
    pub fn replace(&self, _lock: &RtnlLock<'_>, prog: Option<XdpProg>) -> Option<XdpProg> {
        let prog = prog.map_or(core::ptr::null_mut(), XdpProg::into_raw);
        // INVARIANT: The counts change hands.
        NonNull::new(self.0.swap(prog, Ordering::AcqRel)).map(XdpProg)
    }

    /// Whether there is a program.
    pub fn is_set(&self) -> bool {
        !self.0.load(Ordering::Relaxed).is_null()
    }

    fn as_raw(&self) -> *mut *mut bindings::bpf_prog {
        self.0.as_ptr()
    }

    /// Traces a frame that was to be sent back and could not be. Within a poll.
    #[cold]
    pub fn trace_tx_failure<T>(&self, dev: &Device<T>, _cx: &PollContext<'_>) {
        // SAFETY: The device is valid, and the slot is borrowed; this is within a poll, hence an RCU
        // reader.
        unsafe { bindings::rc_helper_xdp_tx_failed(dev.as_ptr(), self.as_raw()) };
    }
}

impl Default for XdpSlot {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for XdpSlot {
    fn drop(&mut self) {
        // By the type invariant the count ends here.
        drop(NonNull::new(*self.0.get_mut()).map(XdpProg));
    }
}

/// An RX queue as programs see it.
///
/// # Invariants
///
/// `raw` is registered, with a page pool.
pub(crate) struct RxqInfo {
    raw: KBox<Opaque<bindings::xdp_rxq_info>>,
}

// SAFETY: It is only read after it was made.
unsafe impl Send for RxqInfo {}

// SAFETY: As above.
unsafe impl Sync for RxqInfo {}

impl RxqInfo {
    /// Makes `pool` known as that of RX queue `queue`. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there is no memory.
    ///
    /// # Safety
    ///
    /// `pool` is valid. The result is dropped while the pool's NAPI is disabled, and before `dev` may
    /// be gone.
    pub(crate) unsafe fn new(
        dev: &DeviceRef,
        queue: u16,
        pool: NonNull<bindings::page_pool>,
    ) -> Result<Self> {
        // SAFETY: Zeroes are a valid value of the C type.
        let zeroed: bindings::xdp_rxq_info = unsafe { core::mem::zeroed() };
        let raw = KBox::new(Opaque::new(zeroed), GFP_KERNEL)?;
        // SAFETY: The memory is zeroed and stays where it is; the device and the pool are valid.
        to_result(unsafe {
            bindings::rc_helper_xdp_rxq_register(
                raw.get(),
                dev.as_ptr(),
                queue.into(),
                pool.as_ptr(),
            )
        })?;
        // INVARIANT: As just done.
        Ok(Self { raw })
    }

    pub(crate) fn as_ptr(&self) -> *mut bindings::xdp_rxq_info {
        self.raw.get()
    }
}

impl Drop for RxqInfo {
    fn drop(&mut self) {
        // SAFETY: By the type invariant it is registered. This gives back its use of the pool, whose
        // NAPI is disabled, as the safety requirements of `new` say.
        unsafe { bindings::xdp_rxq_info_unreg(self.raw.get()) };
    }
}

/// What a program has made of a received packet.
pub enum Verdict {
    /// The stack has the packet.
    Pass,
    /// The stack was to have it, but there was no memory for its metadata.
    NoMemory,
    /// Another device, CPU or socket has it. [`flush_redirects`] is due at the end of the poll.
    Redirect,
    /// It is to be sent back.
    Tx(PooledFrame),
    /// It is dropped.
    Drop(RxBuffer),
    /// It is dropped for a fault: the program's own, or its target's. The tracepoint has told.
    Aborted(RxBuffer),
}

/// What an RX queue runs, for one call.
pub(crate) struct Run<'a> {
    pub(crate) slot: &'a XdpSlot,
    pub(crate) rxq: &'a RxqInfo,
    pub(crate) napi: *mut bindings::napi_struct,
    pub(crate) info: bindings::rc_helper_rx_info,
}

impl Run<'_> {
    /// Runs the program on the packet in `buffer`.
    ///
    /// # Safety
    ///
    /// - This is within a poll of `napi` with a budget.
    /// - Headroom and length in `info` lie within the buffer, the latter is at least an Ethernet header.
    #[inline]
    pub(crate) unsafe fn on(self, buffer: RxBuffer) -> Verdict {
        let xdp_rx = bindings::rc_helper_xdp_rx {
            slot: self.slot.as_raw(),
            rxq: self.rxq.as_ptr(),
            capacity: buffer.capacity(),
        };
        let buffer = ManuallyDrop::new(buffer);
        let mut frame = MaybeUninit::<bindings::rc_helper_xdp_frame>::uninit();
        // SAFETY:
        // - By the safety requirements this is within a poll, and the numbers are right.
        // - The buffer is owned; it is given up unless the answer says otherwise.
        // - Slot and queue are borrowed.
        let verdict = unsafe {
            bindings::rc_helper_rx_run_xdp(
                self.napi,
                &buffer.as_raw(),
                &self.info,
                &xdp_rx,
                frame.as_mut_ptr(),
            )
        };
        match verdict {
            bindings::RC_HELPER_XDP_PASS => Verdict::Pass,
            bindings::RC_HELPER_XDP_NOMEM => Verdict::NoMemory,
            bindings::RC_HELPER_XDP_REDIRECT => Verdict::Redirect,
            bindings::RC_HELPER_XDP_TX => {
                // SAFETY: The helper has filled it in.
                let bindings::rc_helper_xdp_frame { frame, piece } = unsafe { frame.assume_init() };
                Verdict::Tx(PooledFrame {
                    // INVARIANT: The frame is the buffer, which was owned; its pool keeps it mapped at
                    // the piece.
                    // SAFETY: The helper returns this for a frame only.
                    frame: XdpFrame(unsafe { NonNull::new_unchecked(frame) }),
                    piece,
                    vlan: (u32::from(self.info.flags) & bindings::RC_HELPER_RX_VLAN != 0)
                        .then_some(self.info.vlan_tci),
                })
            }
            bindings::RC_HELPER_XDP_DROP => Verdict::Drop(ManuallyDrop::into_inner(buffer)),
            _ => Verdict::Aborted(ManuallyDrop::into_inner(buffer)),
        }
    }
}

/// Sends on what the polls' programs have redirected. Within the poll that has seen [`Verdict::Redirect`], once,
/// at its end.
pub fn flush_redirects(_cx: &PollContext<'_>) {
    // SAFETY: This is within a poll, in which the core has set up what this flushes.
    unsafe { bindings::xdp_do_flush() };
}

/// A frame of whatever origin.
///
/// Dropping it gives it back to where its memory came from. Context: any but hard interrupt.
///
/// # Invariants
///
/// The frame is valid and owned.
pub struct XdpFrame(NonNull<bindings::xdp_frame>);

// SAFETY: A frame belongs to no thread.
unsafe impl Send for XdpFrame {}

impl XdpFrame {
    /// Bytes of the frame, those of an Ethernet header at least.
    #[expect(clippy::len_without_is_empty, reason = "of a frame")]
    #[inline(always)]
    pub fn len(&self) -> u32 {
        // SAFETY: The frame is valid, and its owner alone changes it.
        unsafe { (*self.as_ptr()).len }
    }

    #[inline(always)]
    pub(crate) fn as_ptr(&self) -> *mut bindings::xdp_frame {
        self.0.as_ptr()
    }

    #[inline(always)]
    fn into_raw(self) -> *mut bindings::xdp_frame {
        let frame = self.as_ptr();
        forget(self);
        frame
    }
}

impl Drop for XdpFrame {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the frame is owned, and given back here.
        unsafe { bindings::xdp_return_frame(self.as_ptr()) };
    }
}

/// A frame in a buffer of one of the device's own page pools, which is mapped and synchronised already.
///
/// # Invariants
///
/// The pool of `frame` keeps it mapped at `piece`, for reading, too, for as long as it is owned.
pub struct PooledFrame {
    frame: XdpFrame,
    pub(crate) piece: bindings::rc_helper_piece,
    vlan: Option<u16>,
}

impl PooledFrame {
    /// Bytes of the frame.
    #[expect(clippy::len_without_is_empty, reason = "of a frame")]
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.piece.len
    }

    /// The tag control information that the device took out of it on receive.
    pub fn vlan(&self) -> Option<u16> {
        self.vlan
    }

    /// The frame, whose mapping is its pool's business.
    #[inline(always)]
    pub fn into_frame(self) -> XdpFrame {
        self.frame
    }
}

/// Frames that the core hands to [`Operations::xdp_xmit`](crate::device::Operations::xdp_xmit), in order.
///
/// # Invariants
///
/// - `frames` has `len` valid frames.
/// - The first `taken` of them belong to others by now, the rest to this for `'a`.
pub struct XdpBurst<'a> {
    frames: *const *mut bindings::xdp_frame,
    len: usize,
    taken: usize,
    flush: bool,
    _frames: PhantomData<&'a mut ()>,
}

impl XdpBurst<'_> {
    /// Wraps what the core hands over.
    ///
    /// # Safety
    ///
    /// For as long as the result lives, `frames` points to `len` frames, which the caller gives up as
    /// far as [`taken`](Self::taken) says afterwards.
    pub(crate) unsafe fn new(
        frames: *const *mut bindings::xdp_frame,
        len: usize,
        flush: bool,
    ) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            frames,
            len,
            taken: 0,
            flush,
            _frames: PhantomData,
        }
    }

    /// The next frame.
    #[inline]
    pub fn take(&mut self) -> Option<XdpFrame> {
        if self.taken >= self.len {
            return None;
        }
        // SAFETY: By the type invariants there is a valid frame at this place.
        let frame = unsafe { self.frames.add(self.taken).read() };
        // INVARIANT: It belongs to the caller now.
        self.taken = self.taken.wrapping_add(1);
        Some(XdpFrame(NonNull::new(frame)?))
    }

    /// Gives the frame that was taken last back to the core. Another one is freed.
    pub fn give_back(&mut self, frame: XdpFrame) {
        let Some(last) = self.taken.checked_sub(1) else {
            return;
        };
        // SAFETY: By the type invariants there is a frame at this place.
        if unsafe { self.frames.add(last).read() } == frame.as_ptr() {
            // INVARIANT: It belongs to this again.
            forget(frame);
            self.taken = last;
        }
    }

    /// Number of frames that were not taken.
    pub fn left(&self) -> usize {
        self.len.wrapping_sub(self.taken)
    }

    /// Number of frames that were taken.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Whether the device has to be told of all frames now: no other burst follows at once.
    pub fn flush(&self) -> bool {
        self.flush
    }
}

/// Sent frames on their way back, collected so that each memory is asked once.
///
/// # Invariants
///
/// - The first `count` entries are frames that were given up; `count` is initialised.
/// - This is within a poll, for `'a`.
pub struct FrameBulk<'a> {
    raw: MaybeUninit<bindings::xdp_frame_bulk>,
    _poll: PhantomData<&'a ()>,
}

impl<'a> FrameBulk<'a> {
    /// An empty collection.
    #[inline(always)]
    pub fn new(_cx: &'a PollContext<'_>) -> Self {
        let mut raw = MaybeUninit::<bindings::xdp_frame_bulk>::uninit();
        // SAFETY: The field lies within the memory.
        unsafe { (&raw mut (*raw.as_mut_ptr()).count).write(0) };
        // INVARIANT: It is empty; the poll is borrowed.
        Self {
            raw,
            _poll: PhantomData,
        }
    }

    /// Adds a frame.
    #[inline]
    pub(crate) fn add(&mut self, frame: XdpFrame) {
        // SAFETY: The frame is given up. A poll is an RCU reader. The collection is initialised as far
        // as its count says.
        unsafe { bindings::xdp_return_frame_bulk(frame.into_raw(), self.raw.as_mut_ptr()) };
    }
}

impl Drop for FrameBulk<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let raw = self.raw.as_mut_ptr();
        // SAFETY: The count is initialised by the type invariants.
        if unsafe { (*raw).count } != 0 {
            // SAFETY: As in `add`.
            unsafe { bindings::rc_helper_xdp_return_bulk(raw) };
        }
    }
}
