// SPDX-License-Identifier: GPL-2.0

//! A network port: the `net_device` and its ethtool operations, the same for all vendors.

use core::sync::atomic::{
    fence,
    AtomicBool,
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
    time::Delta, //
};
use netdev::{
    device::{
        Device,
        DeviceId,
        Operations,
        Registered,
        Unregistered, //
    },
    ethtool::ExtAck,
    features::Features,
    lock::{
        OpsLock,
        RtnlLock, //
    },
    mac::MacAddress,
    page_pool::PagePool,
    skb::{
        Reason,
        TxMeta,
        TxSkb, //
    },
    stats::{
        LinkStats,
        RxQueueStats,
        TxQueueStats, //
    },
    tx_lock::{
        PerTxQueue,
        TxLocked, //
    },
    xdp::{
        XdpBurst,
        XdpProg,
        XdpSlot, //
    },
};

use crate::{
    nic::{
        Config,
        Nic,
        Offloads,
        PortLimits, //
    },
    reconfigure::State,
    rss::RssState,
    stats::{
        rx_sum,
        tx_sum,
        ChannelStats, //
    },
    tx,
    xdp::{
        CpuMap,
        CpuQueues, //
    },
};

/// How long a TX queue may be stuck before the port is reset.
const WATCHDOG: Delta = Delta::from_secs(15);

/// MTU of Ethernet, IEEE 802.3.
const ETH_DATA_LEN: u32 = 1500;

/// Smallest MTU: what IPv4 demands of every link.
const MIN_MTU: u32 = 68;

/// A network port of `N`'s hardware.
#[pin_data]
pub struct Port<N: Nic> {
    nic: N,
    limits: PortLimits,
    /// Counters of each channel that there can be.
    stats: KVec<Arc<ChannelStats>>,
    /// Whether there are queues, so that there may be a carrier.
    ready: AtomicBool,
    /// Producer half of each active TX queue.
    producers: PerTxQueue<tx::Producer<N::TxSend>>,
    /// The XDP program.
    xdp: Arc<XdpSlot>,
    /// The TX queue of each CPU for redirected frames.
    cpu_queues: CpuQueues,
    #[pin]
    state: Mutex<State<N>>,
}

impl<N: Nic> Port<N> {
    /// Registers a network device for `nic`.
    ///
    /// Dropping the result brings the port down and unregisters it. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the limits contradict each other, `ENOMEM`, or what the core says.
    pub fn register(nic: N) -> Result<Registered<Self>> {
        let parent: ARef<device::Device> = nic.device().into();
        let limits = nic.limits()?;
        let offloads = nic.offloads();
        let mac = MacAddress::new(nic.mac());
        let index = nic.index();
        let max_mtu = largest_mtu(&limits);
        let queues = limits.queues.max();

        let mut dev =
            Unregistered::alloc(&parent, queues, queues, |id| Self::new(id, nic, limits))?;
        match mac {
            Some(mac) => dev.set_mac_address(mac),
            None => dev.set_random_mac_address(),
        }
        dev.set_mtu(ETH_DATA_LEN.min(max_mtu), MIN_MTU..=max_mtu);
        let features = features(&offloads);
        let vlan = Features::HW_VLAN_CTAG_TX | Features::HW_VLAN_CTAG_RX;
        dev.set_features(features);
        dev.set_hw_features(features - vlan - Features::HIGHDMA);
        dev.set_vlan_features(features - vlan);
        if let Some(size) = offloads.tso_max_size {
            dev.set_tso_limits(size, u16::MAX);
        }
        dev.set_xdp();
        dev.set_port(index);
        dev.set_watchdog(WATCHDOG);
        let queues = dev.config().queues;
        dev.set_real_queues(queues, queues)?;
        // Else the first carrier would be no change, and the state of the link stay unknown.
        dev.carrier_off();
        dev.register()
    }

