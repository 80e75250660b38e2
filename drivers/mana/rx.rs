// SPDX-License-Identifier: GPL-2.0

//! Receive queues: the completion format, and what `ring_common` drives.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use netdev::{
    dma::DmaAddr,
    mmio::Doorbell64,
    napi::Arm,
    skb::{
        HashKind,
        RxCsum,
        RxInfo, //
    }, //
};
use ring_common::nic::{
    RxDone,
    RxRing, //
};
use ring_core::index::Cursor;
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
        CQE_DATA_WORDS,
        INLINE_OOB_SMALL_SIZE, //
    },
    port::Fence,
    regs,
    stats::PortCounters, //
};

/// An entry of a receive queue; the device has no use for the inline part.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
struct Wqe {
    header: WqeHeader,
    oob: [u8; INLINE_OOB_SMALL_SIZE],
    sge: Sge,
}
const _: () = assert!(wqe_units(INLINE_OOB_SMALL_SIZE, 1) == 1 && size_of::<Wqe>() == 32);

/// Types of receive completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CqeType {
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

/// A receive completion (`struct mana_rxcomp_oob`).
#[derive(Clone, Copy)]
struct Completion {
    words: [u32; CQE_DATA_WORDS],
}

impl Completion {
    const CQE_TYPE: Field = Field::bits(5, 0);

    const VLAN_ID: Field = Field::bits(11, 0);
    const VLANTAG_PRESENT: Field = Field::bit(12);
    const HASHTYPE: Field = Field::bits(24, 16);
    const IPHDR_CSUM_SUCCEED: Field = Field::bit(25);
    const TCP_CSUM_SUCCEED: Field = Field::bit(27);
    const UDP_CSUM_SUCCEED: Field = Field::bit(29);

    /// `MANA_HASH_L4`: TCP and UDP over IPv4, IPv6 and IPv6 with extensions.
    const HASH_L4: u32 = 0x1b6;

    /// First of the four entries with packets.
    const PPI: usize = 2;
    /// Words of an entry.
    const PPI_WORDS: usize = 3;

    fn kind(&self) -> CqeType {
        let [header, ..] = self.words;
        match Self::CQE_TYPE.get(header) {
            1 => CqeType::Okay,
            2 => CqeType::Coalesced4,
            3 => CqeType::Fence,
            4 => CqeType::Truncated,
            7 => CqeType::Coalesced8,
            _ => CqeType::Unknown,
        }
    }

    /// Length and hash of packet `i`, or `None` if there are fewer.
    fn packet(&self, i: u8) -> Option<(u32, u32)> {
        let (entry, second) = match self.kind() {
            CqeType::Okay if i == 0 => (0, None),
            CqeType::Coalesced4 => (i, None),
            CqeType::Coalesced8 => (i / 2, Some(i % 2 == 1)),
            _ => return None,
        };
        let start = Self::PPI + usize::from(entry) * Self::PPI_WORDS;
        // The word behind the four entries is another field.
        let entry = self.words.get(..Self::PPI + 4 * Self::PPI_WORDS)?;
        let &[a, b, c] = entry.get(start..start + Self::PPI_WORDS)? else {
            return None;
        };
        const LOW: Field = Field::bits(15, 0);
        const HIGH: Field = Field::bits(31, 16);
        let (len, hash) = match second {
            None => (LOW.get(a), c),
            Some(false) => (LOW.get(b), a),
            Some(true) => (HIGH.get(b), c),
        };
        (len != 0).then_some((len, hash))
    }

