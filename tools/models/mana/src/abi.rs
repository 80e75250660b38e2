// SPDX-License-Identifier: GPL-2.0
//! What device and driver exchange in memory: queue entries and their bit fields.
//!
//! Source of every layout: `include/net/mana/{gdma,mana,hw_channel}.h` ("HW DATA").

use nic::fuzz::{Field, Kind, Layout};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The DMA unit of the device and the smallest queue, bytes.
pub const MANA_PAGE_SIZE: u64 = 4096;
/// Basic unit of a work queue entry, bytes.
pub const WQE_BU: u32 = 32;
/// Size of an event queue entry, bytes.
pub const EQE_SIZE: u32 = 16;
/// Size of a completion queue entry, bytes.
pub const CQE_SIZE: u32 = 64;
/// Completion data inside a CQE, bytes.
pub const COMP_DATA_SIZE: usize = 60;
/// Wraps that the 3 owner bits of EQEs and CQEs tell apart.
pub const OWNER_WRAPS: u32 = 8;
/// Largest send WQE, bytes.
pub const MAX_SQE_SIZE: u32 = 512;
/// Largest receive WQE, bytes.
pub const MAX_RQE_SIZE: u32 = 256;
/// Inline OOB of a short-format packet and of every receive WQE, bytes.
pub const OOB_SMALL: u32 = 8;
/// Inline OOB of a long-format packet and of an HWC message, bytes.
pub const OOB_LARGE: u32 = 24;

/// Event types (`enum gdma_eqe_type`).
pub mod eqe {
    /// A CQ has completions; detail = CQ id.
    pub const COMPLETION: u8 = 3;
    /// Answer to GENERATE_TEST_EQE.
    pub const TEST_EVENT: u8 = 64;
    /// HWC: EQ id and doorbell page.
    pub const HWC_INIT_EQ_ID_DB: u8 = 129;
    /// HWC: one typed value.
    pub const HWC_INIT_DATA: u8 = 130;
    /// HWC: the channel is ready.
    pub const HWC_INIT_DONE: u8 = 131;
    /// The device asks for removal and rescan.
    pub const HWC_FPGA_RECONFIG: u8 = 132;
    /// HWC: a changed setting (timeout, link).
    pub const HWC_SOC_RECONFIG_DATA: u8 = 133;
    /// The device asks for suspend and resume.
    pub const HWC_RESET_REQUEST: u8 = 135;
}

/// Types of `HWC_INIT_DATA` values.
pub mod init_data {
    /// HWC completion queue id.
    pub const CQID: u32 = 1;
    /// HWC receive queue id.
    pub const RQID: u32 = 2;
    /// HWC send queue id.
    pub const SQID: u32 = 3;
    /// Messages in flight at most.
    pub const QUEUE_DEPTH: u32 = 4;
    /// Largest request, bytes.
    pub const MAX_REQUEST: u32 = 5;
    /// Largest response, bytes.
    pub const MAX_RESPONSE: u32 = 6;
    /// CQ ids are below this.
    pub const MAX_NUM_CQS: u32 = 7;
    /// Protection domain of the HWC.
    pub const PDID: u32 = 8;
    /// Memory key of the HWC.
    pub const GPA_MKEY: u32 = 9;
    /// PF receive queue that requests go to.
    pub const PF_DEST_RQ_ID: u32 = 10;
    /// PF completion queue of that queue.
    pub const PF_DEST_CQ_ID: u32 = 11;
}

/// Types of `HWC_SOC_RECONFIG_DATA` values.
pub mod reconfig {
    /// New command timeout, ms.
    pub const HWC_TIMEOUT: u32 = 1;
    /// The link of the adapter came up.
    pub const LINK_CONNECT: u32 = 2;
    /// The link of the adapter went down.
    pub const LINK_DISCONNECT: u32 = 3;
}

/// Completion types (`enum mana_cqe_type`).
pub mod cqe {
    /// One packet received.
    pub const RX_OKAY: u32 = 1;
    /// Up to four packets received.
    pub const RX_COALESCED_4: u32 = 2;
    /// Answer to FENCE_RQ.
    pub const RX_OBJECT_FENCE: u32 = 3;
    /// A packet did not fit its buffer.
    pub const RX_TRUNCATED: u32 = 4;
    /// Up to eight packets received.
    pub const RX_COALESCED_8: u32 = 7;
    /// Packet sent.
    pub const TX_OKAY: u32 = 32;
    /// Source MAC not allowed.
    pub const TX_SA_DROP: u32 = 33;
    /// Frame longer than the adapter's MTU.
    pub const TX_MTU_DROP: u32 = 34;
    /// OOB does not fit the queue or the packet.
    pub const TX_INVALID_OOB: u32 = 35;
    /// Headers could not be processed.
    pub const TX_HDR_PROCESSING_ERROR: u32 = 37;
    /// The only client type of MANA completions.
    pub const CLIENT_MANA: u32 = 1;
}

