// SPDX-License-Identifier: GPL-2.0

//! Inline part of a packet's work queue entry.

use zerocopy_derive::{
    Immutable,
    IntoBytes, //
};

use crate::{
    bits::Field,
    regs::{
        INLINE_OOB_LARGE_SIZE,
        INLINE_OOB_SMALL_SIZE, //
    }, //
};

/// A checksum that the device fills in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checksum {
    /// That of TCP.
    Tcp,
    /// That of UDP.
    Udp,
}

/// Inline part of every packet (`struct mana_tx_short_oob`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct ShortOob {
    words: [u32; 2],
}
const _: () = assert!(size_of::<ShortOob>() == INLINE_OOB_SMALL_SIZE);

impl ShortOob {
    const PKT_FMT: Field = Field::bits(1, 0);
    const IS_OUTER_IPV4: Field = Field::bit(2);
    const IS_OUTER_IPV6: Field = Field::bit(3);
    const COMP_IPHDR_CSUM: Field = Field::bit(4);
    const COMP_TCP_CSUM: Field = Field::bit(5);
    const COMP_UDP_CSUM: Field = Field::bit(6);
    const VCQ_NUM: Field = Field::bits(31, 8);

    const TRANS_OFF: Field = Field::bits(9, 0);
    const VSQ_FRAME: Field = Field::bits(23, 10);
    const SHORT_VP_OFFSET: Field = Field::bits(31, 24);

    const MANA_LONG_PKT_FMT: u32 = 1;

    /// Largest offset of a TCP header that [`ShortOob::offload`] can name.
    pub(crate) const MAX_TRANSPORT_OFFSET: u32 = Self::TRANS_OFF.max();

    /// Asks for a checksum of a packet whose L4 header is at `transport_offset`;
    /// for `tso` the one of each segment, and that of its IPv4 header.
    pub(crate) fn offload(
        mut self,
        kind: Checksum,
        tso: bool,
        ipv6: bool,
        transport_offset: u32,
    ) -> Self {
        let [flags, place] = &mut self.words;
        *flags |= Self::IS_OUTER_IPV4.flag(!ipv6)
            | Self::IS_OUTER_IPV6.flag(ipv6)
            | Self::COMP_IPHDR_CSUM.flag(tso);
        match kind {
            Checksum::Tcp => {
                *flags |= Self::COMP_TCP_CSUM.flag(true);
                *place |= Self::TRANS_OFF.of(transport_offset);
            }
            // The device finds UDP headers itself.
            Checksum::Udp => *flags |= Self::COMP_UDP_CSUM.flag(true),
        }
        self
    }

    /// Says that a [`LongOob`] follows.
    pub(crate) fn followed_by_long(mut self) -> Self {
        let [flags, _] = &mut self.words;
        *flags |= Self::PKT_FMT.of(Self::MANA_LONG_PKT_FMT);
        self
    }
}

/// What follows the [`ShortOob`] of a packet in the long format (`struct
/// mana_tx_long_oob`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct LongOob {
    words: [u32; 4],
}
const _: () = assert!(size_of::<ShortOob>() + size_of::<LongOob>() == INLINE_OOB_LARGE_SIZE);

impl LongOob {
    const INJECT_VLAN_PRI_TAG: Field = Field::bit(3);
    const PCP: Field = Field::bits(18, 16);
    const DEI: Field = Field::bit(19);
    const VLAN_ID: Field = Field::bits(31, 20);

    const LONG_VP_OFFSET: Field = Field::bits(27, 16);

    /// Asks for a VLAN tag with this control information, if any.
    pub(crate) fn vlan(mut self, tci: Option<u16>) -> Self {
        if let Some(tci) = tci.map(u32::from) {
            let [tag, ..] = &mut self.words;
            *tag |= Self::INJECT_VLAN_PRI_TAG.flag(true)
                | Self::PCP.of(tci >> 13)
                | Self::DEI.of(tci >> 12)
                | Self::VLAN_ID.of(tci);
        }
        self
    }
}

/// What all packets on send queue `sq` say, which completes on `cq` and belongs
/// to the vPort at `vp_offset`; and whether only the long format has room for
/// that. `None` if that has none either.
pub(crate) fn on_queue(sq: u32, cq: u32, vp_offset: u16) -> Option<(ShortOob, LongOob, bool)> {
    // The device finds a queue by the middle 14 bits of its id.
    const VSQ_FRAME_OF_ID: Field = Field::bits(23, 10);

    let vp_offset = u32::from(vp_offset);
    if vp_offset > LongOob::LONG_VP_OFFSET.max() {
        return None;
    }
    let always_long = vp_offset > ShortOob::SHORT_VP_OFFSET.max();
    let (short_offset, long_offset) = if always_long {
        (0, vp_offset)
    } else {
        (vp_offset, 0)
    };
    let short = ShortOob {
        words: [
            ShortOob::VCQ_NUM.of(cq),
            ShortOob::VSQ_FRAME.of(VSQ_FRAME_OF_ID.get(sq))
                | ShortOob::SHORT_VP_OFFSET.of(short_offset),
        ],
    };
    let long = LongOob {
        words: [0, LongOob::LONG_VP_OFFSET.of(long_offset), 0, 0],
    };
    Some((short, long, always_long))
}
