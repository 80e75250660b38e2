// SPDX-License-Identifier: GPL-2.0
//! Event and completion queues: entries with owner bits, arming, interrupts, moderation.
//!
//! The order of things: a CQE goes to its CQ; if the CQ is armed, an EQE goes to its EQ and the CQ is disarmed;
//! if the EQ is armed, the MSI-X vector is raised and the EQ is disarmed. Arming with an index that is behind
//! the entries already written fires at once. So each arming gives at most one event.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use nic::{
    fuzz::{Fate, Layout},
    Bus, Counter, Report,
};
use zerocopy::IntoBytes;

use crate::{
    abi::{
        eqe, Cqe, Eqe, CQE_LAYOUT, CQE_SIZE, EQE_LAYOUT, EQE_SIZE, HWC_CQE_LAYOUT, HWC_EQE_LAYOUT,
        OWNER_WRAPS,
    },
    ring::Ring,
    rules,
    session::{hwc_id, mana_id},
};

/// The device that a queue belongs to, which decides its doorbell page, protection domain and memory key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The hardware channel.
    Hwc,
    /// The Ethernet device.
    Mana,
}

impl Owner {
    /// Memory key that its work queue entries must use.
    pub fn mem_key(self) -> u32 {
        match self {
            Self::Hwc => hwc_id::GPA_MKEY,
            Self::Mana => mana_id::GPA_MKEY,
        }
    }

    /// Doorbell page of its queues.
    pub fn doorbell_page(self) -> u32 {
        match self {
            Self::Hwc => hwc_id::DOORBELL,
            Self::Mana => mana_id::DOORBELL,
        }
    }
}

/// Positions in a ring whose entries carry owner bits: indexes run freely, and begin one wrap in, because an
/// owner value of 0 is what zeroed memory holds.
struct Positions {
    entries: u64,
    /// Next entry that the device writes.
    head: u64,
    /// Next entry that the driver reads, as its last doorbell said.
    tail: u64,
}

/// Why a consumer index of a doorbell was refused.
enum BadIndex {
    Range,
    Ahead,
}

impl Positions {
    fn new(entries: u32) -> Self {
        let entries = u64::from(entries);
        Self {
            entries,
            head: entries,
            tail: entries,
        }
    }

    fn owner(&self) -> u32 {
        (self.head / self.entries % u64::from(OWNER_WRAPS)) as u32
    }

    fn slot(&self) -> u32 {
        (self.head % self.entries) as u32
    }

    fn pending(&self) -> u64 {
        self.head - self.tail
    }

    fn consumed(&mut self, index: u32) -> Result<(), BadIndex> {
        let modulo = self.entries * u64::from(OWNER_WRAPS);
        if u64::from(index) >= modulo {
            return Err(BadIndex::Range);
        }
        let step = (u64::from(index) + modulo - self.tail % modulo) % modulo;
        if step > self.pending() {
            return Err(BadIndex::Ahead);
        }
        self.tail += step;
        Ok(())
    }
}

/// An event queue.
pub struct Eq {
    /// Device that it belongs to.
    pub owner: Owner,
    ring: Ring,
    positions: Positions,
    armed: bool,
    vector: u16,
    /// What a lying device tells behind the next event.
    held: Option<(u8, u32)>,
}

impl Eq {
    /// A new queue. It is armed: the driver learns its doorbell from its first events.
    pub fn new(owner: Owner, ring: Ring, vector: u16) -> Self {
        let positions = Positions::new(ring.size() / EQE_SIZE);
        Self {
            owner,
            ring,
            positions,
            armed: true,
            vector,
            held: None,
        }
    }

    /// Its memory.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }
}

/// What an event of a type is to the fuzzer, on an EQ of `owner`.
fn eq_layout(owner: Owner, kind: u8) -> &'static Layout {
    match (owner, kind) {
        (Owner::Hwc, eqe::COMPLETION) => &HWC_EQE_LAYOUT,
        _ => &EQE_LAYOUT,
    }
}

