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
use vfio_user::{Connection, State};

use crate::{
    control::Control,
    function::Function,
    knobs::Knobs,
    model::Model,
    report::Report,
    wire::{Wire, MAX_FRAME},
};

const USAGE: &str = "\
--socket PATH    unix socket where QEMU connects (vfio-user-pci)
--control PATH   unix socket for control commands, one JSON object per line
--report FILE    where the report is written at exit, as JSON
--wire SPEC      what a port is plugged into; once per port:
                 tap:NAME, pair:PATH[,listen], dgram:LOCAL,REMOTE, loop: (two ports), null
--ports N        number of ports; those without --wire get null (default: one per wire, at least 1)
--pcap PREFIX    capture port N in PREFIX.N.pcapng
--pcap-last PREFIX  the same, but only the head of the last 4096 frames, written at the end
--set KEY=VALUE  set a knob
";

struct Options {
    socket: PathBuf,
    control: Option<PathBuf>,
    report: Option<PathBuf>,
    wires: Vec<String>,
    ports: usize,
    pcap: Option<String>,
    pcap_last: Option<String>,
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
            pcap_last: None,
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
                Long("pcap-last") => options.pcap_last = Some(parser.value()?.string()?),
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
    if let Some(prefix) = &options.pcap_last {
        for (port, wire) in wires.iter_mut().enumerate() {
            wire.capture_tail(&PathBuf::from(format!("{prefix}.{port}.pcapng")));
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
                    let client = stream.try_clone();
                    function.set_client(client.map_err(|error| {
                        format!("cannot duplicate the client's socket: {error}")
                    })?);
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
        deadline = function.tick(Instant::now());
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
