// SPDX-License-Identifier: GPL-2.0
//! Where the headers of a frame are.

use std::fmt;

/// The frame is not what the offload is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}

/// Network layer protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Transport layer protocol that offloads know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Transport {
    /// Number of the protocol in the IP header.
    pub fn protocol(self) -> u8 {
        match self {
            Self::Tcp => IPPROTO_TCP,
            Self::Udp => IPPROTO_UDP,
        }
    }

    /// Where the checksum is in the header.
    pub fn checksum_offset(self) -> usize {
        match self {
            Self::Tcp => 16,
            Self::Udp => 6,
        }
    }
}

pub(super) const ETHERNET: usize = 14;
pub(super) const ETHERTYPE: usize = 12;
pub(super) const ETHERTYPE_VLAN: u16 = 0x8100;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const IPV4_MIN: usize = 20;
pub(super) const IPV6: usize = 40;
const TCP_MIN: usize = 20;
const UDP: usize = 8;
const IPPROTO_HOPOPTS: u8 = 0;
const IPPROTO_TCP: u8 = 6;
const IPPROTO_UDP: u8 = 17;
const IPPROTO_ROUTING: u8 = 43;
const IPPROTO_DSTOPTS: u8 = 60;

/// The IP part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// Version.
    pub network: Network,
    /// Offset of the IP header.
    pub offset: usize,
    /// First byte after the IP packet: padding of short frames begins there.
    pub end: usize,
    /// Offset of the transport header.
    pub l4_offset: usize,
    /// Transport protocol, if it is one that offloads know and the packet is no fragment.
    pub transport: Option<Transport>,
}

/// What was found in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Tag of the outer VLAN header (TCI).
    pub vlan: Option<u16>,
    /// The IP part; absent for other protocols.
    pub ip: Option<Ip>,
}

/// Two bytes of a frame in network order.
pub(super) fn be16(frame: &[u8], at: usize) -> Result<u16, Malformed> {
    match frame.get(at..at + 2) {
        Some(&[high, low]) => Ok(u16::from_be_bytes([high, low])),
        _ => Err(Malformed("frame ends inside a header")),
    }
}

pub(super) fn put16(frame: &mut [u8], at: usize, value: u16) -> Result<(), Malformed> {
    let place = frame
        .get_mut(at..at + 2)
        .ok_or(Malformed("frame ends inside a header"))?;
    place.copy_from_slice(&value.to_be_bytes());
    Ok(())
}

impl Headers {
    /// Finds the headers of a frame: Ethernet, VLAN tags, IPv4 or IPv6, TCP or UDP.
    ///
    /// An IP length of 0 means up to the end of the frame: drivers leave it so for segmentation.
    ///
    /// # Errors
    /// A header is cut off, or its length fields contradict the frame.
    pub fn parse(frame: &[u8]) -> Result<Self, Malformed> {
        let mut at = ETHERTYPE;
        let mut kind = be16(frame, at)?;
        let mut vlan = None;
        // An outer tag and one inside it.
        for _ in 0..2 {
            if kind != ETHERTYPE_VLAN {
                break;
            }
            vlan = vlan.or(Some(be16(frame, at + 2)?));
            at += 4;
            kind = be16(frame, at)?;
        }
        let ip = match kind {
            ETHERTYPE_IPV4 => Some(ipv4(frame, at + 2)?),
            ETHERTYPE_IPV6 => Some(ipv6(frame, at + 2)?),
            _ => None,
        };
        Ok(Self { vlan, ip })
    }

    /// The transport protocol, if offloads know it.
    pub fn transport(&self) -> Option<Transport> {
        self.ip.and_then(|ip| ip.transport)
    }

    /// IP part and transport protocol.
    pub(super) fn l4(&self) -> Result<(Ip, Transport), Malformed> {
        let ip = self.ip.ok_or(Malformed("not an IP packet"))?;
        Ok((
            ip,
            ip.transport
                .ok_or(Malformed("not a whole TCP or UDP packet"))?,
        ))
    }

    /// Offset of the first byte after the transport header.
    ///
    /// # Errors
    /// The frame is no TCP or UDP packet.
    pub fn payload_offset(&self, frame: &[u8]) -> Result<usize, Malformed> {
        let (ip, transport) = self.l4()?;
        let header = match transport {
            Transport::Tcp => usize::from(be16(frame, ip.l4_offset + 12)? >> 12) * 4,
            Transport::Udp => UDP,
        };
        let payload = ip.l4_offset + header;
        if header < UDP || (transport == Transport::Tcp && header < TCP_MIN) || payload > ip.end {
            return Err(Malformed(
                "transport header longer than the packet, or too short",
            ));
        }
        Ok(payload)
    }
}

impl Ip {
    /// Source and destination address, one after the other.
    pub fn addresses<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        match self.network {
            Network::V4 => &frame[self.offset + 12..self.offset + 20],
            Network::V6 => &frame[self.offset + 8..self.offset + 40],
        }
    }
}

/// The end of a packet of `len` bytes from `start` on.
fn packet_end(frame: &[u8], start: usize, len: usize) -> Result<usize, Malformed> {
    if start + len > frame.len() {
        return Err(Malformed("IP packet longer than the frame"));
    }
    Ok(start + len)
}

