// SPDX-License-Identifier: GPL-2.0
//! Everything that lives from ESTABLISH_HWC to DESTROY_HWC: queues, memory, objects, ports.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Instant,
};

use nic::{Bus, Counter, Report};

use crate::{
    abi::{eqe, init_data, reconfig},
    events::{Cq, Eq, Events, Moderation, Owner},
    limits::Limits,
    regs::Doorbell,
    ring::{Regions, Ring},
    rss::Steering,
    rules,
    rx::Batch,
    shm::Establish,
    stats::GfStats,
    work::{Kind, WorkQueues, Wq},
};

/// Ids of the HWC's own resources. Each number is used for one thing only, so that a mixed-up one is seen.
pub mod hwc_id {
    /// Event queue.
    pub const EQ: u32 = 7;
    /// Completion queue.
    pub const CQ: u32 = 5;
    /// Receive queue.
    pub const RQ: u32 = 0x803;
    /// Send queue.
    pub const SQ: u32 = 0x1409;
    /// Doorbell page.
    pub const DOORBELL: u32 = 1;
    /// Protection domain.
    pub const PDID: u32 = 0x11;
    /// Memory key.
    pub const GPA_MKEY: u32 = 0x1a2b;
    /// Messages in flight.
    pub const DEPTH: u32 = 1;
    /// Largest message, bytes.
    pub const MAX_MESSAGE: u32 = 4096;
}

/// Ids of the Ethernet device's resources.
pub mod mana_id {
    /// Doorbell page.
    pub const DOORBELL: u32 = 6;
    /// Protection domain.
    pub const PDID: u32 = 0x22;
    /// Memory key.
    pub const GPA_MKEY: u32 = 0x3c4d;
}

/// Bytes that a VLAN tag adds to the longest frame.
const VLAN_TAG: usize = 4;
/// CQ ids are below this.
pub const MAX_NUM_CQS: u32 = 4096;

/// Hands out ids in a circle, so that a stale one is not valid again at once.
pub struct Ids {
    first: u32,
    count: u32,
    next: u32,
}

impl Ids {
    fn new(first: u32, count: u32) -> Self {
        Self {
            first,
            count,
            next: 0,
        }
    }

    /// The next id that is not in use. There are more ids than the limits allow queues.
    pub fn next(&mut self, is_used: impl Fn(u32) -> bool) -> u32 {
        loop {
            let id = self.first + self.next;
            self.next = (self.next + 1) % self.count;
            if !is_used(id) {
                return id;
            }
        }
    }
}

/// A work queue with its completion queue, as CREATE_WQ_OBJ makes it.
#[derive(Clone, Copy, Debug)]
pub struct WqObject {
    /// Send or receive.
    pub kind: Kind,
    /// Id of the work queue.
    pub wq: u32,
    /// Id of the completion queue.
    pub cq: u32,
    /// The port.
    pub port: usize,
}

/// A port.
#[derive(Default)]
pub struct Vport {
    /// CONFIG_VPORT_TX was done.
    pub is_configured: bool,
    /// Where received packets go.
    pub steering: Steering,
    /// Speed limit of SET_BW_CLAMP, Mbit/s; 0 = none.
    pub clamp_mbps: u32,
}

/// Counters of the data path.
pub struct Counters {
    /// Frames put on the wire.
    pub tx_packets: Counter,
    /// Their bytes.
    pub tx_bytes: Counter,
    /// LSO packets.
    pub tx_lso_packets: Counter,
    /// Frames that they became.
    pub tx_lso_segments: Counter,
    /// Packets whose TCP or UDP checksum the device filled.
    pub tx_csum_packets: Counter,
    /// Packets that got a VLAN tag.
    pub tx_vlan_packets: Counter,
    /// Packets that were refused.
    pub tx_errors: Counter,
    /// Frames given to the driver.
    pub rx_packets: Counter,
    /// Their bytes.
    pub rx_bytes: Counter,
    /// Frames that found no WQE.
    pub rx_no_wqe: Counter,
    /// Frames that did not fit their buffer.
    pub rx_truncated: Counter,
    /// Frames for another address.
    pub rx_filtered: Counter,
    /// Frames longer than the adapter's MTU.
    pub rx_too_long: Counter,
    /// Frames for a port that does not receive.
    pub rx_disabled: Counter,
    /// CQEs that carry more than one packet.
    pub rx_coalesced_cqes: Counter,
    doorbell_cq: Counter,
    doorbell_eq: Counter,
    doorbell_dim: Counter,
    doorbell_hwc: Counter,
}

