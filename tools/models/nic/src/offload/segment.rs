// SPDX-License-Identifier: GPL-2.0
//! TCP segmentation.

use super::{
    checksum::{fill_ip, fill_l4},
    headers::{be16, put16, Headers, Ip, Malformed, Network, Transport, IPV6},
};

const TCP_SEQUENCE: usize = 4;
const TCP_FLAGS: usize = 13;
const FLAG_FIN: u8 = 1 << 0;
const FLAG_PSH: u8 = 1 << 3;
const FLAG_CWR: u8 = 1 << 7;

/// Cuts a TCP packet into segments of at most `mss` bytes of payload and hands each to `emit`, with its own IP
/// length, IPv4 identification, sequence number, flags and checksums. `buffer` is only there to be used again.
///
/// # Errors
/// The frame is no TCP packet, has no payload, or `mss` is 0; nothing is emitted then.
pub fn segment(
    frame: &[u8],
    headers: &Headers,
    mss: u16,
    buffer: &mut Vec<u8>,
    mut emit: impl FnMut(&[u8]),
) -> Result<(), Malformed> {
    let (ip, transport) = headers.l4()?;
    if transport != Transport::Tcp {
        return Err(Malformed("segmentation of what is not TCP"));
    }
    if mss == 0 {
        return Err(Malformed("segmentation with a segment size of 0"));
    }
    let start = headers.payload_offset(frame)?;
    let payload = &frame[start..ip.end];
    if payload.is_empty() {
        return Err(Malformed("segmentation of a packet without payload"));
    }
    let tcp = ip.l4_offset;
    let flags = frame[tcp + TCP_FLAGS];
    let sequence_at = tcp + TCP_SEQUENCE;
    let sequence =
        (u32::from(be16(frame, sequence_at)?) << 16) | u32::from(be16(frame, sequence_at + 2)?);
    let count = payload.len().div_ceil(usize::from(mss));
    for (n, piece) in payload.chunks(mss.into()).enumerate() {
        buffer.clear();
        buffer.extend_from_slice(&frame[..start]);
        buffer.extend_from_slice(piece);
        let mut keep = !(FLAG_FIN | FLAG_PSH | FLAG_CWR);
        if n == 0 {
            keep |= FLAG_CWR;
        }
        if n == count - 1 {
            keep |= FLAG_FIN | FLAG_PSH;
        }
        buffer[tcp + TCP_FLAGS] = flags & keep;
        let sequence = sequence.wrapping_add(n as u32 * u32::from(mss));
        buffer[sequence_at..sequence_at + 4].copy_from_slice(&sequence.to_be_bytes());
        let mut segment = *headers;
        segment.ip = Some(Ip {
            end: buffer.len(),
            ..ip
        });
        match ip.network {
            Network::V4 => {
                let len = buffer.len() - ip.offset;
                put16(buffer, ip.offset + 2, length(len)?)?;
                let id = be16(frame, ip.offset + 4)?.wrapping_add(n as u16);
                put16(buffer, ip.offset + 4, id)?;
                fill_ip(buffer, &segment)?;
            }
            Network::V6 => {
                let len = buffer.len() - ip.offset - IPV6;
                put16(buffer, ip.offset + 4, length(len)?)?;
            }
        }
        fill_l4(buffer, &segment)?;
        emit(buffer);
    }
    Ok(())
}

fn length(len: usize) -> Result<u16, Malformed> {
    u16::try_from(len).map_err(|_| Malformed("segment longer than an IP packet can be"))
}

#[cfg(test)]
mod tests {
    use super::super::{insert_vlan, sample, verify, Verdict};
    use super::*;

    fn segments(frame: &[u8], mss: u16) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let headers = Headers::parse(frame).unwrap();
        segment(frame, &headers, mss, &mut Vec::new(), |segment| {
            all.push(segment.to_vec())
        })
        .unwrap();
        all
    }

    fn check(frame: &[u8], mss: u16, lengths: &[usize]) {
        let original = Headers::parse(frame).unwrap();
        let start = original.payload_offset(frame).unwrap();
        let all = segments(frame, mss);
        assert_eq!(
            all.iter().map(|s| s.len() - start).collect::<Vec<_>>(),
            lengths
        );
        let mut payload = Vec::new();
        for (n, segment) in all.iter().enumerate() {
            let headers = Headers::parse(segment).unwrap();
            let ip = headers.ip.unwrap();
            assert_eq!(headers.vlan, original.vlan);
            assert_eq!(ip.end, segment.len());
            assert_eq!(verify(segment).l4, Verdict::Good);
            assert_ne!(verify(segment).ip, Verdict::Bad);
            let sequence = u32::from_be_bytes(
                segment[ip.l4_offset + 4..ip.l4_offset + 8]
                    .try_into()
                    .unwrap(),
            );
            assert_eq!(
                sequence,
                sample::SEQUENCE.wrapping_add(payload.len() as u32)
            );
            if ip.network == Network::V4 {
                assert_eq!(
                    be16(segment, ip.offset + 4).unwrap(),
                    sample::ID.wrapping_add(n as u16)
                );
            }
            // The sample has CWR, ECE, ACK, PSH and FIN.
            let (first, last) = (n == 0, n == all.len() - 1);
            let flags = 0x50 | if first { 0x80 } else { 0 } | if last { 0x09 } else { 0 };
            assert_eq!(segment[ip.l4_offset + TCP_FLAGS], flags);
            payload.extend_from_slice(&segment[start..]);
        }
        assert_eq!(payload, &frame[start..]);
    }

    #[test]
    fn cuts_ipv4_and_ipv6_with_and_without_vlan() {
        let payload: Vec<u8> = (0..3000u32).map(|n| (n * 7) as u8).collect();
        for frame in [
            sample::ipv4_tcp_all_flags(&payload),
            sample::ipv6_tcp_all_flags(&payload),
        ] {
            check(&frame, 1448, &[1448, 1448, 104]);
            check(&frame, 1500, &[1500, 1500]);
            check(&frame, 3000, &[3000]);
            check(&frame, 4000, &[3000]);
            let mut tagged = frame.clone();
            insert_vlan(&mut tagged, 0x0123).unwrap();
            check(&tagged, 1000, &[1000, 1000, 1000]);
        }
    }

    /// Drivers leave the IP length at 0: 64 KiB of payload and headers do not fit it.
    #[test]
    fn the_ip_length_of_the_large_packet_may_be_zero() {
        let payload = vec![0x5a; 65000];
        let mut frame = sample::ipv4_tcp_all_flags(&payload);
        put16(&mut frame, 14 + 2, 0).unwrap();
        check(
            &frame,
            1448,
            &[vec![1448; 44], vec![65000 - 44 * 1448]].concat(),
        );
        let mut frame = sample::ipv6_tcp_all_flags(&payload);
        put16(&mut frame, 14 + 4, 0).unwrap();
        check(
            &frame,
            1428,
            &[vec![1428; 45], vec![65000 - 45 * 1428]].concat(),
        );
    }

    #[test]
    fn refuses_what_it_cannot_cut() {
        let none = |frame: &[u8], mss| {
            let headers = Headers::parse(frame).unwrap();
            segment(frame, &headers, mss, &mut Vec::new(), |_| panic!("emitted")).unwrap_err()
        };
        none(&sample::ipv4_tcp(b"abc"), 0);
        none(&sample::ipv4_tcp(b""), 1448);
        none(&sample::ipv6_udp(b"abc"), 1448);
        none(&sample::arp(), 1448);
    }
}
