// SPDX-License-Identifier: GPL-2.0
//! Send and receive queues: doorbells, and the work queue entries that they announce.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use nic::{Bus, Counter, Report, Rule};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::{
    abi::{Sge, WqeHeader, MAX_RQE_SIZE, MAX_SQE_SIZE, OOB_LARGE, OOB_SMALL, WQE_BU},
    events::Owner,
    ring::Ring,
    rules,
};

/// A decoded work queue entry.
pub struct Wqe {
    /// Free-running byte position in the ring.
    pub position: u32,
    /// Size in the ring, bytes.
    pub size: u32,
    /// Its header.
    pub header: WqeHeader,
    /// Inline OOB; zero where the entry has less.
    pub oob: [u8; OOB_LARGE as usize],
    /// Its memory.
    pub sges: Vec<Sge>,
    /// Breaks a rule: the memory must not be used.
    pub is_broken: bool,
}

impl Wqe {
    /// Bytes of all elements together.
    pub fn data_len(&self) -> usize {
        self.sges.iter().map(|sge| sge.size.get() as usize).sum()
    }
}

/// Send or receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Send queue.
    Sq,
    /// Receive queue.
    Rq,
}

impl Kind {
    fn max_wqe(self) -> u32 {
        match self {
            Self::Sq => MAX_SQE_SIZE,
            Self::Rq => MAX_RQE_SIZE,
        }
    }
}

/// Per-queue counters of one work queue.
pub struct WqCounters {
    /// Packets sent or received.
    pub packets: Counter,
}

/// A send or receive queue.
pub struct Wq {
    /// Send or receive.
    pub kind: Kind,
    /// Device that it belongs to.
    pub owner: Owner,
    /// Its completion queue.
    pub cq: u32,
    /// Port that it sends to or receives from.
    pub port: usize,
    /// Number of the queue among those of its kind on the port.
    pub index: usize,
    /// Entries that the driver announced and the device did not use yet.
    pub posted: VecDeque<Wqe>,
    /// Counters.
    pub counters: WqCounters,
    ring: Ring,
    /// Position that the last doorbell announced.
    announced: u32,
    /// Position up to which the device used entries.
    consumed: u32,
}

impl Wq {
    /// A new, empty queue; its entries must name memory with the key of `owner`.
    pub fn new(
        kind: Kind,
        owner: Owner,
        ring: Ring,
        cq: u32,
        port: usize,
        index: usize,
        report: &Report,
    ) -> Self {
        let name = match (owner, kind) {
            (Owner::Hwc, Kind::Sq) => "hwc_tx_messages".to_owned(),
            (Owner::Hwc, Kind::Rq) => "hwc_rx_messages".to_owned(),
            (Owner::Mana, Kind::Sq) => format!("port{port}_txq{index}_packets"),
            (Owner::Mana, Kind::Rq) => format!("port{port}_rxq{index}_packets"),
        };
        let counters = WqCounters {
            packets: report.counter(name),
        };
        Self {
            kind,
            owner,
            cq,
            port,
            index,
            posted: VecDeque::new(),
            counters,
            ring,
            announced: 0,
            consumed: 0,
        }
    }

    /// Its memory.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Byte position inside the ring.
    pub fn offset(&self, position: u32) -> u32 {
        position & (self.ring.size() - 1)
    }

    /// Takes the next entry; its room is the driver's again.
    pub fn consume(&mut self) -> Option<Wqe> {
        let wqe = self.posted.pop_front()?;
        self.consumed = wqe.position.wrapping_add(wqe.size);
        Some(wqe)
    }

