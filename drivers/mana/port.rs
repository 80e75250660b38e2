// SPDX-License-Identifier: GPL-2.0

//! A port: a vPort of the Ethernet function.

use core::sync::atomic::{
    AtomicBool,
    AtomicU32,
    Ordering, //
};

use kernel::{
    device,
    new_mutex,
    prelude::*,
    sync::{
        aref::ARef,
        Arc,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};
use netdev::{
    completion::Completion,
    cpu,
    mmio::Doorbell64,
    napi::ArmThenComplete, //
};
use ring_common::{
    nic::{
        Config,
        Interrupt,
        Nic,
        Offloads,
        PortLimits,
        Rss,
        Vector,
        VectorParts,
        Wake, //
    },
    stats::{
        ChannelStats,
        Keys, //
    }, //
};
use ring_core::stop::{
    self,
    Step, //
};

use crate::{
    adapter::Adapter,
    gdma::{
        eq::{
            self,
            EventQueue,
            EventReader,
            EventRing, //
        },
        wq::{
            QueueRings,
            WorkQueue, //
        },
        Event,
        QueueType, //
    },
    hwc::commands::{
        ConfigVportRx,
        ConfigVportTx,
        FenceRq,
        QueryLinkConfig,
        QueryVportConfig, //
    },
    link::Link,
    regs,
    rx::Rx,
    stats::{
        self,
        HcStats,
        PortCounters, //
    },
    tx, //
};

/// Queue pairs until the user sets another number (`MANA_DEF_NUM_QUEUES`).
const MANA_DEF_NUM_QUEUES: u32 = 16;

/// Entries of the indirection table of a device that does not tell
/// (`MANA_INDIRECT_TABLE_DEF_SIZE`), and the most of any whose steering command
/// fits into a message.
const MANA_INDIRECT_TABLE_DEF_SIZE: u16 = 64;
const MAX_INDIRECTION_ENTRIES: u32 = 256;

/// Bytes of the Ethernet header, which the device's MTU counts in.
const ETH_HLEN: u32 = 14;

/// How long a fence may take to come through, and how long to wait for the
/// device's writes to end when it does not.
const FENCE_TIMEOUT: Delta = Delta::from_secs(10);
const NO_FENCE_DELAY: Delta = Delta::from_millis(100);

/// Units of a send queue: basic units (`MIN_`, `DEF_` and
/// `MAX_TX_BUFFERS_PER_QUEUE`).
const TX_LIMITS: stop::Limits = match stop::Limits::new(128, 256, 16384, Step::PowerOfTwo) {
    Some(limits) => limits,
    None => unreachable!(),
};
/// Buffers of a receive queue (`MIN_`, `DEF_` and `MAX_RX_BUFFERS_PER_QUEUE`).
const RX_LIMITS: stop::Limits = match stop::Limits::new(128, 1024, 8192, Step::PowerOfTwo) {
    Some(limits) => limits,
    None => unreachable!(),
};

/// A vPort, through all adapters that there are of it one after the other.
pub(crate) struct Port {
    dev: ARef<device::Device>,
    link: Arc<Link>,
    hc_stats: Arc<HcStats>,
    /// `None` while the device is away.
    side: Pin<KBox<Mutex<Option<Side>>>>,
    mac: [u8; 6],
    adapter_mtu: u16,
    /// Number of the vPort.
    index: u16,
    /// First MSI-X vector; one for each queue pair.
    first_vector: u32,
    /// Queue pairs.
    max_queues: u32,
    rss_entries: u16,
    /// Mbit/s; 0 as long as the device does not say.
    speed: AtomicU32,
    counters: Arc<PortCounters>,
}

impl Port {
    /// Asks the device for port `index`, whose vectors start at `first_vector`.
    /// Process context, sleeps.
    ///
    /// # Errors
    ///
    /// `EPROTO` if the device offers no queues, `ENOMEM`, or those of
    /// [`Adapter::call`]; all but `ENOMEM` are reported.
    pub(crate) fn new(adapter: &Arc<Adapter>, index: u32, first_vector: u32) -> Result<Self> {
        let vport = adapter.call(&QueryVportConfig { vport_index: index })?;
        let max_queues = adapter
            .limits()
            .queues
            .min(vport.max_num_sq)
            .min(vport.max_num_rq);
        if max_queues == 0 {
            adapter.complain(format_args!("the device gives no queues to port {index}"));
            return Err(EPROTO);
        }
        let rss_entries = match vport.num_indirection_ent {
            // CAST: at most 256.
            n if n.is_power_of_two() && n <= MAX_INDIRECTION_ENTRIES => n as u16,
            _ => MANA_INDIRECT_TABLE_DEF_SIZE,
        };
        let side = Side {
            adapter: adapter.clone(),
            vport: vport.vport,
        };
        Ok(Self {
            dev: adapter.device().into(),
            link: adapter.link().clone(),
            hc_stats: adapter.hc_stats().clone(),
            side: KBox::pin_init(new_mutex!(Some(side)), GFP_KERNEL)?,
            mac: vport.mac_addr,
            adapter_mtu: adapter.limits().adapter_mtu,
            index: u16::try_from(index)?,
            first_vector,
            max_queues,
            rss_entries,
            speed: AtomicU32::new(0),
            counters: Arc::new(PortCounters::default(), GFP_KERNEL)?,
        })
    }

    /// Lets go of the adapter, which goes away. The port is not open.
    pub(crate) fn leave(&self) {
        *self.side.lock() = None;
    }

    /// Goes on with a new adapter. Process context, sleeps.
    ///
    /// # Errors
    ///
    /// Those of [`Adapter::call`], which are reported.
    pub(crate) fn renew(&self, adapter: &Arc<Adapter>) -> Result {
        let config = adapter.call(&QueryVportConfig {
            vport_index: self.index.into(),
        })?;
        *self.side.lock() = Some(Side {
            adapter: adapter.clone(),
            vport: config.vport,
        });
        Ok(())
    }
}

/// What a port is on the device.
#[derive(Clone)]
struct Side {
    adapter: Arc<Adapter>,
    /// Handle of the vPort.
    vport: u64,
}

impl Side {
    /// Waits until the device has delivered what it received before, and tells
    /// whether it said so.
    fn fence(&self, receiver: &Receiver) -> bool {
        if receiver.events_lost.load(Ordering::Relaxed) {
            return false;
        }
        receiver.fence.reached.reinit();
        if receiver.fence.is_lost() {
            return false;
        }
        let command = FenceRq {
            wq_obj_handle: receiver.handle,
        };
        self.adapter.call(&command).is_ok()
            && receiver.fence.reached.wait_timeout(FENCE_TIMEOUT).is_ok()
            && !receiver.fence.is_lost()
    }

    /// Asks the device for the speed in Mbit/s, which some do not tell: 0.
    fn speed(&self) -> u32 {
        let vport = self.vport;
        match self.adapter.call(&QueryLinkConfig { vport }) {
            Ok(link) if link.qos_unconfigured == 0 => link.link_speed_mbps,
            _ => 0,
        }
    }
}

/// What stays on the device while the port is open.
pub(crate) struct Session {
    side: Side,
    /// Place of the vPort that packets name.
    vp_offset: u16,
    receivers: Pin<KBox<Mutex<KVec<Receiver>>>>,
}

/// A receive queue, as steering knows it. Queue `i` is the `i`-th.
struct Receiver {
    handle: u64,
    fence: Arc<Fence>,
    /// Whether its event queue stands still.
    events_lost: Arc<AtomicBool>,
}

/// Tells when the fence completion of a receive queue has come.
#[pin_data]
pub(crate) struct Fence {
    #[pin]
    reached: Completion,
    lost: AtomicBool,
}

impl Fence {
    fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            reached <- Completion::new(),
            lost: AtomicBool::new(false),
        })
    }

    /// The completion queue stands still: nobody is to wait for it. Any context.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
        self.reached();
    }

    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// The completion is there. Any context.
    pub(crate) fn reached(&self) {
        self.reached.complete();
    }
}

