// SPDX-License-Identifier: GPL-2.0

//! The one way from settings to queues, and from some settings to others.
//!
//! Up, down, reset, and whatever needs other queues than those in use (`-G`, `-L`, MTU) go through here:
//!
//! | step | may fail | and then |
//! |---|---|---|
//! | *prepare*: all memory that the new queues take | yes | nothing has changed |
//! | *detach*: packets stop, the queues in use go | no | |
//! | *program*: the device makes the new queues | yes | the former ones are prepared and programmed |
//! | *commit*: the settings are what is active, packets flow | no | |
//!
//! Devices that can hold one set of queues only are why the old ones go first. Where those cannot be had
//! again either, the port is left without queues and without carrier, the error is returned, and the
//! port tries again by itself, as after a reset that failed.
//!
//! Context: process, under rtnl and the instance lock.

use core::sync::atomic::Ordering;

use kernel::{
    prelude::*,
    sync::rcu,
    time::{
        delay::fsleep,
        Delta, //
    },
    types::ScopeGuard, //
};
use netdev::{
    device::Device,
    lock::{
        OpsLock,
        RtnlLock, //
    }, //
};

use crate::{
    channel::{
        Channel,
        Prepared, //
    },
    nic::{
        Config,
        Nic,
        TxSend, //
    },
    port::Port,
    rss::RssState,
    tx,
    xdp::CpuMap, //
};

/// How long a closing port waits for packets that the device still has.
const DRAIN_TIMEOUT_MS: u32 = 200;

/// Seconds from a failure to the next try: twice as many each time, from the first to the last of these.
const RETRY_FIRST: i64 = 1;
const RETRY_LAST: i64 = 64;

/// What the instance lock protects. The mutex around it is a leaf below that, and never contended for long.
pub(crate) struct State<N: Nic> {
    /// The active settings; those of the next `open` while the port is down.
    pub(crate) config: Config,
    pub(crate) rss: RssState,
    open: Option<Open<N>>,
    cpus: CpuMap,
    /// Seconds to the next try, should this one fail.
    retry: i64,
}

// Nothing in it is ever pinned: what must not move lies in boxes of its own.
impl<N: Nic> Unpin for State<N> {}

/// An open port. In drop order: channels before the session that they live in.
struct Open<N: Nic> {
    channels: KVec<Channel<N>>,
    session: N::Session,
}

impl<N: Nic> State<N> {
    /// The state of a port that is down.
    pub(crate) fn new(config: Config, rss: RssState, cpus: CpuMap) -> Self {
        Self {
            config,
            rss,
            open: None,
            cpus,
            retry: RETRY_FIRST,
        }
    }

    /// What the device has of the port while that is open.
    pub(crate) fn session(&self) -> Option<&N::Session> {
        self.open.as_ref().map(|open| &open.session)
    }

    fn set_config(&mut self, config: Config, lock: &OpsLock<'_>) {
        // A table that the user set stays; the core has seen to it that it fits.
        if config.queues != self.config.queues && !lock.is_rxfh_configured() {
            self.rss.spread(config.queues);
        }
        self.config = config;
    }
}

impl<N: Nic> Port<N> {
    /// Brings the port up.
    ///
    /// # Errors
    ///
    /// Why that failed; all is as before.
    pub(crate) fn up(dev: &Device<Self>, lock: &RtnlLock<'_>) -> Result {
        let mut state = dev.state().lock();
        state.config.mtu = dev.mtu();
        let prepared = prepare(dev, &state.config, lock)?;
        program(dev, &mut state, prepared, lock)
    }

    /// Takes the port down.
    pub(crate) fn down(dev: &Device<Self>, lock: &RtnlLock<'_>) {
        detach(dev, &mut dev.state().lock(), lock);
    }

    /// Runs with other settings, or else with those before.
    ///
    /// # Errors
    ///
    /// Why the new ones could not be had.
    pub(crate) fn reconfigure(dev: &Device<Self>, lock: &RtnlLock<'_>, wanted: Config) -> Result {
        let mut state = dev.state().lock();
        let old = state.config;
        if wanted == old && state.open.is_some() == lock.is_running() {
            return Ok(());
        }
        if !lock.is_running() {
            lock.set_real_queues(wanted.queues, wanted.queues)?;
            state.set_config(wanted, lock);
            return Ok(());
        }
        let prepared = prepare(dev, &wanted, lock)?;
        detach(dev, &mut state, lock);
        state.set_config(wanted, lock);
        let Err(e) = program(dev, &mut state, prepared, lock) else {
            return Ok(());
        };
        state.set_config(old, lock);
        let again =
            prepare(dev, &old, lock).and_then(|former| program(dev, &mut state, former, lock));
        if let Err(again) = again {
            retry(
                dev,
                &mut state,
                "cannot return to the former settings",
                again,
            );
        }
        Err(e)
    }

    /// Takes the queues away, for a device that is to lose all that it was told, and marks the port as absent: the
    /// stack neither sends nor configures until [`resume`](Self::resume). Takes rtnl.
    pub fn suspend(dev: &Device<Self>) {
        let lock = dev.rtnl_lock();
        detach(dev, &mut dev.state().lock(), &lock);
        lock.detach();
    }

    /// Brings a port that was [suspended](Self::suspend) back to what it was. Takes rtnl.
    ///
    /// Where that fails, it is reported, and the port tries again by itself.
    pub fn resume(dev: &Device<Self>) {
        let lock = dev.rtnl_lock();
        // Behind the queues, since it wakes them.
        let present = ScopeGuard::new(|| lock.attach());
        if !lock.is_running() {
            return;
        }
        let mut state = dev.state().lock();
        if state.open.is_none() {
            let again = prepare(dev, &state.config, &lock)
                .and_then(|prepared| program(dev, &mut state, prepared, &lock));
            if let Err(e) = again {
                retry(dev, &mut state, "resume failed", e);
            }
        }
        drop(present);
    }

