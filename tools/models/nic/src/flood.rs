// SPDX-License-Identifier: GPL-2.0
//! A fixed number of frames for the driver, in bursts that it always has room for.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{model::Bus, Counter, Model};

/// What the driver gets to finish what it does after it asked for the next interrupt.
const PAUSE: Duration = Duration::from_micros(500);

const USAGE: &str =
    "flood takes {\"port\": N, \"frames\": [\"hexadecimal\", ...], \"count\": N, \"burst\": N}";

/// Frames that come in as if from a wire. A burst comes when the driver has dealt with the last one: so none is
/// lost, and each costs the same.
pub struct Flood {
    port: usize,
    /// Taken in turn.
    frames: Vec<Vec<u8>>,
    burst: u64,
    /// Frames still to come.
    left: Counter,
    next: usize,
    /// When the next burst comes, once the driver is ready.
    at: Option<Instant>,
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|pair| {
            let pair = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(pair, 16).ok()
        })
        .collect()
}

impl Flood {
    /// A flood as the control command `flood` asks for it; the gauge `flood.left` tells how far it is.
    ///
    /// # Errors
    /// A sentence that says what the command takes.
    pub fn new(bus: &Bus, args: &Value) -> Result<Self, String> {
        let number = |name: &str| args[name].as_u64().ok_or(USAGE);
        let frames = args["frames"].as_array().ok_or(USAGE)?.iter();
        let frames: Option<Vec<_>> = frames
            .map(|hex| bytes(hex.as_str()?).filter(|frame| frame.len() >= 14))
            .collect();
        let frames = frames.filter(|frames| !frames.is_empty()).ok_or(USAGE)?;
        let port = number("port")? as usize;
        if port >= bus.wires.len() {
            return Err(format!("no port {port}"));
        }
        let left = bus.report.gauge("flood.left");
        left.set(number("count")?);
        Ok(Self {
            port,
            frames,
            burst: number("burst")?.max(1),
            left,
            next: 0,
            at: None,
        })
    }

    /// Gives the model the next burst if it is time. Returns when that will be, if only time is missing.
    pub fn tick<M: Model>(
        &mut self,
        model: &mut M,
        bus: &mut Bus,
        now: Instant,
    ) -> Option<Instant> {
        let burst = self.burst.min(self.left.get());
        if burst == 0 || !model.is_rx_ready(self.port, burst as usize) {
            self.at = None;
            return None;
        }
        let at = *self.at.get_or_insert(now + PAUSE);
        if now < at {
            return Some(at);
        }
        self.at = None;
        for _ in 0..burst {
            model.frame(bus, self.port, &self.frames[self.next]);
            self.next = (self.next + 1) % self.frames.len();
        }
        self.left.set(self.left.get() - burst);
        None
    }
}