/// Hash types of a received packet (`NDIS_HASH_*`).
pub mod hash_type {
    /// Hash over the IPv4 addresses.
    pub const IPV4: u32 = 1 << 0;
    /// Hash over IPv4 addresses and TCP ports.
    pub const TCP_IPV4: u32 = 1 << 1;
    /// Hash over IPv4 addresses and UDP ports.
    pub const UDP_IPV4: u32 = 1 << 2;
    /// Hash over the IPv6 addresses.
    pub const IPV6: u32 = 1 << 3;
    /// Hash over IPv6 addresses and TCP ports.
    pub const TCP_IPV6: u32 = 1 << 4;
    /// Hash over IPv6 addresses and UDP ports.
    pub const UDP_IPV6: u32 = 1 << 5;
}

/// Value of bits `low..low + width` of a word.
pub fn bits(word: u32, low: u32, width: u32) -> u32 {
    (word >> low) & (u32::MAX >> (32 - width))
}

/// Where an EQE and a CQE have their owner bits.
const EQE_OWNER: Field = Field::new(125, 3);
const CQE_OWNER: Field = Field::new(509, 3);
const CQE_WQ: Field = Field::new(480, 24);
const CQE_IS_SQ: Field = Field::new(504, 1);

/// What a driver looks at in an EQE: queue id or value, what the value is, type.
pub const EQE_LAYOUT: Layout = Layout {
    kind: Kind::Event,
    fields: &[Field::new(0, 24), Field::new(24, 8), Field::new(96, 8)],
    owner: Some(EQE_OWNER),
};

/// The same, of an EQE that tells of an answer to a command.
pub const HWC_EQE_LAYOUT: Layout = Layout {
    kind: Kind::Command,
    ..EQE_LAYOUT
};

/// What it looks at in a CQE of the Ethernet device: type, client, flags, VLAN, lengths, hash, place.
pub const CQE_LAYOUT: Layout = Layout {
    kind: Kind::Completion,
    fields: &[
        Field::new(0, 6),
        Field::new(6, 2),
        Field::new(32, 32),
        Field::new(64, 16),
        Field::new(96, 16),
        Field::new(112, 16),
        Field::new(128, 32),
        Field::new(448, 32),
        CQE_WQ,
        CQE_IS_SQ,
    ],
    owner: Some(CQE_OWNER),
};

/// What it looks at in a CQE of the HWC: place and length of the answer.
pub const HWC_CQE_LAYOUT: Layout = Layout {
    kind: Kind::Command,
    fields: &[Field::new(96, 32), Field::new(192, 32), CQE_WQ, CQE_IS_SQ],
    owner: Some(CQE_OWNER),
};

/// What it looks at in the header of an answer: type, version, message, size, device, activity, status.
pub const ANSWER_LAYOUT: Layout = Layout {
    kind: Kind::Command,
    fields: &[
        Field::new(32, 32),
        Field::new(64, 16),
        Field::new(80, 16),
        Field::new(96, 32),
        Field::new(128, 32),
        Field::new(160, 32),
        Field::new(192, 32),
    ],
    owner: None,
};

/// Event queue entry.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Eqe {
    /// Payload; its first word is the CQ id of a completion event.
    pub details: [U32; 3],
    /// type:8, reserved:8, client:2, reserved:11, owner:3.
    pub info: U32,
}

impl Eqe {
    /// An event of `kind` with one word of detail.
    pub fn new(kind: u8, detail: u32, owner: u32) -> Self {
        Self {
            details: [detail.into(), 0.into(), 0.into()],
            info: (u32::from(kind) | ((owner & 7) << 29)).into(),
        }
    }
}

/// Completion queue entry.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Cqe {
    /// Completion data of the client.
    pub data: [u8; COMP_DATA_SIZE],
    /// wq_num:24, is_sq:1, reserved:4, owner:3.
    pub info: U32,
}

impl Cqe {
    /// A completion for work queue `wq` with `data` zero-extended.
    pub fn new(data: &[u8], wq: u32, is_sq: bool, owner: u32) -> Self {
        let mut cqe = Self {
            data: [0; COMP_DATA_SIZE],
            info: (wq & 0xff_ffff | (u32::from(is_sq) << 24) | ((owner & 7) << 29)).into(),
        };
        cqe.data[..data.len()].copy_from_slice(data);
        cqe
    }
}

