// SPDX-License-Identifier: GPL-2.0

//! Formats of the queues that all functions of the adapter share (GDMA): event
//! queue entries, completion queue entries and work queue entries.
//!
//! Layouts are those of `include/net/mana/gdma.h`. The device is little-endian,
//! as are all machines that it is built into.

use netdev::dma::{
    DmaAddr,
    LeAddr, //
};
use zerocopy_derive::{
    FromBytes,
    FromZeros,
    Immutable,
    IntoBytes,
    KnownLayout, //
};

use crate::{
    bits::Field,
    regs::{
        CQE_DATA_WORDS,
        GDMA_WQE_BU_SIZE, //
    }, //
};

pub(crate) mod cq;
pub(crate) mod eq;
mod laps;
pub(crate) mod region;
pub(crate) mod wq;

const _: () = assert!(cfg!(target_endian = "little"));

/// The device's page, the unit of the memory that it is given.
pub(crate) const MANA_PAGE_SIZE: usize = 4096;

/// Largest entry of a send queue, bytes.
pub(crate) const GDMA_MAX_SQE_SIZE: u32 = 512;

/// Kinds of queues in commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum QueueType {
    /// `GDMA_SQ`.
    Send = 1,
    /// `GDMA_RQ`.
    Receive = 2,
    /// `GDMA_EQ`.
    Event = 4,
}

/// `GDMA_CQE_OWNER_BITS` and `GDMA_EQE_OWNER_BITS`.
pub(crate) const OWNER_BITS: u32 = 3;

const OWNER: Field = Field::bits(31, 29);

/// Event queue entry.
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Eqe {
    details: [u32; 3],
    info: u32,
}
const _: () = assert!(size_of::<Eqe>() == 16);

impl Eqe {
    const TYPE: Field = Field::bits(7, 0);

    /// Lap of the queue in which the device wrote the entry.
    pub(crate) fn owner(info: u32) -> u32 {
        OWNER.get(info)
    }

    /// Type and first word of details.
    pub(crate) fn event(&self) -> Event {
        let [data, ..] = self.details;
        match Self::TYPE.get(self.info) {
            3 => Event::Completion {
                cq: crate::regs::QUEUE_ID.get(data),
            },
            64 => Event::Test,
            129 => Event::HwcInitEqIdDb {
                eq: INIT_EQ_ID.get(data),
                doorbell: INIT_DOORBELL.get(data),
            },
            130 => Event::HwcInitData {
                kind: DATA_TYPE.get(data),
                value: DATA_VALUE.get(data),
            },
            131 => Event::HwcInitDone,
            132 | 135 => Event::ResetRequest,
            133 => Event::HwcReconfig {
                kind: DATA_TYPE.get(data),
                value: DATA_VALUE.get(data),
            },
            kind => Event::Unknown(kind),
        }
    }
}

const INIT_EQ_ID: Field = Field::bits(15, 0);
const INIT_DOORBELL: Field = Field::bits(31, 16);
const DATA_VALUE: Field = Field::bits(23, 0);
const DATA_TYPE: Field = Field::bits(31, 24);

/// What an event queue entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// `GDMA_EQE_COMPLETION`: an armed completion queue has entries.
    Completion {
        /// Id of the completion queue.
        cq: u32,
    },
    /// `GDMA_EQE_TEST_EVENT`, the answer to `GDMA_GENERATE_TEST_EQE`.
    Test,
    /// `GDMA_EQE_HWC_INIT_EQ_ID_DB`.
    HwcInitEqIdDb {
        /// Id of the HWC's event queue.
        eq: u32,
        /// Doorbell page of the HWC's queues.
        doorbell: u32,
    },
    /// `GDMA_EQE_HWC_INIT_DATA`.
    HwcInitData {
        /// What the value means.
        kind: u32,
        /// 24 bits.
        value: u32,
    },
    /// `GDMA_EQE_HWC_INIT_DONE`.
    HwcInitDone,
    /// `GDMA_EQE_HWC_SOC_RECONFIG_DATA`.
    HwcReconfig {
        /// What the value means.
        kind: u32,
        /// 24 bits.
        value: u32,
    },
    /// `GDMA_EQE_HWC_FPGA_RECONFIG` or `GDMA_EQE_HWC_RESET_REQUEST`: the device
    /// is about to go away and come back.
    ResetRequest,
    /// Any other type.
    Unknown(u32),
}

