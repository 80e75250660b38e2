// SPDX-License-Identifier: GPL-2.0

//! Where the driver stands in a queue that the device fills, and whose the next
//! entry is.

use kernel::prelude::*;
use ring_core::{
    index::{
        Consumer,
        RingSize, //
    },
    owner::{
        Entry,
        Generation, //
    },
};

use super::OWNER_BITS;

/// Consumer of a queue whose entries carry the lap in which they were written.
///
/// Once an entry is of neither this lap nor the one before, entries were lost:
/// the queue is at an end until it is made anew.
pub(crate) struct Laps {
    next: Consumer,
    generation: Generation<OWNER_BITS>,
    state: State,
}

/// Whether the device has overrun the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Sound,
    /// It has, and nobody was told yet.
    Overrun,
    OverrunTold,
}

impl Laps {
    /// Starts one lap ahead of zeroed memory.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the length is no power of two.
    pub(crate) fn new(size: RingSize) -> Result<Self> {
        Ok(Self {
            next: Consumer::new(size, size.get()),
            generation: Generation::new(size).ok_or(EINVAL)?,
            state: State::Sound,
        })
    }

    /// Entries consumed, free-running from some number on.
    pub(crate) fn count(&self) -> u32 {
        self.next.next().count()
    }

    /// Slot of the next entry.
    pub(crate) fn slot(&self) -> u32 {
        self.next.next().slot()
    }

    /// Whether the next entry, which carries `owner`, is there to be read (after
    /// a read barrier).
    pub(crate) fn is_ready(&mut self, owner: u32) -> bool {
        match self.generation.classify(self.next.next(), owner) {
            Entry::New => self.state == State::Sound,
            Entry::Old => false,
            Entry::Overrun => {
                if self.state == State::Sound {
                    self.state = State::Overrun;
                }
                false
            }
        }
    }

    /// Whether the device has overrun the queue; true once.
    pub(crate) fn take_overrun(&mut self) -> bool {
        let fresh = self.state == State::Overrun;
        if fresh {
            self.state = State::OverrunTold;
        }
        fresh
    }

    /// Goes on to the next entry.
    pub(crate) fn advance(&mut self) {
        let produced = self.next.next().count().wrapping_add(1);
        if let Some(claim) = self.next.take(1, produced) {
            claim.commit();
        }
    }

    /// Entries consumed, as the doorbells want it: modulo 8 laps.
    pub(crate) fn head(&self) -> u32 {
        self.generation.slot_and_lap(self.next.next())
    }
}
