// SPDX-License-Identifier: GPL-2.0
//! BAR 0: the three registers of a VF, the shared memory aperture, the doorbell pages.
//!
//! Source: `mana_gd_init_vf_regs()` and `mana_gd_ring_doorbell()` of the C driver.

/// Size of BAR 0.
pub const BAR0_SIZE: u64 = 0x10000;
/// Register: offset of doorbell page 0, 64 bits.
pub const GDMA_REG_DB_PAGE_OFFSET: u64 = 0x8;
/// Register: size of a doorbell page, 32 bits, the lower 16 count.
pub const GDMA_REG_DB_PAGE_SIZE: u64 = 0x10;
/// Register: offset of the shared memory aperture, 64 bits.
pub const GDMA_REG_SHM_OFFSET: u64 = 0x18;

/// Where this model has its shared memory aperture.
pub const SHM_OFFSET: u64 = 0x400;
/// Size of the aperture: 256 bits.
pub const SHM_SIZE: u64 = 32;
/// Where this model has its doorbell pages.
pub const DB_PAGE_OFFSET: u64 = 0x2000;
/// Size of a doorbell page.
pub const DB_PAGE_SIZE: u64 = 0x1000;
/// Number of doorbell pages.
pub const DB_PAGES: u64 = (BAR0_SIZE - DB_PAGE_OFFSET) / DB_PAGE_SIZE;

/// What lies at an offset of BAR 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// One of the registers.
    Register(u64),
    /// Byte of the shared memory aperture.
    Shm(u64),
    /// Byte of a doorbell page.
    Doorbell {
        /// Number of the page.
        page: u32,
        /// Offset in the page.
        offset: u64,
    },
}

/// Finds what lies at `offset` of BAR 0.
pub fn place(offset: u64) -> Place {
    if offset >= DB_PAGE_OFFSET {
        let from_first = offset - DB_PAGE_OFFSET;
        return Place::Doorbell {
            page: (from_first / DB_PAGE_SIZE) as u32,
            offset: from_first % DB_PAGE_SIZE,
        };
    }
    match offset.checked_sub(SHM_OFFSET) {
        Some(byte) if byte < SHM_SIZE => Place::Shm(byte),
        _ => Place::Register(offset),
    }
}

/// Value of the register at `offset`, and the access size that it has; `None` if there is no register.
pub fn register(offset: u64) -> Option<(u64, usize)> {
    match offset {
        GDMA_REG_DB_PAGE_OFFSET => Some((DB_PAGE_OFFSET, 8)),
        GDMA_REG_DB_PAGE_SIZE => Some((DB_PAGE_SIZE, 4)),
        GDMA_REG_SHM_OFFSET => Some((SHM_OFFSET, 8)),
        _ => None,
    }
}

/// A doorbell write, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doorbell {
    /// WQEs up to this byte position were posted.
    Sq {
        /// Queue id.
        id: u32,
        /// Position in bytes, free running.
        tail: u32,
        /// Bits that must be zero.
        reserved: u32,
    },
    /// Receive WQEs up to this byte position were posted.
    Rq {
        /// Queue id.
        id: u32,
        /// Position in bytes, free running.
        tail: u32,
        /// Must be zero, says the hardware specification.
        wqe_cnt: u32,
    },
    /// CQEs before this one were consumed.
    Cq {
        /// Queue id.
        id: u32,
        /// Index, modulo 8 times the entries.
        tail: u32,
        /// Post an event for the next CQE.
        arm: bool,
        /// Bits that must be zero.
        reserved: u32,
    },
    /// EQEs before this one were consumed.
    Eq {
        /// Queue id.
        id: u32,
        /// Index, modulo 8 times the entries.
        tail: u32,
        /// Interrupt at the next EQE.
        arm: bool,
        /// Bits that must be zero.
        reserved: u32,
    },
    /// New moderation of a CQ.
    Dim {
        /// Queue id.
        id: u32,
        /// Delay of the event, us, if given.
        usec: Option<u32>,
        /// Completions before the event, if given.
        comps: Option<u32>,
        /// Bits that must be zero.
        reserved: u32,
    },
}

/// Offsets in a doorbell page.
pub mod doorbell_offset {
    /// Send queues.
    pub const SQ: u64 = 0x0;
    /// Receive queues.
    pub const RQ: u64 = 0x400;
    /// Completion queues.
    pub const CQ: u64 = 0x800;
    /// Interrupt moderation.
    pub const DIM: u64 = 0x820;
    /// Event queues.
    pub const EQ: u64 = 0xff8;
}

impl Doorbell {
    /// Decodes the 64-bit `value` written at `offset` of a doorbell page; `None` if no doorbell is there.
    pub fn decode(offset: u64, value: u64) -> Option<Self> {
        let low = value as u32;
        let high = (value >> 32) as u32;
        let id = low & 0xff_ffff;
        let reserved = low >> 24;
        Some(match offset {
            doorbell_offset::SQ => Self::Sq {
                id,
                tail: high,
                reserved,
            },
            doorbell_offset::RQ => Self::Rq {
                id,
                tail: high,
                wqe_cnt: reserved,
            },
            doorbell_offset::CQ => Self::Cq {
                id,
                tail: high & 0x7fff_ffff,
                arm: high >> 31 != 0,
                reserved,
            },
            doorbell_offset::EQ => Self::Eq {
                id: low & 0xffff,
                tail: high & 0x7fff_ffff,
                arm: high >> 31 != 0,
                reserved: low >> 16,
            },
            doorbell_offset::DIM => Self::Dim {
                id,
                usec: (high & (1 << 15) != 0).then_some(high & 0x3ff),
                comps: (high >> 31 != 0).then_some((high >> 16) & 0xff),
                reserved: reserved | high & 0x7f00_7c00,
            },
            _ => return None,
        })
    }
}