/// When a CQ's event is posted after its first completion.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moderation {
    /// Delay, us; 0 = none.
    pub usec: u32,
    /// Completions that end the delay; 0 = only time does.
    pub comps: u32,
}

/// A completion queue.
pub struct Cq {
    /// Device that it belongs to.
    pub owner: Owner,
    ring: Ring,
    positions: Positions,
    armed: bool,
    eq: u32,
    /// Moderation of its events.
    pub moderation: Moderation,
    /// Armed and moderated: completions so far, and when the event is due.
    moderated: Option<(u32, Instant)>,
    /// What a lying device reports behind the next completion.
    held: Option<Cqe>,
}

impl Cq {
    /// A new queue. The HWC's is armed; all others wait for the driver's first doorbell.
    pub fn new(owner: Owner, ring: Ring, eq: u32, moderation: Moderation) -> Self {
        let positions = Positions::new(ring.size() / CQE_SIZE);
        Self {
            owner,
            ring,
            positions,
            armed: owner == Owner::Hwc,
            eq,
            moderation,
            moderated: None,
            held: None,
        }
    }

    /// Its memory.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    fn layout(&self) -> &'static Layout {
        match self.owner {
            Owner::Hwc => &HWC_CQE_LAYOUT,
            Owner::Mana => &CQE_LAYOUT,
        }
    }

    /// The EQ that it reports to.
    pub fn eq(&self) -> u32 {
        self.eq
    }
}

/// A completion that was not reported yet.
struct Delayed {
    due: Instant,
    cq: u32,
    cqe: Cqe,
}

struct Counters {
    cqes: Counter,
    eqes: Counter,
    dropped: Counter,
    arms: Counter,
    moderated: Counter,
}

/// All event and completion queues.
pub struct Events {
    /// Event queues by id.
    pub eqs: BTreeMap<u32, Eq>,
    /// Completion queues by id.
    pub cqs: BTreeMap<u32, Cq>,
    destroyed_eqs: BTreeSet<u32>,
    destroyed_cqs: BTreeSet<u32>,
    delayed: VecDeque<Delayed>,
    counters: Counters,
}

impl Events {
    /// No queues.
    pub fn new(report: &Report) -> Self {
        let counters = Counters {
            cqes: report.counter("cqes"),
            eqes: report.counter("eqes"),
            dropped: report.counter("dropped_completions"),
            arms: report.counter("cq_arms"),
            moderated: report.counter("moderated_events"),
        };
        Self {
            eqs: BTreeMap::new(),
            cqs: BTreeMap::new(),
            destroyed_eqs: BTreeSet::new(),
            destroyed_cqs: BTreeSet::new(),
            delayed: VecDeque::new(),
            counters,
        }
    }

    /// Adds an EQ under a free id.
    pub fn add_eq(&mut self, id: u32, eq: Eq) {
        self.destroyed_eqs.remove(&id);
        self.eqs.insert(id, eq);
    }

    /// Adds a CQ under a free id.
    pub fn add_cq(&mut self, id: u32, cq: Cq) {
        self.destroyed_cqs.remove(&id);
        self.cqs.insert(id, cq);
    }

    /// Removes an EQ.
    pub fn remove_eq(&mut self, id: u32) -> Option<Eq> {
        self.destroyed_eqs.insert(id);
        self.eqs.remove(&id)
    }

    /// Removes a CQ; what it did not report is lost.
    pub fn remove_cq(&mut self, id: u32) -> Option<Cq> {
        self.destroyed_cqs.insert(id);
        self.delayed.retain(|delayed| delayed.cq != id);
        self.cqs.remove(&id)
    }

    /// Whether the driver wants an event for the next completion of a CQ.
    pub fn is_armed(&self, cq: u32) -> bool {
        self.cqs.get(&cq).is_some_and(|cq| cq.armed)
    }

    /// Number of completions of a CQ that are still to be reported.
    pub fn unreported(&self, cq: u32) -> usize {
        self.delayed
            .iter()
            .filter(|delayed| delayed.cq == cq)
            .count()
    }

