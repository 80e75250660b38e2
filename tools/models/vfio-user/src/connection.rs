// SPDX-License-Identifier: GPL-2.0
//! Messages in, calls of the device, replies out.

use std::{
    collections::VecDeque,
    fmt, io,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::{
    io::Errno,
    net::{recvmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags},
};
use serde_json::json;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::{wire, Device, DmaMap, IrqAction, IRQS, REGIONS};

/// File descriptors that one message may carry, announced to the client.
const MAX_FDS: usize = 16;
/// Bytes that one region access may carry, announced to the client.
const MAX_TRANSFER: usize = 1 << 20;
/// Mappings at one time, announced to the client; QEMU refuses more than this.
const MAX_MAPS: u32 = 65535;
/// Largest message that is taken: more than any that keeps to `MAX_TRANSFER`.
const MAX_MESSAGE: usize = MAX_TRANSFER + 4096;
/// Bytes that one recvmsg(2) asks for.
const CHUNK: usize = 64 << 10;

/// Whether the client is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Wait for the file descriptor to become readable again.
    Open,
    /// The client has closed the connection.
    Closed,
}

/// The stream cannot be used any more.
#[derive(Debug)]
pub enum ProtocolError {
    /// The socket failed.
    Io(io::Error),
    /// The client sent what is no vfio-user message.
    Malformed(&'static str),
    /// The client and this crate have no version in common.
    Version {
        /// Major version that the client speaks.
        major: u16,
    },
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "vfio-user socket: {error}"),
            Self::Malformed(what) => write!(f, "vfio-user client sent {what}"),
            Self::Version { major } => {
                write!(f, "vfio-user client speaks version {major}.x, this server 0.0: use QEMU 10.1 or later")
            }
        }
    }
}

impl std::error::Error for ProtocolError {}

impl From<io::Error> for ProtocolError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Errno> for ProtocolError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

