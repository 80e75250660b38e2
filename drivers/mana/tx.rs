// SPDX-License-Identifier: GPL-2.0

//! Send queues: the inline formats, and what `ring_common` drives.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use netdev::{
    dma::Pieces,
    mmio::Doorbell64,
    napi::Arm,
    skb::{
        GsoKind,
        Reason,
        TxMeta,
        TxSkb,
        L3,
        MAX_SKB_FRAGS, //
    }, //
};
use ring_common::nic::{
    TxDone,
    TxReap,
    TxSend, //
};
use ring_core::index::Cursor;
use zerocopy::FromZeros;
use zerocopy_derive::{
    Immutable,
    IntoBytes, //
};

use crate::{
    bits::Field,
    gdma::{
        cq::CompletionReader,
        wq::WorkQueue,
        wqe_units,
        Cqe,
        Sge,
        WqeHeader,
        GDMA_MAX_SQE_SIZE,
        GDMA_WQE_BU_SIZE,
        INLINE_OOB_LARGE_SIZE,
        INLINE_OOB_SMALL_SIZE, //
    },
    regs,
    stats::PortCounters, //
};

/// What a checksum that is left to the device is for, if the device can do it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum L4 {
    Tcp,
    Udp,
}

fn l4(meta: &TxMeta) -> Option<L4> {
    const IPPROTO_TCP: u8 = 6;
    const IPPROTO_UDP: u8 = 17;

    if !meta.csum_partial() || meta.encapsulated() {
        return None;
    }
    match meta.l4_proto {
        IPPROTO_TCP => Some(L4::Tcp),
        IPPROTO_UDP => Some(L4::Udp),
        _ => None,
    }
}

/// Inline part of a packet (`struct mana_tx_short_oob`).
#[derive(Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct ShortOob {
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
}

/// What follows the [`ShortOob`] of a packet in the long format (`struct
/// mana_tx_long_oob`).
#[derive(Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct LongOob {
    words: [u32; 4],
}
const _: () = assert!(size_of::<ShortOob>() + size_of::<LongOob>() == INLINE_OOB_LARGE_SIZE);

impl LongOob {
    const INJECT_VLAN_PRI_TAG: Field = Field::bit(3);
    const PCP: Field = Field::bits(18, 16);
    const DEI: Field = Field::bit(19);
    const VLAN_ID: Field = Field::bits(31, 20);

    const LONG_VP_OFFSET: Field = Field::bits(27, 16);
}

/// First basic unit of an entry in the short format.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
struct ShortStart {
    header: WqeHeader,
    oob: ShortOob,
    first: Sge,
}

/// First basic unit of an entry in the long format.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
struct LongStart {
    header: WqeHeader,
    short: ShortOob,
    long: LongOob,
}

/// Any other basic unit of an entry.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
struct SgePair([Sge; 2]);

// CAST: 32.
const UNIT: usize = GDMA_WQE_BU_SIZE as usize;
const _: () = assert!(size_of::<ShortStart>() == UNIT);
const _: () = assert!(size_of::<LongStart>() == UNIT);
const _: () = assert!(size_of::<SgePair>() == UNIT);

/// Producer half of a send queue.
pub(crate) struct Send {
    queue: Arc<WorkQueue>,
    doorbell: Doorbell64,
    mem_key: u32,
    /// Words that are the same in all packets.
    short: ShortOob,
    long: LongOob,
    /// Whether the vPort's offset needs the long format.
    always_long: bool,
    counters: Arc<PortCounters>,
}