    /// Whether an EQ of this id was there once.
    pub fn was_eq(&self, id: u32) -> bool {
        self.destroyed_eqs.contains(&id)
    }

    /// Whether a CQ of this id was there once.
    pub fn was_cq(&self, id: u32) -> bool {
        self.destroyed_cqs.contains(&id)
    }

    /// Reports a completion: at once, later, or never, as the knobs say. The HWC's are always reported at once.
    pub fn complete(&mut self, bus: &mut Bus, cq: u32, data: &[u8], wq: u32, is_sq: bool) {
        let cqe = Cqe::new(data, wq, is_sq, 0);
        let is_hwc = self.cqs.get(&cq).is_some_and(|cq| cq.owner == Owner::Hwc);
        if !is_hwc {
            if bus.knobs.drop_completion() {
                self.counters.dropped.add(1);
                return;
            }
            let delay = bus.knobs.completion_delay;
            if !delay.is_zero() || self.delayed.iter().any(|delayed| delayed.cq == cq) {
                self.delayed.push_back(Delayed {
                    due: Instant::now() + delay,
                    cq,
                    cqe,
                });
                return;
            }
        }
        self.put_cqe(bus, cq, cqe);
    }

    /// Reports a completion now, as often as the fuzzer wants it.
    fn put_cqe(&mut self, bus: &mut Bus, id: u32, cqe: Cqe) {
        let Some(cq) = self.cqs.get_mut(&id) else {
            return;
        };
        let held = cq.held.take();
        match bus.knobs.fuzz.fate(&bus.report, cq.layout().kind) {
            Fate::Once => self.write_cqe(bus, id, cqe),
            Fate::Never => {}
            Fate::Twice => {
                self.write_cqe(bus, id, cqe);
                self.write_cqe(bus, id, cqe);
            }
            Fate::Later => cq.held = Some(cqe),
        }
        if let Some(held) = held {
            self.write_cqe(bus, id, held);
        }
    }

    fn write_cqe(&mut self, bus: &mut Bus, id: u32, mut cqe: Cqe) {
        let Some(cq) = self.cqs.get_mut(&id) else {
            return;
        };
        let positions = &mut cq.positions;
        if positions.pending() >= positions.entries * u64::from(OWNER_WRAPS) {
            bus.report.violate(
                &rules::CQ_EIGHT_WRAPS,
                format_args!("CQ {id}, {} entries", positions.entries),
            );
        }
        cqe.info = (cqe.info.get() | (positions.owner() << 29)).into();
        let at = positions.slot() * CQE_SIZE;
        positions.head += 1;
        let layout = cq.layout();
        if cq
            .ring
            .write_entry(bus, layout, at, cqe.as_bytes())
            .is_err()
        {
            return;
        }
        self.counters.cqes.add(1);
        if !cq.armed {
            return;
        }
        let Moderation { usec, comps } = cq.moderation;
        if usec != 0 {
            let wait = Duration::from_micros(usec.into());
            let (count, _) = cq
                .moderated
                .get_or_insert_with(|| (0, Instant::now() + wait));
            *count += 1;
            if comps == 0 || *count < comps {
                return;
            }
        }
        self.fire_cq(bus, id);
    }

    /// Posts the event of an armed CQ.
    fn fire_cq(&mut self, bus: &mut Bus, id: u32) {
        let Some(cq) = self.cqs.get_mut(&id) else {
            return;
        };
        cq.armed = false;
        if cq.moderated.take().is_some() {
            self.counters.moderated.add(1);
        }
        let eq = cq.eq;
        self.event(bus, eq, eqe::COMPLETION, id);
    }

