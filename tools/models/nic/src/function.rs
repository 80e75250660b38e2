// SPDX-License-Identifier: GPL-2.0
//! The PCI function around a model: it sorts accesses by region and keeps what every function has.

use std::{io, net::Shutdown, os::unix::net::UnixStream, path::PathBuf, process, time::Instant};

use rustix::io::Errno;
use serde_json::{json, Value};
use vfio_user::{Device, DmaMap, IrqAction, CONFIG_REGION, MSIX_IRQ};

use crate::{
    dma::GuestDma,
    flood::Flood,
    knobs::Knobs,
    model::{Bus, Commands, Identity, Model},
    msix::MsiX,
    pci::{self, Config, Effect},
    report::Report,
    wire::Wire,
};

/// Frames taken from one wire before the model's deferred work and the other sources have their turn.
const BATCH: usize = 64;

/// The PCI function around a model.
pub struct Function<M> {
    /// The model.
    pub model: M,
    /// What the model can reach.
    pub bus: Bus,
    identity: Identity,
    config: Config,
    flood: Option<Flood>,
    report_file: Option<PathBuf>,
    client: Option<UnixStream>,
}

impl<M: Model> Function<M> {
    /// The function after power-on.
    pub fn new(
        model: M,
        report: Report,
        wires: Vec<Wire>,
        knobs: Knobs,
        report_file: Option<PathBuf>,
    ) -> Self {
        let mut identity = model.identity();
        if let Some(vectors) = knobs.msix_vectors {
            identity.msix_vectors = vectors;
        }
        let irq = MsiX::new(&report, identity.msix_vectors);
        let bus = Bus {
            dma: GuestDma::new(&report),
            irq,
            wires,
            report,
            knobs,
            commands: Commands::default(),
        };
        Self {
            model,
            bus,
            config: Config::new(&identity),
            identity,
            flood: None,
            report_file,
            client: None,
        }
    }

    /// Gives the model the frames that are due and has it do its deferred work; returns when it wants to go on.
    pub fn tick(&mut self, now: Instant) -> Option<Instant> {
        if self.flood.is_some() || self.bus.knobs.tx_batch > 0 {
            self.bus.irq.hold();
        }
        let flood = self.flood.as_mut();
        let next_burst = flood.and_then(|f| f.tick(&mut self.model, &mut self.bus, now));
        let deadline = self.model.tick(&mut self.bus, now);
        self.bus.irq.release();
        self.die_if_told();
        deadline.into_iter().chain(next_burst).min()
    }

    /// Gives the frames that wait at a port to the model; `buffer` takes one frame.
    pub fn frames(&mut self, port: usize, buffer: &mut [u8]) {
        for _ in 0..BATCH {
            let Some(len) = self.bus.wires[port].receive(buffer) else {
                break;
            };
            self.model.frame(&mut self.bus, port, &buffer[..len]);
        }
    }

    /// Answers one control command.
    pub fn command(&mut self, command: &Value) -> Value {
        self.try_command(command)
            .unwrap_or_else(|error| json!({ "error": error }))
    }

    fn try_command(&mut self, command: &Value) -> Result<Value, String> {
        let none = json!({});
        match command
            .as_object()
            .and_then(|object| object.iter().find(|(key, _)| *key != "args"))
        {
            Some((key, what)) => match (key.as_str(), what) {
                ("get", Value::String(what)) if what == "report" => Ok(self.report()),
                ("set", Value::Object(settings)) => {
                    for (key, value) in settings {
                        let text = value
                            .as_str()
                            .map_or_else(|| value.to_string(), str::to_owned);
                        self.bus.knobs.set(key, &text)?;
                    }
                    Ok(self.bus.knobs.json())
                }
                ("clear", Value::String(what)) if what == "counters" => {
                    self.bus.report.clear_counters();
                    Ok(json!({}))
                }
                ("clear", Value::String(what)) if what == "violations" => {
                    self.bus.report.clear_violations();
                    Ok(json!({}))
                }
                ("do", Value::String(what)) => {
                    self.perform(what, command.get("args").unwrap_or(&none))
                }
                _ => Err(format!("unknown command {command}")),
            },
            None => Err("a command is one of get, set, clear, do".into()),
        }
    }

    fn perform(&mut self, what: &str, args: &Value) -> Result<Value, String> {
        match what {
            "die" => self.die(),
            "commands" => Ok(self.bus.commands.take()),
            "flood" => {
                self.flood = Some(Flood::new(&self.bus, args)?);
                Ok(json!({}))
            }
            "link" => {
                let port = args["port"].as_u64().unwrap_or(0) as usize;
                let up = args["up"]
                    .as_bool()
                    .ok_or("link takes {\"port\": N, \"up\": true or false}")?;
                let wire = self
                    .bus
                    .wires
                    .get_mut(port)
                    .ok_or_else(|| format!("no port {port}"))?;
                wire.set_up(up);
                self.model.link(&mut self.bus, port, up);
                Ok(json!({}))
            }
            _ => self.model.control(&mut self.bus, what, args),
        }
    }

