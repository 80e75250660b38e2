// SPDX-License-Identifier: GPL-2.0

//! Memory that the device knows by a handle.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use netdev::dma::{
    CoherentMem,
    LeAddr, //
};

use super::MANA_PAGE_SIZE;
use crate::{
    adapter::Adapter,
    hwc::commands::{
        CreateDmaRegion,
        DestroyDmaRegion,
        QueueMemory, //
    }, //
};

/// A DMA region on the device, until a queue takes it over or it is dropped.
///
/// It borrows the memory: the device knows no region whose memory is gone.
pub(crate) struct DmaRegion<'a> {
    adapter: &'a Arc<Adapter>,
    handle: u64,
    size: u32,
}

impl<'a> DmaRegion<'a> {
    /// Tells the device of `mem`. Process context, sleeps.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the length is no multiple of the device's page.
    /// - `EPROTO` if the device gives no valid handle.
    /// - What the channel returns.
    pub(crate) fn new(adapter: &'a Arc<Adapter>, mem: &'a CoherentMem) -> Result<Self> {
        if mem.len() % MANA_PAGE_SIZE != 0 {
            return Err(EINVAL);
        }
        let size = u32::try_from(mem.len())?;
        let pages = u32::try_from(mem.len() / MANA_PAGE_SIZE)?;
        let command = CreateDmaRegion::new(size.into(), pages);
        let list = mem.pages().map(LeAddr::from);
        let answer = adapter.call_with_list(&command, list);
        // It may have the region, and nobody can name it.
        let answer = answer.inspect_err(|e| {
            if *e == EBADMSG {
                adapter.give_up();
            }
        })?;
        let handle = answer.dma_region_handle;
        if handle == Self::GDMA_INVALID_DMA_REGION {
            adapter.complain(format_args!(
                "the device created a DMA region without a handle"
            ));
            adapter.give_up();
            return Err(EPROTO);
        }
        Ok(Self {
            adapter,
            handle,
            size,
        })
    }

    const GDMA_INVALID_DMA_REGION: u64 = 0;

    /// How commands name it.
    pub(crate) fn memory(&self) -> QueueMemory {
        QueueMemory {
            region: self.handle,
            size: self.size,
        }
    }

    /// The device has made it part of a queue, and destroys it with that.
    pub(crate) fn taken_over(self) {
        core::mem::forget(self);
    }
}

impl Drop for DmaRegion<'_> {
    fn drop(&mut self) {
        // Where the device has made a queue of it and has not said so, it refuses.
        self.adapter.take_back(&DestroyDmaRegion {
            dma_region_handle: self.handle,
        });
    }
}
