// SPDX-License-Identifier: GPL-2.0
//! What the ports of a model are plugged into.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    event::PollFlags,
    fs::{fcntl_getfl, fcntl_setfl, OFlags},
    io::Errno,
    net::{
        accept_with, bind, connect, listen, recv, send, sendto, socket_with, socketpair, sockopt,
        AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    },
};

use crate::{
    offload::{Malformed, Transmit},
    pcap::{Direction, Pcap, Tail},
    Counter, Report,
};

/// Frames shorter than this are taken from a wire or sent; longer ones are dropped.
pub const MAX_FRAME: usize = 16 << 10;
/// Shortest frame on Ethernet, without FCS: shorter ones are padded, as a MAC does.
const MIN_FRAME: usize = 60;
/// Length of an Ethernet header: no frame is shorter.
const HEADER: usize = 14;
/// Bytes that a socket may hold for a peer that is not running just now.
const SOCKET_BUFFER: usize = 4 << 20;

enum Link {
    Null,
    Tap(OwnedFd),
    /// SEQPACKET socket to another model or to another port of this one.
    Pair(OwnedFd),
    /// Waiting for another model; goes back here when it leaves.
    Listen(OwnedFd, Option<OwnedFd>),
    /// Datagram socket and where it sends to.
    Dgram(OwnedFd, SocketAddrUnix),
    /// The peer has closed its end.
    Unplugged,
}

struct Counters {
    in_frames: Counter,
    in_bytes: Counter,
    out_frames: Counter,
    out_bytes: Counter,
    /// The peer does not read fast enough.
    drop_full: Counter,
    drop_no_peer: Counter,
    drop_link_down: Counter,
    /// Shorter or longer than any frame.
    drop_length: Counter,
    drop_error: Counter,
}

/// The wire of one port.
pub struct Wire {
    port: usize,
    link: Link,
    up: bool,
    max_frame: usize,
    pcap: Option<Pcap>,
    tail: Option<Tail>,
    report: Report,
    counters: Counters,
    /// Where segments are built, one after the other.
    pub(crate) segment: Vec<u8>,
}

impl Wire {
    /// A wire that is open already.
    fn new(report: &Report, port: usize, link: Link) -> Self {
        let counter = |name: &str| report.counter(format!("port{port}.{name}"));
        let counters = Counters {
            in_frames: counter("in_frames"),
            in_bytes: counter("in_bytes"),
            out_frames: counter("out_frames"),
            out_bytes: counter("out_bytes"),
            drop_full: counter("drop.full"),
            drop_no_peer: counter("drop.no_peer"),
            drop_link_down: counter("drop.link_down"),
            drop_length: counter("drop.length"),
            drop_error: counter("drop.error"),
        };
        Self {
            port,
            link,
            up: true,
            max_frame: MAX_FRAME - 1,
            pcap: None,
            tail: None,
            report: report.clone(),
            counters,
            segment: Vec::new(),
        }
    }

    /// A wire that drops everything.
    pub fn null(report: &Report, port: usize) -> Self {
        Self::new(report, port, Link::Null)
    }

