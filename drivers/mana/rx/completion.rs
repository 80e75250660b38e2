// SPDX-License-Identifier: GPL-2.0

//! Receive completions (`struct mana_rxcomp_oob`).

use crate::{
    bits::Field,
    regs::CQE_DATA_WORDS, //
};

/// Types of receive completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CqeType {
    /// `CQE_RX_OKAY`: one packet.
    Okay,
    /// `CQE_RX_COALESCED_4`: up to four packets.
    Coalesced4,
    /// `CQE_RX_OBJECT_FENCE`: the answer to `MANA_FENCE_RQ`.
    Fence,
    /// `CQE_RX_TRUNCATED`: a packet that did not fit its buffer.
    Truncated,
    /// `CQE_RX_COALESCED_8`: up to eight packets.
    Coalesced8,
    /// Any other.
    Unknown,
}

/// What a hash was computed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hashed {
    /// Addresses.
    L3,
    /// Addresses and ports.
    L4,
}

/// What a completion says of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Bytes, not 0.
    pub(crate) len: u32,
    /// RSS hash.
    pub(crate) hash: u32,
}

/// Words of a completion that stands for one packet.
pub(crate) const FIRST_WORDS: usize = 5;

/// A receive completion, or the first words of one.
#[derive(Clone, Copy)]
pub(crate) struct Completion<const WORDS: usize> {
    words: [u32; WORDS],
}

impl<const WORDS: usize> Completion<WORDS> {
    const CQE_TYPE: Field = Field::bits(5, 0);

    const VLAN_ID: Field = Field::bits(11, 0);
    const VLANTAG_PRESENT: Field = Field::bit(12);
    const HASHTYPE: Field = Field::bits(24, 16);
    const IPHDR_CSUM_SUCCEED: Field = Field::bit(25);
    const TCP_CSUM_SUCCEED: Field = Field::bit(27);
    const UDP_CSUM_SUCCEED: Field = Field::bit(29);

    /// `MANA_HASH_L4`: TCP and UDP over IPv4, IPv6 and IPv6 with extensions.
    const HASH_L4: u32 = 0x1b6;

    /// First of the four entries that describe packets.
    const PPI: usize = 2;
    const PPI_ENTRIES: u8 = 4;
    /// Words of an entry.
    const PPI_WORDS: usize = 3;

    /// The data of a completion queue entry.
    pub(crate) fn new(words: [u32; WORDS]) -> Self {
        const { assert!(WORDS >= FIRST_WORDS && WORDS <= CQE_DATA_WORDS) };
        Self { words }
    }

    /// Its type.
    pub(crate) fn kind(&self) -> CqeType {
        let header = self.words[0];
        match Self::CQE_TYPE.get(header) {
            1 => CqeType::Okay,
            2 => CqeType::Coalesced4,
            3 => CqeType::Fence,
            4 => CqeType::Truncated,
            7 => CqeType::Coalesced8,
            _ => CqeType::Unknown,
        }
    }

    /// Whether it may stand for more than one packet.
    pub(crate) fn is_coalesced(&self) -> bool {
        matches!(self.kind(), CqeType::Coalesced4 | CqeType::Coalesced8)
    }

    /// Packet `i` of the completion, or `None` if there are fewer.
    pub(crate) fn packet(&self, i: u8) -> Option<Packet> {
        // Entry, and which of its two packets where it has two.
        let (entry, second) = match self.kind() {
            CqeType::Okay if i == 0 => (0, None),
            CqeType::Coalesced4 => (i, None),
            CqeType::Coalesced8 => (i / 2, Some(i % 2 == 1)),
            _ => return None,
        };
        if entry >= Self::PPI_ENTRIES {
            return None;
        }
        let start = Self::PPI + usize::from(entry) * Self::PPI_WORDS;
        let &[a, b, c] = self.words.get(start..start + Self::PPI_WORDS)? else {
            return None;
        };
        const LOW: Field = Field::bits(15, 0);
        const HIGH: Field = Field::bits(31, 16);
        let (len, hash) = match second {
            None => (LOW.get(a), c),
            Some(false) => (LOW.get(b), a),
            Some(true) => (HIGH.get(b), c),
        };
        (len != 0).then_some(Packet { len, hash })
    }

    /// Whether the device found the checksums right, up to that of TCP or UDP.
    pub(crate) fn l4_csum_succeed(&self) -> bool {
        let flags = self.words[1];
        let l4 = Self::TCP_CSUM_SUCCEED.is_set(flags) || Self::UDP_CSUM_SUCCEED.is_set(flags);
        Self::IPHDR_CSUM_SUCCEED.is_set(flags) && l4
    }

    /// What the hashes were computed over; `None` if there are none.
    pub(crate) fn hash_kind(&self) -> Option<Hashed> {
        let flags = self.words[1];
        match Self::HASHTYPE.get(flags) {
            0 => None,
            kind if kind & Self::HASH_L4 != 0 => Some(Hashed::L4),
            _ => Some(Hashed::L3),
        }
    }

    /// The VLAN whose tag the device took out. It reports no priority.
    pub(crate) fn vlan(&self) -> Option<u16> {
        let flags = self.words[1];
        // CAST: 12 bits.
        Self::VLANTAG_PRESENT
            .is_set(flags)
            .then_some(Self::VLAN_ID.get(flags) as u16)
    }
}