/// An event queue, as NAPI sees it: nothing to do, since completion queues are
/// armed one by one.
pub(crate) struct EventVector(Arc<EventQueue>);

impl Vector for EventVector {}

/// An event queue, as its interrupt sees it.
pub(crate) struct EventInterrupt {
    queue: Arc<EventQueue>,
    reader: EventReader,
    doorbell: Doorbell64,
    counters: Arc<PortCounters>,
}

impl Interrupt for EventInterrupt {
    fn interrupt(&mut self) -> Wake {
        let mut wake = Wake::Nothing;
        // At most one lap, so that a device gone mad does not keep the CPU.
        for _ in 0..self.queue.ring().size().get() {
            match self.reader.next(self.queue.ring()) {
                // Which queue does not matter: NAPI looks at both.
                Some(Event::Completion { .. }) => wake = Wake::Poll,
                Some(_) => self.counters.eqe_unknown_type.add(1),
                None => break,
            }
        }
        if self.reader.take_overrun() {
            self.counters.eq_overrun.add(1);
            self.queue.lost().store(true, Ordering::Relaxed);
            wake = Wake::Lost;
        }
        self.reader.arm(&self.doorbell, self.queue.id());
        wake
    }
}

impl Nic for Port {
    // The doorbell that arms a completion queue tells how far it was read.
    type Order = ArmThenComplete;
    type Session = Session;
    type Vector = EventVector;
    type Interrupt = EventInterrupt;
    type VectorMemory = EventRing;
    type TxMemory = QueueRings;
    type RxMemory = QueueRings;
    type TxSend = tx::Send;
    type TxReap = tx::Reap;
    type RxRing = Rx;

