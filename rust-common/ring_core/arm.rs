// SPDX-License-Identifier: GPL-2.0

//! How long a device can go without hearing of what was consumed.

use crate::index::RingSize;

/// Completions consumed since the device last heard of the consumer index.
///
/// A device that tells laps apart by a few bits must hear of it once per
/// `LAPS` laps, armed or not (MANA: 8). Ring as soon as half of `LAPS` is used up:
/// the other half is left for the next poll, which takes a lap at most.
///
/// ```
/// use ring_core::arm::LapBudget;
/// use ring_core::index::RingSize;
///
/// let mut laps = LapBudget::<8>::new(RingSize::new(64).unwrap()).unwrap();
/// assert!(!laps.consumed(255));
/// assert!(laps.consumed(1));
/// laps.rung();
/// assert!(!laps.consumed(255));
/// ```
#[derive(Debug)]
pub struct LapBudget<const LAPS: u32> {
    half: u32,
    since_ring: u32,
}

impl<const LAPS: u32> LapBudget<LAPS> {
    /// `None` if `LAPS` is below 2 or that many laps exceed a 32-bit count.
    pub const fn new(size: RingSize) -> Option<Self> {
        if LAPS < 2 || size.get().checked_mul(LAPS).is_none() {
            return None;
        }
        Some(Self {
            half: size.get().wrapping_mul(LAPS / 2),
            since_ring: 0,
        })
    }

    /// A poll consumed `n` completions; true if the doorbell is due although
    /// the ring is not armed.
    #[must_use = "the device stops, or overwrites completions, when it is not told"]
    #[inline]
    pub fn consumed(&mut self, n: u32) -> bool {
        self.since_ring = self.since_ring.saturating_add(n);
        self.since_ring >= self.half
    }

    /// The consumer index was written, armed or not.
    #[inline]
    pub fn rung(&mut self) {
        self.since_ring = 0;
    }
}