    /// Two ports of this process plugged into each other.
    ///
    /// # Errors
    /// What making the sockets says.
    pub fn pair(report: &Report, port: usize, other: usize) -> io::Result<(Self, Self)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        for socket in [&a, &b] {
            sockopt::set_socket_send_buffer_size(socket, SOCKET_BUFFER)?;
        }
        Ok((
            Self::new(report, port, Link::Pair(a)),
            Self::new(report, other, Link::Pair(b)),
        ))
    }

    /// Opens the wire or wires that `spec` names, for ports from `port` on:
    /// `tap:NAME`, `pair:PATH[,listen]`, `dgram:LOCAL,REMOTE`, `loop:` (two ports) or `null`.
    ///
    /// `dgram` is for QEMU's `-netdev dgram`. The kernel keeps only `net.unix.max_dgram_qlen` frames for a
    /// receiver (10 by default): bursts lose frames there, which are counted as `drop.full`.
    ///
    /// # Errors
    /// A sentence that says what is wrong with `spec` or could not be opened.
    pub fn open(report: &Report, port: usize, spec: &str) -> Result<Vec<Self>, String> {
        let (kind, rest) = spec.split_once(':').unwrap_or((spec, ""));
        let failed = |error: io::Error| format!("cannot open wire {spec}: {error}");
        let link = match kind {
            "null" => Link::Null,
            "tap" => Link::Tap(tap::open(rest).map_err(failed)?),
            "pair" => match rest.split_once(',') {
                Some((path, "listen")) => Link::Listen(listen_at(path).map_err(failed)?, None),
                Some(_) => return Err(format!("wire {spec}: only \"listen\" may follow the path")),
                None => Link::Pair(connect_to(rest).map_err(|error| {
                    format!("cannot open wire {spec}: {error}; start the model that listens there first")
                })?),
            },
            "dgram" => {
                let (local, remote) =
                    rest.split_once(',').ok_or_else(|| format!("wire {spec}: give dgram:LOCAL,REMOTE"))?;
                let remote = SocketAddrUnix::new(remote).map_err(|error| failed(error.into()))?;
                Link::Dgram(dgram_at(local).map_err(failed)?, remote)
            }
            "loop" => {
                let (a, b) = Self::pair(report, port, port + 1).map_err(failed)?;
                return Ok(vec![a, b]);
            }
            _ => return Err(format!("no wire of kind \"{kind}\": use tap, pair, dgram, loop or null")),
        };
        Ok(vec![Self::new(report, port, link)])
    }

    /// Captures all frames of the wire, in both directions, in a pcapng file.
    ///
    /// # Errors
    /// What creating the file says.
    pub fn capture(&mut self, path: &Path) -> io::Result<()> {
        self.pcap = Some(Pcap::create(path)?);
        Ok(())
    }

    /// Keeps the last frames of the wire, in both directions, for a pcapng file that
    /// [`flush`](Self::flush) writes.
    pub fn capture_tail(&mut self, path: &Path) {
        self.tail = Some(Tail::new(path));
    }

    /// Writes the captured frames that are still in memory.
    ///
    /// # Errors
    /// What writing the file says.
    pub fn flush(&mut self) -> io::Result<()> {
        self.pcap.as_mut().map_or(Ok(()), Pcap::flush)?;
        self.tail.as_ref().map_or(Ok(()), Tail::save)
    }

    /// Sets the longest frame (without FCS) that the port sends; a longer one is a violation.
    pub fn set_max_frame(&mut self, len: usize) {
        self.max_frame = len.min(MAX_FRAME - 1);
    }

    /// Whether the cable is plugged in; nothing passes while it is not.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// Plugs the cable in or pulls it out.
    pub fn set_up(&mut self, up: bool) {
        self.up = up;
    }

    /// What to wait for before [`receive`](Self::receive) has something; `None` for a wire that never has.
    pub fn poll_fd(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let fd = match &self.link {
            Link::Null | Link::Unplugged => return None,
            Link::Tap(fd)
            | Link::Pair(fd)
            | Link::Dgram(fd, _)
            | Link::Listen(_, Some(fd))
            | Link::Listen(fd, None) => fd,
        };
        Some((fd.as_fd(), PollFlags::IN))
    }

    /// Takes the next frame from the wire: its length in `buffer`, or `None` if there is none now.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        loop {
            let received = match &mut self.link {
                Link::Null | Link::Unplugged => return None,
                Link::Tap(fd) => rustix::io::read(&*fd, &mut *buffer),
                Link::Dgram(fd, _) => {
                    recv(&*fd, &mut *buffer, RecvFlags::DONTWAIT).map(|(len, _)| len)
                }
                Link::Pair(fd) | Link::Listen(_, Some(fd)) => {
                    recv(&*fd, &mut *buffer, RecvFlags::DONTWAIT).map(|(len, _)| len)
                }
                Link::Listen(listener, peer) => {
                    *peer =
                        accept_with(&*listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK).ok();
                    return None;
                }
            };
            match received {
                // Datagrams are never empty: this is the end of a pair.
                Ok(0) => {
                    self.peer_gone();
                    return None;
                }
                Ok(_) if !self.up => self.drop_frame(|c| &c.drop_link_down),
                // A frame that fills the buffer may have been cut off.
                Ok(len) if len < HEADER || len >= buffer.len().min(MAX_FRAME) => {
                    self.drop_frame(|c| &c.drop_length);
                }
                Ok(len) => {
                    self.counters.in_frames.add(1);
                    self.counters.in_bytes.add(len as u64);
                    self.record(Direction::In, &buffer[..len]);
                    return Some(len);
                }
                Err(Errno::AGAIN | Errno::INTR) => return None,
                Err(_) => {
                    self.peer_gone();
                    return None;
                }
            }
        }
    }

    /// Sends a frame (without FCS), padded to the minimum of Ethernet. A frame that the peer cannot take now is
    /// dropped and counted: the event loop does not wait for a peer.
    pub fn send(&mut self, frame: &[u8]) {
        if !(HEADER..=self.max_frame).contains(&frame.len()) {
            self.report.violate(
                &crate::FRAME_LENGTH,
                format_args!("port {}, {} bytes", self.port, frame.len()),
            );
            return;
        }
        if !self.up {
            return self.drop_frame(|c| &c.drop_link_down);
        }
        let mut padded = [0; MIN_FRAME];
        let frame = match padded.get_mut(..frame.len()) {
            Some(start) => {
                start.copy_from_slice(frame);
                &padded[..]
            }
            None => frame,
        };
        self.record(Direction::Out, frame);
        let sent = match &self.link {
            Link::Null => Ok(frame.len()),
            Link::Unplugged | Link::Listen(_, None) => Err(Errno::NOTCONN),
            Link::Tap(fd) => rustix::io::write(fd, frame),
            Link::Pair(fd) | Link::Listen(_, Some(fd)) => {
                send(fd, frame, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            }
            Link::Dgram(fd, remote) => {
                sendto(fd, frame, SendFlags::DONTWAIT | SendFlags::NOSIGNAL, remote)
            }
        };
        match sent {
            Ok(_) => {
                self.counters.out_frames.add(1);
                self.counters.out_bytes.add(frame.len() as u64);
            }
            Err(Errno::AGAIN | Errno::NOBUFS) => self.drop_frame(|c| &c.drop_full),
            Err(
                Errno::NOTCONN | Errno::CONNREFUSED | Errno::NOENT | Errno::PIPE | Errno::CONNRESET,
            ) => {
                self.drop_frame(|c| &c.drop_no_peer);
            }
            Err(_) => self.drop_frame(|c| &c.drop_error),
        }
    }

    /// Records that the headers of a frame do not fit the offloads asked for.
    pub(crate) fn violate_offload(&self, error: &Malformed, ask: &Transmit) {
        self.report.violate(
            &crate::OFFLOAD_HEADERS,
            format_args!("port {}: {error} ({ask:?})", self.port),
        );
    }

    fn drop_frame(&self, cause: impl Fn(&Counters) -> &Counter) {
        cause(&self.counters).add(1);
    }

    fn record(&mut self, direction: Direction, frame: &[u8]) {
        if let Some(tail) = &mut self.tail {
            tail.frame(direction, frame);
        }
        if let Some(pcap) = &mut self.pcap {
            if let Err(error) = pcap.frame(direction, frame) {
                eprintln!("capture of port {} ends: {error}", self.port);
                self.pcap = None;
            }
        }
    }

    fn peer_gone(&mut self) {
        match &mut self.link {
            Link::Listen(_, peer) => *peer = None,
            Link::Pair(_) | Link::Tap(_) => self.link = Link::Unplugged,
            Link::Null | Link::Dgram(..) | Link::Unplugged => {}
        }
    }
}

