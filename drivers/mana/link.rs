// SPDX-License-Identifier: GPL-2.0

//! What the device reports for all ports at once: the link, and that it is in
//! trouble.

use core::sync::atomic::{
    AtomicBool,
    AtomicU32,
    Ordering, //
};

use kernel::{
    prelude::*,
    sync::{
        static_lock_class,
        Arc, //
    }, //
};
use netdev::work::{
    Again,
    Run,
    Work, //
};

use crate::machine::Machine;

/// Why the adapter has to be started anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// A command got no answer, or the device keeps what it must give back.
    GivenUp,
    /// The device is about to reset itself.
    ResetRequest,
}

/// State of the link, and the work that follows what the device tells.
pub(crate) struct Link {
    up: AtomicBool,
    /// A [`Trouble`], else `NONE`.
    trouble: AtomicU32,
    watch: Work<Watch>,
}

const NONE: u32 = 0;
const GIVEN_UP: u32 = 1;
const RESET_REQUEST: u32 = 2;

/// Tells the network stack of the link, and ends trouble.
struct Watch(Arc<Machine>);

impl Run for Watch {
    fn run(&mut self) -> Again {
        self.0.watch()
    }
}

impl Link {
    /// A link that is up, as the device starts, of the ports of `machine`.
    pub(crate) fn new(machine: Arc<Machine>) -> Result<Self> {
        Ok(Self {
            up: AtomicBool::new(true),
            trouble: AtomicU32::new(NONE),
            watch: Work::new(Watch(machine), static_lock_class!())?,
        })
    }

    /// Whether the link is up, as the device last told.
    pub(crate) fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed) && self.trouble.load(Ordering::Relaxed) == NONE
    }

    /// The device tells of a change. Any context.
    pub(crate) fn changed(&self, up: bool) {
        self.up.store(up, Ordering::Relaxed);
        self.watch.schedule();
    }

    /// The adapter is of no use any more: the link is down until there is a new
    /// one. Any context.
    pub(crate) fn lose(&self, trouble: Trouble) {
        let trouble = match trouble {
            Trouble::GivenUp => GIVEN_UP,
            Trouble::ResetRequest => RESET_REQUEST,
        };
        self.trouble.store(trouble, Ordering::Relaxed);
        self.watch.schedule();
    }

    /// The trouble that there is.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        match self.trouble.load(Ordering::Relaxed) {
            NONE => None,
            RESET_REQUEST => Some(Trouble::ResetRequest),
            _ => Some(Trouble::GivenUp),
        }
    }

    /// A new adapter starts: the link is up, and there is no trouble.
    pub(crate) fn renew(&self) {
        self.up.store(true, Ordering::Relaxed);
        self.trouble.store(NONE, Ordering::Relaxed);
    }

    /// Has the watch look. Any context.
    pub(crate) fn look(&self) {
        self.watch.schedule();
    }
}
