// SPDX-License-Identifier: GPL-2.0
//! Frames for the tests.

/// Sequence number of the TCP samples: wraps within a large packet.
pub(super) const SEQUENCE: u32 = 0xffff_fc00;
/// Identification of the IPv4 samples: wraps after the second segment.
pub(super) const ID: u16 = 0xffff;

/// Sent by Linux over a TAP interface without offloads, 192.0.2.1 to 192.0.2.2.
pub(super) const CAPTURED_TCP_SYN: &[u8] = b"\
\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x08\x00\
\x45\x00\x00\x3c\x8f\x82\x40\x00\x40\x06\x27\x36\xc0\x00\x02\x01\xc0\x00\x02\x02\
\xaf\x9c\x00\x50\xbe\x63\x3f\xc4\x00\x00\x00\x00\xa0\x02\xfa\xf0\xc4\xf1\x00\x00\
\x02\x04\x05\xb4\x04\x02\x08\x0a\x6f\x93\xe6\x6e\x00\x00\x00\x00\x01\x03\x03\x0a";

/// Sent by Linux over a TAP interface without offloads, 2001:db8::1 to 2001:db8::2.
pub(super) const CAPTURED_UDP6: &[u8] = b"\
\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x86\xdd\
\x60\x07\x2f\x88\x00\x13\x11\x40\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\
\x00\x00\x00\x01\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\
\xe8\xa2\x12\xb7\x00\x13\x17\x2b\x68\x65\x6c\x6c\x6f\x20\x77\x6f\x72\x6c\x64";

fn ethernet(ethertype: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    frame.extend(ethertype.to_be_bytes());
    frame
}

fn ipv4(protocol: u8, packet: &[u8]) -> Vec<u8> {
    let mut frame = ethernet(0x0800);
    frame.extend([0x45, 0]);
    frame.extend((20 + packet.len() as u16).to_be_bytes());
    frame.extend(ID.to_be_bytes());
    frame.extend([0x40, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    frame.extend(packet);
    frame
}

fn ipv6(next: u8, packet: &[u8]) -> Vec<u8> {
    let mut frame = ethernet(0x86dd);
    frame.extend([0x60, 0, 0, 0]);
    frame.extend((packet.len() as u16).to_be_bytes());
    frame.extend([next, 64]);
    for host in [1, 2] {
        frame.extend([
            0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host,
        ]);
    }
    frame.extend(packet);
    frame
}

fn tcp(flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x9c, 0x40, 0, 80];
    packet.extend(SEQUENCE.to_be_bytes());
    packet.extend([0, 0, 0, 1, 0x50, flags, 0x10, 0, 0, 0, 0, 0]);
    packet.extend(payload);
    packet
}

fn udp(payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x9c, 0x40, 0, 53];
    packet.extend((8 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    packet
}

const ACK: u8 = 0x10;
/// CWR, ECE, ACK, PSH, FIN.
const ALL_FLAGS: u8 = 0xd9;

pub(super) fn ipv4_tcp(payload: &[u8]) -> Vec<u8> {
    ipv4(6, &tcp(ACK, payload))
}

pub(super) fn ipv4_tcp_all_flags(payload: &[u8]) -> Vec<u8> {
    ipv4(6, &tcp(ALL_FLAGS, payload))
}

pub(super) fn ipv6_tcp_all_flags(payload: &[u8]) -> Vec<u8> {
    ipv6(6, &tcp(ALL_FLAGS, payload))
}

pub(super) fn ipv4_udp(payload: &[u8]) -> Vec<u8> {
    ipv4(17, &udp(payload))
}

pub(super) fn ipv6_udp(payload: &[u8]) -> Vec<u8> {
    ipv6(17, &udp(payload))
}

pub(super) fn arp() -> Vec<u8> {
    let mut frame = ethernet(0x0806);
    frame.extend([0; 28]);
    frame
}