    /// Posts an event with one word of detail; raises the vector if the EQ is armed.
    pub fn event(&mut self, bus: &mut Bus, id: u32, kind: u8, detail: u32) {
        let Some(eq) = self.eqs.get_mut(&id) else {
            return;
        };
        let held = eq.held.take();
        match bus
            .knobs
            .fuzz
            .fate(&bus.report, eq_layout(eq.owner, kind).kind)
        {
            Fate::Once => self.write_eqe(bus, id, kind, detail),
            Fate::Never => {}
            Fate::Twice => {
                self.write_eqe(bus, id, kind, detail);
                self.write_eqe(bus, id, kind, detail);
            }
            Fate::Later => eq.held = Some((kind, detail)),
        }
        if let Some((kind, detail)) = held {
            self.write_eqe(bus, id, kind, detail);
        }
    }

    fn write_eqe(&mut self, bus: &mut Bus, id: u32, kind: u8, detail: u32) {
        let Some(eq) = self.eqs.get_mut(&id) else {
            return;
        };
        let positions = &mut eq.positions;
        if positions.pending() >= positions.entries {
            bus.report.violate(
                &rules::EQ_OVERFLOW,
                format_args!("EQ {id}, {} entries", positions.entries),
            );
            return;
        }
        let entry = Eqe::new(kind, detail, positions.owner());
        let layout = eq_layout(eq.owner, kind);
        let at = positions.slot() * EQE_SIZE;
        positions.head += 1;
        if eq
            .ring
            .write_entry(bus, layout, at, entry.as_bytes())
            .is_err()
        {
            return;
        }
        self.counters.eqes.add(1);
        if eq.armed {
            eq.armed = false;
            bus.irq.raise(eq.vector);
        }
    }

    /// A CQ doorbell: the driver consumed entries, and may want an event for the next one.
    pub fn cq_doorbell(&mut self, bus: &mut Bus, id: u32, index: u32, arm: bool) {
        let Some(cq) = self.cqs.get_mut(&id) else {
            return;
        };
        if let Err(bad) = cq.positions.consumed(index) {
            let rule = match bad {
                BadIndex::Range => &rules::CQ_DOORBELL_INDEX,
                BadIndex::Ahead => &rules::CQ_DOORBELL_AHEAD,
            };
            bus.report
                .violate(rule, format_args!("CQ {id}, index {index}"));
            return;
        }
        if !arm {
            return;
        }
        self.counters.arms.add(1);
        cq.armed = true;
        if cq.positions.pending() > 0 {
            self.fire_cq(bus, id);
        }
    }

    /// An EQ doorbell: the driver consumed entries, and may want an interrupt for the next one.
    pub fn eq_doorbell(&mut self, bus: &mut Bus, id: u32, index: u32, arm: bool) {
        let Some(eq) = self.eqs.get_mut(&id) else {
            return;
        };
        if let Err(bad) = eq.positions.consumed(index) {
            let rule = match bad {
                BadIndex::Range => &rules::EQ_DOORBELL_INDEX,
                BadIndex::Ahead => &rules::EQ_DOORBELL_AHEAD,
            };
            bus.report
                .violate(rule, format_args!("EQ {id}, index {index}"));
            return;
        }
        if !arm {
            return;
        }
        eq.armed = eq.positions.pending() == 0;
        if !eq.armed {
            bus.irq.raise(eq.vector);
        }
    }

    /// Reports what is due; returns when the next is.
    pub fn tick(&mut self, bus: &mut Bus, now: Instant) -> Option<Instant> {
        while self
            .delayed
            .front()
            .is_some_and(|delayed| delayed.due <= now)
        {
            if let Some(delayed) = self.delayed.pop_front() {
                self.put_cqe(bus, delayed.cq, delayed.cqe);
            }
        }
        let due = |cq: &Cq| cq.moderated.map(|(_, due)| due);
        let late: Vec<u32> = self
            .cqs
            .iter()
            .filter(|(_, cq)| due(cq).is_some_and(|at| at <= now))
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            self.fire_cq(bus, id);
        }
        let next_event = self.cqs.values().filter_map(due).min();
        self.delayed
            .front()
            .map(|delayed| delayed.due)
            .into_iter()
            .chain(next_event)
            .min()
    }
}