    fn device(&self) -> &device::Device {
        &self.dev
    }

    fn index(&self) -> u16 {
        self.index
    }

    fn limits(&self) -> Result<PortLimits> {
        let default = self.max_queues.min(MANA_DEF_NUM_QUEUES).min(cpu::online());
        let queues = stop::Limits::new(1, default, self.max_queues, Step::Multiple(1));
        Ok(PortLimits {
            queues: queues.ok_or(EINVAL)?,
            tx_entries: TX_LIMITS,
            rx_entries: RX_LIMITS,
            max_mtu: u32::from(self.adapter_mtu) - ETH_HLEN,
            rss_entries: self.rss_entries.into(),
        })
    }

    fn offloads(&self) -> Offloads {
        Offloads {
            tx_csum: true,
            rx_csum: true,
            tso: true,
            tso_max_size: None,
            vlan_tx: true,
            vlan_rx: true,
            rx_hash: true,
        }
    }

    fn mac(&self) -> [u8; 6] {
        self.mac
    }

    fn link_up(&self) -> bool {
        self.link.is_up()
    }

    fn speed(&self) -> Option<u32> {
        match self.speed.load(Ordering::Relaxed) {
            0 => None,
            speed => Some(speed),
        }
    }

    fn vector_memory(&self) -> Result<EventRing> {
        eq::ring(self.device(), eq::EQ_SIZE)
    }

    fn tx_memory(&self, entries: u32) -> Result<QueueRings> {
        QueueRings::new(self.device(), entries, entries)
    }

    fn rx_memory(&self, entries: u32) -> Result<QueueRings> {
        // One completion more than buffers, for the fence.
        let completions = entries.checked_add(1).ok_or(EINVAL)?.next_power_of_two();
        QueueRings::new(self.device(), entries, completions)
    }

    fn open(&self, _config: &Config) -> Result<Session> {
        let side = self.side.lock().clone().ok_or(ENODEV)?;
        let command = ConfigVportTx::new(side.vport, side.adapter.registered());
        let answer = side.adapter.call(&command)?;
        self.speed.store(side.speed(), Ordering::Relaxed);
        Ok(Session {
            side,
            vp_offset: answer.tx_vport_offset,
            receivers: KBox::pin_init(new_mutex!(KVec::new()), GFP_KERNEL)?,
        })
    }