/// Scatter/gather element.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Sge {
    /// Bus address.
    pub address: U64,
    /// Memory key that allows the access.
    pub mem_key: U32,
    /// Length, bytes.
    pub size: U32,
}

/// First 8 bytes of a work queue entry.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct WqeHeader {
    /// reserved:24, last_vbytes:8.
    pub first: U32,
    /// num_sge:8, inline_oob_size_div4:3, client_oob_in_sgl:1, reserved:4, client_data_unit:14, reserved:2.
    pub flags: U32,
}

impl WqeHeader {
    /// Number of scatter/gather elements.
    pub fn num_sge(&self) -> u32 {
        bits(self.flags.get(), 0, 8)
    }
    /// Bytes of inline OOB that follow the header.
    pub fn inline_oob_size(&self) -> u32 {
        bits(self.flags.get(), 8, 3) * 4
    }
    /// The first element holds the packet's headers (LSO).
    pub fn oob_in_sgl(&self) -> bool {
        bits(self.flags.get(), 11, 1) != 0
    }
    /// Segment size of an LSO packet.
    pub fn client_data_unit(&self) -> u32 {
        bits(self.flags.get(), 16, 14)
    }
    /// Length of the headers in the first element of an LSO packet, modulo 256.
    pub fn last_vbytes(&self) -> u32 {
        bits(self.first.get(), 24, 8)
    }
    /// All reserved bits of the header.
    pub fn reserved(&self) -> u32 {
        bits(self.first.get(), 0, 24)
            | bits(self.flags.get(), 12, 4)
            | bits(self.flags.get(), 30, 2)
    }
    /// Size of the whole entry, rounded to basic units, bytes.
    pub fn wqe_size(&self) -> u32 {
        (8 + self.inline_oob_size() + 16 * self.num_sge()).next_multiple_of(WQE_BU)
    }
}

/// OOB of a sent packet, short part (`struct mana_tx_short_oob`).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct TxShortOob {
    /// pkt_fmt:2, outer_ipv4:1, outer_ipv6:1, iphdr_csum:1, tcp_csum:1, udp_csum:1, suppress_cqe:1, vcq_num:24.
    pub first: U32,
    /// trans_off:10, vsq_frame:14, short_vp_offset:8.
    pub second: U32,
}

impl TxShortOob {
    /// 0 = short, 1 = long.
    pub fn pkt_fmt(&self) -> u32 {
        bits(self.first.get(), 0, 2)
    }
    /// The driver says that the packet is IPv4.
    pub fn is_outer_ipv4(&self) -> bool {
        bits(self.first.get(), 2, 1) != 0
    }
    /// The driver says that the packet is IPv6.
    pub fn is_outer_ipv6(&self) -> bool {
        bits(self.first.get(), 3, 1) != 0
    }
    /// The device shall fill the IPv4 header checksum.
    pub fn comp_iphdr_csum(&self) -> bool {
        bits(self.first.get(), 4, 1) != 0
    }
    /// The device shall fill the TCP checksum.
    pub fn comp_tcp_csum(&self) -> bool {
        bits(self.first.get(), 5, 1) != 0
    }
    /// The device shall fill the UDP checksum.
    pub fn comp_udp_csum(&self) -> bool {
        bits(self.first.get(), 6, 1) != 0
    }
    /// No CQE for a packet that was sent without error.
    pub fn suppress_txcqe_gen(&self) -> bool {
        bits(self.first.get(), 7, 1) != 0
    }
    /// CQ that the completion goes to.
    pub fn vcq_num(&self) -> u32 {
        bits(self.first.get(), 8, 24)
    }
    /// Offset of the TCP header.
    pub fn trans_off(&self) -> u32 {
        bits(self.second.get(), 0, 10)
    }
    /// Bits 10..24 of the send queue's id.
    pub fn vsq_frame(&self) -> u32 {
        bits(self.second.get(), 10, 14)
    }
    /// vPort offset of a short-format packet.
    pub fn short_vp_offset(&self) -> u32 {
        bits(self.second.get(), 24, 8)
    }
}

/// OOB of a sent packet, long part (`struct mana_tx_long_oob`).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct TxLongOob {
    /// is_encap:1, inner_ipv6:1, inner_tcp_opt:1, inject_vlan:1, reserved:12, pcp:3, dei:1, vlan_id:12.
    pub first: U32,
    /// inner_frame_offset:10, inner_ip_rel_offset:6, long_vp_offset:12, reserved:4.
    pub second: U32,
    /// Must be zero.
    pub reserved: [U32; 2],
}