    fn new(id: DeviceId, nic: N, limits: PortLimits) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(move || {
            // CAST: `usize` has 64 bits on every target.
            let channels = limits.queues.max() as usize;
            let mut stats = KVec::with_capacity(channels, GFP_KERNEL)?;
            for _ in 0..channels {
                stats.push(Arc::new(ChannelStats::default(), GFP_KERNEL)?, GFP_KERNEL)?;
            }
            let config = Config {
                queues: limits.queues.default(),
                tx_entries: limits.tx_entries.default(),
                rx_entries: limits.rx_entries.default(),
                mtu: 0,
                xdp: false,
            };
            let mut rss = RssState::new(limits.rss_entries)?;
            rss.spread(config.queues);
            Ok(try_pin_init!(Self {
                nic,
                limits,
                stats,
                ready: AtomicBool::new(false),
                producers: PerTxQueue::new(id, channels)?,
                xdp: Arc::new(XdpSlot::new(), GFP_KERNEL)?,
                cpu_queues: CpuQueues::new()?,
                state <- new_mutex!(State::new(config, rss, CpuMap::new()?)),
            }? Error))
        })
    }

    /// Tells the stack what the vendor knows of the link. Any context.
    ///
    /// A port without queues has no carrier.
    pub fn link_changed(dev: &Device<Self>) {
        let is_up = || dev.ready.load(Ordering::SeqCst) && dev.nic.link_up();
        loop {
            let up = is_up();
            if up {
                dev.carrier_on();
            } else {
                dev.carrier_off();
            }
            // Of two that run at once, the one that writes last looks again.
            fence(Ordering::SeqCst);
            if up == is_up() {
                break;
            }
        }
    }

    /// The vendor's side of the port.
    pub fn nic(&self) -> &N {
        &self.nic
    }

    /// What the port can do at most.
    pub(crate) fn limits(&self) -> &PortLimits {
        &self.limits
    }

    /// Counters of each channel that there can be.
    pub(crate) fn stats(&self) -> &[Arc<ChannelStats>] {
        &self.stats
    }

    /// What the instance lock protects.
    pub(crate) fn state(&self) -> &Mutex<State<N>> {
        &self.state
    }

    /// Producer half of each active TX queue.
    pub(crate) fn producers(&self) -> &PerTxQueue<tx::Producer<N::TxSend>> {
        &self.producers
    }

    /// Where the XDP program is published.
    pub(crate) fn xdp(&self) -> &Arc<XdpSlot> {
        &self.xdp
    }

    /// The TX queue of each CPU for redirected frames.
    pub(crate) fn cpu_queues(&self) -> &CpuQueues {
        &self.cpu_queues
    }

    /// Largest MTU without XDP, in bytes.
    pub(crate) fn max_mtu(&self) -> u32 {
        largest_mtu(&self.limits)
    }

    /// Whether there are queues.
    pub(crate) fn ready(&self) -> &AtomicBool {
        &self.ready
    }

    /// The active settings, or those of the next `open`.
    pub(crate) fn config(&self) -> Config {
        self.state.lock().config
    }

    /// Copies the RSS table and key.
    pub(crate) fn read_rss(&self, table: Option<&mut [u32]>, key: Option<&mut [u8]>) {
        self.state.lock().rss.read(table, key);
    }

    /// Changes the RSS table and key, for all queues or none.
    pub(crate) fn change_rss(
        dev: &Device<Self>,
        table: Option<&[u32]>,
        key: Option<&[u8]>,
    ) -> Result {
        let mut guard = dev.state.lock();
        let state = &mut *guard;
        let wanted = state.rss.changed(table, key, state.config.queues)?;
        if let Some(session) = state.session() {
            dev.nic.steer(session, &wanted.get())?;
        }
        state.rss = wanted;
        Ok(())
    }
}

fn largest_mtu(limits: &PortLimits) -> u32 {
    limits.max_mtu.min(PagePool::MAX_MTU)
}

fn features(offloads: &Offloads) -> Features {
    let mut features = Features::SG | Features::HIGHDMA;
    for (offered, bits) in [
        (offloads.tx_csum, Features::IP_CSUM | Features::IPV6_CSUM),
        (offloads.rx_csum, Features::RXCSUM),
        (offloads.tso, Features::TSO | Features::TSO6),
        (offloads.vlan_tx, Features::HW_VLAN_CTAG_TX),
        (offloads.vlan_rx, Features::HW_VLAN_CTAG_RX),
        (offloads.rx_hash, Features::RXHASH),
    ] {
        if offered {
            features |= bits;
        }
    }
    features
}

