// SPDX-License-Identifier: GPL-2.0

//! A channel: one vector, one NAPI, one TX and one RX queue.

use kernel::{
    prelude::*,
    str::CString,
    sync::Arc,
    time::Delta, //
};
use netdev::{
    device::{
        Device,
        Held, //
    },
    irq::{
        Handler,
        IrqReturn,
        Registration, //
    },
    lock::{
        OpsLock,
        RtnlLock, //
    },
    napi::{
        Arm,
        Budget,
        Napi,
        NapiRef,
        NapiSlot,
        Poll,
        PollContext, //
    },
    page_pool::PagePool,
    tx_queue::TxQueue,
    xdp::{
        PooledFrame,
        XdpSlot, //
    },
};

use crate::{
    nic::{
        Config,
        Interrupt,
        Nic,
        Vector,
        VectorParts,
        Wake, //
    },
    port::Port,
    rx::{
        self,
        SendBack, //
    },
    stats::ChannelStats,
    tx, //
};

/// Time from the loss of completions or events to the reset: a device that does nothing but lose them is not to
/// keep the machine busy.
const RESET_DELAY: Delta = Delta::from_secs(1);

/// The port that a channel is of: what has it reset, and where frames go that are sent back.
pub(crate) struct Reset<N: Nic> {
    dev: Held<Port<N>>,
    index: u16,
}

impl<N: Nic> Reset<N> {
    /// The device has lost what came for the channel. Any context.
    #[cold]
    fn lost(&self, what: &str) {
        netdev::netdev_err_ratelimited!(
            &*self.dev,
            "channel {}: the device has lost {}, resetting\n",
            self.index,
            what
        );
        self.dev.schedule_reset(RESET_DELAY);
    }
}

impl<N: Nic> SendBack for Reset<N> {
    /// On the TX queue of the channel itself, whatever the CPU: its completions come to the same NAPI, where
    /// the page pool takes buffers back without a lock.
    fn send_back(&self, frames: impl Iterator<Item = PooledFrame>) -> u32 {
        let sent = self.dev.lock_tx(self.index, |token| {
            self.dev
                .producers()
                .get(token)
                .map_or(0, |producer| producer.send_back(frames))
        });
        sent.unwrap_or(0)
    }

    fn trace_failure(&self, slot: &XdpSlot, cx: &PollContext<'_>) {
        slot.trace_tx_failure(&*self.dev, cx);
    }
}

/// What NAPI owns of a channel. In drop order: queues before the vector that they are made on.
pub(crate) struct Poller<N: Nic> {
    pub(crate) tx: tx::Consumer<N::TxReap>,
    pub(crate) rx: rx::Queue<N::RxRing>,
    pub(crate) vector: N::Vector,
    reset: Reset<N>,
}

impl<N: Nic> Poll for Poller<N> {
    type Order = N::Order;

    fn poll(&mut self, cx: &PollContext<'_>) -> u32 {
        let tx_left = self.tx.poll(cx);
        if self.tx.take_lost() {
            self.reset.lost("send completions");
        }
        match cx.budget() {
            Budget::TxOnly => 0,
            Budget::Rx(budget) => {
                // A user may ask for a budget of more than the device may go on without hearing of it.
                let most = budget.get().min(self.rx.size());
                let received = self.rx.poll(cx, most, &self.reset);
                if self.rx.take_lost() {
                    self.reset.lost("receive completions");
                }
                // That work is left, only a used-up budget can say.
                if tx_left || received == most {
                    budget.get()
                } else {
                    received
                }
            }
        }
    }

    fn settle(&mut self, arm: Arm) {
        self.tx.settle(arm);
        self.rx.settle(arm);
        self.vector.settle(arm);
    }
}

/// What the interrupt owns of a channel.
struct Line<N: Nic> {
    interrupt: N::Interrupt,
    napi: NapiRef,
    reset: Reset<N>,
}

impl<N: Nic> Handler for Line<N> {
    fn handle(&mut self) -> IrqReturn {
        match self.interrupt.interrupt() {
            Wake::Poll => self.napi.schedule(),
            Wake::Nothing => {}
            Wake::Lost => {
                // For what was announced before.
                self.napi.schedule();
                self.reset.lost("events");
            }
        }
        IrqReturn::Handled
    }
}

