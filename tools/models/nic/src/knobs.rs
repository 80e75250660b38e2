// SPDX-License-Identifier: GPL-2.0
//! Settings that make a model behave in a legal but unusual way, or fail on purpose.
//!
//! Set at start with `--set key=value` and later on the control socket.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{json, Value};

use crate::fuzz::Fuzz;

/// How a command of the driver fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Answered with an error status.
    Error,
    /// Never answered.
    Nothing,
    /// Executed, and answered with success and all ones where the results belong: no id, handle or count is right.
    Wrong,
    /// The same with zeros.
    Zero,
    /// Executed, and answered with fewer bytes than the answer has.
    Short,
    /// Not answered any more: the process ends, as if the device was pulled out.
    Die,
}

impl Fault {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "error" => Self::Error,
            "nothing" => Self::Nothing,
            "wrong" => Self::Wrong,
            "zero" => Self::Zero,
            "short" => Self::Short,
            "die" => Self::Die,
            other => {
                return Err(format!(
                    "unknown fault \"{other}\": use error, nothing, wrong, zero, short or die"
                ))
            }
        })
    }

    /// As [`Knobs::set`] takes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Nothing => "nothing",
            Self::Wrong => "wrong",
            Self::Zero => "zero",
            Self::Short => "short",
            Self::Die => "die",
        }
    }
}

/// How long packets wait for others of their batch.
pub const TX_PATIENCE: Duration = Duration::from_millis(200);

/// The settings of one model process.
#[derive(Default)]
pub struct Knobs {
    /// `complete_inside_doorbell=true`: work is completed before the doorbell write returns. Only meaningful
    /// where the client does not post writes (QEMU: `x-no-posted-writes=on`).
    pub complete_inside_doorbell: bool,
    /// `completion_delay_us=N`: a completion is reported this long after the work was done.
    pub completion_delay: Duration,
    /// `answer_delay_us=N`: a command is executed and answered this long after it came.
    pub answer_delay: Duration,
    /// `command_timeout_ms=N`: how long the driver is to wait for an answer, where the device can tell; 0 = as long
    /// as it likes. Read when the driver starts the device.
    pub command_timeout_ms: u32,
    /// `msix_vectors=N`: number of MSI-X vectors offered; only at start.
    pub msix_vectors: Option<u16>,
    /// `tx_batch=N`: the device sends N packets of a queue at a time, when the driver has announced them and
    /// waits for an event; or all of them when they have waited for [`TX_PATIENCE`]. So each interrupt is for as
    /// many completions, however fast the guest is. 0 = at once.
    pub tx_batch: u64,
    /// `drop_completions=N`: the next N completions are lost.
    drop_completions: u64,
    /// `die_at=N`: the process ends at the Nth register write from now.
    die_at: Option<u64>,
    /// `fail_command=N[:fault[:NAME]]`: the Nth command from now fails, or the Nth of this name.
    fail_command: Option<(u64, Fault, String)>,
    /// `fail_opcode=OPCODE[:fault]`: every command of this opcode fails; an empty value ends it.
    fail_opcode: Option<(u64, Fault)>,
    /// A command has met [`Fault::Die`].
    is_dead: bool,
    /// `fuzz=SEED:RATE[:KIND+KIND...[:MUTATION]]`: the device lies in one of RATE things that it writes or answers, by KIND
    /// (completion, event, command, register; default all); an empty value ends it.
    pub fuzz: Fuzz,
    declared: &'static [&'static str],
    own: BTreeMap<&'static str, String>,
}

