// SPDX-License-Identifier: GPL-2.0
//! Wires: what goes in at one end comes out at the other, or is counted.

use std::{os::unix::net::UnixDatagram, path::PathBuf};

use nic::{pcap::Tail, wire::MAX_FRAME, Report, Wire};

/// A folder of its own for each test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nic-wires-{}-{test}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(report: &Report, port: usize, spec: &str) -> Wire {
    Wire::open(report, port, spec).unwrap().remove(0)
}

fn receive(wire: &mut Wire) -> Option<Vec<u8>> {
    let mut buffer = vec![0; MAX_FRAME];
    wire.receive(&mut buffer).map(|len| buffer[..len].to_vec())
}

#[test]
fn a_loop_connects_two_ports() {
    let report = Report::default();
    let mut wires = Wire::open(&report, 0, "loop:").unwrap();
    assert_eq!(wires.len(), 2);
    let frame: Vec<u8> = (0..100).collect();
    wires[0].send(&frame);
    wires[0].send(&[7; 14]);
    wires[1].send(&frame);
    assert_eq!(receive(&mut wires[1]), Some(frame.clone()));
    assert_eq!(
        receive(&mut wires[1]),
        Some([vec![7; 14], vec![0; 46]].concat()),
        "padded as a MAC does"
    );
    assert_eq!(receive(&mut wires[1]), None);
    assert_eq!(receive(&mut wires[0]), Some(frame));
    assert_eq!(
        (
            report.get("port0.out_frames"),
            report.get("port1.in_frames")
        ),
        (2, 2)
    );
    assert_eq!(
        (report.get("port0.out_bytes"), report.get("port1.in_bytes")),
        (160, 160)
    );
}

#[test]
fn a_pair_waits_for_its_peer_and_outlives_it() {
    let (report, folder) = (Report::default(), Folder::new("pair"));
    let path = folder.path("wire");
    assert!(Wire::open(&report, 0, &format!("pair:{path}"))
        .err()
        .unwrap()
        .contains("first"));
    let mut listening = open(&report, 0, &format!("pair:{path},listen"));
    listening.send(&[1; 60]);
    assert_eq!(report.get("port0.drop.no_peer"), 1);
    for _ in 0..2 {
        let mut peer = open(&report, 1, &format!("pair:{path}"));
        assert_eq!(receive(&mut listening), None, "accepted");
        peer.send(&[2; 60]);
        assert_eq!(receive(&mut listening), Some(vec![2; 60]));
        listening.send(&[3; 60]);
        assert_eq!(receive(&mut peer), Some(vec![3; 60]));
        drop(peer);
        assert_eq!(receive(&mut listening), None, "the end is seen");
    }
    let mut peer = open(&report, 1, &format!("pair:{path}"));
    drop(listening);
    assert_eq!(receive(&mut peer), None);
    assert!(
        peer.poll_fd().is_none(),
        "an unplugged wire does not keep the loop awake"
    );
    peer.send(&[4; 60]);
    assert_eq!(report.get("port1.drop.no_peer"), 1);
}

#[test]
fn datagrams_go_where_qemu_listens() {
    let (report, folder) = (Report::default(), Folder::new("dgram"));
    let (local, remote) = (folder.path("local"), folder.path("remote"));
    let mut wire = open(&report, 0, &format!("dgram:{local},{remote}"));
    wire.send(&[1; 60]);
    assert_eq!(report.get("port0.drop.no_peer"), 1);
    let qemu = UnixDatagram::bind(&remote).unwrap();
    wire.send(&[2; 60]);
    let mut buffer = [0; 100];
    assert_eq!(qemu.recv(&mut buffer).unwrap(), 60);
    qemu.send_to(&[3; 13], &local).unwrap();
    qemu.send_to(&[3; MAX_FRAME + 1], &local).unwrap();
    qemu.send_to(&[3; 70], &local).unwrap();
    assert_eq!(receive(&mut wire), Some(vec![3; 70]));
    assert_eq!(report.get("port0.drop.length"), 2);
}