    /// Everything that the report file and the control socket tell.
    pub fn report(&self) -> Value {
        let mut report = self.bus.report.json();
        let rules = crate::RULES
            .iter()
            .chain(self.model.rules())
            .map(|rule| rule.name);
        report["rules"] = rules.collect();
        report["knobs"] = self.bus.knobs.json();
        report
    }

    /// Writes what has to survive the process: captures and report.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn finish(&mut self) -> Result<(), String> {
        for wire in &mut self.bus.wires {
            wire.flush()
                .map_err(|error| format!("cannot write a capture: {error}"))?;
        }
        if let Some(path) = &self.report_file {
            let text = format!("{:#}\n", self.report());
            std::fs::write(path, text)
                .map_err(|error| format!("cannot write the report {}: {error}", path.display()))?;
        }
        Ok(())
    }

    /// Ends the process in the middle of what it does: to the guest, the device was pulled out.
    fn die(&mut self) -> ! {
        if let Err(error) = self.finish() {
            eprintln!("{error}");
        }
        if let Some(client) = &mut self.client {
            // Messages that nobody has read would make the end of the connection an error of the socket, on which
            // QEMU aborts. A failure here changes nothing about the end.
            let _ = client.shutdown(Shutdown::Both);
            let _ = io::copy(client, &mut io::sink());
        }
        process::exit(0);
    }

    /// The client's connection, to end it when the process does.
    pub fn set_client(&mut self, client: UnixStream) {
        self.client = Some(client);
    }

    fn die_if_told(&mut self) {
        if self.bus.knobs.is_dead() {
            self.die();
        }
    }

    fn reset_function(&mut self) {
        self.config.reset();
        self.bus.dma.set_bus_master(false);
        self.bus.irq.clear_pending();
        self.bus.report.add("pci.resets", 1);
        self.bus.commands.reset();
        self.model.reset(&mut self.bus);
    }

    /// Whether an access is one that a PCI function takes; if not, it is a violation.
    fn check_access(&self, bar: u32, offset: u64, len: usize) -> bool {
        let fine = matches!(len, 1 | 2 | 4 | 8) && offset % len as u64 == 0;
        if !fine {
            self.bus.report.violate(
                &crate::MMIO_ACCESS,
                format_args!("BAR {bar} offset {offset:#x}, {len} bytes"),
            );
        }
        fine
    }
}

impl<M: Model> Device for Function<M> {
    fn region_size(&self, region: u32) -> u64 {
        if region == CONFIG_REGION {
            return pci::CONFIG_SIZE as u64;
        }
        if region == u32::from(self.identity.msix_bar) {
            return pci::msix_bar_size(self.identity.msix_vectors);
        }
        self.identity
            .bars
            .iter()
            .find(|bar| u32::from(bar.index) == region)
            .map_or(0, |bar| bar.size)
    }

    fn irq_count(&self, index: u32) -> u32 {
        if index == MSIX_IRQ {
            self.identity.msix_vectors.into()
        } else {
            0
        }
    }

    fn read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> Result<(), Errno> {
        if region == CONFIG_REGION {
            self.config.read(offset as usize, data);
        } else if region == u32::from(self.identity.msix_bar) {
            // The client keeps the table, which is the first half.
            let pba = pci::msix_bar_size(self.identity.msix_vectors) / 2;
            if let Some(offset) = offset.checked_sub(pba) {
                self.bus.irq.read_pba(offset as usize, data);
            }
        } else if self.check_access(region, offset, data.len()) {
            let value = self
                .model
                .read(&mut self.bus, region as u8, offset, data.len());
            let len = data.len();
            let Bus { knobs, report, .. } = &mut self.bus;
            let value = knobs.fuzz.register(report, value, len);
            data.copy_from_slice(&value.to_le_bytes()[..len]);
        } else {
            data.fill(0xff);
        }
        Ok(())
    }

    fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<(), Errno> {
        if region == CONFIG_REGION {
            let effect = self.config.write(offset as usize, data);
            self.bus.dma.set_bus_master(self.config.bus_master());
            if effect == Effect::Reset {
                self.reset_function();
            }
        } else if region == u32::from(self.identity.msix_bar) {
            // The client keeps the table; the PBA is read-only.
        } else if self.check_access(region, offset, data.len()) {
            if self.bus.knobs.dies() {
                self.die();
            }
            let mut value = [0; 8];
            value[..data.len()].copy_from_slice(data);
            self.model.write(
                &mut self.bus,
                region as u8,
                offset,
                data.len(),
                u64::from_le_bytes(value),
            );
            self.die_if_told();
        }
        Ok(())
    }

    fn dma_map(&mut self, map: DmaMap) -> Result<(), Errno> {
        self.bus.dma.map(map)
    }

    fn dma_unmap(&mut self, address: u64, size: u64) -> Result<(), Errno> {
        self.bus.dma.unmap(address, size)
    }

    fn dma_unmap_all(&mut self) {
        self.bus.dma.unmap_all();
    }

    fn set_irqs(
        &mut self,
        index: u32,
        start: u32,
        count: u32,
        action: IrqAction,
    ) -> Result<(), Errno> {
        if index != MSIX_IRQ {
            return Ok(());
        }
        self.bus.irq.set(start, count, action)
    }

    fn reset(&mut self) {
        self.reset_function();
    }
}
