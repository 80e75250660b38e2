// SPDX-License-Identifier: GPL-2.0

//! Queues and buffers of the hardware channel.

use core::sync::atomic::Ordering;

use kernel::{
    device,
    prelude::*,
    str::CString,
    sync::Arc, //
};
use netdev::{
    irq::{
        IrqLine,
        Registration, //
    },
    mmio::{
        Bar,
        Doorbell64, //
    }, //
};
use ring_common::slab::{
    Element,
    Slab, //
};
use ring_core::index::Producer;
use zerocopy::{
    FromBytes,
    Immutable,
    IntoBytes, //
};
use zerocopy_derive::{
    Immutable,
    IntoBytes, //
};

use super::{
    commands::Command,
    interrupt::HwcInterrupt,
    wire::{
        DeviceId,
        InitData,
        RequestHeader,
        ResponseHeader,
        RxOob,
        TxOob,
        HW_CHANNEL_MAX_MESSAGE_SIZE, //
    },
    Shared, //
};
use crate::{
    gdma::{
        cq::CompletionRing,
        eq,
        wq::WorkRing,
        wqe_units,
        Sge,
        WqeHeader,
        GDMA_CQE_SIZE,
        MANA_PAGE_SIZE, //
    },
    regs::{
        self,
        Layout,
        GDMA_WQE_BU_SIZE,
        INLINE_OOB_LARGE_SIZE,
        INLINE_OOB_SMALL_SIZE, //
    },
    shm::{
        self,
        Established, //
    }, //
};

/// MSI-X vector of the channel.
const MSIX: u16 = 0;

/// Bytes of a work queue of the channel: one page, as all of its queues have.
// CAST: 4096.
const WQ_BYTES: u32 = MANA_PAGE_SIZE as u32;
const WQ_UNITS: u32 = WQ_BYTES / GDMA_WQE_BU_SIZE;
// CAST: 64.
const CQ_ENTRIES: u32 = WQ_BYTES / GDMA_CQE_SIZE as u32;

/// Messages in the slab of the channel: the one to the device, and the one from it.
const REQUEST: u32 = 0;
const RESPONSE: u32 = 1;

/// What a command has for itself.
///
/// In drop order: the device gives the rings back, then nothing interrupts any
/// more, then the memory goes.
pub(super) struct Channel {
    pub(super) established: Option<Established>,
    _interrupt: Registration<HwcInterrupt>,
    sq: WorkQueue,
    rq: WorkQueue,
    messages: Slab,
    max_request: usize,
    mem_key: u32,
    cq_id: u32,
    activity: u32,
    pub(super) failed: bool,
}

/// A send or receive queue of the channel.
struct WorkQueue {
    ring: WorkRing,
    next: Producer,
    id: u32,
    doorbell: Option<Doorbell64>,
}

/// The whole entry of a send queue.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
struct SendWqe {
    header: WqeHeader,
    oob: TxOob,
    sge: Sge,
    padding: [u8; 16],
}
const _: () = assert!(
    size_of::<SendWqe>() == (wqe_units(INLINE_OOB_LARGE_SIZE, 1) * GDMA_WQE_BU_SIZE) as usize
);

/// The whole entry of a receive queue.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
struct ReceiveWqe {
    header: WqeHeader,
    oob: [u8; INLINE_OOB_SMALL_SIZE],
    sge: Sge,
}
const _: () = assert!(
    size_of::<ReceiveWqe>() == (wqe_units(INLINE_OOB_SMALL_SIZE, 1) * GDMA_WQE_BU_SIZE) as usize
);

impl WorkQueue {
    fn new(dev: &device::Device) -> Result<Self> {
        let ring = WorkRing::new(dev, WQ_UNITS)?;
        Ok(Self {
            next: Producer::new(ring.size(), 0),
            ring,
            id: 0,
            doorbell: None,
        })
    }

    /// Byte offset of the entry written last, of one basic unit.
    fn last_offset(&self) -> u32 {
        let last = self.next.next().count().wrapping_sub(1);
        last.wrapping_mul(GDMA_WQE_BU_SIZE) % WQ_BYTES
    }

    /// Writes one entry; all earlier ones were used up before.
    fn post<T: IntoBytes + Immutable>(&mut self, wqe: &T) {
        let done = self.next.next().count();
        // CAST: at most 64 bytes.
        let units = size_of::<T>() as u32 / GDMA_WQE_BU_SIZE;
        self.ring.write(self.next.next().slot(), wqe);
        if let Some(claim) = self.next.reserve(units, done) {
            claim.commit();
        }
        if let Some(doorbell) = &self.doorbell {
            doorbell.write(regs::wq_doorbell(self.id, self.next.next().count()));
        }
    }
}

impl Channel {
    /// Makes all memory of the channel and requests its interrupt. Also returns
    /// what the window of the SMC must hold.
    pub(super) fn new(
        dev: &device::Device,
        bar: &Arc<Bar>,
        layout: &Layout,
        line: IrqLine,
        shared: &Arc<Shared>,
    ) -> Result<(shm::Window, Self)> {
        let events = eq::ring(dev, MANA_PAGE_SIZE)?;
        let completions = CompletionRing::new(dev, CQ_ENTRIES)?;
        let rq = WorkQueue::new(dev)?;
        let sq = WorkQueue::new(dev)?;
        let rings = [
            events.addr(),
            completions.addr(),
            rq.ring.addr(),
            sq.ring.addr(),
        ];
        let window = shm::window(rings, MSIX)?;
        let interrupt = HwcInterrupt::new(
            dev.into(),
            shared.clone(),
            bar.clone(),
            *layout,
            events,
            completions,
        )?;
        let name = CString::try_from_fmt(fmt!("mana_hwc@pci:{}", dev.name()))?;
        let channel = Self {
            established: None,
            _interrupt: Registration::new(line, name, interrupt)?,
            sq,
            rq,
            messages: Slab::new(dev, HW_CHANNEL_MAX_MESSAGE_SIZE, 2, MANA_PAGE_SIZE)?,
            max_request: 0,
            mem_key: 0,
            cq_id: 0,
            activity: 0,
            failed: false,
        };
        Ok((window, channel))
    }