#[test]
fn nothing_passes_a_cable_that_is_out() {
    let report = Report::default();
    let mut wires = Wire::open(&report, 0, "loop:").unwrap();
    wires[1].set_up(false);
    wires[0].send(&[1; 60]);
    wires[1].send(&[1; 60]);
    assert_eq!(receive(&mut wires[1]), None);
    assert_eq!(receive(&mut wires[0]), None);
    assert_eq!(report.get("port1.drop.link_down"), 2);
    wires[1].set_up(true);
    wires[0].send(&[1; 60]);
    assert!(receive(&mut wires[1]).is_some());
}

#[test]
fn a_peer_that_does_not_read_costs_frames_not_time() {
    let report = Report::default();
    let mut wires = Wire::open(&report, 0, "loop:").unwrap();
    let mut sent = 0;
    while report.get("port0.drop.full") == 0 {
        wires[0].send(&[1; 1514]);
        sent += 1;
        assert!(sent < 1_000_000);
    }
    assert_eq!(report.get("port0.out_frames"), sent - 1);
    while receive(&mut wires[1]).is_some() {}
    assert_eq!(report.get("port1.in_frames"), sent - 1);
}

#[test]
fn wrong_specifications_say_what_is_right() {
    let report = Report::default();
    let error = |spec: &str| Wire::open(&report, 0, spec).err().unwrap();
    assert!(error("vde:x").contains("tap, pair, dgram, loop or null"));
    assert!(error("pair:/x,listening").contains("listen"));
    assert!(error("dgram:/x").contains("LOCAL,REMOTE"));
    assert!(error("tap:").contains("1 to 15"));
    assert!(error("tap:a-name-that-is-too-long").contains("1 to 15"));
}

/// The packets of a pcapng file: captured bytes, length on the wire, flags.
fn packets(path: &str) -> Vec<(Vec<u8>, u32, u32)> {
    let file = std::fs::read(path).unwrap();
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    assert_eq!((word(0), word(8)), (0x0a0d_0d0a, 0x1a2b_3c4d));
    let mut packets = Vec::new();
    let mut at = 0;
    while at < file.len() {
        let len = word(at + 4) as usize;
        assert_eq!(
            word(at + len - 4) as usize,
            len,
            "a block ends with its length"
        );
        if word(at) == 6 {
            let captured = word(at + 20) as usize;
            let options = at + 28 + captured.next_multiple_of(4);
            assert_eq!(word(options), (4 << 16) | 2);
            packets.push((
                file[at + 28..at + 28 + captured].to_vec(),
                word(at + 24),
                word(options + 4),
            ));
        }
        at += len;
    }
    packets
}

#[test]
fn a_capture_holds_both_directions() {
    let (report, folder) = (Report::default(), Folder::new("pcap"));
    let path = folder.path("port0.pcapng");
    let mut wires = Wire::open(&report, 0, "loop:").unwrap();
    wires[0].capture(path.as_ref()).unwrap();
    wires[0].send(&[1; 61]);
    wires[1].send(&[2; 62]);
    receive(&mut wires[0]).unwrap();
    wires[0].flush().unwrap();
    assert_eq!(packets(&path), [(vec![1; 61], 61, 2), (vec![2; 62], 62, 1)]);
}

#[test]
fn a_tail_holds_the_heads_of_the_last_frames() {
    let (report, folder) = (Report::default(), Folder::new("tail"));
    let path = folder.path("port0.pcapng");
    let mut wire = Wire::null(&report, 0);
    wire.capture_tail(path.as_ref());
    for number in 0..=Tail::FRAMES {
        wire.send(&[number as u8; 1000]);
    }
    wire.flush().unwrap();
    let packets = packets(&path);
    assert_eq!(packets.len(), Tail::FRAMES);
    assert_eq!(packets[0], (vec![1; Tail::SNAP], 1000, 2));
    assert_eq!(packets[Tail::FRAMES - 1].0, vec![0; Tail::SNAP]);
}
