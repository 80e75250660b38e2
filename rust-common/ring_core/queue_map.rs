// SPDX-License-Identifier: GPL-2.0

//! Which queue a CPU sends on, and which CPU serves a queue.
//!
//! A CPU number is no queue number: CPUs are offline, possible but absent, or
//! more than there are queues. The table covers all possible CPUs, so that a
//! look-up is right for any of them at any time, and is rebuilt when CPUs come
//! and go or the number of queues changes.

use core::num::NonZeroU16;
use core::ops::{
    Deref,
    DerefMut, //
};

/// The entry of one possible CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuEntry {
    queue: u16,
    /// Number of online CPUs below this one, if it is online itself.
    rank: Option<u16>,
}

/// A table from CPU to queue over storage `S`, one entry per possible CPU
/// (`KVec<CpuEntry>` in the kernel).
///
/// Online CPUs take the queues in turn. With fewer queues than CPUs some queues
/// are shared; with more, the queues left over are served by the CPUs in turn,
/// though no CPU sends on them by itself. An offline CPU keeps a valid queue:
/// it may be sending while it goes.
///
/// Locking: the caller's, around [`QueueMap::rebuild`] against look-ups (the
/// CPU hotplug lock, or a new table published under RCU).
///
/// ```
/// use core::num::NonZeroU16;
/// use ring_core::queue_map::{CpuEntry, QueueMap};
///
/// // CPUs 0, 2 and 3 of four are online; there are two queues.
/// let online = |cpu: usize| cpu != 1;
/// let two = NonZeroU16::new(2).unwrap();
/// let map = QueueMap::new(vec![CpuEntry::default(); 4], two, online).unwrap();
/// assert_eq!([0, 2, 3].map(|cpu| map.queue_of(cpu)), [0, 1, 0]);
/// assert!(map.is_shared(0) && !map.is_shared(1));
/// assert!(map.serves(2, 1) && !map.serves(1, 1));
/// ```
#[derive(Debug)]
pub struct QueueMap<S> {
    entries: S,
    queues: NonZeroU16,
    online: u16,
}

impl<S: Deref<Target = [CpuEntry]>> QueueMap<S> {
    /// The queue that `cpu` sends on, always below the number of queues; queue
    /// 0 for a CPU that is not possible.
    #[inline]
    pub fn queue_of(&self, cpu: usize) -> u16 {
        self.entries.get(cpu).map_or(0, |entry| entry.queue)
    }

    /// Whether two or more online CPUs send on `queue`, which then needs the
    /// queue's lock even from per-CPU contexts (XDP).
    #[inline]
    pub fn is_shared(&self, queue: u16) -> bool {
        // The CPU of rank `queue` is its first user, that of rank
        // `queue + queues` its second.
        queue < self.queues.get() && queue.saturating_add(self.queues.get()) < self.online
    }

    /// Whether `cpu` is online and handles `queue`: sends on it, or serves it
    /// because no CPU sends on it. Each queue has such a CPU while any CPU is
    /// online, so this is the mask for XPS, affinity and mvneta's CPU_MAP.
    pub fn serves(&self, cpu: usize, queue: u16) -> bool {
        let Some(entry) = self.entries.get(cpu) else {
            return false;
        };
        let Some(rank) = entry.rank else {
            return false;
        };
        if queue >= self.queues.get() {
            return false;
        }
        // A queue below the number of online CPUs has its sender by this, too.
        entry.queue == queue || queue.checked_rem(self.online) == Some(rank)
    }
}

impl<S: DerefMut<Target = [CpuEntry]>> QueueMap<S> {
    /// A table for the possible CPUs `0..entries.len()`, of which `online`
    /// names those that are online. `None` for no CPU or more than `u16::MAX`.
    pub fn new(entries: S, queues: NonZeroU16, online: impl Fn(usize) -> bool) -> Option<Self> {
        if entries.is_empty() || entries.len() > usize::from(u16::MAX) {
            return None;
        }
        let mut map = Self {
            entries,
            queues,
            online: 0,
        };
        map.rebuild(queues, online);
        Some(map)
    }

    /// Fills the table anew after CPUs or the number of queues changed. Needs
    /// no memory and cannot fail, as hotplug callbacks want it.
    pub fn rebuild(&mut self, queues: NonZeroU16, online: impl Fn(usize) -> bool) {
        let mut rank: u16 = 0;
        for (cpu, entry) in self.entries.iter_mut().enumerate() {
            // An offline CPU shares the queue of the next one online.
            entry.queue = rank.checked_rem(queues.get()).unwrap_or(0);
            entry.rank = None;
            if online(cpu) {
                entry.rank = Some(rank);
                rank = rank.wrapping_add(1);
            }
        }
        self.queues = queues;
        self.online = rank;
    }
}
