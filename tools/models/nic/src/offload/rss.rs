// SPDX-License-Identifier: GPL-2.0
//! Receive side scaling: the Toeplitz hash over addresses and ports.

use super::headers::{Headers, Network, Transport};

/// Length of the key.
pub const KEY: usize = 40;
/// Longest input: two IPv6 addresses and two ports.
const INPUT: usize = 36;

/// Which packets are hashed over addresses and ports; all other IP packets are hashed over addresses, if that is
/// enabled for their version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashTypes {
    /// Addresses of IPv4.
    pub ipv4: bool,
    /// Addresses of IPv6.
    pub ipv6: bool,
    /// Addresses and ports of TCP over IPv4.
    pub tcp4: bool,
    /// Addresses and ports of TCP over IPv6.
    pub tcp6: bool,
    /// Addresses and ports of UDP over IPv4.
    pub udp4: bool,
    /// Addresses and ports of UDP over IPv6.
    pub udp6: bool,
}

impl HashTypes {
    /// Everything.
    pub const ALL: Self = Self {
        ipv4: true,
        ipv6: true,
        tcp4: true,
        tcp6: true,
        udp4: true,
        udp6: true,
    };
}

/// The hash of a frame, and over what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashed {
    /// The hash.
    pub hash: u32,
    /// IP version.
    pub network: Network,
    /// Transport protocol, if the ports are part of the input.
    pub ports: Option<Transport>,
}

/// The hash function for one key, as a table of what each byte of the input contributes.
pub struct Toeplitz(Box<[[u32; 256]; INPUT]>);

impl Toeplitz {
    /// The function for a key.
    pub fn new(key: &[u8; KEY]) -> Self {
        let mut table = Box::new([[0; 256]; INPUT]);
        for (at, row) in table.iter_mut().enumerate() {
            // 40 bits of the key: a window of 32 for each of the 8 bits of the input byte.
            let bits = key[at..at + 5]
                .iter()
                .fold(0u64, |bits, byte| (bits << 8) | u64::from(*byte));
            for (value, entry) in row.iter_mut().enumerate() {
                for bit in (0..8).filter(|bit| (value >> (7 - bit)) & 1 != 0) {
                    *entry ^= (bits >> (8 - bit)) as u32;
                }
            }
        }
        Self(table)
    }

    /// Hashes at most 36 bytes.
    pub fn hash(&self, input: &[u8]) -> u32 {
        input
            .iter()
            .zip(self.0.iter())
            .fold(0, |hash, (byte, row)| hash ^ row[usize::from(*byte)])
    }

    /// Hashes what `types` says of a frame; `None` if it says nothing about such a frame.
    pub fn hash_frame(&self, frame: &[u8], headers: &Headers, types: &HashTypes) -> Option<Hashed> {
        let ip = headers.ip?;
        let with_ports = match (ip.network, ip.transport) {
            (Network::V4, Some(Transport::Tcp)) => types.tcp4,
            (Network::V6, Some(Transport::Tcp)) => types.tcp6,
            (Network::V4, Some(Transport::Udp)) => types.udp4,
            (Network::V6, Some(Transport::Udp)) => types.udp6,
            (_, None) => false,
        };
        let addresses_only = match ip.network {
            Network::V4 => types.ipv4,
            Network::V6 => types.ipv6,
        };
        if !with_ports && !addresses_only {
            return None;
        }
        let addresses = ip.addresses(frame);
        let mut input = [0; INPUT];
        input[..addresses.len()].copy_from_slice(addresses);
        let mut len = addresses.len();
        if with_ports {
            input[len..len + 4].copy_from_slice(frame.get(ip.l4_offset..ip.l4_offset + 4)?);
            len += 4;
        }
        let ports = ip.transport.filter(|_| with_ports);
        Some(Hashed {
            hash: self.hash(&input[..len]),
            network: ip.network,
            ports,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::super::sample;
    use super::*;

    /// Key of the verification suite in "Verifying the RSS Hash Calculation" (Microsoft).
    const SUITE_KEY: [u8; KEY] = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
        0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ];

    /// Destination, its port, source, its port, hash of the addresses, hash with the ports.
    const SUITE: &[(&str, u16, &str, u16, u32, u32)] = &[
        (
            "161.142.100.80",
            1766,
            "66.9.149.187",
            2794,
            0x323e8fc2,
            0x51ccc178,
        ),
        (
            "65.69.140.83",
            4739,
            "199.92.111.2",
            14230,
            0xd718262a,
            0xc626b0ea,
        ),
        (
            "12.22.207.184",
            38024,
            "24.19.198.95",
            12898,
            0xd2d0a5de,
            0x5c2b394a,
        ),
        (
            "209.142.163.6",
            2217,
            "38.27.205.30",
            48228,
            0x82989176,
            0xafc7327f,
        ),
        (
            "202.188.127.2",
            1303,
            "153.39.163.191",
            44251,
            0x5d1809c5,
            0x10e828a2,
        ),
        (
            "3ffe:2501:200:3::1",
            1766,
            "3ffe:2501:200:1fff::7",
            2794,
            0x2cc18cd5,
            0x40207d3d,
        ),
        (
            "ff02::1",
            4739,
            "3ffe:501:8::260:97ff:fe40:efab",
            14230,
            0x0f0c461c,
            0xdde51bbf,
        ),
        (
            "fe80::200:f8ff:fe21:67cf",
            38024,
            "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
            44251,
            0x4b61e985,
            0x02d1feef,
        ),
    ];

    fn octets(address: &str) -> Vec<u8> {
        match address.parse().unwrap() {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        }
    }

    #[test]
    fn verification_suite() {
        let toeplitz = Toeplitz::new(&SUITE_KEY);
        for (to, to_port, from, from_port, addresses, ports) in SUITE {
            let mut input = [octets(from), octets(to)].concat();
            assert_eq!(toeplitz.hash(&input), *addresses, "{from} {to}");
            input.extend(from_port.to_be_bytes());
            input.extend(to_port.to_be_bytes());
            assert_eq!(toeplitz.hash(&input), *ports, "{from} {to} with ports");
        }
    }

    #[test]
    fn a_frame_hashes_as_its_type_says() {
        let toeplitz = Toeplitz::new(&SUITE_KEY);
        let mut frame = sample::ipv4_tcp(b"x");
        let (to, to_port, from, from_port, addresses, ports) = SUITE[0];
        frame[26..30].copy_from_slice(&octets(from));
        frame[30..34].copy_from_slice(&octets(to));
        frame[34..36].copy_from_slice(&from_port.to_be_bytes());
        frame[36..38].copy_from_slice(&to_port.to_be_bytes());
        let headers = Headers::parse(&frame).unwrap();
        let hash = |types: &HashTypes| toeplitz.hash_frame(&frame, &headers, types);
        let expect = |hash, ports| {
            Some(Hashed {
                hash,
                network: Network::V4,
                ports,
            })
        };
        assert_eq!(hash(&HashTypes::ALL), expect(ports, Some(Transport::Tcp)));
        assert_eq!(
            hash(&HashTypes {
                tcp4: false,
                ..HashTypes::ALL
            }),
            expect(addresses, None)
        );
        assert_eq!(
            hash(&HashTypes {
                udp4: true,
                ..HashTypes::default()
            }),
            None
        );
        let arp = sample::arp();
        assert_eq!(
            toeplitz.hash_frame(&arp, &Headers::parse(&arp).unwrap(), &HashTypes::ALL),
            None
        );
    }
}