    /// Takes over the ids that the device has told, and offers the buffer for the
    /// first response.
    pub(super) fn start(&mut self, bar: &Arc<Bar>, layout: &Layout, shared: &Shared) -> Result {
        let page = shared.doorbell_page.load(Ordering::Relaxed);
        let page = layout.doorbell_page(page).ok_or(EPROTO)?;
        self.cq_id = shared.init(InitData::CqId);
        if self.cq_id >= shared.init(InitData::MaxNumCqs) {
            return Err(EPROTO);
        }
        self.sq.id = shared.init(InitData::SqId);
        self.sq.doorbell = Some(Doorbell64::new(bar, page + regs::DOORBELL_OFFSET_SQ)?);
        self.rq.id = shared.init(InitData::RqId);
        self.rq.doorbell = Some(Doorbell64::new(bar, page + regs::DOORBELL_OFFSET_RQ)?);
        self.mem_key = shared.init(InitData::GpaMkey);
        // CAST: `usize` has 64 bits.
        self.max_request =
            (shared.init(InitData::MaxRequest) as usize).min(HW_CHANNEL_MAX_MESSAGE_SIZE);
        self.post_receive()
    }

    /// Writes the request, whose header it returns.
    pub(super) fn write_request<C: Command, T: IntoBytes + Immutable>(
        &mut self,
        id: DeviceId,
        command: &C,
        list: impl ExactSizeIterator<Item = T>,
    ) -> Result<RequestHeader> {
        let body = size_of::<RequestHeader>();
        let tail = body + size_of::<C>();
        let len = list.len().checked_mul(size_of::<T>()).ok_or(EMSGSIZE)?;
        let len = len.checked_add(tail).ok_or(EMSGSIZE)?;
        if len > self.max_request {
            return Err(EMSGSIZE);
        }
        self.activity = self.activity.wrapping_add(1);
        let response = size_of::<ResponseHeader>() + size_of::<C::Response>();
        let header = RequestHeader::new(
            C::OPCODE,
            (C::VERSION, u32::try_from(len)?),
            (C::RESPONSE_VERSION, u32::try_from(response)?),
            id,
            self.activity,
        );
        let request = self.message(REQUEST)?;
        request.write(0, &header);
        request.write(body, command);
        for (i, item) in list.enumerate() {
            request.write(tail + i * size_of::<T>(), &item);
        }
        // What is left of the last response must not pass for this one.
        self.message(RESPONSE)?
            .write(0, &[0u8; size_of::<ResponseHeader>()]);
        Ok(header)
    }

    /// Hands the request to the device.
    pub(super) fn post_request(&mut self, len: u32) -> Result {
        let request = self.message(REQUEST)?.addr().ok_or(EINVAL)?;
        let wqe = SendWqe {
            header: WqeHeader::new(INLINE_OOB_LARGE_SIZE, 1),
            oob: TxOob::new(self.sq.id, self.cq_id),
            sge: Sge::new(request, self.mem_key, len),
            padding: [0; 16],
        };
        self.sq.post(&wqe);
        Ok(())
    }

    /// Offers the buffer for the next response.
    pub(super) fn post_receive(&mut self) -> Result {
        let response = self.message(RESPONSE)?;
        let wqe = ReceiveWqe {
            header: WqeHeader::new(INLINE_OOB_SMALL_SIZE, 1),
            oob: [0; INLINE_OOB_SMALL_SIZE],
            // CAST: 4096.
            sge: Sge::new(
                response.addr().ok_or(EINVAL)?,
                self.mem_key,
                response.size() as u32,
            ),
        };
        self.rq.post(&wqe);
        Ok(())
    }

    /// The buffer [`REQUEST`] or [`RESPONSE`].
    fn message(&self, index: u32) -> Result<Element<'_>> {
        self.messages.element(index).ok_or(EINVAL)
    }

    /// Copies the response out of its buffer, and checks that it is the one to
    /// `request`. There is a body only if the device has not refused.
    pub(super) fn read_response<R: FromBytes>(
        &self,
        request: &RequestHeader,
        answer: RxOob,
    ) -> Result<(ResponseHeader, Option<R>)> {
        // The one entry of the receive queue that was not used before.
        let offset = self.rq.last_offset();
        // CAST: `usize` has 64 bits.
        let len = answer.len as usize;
        let body = size_of::<ResponseHeader>();
        let response = self.message(RESPONSE)?;
        if answer.wqe_offset % WQ_BYTES != offset || len < body || len > response.size() {
            return Err(EBADMSG);
        }
        let header: ResponseHeader = response.read(0).ok_or(EBADMSG)?;
        if !header.answers(request) {
            return Err(EBADMSG);
        }
        let whole = body + size_of::<R>();
        let body = (len >= whole).then(|| response.read(body)).flatten();
        Ok((header, body))
    }

    pub(super) fn is_gone(&self) -> bool {
        self.established
            .as_ref()
            .is_none_or(|established| established.smc().is_gone())
    }

    /// Gives the device up: it is not asked again, and has no access to memory
    /// any more.
    pub(super) fn fail(&mut self) {
        self.failed = true;
        if let Some(established) = &self.established {
            established.stop_dma();
        }
    }
}