fn ipv4(frame: &[u8], offset: usize) -> Result<Ip, Malformed> {
    let first = be16(frame, offset)?;
    let header = usize::from((first >> 8) & 0xf) * 4;
    if first >> 12 != 4 || header < IPV4_MIN || offset + header > frame.len() {
        return Err(Malformed("bad version or length in the IPv4 header"));
    }
    let end = match usize::from(be16(frame, offset + 2)?) {
        0 => frame.len(),
        total => packet_end(frame, offset, total)?,
    };
    let l4_offset = offset + header;
    if l4_offset > end {
        return Err(Malformed("IPv4 packet shorter than its header"));
    }
    // More fragments, or not the first one.
    let fragment = be16(frame, offset + 6)? & 0x3fff != 0;
    let transport = if fragment {
        None
    } else {
        transport(frame[offset + 9], l4_offset, end)
    };
    Ok(Ip {
        network: Network::V4,
        offset,
        end,
        l4_offset,
        transport,
    })
}

fn ipv6(frame: &[u8], offset: usize) -> Result<Ip, Malformed> {
    let mut l4_offset = offset + IPV6;
    if l4_offset > frame.len() || frame[offset] >> 4 != 6 {
        return Err(Malformed("bad version or length in the IPv6 header"));
    }
    let end = match usize::from(be16(frame, offset + 4)?) {
        0 => frame.len(),
        payload => packet_end(frame, l4_offset, payload)?,
    };
    let mut next = frame[offset + 6];
    while matches!(next, IPPROTO_HOPOPTS | IPPROTO_ROUTING | IPPROTO_DSTOPTS) {
        let extension = be16(frame, l4_offset)?;
        next = (extension >> 8) as u8;
        l4_offset += 8 * (usize::from(extension & 0xff) + 1);
        if l4_offset > end {
            return Err(Malformed("IPv6 extension header longer than the packet"));
        }
    }
    Ok(Ip {
        network: Network::V6,
        offset,
        end,
        l4_offset,
        transport: transport(next, l4_offset, end),
    })
}

/// The transport protocol, if its header fits into the packet.
fn transport(protocol: u8, l4_offset: usize, end: usize) -> Option<Transport> {
    match protocol {
        IPPROTO_TCP if l4_offset + TCP_MIN <= end => Some(Transport::Tcp),
        IPPROTO_UDP if l4_offset + UDP <= end => Some(Transport::Udp),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn finds_tcp_in_ipv4_and_its_padding() {
        let mut frame = sample::ipv4_tcp(b"abc");
        frame.resize(60, 0);
        let headers = Headers::parse(&frame).unwrap();
        let ip = headers.ip.unwrap();
        assert_eq!(headers.vlan, None);
        assert_eq!(
            (ip.network, ip.offset, ip.l4_offset, ip.end),
            (Network::V4, 14, 34, 57)
        );
        assert_eq!(headers.transport(), Some(Transport::Tcp));
        assert_eq!(headers.payload_offset(&frame), Ok(54));
    }

    #[test]
    fn finds_udp_behind_vlan_and_extension_headers() {
        let mut frame = sample::ipv6_udp(b"hello");
        // A hop-by-hop header of 8 bytes in front of UDP.
        frame[14 + 6] = IPPROTO_HOPOPTS;
        frame.splice(54..54, [IPPROTO_UDP, 0, 0, 0, 0, 0, 0, 0]);
        let payload = be16(&frame, 18).unwrap() + 8;
        put16(&mut frame, 18, payload).unwrap();
        super::super::insert_vlan(&mut frame, 0x2005).unwrap();
        let headers = Headers::parse(&frame).unwrap();
        assert_eq!(headers.vlan, Some(0x2005));
        assert_eq!(headers.transport(), Some(Transport::Udp));
        assert_eq!(headers.payload_offset(&frame), Ok(14 + 4 + 40 + 8 + 8));
    }

    #[test]
    fn fragments_have_no_transport() {
        let mut frame = sample::ipv4_tcp(b"abc");
        frame[14 + 6] = 0x20;
        assert_eq!(Headers::parse(&frame).unwrap().transport(), None);
        // "Do not fragment" is no fragment.
        frame[14 + 6] = 0x40;
        assert_eq!(
            Headers::parse(&frame).unwrap().transport(),
            Some(Transport::Tcp)
        );
    }

    #[test]
    fn every_cut_of_a_frame_is_an_error_or_shorter() {
        for frame in [sample::ipv4_tcp(b"abc"), sample::ipv6_udp(b"hello")] {
            for len in 0..frame.len() {
                assert!(
                    Headers::parse(&frame[..len]).is_err(),
                    "{len} bytes of {}",
                    frame.len()
                );
            }
        }
    }

    #[test]
    fn no_change_of_one_byte_panics() {
        for frame in [sample::ipv4_tcp(b"abc"), sample::ipv6_udp(b"hello")] {
            for at in 0..frame.len() {
                for value in 0..=255 {
                    let mut changed = frame.clone();
                    changed[at] = value;
                    if let Ok(headers) = Headers::parse(&changed) {
                        let _ = headers.payload_offset(&changed);
                        let _ = super::super::verify(&changed);
                        let _ =
                            super::super::segment(&changed, &headers, 1, &mut Vec::new(), |_| {});
                    }
                }
            }
        }
    }
}
