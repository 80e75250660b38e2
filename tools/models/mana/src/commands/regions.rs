// SPDX-License-Identifier: GPL-2.0
//! Commands that describe memory to the device.

use nic::{Bus, Report};

use super::{refuse, Outcome, Refused, Reply, Request};
use crate::{
    abi::MANA_PAGE_SIZE,
    messages::{AddPagesReq, CreateRegionReq, CreateRegionResp, DestroyRegionReq, REQ_HDR},
    ring::{Region, Ring},
    rules,
    session::Session,
};

/// `GDMA_STATUS_MORE_ENTRIES`: done, and more pages are expected.
const GDMA_STATUS_MORE_ENTRIES: u32 = 0x105;

/// The page list that follows a body of `body_size` bytes; it must be exactly the rest of the message.
fn page_list(
    request: &Request<'_>,
    report: &Report,
    body_size: usize,
    count: u32,
) -> Result<Vec<u64>, Refused> {
    let list = &request.message[REQ_HDR + body_size..];
    if list.len() != count as usize * 8 {
        return Err(refuse(
            report,
            &rules::REGION_LAYOUT,
            format_args!("{count} pages in {} bytes", list.len()),
        ));
    }
    let pages: Vec<u64> = list
        .chunks_exact(8)
        .map(|page| {
            page.iter()
                .rev()
                .fold(0, |address, byte| (address << 8) | u64::from(*byte))
        })
        .collect();
    if let Some(page) = pages.iter().find(|page| **page % MANA_PAGE_SIZE != 0) {
        return Err(refuse(
            report,
            &rules::REGION_LAYOUT,
            format_args!("page at {page:#x}"),
        ));
    }
    Ok(pages)
}

impl Session {
    pub(super) fn create_region(&mut self, bus: &Bus, request: &Request<'_>) -> Outcome {
        let report = &bus.report;
        let body: CreateRegionReq = request.body(report)?;
        let (length, offset, count) = (
            body.length.get(),
            body.offset_in_page.get(),
            body.page_count.get(),
        );
        let span = length.saturating_add(offset.into());
        let is_possible = length > 0
            && u64::from(offset) < MANA_PAGE_SIZE
            && body.gdma_page_type.get() == 0
            && span.div_ceil(MANA_PAGE_SIZE) == u64::from(count)
            && body.page_addr_list_len.get() <= count;
        if !is_possible {
            return Err(refuse(
                report,
                &rules::REGION_LAYOUT,
                format_args!("{body:?}"),
            ));
        }
        let pages = page_list(
            request,
            report,
            size_of::<CreateRegionReq>(),
            body.page_addr_list_len.get(),
        )?;
        let region = Region {
            pages,
            page_count: count as usize,
            length,
        };
        let is_complete = region.is_complete();
        let handle = self.regions.add(region);
        let mut reply = Reply::new(&CreateRegionResp {
            dma_region_handle: handle.into(),
        });
        if !is_complete {
            reply.status = GDMA_STATUS_MORE_ENTRIES;
        }
        Ok(reply)
    }

    pub(super) fn add_pages(&mut self, bus: &Bus, request: &Request<'_>) -> Outcome {
        let report = &bus.report;
        let body: AddPagesReq = request.body(report)?;
        let pages = page_list(
            request,
            report,
            size_of::<AddPagesReq>(),
            body.page_addr_list_len.get(),
        )?;
        let handle = body.dma_region_handle.get();
        let Some(region) = self.regions.get(handle) else {
            return Err(self.bad_region(report, handle));
        };
        if region.pages.len() + pages.len() > region.page_count {
            return Err(refuse(
                report,
                &rules::REGION_LAYOUT,
                format_args!("more than {} pages", region.page_count),
            ));
        }
        region.pages.extend(pages);
        Ok(if region.is_complete() {
            Reply::done()
        } else {
            Reply::refused(GDMA_STATUS_MORE_ENTRIES)
        })
    }

    pub(super) fn destroy_region(&mut self, bus: &Bus, request: &Request<'_>) -> Outcome {
        let body: DestroyRegionReq = request.body(&bus.report)?;
        let handle = body.dma_region_handle.get();
        match self.regions.remove(handle) {
            Some(_) => Ok(Reply::done()),
            None => Err(self.bad_region(&bus.report, handle)),
        }
    }

    /// Refuses a handle that is in use by a queue, or unknown.
    fn bad_region(&self, report: &Report, handle: u64) -> Refused {
        let rule = if self.regions.is_taken(handle) {
            &rules::REGION_IN_USE
        } else {
            &rules::REGION_HANDLE
        };
        refuse(report, rule, format_args!("region {handle:#x}"))
    }

    /// Checks that a region can become a ring of `size` bytes.
    pub(super) fn check_ring(
        &mut self,
        report: &Report,
        handle: u64,
        size: u32,
    ) -> Result<(), Refused> {
        if !size.is_power_of_two() || u64::from(size) < MANA_PAGE_SIZE {
            return Err(refuse(
                report,
                &rules::QUEUE_SIZE,
                format_args!("{size} bytes"),
            ));
        }
        let Some(region) = self.regions.get(handle) else {
            return Err(self.bad_region(report, handle));
        };
        if region.length != u64::from(size)
            || region.pages.len() as u64 * MANA_PAGE_SIZE != u64::from(size)
        {
            return Err(refuse(
                report,
                &rules::REGION_SIZE,
                format_args!(
                    "{size} bytes of a region of {} with {} pages",
                    region.length,
                    region.pages.len()
                ),
            ));
        }
        Ok(())
    }

    /// Gives a checked region to a queue.
    pub(super) fn take_ring(&mut self, report: &Report, handle: u64) -> Result<Ring, Refused> {
        let ring = self.regions.take(handle);
        ring.ok_or_else(|| self.bad_region(report, handle))
    }
}