impl Counters {
    fn new(report: &Report) -> Self {
        Self {
            tx_packets: report.counter("tx_packets"),
            tx_bytes: report.counter("tx_bytes"),
            tx_lso_packets: report.counter("tx_lso_packets"),
            tx_lso_segments: report.counter("tx_lso_segments"),
            tx_csum_packets: report.counter("tx_csum_packets"),
            tx_vlan_packets: report.counter("tx_vlan_packets"),
            tx_errors: report.counter("tx_errors"),
            rx_packets: report.counter("rx_packets"),
            rx_bytes: report.counter("rx_bytes"),
            rx_no_wqe: report.counter("rx_no_wqe"),
            rx_truncated: report.counter("rx_truncated"),
            rx_filtered: report.counter("rx_filtered"),
            rx_too_long: report.counter("rx_too_long"),
            rx_disabled: report.counter("rx_disabled"),
            rx_coalesced_cqes: report.counter("rx_coalesced_cqes"),
            doorbell_cq: report.counter("doorbell_cq"),
            doorbell_eq: report.counter("doorbell_eq"),
            doorbell_dim: report.counter("doorbell_dim"),
            doorbell_hwc: report.counter("doorbell_hwc"),
        }
    }
}

/// The state of the device while an HWC is there.
pub struct Session {
    /// What the device offers.
    pub limits: Limits,
    /// Event and completion queues.
    pub events: Events,
    /// Send queues.
    pub sqs: WorkQueues,
    /// Receive queues.
    pub rqs: WorkQueues,
    /// DMA regions.
    pub regions: Regions,
    /// Objects by handle.
    pub objects: BTreeMap<u64, WqObject>,
    /// Ports by number.
    pub vports: Vec<Vport>,
    /// Statistics of the function.
    pub stats: GfStats,
    /// Capabilities of the driver; `None` before VERIFY_VF_DRIVER_VERSION.
    pub driver_caps: Option<u64>,
    /// REGISTER_DEVICE was done.
    pub is_registered: bool,
    /// Messages whose answer is delayed, oldest first.
    pub(crate) waiting: VecDeque<(Instant, Vec<u8>)>,
    /// Ids of new queues.
    pub ids: QueueIds,
    /// Counters.
    pub counters: Counters,
    /// When packets that wait for others of their batch are sent (knob `tx_batch`).
    pub(crate) tx_due: Option<Instant>,
    /// A frame being built.
    pub(crate) scratch: Vec<u8>,
    /// Received packets that wait for others of their CQE, at most one batch per queue.
    pub(crate) batches: Vec<Batch>,
}

/// Ids of new queues.
pub struct QueueIds {
    /// Of event queues.
    pub eq: Ids,
    /// Of completion queues.
    pub cq: Ids,
    /// Of send queues.
    pub sq: Ids,
    /// Of receive queues.
    pub rq: Ids,
    /// Of objects: never used twice.
    pub object: u64,
}

impl Session {
    /// The HWC that the driver asks for, and the events that tell the driver about it.
    pub fn establish(bus: &mut Bus, at: &Establish, ports: usize, stats: GfStats) -> Self {
        let report = bus.report.clone();
        let limits = Limits::new(&bus.knobs);
        for wire in &mut bus.wires {
            wire.set_max_frame(usize::from(limits.adapter_mtu) + VLAN_TAG);
        }
        let mut events = Events::new(&report);
        events.add_eq(
            hwc_id::EQ,
            Eq::new(Owner::Hwc, Ring::one_page(at.eq), at.vector),
        );
        events.add_cq(
            hwc_id::CQ,
            Cq::new(
                Owner::Hwc,
                Ring::one_page(at.cq),
                hwc_id::EQ,
                Moderation::default(),
            ),
        );
        let mut sqs = WorkQueues::new(&report, "sq");
        let mut rqs = WorkQueues::new(&report, "rq");
        let hwc_queue = |kind, page| {
            Wq::new(
                kind,
                Owner::Hwc,
                Ring::one_page(page),
                hwc_id::CQ,
                0,
                0,
                &report,
            )
        };
        sqs.add(hwc_id::SQ, hwc_queue(Kind::Sq, at.sq));
        rqs.add(hwc_id::RQ, hwc_queue(Kind::Rq, at.rq));
        events.event(
            bus,
            hwc_id::EQ,
            eqe::HWC_INIT_EQ_ID_DB,
            hwc_id::EQ | (hwc_id::DOORBELL << 16),
        );
        for (kind, value) in [
            (init_data::CQID, hwc_id::CQ),
            (init_data::RQID, hwc_id::RQ),
            (init_data::SQID, hwc_id::SQ),
            (init_data::QUEUE_DEPTH, hwc_id::DEPTH),
            (init_data::MAX_REQUEST, hwc_id::MAX_MESSAGE),
            (init_data::MAX_RESPONSE, hwc_id::MAX_MESSAGE),
            (init_data::MAX_NUM_CQS, MAX_NUM_CQS),
            (init_data::PDID, hwc_id::PDID),
            (init_data::GPA_MKEY, hwc_id::GPA_MKEY),
            (init_data::PF_DEST_RQ_ID, 0),
            (init_data::PF_DEST_CQ_ID, 0),
        ] {
            events.event(bus, hwc_id::EQ, eqe::HWC_INIT_DATA, value | (kind << 24));
        }
        events.event(bus, hwc_id::EQ, eqe::HWC_INIT_DONE, 0);
        if limits.command_timeout_ms != 0 {
            // 24 bits; for the commands before the driver asks.
            let timeout = limits.command_timeout_ms.min((1 << 24) - 1);
            let kind = reconfig::HWC_TIMEOUT << 24;
            events.event(bus, hwc_id::EQ, eqe::HWC_SOC_RECONFIG_DATA, kind | timeout);
        }
        Self {
            limits,
            events,
            sqs,
            rqs,
            regions: Regions::default(),
            objects: BTreeMap::new(),
            vports: (0..ports).map(|_| Vport::default()).collect(),
            stats,
            driver_caps: None,
            is_registered: false,
            waiting: VecDeque::new(),
            ids: QueueIds {
                eq: Ids::new(0x20, 0x1000),
                cq: Ids::new(0x40, MAX_NUM_CQS - 0x40),
                sq: Ids::new(0x2800, 0x4000),
                rq: Ids::new(0x1000, 0x4000),
                object: 0,
            },
            counters: Counters::new(&report),
            tx_due: None,
            scratch: Vec::new(),
            batches: Vec::new(),
        }
    }