impl TxLongOob {
    /// The packet is a tunnel packet with an inner one.
    pub fn is_encap(&self) -> bool {
        bits(self.first.get(), 0, 1) != 0
    }
    /// Any of the fields that only tunnel packets have.
    pub fn has_inner_fields(&self) -> bool {
        bits(self.first.get(), 1, 2) != 0 || bits(self.second.get(), 0, 16) != 0
    }
    /// The device shall insert an 802.1Q tag.
    pub fn inject_vlan_pri_tag(&self) -> bool {
        bits(self.first.get(), 3, 1) != 0
    }
    /// The tag as it stands in the frame: pcp, dei, id.
    pub fn vlan_tci(&self) -> u16 {
        let word = self.first.get();
        ((bits(word, 16, 3) << 13) | (bits(word, 19, 1) << 12) | bits(word, 20, 12)) as u16
    }
    /// vPort offset of a long-format packet.
    pub fn long_vp_offset(&self) -> u32 {
        bits(self.second.get(), 16, 12)
    }
    /// All reserved bits.
    pub fn reserved(&self) -> u32 {
        bits(self.first.get(), 4, 12)
            | bits(self.second.get(), 28, 4)
            | self.reserved[0].get()
            | self.reserved[1].get()
    }
}

/// OOB of an HWC message (`struct hwc_tx_oob`).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct HwcTxOob {
    /// Must be zero.
    pub reserved: [U32; 2],
    /// vrq_id:24, dest_vfid:8.
    pub vrq: U32,
    /// vrcq_id:24, reserved:8.
    pub vrcq: U32,
    /// vscq_id:24, loopback:1, lso_override:1, dest_pf:1, reserved:5.
    pub vscq: U32,
    /// vsq_id:24, reserved:8.
    pub vsq: U32,
}

/// Completion data of an HWC message (`struct hwc_rx_oob`).
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct HwcRxOob {
    /// type:6, eom:1, som:1, vendor_err:8, reserved:16.
    pub first: U32,
    /// src_virt_wq:24, src_vfid:8.
    pub source: U32,
    /// Must be zero.
    pub reserved: U32,
    /// Byte offset of the WQE in its ring.
    pub wqe_offset: U32,
    /// Upper half of the offset.
    pub wqe_addr_high: U32,
    /// client_data_unit:14, reserved:18.
    pub client_data_unit: U32,
    /// Length of the message, bytes.
    pub tx_oob_data_size: U32,
    /// chunk_offset:21, reserved:11.
    pub chunk_offset: U32,
}

/// Completion data of a sent packet (`struct mana_tx_comp_oob`).
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct TxCompOob {
    /// cqe_type:6, client_type:2, vendor_err:24.
    pub header: U32,
    /// Offset of the packet's data.
    pub tx_data_offset: U32,
    /// tx_sgl_offset:5, tx_wqe_offset:27.
    pub offsets: U32,
}

/// The first word of a MANA completion.
pub fn cqe_header(kind: u32) -> u32 {
    kind & 0x3f | (cqe::CLIENT_MANA << 6)
}

/// Length and hash of received packets in a CQE, one entry per packet.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Ppi {
    /// pkt_len:16, reserved:16; or the hash of the first packet of a pair.
    pub word0: U32,
    /// Reserved; or the lengths of a pair.
    pub word1: U32,
    /// Hash; or the hash of the second packet of a pair.
    pub word2: U32,
}

/// Completion data of received packets (`struct mana_rxcomp_oob`).
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RxCompOob {
    /// cqe_type:6, client_type:2, vendor_err:24.
    pub header: U32,
    /// See [`rx_flag`].
    pub flags: U32,
    /// Packets of this completion.
    pub ppi: [Ppi; 4],
    /// Byte offset of the first packet's WQE.
    pub rx_wqe_offset: U32,
}

/// Bits of [`RxCompOob::flags`]; bits 0..12 are the VLAN id, bits 16..25 the hash type.
pub mod rx_flag {
    /// A VLAN tag was taken out of the packet.
    pub const VLANTAG_PRESENT: u32 = 1 << 12;
    /// Shift of the hash type.
    pub const HASHTYPE_SHIFT: u32 = 16;
    /// IP header checksum right (or there is none: IPv6).
    pub const IPHDR_CSUM_SUCCEED: u32 = 1 << 25;
    /// IP header checksum wrong.
    pub const IPHDR_CSUM_FAIL: u32 = 1 << 26;
    /// TCP checksum right.
    pub const TCP_CSUM_SUCCEED: u32 = 1 << 27;
    /// TCP checksum wrong.
    pub const TCP_CSUM_FAIL: u32 = 1 << 28;
    /// UDP checksum right.
    pub const UDP_CSUM_SUCCEED: u32 = 1 << 29;
    /// UDP checksum wrong.
    pub const UDP_CSUM_FAIL: u32 = 1 << 30;
}