impl Send {
    /// The driver's side of `queue`, on the vPort at `vp_offset`.
    ///
    /// # Errors
    ///
    /// `EPROTO` if no format has room for the offset.
    pub(crate) fn new(
        queue: Arc<WorkQueue>,
        mem_key: u32,
        vp_offset: u16,
        counters: Arc<PortCounters>,
    ) -> Result<Self> {
        let vp_offset = u32::from(vp_offset);
        if vp_offset > LongOob::LONG_VP_OFFSET.max() {
            return Err(EPROTO);
        }
        let always_long = vp_offset > ShortOob::SHORT_VP_OFFSET.max();
        let (short_offset, long_offset) = if always_long {
            (0, vp_offset)
        } else {
            (vp_offset, 0)
        };
        // The device finds a queue by the middle 14 bits of its id.
        const VSQ_FRAME_OF_ID: Field = Field::bits(23, 10);
        let frame = VSQ_FRAME_OF_ID.get(queue.id());
        Ok(Self {
            doorbell: queue.doorbell()?,
            mem_key,
            short: ShortOob {
                words: [
                    ShortOob::VCQ_NUM.of(queue.cq_id()),
                    ShortOob::VSQ_FRAME.of(frame) | ShortOob::SHORT_VP_OFFSET.of(short_offset),
                ],
            },
            long: LongOob {
                words: [0, LongOob::LONG_VP_OFFSET.of(long_offset), 0, 0],
            },
            always_long,
            queue,
            counters,
        })
    }

    fn short_oob(&self, meta: &TxMeta, long: bool) -> ShortOob {
        let [mut flags, mut place] = self.short.words;
        if long {
            flags |= ShortOob::PKT_FMT.of(ShortOob::MANA_LONG_PKT_FMT);
        }
        let tso = meta.gso_size != 0;
        let tcp = tso || l4(meta) == Some(L4::Tcp);
        let udp = !tso && l4(meta) == Some(L4::Udp);
        if tcp || udp {
            flags |= ShortOob::IS_OUTER_IPV4.flag(meta.l3 == L3::Ip4)
                | ShortOob::IS_OUTER_IPV6.flag(meta.l3 == L3::Ip6)
                | ShortOob::COMP_IPHDR_CSUM.flag(tso)
                | ShortOob::COMP_TCP_CSUM.flag(tcp)
                | ShortOob::COMP_UDP_CSUM.flag(udp);
        }
        if tcp {
            place |= ShortOob::TRANS_OFF.of(meta.transport_offset);
        }
        ShortOob {
            words: [flags, place],
        }
    }

    fn long_oob(&self, meta: &TxMeta) -> LongOob {
        let [mut vlan, place, ..] = self.long.words;
        if let Some(tci) = meta.vlan {
            let tci = u32::from(tci);
            vlan |= LongOob::INJECT_VLAN_PRI_TAG.flag(true)
                | LongOob::PCP.of(tci >> 13)
                | LongOob::DEI.of(tci >> 12)
                | LongOob::VLAN_ID.of(tci);
        }
        LongOob {
            words: [vlan, place, 0, 0],
        }
    }
}

impl TxSend for Send {
    const MAX_UNITS: u32 = {
        // CAST: 17 to 45, as the kernel is configured.
        let units = wqe_units(INLINE_OOB_LARGE_SIZE, MAX_SKB_FRAGS + 2);
        assert!(units * GDMA_WQE_BU_SIZE <= GDMA_MAX_SQE_SIZE);
        units
    };
    // CAST: 2.
    const PIECES_PER_UNIT: u32 = (UNIT / size_of::<Sge>()) as u32;

    fn prepare(&mut self, skb: &mut TxSkb, meta: &mut TxMeta) -> Result<u32, Reason> {
        let reachable = meta.transport_offset <= ShortOob::TRANS_OFF.max();
        if meta.gso_size != 0 {
            // The stack cuts packets itself that the port has not offered to cut.
            let able = reachable
                && !meta.encapsulated()
                && matches!(meta.gso_kind, GsoKind::Tcp4 | GsoKind::Tcp6)
                && meta.hdr_len <= meta.head_len
                && meta.hdr_len <= WqeHeader::MAX_SEGMENT_HEADER
                && meta.gso_size <= WqeHeader::MAX_SEGMENT;
            if !able {
                return Err(Reason::Unsupported);
            }
            skb.prepare_tso()?;
            return Ok(meta.hdr_len);
        }
        let able = match l4(meta) {
            Some(L4::Tcp) => reachable,
            Some(L4::Udp) => true,
            None => !meta.csum_partial(),
        };
        if !able {
            skb.checksum_help(meta)?;
        }
        Ok(0)
    }

