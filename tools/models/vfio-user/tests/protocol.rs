// SPDX-License-Identifier: GPL-2.0
//! A client that sends raw messages, well formed and not.

use std::{
    io::{IoSlice, Read, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::{
    event::{eventfd, poll, EventfdFlags, PollFd, PollFlags, Timespec},
    net::{sendmsg, SendAncillaryBuffer, SendAncillaryMessage, SendFlags},
};
use vfio_user::{
    Connection, Device, DmaMap, Errno, IrqAction, ProtocolError, State, CONFIG_REGION, MSIX_IRQ,
};

const VERSION: u16 = 1;
const DMA_MAP: u16 = 2;
const DMA_UNMAP: u16 = 3;
const GET_INFO: u16 = 4;
const GET_REGION_INFO: u16 = 5;
const GET_REGION_IO_FDS: u16 = 6;
const GET_IRQ_INFO: u16 = 7;
const SET_IRQS: u16 = 8;
const REGION_READ: u16 = 9;
const REGION_WRITE: u16 = 10;
const RESET: u16 = 13;
const WRITE_MULTI: u16 = 15;
const NO_REPLY: u32 = 1 << 4;

/// Notes what it was asked; region 0 has 64 bytes.
struct Recorder {
    memory: Vec<u8>,
    calls: Vec<String>,
}

impl Device for Recorder {
    fn region_size(&self, region: u32) -> u64 {
        match region {
            0 => 64,
            CONFIG_REGION => 4096,
            _ => 0,
        }
    }

    fn irq_count(&self, index: u32) -> u32 {
        if index == MSIX_IRQ {
            8
        } else {
            0
        }
    }

    fn read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> Result<(), Errno> {
        self.calls
            .push(format!("read {region} {offset:#x} {}", data.len()));
        let at = offset as usize;
        data.copy_from_slice(&self.memory[at..at + data.len()]);
        Ok(())
    }

    fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<(), Errno> {
        self.calls
            .push(format!("write {region} {offset:#x} {data:02x?}"));
        let at = offset as usize;
        self.memory[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }

    fn dma_map(&mut self, map: DmaMap) -> Result<(), Errno> {
        let DmaMap {
            address,
            size,
            offset,
            read,
            write,
            fd,
        } = map;
        self.calls.push(format!(
            "map {address:#x} {size:#x} {offset:#x} {read} {write} {}",
            fd.is_some()
        ));
        if size == 0 {
            Err(Errno::INVAL)
        } else {
            Ok(())
        }
    }

    fn dma_unmap(&mut self, address: u64, size: u64) -> Result<(), Errno> {
        self.calls.push(format!("unmap {address:#x} {size:#x}"));
        Ok(())
    }

    fn dma_unmap_all(&mut self) {
        self.calls.push("unmap all".into());
    }

    fn set_irqs(
        &mut self,
        index: u32,
        start: u32,
        count: u32,
        action: IrqAction,
    ) -> Result<(), Errno> {
        let action = match action {
            IrqAction::Connect(fds) => format!("connect {}", fds.len()),
            other => format!("{other:?}"),
        };
        self.calls
            .push(format!("irqs {index} {start} {count} {action}"));
        Ok(())
    }

    fn reset(&mut self) {
        self.calls.push("reset".into());
    }
}

/// What came back for one command.
#[derive(Debug, PartialEq)]
struct Reply {
    error: u32,
    payload: Vec<u8>,
}

struct Client {
    stream: UnixStream,
    connection: Connection,
    device: Recorder,
    id: u16,
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn longs(longs: &[u64]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_le_bytes()).collect()
}

fn access(offset: u64, region: u32, count: u32) -> Vec<u8> {
    [longs(&[offset]), words(&[region, count])].concat()
}

fn message(id: u16, command: u16, flags: u32, payload: &[u8]) -> Vec<u8> {
    let ids = u32::from(id) | (u32::from(command) << 16);
    [
        words(&[ids, 16 + payload.len() as u32, flags, 0]),
        payload.to_vec(),
    ]
    .concat()
}

impl Client {
    /// A client before the version is agreed.
    fn new() -> Self {
        let (stream, server) = UnixStream::pair().unwrap();
        Self {
            stream,
            connection: Connection::new(server),
            device: Recorder {
                memory: vec![0; 64],
                calls: Vec::new(),
            },
            id: 0,
        }
    }

    fn connected() -> Self {
        let mut client = Self::new();
        let reply = client.command(VERSION, b"\0\0\0\0{\"capabilities\":{}}\0");
        assert_eq!(reply.error, 0);
        let text = reply.payload[4..].strip_suffix(b"\0").expect("a C string");
        let version: serde_json::Value = serde_json::from_slice(text).unwrap();
        assert_eq!(version["capabilities"]["write_multiple"], true);
        assert_eq!(version["capabilities"]["max_dma_maps"], 65535);
        client
    }

    fn serve(&mut self) -> Result<State, ProtocolError> {
        self.connection.serve(&mut self.device)
    }

    /// Serves until all that was sent is handled.
    fn serve_all(&mut self) {
        let nothing = Timespec::default();
        while poll(
            &mut [PollFd::new(&self.connection, PollFlags::IN)],
            Some(&nothing),
        )
        .unwrap()
            > 0
        {
            assert_eq!(self.serve().unwrap(), State::Open);
        }
    }

    fn reply(&mut self) -> Reply {
        let mut header = [0; 16];
        self.stream.read_exact(&mut header).unwrap();
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        assert_eq!(word(0) & 0xffff, u32::from(self.id));
        let mut payload = vec![0; word(4) as usize - 16];
        self.stream.read_exact(&mut payload).unwrap();
        let error = word(12);
        assert_eq!(word(8), if error == 0 { 1 } else { 0x21 });
        Reply { error, payload }
    }

    fn command(&mut self, command: u16, payload: &[u8]) -> Reply {
        self.command_with_fds(command, payload, &[])
    }

    fn command_with_fds(&mut self, command: u16, payload: &[u8], fds: &[OwnedFd]) -> Reply {
        self.id += 1;
        self.send(&message(self.id, command, 0, payload), fds);
        self.serve_all();
        self.reply()
    }

    fn send(&self, bytes: &[u8], fds: &[OwnedFd]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        if !fds.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(&fds)));
        }
        let sent = sendmsg(
            &self.stream,
            &[IoSlice::new(bytes)],
            &mut ancillary,
            SendFlags::empty(),
        )
        .unwrap();
        assert_eq!(sent, bytes.len());
    }

    fn calls(&mut self) -> Vec<String> {
        std::mem::take(&mut self.device.calls)
    }
}

