// SPDX-License-Identifier: GPL-2.0

//! Registers of BAR 0 of the virtual function, and the doorbell page.
//!
//! # Definitions
//!
//! - **SMC**: shared memory channel, the 256-bit window that boots the HWC.
//! - **Doorbell page**: one page of 64-bit doorbells per protection domain.
//! - **Basic unit**: 32 bytes, the unit of work queue entries.
//!
//! Names and layout are those of `include/net/mana/gdma.h`.

use crate::bits::Field;

/// Byte offset of the first doorbell page in BAR 0, 64 bits.
pub(crate) const GDMA_REG_DB_PAGE_OFFSET: usize = 0x08;
/// Size of a doorbell page in bytes, in the lower 16 of 32 bits.
pub(crate) const GDMA_REG_DB_PAGE_SIZE: usize = 0x10;
/// Byte offset of the SMC window in BAR 0, 64 bits.
pub(crate) const GDMA_REG_SHM_OFFSET: usize = 0x18;

const DB_PAGE_SIZE: Field = Field::bits(15, 0);

/// Bytes of the SMC window.
pub(crate) const SMC_APERTURE_SIZE: usize = 32;

/// Basic unit of work queues, bytes.
pub(crate) const GDMA_WQE_BU_SIZE: u32 = 32;

/// Sizes of the inline part of a work queue entry that belongs to the client.
pub(crate) const INLINE_OOB_SMALL_SIZE: usize = 8;
/// See [`INLINE_OOB_SMALL_SIZE`].
pub(crate) const INLINE_OOB_LARGE_SIZE: usize = 24;

/// Words of a completion queue entry that belong to the client.
pub(crate) const CQE_DATA_WORDS: usize = 15;

/// Offsets in a doorbell page.
pub(crate) const DOORBELL_OFFSET_SQ: usize = 0x0;
/// Receive queues.
pub(crate) const DOORBELL_OFFSET_RQ: usize = 0x400;
/// Completion queues.
pub(crate) const DOORBELL_OFFSET_CQ: usize = 0x800;
/// Event queues; the last doorbell of a page.
pub(crate) const DOORBELL_OFFSET_EQ: usize = 0xff8;

/// Bytes of a doorbell page that hold doorbells.
const DOORBELL_PAGE_MIN: usize = DOORBELL_OFFSET_EQ + 8;

/// Queue ids have 24 bits in every format but that of event queues.
pub(crate) const QUEUE_ID: Field = Field::bits(23, 0);
/// Ids of event queues have 16 bits.
pub(crate) const EQ_ID: Field = Field::bits(15, 0);

const TAIL_PTR: Field = Field::bits(30, 0);
const ARM: Field = Field::bit(31);

/// Doorbell of a send or receive queue: `head` in basic units, free-running.
///
/// The hardware specification wants `wqe_cnt` (bits 31:24) to be 0 for receive
/// queues; send queues have no such field.
pub(crate) const fn wq_doorbell(id: u32, head: u32) -> u64 {
    word(QUEUE_ID.of(id), head.wrapping_mul(GDMA_WQE_BU_SIZE))
}

/// Doorbell of a completion queue: entries consumed, modulo 8 laps.
pub(crate) const fn cq_doorbell(id: u32, head: u32, arm: bool) -> u64 {
    word(QUEUE_ID.of(id), TAIL_PTR.of(head) | ARM.flag(arm))
}

/// Doorbell of an event queue, which is always armed: entries consumed, modulo
/// 8 laps.
pub(crate) const fn eq_doorbell(id: u32, head: u32) -> u64 {
    word(EQ_ID.of(id), TAIL_PTR.of(head) | ARM.flag(true))
}

const fn word(low: u32, high: u32) -> u64 {
    // CAST: lossless, `From` is not const.
    (high as u64) << 32 | low as u64
}

/// Where things are in BAR 0.
///
/// # Invariants
///
/// The SMC window and the first doorbell page lie within the BAR and are
/// aligned to their access size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    bar_len: usize,
    shm: usize,
    doorbells: usize,
    page_size: usize,
}

impl Layout {
    /// Checks the contents of the three registers; `None` if they point outside
    /// of a BAR of `bar_len` bytes or no doorbell page fits.
    pub(crate) fn new(
        db_page_offset: u64,
        db_page_size: u32,
        shm_offset: u64,
        bar_len: usize,
    ) -> Option<Self> {
        let doorbells = usize::try_from(db_page_offset).ok()?;
        let page_size = usize::try_from(DB_PAGE_SIZE.get(db_page_size)).ok()?;
        let shm = usize::try_from(shm_offset).ok()?;
        let shm_end = shm.checked_add(SMC_APERTURE_SIZE)?;
        if page_size < DOORBELL_PAGE_MIN || page_size % 8 != 0 || doorbells % 8 != 0 {
            return None;
        }
        if shm_end > bar_len || shm % 4 != 0 {
            return None;
        }
        let layout = Self {
            bar_len,
            shm,
            doorbells,
            page_size,
        };
        // INVARIANT: the window is checked above, the page here.
        layout.doorbell_page(0).map(|_| layout)
    }

    /// Byte offset of the SMC window.
    pub(crate) fn shm(&self) -> usize {
        self.shm
    }

    /// Byte offset of the doorbell page `index`, or `None` if the BAR ends
    /// before it does.
    pub(crate) fn doorbell_page(&self, index: u32) -> Option<usize> {
        let index = usize::try_from(index).ok()?;
        let start = index
            .checked_mul(self.page_size)?
            .checked_add(self.doorbells)?;
        let end = start.checked_add(self.page_size)?;
        (end <= self.bar_len).then_some(start)
    }
}
