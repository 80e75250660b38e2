// SPDX-License-Identifier: GPL-2.0

//! The link, which the device reports for all ports at once.

use core::sync::atomic::{
    AtomicBool,
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

use crate::ports::Ports;

/// State of the link, and the work that passes changes on.
pub(crate) struct Link {
    up: AtomicBool,
    lost: AtomicBool,
    watch: Work<Watch>,
}

/// Tells the network stack.
struct Watch(Arc<Ports>);

impl Run for Watch {
    fn run(&mut self) -> Again {
        self.0.link_changed();
        Again::No
    }
}

impl Link {
    /// A link that is up, as the device starts, of `ports`.
    pub(crate) fn new(ports: Arc<Ports>) -> Result<Self> {
        Ok(Self {
            up: AtomicBool::new(true),
            lost: AtomicBool::new(false),
            watch: Work::new(Watch(ports), static_lock_class!())?,
        })
    }

    /// Whether the link is up, as the device last told.
    pub(crate) fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed) && !self.lost.load(Ordering::Relaxed)
    }

    /// The device was given up: the link is down for good. Any context.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
        self.watch.schedule();
    }

    /// The device tells of a change. Any context.
    pub(crate) fn changed(&self, up: bool) {
        self.up.store(up, Ordering::Relaxed);
        self.watch.schedule();
    }
}