    /// Tells how much there is that the driver made and has not taken back.
    pub(crate) fn tell_live(&self, report: &Report) {
        let eqs = self.events.eqs.values();
        let eqs = eqs.filter(|eq| eq.owner == Owner::Mana).count();
        let others = 1 + usize::from(self.is_registered);
        let live = eqs + self.objects.len() + self.regions.unused() + others;
        report.gauge("live_objects").set(live as u64);
    }

    /// A doorbell was rung on `page`.
    pub fn doorbell(&mut self, bus: &mut Bus, page: u32, doorbell: Doorbell) {
        let (owner, was_there, id, reserved) = match doorbell {
            Doorbell::Sq { id, reserved, .. } => (
                self.sqs.live.get(&id).map(|q| q.owner),
                self.sqs.was(id),
                id,
                reserved,
            ),
            Doorbell::Rq { id, .. } => (
                self.rqs.live.get(&id).map(|q| q.owner),
                self.rqs.was(id),
                id,
                0,
            ),
            Doorbell::Eq { id, reserved, .. } => (
                self.events.eqs.get(&id).map(|q| q.owner),
                self.events.was_eq(id),
                id,
                reserved,
            ),
            Doorbell::Cq { id, reserved, .. } | Doorbell::Dim { id, reserved, .. } => (
                self.events.cqs.get(&id).map(|q| q.owner),
                self.events.was_cq(id),
                id,
                reserved,
            ),
        };
        let place = || format!("page {page}, {doorbell:x?}");
        let Some(owner) = owner else {
            let rule = if was_there {
                &rules::DOORBELL_DESTROYED
            } else {
                &rules::DOORBELL_QUEUE
            };
            bus.report.violate(rule, place());
            return;
        };
        if page != owner.doorbell_page() {
            bus.report.violate(&rules::DOORBELL_PAGE, place());
            return;
        }
        if reserved != 0 {
            bus.report.violate(&rules::DOORBELL_RESERVED, place());
        }
        match (owner, &doorbell) {
            (Owner::Hwc, _) => self.counters.doorbell_hwc.add(1),
            (_, Doorbell::Cq { .. }) => self.counters.doorbell_cq.add(1),
            (_, Doorbell::Eq { .. }) => self.counters.doorbell_eq.add(1),
            (_, Doorbell::Dim { .. }) => self.counters.doorbell_dim.add(1),
            // Counted with the entries that they announce.
            (_, Doorbell::Sq { .. } | Doorbell::Rq { .. }) => {}
        }
        match doorbell {
            Doorbell::Sq { tail, .. } => self.sqs.doorbell(bus, id, tail),
            Doorbell::Rq { tail, wqe_cnt, .. } => {
                if wqe_cnt != 0 {
                    bus.report.violate(&rules::RQ_DOORBELL_COUNT, place());
                }
                self.rqs.doorbell(bus, id, tail);
            }
            Doorbell::Cq { tail, arm, .. } => self.events.cq_doorbell(bus, id, tail, arm),
            Doorbell::Eq { tail, arm, .. } => self.events.eq_doorbell(bus, id, tail, arm),
            Doorbell::Dim { usec, comps, .. } => {
                let Some(cq) = self.events.cqs.get_mut(&id).filter(|_| self.limits.dim) else {
                    bus.report.violate(&rules::DIM_UNSUPPORTED, place());
                    return;
                };
                cq.moderation.usec = usec.unwrap_or(cq.moderation.usec);
                cq.moderation.comps = comps.unwrap_or(cq.moderation.comps);
            }
        }
    }

    /// Does all work that was announced.
    pub fn work(&mut self, bus: &mut Bus) {
        self.serve_messages(bus);
        self.transmit(bus);
        self.flush_coalesced(bus);
    }

    /// Reports what is due; returns when the next is.
    pub fn tick(&mut self, bus: &mut Bus, now: Instant) -> Option<Instant> {
        self.serve_waiting(bus, now);
        self.work(bus);
        let next_event = self.events.tick(bus, now);
        let next_message = self.waiting.front().map(|(due, _)| *due);
        let deadlines = [next_event, next_message, self.tx_due];
        deadlines.into_iter().flatten().min()
    }
}