fn eventfds(count: usize) -> Vec<OwnedFd> {
    (0..count)
        .map(|_| eventfd(0, EventfdFlags::empty()).unwrap())
        .collect()
}

const EINVAL: u32 = 22;
const EOPNOTSUPP: u32 = 95;

#[test]
fn describes_the_function() {
    let mut client = Client::connected();
    assert_eq!(
        client.command(GET_INFO, &words(&[16, 0, 0, 0])).payload,
        words(&[16, 3, 9, 5])
    );
    let asked = |index| [words(&[32, 0, index, 0]), longs(&[0, 0])].concat();
    let region = |flags, index, size| [words(&[32, flags, index, 0]), longs(&[size, 0])].concat();
    assert_eq!(
        client.command(GET_REGION_INFO, &asked(0)).payload,
        region(3, 0, 64)
    );
    assert_eq!(
        client.command(GET_REGION_INFO, &asked(6)).payload,
        region(0, 6, 0)
    );
    assert_eq!(client.command(GET_REGION_INFO, &asked(9)).error, EINVAL);
    assert_eq!(
        client.command(GET_IRQ_INFO, &words(&[16, 0, 2, 0])).payload,
        words(&[16, 1, 2, 8])
    );
    assert_eq!(
        client.command(GET_IRQ_INFO, &words(&[16, 0, 5, 0])).error,
        EINVAL
    );
}

#[test]
fn reads_and_writes_regions() {
    let mut client = Client::connected();
    let write = [access(8, 0, 8), longs(&[0x1122_3344_5566_7788])].concat();
    assert_eq!(
        client.command(REGION_WRITE, &write),
        Reply {
            error: 0,
            payload: access(8, 0, 8)
        }
    );
    let reply = client.command(REGION_READ, &access(12, 0, 4));
    assert_eq!(
        reply.payload,
        [access(12, 0, 4), words(&[0x1122_3344])].concat()
    );
    assert_eq!(
        client.calls(),
        [
            "write 0 0x8 [88, 77, 66, 55, 44, 33, 22, 11]",
            "read 0 0xc 4"
        ]
    );
}

#[test]
fn refuses_accesses_outside_a_region() {
    let mut client = Client::connected();
    for outside in [
        access(60, 0, 8),
        access(u64::MAX, 0, 2),
        access(0, 1, 1),
        access(0, 9, 1),
        access(0, 0, u32::MAX),
    ] {
        assert_eq!(
            client.command(REGION_READ, &outside),
            Reply {
                error: EINVAL,
                payload: vec![]
            }
        );
        assert_eq!(
            client
                .command(REGION_WRITE, &[outside, vec![0; 8]].concat())
                .error,
            EINVAL
        );
    }
    // Fewer bytes than announced.
    assert_eq!(
        client
            .command(REGION_WRITE, &[access(0, 0, 8), vec![0; 7]].concat())
            .error,
        EINVAL
    );
    assert!(client.calls().is_empty());
}