    #[inline]
    fn post(&mut self, head: Cursor, meta: &TxMeta, pieces: Pieces<'_>) -> u32 {
        let long = self.always_long || meta.vlan.is_some();
        let oob = if long {
            INLINE_OOB_LARGE_SIZE
        } else {
            INLINE_OOB_SMALL_SIZE
        };
        // CAST: at most `MAX_SKB_FRAGS + 2`.
        let count = pieces.len() as u32;
        let mut header = WqeHeader::new(oob, count);
        if meta.gso_size != 0 {
            header = header.segment(meta.hdr_len, meta.gso_size);
        }
        let short = self.short_oob(meta, long);
        let mem_key = self.mem_key;
        let mut sges = pieces.map(|piece| Sge::new(piece.addr, mem_key, piece.len));
        let mut sge = || sges.next().unwrap_or_else(Sge::new_zeroed);

        let ring = self.queue.work();
        if long {
            self.counters.tx_long_pkt_fmt.add(1);
            let long = self.long_oob(meta);
            ring.write(
                head.slot(),
                &LongStart {
                    header,
                    short,
                    long,
                },
            );
        } else {
            let first = sge();
            ring.write(
                head.slot(),
                &ShortStart {
                    header,
                    oob: short,
                    first,
                },
            );
        }
        let units = wqe_units(oob, count);
        let mask = ring.size().get().wrapping_sub(1);
        for unit in 1..units {
            let slot = head.slot().wrapping_add(unit) & mask;
            ring.write(slot, &SgePair([sge(), sge()]));
        }
        units
    }

    fn ring(&mut self, head: Cursor, _fresh: u32) {
        self.doorbell
            .write(regs::wq_doorbell(self.queue.id(), head.count()));
    }
}

/// Types of send completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CqeType {
    /// `CQE_TX_OKAY`.
    Okay,
    /// The device has dropped the packet: `CQE_TX_SA_DROP` up to
    /// `CQE_TX_VLAN_TAGGING_VIOLATION`.
    Dropped(u32),
    /// Any other.
    Unknown(u32),
}

/// Words of a send completion (`struct mana_tx_comp_oob`).
struct Completion;

impl Completion {
    const CQE_TYPE: Field = Field::bits(5, 0);
    const CLIENT_TYPE: Field = Field::bits(7, 6);

    const MANA_CQE_COMPLETION: u32 = 1;

    fn kind(cqe: &Cqe) -> CqeType {
        let [header, ..] = cqe.data;
        match Self::CQE_TYPE.get(header) {
            32 => CqeType::Okay,
            kind @ 33..=41 => CqeType::Dropped(kind),
            kind => CqeType::Unknown(kind),
        }
    }

    fn is_ethernet(cqe: &Cqe) -> bool {
        let [header, ..] = cqe.data;
        Self::CLIENT_TYPE.get(header) == Self::MANA_CQE_COMPLETION
    }
}

/// Consumer half of a send queue.
pub(crate) struct Reap {
    completions: CompletionReader,
    queue: Arc<WorkQueue>,
    counters: Arc<PortCounters>,
}

impl Reap {
    /// The other half of [`Send`].
    pub(crate) fn new(queue: Arc<WorkQueue>, counters: Arc<PortCounters>) -> Result<Self> {
        let mut completions = queue.reader()?;
        completions.settle(Arm::Yes);
        Ok(Self {
            completions,
            queue,
            counters,
        })
    }
}

impl TxReap for Reap {
    #[inline]
    fn next(&mut self) -> Option<TxDone> {
        loop {
            let Some(cqe) = self.completions.next(self.queue.completions()) else {
                if self.completions.take_overrun() {
                    self.counters.cq_overrun.add(1);
                }
                return None;
            };
            if !cqe.is_sq() || cqe.wq() != self.queue.id() || !Completion::is_ethernet(&cqe) {
                // Of no packet of this queue.
                self.counters.tx_cqe_unknown_type.add(1);
                continue;
            }
            match Completion::kind(&cqe) {
                CqeType::Okay => {}
                CqeType::Dropped(_) => self.counters.tx_cq_err.add(1),
                CqeType::Unknown(_) => self.counters.tx_cqe_unknown_type.add(1),
            }
            return Some(TxDone::Packet);
        }
    }

    fn settle(&mut self, arm: Arm) {
        self.completions.settle(arm);
    }
}
