// SPDX-License-Identifier: GPL-2.0
//! A device that lies: seeded mutations of what it writes to guest memory and of what registers read as.
//!
//! A model tells of each write what it is ([`Layout`]), so that lies are well aimed; what it writes without
//! telling (the bytes of packets, which anyone on the wire can choose) is never changed. The addresses of writes
//! never change either: a lie reaches no memory but that which the device was given.

use std::{collections::VecDeque, thread::sleep, time::Duration};

use crate::{DmaError, GuestDma, Report};

/// A small generator (splitmix64): the same numbers for the same seed, and any seed will do.
#[derive(Clone, Debug, Default)]
pub struct Random(u64);

impl Random {
    /// The generator that starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    #[allow(
        clippy::should_implement_trait,
        reason = "it never ends: no iterator is needed"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// What a device writes or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Entry of a completion queue, or whatever tells the driver that work is done.
    Completion,
    /// Entry of an event queue.
    Event,
    /// Answer to a command, statistics included, and whatever tells the driver that it is there.
    Command,
    /// Value of a register.
    Register,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Completion, Self::Event, Self::Command, Self::Register];

    fn name(self) -> &'static str {
        match self {
            Self::Completion => "completion",
            Self::Event => "event",
            Self::Command => "command",
            Self::Register => "register",
        }
    }
}

/// Bits of an entry, counted from the lowest bit of its first byte; at most 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// First bit.
    pub first: usize,
    /// Number of bits.
    pub width: usize,
}

impl Field {
    /// The field of `width` bits from bit `first` on.
    pub const fn new(first: usize, width: usize) -> Self {
        assert!(width > 0 && width <= 64);
        Self { first, width }
    }

    fn max(self) -> u64 {
        u64::MAX >> (64 - self.width)
    }

    fn fits(self, entry: &[u8]) -> bool {
        self.first + self.width <= entry.len() * 8
    }

    fn get(self, entry: &[u8]) -> u64 {
        (0..self.width).fold(0, |value, n| {
            let bit = self.first + n;
            value | (u64::from((entry[bit / 8] >> (bit % 8)) & 1) << n)
        })
    }

    fn set(self, entry: &mut [u8], value: u64) {
        for n in 0..self.width {
            let bit = self.first + n;
            let mask = 1 << (bit % 8);
            if (value >> n) & 1 != 0 {
                entry[bit / 8] |= mask;
            } else {
                entry[bit / 8] &= !mask;
            }
        }
    }
}

/// What a write is, and where its lengths, indices, ids and types are.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// What it is.
    pub kind: Kind,
    /// What the driver looks at. Bits of no field are hit too, but less often.
    pub fields: &'static [Field],
    /// What tells the driver that the entry is there; written last, with all that follows in the entry.
    pub owner: Option<Field>,
}

/// How often an entry is put into its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Once, as it should be.
    Once,
    /// Not at all.
    Never,
    /// Twice.
    Twice,
    /// Once, behind the next one of the queue.
    Later,
}

/// What happens to one write.
#[derive(Clone, Copy, Debug)]
enum Mutation {
    /// One bit of a field.
    Flip,
    /// A field is 0.
    Zero,
    /// A field is all ones.
    Ones,
    /// A field is one more or less.
    OffByOne,
    /// A field has a value that the entry cannot mean: beyond every length and index.
    Large,
    /// A field is anything.
    Any,
    /// The owner bits are ahead of their time.
    Owner,
    /// An older entry instead, most often as if it were new.
    Replay,
    /// The place of the entry is left as it is.
    Gap,
    /// The owner bits are there before the rest.
    Early,
}

impl Mutation {
    /// All, and those of a value alone first.
    const ALL: [Self; 10] = [
        Self::Flip,
        Self::Zero,
        Self::Ones,
        Self::OffByOne,
        Self::Large,
        Self::Any,
        Self::Owner,
        Self::Replay,
        Self::Gap,
        Self::Early,
    ];
    const OF_VALUES: usize = 6;

    fn name(self) -> &'static str {
        match self {
            Self::Flip => "flip",
            Self::Zero => "zero",
            Self::Ones => "ones",
            Self::OffByOne => "off_by_one",
            Self::Large => "large",
            Self::Any => "any",
            Self::Owner => "owner",
            Self::Replay => "replay",
            Self::Gap => "gap",
            Self::Early => "early",
        }
    }
}