    /// What holds for all packets of the completion, with the `hash` of one.
    fn info(&self, hash: u32) -> RxInfo {
        let [_, flags, ..] = self.words;
        let l4 = Self::TCP_CSUM_SUCCEED.is_set(flags) || Self::UDP_CSUM_SUCCEED.is_set(flags);
        let hash_type = Self::HASHTYPE.get(flags);
        RxInfo {
            csum: if Self::IPHDR_CSUM_SUCCEED.is_set(flags) && l4 {
                RxCsum::Unnecessary
            } else {
                RxCsum::None
            },
            hash: match hash_type {
                0 => None,
                _ if hash_type & Self::HASH_L4 != 0 => Some((hash, HashKind::L4)),
                _ => Some((hash, HashKind::L3)),
            },
            // CAST: 12 bits. The device reports no priority.
            vlan: Self::VLANTAG_PRESENT
                .is_set(flags)
                .then_some(Self::VLAN_ID.get(flags) as u16),
        }
    }
}

/// A receive queue.
pub(crate) struct Rx {
    completions: CompletionReader,
    queue: Arc<WorkQueue>,
    doorbell: Doorbell64,
    mem_key: u32,
    /// A completion with packets left from this one on.
    rest: Option<(Completion, u8)>,
    fence: Arc<Fence>,
    counters: Arc<PortCounters>,
}

impl Rx {
    /// The driver's side of `queue`.
    pub(crate) fn new(
        queue: Arc<WorkQueue>,
        mem_key: u32,
        fence: Arc<Fence>,
        counters: Arc<PortCounters>,
    ) -> Result<Self> {
        let mut completions = queue.reader()?;
        completions.settle(Arm::Yes);
        Ok(Self {
            completions,
            doorbell: queue.doorbell()?,
            queue,
            mem_key,
            rest: None,
            fence,
            counters,
        })
    }

    /// The next packet of the completion that is being taken apart.
    fn next_packet(&mut self) -> Option<RxDone> {
        let (completion, i) = self.rest.take()?;
        let (len, hash) = completion.packet(i)?;
        self.rest = Some((completion, i.wrapping_add(1)));
        Some(RxDone::Packet {
            len,
            info: completion.info(hash),
        })
    }

    /// Looks at a new completion; `Some` if it stands for a lost packet.
    fn begin(&mut self, cqe: &Cqe) -> Option<RxDone> {
        if cqe.is_sq() || cqe.wq() != self.queue.id() {
            self.counters.rx_cqe_unknown_type.add(1);
            return None;
        }
        let completion = Completion { words: cqe.data };
        match completion.kind() {
            CqeType::Okay | CqeType::Coalesced4 | CqeType::Coalesced8 => {
                if completion.packet(0).is_none() {
                    self.counters.rx_pkt_len0_err.add(1);
                } else {
                    self.rest = Some((completion, 0));
                }
                None
            }
            CqeType::Truncated => Some(RxDone::Error),
            CqeType::Fence => {
                self.fence.reached();
                None
            }
            CqeType::Unknown => {
                self.counters.rx_cqe_unknown_type.add(1);
                None
            }
        }
    }
}

impl RxRing for Rx {
    fn post(&mut self, head: Cursor, addr: DmaAddr<'_>, len: u32) {
        let wqe = Wqe {
            header: WqeHeader::new(INLINE_OOB_SMALL_SIZE, 1),
            oob: [0; INLINE_OOB_SMALL_SIZE],
            sge: Sge::new(addr, self.mem_key, len),
        };
        self.queue.work().write(head.slot(), &wqe);
    }

    fn ring(&mut self, head: Cursor, _fresh: u32) {
        self.doorbell
            .write(regs::wq_doorbell(self.queue.id(), head.count()));
    }

    fn next(&mut self) -> Option<RxDone> {
        loop {
            if let Some(packet) = self.next_packet() {
                return Some(packet);
            }
            let Some(cqe) = self.completions.next(self.queue.completions()) else {
                if self.completions.take_overrun() {
                    self.counters.cq_overrun.add(1);
                }
                return None;
            };
            if let Some(lost) = self.begin(&cqe) {
                return Some(lost);
            }
        }
    }

    fn settle(&mut self, arm: Arm) {
        self.completions.settle(arm);
    }
}