    /// Makes all queues anew, with the same settings.
    ///
    /// As long as there is no memory for that, those in use stay.
    pub(crate) fn restart(dev: &Device<Self>, lock: &RtnlLock<'_>) {
        if !lock.is_running() || !lock.is_present() {
            return;
        }
        let mut state = dev.state().lock();
        let again = prepare(dev, &state.config, lock).and_then(|prepared| {
            detach(dev, &mut state, lock);
            program(dev, &mut state, prepared, lock)
        });
        if let Err(e) = again {
            retry(dev, &mut state, "reset failed", e);
        }
    }
}

/// Allocates all that the queues for `config` take.
fn prepare<N: Nic>(
    dev: &Device<Port<N>>,
    config: &Config,
    lock: &OpsLock<'_>,
) -> Result<KVec<Prepared<N>>> {
    let mut channels = KVec::new();
    for (index, stats) in (0..config.queues).zip(dev.stats()) {
        let channel = Prepared::new(dev, config, u16::try_from(index)?, stats, lock)?;
        channels.push(channel, GFP_KERNEL)?;
    }
    Ok(channels)
}

/// Has the device make the queues, and lets packets flow. There are no queues before, and none on failure.
fn program<N: Nic>(
    dev: &Device<Port<N>>,
    state: &mut State<N>,
    prepared: KVec<Prepared<N>>,
    lock: &RtnlLock<'_>,
) -> Result {
    let nic = dev.nic();
    let queues = state.config.queues;
    let session = nic.open(&state.config)?;
    let mut producers = KVec::with_capacity(prepared.len(), GFP_KERNEL)?;
    let mut channels = KVec::with_capacity(prepared.len(), GFP_KERNEL)?;
    for prepared in prepared {
        let (channel, producer) = Channel::new(dev, &session, prepared, lock)?;
        producers.push(producer, GFP_KERNEL)?;
        channels.push(channel, GFP_KERNEL)?;
    }
    lock.set_real_queues(queues, queues)?;
    state.cpus.rebuild(queues, dev.cpu_queues());

    let open = Open { channels, session };
    for (index, channel) in (0..queues).zip(&open.channels) {
        channel.enable(index, lock);
    }
    for (queue, producer) in (0..).zip(producers) {
        // The queue and its cell exist: there are as many as channels at most.
        let _ = dev.lock_tx(queue, |token| {
            dev.producers().replace(token, Some(producer))
        });
    }
    let open = state.open.insert(open);
    if let Err(e) = nic.steer(&open.session, &state.rss.get()) {
        detach(dev, state, lock);
        return Err(e);
    }
    state.retry = RETRY_FIRST;
    // Whatever asked for a reset is over.
    dev.cancel_reset();
    // Not only started: packets may wait since before a reconfiguration. Before there is a carrier, since a
    // queue that is stopped behind one counts as stuck.
    lock.wake_all_queues();
    dev.ready().store(true, Ordering::SeqCst);
    Port::link_changed(dev);
    Ok(())
}

/// Ends the flow of packets and takes the queues away; the mirror of [`program`].
fn detach<N: Nic>(dev: &Device<Port<N>>, state: &mut State<N>, lock: &RtnlLock<'_>) {
    let Some(open) = state.open.take() else {
        return;
    };
    dev.ready().store(false, Ordering::SeqCst);
    Port::link_changed(dev);
    // What the device completes from here on wakes no queue: what waits is to wait on. A poll that has not
    // seen this is over behind the grace period.
    open.channels.iter().for_each(Channel::keep_stopped);
    rcu::synchronize_rcu();
    lock.tx_disable();
    let producers = take_producers(dev, open.channels.len());
    drain(&producers);
    dev.nic().quiesce(&open.session);
    for (index, channel) in (0..).zip(&open.channels) {
        channel.disable(index, lock);
    }
    // The producer halves go first: with the consumer halves, which the channels own, goes what
    // the device may still read.
    drop(producers);
    drop(open);
}

fn take_producers<N: Nic>(dev: &Device<Port<N>>, queues: usize) -> KVVec<tx::Producer<N::TxSend>> {
    let mut producers = KVVec::new();
    for queue in (0..).take(queues) {
        let taken = dev.lock_tx(queue, |token| {
            if let Some(producer) = dev.producers().get(token) {
                producer.end_burst();
            }
            dev.producers().replace(token, None)
        });
        if let Ok(Ok(Some(producer))) = taken {
            // Without memory for the list the queue is not drained, only freed.
            let _ = producers.push(producer, GFP_KERNEL);
        }
    }
    producers
}

/// Gives the device time to finish what it was told to send. NAPI still runs.
fn drain<S: TxSend>(producers: &[tx::Producer<S>]) {
    for _ in 0..DRAIN_TIMEOUT_MS {
        if producers.iter().all(tx::Producer::is_idle) {
            return;
        }
        fsleep(Delta::from_millis(1));
    }
}

/// Reports that the port does not work, and has it reset later, unless its device is gone.
fn retry<N: Nic>(dev: &Device<Port<N>>, state: &mut State<N>, what: &str, error: Error) {
    if error == ENODEV {
        netdev::netdev_err!(dev, "{} ({:?}): the device is gone\n", what, error);
        return;
    }
    let seconds = state.retry;
    netdev::netdev_err!(
        dev,
        "{} ({:?}), next try in {} s; to try at once set the link down and up\n",
        what,
        error,
        seconds
    );
    state.retry = seconds.saturating_mul(2).min(RETRY_LAST);
    dev.schedule_reset(Delta::from_secs(seconds));
}
