// SPDX-License-Identifier: GPL-2.0
//! The process around a model: command line, event loop, control commands, report.

use std::{
    io::Write,
    os::{
        fd::AsFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::PathBuf,
    process::ExitCode,
    time::Instant,
};

use rustix::{
    event::{poll, PollFd, PollFlags, Timespec},
    io::Errno,
};
use serde_json::{json, Value};
use vfio_user::{Connection, Device, DmaMap, IrqAction, State, CONFIG_REGION, MSIX_IRQ};

use crate::{
    control::Control,
    dma::GuestDma,
    knobs::Knobs,
    model::{Bus, Identity, Model},
    msix::MsiX,
    pci::{self, Config, Effect},
    report::Report,
    wire::{Wire, MAX_FRAME},
};

/// Frames taken from one wire before the model's deferred work and the other sources have their turn.
const BATCH: usize = 64;

const USAGE: &str = "\
--socket PATH    unix socket where QEMU connects (vfio-user-pci)
--control PATH   unix socket for control commands, one JSON object per line
--report FILE    where the report is written at exit, as JSON
--wire SPEC      what a port is plugged into; once per port:
                 tap:NAME, pair:PATH[,listen], dgram:LOCAL,REMOTE, loop: (two ports), null
--ports N        number of ports; those without --wire get null (default: one per wire, at least 1)
--pcap PREFIX    capture port N in PREFIX.N.pcapng
--set KEY=VALUE  set a knob
";

struct Options {
    socket: PathBuf,
    control: Option<PathBuf>,
    report: Option<PathBuf>,
    wires: Vec<String>,
    ports: usize,
    pcap: Option<String>,
    knobs: Vec<(String, String)>,
}

impl Options {
    /// The options on the command line; `None` if only help was asked for.
    fn parse() -> Result<Option<Self>, lexopt::Error> {
        use lexopt::{Arg::Long, ValueExt};
        let mut socket = None;
        let mut options = Self {
            socket: PathBuf::new(),
            control: None,
            report: None,
            wires: Vec::new(),
            ports: 1,
            pcap: None,
            knobs: Vec::new(),
        };
        let mut parser = lexopt::Parser::from_env();
        while let Some(arg) = parser.next()? {
            match arg {
                Long("socket") => socket = Some(parser.value()?.into()),
                Long("control") => options.control = Some(parser.value()?.into()),
                Long("report") => options.report = Some(parser.value()?.into()),
                Long("wire") => options.wires.push(parser.value()?.string()?),
                Long("ports") => options.ports = parser.value()?.parse()?,
                Long("pcap") => options.pcap = Some(parser.value()?.string()?),
                Long("set") => {
                    let setting = parser.value()?.string()?;
                    let (key, value) = setting.split_once('=').ok_or("--set takes KEY=VALUE")?;
                    options.knobs.push((key.into(), value.into()));
                }
                Long("help") => return Ok(None),
                _ => return Err(arg.unexpected()),
            }
        }
        options.socket = socket.ok_or("--socket PATH is missing")?;
        Ok(Some(options))
    }
}

/// Serves a model until the client disconnects or SIGTERM comes; the `main` of a model's binary.
///
/// `new` makes the model for a number of ports.
pub fn run<M: Model>(name: &str, new: impl FnOnce(usize) -> M) -> ExitCode {
    let outcome = match Options::parse() {
        Ok(Some(options)) => serve(&options, new),
        Ok(None) => {
            print!("{name}: a device model for QEMU's vfio-user-pci\n\n{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => Err(format!("{error}; see --help")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve<M: Model>(options: &Options, new: impl FnOnce(usize) -> M) -> Result<(), String> {
    let report = Report::default();
    let mut wires = Vec::new();
    for spec in &options.wires {
        wires.extend(Wire::open(&report, wires.len(), spec)?);
    }
    while wires.len() < options.ports.max(1) {
        wires.push(Wire::null(&report, wires.len()));
    }
    if let Some(prefix) = &options.pcap {
        for (port, wire) in wires.iter_mut().enumerate() {
            let path = PathBuf::from(format!("{prefix}.{port}.pcapng"));
            wire.capture(&path)
                .map_err(|error| format!("cannot capture to {}: {error}", path.display()))?;
        }
    }
    let model = new(wires.len());
    let mut knobs = Knobs::new(model.knobs());
    for (key, value) in &options.knobs {
        knobs.set(key, value)?;
    }
    let mut function = Function::new(model, report, wires, knobs, options.report.clone());
    let mut control = match &options.control {
        Some(path) => Some(
            Control::listen(path)
                .map_err(|error| format!("cannot listen at {}: {error}", path.display()))?,
        ),
        None => None,
    };
    let listener = UnixListener::bind(&options.socket)
        .map_err(|error| format!("cannot listen at {}: {error}", options.socket.display()))?;
    let (ended, signal) =
        UnixStream::pair().map_err(|error| format!("cannot make a socket pair: {error}"))?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGTERM, signal)
        .map_err(|error| format!("cannot handle SIGTERM: {error}"))?;
    println!("ready");
    std::io::stdout()
        .flush()
        .map_err(|error| format!("cannot write to stdout: {error}"))?;

    let outcome = event_loop(&mut function, &listener, &ended, control.as_mut());
    function.finish()?;
    outcome
}

/// Whether a source of events is ready.
#[derive(Default)]
struct Ready {
    ended: bool,
    client: bool,
    control: bool,
    wires: Vec<bool>,
}

fn event_loop<M: Model>(
    function: &mut Function<M>,
    listener: &UnixListener,
    ended: &UnixStream,
    mut control: Option<&mut Control>,
) -> Result<(), String> {
    let mut connection: Option<Connection> = None;
    let mut buffer = vec![0; MAX_FRAME];
    let mut deadline = None;
    let mut ready = Ready::default();
    loop {
        let client = connection
            .as_ref()
            .map_or(listener.as_fd(), |connection| connection.as_fd());
        wait(
            &mut ready,
            ended,
            client,
            control.as_deref(),
            &function.bus.wires,
            deadline,
        )?;
        if ready.ended {
            return Ok(());
        }
        if ready.client {
            match &mut connection {
                None => {
                    let (stream, _) = listener
                        .accept()
                        .map_err(|error| format!("cannot accept the client: {error}"))?;
                    connection = Some(Connection::new(stream));
                }
                Some(connection) => {
                    if connection
                        .serve(function)
                        .map_err(|error| error.to_string())?
                        == State::Closed
                    {
                        return Ok(());
                    }
                }
            }
        }
        for port in 0..ready.wires.len() {
            if ready.wires[port] {
                function.frames(port, &mut buffer);
            }
        }
        if let Some(control) = control.as_deref_mut().filter(|_| ready.control) {
            control.serve(|command| function.command(&command));
        }
        deadline = function.model.tick(&mut function.bus, Instant::now());
    }
}

/// Sleeps until something is ready or the deadline has come.
fn wait(
    ready: &mut Ready,
    ended: &UnixStream,
    client: std::os::fd::BorrowedFd<'_>,
    control: Option<&Control>,
    wires: &[Wire],
    deadline: Option<Instant>,
) -> Result<(), String> {
    let mut fds = vec![
        PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(client, PollFlags::IN),
    ];
    let mut ports = Vec::with_capacity(wires.len());
    for (port, wire) in wires.iter().enumerate() {
        if let Some((fd, events)) = wire.poll_fd() {
            fds.push(PollFd::from_borrowed_fd(fd, events));
            ports.push(port);
        }
    }
    let first_control = fds.len();
    fds.extend(
        control
            .into_iter()
            .flat_map(Control::poll_fds)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
    );
    let timeout = deadline.map(|at| {
        let left = at.saturating_duration_since(Instant::now());
        Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        }
    });
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(format!("cannot poll: {error}")),
    }
    let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
    ready.ended = is_ready(&fds[0]);
    ready.client = is_ready(&fds[1]);
    ready.control = fds[first_control..].iter().any(is_ready);
    ready.wires.clear();
    ready.wires.resize(wires.len(), false);
    for (port, fd) in ports.into_iter().zip(&fds[2..]) {
        ready.wires[port] = is_ready(fd);
    }
    Ok(())
}

/// The PCI function around a model.
struct Function<M> {
    model: M,
    bus: Bus,
    identity: Identity,
    config: Config,
    report_file: Option<PathBuf>,
}

impl<M: Model> Function<M> {
    fn new(
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
        };
        Self {
            model,
            bus,
            config: Config::new(&identity),
            identity,
            report_file,
        }
    }

    /// Gives the frames that wait at a port to the model.
    fn frames(&mut self, port: usize, buffer: &mut [u8]) {
        for _ in 0..BATCH {
            let Some(len) = self.bus.wires[port].receive(buffer) else {
                break;
            };
            self.model.frame(&mut self.bus, port, &buffer[..len]);
        }
    }

    /// Answers one control command.
    fn command(&mut self, command: &Value) -> Value {
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

    fn report(&self) -> Value {
        let mut report = self.bus.report.json();
        let rules = crate::RULES
            .iter()
            .chain(self.model.rules())
            .map(|rule| rule.name);
        report["rules"] = rules.collect();
        report["knobs"] = self.bus.knobs.json();
        report
    }

    /// Writes what has to survive the process.
    fn finish(&mut self) -> Result<(), String> {
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
        std::process::exit(0);
    }

    fn reset_function(&mut self) {
        self.config.reset();
        self.bus.dma.set_bus_master(false);
        self.bus.irq.clear_pending();
        self.bus.report.add("pci.resets", 1);
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