/// One client.
pub struct Connection {
    stream: UnixStream,
    /// Received bytes from `start` to `end` are not handled yet.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// File descriptors and the position in `buffer` of the last byte that came with them.
    fds: VecDeque<(usize, Vec<OwnedFd>)>,
    reply: Vec<u8>,
    negotiated: bool,
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Connection {
    /// A connection on an accepted stream, in blocking mode.
    pub fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            buffer: vec![0; CHUNK],
            start: 0,
            end: 0,
            fds: VecDeque::new(),
            reply: Vec::with_capacity(4096),
            negotiated: false,
        }
    }

    /// Handles what the client has sent until now; never waits for more.
    ///
    /// # Errors
    /// The connection is of no use after an error.
    pub fn serve(&mut self, device: &mut impl Device) -> Result<State, ProtocolError> {
        match self.receive()? {
            Some(0) => return Ok(State::Closed),
            Some(_) => {}
            None => return Ok(State::Open),
        }
        while let Some(size) = self.complete_message()? {
            let message = self.start..self.start + size;
            self.start += size;
            let mut fds = Vec::new();
            while self.fds.front().is_some_and(|(at, _)| *at < message.end) {
                fds.extend(self.fds.pop_front().into_iter().flat_map(|(_, fds)| fds));
            }
            // The buffer is lent out so that the message can be read while the reply is written.
            let buffer = std::mem::take(&mut self.buffer);
            let handled = self.message(&buffer[message], fds, device);
            self.buffer = buffer;
            handled?;
        }
        Ok(State::Open)
    }

    /// Reads what is there: the number of bytes, or `None` if there is nothing yet.
    fn receive(&mut self) -> Result<Option<usize>, ProtocolError> {
        self.make_room();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut iov = [io::IoSliceMut::new(&mut self.buffer[self.end..])];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received = match recvmsg(&self.stream, &mut iov, &mut ancillary, flags) {
            Ok(received) => received.bytes,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(Errno::CONNRESET) => 0,
            Err(error) => return Err(error.into()),
        };
        self.end += received;
        let mut fds = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        if !fds.is_empty() {
            // The kernel ends a read after the bytes that file descriptors were sent with, so they belong to
            // the message of the last byte received.
            self.fds.push_back((self.end.saturating_sub(1), fds));
        }
        Ok(Some(received))
    }

    /// Moves what is left to the front, and makes the buffer large enough for the message at hand.
    fn make_room(&mut self) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            for (at, _) in &mut self.fds {
                *at -= self.start;
            }
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() + CHUNK, 0);
        }
    }

    /// Size of the message at `start`, if all of it is there.
    fn complete_message(&self) -> Result<Option<usize>, ProtocolError> {
        let received = &self.buffer[self.start..self.end];
        let Ok((header, _)) = wire::Header::ref_from_prefix(received) else {
            return Ok(None);
        };
        let size = header.size.get() as usize;
        if !(wire::HEADER..=MAX_MESSAGE).contains(&size) {
            return Err(ProtocolError::Malformed(
                "a message of a size that no message has",
            ));
        }
        Ok((size <= received.len()).then_some(size))
    }

    fn message(
        &mut self,
        message: &[u8],
        fds: Vec<OwnedFd>,
        device: &mut impl Device,
    ) -> Result<(), ProtocolError> {
        let Ok((header, payload)) = wire::Header::read_from_prefix(message) else {
            return Err(ProtocolError::Malformed("less than a header"));
        };
        if header.flags.get() & wire::FLAG_TYPE != 0 {
            return Err(ProtocolError::Malformed("a reply, and nothing was asked"));
        }
        let command = header.command.get();
        self.reply.clear();
        self.reply.resize(wire::HEADER, 0);
        let outcome = if command == wire::VERSION {
            self.version(payload)?;
            Ok(())
        } else if self.negotiated {
            self.command(command, payload, fds, device)
        } else {
            return Err(ProtocolError::Malformed(
                "a command before the version was agreed",
            ));
        };
        if header.flags.get() & wire::FLAG_NO_REPLY != 0 {
            return Ok(());
        }
        let (flags, error) = match outcome {
            Ok(()) => (wire::FLAG_REPLY, 0),
            Err(error) => {
                self.reply.truncate(wire::HEADER);
                (
                    wire::FLAG_REPLY | wire::FLAG_ERROR,
                    error.raw_os_error() as u32,
                )
            }
        };
        let reply = wire::Header {
            id: header.id,
            command: header.command,
            size: (self.reply.len() as u32).into(),
            flags: flags.into(),
            error: error.into(),
        };
        self.reply[..wire::HEADER].copy_from_slice(reply.as_bytes());
        // One write: QEMU takes a header that arrives in pieces for a broken stream.
        match io::Write::write_all(&mut self.stream, &self.reply) {
            // A client that has gone is found out at the next read.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(Into::into),
        }
    }

    fn version(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        let Ok((version, _)) = wire::Version::ref_from_prefix(payload) else {
            return Err(ProtocolError::Malformed(
                "a version message without a version",
            ));
        };
        let major = version.major.get();
        if major != 0 {
            return Err(ProtocolError::Version { major });
        }
        let capabilities = json!({"capabilities": {
            "max_msg_fds": MAX_FDS,
            "max_data_xfer_size": MAX_TRANSFER,
            "max_dma_maps": MAX_MAPS,
            "pgsizes": 4096,
            "write_multiple": true,
        }});
        // Version 0.0, the only one; the client's minor version may be higher, ours is what counts.
        self.reply.extend(wire::Version::default().as_bytes());
        self.reply.extend(capabilities.to_string().into_bytes());
        self.reply.push(0);
        self.negotiated = true;
        Ok(())
    }

    fn command(
        &mut self,
        command: u16,
        payload: &[u8],
        fds: Vec<OwnedFd>,
        device: &mut impl Device,
    ) -> Result<(), Errno> {
        match command {
            wire::DMA_MAP => {
                let (map, _) = parse::<wire::DmaMap>(payload)?;
                let flags = map.flags.get();
                device.dma_map(DmaMap {
                    address: map.address.get(),
                    size: map.size.get(),
                    offset: map.offset.get(),
                    read: flags & wire::MAP_FLAG_READ != 0,
                    write: flags & wire::MAP_FLAG_WRITE != 0,
                    fd: fds.into_iter().next(),
                })
            }
            wire::DMA_UNMAP => {
                let (unmap, _) = parse::<wire::DmaUnmap>(payload)?;
                self.reply.extend(unmap.as_bytes());
                if unmap.flags.get() & wire::UNMAP_FLAG_ALL != 0 {
                    device.dma_unmap_all();
                    return Ok(());
                }
                device.dma_unmap(unmap.address.get(), unmap.size.get())
            }
            wire::DEVICE_GET_INFO => self.info(wire::DeviceInfo {
                argsz: argsz::<wire::DeviceInfo>(),
                flags: (wire::DEVICE_FLAG_PCI | wire::DEVICE_FLAG_RESET).into(),
                regions: REGIONS.into(),
                irqs: IRQS.into(),
            }),
            wire::DEVICE_GET_REGION_INFO => {
                let (asked, _) = parse::<wire::RegionInfo>(payload)?;
                let index = asked.index.get();
                if index >= REGIONS {
                    return Err(Errno::INVAL);
                }
                let size = device.region_size(index);
                let flags = if size > 0 {
                    wire::REGION_FLAG_READ | wire::REGION_FLAG_WRITE
                } else {
                    0
                };
                self.info(wire::RegionInfo {
                    argsz: argsz::<wire::RegionInfo>(),
                    flags: flags.into(),
                    index: index.into(),
                    size: size.into(),
                    ..FromZeros::new_zeroed()
                })
            }
            wire::DEVICE_GET_IRQ_INFO => {
                let (asked, _) = parse::<wire::IrqInfo>(payload)?;
                let index = asked.index.get();
                if index >= IRQS {
                    return Err(Errno::INVAL);
                }
                // No NORESIZE: a driver that starts with one vector and adds others costs one message for each.
                self.info(wire::IrqInfo {
                    argsz: argsz::<wire::IrqInfo>(),
                    flags: wire::IRQ_FLAG_EVENTFD.into(),
                    index: index.into(),
                    count: device.irq_count(index).into(),
                })
            }
            wire::DEVICE_SET_IRQS => set_irqs(payload, fds, device),
            wire::REGION_READ => {
                let (access, _) = parse::<wire::RegionAccess>(payload)?;
                let count = check_range(device, &access)?;
                self.reply.extend(access.as_bytes());
                let data = self.reply.len();
                self.reply.resize(data + count, 0);
                device.read(
                    access.region.get(),
                    access.offset.get(),
                    &mut self.reply[data..],
                )
            }
            wire::REGION_WRITE => {
                let (access, data) = parse::<wire::RegionAccess>(payload)?;
                self.reply.extend(access.as_bytes());
                write(device, &access, data)
            }
            wire::REGION_WRITE_MULTI => {
                let (multi, mut rest) = parse::<wire::WriteMulti>(payload)?;
                self.reply.extend(multi.as_bytes());
                for _ in 0..multi.writes.get() {
                    let (one, after) = parse::<wire::OneWrite>(rest)?;
                    write(device, &one.access, &one.data)?;
                    rest = after;
                }
                Ok(())
            }
            wire::DEVICE_RESET => {
                device.reset();
                Ok(())
            }
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    fn info(&mut self, answer: impl IntoBytes + Immutable) -> Result<(), Errno> {
        self.reply.extend(answer.as_bytes());
        Ok(())
    }
}

fn parse<T: FromBytes + KnownLayout + Immutable>(payload: &[u8]) -> Result<(T, &[u8]), Errno> {
    T::read_from_prefix(payload).map_err(|_| Errno::INVAL)
}

fn argsz<T>() -> zerocopy::little_endian::U32 {
    (size_of::<T>() as u32).into()
}

/// The length of an access, if it is inside the region.
fn check_range(device: &impl Device, access: &wire::RegionAccess) -> Result<usize, Errno> {
    let count = access.count.get() as usize;
    let end = access
        .offset
        .get()
        .checked_add(count as u64)
        .ok_or(Errno::INVAL)?;
    if access.region.get() >= REGIONS
        || end > device.region_size(access.region.get())
        || count > MAX_TRANSFER
    {
        return Err(Errno::INVAL);
    }
    Ok(count)
}

fn write(device: &mut impl Device, access: &wire::RegionAccess, data: &[u8]) -> Result<(), Errno> {
    let count = check_range(device, access)?;
    let data = data.get(..count).ok_or(Errno::INVAL)?;
    device.write(access.region.get(), access.offset.get(), data)
}

fn set_irqs(payload: &[u8], fds: Vec<OwnedFd>, device: &mut impl Device) -> Result<(), Errno> {
    let (set, _) = parse::<wire::IrqSet>(payload)?;
    let (index, start, count) = (set.index.get(), set.start.get(), set.count.get());
    let flags = set.flags.get();
    let end = start.checked_add(count).ok_or(Errno::INVAL)?;
    if index >= IRQS || end > device.irq_count(index) {
        return Err(Errno::INVAL);
    }
    let action = match (flags & wire::SET_DATA, flags & wire::SET_ACTION) {
        (wire::SET_DATA_EVENTFD, wire::SET_ACTION_TRIGGER)
            if fds.is_empty() || fds.len() == count as usize =>
        {
            IrqAction::Connect(fds)
        }
        (wire::SET_DATA_NONE, wire::SET_ACTION_TRIGGER) if count == 0 => IrqAction::DisableAll,
        (wire::SET_DATA_NONE, wire::SET_ACTION_TRIGGER) => IrqAction::Trigger,
        (wire::SET_DATA_NONE, wire::SET_ACTION_MASK) => IrqAction::Mask,
        (wire::SET_DATA_NONE, wire::SET_ACTION_UNMASK) => IrqAction::Unmask,
        _ => return Err(Errno::INVAL),
    };
    device.set_irqs(index, start, count, action)
}
