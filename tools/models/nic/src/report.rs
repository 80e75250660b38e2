// SPDX-License-Identifier: GPL-2.0
//! Counters and violations: what a test reads to learn what the driver did.
//!
//! A [`Report`] is a cheap handle: every part of a model holds a clone of it. It belongs to the one
//! thread of the event loop.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fmt::Display,
    rc::Rc,
};

use serde_json::{json, Value};

/// Something that a driver must never do.
///
/// Declared with [`rules!`](crate::rules), which also puts it into a list, so that a test can see each one provoked.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Short name, unique over the common rules and those of one model, e.g. `dma-unmapped`.
    pub name: &'static str,
    /// What was done wrong, as a sentence.
    pub what: &'static str,
}

/// Declares violation rules and the list of them.
///
/// ```
/// nic::rules! {
///     /// Rules of this model.
///     pub RULES:
///     DOORBELL_RANGE = "doorbell-range", "a doorbell was rung for a queue that does not exist";
/// }
/// assert_eq!(RULES[0].name, "doorbell-range");
/// ```
#[macro_export]
macro_rules! rules {
    ($(#[$meta:meta])* $vis:vis $list:ident: $($id:ident = $name:literal, $what:literal;)+) => {
        $(
            #[doc = $what]
            $vis static $id: $crate::report::Rule = $crate::report::Rule { name: $name, what: $what };
        )+
        $(#[$meta])*
        $vis static $list: &[&$crate::report::Rule] = &[$(&$id),+];
    };
}

/// How many different places are kept for each rule.
const PLACES: usize = 16;

struct Violations {
    rule: &'static Rule,
    count: u64,
    places: Vec<String>,
}

/// One counter of a [`Report`], for hot paths: no lookup by name.
#[derive(Clone, Default)]
pub struct Counter(Rc<Cell<u64>>);

impl Counter {
    /// Adds to the counter.
    pub fn add(&self, n: u64) {
        self.0.set(self.0.get().wrapping_add(n));
    }

    /// Sets a value that goes up and down (a gauge).
    pub fn set(&self, n: u64) {
        self.0.set(n);
    }

    /// The value now.
    pub fn get(&self) -> u64 {
        self.0.get()
    }
}

#[derive(Default)]
struct Inner {
    counters: BTreeMap<Cow<'static, str>, Counter>,
    gauges: BTreeMap<Cow<'static, str>, Counter>,
    violations: BTreeMap<&'static str, Violations>,
    is_excused: bool,
    has_lied: bool,
}

/// Handle to the counters and violations of one model process.
#[derive(Clone, Default)]
pub struct Report(Rc<RefCell<Inner>>);

impl Report {
    /// The counter of this name, made at its first use.
    pub fn counter(&self, name: impl Into<Cow<'static, str>>) -> Counter {
        self.0
            .borrow_mut()
            .counters
            .entry(name.into())
            .or_default()
            .clone()
    }

    /// A value that goes up and down; [`clear`](Self::clear) leaves it alone.
    pub fn gauge(&self, name: impl Into<Cow<'static, str>>) -> Counter {
        self.0
            .borrow_mut()
            .gauges
            .entry(name.into())
            .or_default()
            .clone()
    }

    /// Adds to the counter of this name. Hot paths keep a [`Counter`] instead.
    pub fn add(&self, name: impl Into<Cow<'static, str>>, n: u64) {
        self.counter(name).add(n);
    }

    /// The value of a counter or gauge; 0 if it was never used.
    pub fn get(&self, name: &str) -> u64 {
        let inner = self.0.borrow();
        inner
            .counters
            .get(name)
            .or_else(|| inner.gauges.get(name))
            .map_or(0, Counter::get)
    }

    /// From here on, until this is taken back, the driver is excused: the device itself has failed or has lied, and a
    /// driver that believed it breaks rules, just as one that stopped the device's DMA for it. What the driver must
    /// never do, whatever the device does, still counts: the other [common rules](crate::RULES).
    pub fn excuse(&self, is_excused: bool) {
        let mut inner = self.0.borrow_mut();
        inner.is_excused = is_excused;
        inner.has_lied &= is_excused;
    }

    /// The device has lied about what it did, on purpose: until [`excuse`](Self::excuse) is taken back, the driver is
    /// excused for all. It unmaps what the device says that it is done with.
    pub fn lie(&self) {
        let mut inner = self.0.borrow_mut();
        inner.is_excused = true;
        inner.has_lied = true;
    }

    /// Whether the device has lied and that still counts.
    pub fn has_lied(&self) -> bool {
        self.0.borrow().has_lied
    }

    fn excuses(&self, rule: &Rule) -> bool {
        let inner = self.0.borrow();
        let is_common = *rule != crate::DMA_BUS_MASTER_OFF && crate::RULES.contains(&rule);
        inner.is_excused && (inner.has_lied || !is_common)
    }

    /// Records that the driver broke `rule`; `place` says where (address, length, queue, ...).
    pub fn violate(&self, rule: &'static Rule, place: impl Display) {
        if self.excuses(rule) {
            self.add("excused_violations", 1);
            self.add(format!("excused.{}", rule.name), 1);
            return;
        }
        let mut inner = self.0.borrow_mut();
        let seen = inner
            .violations
            .entry(rule.name)
            .or_insert_with(|| Violations {
                rule,
                count: 0,
                places: Vec::new(),
            });
        seen.count += 1;
        if seen.places.len() < PLACES {
            let place = place.to_string();
            eprintln!("violation {}: {} ({place})", rule.name, rule.what);
            if !seen.places.contains(&place) {
                seen.places.push(place);
            }
        }
    }

    /// How often `rule` was broken.
    pub fn violations(&self, rule: &Rule) -> u64 {
        self.0
            .borrow()
            .violations
            .get(rule.name)
            .map_or(0, |v| v.count)
    }

    /// Sets all counters to 0; gauges and violations stay.
    pub fn clear_counters(&self) {
        for counter in self.0.borrow().counters.values() {
            counter.set(0);
        }
    }

    /// Forgets all violations (for raw tests, which provoke one after the other).
    pub fn clear_violations(&self) {
        self.0.borrow_mut().violations.clear();
    }

    /// Counters, gauges and violations as JSON.
    pub fn json(&self) -> Value {
        let inner = self.0.borrow();
        let values = |map: &BTreeMap<Cow<'static, str>, Counter>| -> Value {
            map.iter()
                .map(|(name, counter)| (name.to_string(), json!(counter.get())))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let violations: Vec<Value> = inner
            .violations
            .values()
            .map(|v| json!({"rule": v.rule.name, "what": v.rule.what, "where": v.places, "count": v.count}))
            .collect();
        json!({"counters": values(&inner.counters), "gauges": values(&inner.gauges), "violations": violations})
    }
}