#[vtable]
impl<N: Nic> Operations for Port<N> {
    fn open(dev: &Device<Self>, lock: &RtnlLock<'_>) -> Result {
        Self::up(dev, lock)
    }

    fn stop(dev: &Device<Self>, lock: &RtnlLock<'_>) {
        Self::down(dev, lock);
    }

    #[inline]
    fn xmit(dev: &Device<Self>, skb: TxSkb, meta: &mut TxMeta, lock: &mut TxLocked<'_>) {
        match dev.producers.get(lock) {
            Some(producer) => producer.xmit(skb, meta),
            None => {
                // Left without queues; waking is up to who brings the port up.
                lock.stop_queue();
                if let Some(channel) = dev.stats.get(usize::from(lock.queue())) {
                    channel.tx.dropped.add(1);
                }
                skb.drop_reason(Reason::DeviceGone);
            }
        }
    }

    fn stats64(dev: &Device<Self>) -> LinkStats {
        let mut sum = LinkStats::default();
        for ChannelStats { rx, tx } in dev.stats.iter().map(|channel| &**channel) {
            sum.rx_packets = sum.rx_packets.wrapping_add(rx.packets.get());
            sum.rx_bytes = sum.rx_bytes.wrapping_add(rx.bytes.get());
            sum.rx_dropped = sum.rx_dropped.wrapping_add(rx.no_buffer.get());
            sum.rx_length_errors = sum.rx_length_errors.wrapping_add(rx.bad_length.get());
            sum.rx_errors = sum
                .rx_errors
                .wrapping_add(rx.errors.get())
                .wrapping_add(rx.bad_length.get());
            sum.tx_packets = sum.tx_packets.wrapping_add(tx.packets.get());
            sum.tx_bytes = sum.tx_bytes.wrapping_add(tx.bytes.get());
            sum.tx_dropped = sum.tx_dropped.wrapping_add(tx.dropped.get());
        }
        sum
    }

    fn change_mtu(dev: &Device<Self>, mtu: u32, lock: &RtnlLock<'_>) -> Result {
        let config = Config {
            mtu,
            ..dev.state.lock().config
        };
        Self::reconfigure(dev, lock, config)
    }

    fn set_xdp(
        dev: &Device<Self>,
        program: Option<XdpProg>,
        extack: &mut ExtAck<'_>,
        lock: &RtnlLock<'_>,
    ) -> Result {
        Self::change_xdp(dev, program, extack, lock)
    }

    fn xdp_xmit(dev: &Device<Self>, burst: &mut XdpBurst<'_>) -> Result {
        Self::send_redirected(dev, burst)
    }

    fn reset(dev: &Device<Self>, lock: &RtnlLock<'_>) {
        Self::restart(dev, lock);
    }

    fn rx_queue_stats(dev: &Device<Self>, queue: u32, _lock: &OpsLock<'_>) -> RxQueueStats {
        // CAST: `usize` has 64 bits on every target.
        dev.stats
            .get(queue as usize)
            .map_or_else(RxQueueStats::default, |channel| rx_sum([channel]))
    }

    fn tx_queue_stats(dev: &Device<Self>, queue: u32, _lock: &OpsLock<'_>) -> TxQueueStats {
        // CAST: `usize` has 64 bits on every target.
        dev.stats
            .get(queue as usize)
            .map_or_else(TxQueueStats::default, |channel| tx_sum([channel]))
    }

    fn base_queue_stats(dev: &Device<Self>, lock: &OpsLock<'_>) -> (RxQueueStats, TxQueueStats) {
        // CAST: `usize` has 64 bits on every target.
        let idle = |active: u32| dev.stats.iter().skip(active as usize);
        (
            rx_sum(idle(lock.real_rx_queues())),
            tx_sum(idle(lock.real_tx_queues())),
        )
    }
}