/// Bytes of a completion queue entry.
pub(crate) const GDMA_CQE_SIZE: usize = 64;

/// Byte offset of the word of a completion queue entry that is not the client's.
pub(crate) const CQE_INFO: usize = CQE_DATA_WORDS * size_of::<u32>();
const _: () = assert!(CQE_INFO + size_of::<u32>() == GDMA_CQE_SIZE);

/// A completion queue entry: of the client's data, whose format is that of the
/// HWC or of Ethernet, the first part `T`.
pub(crate) struct Cqe<T> {
    /// The client's data.
    pub(crate) data: T,
    info: CqeInfo,
}

impl<T> Cqe<T> {
    const WQ_NUM: Field = Field::bits(23, 0);
    const IS_SQ: Field = Field::bit(24);

    /// Puts an entry together.
    pub(crate) fn new(data: T, info: CqeInfo) -> Self {
        Self { data, info }
    }

    /// Id of the work queue whose entry has completed.
    pub(crate) fn wq(&self) -> u32 {
        Self::WQ_NUM.get(self.info.0)
    }

    /// Whether that is a send queue.
    pub(crate) fn is_sq(&self) -> bool {
        Self::IS_SQ.is_set(self.info.0)
    }
}

/// The word at [`CQE_INFO`].
#[derive(Clone, Copy)]
pub(crate) struct CqeInfo(pub(crate) u32);

impl CqeInfo {
    /// Lap of the queue in which the device wrote the entry.
    pub(crate) fn owner(self) -> u32 {
        OWNER.get(self.0)
    }
}

/// First eight bytes of a work queue entry.
#[derive(Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct WqeHeader {
    words: [u32; 2],
}
const _: () = assert!(size_of::<WqeHeader>() == 8);

impl WqeHeader {
    const LAST_VBYTES: Field = Field::bits(31, 24);
    const NUM_SGE: Field = Field::bits(7, 0);
    const INLINE_OOB_SIZE_DIV4: Field = Field::bits(10, 8);
    const CLIENT_OOB_IN_SGL: Field = Field::bit(11);
    const CLIENT_DATA_UNIT: Field = Field::bits(29, 16);

    /// Largest header that [`WqeHeader::segment`] can name, bytes.
    pub(crate) const MAX_SEGMENT_HEADER: u32 = Self::LAST_VBYTES.max();
    /// Largest segment that [`WqeHeader::segment`] can name, bytes.
    pub(crate) const MAX_SEGMENT: u32 = Self::CLIENT_DATA_UNIT.max();

    /// An entry with `sges` elements after `oob` bytes that belong to the
    /// client.
    pub(crate) fn new(oob: usize, sges: u32) -> Self {
        // CAST: `oob` is one of the two inline sizes.
        let oob = (oob / 4) as u32;
        Self {
            words: [
                0,
                Self::NUM_SGE.of(sges) | Self::INLINE_OOB_SIZE_DIV4.of(oob),
            ],
        }
    }

    /// Asks to repeat the first element (`header` bytes) before every `unit`
    /// bytes of the others.
    pub(crate) fn segment(mut self, header: u32, unit: u32) -> Self {
        let [first, second] = &mut self.words;
        *first |= Self::LAST_VBYTES.of(header);
        *second |= Self::CLIENT_OOB_IN_SGL.flag(true) | Self::CLIENT_DATA_UNIT.of(unit);
        self
    }
}

/// Scatter/gather element of a work queue entry.
#[derive(Clone, Copy, FromZeros, Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct Sge {
    address: LeAddr,
    mem_key: u32,
    size: u32,
}
const _: () = assert!(size_of::<Sge>() == 16);

impl Sge {
    /// `size` bytes at `address`; `mem_key` is the key for guest physical
    /// addresses that the device gave to the queue's owner.
    pub(crate) fn new(address: DmaAddr<'_>, mem_key: u32, size: u32) -> Self {
        Self {
            address: address.into(),
            mem_key,
            size,
        }
    }
}

/// Size of a work queue entry in basic units.
pub(crate) const fn wqe_units(oob: usize, sges: u32) -> u32 {
    // CAST: at most 32 bytes.
    let fixed = (size_of::<WqeHeader>() + oob) as u32;
    // CAST: 16.
    let list = sges.wrapping_mul(size_of::<Sge>() as u32);
    fixed.wrapping_add(list).div_ceil(GDMA_WQE_BU_SIZE)
}