/// A channel of which the device knows nothing yet: all of the memory that it takes.
///
/// Another channel of the same index may be in use meanwhile.
pub(crate) struct Prepared<N: Nic> {
    index: u16,
    // In drop order: buffers before the NAPI that their pool refers to.
    rx: rx::Memory,
    tx: tx::Memory,
    napi: NapiSlot,
    vector_memory: N::VectorMemory,
    tx_memory: N::TxMemory,
    rx_memory: N::RxMemory,
    stats: Arc<ChannelStats>,
}

impl<N: Nic> Prepared<N> {
    /// Allocates channel `index` of a port with the settings `config`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; nothing is left behind.
    pub(crate) fn new(
        dev: &Device<Port<N>>,
        config: &Config,
        index: u16,
        stats: &Arc<ChannelStats>,
        lock: &OpsLock<'_>,
    ) -> Result<Self> {
        let (nic, id) = (dev.nic(), u32::from(index));
        let Config {
            tx_entries,
            rx_entries,
            mtu,
            xdp,
            ..
        } = *config;
        let tx =
            tx::Memory::new::<N::TxSend>(lock, index, nic.device(), tx_entries, stats.clone())?;
        let napi = NapiSlot::add(lock, id)?;
        let queue = xdp.then_some(index);
        let pool = PagePool::new(nic.device(), napi.handle(), rx_entries, mtu, queue)?;
        let slot = xdp.then(|| dev.xdp().clone());
        Ok(Self {
            index,
            rx: rx::Memory::new(pool, rx_entries, slot)?,
            tx,
            napi,
            vector_memory: nic.vector_memory()?,
            tx_memory: nic.tx_memory(tx_entries)?,
            rx_memory: nic.rx_memory(rx_entries)?,
            stats: stats.clone(),
        })
    }
}

/// An active channel.
///
/// In drop order: NAPI lets go of the line before the line is freed. An interrupt in between finds NAPI
/// disabled.
pub(crate) struct Channel<N: Nic> {
    queue: Arc<TxQueue>,
    napi: Napi<Poller<N>>,
    _line: Registration<Line<N>>,
}

impl<N: Nic> Channel<N> {
    /// Has the device make a channel, and returns the producer half of its TX queue besides.
    ///
    /// NAPI is not enabled yet.
    ///
    /// # Errors
    ///
    /// What the vendor's hardware says, or `ENOMEM`; nothing is left behind.
    pub(crate) fn new(
        dev: &Device<Port<N>>,
        session: &N::Session,
        prepared: Prepared<N>,
        lock: &RtnlLock<'_>,
    ) -> Result<(Self, tx::Producer<N::TxSend>)> {
        let Prepared {
            index,
            rx,
            tx,
            napi,
            vector_memory,
            tx_memory,
            rx_memory,
            stats,
        } = prepared;
        let (nic, id) = (dev.nic(), u32::from(index));
        let reset = || -> Result<_> {
            Ok(Reset {
                dev: dev.hold(lock)?,
                index,
            })
        };
        let VectorParts {
            interrupt,
            vector,
            line,
        } = nic.vector(session, id, vector_memory)?;
        let (producer, consumer) = tx.split(nic.tx(session, &vector, id, tx_memory, &stats)?);
        let queue = consumer.queue().clone();
        let ring = nic.rx(session, &vector, id, rx_memory, rx.buffer_len())?;
        let poller = Poller {
            tx: consumer,
            rx: rx::Queue::new(ring, rx, index, stats),
            vector,
            reset: reset()?,
        };
        let handler = Line {
            interrupt,
            napi: napi.handle(),
            reset: reset()?,
        };
        let napi = napi.attach(poller, Some(line.number()))?;
        let name = CString::try_from_fmt(fmt!("{}-{}", lock.name(), index))?;
        let line = Registration::new(line, name, handler)?;
        let channel = Self {
            queue,
            napi,
            _line: line,
        };
        Ok((channel, producer))
    }

    /// Lets NAPI run, and tells the stack which queues it serves.
    pub(crate) fn enable(&self, index: u32, lock: &RtnlLock<'_>) {
        self.napi.enable(lock);
        self.napi.link_queues(lock, index);
    }

    /// Has completions leave the TX queue stopped; see [`TxQueue::keep_stopped`].
    pub(crate) fn keep_stopped(&self) {
        self.queue.keep_stopped();
    }

    /// Waits until NAPI does not run, and keeps it from running.
    pub(crate) fn disable(&self, index: u32, lock: &RtnlLock<'_>) {
        self.napi.unlink_queues(lock, index);
        self.napi.disable(lock);
    }
}