/// Older entries that are kept of each kind.
const HISTORY: usize = 64;
/// Fates are this many times less frequent than mutations.
const FATES: u64 = 4;
/// Between the owner bits of an entry and the rest that comes too late.
const EARLY: Duration = Duration::from_micros(50);

#[derive(Debug)]
struct Setting {
    text: String,
    /// One write in this many is changed.
    rate: u64,
    kinds: [bool; Kind::ALL.len()],
    /// The one mutation that was asked for, if it was.
    only: Option<Mutation>,
}

/// The knob `fuzz=SEED:RATE[:KIND+KIND...[:MUTATION]]`, and the state behind it.
#[derive(Debug, Default)]
pub struct Fuzz {
    setting: Option<Setting>,
    random: Random,
    history: [VecDeque<Vec<u8>>; Kind::ALL.len()],
}

impl Fuzz {
    /// Starts anew as `text` says; an empty text ends it.
    ///
    /// # Errors
    /// A sentence that says how the knob is used.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        if text.is_empty() {
            *self = Self::default();
            return Ok(());
        }
        let usage = || {
            let kinds = Kind::ALL.map(Kind::name).join("+");
            let mutations = Mutation::ALL.map(Mutation::name).join(", ");
            format!("fuzz takes SEED:RATE[:KINDS[:MUTATION]], RATE at least 1, KINDS some of {kinds}, MUTATION one of {mutations}; not \"{text}\"")
        };
        let mut parts = text.splitn(4, ':');
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (seed, rate) = number().zip(number()).ok_or_else(usage)?;
        let mut kinds = [true; Kind::ALL.len()];
        if let Some(list) = parts.next() {
            kinds = Kind::ALL.map(|kind| list.split('+').any(|name| name == kind.name()));
            let known = |name: &str| Kind::ALL.iter().any(|kind| kind.name() == name);
            if !list.split('+').all(known) {
                return Err(usage());
            }
        }
        let only = match parts.next() {
            None => None,
            Some(name) => Some(
                Mutation::ALL
                    .into_iter()
                    .find(|mutation| mutation.name() == name)
                    .ok_or_else(usage)?,
            ),
        };
        if rate == 0 {
            return Err(usage());
        }
        *self = Self {
            setting: Some(Setting {
                text: text.to_owned(),
                rate,
                kinds,
                only,
            }),
            random: Random::new(seed),
            history: Default::default(),
        };
        Ok(())
    }

    /// How it was set, if it is.
    pub fn text(&self) -> Option<&str> {
        self.setting.as_ref().map(|setting| setting.text.as_str())
    }

    /// Whether the device lies now: about `kind`, and one time in the knob's rate times `rarer`.
    fn strikes(&mut self, kind: Kind, rarer: u64) -> bool {
        match &self.setting {
            Some(setting) if setting.kinds[kind as usize] => {
                let one_in = setting.rate.saturating_mul(rarer);
                self.random.below(one_in) == 0
            }
            _ => false,
        }
    }

    fn choose(&mut self, mutations: &[Mutation]) -> Mutation {
        let any = mutations[self.random.below(mutations.len() as u64) as usize];
        let only = self.setting.as_ref().and_then(|setting| setting.only);
        only.unwrap_or(any)
    }

    fn note(report: &Report, kind: Kind, what: &str) {
        report.lie();
        report.add("fuzz.mutations", 1);
        report.add(format!("fuzz.{}.{what}", kind.name()), 1);
    }

    /// How often to put the next entry into its queue; asked once per entry, before it has a place.
    pub fn fate(&mut self, report: &Report, kind: Kind) -> Fate {
        let is_asked_for = self
            .setting
            .as_ref()
            .is_some_and(|setting| setting.only.is_none());
        if !is_asked_for || !self.strikes(kind, FATES) {
            return Fate::Once;
        }
        let (fate, name) = match self.random.below(3) {
            0 => (Fate::Never, "lost"),
            1 => (Fate::Twice, "doubled"),
            _ => (Fate::Later, "swapped"),
        };
        Self::note(report, kind, name);
        fate
    }

    /// Writes an entry or an answer, changed or not. Owner bits go last, behind a fence: the driver may read the
    /// rest as soon as they are there.
    ///
    /// # Errors
    /// As [`GuestDma::write`].
    pub fn write(
        &mut self,
        dma: &GuestDma,
        layout: &Layout,
        address: u64,
        entry: &[u8],
    ) -> Result<(), DmaError> {
        let split = layout.owner.map_or(0, |owner| owner.first / 32 * 4);
        let in_order = |entry: &[u8]| {
            if split != 0 {
                dma.write(address, &entry[..split])?;
                dma.fence();
            }
            dma.write(address + split as u64, &entry[split..])
        };
        let kind = layout.kind;
        if !self.strikes(kind, 1) {
            self.remember(kind, entry);
            return in_order(entry);
        }
        let mutation = self.choose(&Mutation::ALL);
        Self::note(dma.report(), kind, mutation.name());
        let mut changed = entry.to_vec();
        match mutation {
            Mutation::Gap => {}
            Mutation::Early => {
                dma.write(address + split as u64, &entry[split..])?;
                dma.fence();
                sleep(EARLY);
                dma.write(address, &entry[..split])?;
            }
            Mutation::Replay => {
                self.replay(layout, &mut changed);
                in_order(&changed)?;
            }
            Mutation::Owner if layout.owner.is_some() => {
                for owner in layout.owner.iter().filter(|owner| owner.fits(entry)) {
                    // Not the lap before, which is an entry that is not there yet.
                    let ahead = 1 + self.random.below(owner.max().max(2) - 1);
                    owner.set(&mut changed, owner.get(entry).wrapping_add(ahead));
                }
                in_order(&changed)?;
            }
            _ => {
                let field = self.field(layout, entry);
                self.change(mutation, field, &mut changed);
                in_order(&changed)?;
            }
        }
        self.remember(kind, entry);
        Ok(())
    }

    /// What a register reads as, which holds `value` in `len` bytes.
    pub fn register(&mut self, report: &Report, value: u64, len: usize) -> u64 {
        if !self.strikes(Kind::Register, 1) {
            return value;
        }
        let mutation = self.choose(&Mutation::ALL[..Mutation::OF_VALUES]);
        Self::note(report, Kind::Register, mutation.name());
        let mut bytes = value.to_le_bytes();
        self.change(mutation, Field::new(0, len * 8), &mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn remember(&mut self, kind: Kind, entry: &[u8]) {
        if self.setting.is_none() {
            return;
        }
        let history = &mut self.history[kind as usize];
        if history.len() == HISTORY {
            history.pop_front();
        }
        history.push_back(entry.to_vec());
    }

    /// A field of the layout, or as often anything else.
    fn field(&mut self, layout: &Layout, entry: &[u8]) -> Field {
        let declared = layout.fields.iter().chain(&layout.owner);
        let declared: Vec<_> = declared.filter(|field| field.fits(entry)).collect();
        if !declared.is_empty() && self.random.below(2) == 0 {
            return *declared[self.random.below(declared.len() as u64) as usize];
        }
        let width = [8, 16, 32][self.random.below(3) as usize].min(entry.len() * 8);
        let places = (entry.len() * 8 / width) as u64;
        Field::new(self.random.below(places) as usize * width, width)
    }

    /// Changes one field; one of the mutations of values.
    fn change(&mut self, mutation: Mutation, field: Field, entry: &mut [u8]) {
        let value = field.get(entry);
        let changed = match mutation {
            Mutation::Flip => value ^ (1 << self.random.below(field.width as u64)),
            Mutation::Zero => 0,
            Mutation::Ones => field.max(),
            Mutation::OffByOne if self.random.below(2) == 0 => value.wrapping_sub(1),
            Mutation::OffByOne => value.wrapping_add(1),
            Mutation::Large => field.max() - self.random.below(field.max() / 4 + 1),
            _ => self.random.next(),
        };
        field.set(entry, changed);
    }

    /// Takes the contents of an older entry.
    fn replay(&mut self, layout: &Layout, entry: &mut [u8]) {
        let history = &self.history[layout.kind as usize];
        if history.is_empty() {
            return;
        }
        let older = &history[self.random.below(history.len() as u64) as usize];
        let owner = layout.owner.filter(|owner| owner.fits(entry));
        let kept = owner.map(|owner| owner.get(entry));
        let len = older.len().min(entry.len());
        entry[..len].copy_from_slice(&older[..len]);
        if let (Some(owner), Some(kept)) = (owner, kept) {
            if self.random.below(4) != 0 {
                owner.set(entry, kept);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Access, Memory};

    const BASE: u64 = 0x1000;
    const SIZE: usize = 16;
    const LAYOUT: Layout = Layout {
        kind: Kind::Completion,
        fields: &[Field::new(0, 24), Field::new(32, 16)],
        owner: Some(Field::new(125, 3)),
    };

    struct Rig {
        dma: GuestDma,
        memory: Memory,
        report: Report,
        fuzz: Fuzz,
    }

    impl Rig {
        fn new(setting: &str) -> Self {
            let report = Report::default();
            let mut dma = GuestDma::new(&report);
            dma.set_bus_master(true);
            let memory = Memory::new(BASE, 0x1000).unwrap();
            dma.map(memory.map(BASE, 0x1000, Access::Both).unwrap())
                .unwrap();
            let mut fuzz = Fuzz::default();
            fuzz.set(setting).unwrap();
            Self {
                dma,
                memory,
                report,
                fuzz,
            }
        }

        fn original(n: u8) -> [u8; SIZE] {
            std::array::from_fn(|at| n.wrapping_mul(7).wrapping_add(at as u8))
        }

        /// Writes `count` different entries to one place; returns what was seen there after each.
        fn write(&mut self, layout: &Layout, count: u8) -> Vec<[u8; SIZE]> {
            (0..count)
                .map(|n| {
                    let entry = Self::original(n);
                    self.fuzz
                        .write(&self.dma, layout, BASE + 64, &entry)
                        .unwrap();
                    self.memory.read(BASE + 64).unwrap()
                })
                .collect()
        }

        fn mutations(&self) -> u64 {
            self.report.get("fuzz.mutations")
        }
    }

    fn originals(count: u8) -> Vec<[u8; SIZE]> {
        (0..count).map(Rig::original).collect()
    }

    #[test]
    fn a_seed_gives_the_same_lies_and_another_gives_others() {
        let seen = |setting| Rig::new(setting).write(&LAYOUT, 200);
        assert_eq!(seen("5:4"), seen("5:4"));
        assert_ne!(seen("5:4"), seen("6:4"));
    }

    #[test]
    fn the_rate_is_kept_and_each_lie_is_counted() {
        let mut rig = Rig::new("1:8");
        for _ in 0..40 {
            rig.write(&LAYOUT, 200);
        }
        let mutations = rig.mutations();
        assert!((800..1200).contains(&mutations), "{mutations} of 8000");
        let by_name = Mutation::ALL.map(|mutation| {
            rig.report
                .get(&format!("fuzz.completion.{}", mutation.name()))
        });
        assert!(by_name.iter().all(|count| *count > 0), "{by_name:?}");
        assert_eq!(by_name.iter().sum::<u64>(), mutations);
    }

    #[test]
    fn nothing_else_in_memory_changes() {
        let mut rig = Rig::new("2:1");
        rig.write(&LAYOUT, 250);
        assert!(rig.mutations() >= 250);
        assert_eq!(rig.memory.read::<[u8; 64]>(BASE).unwrap(), [0; 64]);
        let behind = rig.memory.read::<[u8; 64]>(BASE + 64 + SIZE as u64);
        assert_eq!(behind.unwrap(), [0; 64]);
    }

    #[test]
    fn kinds_that_were_not_asked_for_are_true() {
        let mut rig = Rig::new("3:1:event+register");
        assert_eq!(rig.write(&LAYOUT, 100), originals(100));
        assert!((0..100).all(|_| rig.fuzz.fate(&rig.report, Kind::Command) == Fate::Once));
        assert_eq!(rig.mutations(), 0);
        let event = Layout {
            kind: Kind::Event,
            ..LAYOUT
        };
        assert_ne!(rig.write(&event, 100), originals(100));
        let registers: Vec<_> = (0..100)
            .map(|_| rig.fuzz.register(&rig.report, 0x1234, 4))
            .collect();
        assert!(registers.iter().any(|value| *value != 0x1234));
        assert!(registers.iter().all(|value| *value <= u32::MAX.into()));
    }

    #[test]
    fn a_cleared_knob_writes_what_it_is_told() {
        let mut rig = Rig::new("4:1");
        rig.write(&LAYOUT, 50);
        rig.fuzz.set("").unwrap();
        let mutations = rig.mutations();
        assert_eq!(rig.write(&LAYOUT, 100), originals(100));
        assert!((0..100).all(|_| rig.fuzz.fate(&rig.report, Kind::Event) == Fate::Once));
        assert_eq!(rig.fuzz.register(&rig.report, 7, 8), 7);
        assert_eq!(rig.mutations(), mutations);
    }

    #[test]
    fn all_fates_come() {
        let mut rig = Rig::new("5:1");
        let fates: Vec<_> = (0..400)
            .map(|_| rig.fuzz.fate(&rig.report, Kind::Event))
            .collect();
        for fate in [Fate::Once, Fate::Never, Fate::Twice, Fate::Later] {
            assert!(fates.contains(&fate), "{fate:?}");
        }
    }

    #[test]
    fn an_answer_has_no_owner_and_may_be_short() {
        let mut rig = Rig::new("6:1");
        const ANSWER: Layout = Layout {
            kind: Kind::Command,
            fields: &[Field::new(64, 32)],
            owner: None,
        };
        for len in 1..40 {
            let answer = vec![0xa5; len];
            rig.fuzz
                .write(&rig.dma, &ANSWER, BASE + 64, &answer)
                .unwrap();
        }
        assert_eq!(rig.mutations(), 39);
    }

    #[test]
    fn violations_that_follow_a_lie_are_excused() {
        let mut rig = Rig::new("7:1");
        rig.report.violate(&crate::MMIO_ACCESS, "before");
        rig.write(&LAYOUT, 1);
        rig.report.violate(&crate::DMA_AFTER_UNMAP, "after");
        assert_eq!(rig.report.violations(&crate::MMIO_ACCESS), 1);
        assert_eq!(rig.report.violations(&crate::DMA_AFTER_UNMAP), 0);
        assert_eq!(rig.report.get("excused.dma-after-unmap"), 1);
        rig.report.excuse(false);
        rig.report.violate(&crate::DMA_AFTER_UNMAP, "later");
        assert_eq!(rig.report.violations(&crate::DMA_AFTER_UNMAP), 1);
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let mut fuzz = Fuzz::default();
        for text in [
            "1",
            "1:0",
            "x:2",
            "1:2:",
            "1:2:packets",
            "1:2:event+x",
            "1:2:event:x",
        ] {
            assert!(fuzz.set(text).unwrap_err().contains("SEED:RATE"), "{text}");
        }
        assert_eq!(fuzz.text(), None);
        fuzz.set("1:2:event+command").unwrap();
        assert_eq!(fuzz.text(), Some("1:2:event+command"));
    }

    #[test]
    fn one_mutation_alone() {
        let mut rig = Rig::new("8:1:completion:owner");
        let seen = rig.write(&LAYOUT, 200);
        assert_eq!(rig.report.get("fuzz.completion.owner"), rig.mutations());
        for (seen, original) in seen.iter().zip(originals(200)) {
            assert_eq!(seen[..15], original[..15]);
            let [now, then] = [seen[15], original[15]].map(|byte| byte >> 5);
            assert!(
                now != then && now != then.wrapping_sub(1) & 7,
                "{then}: {now}"
            );
        }
        assert!((0..100).all(|_| rig.fuzz.fate(&rig.report, Kind::Completion) == Fate::Once));
    }

    #[test]
    fn fields_are_read_and_written() {
        let field = Field::new(13, 7);
        let mut entry = [0xff; 3];
        field.set(&mut entry, 0b101_0101);
        assert_eq!(field.get(&entry), 0b101_0101);
        field.set(&mut entry, field.max());
        assert_eq!(entry, [0xff; 3]);
    }
}