    /// The driver announced entries up to `tail`. Decodes them; returns how many there are.
    fn announce(&mut self, bus: &Bus, id: u32, tail: u32) -> usize {
        let break_rule = |rule: &'static Rule| {
            bus.report.violate(
                rule,
                format_args!(
                    "{:?} {id}, from {:#x} to {tail:#x}",
                    self.kind, self.announced
                ),
            );
            0
        };
        if tail % WQE_BU != 0 {
            return break_rule(&rules::WQ_DOORBELL_ALIGN);
        }
        if tail.wrapping_sub(self.announced) > u32::MAX / 2 {
            return break_rule(&rules::WQ_DOORBELL_BACKWARD);
        }
        if tail.wrapping_sub(self.consumed) > self.ring.size() {
            return break_rule(&rules::WQ_DOORBELL_OVERRUN);
        }
        let before = self.posted.len();
        let mut at = self.announced;
        while at != tail {
            let Some(wqe) = self.decode(bus, id, at) else {
                break;
            };
            if wqe.size > tail.wrapping_sub(at) {
                break_rule(&rules::WQ_DOORBELL_PARTIAL);
                break;
            }
            at = at.wrapping_add(wqe.size);
            self.posted.push_back(wqe);
        }
        self.announced = tail;
        self.posted.len() - before
    }

    /// Reads the entry at a position and checks what does not depend on its use; `None` if its memory is gone.
    fn decode(&self, bus: &Bus, id: u32, position: u32) -> Option<Wqe> {
        let mut unit = [0; WQE_BU as usize];
        self.ring.read(&bus.dma, position, &mut unit).ok()?;
        let (header, _) = WqeHeader::read_from_prefix(&unit).ok()?;
        let mut wqe = Wqe {
            position,
            size: header.wqe_size(),
            header,
            oob: [0; OOB_LARGE as usize],
            sges: Vec::new(),
            is_broken: false,
        };
        let mut break_rule = |rule: &'static Rule| {
            wqe.is_broken = true;
            bus.report.violate(
                rule,
                format_args!("{:?} {id} at {position:#x}: {header:x?}", self.kind),
            );
        };
        if header.num_sge() == 0 || wqe.size > self.kind.max_wqe() {
            break_rule(&rules::WQE_SIZE);
            return Some(wqe);
        }
        if header.reserved() != 0 {
            break_rule(&rules::WQE_RESERVED);
        }
        let oob_size = header.inline_oob_size();
        let has_oob_size = match (self.owner, self.kind) {
            (_, Kind::Rq) => oob_size == OOB_SMALL,
            (Owner::Hwc, Kind::Sq) => oob_size == OOB_LARGE,
            (Owner::Mana, Kind::Sq) => oob_size == OOB_SMALL || oob_size == OOB_LARGE,
        };
        if !has_oob_size {
            break_rule(&rules::WQE_OOB_SIZE);
            return Some(wqe);
        }
        let has_lso_fields =
            header.oob_in_sgl() || header.client_data_unit() != 0 || header.last_vbytes() != 0;
        if self.kind == Kind::Rq && has_lso_fields {
            break_rule(&rules::RQE_LSO);
        }
        let mut sges = vec![Sge::new_zeroed(); header.num_sge() as usize];
        self.ring
            .read(
                &bus.dma,
                position.wrapping_add(8 + oob_size),
                sges.as_mut_bytes(),
            )
            .ok()?;
        if sges
            .iter()
            .any(|sge| sge.mem_key.get() != self.owner.mem_key())
        {
            break_rule(&rules::SGE_KEY);
        }
        if sges.iter().any(|sge| sge.size.get() == 0) {
            break_rule(&rules::SGE_EMPTY);
        }
        wqe.oob[..oob_size as usize].copy_from_slice(&unit[8..8 + oob_size as usize]);
        wqe.sges = sges;
        Some(wqe)
    }
}

/// All queues of one kind.
pub struct WorkQueues {
    /// Queues by id.
    pub live: BTreeMap<u32, Wq>,
    destroyed: BTreeSet<u32>,
    wqes: Counter,
    doorbells: Counter,
    empty_doorbells: Counter,
    most_announced: Counter,
}

impl WorkQueues {
    /// No queues; `name` is "sq" or "rq".
    pub fn new(report: &Report, name: &str) -> Self {
        Self {
            live: BTreeMap::new(),
            destroyed: BTreeSet::new(),
            wqes: report.counter(format!("{name}_wqes")),
            doorbells: report.counter(format!("doorbell_{name}")),
            empty_doorbells: report.counter(format!("doorbell_{name}_empty")),
            most_announced: report.counter(format!("{name}_wqes_per_doorbell_max")),
        }
    }

    /// Adds a queue under a free id.
    pub fn add(&mut self, id: u32, wq: Wq) {
        self.destroyed.remove(&id);
        self.live.insert(id, wq);
    }

    /// Removes a queue.
    pub fn remove(&mut self, id: u32) -> Option<Wq> {
        self.destroyed.insert(id);
        self.live.remove(&id)
    }

    /// Whether a queue of this id was there once.
    pub fn was(&self, id: u32) -> bool {
        self.destroyed.contains(&id)
    }

    /// The driver announced entries of a live queue up to `tail`.
    pub fn doorbell(&mut self, bus: &Bus, id: u32, tail: u32) {
        let Some(wq) = self.live.get_mut(&id) else {
            return;
        };
        let count = wq.announce(bus, id, tail) as u64;
        if wq.owner == Owner::Hwc {
            return;
        }
        self.doorbells.add(1);
        self.wqes.add(count);
        if count == 0 {
            self.empty_doorbells.add(1);
        }
        self.most_announced
            .set(self.most_announced.get().max(count));
    }
}
