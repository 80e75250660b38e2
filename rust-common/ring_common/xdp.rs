// SPDX-License-Identifier: GPL-2.0

//! The XDP program of a port, and frames that others redirect to it.
//!
//! Attaching the first program and detaching the last one change the RX buffers, hence go through
//! [`reconfigure`](crate::reconfigure); one program takes the place of another while packets flow.

use core::{
    num::NonZeroU16,
    sync::atomic::{
        AtomicU16,
        Ordering, //
    },
};

use kernel::prelude::*;
use netdev::{
    cpu,
    device::Device,
    ethtool::ExtAck,
    lock::RtnlLock,
    page_pool::PagePool,
    xdp::{
        XdpBurst,
        XdpProg, //
    },
};
use ring_core::queue_map::{
    CpuEntry,
    QueueMap, //
};

use crate::{
    nic::{
        Config,
        Nic, //
    },
    port::Port,
};

/// The TX queue on which each possible CPU sends redirected frames.
///
/// It is read while it is filled anew. Whoever reads the number of a queue that is gone by then finds no producer
/// there.
pub(crate) struct CpuQueues(KVVec<AtomicU16>);

impl CpuQueues {
    /// A table with queue 0 for every CPU.
    pub(crate) fn new() -> Result<Self> {
        // CAST: `usize` has 64 bits on every target.
        let cpus = cpu::ids() as usize;
        let mut table = KVVec::with_capacity(cpus, GFP_KERNEL)?;
        for _ in 0..cpus {
            table.push(AtomicU16::new(0), GFP_KERNEL)?;
        }
        Ok(Self(table))
    }

    /// Queue of the CPU that this runs on, softirqs off.
    #[inline]
    fn current(&self) -> u16 {
        // CAST: `usize` has 64 bits on every target.
        let entry = self.0.get(cpu::current() as usize);
        entry.map_or(0, |queue| queue.load(Ordering::Relaxed))
    }
}

/// Entries with which [`CpuQueues`] is filled anew, without memory, when the queues change.
pub(crate) struct CpuMap(Option<QueueMap<KVVec<CpuEntry>>>);

impl CpuMap {
    /// A map for one queue.
    pub(crate) fn new() -> Result<Self> {
        // CAST: `usize` has 64 bits on every target.
        let cpus = cpu::ids() as usize;
        let mut entries = KVVec::with_capacity(cpus, GFP_KERNEL)?;
        for _ in 0..cpus {
            entries.push(CpuEntry::default(), GFP_KERNEL)?;
        }
        Ok(Self(QueueMap::new(entries, NonZeroU16::MIN, is_online)))
    }

    /// Spreads all CPUs that may ever be over `queues`; those that are online now take them in turn.
    pub(crate) fn rebuild(&mut self, queues: u32, table: &CpuQueues) {
        let queues = u16::try_from(queues).ok().and_then(NonZeroU16::new);
        let (Some(map), Some(queues)) = (&mut self.0, queues) else {
            return;
        };
        map.rebuild(queues, is_online);
        for (cpu, entry) in table.0.iter().enumerate() {
            entry.store(map.queue_of(cpu), Ordering::Relaxed);
        }
    }
}

fn is_online(cpu: usize) -> bool {
    u32::try_from(cpu).is_ok_and(cpu::is_online)
}

impl<N: Nic> Port<N> {
    /// Has `program` run on all packets, or none.
    ///
    /// # Errors
    ///
    /// With a program only, the reason in `extack`; the one before runs on.
    pub(crate) fn change_xdp(
        dev: &Device<Self>,
        program: Option<XdpProg>,
        extack: &mut ExtAck<'_>,
        lock: &RtnlLock<'_>,
    ) -> Result {
        let Some(program) = program else {
            Self::detach_xdp(dev, lock);
            return Ok(());
        };
        let max_mtu = dev.max_mtu().min(PagePool::MAX_XDP_MTU);
        if dev.mtu() > max_mtu {
            extack.set(fmt!(
                "an MTU of {} does not fit one buffer, set {} or less for XDP",
                dev.mtu(),
                max_mtu
            ));
            return Err(EOPNOTSUPP);
        }
        let config = Config {
            xdp: true,
            ..dev.config()
        };
        Self::reconfigure(dev, lock, config).inspect_err(|e| {
            // That there is no memory the error says by itself.
            if *e != ENOMEM {
                extack.set(fmt!("the device did not make the queues that XDP needs"));
            }
        })?;
        lock.set_max_mtu(max_mtu);
        // What ran before goes behind this.
        drop(dev.xdp().replace(lock, Some(program)));
        Ok(())
    }

    /// Has no program run any more. Must not fail, so that where there is no memory for other buffers, those
    /// in use stay until the queues are made anew.
    fn detach_xdp(dev: &Device<Self>, lock: &RtnlLock<'_>) {
        drop(dev.xdp().replace(lock, None));
        let config = Config {
            xdp: false,
            ..dev.config()
        };
        if let Err(e) = Self::reconfigure(dev, lock, config) {
            let mut state = dev.state().lock();
            if state.session().is_some() {
                netdev::netdev_warn!(
                    dev,
                    "RX buffers stay as XDP wants them ({:?}), until the link is set down and up\n",
                    e
                );
            }
            state.config.xdp = false;
        }
        lock.set_max_mtu(dev.max_mtu());
    }

    /// Sends redirected frames on the queue of this CPU.
    pub(crate) fn send_redirected(dev: &Device<Self>, burst: &mut XdpBurst<'_>) -> Result {
        dev.lock_tx(dev.cpu_queues().current(), |token| {
            let producer = dev.producers().get(token).ok_or(ENETDOWN)?;
            producer.send_burst(burst);
            Ok(())
        })?
    }
}