#[test]
fn many_posted_writes_arrive_in_order() {
    let mut client = Client::connected();
    let one = |offset, value: u64| [access(offset, 0, 4), longs(&[value])].concat();
    let multi = [longs(&[2]), one(0, 1), one(4, 2)].concat();
    let mut batch = message(0, WRITE_MULTI, NO_REPLY, &multi);
    batch.extend(message(
        0,
        REGION_WRITE,
        NO_REPLY,
        &[access(8, 0, 1), vec![3]].concat(),
    ));
    // An error of a message that wants no reply has none either.
    batch.extend(message(0, REGION_WRITE, NO_REPLY, &access(8, 0, 1)));
    client.send(&batch, &[]);
    client.serve().unwrap();
    assert_eq!(
        client.calls(),
        [
            "write 0 0x0 [01, 00, 00, 00]",
            "write 0 0x4 [02, 00, 00, 00]",
            "write 0 0x8 [03]"
        ]
    );
    let outside = [longs(&[3]), one(0, 1), one(64, 2), one(4, 3)].concat();
    assert_eq!(client.command(WRITE_MULTI, &outside).error, EINVAL);
    assert_eq!(client.calls(), ["write 0 0x0 [01, 00, 00, 00]"]);
    let cut = [longs(&[u64::MAX]), one(0, 5)].concat();
    assert_eq!(client.command(WRITE_MULTI, &cut).error, EINVAL);
    assert_eq!(client.calls(), ["write 0 0x0 [05, 00, 00, 00]"]);
}

#[test]
fn maps_with_and_without_memory() {
    let mut client = Client::connected();
    let map =
        |flags, address, size| [words(&[32, flags]), longs(&[0x1000, address, size])].concat();
    assert_eq!(
        client
            .command_with_fds(DMA_MAP, &map(3, 0x10_0000, 0x2000), &eventfds(1))
            .error,
        0
    );
    assert_eq!(client.command(DMA_MAP, &map(1, 0xc_0000, 0x1000)).error, 0);
    assert_eq!(client.command(DMA_MAP, &map(1, 0, 0)).error, EINVAL);
    let unmap = |flags, address, size| [words(&[24, flags]), longs(&[address, size])].concat();
    assert_eq!(
        client
            .command(DMA_UNMAP, &unmap(0, 0x10_0000, 0x2000))
            .error,
        0
    );
    assert_eq!(client.command(DMA_UNMAP, &unmap(2, 0, 0)).error, 0);
    assert_eq!(
        client.calls(),
        [
            "map 0x100000 0x2000 0x1000 true true true",
            "map 0xc0000 0x1000 0x1000 true false false",
            "map 0x0 0x0 0x1000 true false false",
            "unmap 0x100000 0x2000",
            "unmap all",
        ]
    );
}

/// QEMU sends mappings without waiting: descriptors must stay with their message when one read gets several.
#[test]
fn descriptors_stay_with_their_message() {
    let mut client = Client::connected();
    let map = |address: u64| {
        let payload = [words(&[32, 3]), longs(&[0, address, 0x1000])].concat();
        message(0, DMA_MAP, NO_REPLY, &payload)
    };
    client.send(&map(0x1000), &[]);
    client.send(&map(0x2000), &eventfds(1));
    client.send(&map(0x3000), &[]);
    client.send(&map(0x4000), &eventfds(1));
    client.serve_all();
    let with: Vec<bool> = client
        .calls()
        .iter()
        .map(|call| call.ends_with("true true true"))
        .collect();
    assert_eq!(with, [false, true, false, true]);
}

#[test]
fn descriptors_stay_with_a_message_in_two_parts() {
    let mut client = Client::connected();
    let payload = [words(&[32, 3]), longs(&[0, 0x1000, 0x1000])].concat();
    let map = message(0, DMA_MAP, NO_REPLY, &payload);
    let (first, second) = map.split_at(20);
    let reset = message(0, RESET, NO_REPLY, &[]);
    // Enough before it that the place of the descriptor changes by more than a message.
    client.send(&[&reset.repeat(9), first].concat(), &eventfds(1));
    client.serve_all();
    assert_eq!(client.calls(), ["reset"; 9]);
    client.send(
        &[second, &message(0, DMA_MAP, NO_REPLY, &payload)].concat(),
        &[],
    );
    client.serve_all();
    let with: Vec<bool> = client
        .calls()
        .iter()
        .map(|call| call.ends_with("true true true"))
        .collect();
    assert_eq!(with, [true, false]);
}