impl Knobs {
    /// Knobs at their defaults; `own` are the names that only the model has.
    pub fn new(own: &'static [&'static str]) -> Self {
        Self {
            declared: own,
            ..Self::default()
        }
    }

    /// Sets one knob from its text form.
    ///
    /// # Errors
    /// A sentence that says which values the knob takes.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "complete_inside_doorbell" => self.complete_inside_doorbell = boolean(key, value)?,
            "completion_delay_us" => {
                self.completion_delay = Duration::from_micros(number(key, value)?)
            }
            "answer_delay_us" => self.answer_delay = Duration::from_micros(number(key, value)?),
            "command_timeout_ms" => {
                self.command_timeout_ms = u32::try_from(number(key, value)?)
                    .map_err(|_| "command_timeout_ms takes 32 bits")?;
            }
            "msix_vectors" => {
                let vectors = u16::try_from(number(key, value)?)
                    .ok()
                    .filter(|n| (1..=2048).contains(n));
                self.msix_vectors = Some(vectors.ok_or("msix_vectors takes 1 to 2048")?);
            }
            "tx_batch" => self.tx_batch = number(key, value)?,
            "drop_completions" => self.drop_completions = number(key, value)?,
            "die_at" => self.die_at = optional(value, |v| number(key, v))?,
            "fail_command" => {
                self.fail_command = optional(value, |v| {
                    let mut parts = v.splitn(3, ':');
                    let (n, kind) = (parts.next().unwrap_or(v), parts.next());
                    let kind = kind.map_or(Ok(Fault::Error), Fault::parse)?;
                    let name = parts.next().unwrap_or_default().to_owned();
                    Ok((number(key, n)?, kind, name))
                })?;
            }
            "fail_opcode" => self.fail_opcode = optional(value, |v| fault(key, v))?,
            "fuzz" => self.fuzz.set(value)?,
            _ => {
                let Some(name) = self.declared.iter().find(|name| **name == key) else {
                    return Err(format!(
                        "no knob \"{key}\"; this model has: {}",
                        self.names().join(", ")
                    ));
                };
                self.own.insert(name, value.to_owned());
            }
        }
        Ok(())
    }

    /// Whether the next completion is to be lost; counts down.
    pub fn drop_completion(&mut self) -> bool {
        let drop = self.drop_completions > 0;
        self.drop_completions = self.drop_completions.saturating_sub(1);
        drop
    }

    /// How the command that just came in has to fail, if it has to; called once per command.
    pub(crate) fn command_fault(&mut self, opcode: u64, name: &str) -> Option<Fault> {
        let fault = self.next_fault(opcode, name);
        self.is_dead |= fault == Some(Fault::Die);
        fault
    }

    fn next_fault(&mut self, opcode: u64, name: &str) -> Option<Fault> {
        let counts = |wanted: &str| wanted.is_empty() || wanted == name;
        if let Some((left, fault, wanted)) = &mut self.fail_command {
            *left = left.saturating_sub(counts(wanted).into());
            if *left == 0 {
                let fault = *fault;
                self.fail_command = None;
                return Some(fault);
            }
        }
        self.fail_opcode
            .filter(|(failing, _)| *failing == opcode)
            .map(|(_, fault)| fault)
    }

    /// Whether a command has ended the process.
    pub(crate) fn is_dead(&self) -> bool {
        self.is_dead
    }

    /// Whether the process has to end now; called for each register write.
    pub(crate) fn dies(&mut self) -> bool {
        match &mut self.die_at {
            Some(left) => {
                *left = left.saturating_sub(1);
                *left == 0
            }
            None => false,
        }
    }

    /// The value of one of the model's own knobs, as a number (decimal or 0x...).
    pub fn number(&self, name: &str) -> Option<u64> {
        self.own
            .get(name)
            .and_then(|value| number(name, value).ok())
    }

    /// The value of one of the model's own knobs, as it was given.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.own.get(name).map(String::as_str)
    }

    fn names(&self) -> Vec<&str> {
        let common = [
            "answer_delay_us",
            "command_timeout_ms",
            "complete_inside_doorbell",
            "completion_delay_us",
            "die_at",
            "drop_completions",
            "fail_command",
            "fail_opcode",
            "fuzz",
            "msix_vectors",
            "tx_batch",
        ];
        common
            .into_iter()
            .chain(self.declared.iter().copied())
            .collect()
    }

    /// All knobs and their values.
    pub fn json(&self) -> Value {
        let failing = |n: u64, fault: Fault| format!("{n}:{}", fault.name());
        let command = self.fail_command.as_ref().map(|(n, fault, name)| {
            let separator = if name.is_empty() { "" } else { ":" };
            failing(*n, *fault) + separator + name
        });
        let mut all = json!({
            "answer_delay_us": self.answer_delay.as_micros() as u64,
            "command_timeout_ms": self.command_timeout_ms,
            "complete_inside_doorbell": self.complete_inside_doorbell,
            "completion_delay_us": self.completion_delay.as_micros() as u64,
            "die_at": self.die_at,
            "drop_completions": self.drop_completions,
            "fail_command": command,
            "fail_opcode": self.fail_opcode.map(|(n, fault)| failing(n, fault)),
            "fuzz": self.fuzz.text(),
            "msix_vectors": self.msix_vectors,
            "tx_batch": self.tx_batch,
        });
        for name in self.declared {
            all[*name] = json!(self.own.get(name));
        }
        all
    }
}