fn unix_socket(kind: SocketType) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, kind, flags, None)?;
    sockopt::set_socket_send_buffer_size(&socket, SOCKET_BUFFER)?;
    Ok(socket)
}

fn listen_at(path: &str) -> io::Result<OwnedFd> {
    let socket = unix_socket(SocketType::SEQPACKET)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, 1)?;
    Ok(socket)
}

fn connect_to(path: &str) -> io::Result<OwnedFd> {
    let socket = unix_socket(SocketType::SEQPACKET)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

fn dgram_at(path: &str) -> io::Result<OwnedFd> {
    let socket = unix_socket(SocketType::DGRAM)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

mod tap {
    //! Attaching to a TAP interface of this machine.

    use super::*;
    use rustix::{
        fs::{open as open_file, Mode},
        ioctl::{ioctl, opcode, Setter},
    };

    const IFNAMSIZ: usize = 16;
    const IFF_TAP: u16 = 0x0002;
    const IFF_NO_PI: u16 = 0x1000;
    /// `TUNSETIFF`, declared in linux/if_tun.h as `_IOW('T', 202, int)`.
    const TUNSETIFF: rustix::ioctl::Opcode = opcode::write::<i32>(b'T', 202);

    /// `struct ifreq` of linux/if.h, with the flags member of its union.
    #[repr(C)]
    struct IfReq {
        name: [u8; IFNAMSIZ],
        flags: u16,
        rest: [u8; 22],
    }

    pub(super) fn open(name: &str) -> io::Result<OwnedFd> {
        let mut request = IfReq {
            name: [0; IFNAMSIZ],
            flags: IFF_TAP | IFF_NO_PI,
            rest: [0; 22],
        };
        let bytes = name.as_bytes();
        if bytes.is_empty() || bytes.len() >= IFNAMSIZ {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "an interface name has 1 to 15 characters",
            ));
        }
        request.name[..bytes.len()].copy_from_slice(bytes);
        let fd = open_file(
            "/dev/net/tun",
            OFlags::RDWR | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        // SAFETY:
        // - TUNSETIFF takes a pointer to a struct ifreq, whose size and layout `IfReq` has (40 bytes);
        // - the kernel only copies it in and out during the call.
        unsafe { ioctl(&fd, Setter::<TUNSETIFF, IfReq>::new(request))? };
        fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)?;
        Ok(fd)
    }
}
