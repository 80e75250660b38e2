// SPDX-License-Identifier: GPL-2.0
//! The process around a model: sockets, signals, report, and its end.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
};

use rustix::process::{kill_process, Pid, Signal};
use serde_json::{json, Value};

/// A running probe in a folder of its own; both are gone when the value is dropped.
struct Probe {
    folder: PathBuf,
    child: Child,
}

impl Probe {
    fn start(test: &str, extra: &[&str]) -> Self {
        let folder =
            std::env::temp_dir().join(format!("nic-process-{}-{test}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_model-probe"));
        for (option, file) in [
            ("--socket", "socket"),
            ("--control", "control"),
            ("--report", "report.json"),
        ] {
            command.arg(option).arg(folder.join(file));
        }
        command.arg("--pcap").arg(folder.join("port")).args(extra);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "ready\n");
        Self { folder, child }
    }

    /// A client that has agreed on the version.
    fn client(&self) -> UnixStream {
        let mut client = UnixStream::connect(self.folder.join("socket")).unwrap();
        send(&mut client, 1, 0, b"\0\0\0\0{}\0");
        assert!(receive(&mut client).len() > 4);
        client
    }

    fn control(&self, command: &Value) -> Value {
        let mut control = UnixStream::connect(self.folder.join("control")).unwrap();
        writeln!(control, "{command}").unwrap();
        let mut line = String::new();
        BufReader::new(control).read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_default()
    }

    /// Waits for the end: exit status and report.
    fn end(mut self) -> (ExitStatus, Value) {
        let status = self.child.wait().unwrap();
        let report = std::fs::read(self.folder.join("report.json")).unwrap();
        (status, serde_json::from_slice(&report).unwrap())
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn send(client: &mut UnixStream, command: u32, flags: u32, payload: &[u8]) {
    let header = [command << 16, 16 + payload.len() as u32, flags, 0];
    let mut message: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    message.extend(payload);
    client.write_all(&message).unwrap();
}

fn receive(client: &mut UnixStream) -> Vec<u8> {
    let mut header = [0; 16];
    client.read_exact(&mut header).unwrap();
    let size = u32::from_le_bytes(header[4..8].try_into().unwrap()) as usize;
    let mut payload = vec![0; size - 16];
    client.read_exact(&mut payload).unwrap();
    payload
}

/// A posted write of 8 bytes to register 0 of BAR 0.
fn write_register(client: &mut UnixStream) {
    write_at(client, 0);
}

/// A posted write of 8 bytes to a register of BAR 0.
fn write_at(client: &mut UnixStream, offset: u64) {
    let payload = [
        offset.to_le_bytes(),
        [0, 0, 0, 0, 8, 0, 0, 0],
        7u64.to_le_bytes(),
    ]
    .concat();
    send(client, 10, 1 << 4, &payload);
}

#[test]
fn ends_with_its_client_and_reports() {
    let probe = Probe::start("client", &["--ports", "2", "--set", "drop_completions=5"]);
    let mut client = probe.client();
    for _ in 0..3 {
        write_register(&mut client);
    }
    drop(client);
    let folder = probe.folder.clone();
    assert!(folder.join("port.1.pcapng").exists());
    let (status, report) = probe.end();
    assert!(status.success());
    assert_eq!(report["counters"]["write.8"], 3);
    assert_eq!(report["knobs"]["drop_completions"], 5);
    assert_eq!(report["counters"]["port1.in_frames"], 0);
}

#[test]
fn ends_at_sigterm_and_reports() {
    let probe = Probe::start("sigterm", &[]);
    let _client = probe.client();
    let pid = Pid::from_raw(probe.child.id() as i32).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let (status, report) = probe.end();
    assert!(status.success());
    assert_eq!(report["violations"], json!([]));
}

#[test]
fn answers_control_commands_while_a_client_is_there() {
    let probe = Probe::start("control", &[]);
    let _client = probe.client();
    assert_eq!(probe.control(&json!({"set": {"die_at": 2}}))["die_at"], 2);
    assert!(probe.control(&json!({"get": "report"}))["counters"].is_object());

    let mut control = UnixStream::connect(probe.folder.join("control")).unwrap();
    control
        .write_all(b"{\"get\":\n{\"get\":\"report\"}\n")
        .unwrap();
    let mut lines = BufReader::new(control).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert!(next()["error"].as_str().unwrap().contains("JSON"));
    assert!(next()["counters"].is_object());
}

#[test]
fn a_control_client_without_end_of_line_is_left() {
    let probe = Probe::start("line", &[]);
    let _client = probe.client();
    let mut control = UnixStream::connect(probe.folder.join("control")).unwrap();
    // The model hangs up in the middle.
    let _ = control.write_all(&[b' '; 1 << 20]);
    assert!(!matches!(control.read(&mut [0]), Ok(1..)));
    assert!(probe.control(&json!({"get": "report"}))["counters"].is_object());
}

#[test]
fn dies_when_it_is_told_to() {
    let probe = Probe::start("die", &[]);
    let _client = probe.client();
    assert_eq!(probe.control(&json!({"do": "die"})), Value::Null);
    assert!(probe.end().0.success());

    let probe = Probe::start("die-at", &["--set", "die_at=3"]);
    let mut client = probe.client();
    for _ in 0..5 {
        write_register(&mut client);
    }
    let (status, report) = probe.end();
    assert!(status.success());
    assert_eq!(
        report["counters"]["write.8"], 2,
        "the third write was not done"
    );

    let probe = Probe::start("die-command", &["--set", "fail_command=2:die"]);
    let mut client = probe.client();
    for _ in 0..3 {
        write_at(&mut client, 0x20);
    }
    let (status, report) = probe.end();
    assert!(status.success());
    assert_eq!(report["counters"]["command.NOTHING"], 2);
}

#[test]
fn its_death_is_an_end_and_no_error_to_the_client() {
    let probe = Probe::start("die-unread", &["--set", "die_at=3"]);
    let mut client = probe.client();
    let mut payload = [0u64.to_le_bytes(), [0, 0, 0, 0, 8, 0, 0, 0], [0; 8]].concat();
    payload.splice(
        ..0,
        [10 << 16, 40, 1 << 4, 0].map(u32::to_le_bytes).concat(),
    );
    // More than the model reads at once, while it looks away: the rest finds nobody.
    let pid = Pid::from_raw(probe.child.id() as i32).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    client.write_all(&payload.repeat(3000)).unwrap();
    kill_process(pid, Signal::CONT).unwrap();
    assert!(probe.end().0.success());
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn tells_the_commands_since_the_last_time() {
    let probe = Probe::start("commands", &["--set", "fail_command=2:short"]);
    let mut client = probe.client();
    write_at(&mut client, 0x20);
    write_at(&mut client, 0x20);
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let more = probe.control(&json!({"do": "commands"}));
        seen.extend(more.as_array().unwrap().clone());
    }
    assert_eq!(
        seen,
        [json!(["NOTHING", null]), json!(["NOTHING", "short"])]
    );
    assert_eq!(probe.control(&json!({"do": "commands"})), json!([]));
}

#[test]
fn a_broken_client_is_an_error() {
    let mut probe = Probe::start("broken", &[]);
    let mut client = probe.client();
    send(&mut client, 13, 1, &[]);
    let status = probe.child.wait().unwrap();
    let mut errors = String::new();
    probe
        .child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut errors)
        .unwrap();
    assert!(!status.success());
    assert!(
        errors.contains("model-probe: vfio-user client sent a reply"),
        "{errors}"
    );
}

#[test]
fn wrong_options_say_what_is_right() {
    let errors = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_model-probe"))
            .args(args)
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(errors(&[]).contains("--socket PATH is missing"));
    assert!(errors(&["--socket", "/x", "--set", "nonsense"]).contains("KEY=VALUE"));
    assert!(errors(&["--socket", "/x", "--set", "fail_command=1:maybe"])
        .contains("error, nothing, wrong, zero, short or die"));
    assert!(errors(&["--socket", "/x", "--set", "msix_vectors=0"]).contains("1 to 2048"));
    assert!(
        errors(&["--socket", "/no/such/folder/x"]).contains("cannot listen at /no/such/folder/x")
    );
    assert!(errors(&["--bogus"]).contains("--help"));
}