fn optional<T>(
    value: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    if value.is_empty() {
        return Ok(None);
    }
    parse(value).map(Some)
}

fn number(key: &str, value: &str) -> Result<u64, String> {
    let parsed = match value.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => value.parse(),
    };
    parsed.map_err(|_| format!("{key} takes a number (decimal or 0x...), not \"{value}\""))
}

fn boolean(key: &str, value: &str) -> Result<bool, String> {
    match value {
        "true" | "1" | "on" => Ok(true),
        "false" | "0" | "off" => Ok(false),
        _ => Err(format!("{key} takes true or false, not \"{value}\"")),
    }
}

fn fault(key: &str, value: &str) -> Result<(u64, Fault), String> {
    let (n, fault) = value.split_once(':').unwrap_or((value, "error"));
    Ok((number(key, n)?, Fault::parse(fault)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_command_fails_once() {
        let mut knobs = Knobs::default();
        knobs.set("fail_command", "2:short").unwrap();
        let faults: Vec<_> = (0..4).map(|_| knobs.command_fault(7, "A")).collect();
        assert_eq!(faults, [None, Some(Fault::Short), None, None]);
    }

    #[test]
    fn the_nth_command_of_a_name_fails_once() {
        let mut knobs = Knobs::default();
        knobs.set("fail_command", "2:zero:B").unwrap();
        assert_eq!(knobs.json()["fail_command"], "2:zero:B");
        let names = ["A", "B", "A", "A", "B", "B"];
        let faults = names.map(|name| knobs.command_fault(7, name));
        assert_eq!(faults, [None, None, None, None, Some(Fault::Zero), None]);
        assert_eq!(knobs.json()["fail_command"], Value::Null);
    }

    #[test]
    fn an_opcode_fails_until_the_knob_is_cleared() {
        let mut knobs = Knobs::default();
        knobs.set("fail_opcode", "0x20004:wrong").unwrap();
        assert_eq!(knobs.json()["fail_opcode"], "131076:wrong");
        assert_eq!(knobs.command_fault(0x20003, "A"), None);
        assert_eq!(knobs.command_fault(0x20004, "A"), Some(Fault::Wrong));
        assert_eq!(knobs.command_fault(0x20004, "A"), Some(Fault::Wrong));
        knobs.set("fail_opcode", "").unwrap();
        assert_eq!(knobs.command_fault(0x20004, "A"), None);
    }

    #[test]
    fn a_command_can_end_the_process() {
        let mut knobs = Knobs::default();
        knobs.set("fail_command", "2:die").unwrap();
        assert_eq!(
            (knobs.command_fault(7, "A"), knobs.is_dead()),
            (None, false)
        );
        let fault = Some(Fault::Die);
        assert_eq!(
            (knobs.command_fault(7, "A"), knobs.is_dead()),
            (fault, true)
        );
    }

    #[test]
    fn completions_are_dropped_as_often_as_asked() {
        let mut knobs = Knobs::default();
        knobs.set("drop_completions", "2").unwrap();
        let dropped: Vec<_> = (0..4).map(|_| knobs.drop_completion()).collect();
        assert_eq!(dropped, [true, true, false, false]);
    }

    #[test]
    fn a_model_has_knobs_of_its_own() {
        let mut knobs = Knobs::new(&["max_queues"]);
        assert_eq!(knobs.number("max_queues"), None);
        knobs.set("max_queues", "0x10").unwrap();
        assert_eq!(
            (knobs.number("max_queues"), knobs.text("max_queues")),
            (Some(16), Some("0x10"))
        );
        assert!(knobs
            .set("max_queue", "1")
            .unwrap_err()
            .contains("max_queues"));
        assert!(knobs
            .set("complete_inside_doorbell", "maybe")
            .unwrap_err()
            .contains("true or false"));
    }
}
