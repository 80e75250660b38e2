// SPDX-License-Identifier: GPL-2.0

//! Receive queues, as `ring_common` drives them.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use netdev::{
    dma::{
        DmaAddr,
        Part, //
    },
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
    gdma::{
        cq::CompletionReader,
        wq::WorkQueue,
        wqe_units,
        Cqe,
        Sge,
        WqeHeader,
        GDMA_CQE_SIZE, //
    },
    port::Fence,
    regs::{
        self,
        CQE_DATA_WORDS,
        INLINE_OOB_SMALL_SIZE, //
    },
    stats::PortCounters, //
};

mod completion;

use completion::{
    Completion,
    CqeType,
    Hashed,
    Packet,
    FIRST_WORDS, //
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

impl<const WORDS: usize> Completion<WORDS> {
    /// One of its packets, with what holds for all of them.
    #[inline]
    fn done(&self, Packet { len, hash }: Packet) -> RxDone {
        let info = RxInfo {
            csum: if self.l4_csum_succeed() {
                RxCsum::Unnecessary
            } else {
                RxCsum::None
            },
            hash: self.hash_kind().map(|kind| match kind {
                Hashed::L3 => (hash, HashKind::L3),
                Hashed::L4 => (hash, HashKind::L4),
            }),
            vlan: self.vlan(),
        };
        RxDone::Packet { len, info }
    }
}

/// A receive queue.
pub(crate) struct Rx {
    completions: CompletionReader,
    queue: Arc<WorkQueue>,
    doorbell: Doorbell64,
    mem_key: u32,
    /// The last completion that stands for several packets.
    several: Completion<CQE_DATA_WORDS>,
    /// Which of them is next; `None` when there are no more.
    next: Option<u8>,
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
            several: Completion::new([0; CQE_DATA_WORDS]),
            next: None,
            fence,
            counters,
        })
    }

    /// A completion of an unknown type, or of another queue.
    #[cold]
    fn unknown(&mut self) -> RxDone {
        self.counters.rx_cqe_unknown_type.add(1);
        RxDone::Nothing
    }

    /// A completion of packets that has none.
    #[cold]
    fn empty(&mut self) -> RxDone {
        self.counters.rx_pkt_len0_err.add(1);
        RxDone::Nothing
    }

    /// The next packet of a completion that stands for several.
    #[cold]
    fn next_packet(&mut self) -> Option<RxDone> {
        let i = self.next.take()?;
        let packet = self.several.packet(i)?;
        self.next = Some(i.wrapping_add(1));
        Some(self.several.done(packet))
    }

    /// Looks at a new completion and returns its first packet, or what else it stands for.
    #[inline(always)]
    fn begin(&mut self, cqe: &Cqe<Completion<FIRST_WORDS>>) -> RxDone {
        if cqe.is_sq() || cqe.wq() != self.queue.id() {
            return self.unknown();
        }
        let completion = &cqe.data;
        match completion.kind() {
            CqeType::Okay => match completion.packet(0) {
                Some(packet) => completion.done(packet),
                None => self.empty(),
            },
            CqeType::Coalesced4 | CqeType::Coalesced8 => {
                self.next = Some(0);
                self.next_packet().unwrap_or_else(|| self.empty())
            }
            CqeType::Truncated => RxDone::Error,
            CqeType::Fence => {
                self.fence.reached();
                RxDone::Nothing
            }
            CqeType::Unknown => self.unknown(),
        }
    }
}

/// Copies all of a completion. Few have more than one packet.
#[cold]
#[inline(never)]
fn read_all(all: &mut Completion<CQE_DATA_WORDS>, entry: &Part<'_, GDMA_CQE_SIZE>) {
    *all = Completion::new(entry.read::<[u32; CQE_DATA_WORDS], 0>());
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

    #[inline(always)]
    fn next(&mut self) -> Option<RxDone> {
        if self.next.is_some() {
            if let Some(packet) = self.next_packet() {
                return Some(packet);
            }
        }
        let Self {
            completions,
            queue,
            several,
            ..
        } = self;
        let cqe = completions.next_with(queue.completions(), |entry| {
            let first = Completion::new(entry.read::<[u32; FIRST_WORDS], 0>());
            if first.is_coalesced() {
                read_all(several, entry);
            }
            first
        })?;
        Some(self.begin(&cqe))
    }

    fn settle(&mut self, arm: Arm) {
        self.completions.settle(arm);
    }

    fn take_lost(&mut self) -> bool {
        let lost = self.completions.take_overrun();
        if lost {
            self.counters.cq_overrun.add(1);
            self.fence.lose();
        }
        lost
    }
}
