// SPDX-License-Identifier: GPL-2.0
//! The Internet checksum (RFC 1071) of IPv4 headers and of TCP and UDP packets.

use super::headers::{be16, put16, Headers, Ip, Malformed, Network, Transport};

/// One's complement sum of 16-bit words, not yet folded.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(4);
    let rest = words.remainder();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let total: u64 = words
        .map(|word| u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]])))
        .sum();
    total + u64::from(u32::from_be_bytes(last))
}

pub(super) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The Internet checksum of some bytes; 0 if they contain their own, right checksum.
pub fn checksum(bytes: &[u8]) -> u16 {
    !fold(sum(bytes))
}

/// Sum of the pseudo header; `len` is the length of transport header and payload.
pub(super) fn pseudo_header(frame: &[u8], ip: &Ip, transport: Transport, len: usize) -> u64 {
    sum(ip.addresses(frame)) + u64::from(transport.protocol()) + len as u64
}

impl Headers {
    /// The folded sum of the pseudo header: what a driver puts into the checksum field when the device is to
    /// add the rest. With `with_length` false the length is left out, as for segmentation.
    ///
    /// # Errors
    /// The frame is no TCP or UDP packet.
    pub fn pseudo_header_sum(&self, frame: &[u8], with_length: bool) -> Result<u16, Malformed> {
        let (ip, transport) = self.l4()?;
        let len = if with_length {
            ip.end - ip.l4_offset
        } else {
            0
        };
        Ok(fold(pseudo_header(frame, &ip, transport, len)))
    }
}

/// What a device says about one checksum of a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is none, or the device does not know the protocol.
    Absent,
    /// The checksum is right.
    Good,
    /// The checksum is wrong.
    Bad,
}

impl Verdict {
    fn of(good: bool) -> Self {
        if good {
            Self::Good
        } else {
            Self::Bad
        }
    }
}

/// What a device says about the checksums of a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdicts {
    /// Checksum of the IPv4 header.
    pub ip: Verdict,
    /// Checksum of TCP or UDP.
    pub l4: Verdict,
}

/// Checks the checksums of a received frame. A frame that does not parse has none.
pub fn verify(frame: &[u8]) -> Verdicts {
    let mut verdicts = Verdicts {
        ip: Verdict::Absent,
        l4: Verdict::Absent,
    };
    let Some(ip) = Headers::parse(frame).ok().and_then(|headers| headers.ip) else {
        return verdicts;
    };
    if ip.network == Network::V4 {
        verdicts.ip = Verdict::of(checksum(&frame[ip.offset..ip.l4_offset]) == 0);
    }
    let Some(transport) = ip.transport else {
        return verdicts;
    };
    let packet = &frame[ip.l4_offset..ip.end];
    let field = transport.checksum_offset();
    // UDP over IPv4 may go without a checksum.
    let without = transport == Transport::Udp && packet[field..field + 2] == [0, 0];
    if !without {
        let total = pseudo_header(frame, &ip, transport, packet.len()) + sum(packet);
        verdicts.l4 = Verdict::of(fold(total) == 0xffff);
    } else if ip.network == Network::V6 {
        verdicts.l4 = Verdict::Bad;
    }
    verdicts
}

/// Fills in the checksum of the IPv4 header.
///
/// # Errors
/// The frame is no IPv4 packet.
pub fn fill_ip(frame: &mut [u8], headers: &Headers) -> Result<(), Malformed> {
    let ip = headers
        .ip
        .filter(|ip| ip.network == Network::V4)
        .ok_or(Malformed("not an IPv4 packet"))?;
    put16(frame, ip.offset + 10, 0)?;
    let value = checksum(&frame[ip.offset..ip.l4_offset]);
    put16(frame, ip.offset + 10, value)
}

/// Fills in the checksum of TCP or UDP; what the field held does not matter.
///
/// # Errors
/// The frame is no TCP or UDP packet.
pub fn fill_l4(frame: &mut [u8], headers: &Headers) -> Result<(), Malformed> {
    let (ip, transport) = headers.l4()?;
    let field = ip.l4_offset + transport.checksum_offset();
    be16(frame, field)?;
    put16(frame, field, 0)?;
    let packet = &frame[ip.l4_offset..ip.end];
    let value = !fold(pseudo_header(frame, &ip, transport, packet.len()) + sum(packet));
    // 0 means "no checksum" in UDP; all ones is the same number in one's complement.
    let value = if value == 0 && transport == Transport::Udp {
        0xffff
    } else {
        value
    };
    put16(frame, field, value)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    /// The numerical example of RFC 1071, section 3.
    #[test]
    fn rfc1071_example() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(sum(&bytes)), 0xddf2);
        assert_eq!(checksum(&bytes), 0x220d);
        // An odd length is filled up with 0.
        assert_eq!(
            fold(sum(&bytes[..7])),
            fold(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0x00]))
        );
    }

    #[test]
    fn verifies_frames_of_a_real_stack() {
        for frame in [sample::CAPTURED_TCP_SYN, sample::CAPTURED_UDP6] {
            let verdicts = verify(frame);
            assert_eq!(verdicts.l4, Verdict::Good);
            assert_ne!(verdicts.ip, Verdict::Bad);
        }
    }

    #[test]
    fn fills_what_it_verifies() {
        for mut frame in [
            sample::ipv4_tcp(b"abc"),
            sample::ipv6_udp(b"hello"),
            sample::ipv4_udp(b""),
        ] {
            let headers = Headers::parse(&frame).unwrap();
            if headers.ip.unwrap().network == Network::V4 {
                fill_ip(&mut frame, &headers).unwrap();
            }
            fill_l4(&mut frame, &headers).unwrap();
            frame.extend([0xaa; 7]);
            assert_eq!(verify(&frame).l4, Verdict::Good);
            let last = headers.ip.unwrap().end - 1;
            frame[last] ^= 0x10;
            assert_eq!(verify(&frame).l4, Verdict::Bad);
        }
    }

    #[test]
    fn captured_checksums_are_reproduced() {
        for captured in [sample::CAPTURED_TCP_SYN, sample::CAPTURED_UDP6] {
            let mut frame = captured.to_vec();
            let headers = Headers::parse(&frame).unwrap();
            let field =
                headers.ip.unwrap().l4_offset + headers.transport().unwrap().checksum_offset();
            put16(&mut frame, field, 0x1234).unwrap();
            fill_l4(&mut frame, &headers).unwrap();
            if headers.ip.unwrap().network == Network::V4 {
                fill_ip(&mut frame, &headers).unwrap();
            }
            assert_eq!(frame, captured);
        }
    }

    #[test]
    fn udp_without_checksum() {
        let frame = sample::ipv4_udp(b"x");
        assert_eq!(verify(&frame).l4, Verdict::Absent);
        let frame = sample::ipv6_udp(b"x");
        assert_eq!(verify(&frame).l4, Verdict::Bad);
    }

    /// A payload for which the checksum comes out as 0: the field must then be all ones.
    #[test]
    fn udp_never_fills_in_zero() {
        let mut frame = sample::ipv4_udp(&[0, 0]);
        let headers = Headers::parse(&frame).unwrap();
        fill_l4(&mut frame, &headers).unwrap();
        let field = headers.ip.unwrap().l4_offset + 6;
        let rest = be16(&frame, field).unwrap();
        let payload = headers.payload_offset(&frame).unwrap();
        put16(&mut frame, payload, rest).unwrap();
        fill_l4(&mut frame, &headers).unwrap();
        assert_eq!(be16(&frame, field), Ok(0xffff));
        assert_eq!(verify(&frame).l4, Verdict::Good);
    }
}
