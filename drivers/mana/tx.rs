// SPDX-License-Identifier: GPL-2.0

//! Send queues, as `ring_common` drives them.

use core::ops::RangeInclusive;

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
use ring_common::{
    nic::{
        TxDone,
        TxReap,
        TxSend, //
    },
    stats::ChannelStats, //
};
use ring_core::index::Cursor;
use zerocopy::FromZeros;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes, //
};

use crate::{
    bits::Field,
    gdma::{
        cq::CompletionReader,
        wq::WorkQueue,
        wqe_units,
        Sge,
        WqeHeader,
        GDMA_MAX_SQE_SIZE, //
    },
    regs::{
        self,
        GDMA_WQE_BU_SIZE,
        INLINE_OOB_LARGE_SIZE,
        INLINE_OOB_SMALL_SIZE, //
    },
    stats::PortCounters, //
};

mod oob;

use oob::{
    Checksum,
    LongOob,
    ShortOob, //
};

/// The checksum that is left to the device, if the device can do it.
fn l4(meta: &TxMeta) -> Option<Checksum> {
    if !meta.csum_partial() || meta.encapsulated() {
        None
    } else if meta.is_tcp() {
        Some(Checksum::Tcp)
    } else if meta.is_udp() {
        Some(Checksum::Udp)
    } else {
        None
    }
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
    /// What is the same in all packets.
    short: ShortOob,
    long: LongOob,
    /// Whether the vPort's offset needs the long format.
    always_long: bool,
    stats: Arc<ChannelStats>,
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
        stats: Arc<ChannelStats>,
    ) -> Result<Self> {
        let (short, long, always_long) =
            oob::on_queue(queue.id(), queue.cq_id(), vp_offset).ok_or(EPROTO)?;
        Ok(Self {
            doorbell: queue.doorbell()?,
            queue,
            mem_key,
            short,
            long,
            always_long,
            stats,
        })
    }

    fn short_oob(&self, meta: &TxMeta) -> ShortOob {
        let tso = meta.gso_size() != 0;
        let checksum = if tso { Some(Checksum::Tcp) } else { l4(meta) };
        match checksum {
            None => self.short,
            Some(kind) => {
                self.short
                    .offload(kind, tso, meta.l3() == L3::Ip6, meta.transport_offset())
            }
        }
    }
}

/// Makes a packet that asks for offloads fit for them, and returns where its first piece ends.
fn offload(skb: &mut TxSkb, meta: &mut TxMeta) -> Result<u32, Reason> {
    let reachable = meta.transport_offset() <= ShortOob::MAX_TRANSPORT_OFFSET;
    if meta.gso_size() != 0 {
        // The stack cuts packets itself that the port has not offered to cut.
        let able = reachable
            && !meta.encapsulated()
            && matches!(meta.gso_kind(), GsoKind::Tcp4 | GsoKind::Tcp6)
            && meta.hdr_len() <= meta.head_len()
            && meta.hdr_len() <= WqeHeader::MAX_SEGMENT_HEADER
            && meta.gso_size() <= WqeHeader::MAX_SEGMENT;
        if !able {
            return Err(Reason::Unsupported);
        }
        skb.prepare_tso()?;
        return Ok(meta.hdr_len());
    }
    let able = match l4(meta) {
        Some(Checksum::Tcp) => reachable,
        Some(Checksum::Udp) => true,
        None => false,
    };
    if !able {
        skb.checksum_help(meta)?;
    }
    Ok(0)
}

impl TxSend for Send {
    const MAX_UNITS: u32 = {
        let units = wqe_units(INLINE_OOB_LARGE_SIZE, MAX_SKB_FRAGS + 2);
        assert!(units * GDMA_WQE_BU_SIZE <= GDMA_MAX_SQE_SIZE);
        units
    };
    // CAST: 2.
    const PIECES_PER_UNIT: u32 = (UNIT / size_of::<Sge>()) as u32;

