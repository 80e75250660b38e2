// SPDX-License-Identifier: GPL-2.0

//! How received packets are spread over the RX queues.

use kernel::prelude::*;
use netdev::device::fill_rss_key;

use crate::nic::{
    Rss,
    RSS_KEY_LEN, //
};

/// The RSS table and key of a port.
pub(crate) struct RssState {
    table: KVVec<u32>,
    key: [u8; RSS_KEY_LEN],
}

impl RssState {
    /// A table of `entries` entries and the key that all devices of this boot share.
    pub(crate) fn new(entries: u32) -> Result<Self> {
        let mut key = [0; RSS_KEY_LEN];
        fill_rss_key(&mut key);
        // CAST: `usize` has 64 bits on every target.
        let table = KVVec::from_elem(0, entries as usize, GFP_KERNEL)?;
        Ok(Self { table, key })
    }

    /// Spreads evenly over `queues` queues.
    pub(crate) fn spread(&mut self, queues: u32) {
        for (entry, queue) in self.table.iter_mut().zip((0..queues).cycle()) {
            *entry = queue;
        }
    }

    /// Copies table and key to where they are asked for.
    pub(crate) fn read(&self, table: Option<&mut [u32]>, key: Option<&mut [u8]>) {
        for (to, from) in table.into_iter().flatten().zip(&self.table) {
            *to = *from;
        }
        for (to, from) in key.into_iter().flatten().zip(&self.key) {
            *to = *from;
        }
    }

    /// The same with another table or key.
    ///
    /// # Errors
    ///
    /// `EINVAL` for sizes other than those of the port, or an entry that is not below `queues`.
    pub(crate) fn changed(
        &self,
        table: Option<&[u32]>,
        key: Option<&[u8]>,
        queues: u32,
    ) -> Result<Self> {
        let table = table.unwrap_or(&self.table);
        if table.len() != self.table.len() || table.iter().any(|&queue| queue >= queues) {
            return Err(EINVAL);
        }
        let key = match key {
            Some(key) => key.try_into().or(Err(EINVAL))?,
            None => self.key,
        };
        let mut copy = KVVec::with_capacity(table.len(), GFP_KERNEL)?;
        copy.extend_from_slice(table, GFP_KERNEL)?;
        Ok(Self { table: copy, key })
    }

    /// What the device is programmed with.
    pub(crate) fn get(&self) -> Rss<'_> {
        Rss {
            table: &self.table,
            key: &self.key,
        }
    }
}