    fn vector(
        &self,
        session: &Session,
        index: u32,
        ring: EventRing,
    ) -> Result<VectorParts<EventInterrupt, EventVector>> {
        let vector = self.first_vector + index;
        let adapter = &session.side.adapter;
        let line = adapter.line(vector)?;
        let queue = Arc::new(EventQueue::new(adapter, vector, ring)?, GFP_KERNEL)?;
        Ok(VectorParts {
            interrupt: EventInterrupt {
                reader: EventReader::new(queue.ring())?,
                doorbell: adapter.doorbell(regs::DOORBELL_OFFSET_EQ)?,
                queue: queue.clone(),
                counters: self.counters.clone(),
            },
            vector: EventVector(queue),
            line,
        })
    }

    fn tx(
        &self,
        session: &Session,
        vector: &EventVector,
        _index: u32,
        rings: QueueRings,
        stats: &Arc<ChannelStats>,
    ) -> Result<(tx::Send, tx::Reap)> {
        let side = &session.side;
        let queue = WorkQueue::new(
            &side.adapter,
            side.vport,
            QueueType::Send,
            rings,
            vector.0.clone(),
        )?;
        let queue = Arc::new(queue, GFP_KERNEL)?;
        let mem_key = side.adapter.registered().gpa_mkey;
        let send = tx::Send::new(queue.clone(), mem_key, session.vp_offset, stats.clone())?;
        let reap = tx::Reap::new(queue, self.counters.clone())?;
        Ok((send, reap))
    }

    fn rx(
        &self,
        session: &Session,
        vector: &EventVector,
        index: u32,
        rings: QueueRings,
        _buffer_len: u32,
    ) -> Result<Rx> {
        let side = &session.side;
        let queue = WorkQueue::new(
            &side.adapter,
            side.vport,
            QueueType::Receive,
            rings,
            vector.0.clone(),
        )?;
        let fence = Arc::pin_init(Fence::new(), GFP_KERNEL)?;
        let mut receivers = session.receivers.lock();
        if usize::try_from(index)? != receivers.len() {
            return Err(EINVAL);
        }
        let receiver = Receiver {
            handle: queue.handle(),
            fence: fence.clone(),
            events_lost: vector.0.lost().clone(),
        };
        receivers.push(receiver, GFP_KERNEL)?;
        drop(receivers);
        Rx::new(
            Arc::new(queue, GFP_KERNEL)?,
            side.adapter.registered().gpa_mkey,
            fence,
            self.counters.clone(),
        )
    }

    fn steer(&self, session: &Session, rss: &Rss<'_>) -> Result {
        let receivers = session.receivers.lock();
        let handle = |queue: &u32| {
            // CAST: `usize` has 64 bits.
            let receiver = receivers.get(*queue as usize);
            receiver.map(|receiver| receiver.handle).ok_or(EINVAL)
        };
        let mut table = KVec::with_capacity(self.rss_entries.into(), GFP_KERNEL)?;
        for queue in rss.table {
            table.push(handle(queue)?, GFP_KERNEL)?;
        }
        if table.len() != usize::from(self.rss_entries) {
            return Err(EINVAL);
        }
        let command = ConfigVportRx::enable(
            session.side.vport,
            self.rss_entries,
            receivers.len() > 1,
            handle(&0)?,
            rss.key,
        );
        session
            .side
            .adapter
            .call_with_list(&command, table.iter().copied())?;
        Ok(())
    }

    fn quiesce(&self, session: &Session) {
        let side = &session.side;
        let command = ConfigVportRx::disable(side.vport, self.rss_entries);
        let table = core::iter::repeat_n(0u64, self.rss_entries.into());
        // Failures of commands have been reported.
        let _ = side.adapter.call_with_list(&command, table);
        let all_fenced = session
            .receivers
            .lock()
            .iter()
            .all(|receiver| side.fence(receiver));
        if !all_fenced {
            fsleep(NO_FENCE_DELAY);
        }
    }

    fn keys(&self) -> &'static Keys {
        &stats::KEYS
    }

    fn port_stats(&self, channels: &[Arc<ChannelStats>], values: &mut [u64]) {
        stats::port_values(channels, &self.counters, &self.hc_stats, values);
    }
}
