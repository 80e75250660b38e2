// SPDX-License-Identifier: GPL-2.0

//! When to tell the device about new descriptors.
//!
//! A doorbell costs an uncached write, so it is shared by as many descriptors
//! as possible, but none may wait for a packet that never comes. Both doorbells
//! count what the device has not been told: devices whose doorbell is a count
//! (liquidio, hns3, mvneta) are given that number, those whose doorbell is an
//! index (MANA, mlx5) take the ring's producer and need only the moment.

/// What the core answered after a packet was queued. Both must be asked for,
/// in this order, once the descriptors are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentQueue {
    /// `__netdev_tx_sent_queue(txq, bytes, xmit_more)` returned true.
    pub kick: bool,
    /// The queue is stopped after `netif_txq_maybe_stop()`.
    pub stopped: bool,
}

/// Proof that nothing queued before this exit of xmit is left unannounced.
#[derive(Debug)]
#[must_use = "each exit of xmit returns what became of the doorbell"]
pub struct Rung(());

/// Proof that the core promised another packet, whose exit will ring.
///
/// Only [`TxDoorbell::sent`] makes it.
#[derive(Debug)]
#[must_use = "each exit of xmit returns what became of the doorbell"]
pub struct Deferred(());

/// The outcome of [`TxDoorbell::sent`].
#[derive(Debug)]
#[must_use = "the doorbell may have to be rung"]
pub enum Decision<'a> {
    /// Ring now.
    Ring(MustRing<'a>),
    /// Leave it to the next packet of the burst.
    Defer(Deferred),
}

/// A doorbell that has to be rung before xmit returns.
#[derive(Debug)]
#[must_use = "the device does not know of the descriptors yet"]
pub struct MustRing<'a>(&'a mut TxDoorbell);

impl MustRing<'_> {
    /// Calls `write` with the number of descriptors to announce, unless there
    /// is none, and marks them as announced.
    #[inline]
    pub fn ring(self, write: impl FnOnce(u32)) -> Rung {
        self.0.pending.announce(write);
        Rung(())
    }
}

/// The doorbell of a TX ring. Context: xmit, under the queue's lock.
///
/// ```
/// use ring_core::doorbell::{Decision, SentQueue, TxDoorbell};
///
/// let mut doorbell = TxDoorbell::new(255);
/// let more = SentQueue { kick: false, stopped: false };
/// assert!(matches!(doorbell.sent(2, more), Decision::Defer(_)));
///
/// // The next packet cannot be mapped and is dropped: the first one must go.
/// let mut told = 0;
/// let _rung = doorbell.dropped().ring(|n| told = n);
/// assert_eq!((told, doorbell.rings()), (2, 1));
/// ```
#[derive(Debug)]
pub struct TxDoorbell {
    pending: Pending,
    limit: u32,
}

impl TxDoorbell {
    /// A doorbell that waits for no more than `limit` descriptors: what one
    /// write can announce (255 for mvneta) or the driver's choice (liquidio's
    /// fill count); the ring's length where there is no such bound.
    pub const fn new(limit: u32) -> Self {
        Self {
            pending: Pending::new(),
            limit,
        }
    }

    /// A packet of `n` descriptors was queued and `answer` came from the core.
    #[inline]
    pub fn sent(&mut self, n: u32, answer: SentQueue) -> Decision<'_> {
        self.pending.add(n);
        if answer.kick || answer.stopped || self.pending.descriptors >= self.limit {
            Decision::Ring(MustRing(self))
        } else {
            Decision::Defer(Deferred(()))
        }
    }

    /// `n` descriptors were queued that the core does not account (XDP), in a burst whose end rings: by
    /// [`dropped`](Self::dropped). True if that is due now, since one write cannot announce more.
    #[must_use = "the device may be told of no more at once"]
    #[inline]
    pub fn queued(&mut self, n: u32) -> bool {
        self.pending.add(n);
        self.pending.descriptors >= self.limit
    }

    /// A packet was dropped. Whatever `xmit_more` says, packets deferred before
    /// it are announced: it may have been the last of its burst. Or a burst of frames has ended.
    #[inline]
    pub fn dropped(&mut self) -> MustRing<'_> {
        MustRing(self)
    }

    /// Descriptors that the device does not know of.
    #[inline]
    pub const fn unannounced(&self) -> u32 {
        self.pending.descriptors
    }

    /// Doorbell writes so far; wraps.
    pub const fn rings(&self) -> u64 {
        self.pending.rings
    }
}

/// The doorbell of an RX ring. Context: the ring's NAPI, or its setup.
///
/// One poll rings once, at its end, with a bound on the buffers withheld from
/// the device meanwhile, so that a long poll does not starve it.
///
/// ```
/// use ring_core::doorbell::RxDoorbell;
///
/// let mut doorbell = RxDoorbell::new(512);
/// let mut posted_in_all = 0;
/// for _ in 0..100 {
///     if doorbell.posted(1) {
///         doorbell.flush(|n| posted_in_all += n);
///     }
/// }
/// doorbell.flush(|n| posted_in_all += n);
/// assert_eq!((posted_in_all, doorbell.rings()), (100, 2));
/// ```
#[derive(Debug)]
pub struct RxDoorbell {
    pending: Pending,
    bound: u32,
}

impl RxDoorbell {
    /// Buffers withheld at most, however long the ring.
    pub const MAX_BOUND: u32 = 64;

    /// A doorbell for a ring of `len` buffers: rings at a quarter of them, at
    /// 64 at most.
    pub const fn new(len: u32) -> Self {
        let quarter = len / 4;
        Self {
            pending: Pending::new(),
            bound: if quarter < Self::MAX_BOUND {
                quarter
            } else {
                Self::MAX_BOUND
            },
        }
    }

    /// `n` buffers were posted; true if the caller has to
    /// [`flush`](Self::flush) before it posts more.
    #[must_use = "the device may be short of buffers"]
    #[inline]
    pub fn posted(&mut self, n: u32) -> bool {
        self.pending.add(n);
        self.pending.descriptors >= self.bound
    }

    /// Calls `write` with the number of buffers to announce, unless there is
    /// none. Due at each exit of a poll, failures included.
    #[inline]
    pub fn flush(&mut self, write: impl FnOnce(u32)) {
        self.pending.announce(write);
    }

    /// Buffers that the device does not know of.
    #[inline]
    pub const fn unannounced(&self) -> u32 {
        self.pending.descriptors
    }

    /// Doorbell writes so far; wraps.
    pub const fn rings(&self) -> u64 {
        self.pending.rings
    }
}

#[derive(Debug)]
struct Pending {
    descriptors: u32,
    rings: u64,
}

impl Pending {
    const fn new() -> Self {
        Self {
            descriptors: 0,
            rings: 0,
        }
    }

    #[inline]
    fn add(&mut self, n: u32) {
        self.descriptors = self.descriptors.saturating_add(n);
    }

    #[inline]
    fn announce(&mut self, write: impl FnOnce(u32)) {
        if self.descriptors == 0 {
            return;
        }
        write(self.descriptors);
        self.descriptors = 0;
        self.rings = self.rings.wrapping_add(1);
    }
}
