// SPDX-License-Identifier: GPL-2.0
//! Where received packets go: the default queue, or one of the indirection table by hash.

use std::rc::Rc;

use nic::offload::{HashTypes, Hashed, Headers, Toeplitz};

use crate::abi::hash_type;

/// All hash types that the device computes.
pub const HASH_TYPES: u32 = hash_type::IPV4
    | hash_type::TCP_IPV4
    | hash_type::UDP_IPV4
    | hash_type::IPV6
    | hash_type::TCP_IPV6
    | hash_type::UDP_IPV6;

/// How many packets share a CQE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coalescing {
    /// One.
    #[default]
    Off,
    /// Up to four.
    Four,
    /// Up to eight.
    Eight,
}

impl Coalescing {
    /// Packets that a CQE takes.
    pub fn packets(self) -> usize {
        match self {
            Self::Off => 1,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// Receive configuration of a port, as CONFIG_VPORT_RX sets it.
#[derive(Clone, Default)]
pub struct Steering {
    /// The port receives.
    pub is_rx_enabled: bool,
    /// Packets are spread by hash.
    pub is_rss_enabled: bool,
    /// Queue of packets without hash.
    pub default_rq: Option<u32>,
    /// The hash function of the key; none before a key was given.
    toeplitz: Option<Rc<Toeplitz>>,
    /// Queues by hash; `None` where the queue was destroyed.
    pub table: Vec<Option<u32>>,
    /// Hash types to compute, bits of [`hash_type`].
    pub hash_types: u32,
    /// Packets per CQE.
    pub coalescing: Coalescing,
}

impl Steering {
    /// Whether packets may go to this queue.
    pub fn uses(&self, rq: u32) -> bool {
        let in_table = || self.is_rss_enabled && self.table.contains(&Some(rq));
        self.is_rx_enabled && (self.default_rq == Some(rq) || in_table())
    }

    /// The queue is gone.
    pub fn forget(&mut self, rq: u32) {
        let known = self.table.iter_mut().chain([&mut self.default_rq]);
        for entry in known.filter(|entry| **entry == Some(rq)) {
            *entry = None;
        }
    }

    /// Sets the Toeplitz key.
    pub fn set_key(&mut self, key: &[u8; 40]) {
        self.toeplitz = Some(Rc::new(Toeplitz::new(key)));
    }

    /// The hash of a frame, if the port computes one for it.
    pub fn hash(&self, frame: &[u8], headers: &Headers) -> Option<Hashed> {
        let has = |kind| self.hash_types & kind != 0;
        let types = HashTypes {
            ipv4: has(hash_type::IPV4),
            ipv6: has(hash_type::IPV6),
            tcp4: has(hash_type::TCP_IPV4),
            tcp6: has(hash_type::TCP_IPV6),
            udp4: has(hash_type::UDP_IPV4),
            udp6: has(hash_type::UDP_IPV6),
        };
        let toeplitz = self.toeplitz.as_ref().filter(|_| self.is_rss_enabled)?;
        toeplitz.hash_frame(frame, headers, &types)
    }

    /// The queue of a packet with this hash, if it has one.
    pub fn queue(&self, hash: Option<u32>) -> Option<u32> {
        match hash {
            Some(hash) if self.is_rss_enabled && !self.table.is_empty() => {
                self.table[hash as usize & (self.table.len() - 1)]
            }
            _ => self.default_rq,
        }
    }
}