    #[inline(always)]
    fn prepare(&mut self, skb: &mut TxSkb, meta: &mut TxMeta) -> Result<u32, Reason> {
        if meta.gso_size() == 0 && !meta.csum_partial() {
            return Ok(0);
        }
        offload(skb, meta)
    }

    // Frames of XDP are posted elsewhere; without this the packets of the stack take a call for it.
    #[inline(always)]
    fn post(&mut self, head: Cursor, meta: &TxMeta, pieces: Pieces<'_>) -> u32 {
        let long = self.always_long || meta.vlan().is_some();
        let oob = if long {
            INLINE_OOB_LARGE_SIZE
        } else {
            INLINE_OOB_SMALL_SIZE
        };
        // CAST: at most `MAX_SKB_FRAGS + 2`.
        let count = pieces.len() as u32;
        let mut header = WqeHeader::new(oob, count);
        if meta.gso_size() != 0 {
            header = header.segment(meta.hdr_len(), meta.gso_size());
        }
        let short = self.short_oob(meta);
        let mem_key = self.mem_key;
        let mut sges = pieces.map(|piece| Sge::new(piece.addr, mem_key, piece.len));
        let mut sge = || sges.next().unwrap_or_else(Sge::new_zeroed);

        let ring = self.queue.work();
        if long {
            self.stats.tx.long_format.add(1);
            let start = LongStart {
                header,
                short: short.followed_by_long(),
                long: self.long.vlan(meta.vlan()),
            };
            ring.write(head.slot(), &start);
        } else {
            self.stats.tx.short_format.add(1);
            let start = ShortStart {
                header,
                oob: short,
                first: sge(),
            };
            ring.write(head.slot(), &start);
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

/// First word of a send completion (`struct mana_tx_comp_oob`); the driver needs
/// no other.
#[derive(Clone, Copy, FromBytes)]
#[repr(transparent)]
struct Completion(u32);

impl Completion {
    const CQE_TYPE: Field = Field::bits(5, 0);
    const CLIENT_TYPE: Field = Field::bits(7, 6);

    const MANA_CQE_COMPLETION: u32 = 1;
    const CQE_TX_OKAY: u32 = 32;
    /// `CQE_TX_SA_DROP` up to `CQE_TX_VLAN_TAGGING_VIOLATION`.
    const DROPS: RangeInclusive<u32> = 33..=41;

    fn is_okay(self) -> bool {
        Self::CQE_TYPE.get(self.0) == Self::CQE_TX_OKAY
    }

    /// Whether the device has dropped the packet.
    fn is_drop(self) -> bool {
        Self::DROPS.contains(&Self::CQE_TYPE.get(self.0))
    }

    fn is_ethernet(self) -> bool {
        Self::CLIENT_TYPE.get(self.0) == Self::MANA_CQE_COMPLETION
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

impl Reap {
    /// Counts what a completion says of a packet that was not just sent.
    #[cold]
    fn note(&self, completion: Completion) {
        if completion.is_drop() {
            self.counters.tx_cq_err.add(1);
        } else {
            self.counters.tx_cqe_unknown_type.add(1);
        }
    }
}

impl TxReap for Reap {
    #[inline]
    fn next(&mut self) -> Option<TxDone> {
        let cqe = self
            .completions
            .next::<Completion>(self.queue.completions())?;
        if !cqe.is_sq() || cqe.wq() != self.queue.id() || !cqe.data.is_ethernet() {
            // Of no packet of this queue.
            self.counters.tx_cqe_unknown_type.add(1);
            return Some(TxDone::Nothing);
        }
        if !cqe.data.is_okay() {
            self.note(cqe.data);
        }
        Some(TxDone::Packet)
    }

    fn settle(&mut self, arm: Arm) {
        self.completions.settle(arm);
    }

    fn take_lost(&mut self) -> bool {
        let lost = self.completions.take_overrun();
        if lost {
            self.counters.cq_overrun.add(1);
        }
        lost
    }
}
