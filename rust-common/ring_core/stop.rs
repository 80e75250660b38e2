// SPDX-License-Identifier: GPL-2.0

//! Ring lengths a device accepts, and when a TX queue stops and wakes.

use crate::index::RingSize;

/// Thresholds for `netif_txq_maybe_stop()` and `netif_txq_completed_wake()`,
/// in ring slots.
///
/// ```
/// use ring_core::index::RingSize;
/// use ring_core::stop::StopWake;
///
/// const MAX_SKB_FRAGS: u32 = 17;
/// let worst = StopWake::worst_packet(MAX_SKB_FRAGS, 0);
/// let stop = StopWake::new(RingSize::new(256).unwrap(), worst).unwrap();
/// assert_eq!((stop.stop(), stop.wake()), (18, 36));
/// assert!(!stop.must_stop(18) && stop.must_stop(17));
///
/// // The smallest ring holds one packet more than nothing.
/// assert!(StopWake::new(RingSize::new(19).unwrap(), worst).is_some());
/// assert!(StopWake::new(RingSize::new(18).unwrap(), worst).is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopWake {
    stop: u32,
    wake: u32,
}

impl StopWake {
    /// Slots of the largest packet where each piece takes one: head, fragments
    /// and `extra` (context descriptors, padding, a slot that the device wants
    /// kept empty). `max_frags` is the kernel's MAX_SKB_FRAGS, which its
    /// configuration sets.
    pub const fn worst_packet(max_frags: u32, extra: u32) -> u32 {
        max_frags.saturating_add(1).saturating_add(extra)
    }

    /// Thresholds for packets of up to `worst` slots: stop below one packet,
    /// wake at two.
    ///
    /// In a small ring waking waits for all slots but one, which a device may
    /// want kept empty. `None` if `worst` is 0 or the ring is
    /// shorter than `worst + 1`, the MAX_SKB_FRAGS + 2 of the smallest ring.
    pub const fn new(size: RingSize, worst: u32) -> Option<Self> {
        let most = size.get().wrapping_sub(1);
        if worst == 0 || worst > most {
            return None;
        }
        let twice = worst.saturating_mul(2);
        Some(Self {
            stop: worst,
            wake: if twice < most { twice } else { most },
        })
    }

    /// Free slots with which the queue is still left running.
    #[inline]
    pub const fn stop(self) -> u32 {
        self.stop
    }

    /// Free slots from which a stopped queue runs again.
    #[inline]
    pub const fn wake(self) -> u32 {
        self.wake
    }

    /// Free slots that whoever shares a ring of `size` slots with the stack finds before its next packet of up
    /// to `worst` slots: behind that there still are as many as a stopped queue waits for, so that the stack
    /// gets its turn however much others send. In a small ring others wait until it is empty.
    #[inline]
    pub const fn sharing(self, size: RingSize, worst: u32) -> u32 {
        let room = self.wake.saturating_add(worst);
        if room < size.get() {
            room
        } else {
            size.get()
        }
    }

    /// Whether the next packet might not fit.
    #[inline]
    pub const fn must_stop(self, free: u32) -> bool {
        free < self.stop
    }

    /// Whether a stopped queue may run again.
    #[inline]
    pub const fn may_wake(self, free: u32) -> bool {
        free >= self.wake
    }
}

/// Which lengths lie between the smallest and the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Powers of two (MANA, mlx5).
    PowerOfTwo,
    /// Multiples of this number (hns3: 8; 1 for any length).
    Multiple(u32),
}

/// The nearest lengths that the device accepts, for the message to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbours {
    /// The largest valid length below the one asked for.
    pub lower: Option<u32>,
    /// The smallest valid length above the one asked for.
    pub upper: Option<u32>,
}

/// What a device accepts as the length of a ring, in the unit that the user
/// sees in `ethtool -g`.
///
/// ```
/// use ring_core::stop::{Limits, Neighbours, Step};
///
/// let tx = Limits::new(128, 256, 16384, Step::PowerOfTwo).unwrap();
/// assert_eq!(tx.check(512), Ok(512));
/// let refused = tx.check(600).unwrap_err();
/// assert_eq!(refused, Neighbours { lower: Some(512), upper: Some(1024) });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    min: u32,
    default: u32,
    max: u32,
    step: Step,
}

impl Limits {
    /// `None` unless `1 <= min <= default <= max` and all three are on `step`.
    pub const fn new(min: u32, default: u32, max: u32, step: Step) -> Option<Self> {
        let limits = Self {
            min,
            default,
            max,
            step,
        };
        let ordered = 1 <= min && min <= default && default <= max;
        if ordered && limits.on_step(min) && limits.on_step(default) && limits.on_step(max) {
            Some(limits)
        } else {
            None
        }
    }

    /// The smallest length.
    pub const fn min(self) -> u32 {
        self.min
    }

    /// The length until a user sets one.
    pub const fn default(self) -> u32 {
        self.default
    }

    /// The largest length.
    pub const fn max(self) -> u32 {
        self.max
    }

    /// Returns `len` if the device accepts it; it is never rounded.
    ///
    /// # Errors
    ///
    /// The valid neighbours of `len`, to go with `-EINVAL`.
    pub const fn check(self, len: u32) -> Result<u32, Neighbours> {
        if self.min <= len && len <= self.max && self.on_step(len) {
            return Ok(len);
        }
        Err(Neighbours {
            lower: self.below(len),
            upper: self.above(len),
        })
    }

    const fn on_step(self, len: u32) -> bool {
        match self.step {
            Step::PowerOfTwo => len.is_power_of_two(),
            Step::Multiple(n) => matches!(len.checked_rem(n), Some(0)),
        }
    }

    // Both neighbours are asked for lengths that are off range or off step.

    const fn below(self, len: u32) -> Option<u32> {
        if len < self.min {
            return None;
        }
        if len > self.max {
            return Some(self.max);
        }
        match self.step {
            Step::PowerOfTwo => match len.checked_ilog2() {
                Some(log2) => Some(1u32.wrapping_shl(log2)),
                None => None,
            },
            Step::Multiple(n) => match len.checked_rem(n) {
                Some(over) => Some(len.wrapping_sub(over)),
                None => None,
            },
        }
    }

    const fn above(self, len: u32) -> Option<u32> {
        if len > self.max {
            return None;
        }
        if len < self.min {
            return Some(self.min);
        }
        match self.step {
            Step::PowerOfTwo => len.checked_next_power_of_two(),
            Step::Multiple(n) => match len.checked_rem(n) {
                // The next multiple is at most `max`, which is one too.
                Some(over) => Some(len.wrapping_sub(over).wrapping_add(n)),
                None => None,
            },
        }
    }
}