#[test]
fn connects_and_disables_interrupts() {
    let mut client = Client::connected();
    let set = |flags, start, count| words(&[20, flags, 2, start, count]);
    assert_eq!(
        client
            .command_with_fds(SET_IRQS, &set(0x24, 2, 3), &eventfds(3))
            .error,
        0
    );
    assert_eq!(client.command(SET_IRQS, &set(0x24, 4, 1)).error, 0);
    assert_eq!(client.command(SET_IRQS, &set(0x21, 0, 0)).error, 0);
    assert_eq!(client.command(SET_IRQS, &set(0x21, 1, 1)).error, 0);
    assert_eq!(client.command(SET_IRQS, &set(0x09, 1, 1)).error, 0);
    assert_eq!(client.command(SET_IRQS, &set(0x11, 1, 1)).error, 0);
    assert_eq!(
        client.calls(),
        [
            "irqs 2 2 3 connect 3",
            "irqs 2 4 1 connect 0",
            "irqs 2 0 0 DisableAll",
            "irqs 2 1 1 Trigger",
            "irqs 2 1 1 Mask",
            "irqs 2 1 1 Unmask",
        ]
    );
    // Too few descriptors, too many vectors, two actions at once.
    assert_eq!(
        client
            .command_with_fds(SET_IRQS, &set(0x24, 0, 2), &eventfds(1))
            .error,
        EINVAL
    );
    assert_eq!(client.command(SET_IRQS, &set(0x24, 7, 2)).error, EINVAL);
    assert_eq!(
        client.command(SET_IRQS, &set(0x24, u32::MAX, 2)).error,
        EINVAL
    );
    assert_eq!(client.command(SET_IRQS, &set(0x31, 0, 1)).error, EINVAL);
    assert!(client.calls().is_empty());
}

#[test]
fn unknown_commands_do_not_lose_the_stream() {
    let mut client = Client::connected();
    for command in [0, GET_REGION_IO_FDS, 14, 16, 1000] {
        assert_eq!(
            client.command(command, &[0xee; 100]),
            Reply {
                error: EOPNOTSUPP,
                payload: vec![]
            }
        );
    }
    assert_eq!(client.command(RESET, &[]).error, 0);
    assert_eq!(client.calls(), ["reset"]);
}

#[test]
fn messages_may_arrive_byte_by_byte_and_be_large() {
    let mut client = Client::connected();
    client.id += 1;
    for byte in message(client.id, RESET, 0, &[]) {
        assert!(client.calls().is_empty());
        client.stream.write_all(&[byte]).unwrap();
        client.serve().unwrap();
    }
    assert_eq!(client.reply().error, 0);
    assert_eq!(client.calls(), ["reset"]);

    let large = message(0, 1000, NO_REPLY, &vec![0; 300_000]);
    let mut writer = client.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || writer.write_all(&large).unwrap());
    while !sender.is_finished() {
        client.serve().unwrap();
    }
    sender.join().unwrap();
    assert_eq!(client.command(RESET, &[]).error, 0);
}

#[test]
fn broken_streams_end_the_connection() {
    let broken = |bytes: &[u8]| {
        let mut client = Client::connected();
        client.stream.write_all(bytes).unwrap();
        client.serve().unwrap_err().to_string()
    };
    let size = |size| words(&[u32::from(RESET) << 16, size, 0, 0]);
    assert!(broken(&size(15)).contains("size"));
    assert!(broken(&size(u32::MAX)).contains("size"));
    assert!(broken(&words(&[u32::from(RESET) << 16, 16, 1, 0])).contains("reply"));

    let mut early = Client::new();
    early.stream.write_all(&message(0, RESET, 0, &[])).unwrap();
    assert!(early
        .serve()
        .unwrap_err()
        .to_string()
        .contains("before the version"));

    let mut newer = Client::new();
    newer
        .stream
        .write_all(&message(0, VERSION, 0, b"\x01\0\0\0"))
        .unwrap();
    assert!(matches!(
        newer.serve(),
        Err(ProtocolError::Version { major: 1 })
    ));
}

#[test]
fn the_end_of_the_client_is_seen() {
    let mut client = Client::connected();
    assert_eq!(client.serve().unwrap(), State::Open);
    client.stream.shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(client.serve().unwrap(), State::Closed);
}

/// Any contents of any message are answered, and the stream goes on.
#[test]
fn random_messages_are_answered() {
    let mut client = Client::connected();
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = move || {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..20_000 {
        let command = 2 + (random() % 20) as u16;
        // Small numbers, so that some of them are in range, among large ones.
        let word = |value: u64| {
            if value & 1 == 0 {
                (value >> 1) & 0xf
            } else {
                value
            }
        };
        let words = (0..random() % 12).flat_map(|_| (word(random()) as u32).to_le_bytes());
        let payload: Vec<u8> = words.collect();
        let fds = if random() % 8 == 0 {
            eventfds(1)
        } else {
            Vec::new()
        };
        client.command_with_fds(command, &payload, &fds);
        client.calls();
    }
}
