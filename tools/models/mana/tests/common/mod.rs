// SPDX-License-Identifier: GPL-2.0
//! A raw driver: it writes registers, rings and messages as a test tells it, right or wrong.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::time::Instant;

use mana::{
    abi::{Cqe, Eqe, Sge, TxLongOob, TxShortOob, CQE_SIZE, EQE_SIZE},
    commands::mac_address,
    limits::KNOBS,
    messages::*,
    regs::{doorbell_offset, DB_PAGE_OFFSET, DB_PAGE_SIZE, SHM_OFFSET},
    session::{hwc_id, mana_id},
    Mana,
};
use nic::{
    testing::{self, Memory},
    Bus, Model, Rule,
};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

/// Bus address of the first byte of memory.
pub const BASE: u64 = 0x1_0000_0000;
pub const PAGE: u64 = 4096;
/// Entries of the raw driver's EQ and CQs.
pub const EQ_SIZE: u32 = 4096;
pub const CQ_SIZE: u32 = 4096;
pub const WQ_SIZE: u32 = 4096;
pub const VECTORS: u16 = 9;

/// A completion or event ring as the driver reads it.
#[derive(Clone, Copy)]
pub struct Reader {
    pub id: u32,
    pub address: u64,
    pub entries: u32,
    pub head: u32,
}

/// A work queue with its CQ.
#[derive(Clone, Copy)]
pub struct Queue {
    pub handle: u64,
    pub id: u32,
    pub address: u64,
    /// Byte position of the next WQE.
    pub tail: u32,
    pub cq: Reader,
}

pub struct Raw {
    pub model: Mana,
    pub bus: Bus,
    pub memory: Memory,
    free: u64,
    /// Message buffers and rings of the HWC.
    pub request: u64,
    pub answer: u64,
    pub hwc_sq: u64,
    pub hwc_rq: u64,
    pub hwc_sq_tail: u32,
    pub hwc_rq_tail: u32,
    pub hwc_cq: Reader,
    pub hwc_eq: Reader,
    /// What [`Raw::up`] made.
    pub eq: Reader,
    pub sq: Queue,
    pub rq: Queue,
    pub vport: u64,
}

impl Raw {
    /// A device after power-on, with `settings` of its knobs.
    pub fn with(settings: &[(&str, &str)]) -> Self {
        let memory = Memory::new(BASE, 32 << 20).expect("memory");
        let mut bus = testing::bus(&memory, VECTORS, 2, KNOBS).expect("bus");
        for (key, value) in settings {
            bus.knobs.set(key, value).expect("knob");
        }
        let reader = Reader {
            id: 0,
            address: 0,
            entries: 0,
            head: 0,
        };
        let queue = Queue {
            handle: 0,
            id: 0,
            address: 0,
            tail: 0,
            cq: reader,
        };
        Self {
            model: Mana::new(2),
            bus,
            memory,
            free: BASE,
            request: 0,
            answer: 0,
            hwc_sq: 0,
            hwc_rq: 0,
            hwc_sq_tail: 0,
            hwc_rq_tail: 0,
            hwc_cq: reader,
            hwc_eq: reader,
            eq: reader,
            sq: queue,
            rq: queue,
            vport: 0,
        }
    }

    pub fn new() -> Self {
        Self::with(&[])
    }

    /// With the HWC there, before VERIFY_VF_DRIVER_VERSION.
    pub fn established() -> Self {
        let mut raw = Self::new();
        raw.establish();
        raw
    }

    /// With the device registered.
    pub fn registered() -> Self {
        let mut raw = Self::new();
        raw.establish();
        raw.register();
        raw
    }

    /// With an EQ, an SQ and an RQ on port 0, which receives.
    pub fn running() -> Self {
        Self::running_with(&[])
    }

    pub fn running_with(settings: &[(&str, &str)]) -> Self {
        let mut raw = Self::with(settings);
        raw.establish();
        raw.register();
        raw.up();
        raw
    }

    pub fn alloc(&mut self, pages: u64) -> u64 {
        let at = self.free;
        self.free += pages * PAGE;
        at
    }

    pub fn tick(&mut self) -> Option<Instant> {
        self.model.tick(&mut self.bus, Instant::now())
    }

    pub fn violations(&self, rule: &Rule) -> u64 {
        self.bus.report.violations(rule)
    }

    pub fn counter(&self, name: &str) -> u64 {
        self.bus.report.get(name)
    }

    pub fn assert_clean(&self) {
        assert_eq!(self.bus.report.json()["violations"], serde_json::json!([]));
    }

    pub fn write_reg(&mut self, offset: u64, len: usize, value: u64) {
        self.model.write(&mut self.bus, 0, offset, len, value);
    }

    pub fn read_reg(&mut self, offset: u64, len: usize) -> u64 {
        self.model.read(&mut self.bus, 0, offset, len)
    }

    pub fn ring_page(&mut self, page: u32, offset: u64, value: u64) {
        self.write_reg(
            DB_PAGE_OFFSET + u64::from(page) * DB_PAGE_SIZE + offset,
            8,
            value,
        );
    }

    /// Rings a doorbell of the Ethernet device and lets the device work.
    pub fn ring(&mut self, offset: u64, value: u64) {
        self.ring_page(mana_id::DOORBELL, offset, value);
        self.tick();
    }

    pub fn ring_wq(&mut self, offset: u64, id: u32, tail: u32) {
        self.ring(offset, u64::from(id) | (u64::from(tail) << 32));
    }

    pub fn ring_index(&mut self, page: u32, offset: u64, id: u32, index: u32, arm: bool) {
        self.ring_page(
            page,
            offset,
            u64::from(id) | (u64::from(index) << 32) | (u64::from(arm) << 63),
        );
        self.tick();
    }

    /// Writes a request into the shared memory.
    pub fn smc(&mut self, dwords: [u32; 8]) {
        for (n, dword) in dwords.into_iter().enumerate() {
            self.write_reg(SHM_OFFSET + n as u64 * 4, 4, dword.into());
        }
    }

    /// Writes a request into the shared memory and lets the device serve it.
    pub fn smc_served(&mut self, dwords: [u32; 8]) {
        self.smc(dwords);
        self.tick();
    }

    pub fn establish_request(&self, pages: [u64; 4], vector: u16) -> [u32; 8] {
        let mut bytes = [0u8; 32];
        for (n, page) in pages.iter().enumerate() {
            bytes[n * 6..n * 6 + 6].copy_from_slice(&(page / PAGE).to_le_bytes()[..6]);
        }
        bytes[26..28].copy_from_slice(&vector.to_le_bytes());
        bytes[28] = 1;
        let mut dwords = [0; 8];
        for (dword, piece) in dwords.iter_mut().zip(bytes.chunks_exact(4)) {
            *dword = u32::from_le_bytes(piece.try_into().expect("four bytes"));
        }
        dwords
    }

    pub fn establish(&mut self) {
        let pages = [self.alloc(1), self.alloc(1), self.alloc(1), self.alloc(1)];
        let request = self.establish_request(pages, 0);
        self.smc_served(request);
        let [eq, cq, rq, sq] = pages;
        self.hwc_eq = Reader {
            id: hwc_id::EQ,
            address: eq,
            entries: 256,
            head: 256,
        };
        self.hwc_cq = Reader {
            id: hwc_id::CQ,
            address: cq,
            entries: 64,
            head: 64,
        };
        (self.hwc_sq_tail, self.hwc_rq_tail) = (0, 0);
        self.hwc_rq = rq;
        self.hwc_sq = sq;
        self.request = self.alloc(1);
        self.answer = self.alloc(1);
        self.drain_hwc();
        self.post_answer_buffer();
    }

    /// The next entry of a completion queue, if there is one.
    pub fn next_cqe(&self, cq: &mut Reader) -> Option<Cqe> {
        let at = cq.address + u64::from(cq.head % cq.entries * CQE_SIZE);
        let entry: Cqe = self.memory.read(at).expect("CQE");
        let is_new = entry.info.get() >> 29 == cq.head / cq.entries % 8;
        is_new.then(|| cq.head += 1)?;
        Some(entry)
    }

    /// The next entry of an event queue, if there is one.
    pub fn next_eqe(&self, eq: &mut Reader) -> Option<Eqe> {
        let at = eq.address + u64::from(eq.head % eq.entries * EQE_SIZE);
        let entry: Eqe = self.memory.read(at).expect("EQE");
        let is_new = entry.info.get() >> 29 == eq.head / eq.entries % 8;
        is_new.then(|| eq.head += 1)?;
        Some(entry)
    }

    /// Reads everything from the HWC's CQ and EQ and arms both.
    pub fn drain_hwc(&mut self) {
        let (mut cq, mut eq) = (self.hwc_cq, self.hwc_eq);
        while self.next_cqe(&mut cq).is_some() {}
        while self.next_eqe(&mut eq).is_some() {}
        (self.hwc_cq, self.hwc_eq) = (cq, eq);
        self.ring_index(
            hwc_id::DOORBELL,
            doorbell_offset::CQ,
            cq.id,
            cq.head % (cq.entries * 8),
            true,
        );
        self.ring_index(
            hwc_id::DOORBELL,
            doorbell_offset::EQ,
            eq.id,
            eq.head % (eq.entries * 8),
            true,
        );
    }

    pub fn post_answer_buffer(&mut self) {
        let wqe = rx_wqe(&[Sge {
            address: self.answer.into(),
            mem_key: hwc_id::GPA_MKEY.into(),
            size: 4096.into(),
        }]);
        let at = self.hwc_rq + u64::from(self.hwc_rq_tail % 4096);
        self.memory.write(at, wqe.as_slice()).expect("WQE");
        self.hwc_rq_tail += wqe.len() as u32;
        let value = u64::from(hwc_id::RQ) | (u64::from(self.hwc_rq_tail) << 32);
        self.ring_page(hwc_id::DOORBELL, doorbell_offset::RQ, value);
    }

    /// The OOB of an HWC message of a VF.
    pub fn hwc_oob() -> [u32; 6] {
        [0, 0, 0, 0, hwc_id::CQ, hwc_id::SQ]
    }

    /// Posts HWC messages: each is an OOB and elements; one doorbell for all.
    pub fn post_hwc(&mut self, oob: [u32; 6], sges: &[Sge]) {
        let wqe = tx_wqe(oob.as_bytes(), sges, 0);
        let at = self.hwc_sq + u64::from(self.hwc_sq_tail % 4096);
        self.memory.write(at, wqe.as_slice()).expect("WQE");
        self.hwc_sq_tail += wqe.len() as u32;
    }

    pub fn ring_hwc(&mut self) {
        let value = u64::from(hwc_id::SQ) | (u64::from(self.hwc_sq_tail) << 32);
        self.ring_page(hwc_id::DOORBELL, doorbell_offset::SQ, value);
        self.tick();
    }

    /// Header of a request of `size` bytes.
    pub fn header(code: u32, device: u32, size: usize) -> ReqHdr {
        let hdr = |version: u16, size: usize| MsgHdr {
            hdr_type: 0.into(),
            msg_type: code.into(),
            msg_version: version.into(),
            hwc_msg_id: 0.into(),
            msg_size: (size as u32).into(),
        };
        ReqHdr {
            req: hdr(5, size),
            resp: hdr(5, 4096),
            dev_id: device.into(),
            activity_id: 0x77.into(),
        }
    }

    /// Sends a message as it is; returns the answer, if one came.
    pub fn send_message(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        self.memory.write(self.request, message).expect("request");
        let sge = Sge {
            address: self.request.into(),
            mem_key: hwc_id::GPA_MKEY.into(),
            size: (message.len() as u32).into(),
        };
        self.post_hwc(Self::hwc_oob(), &[sge]);
        self.ring_hwc();
        let mut cq = self.hwc_cq;
        let mut answer = None;
        while let Some(cqe) = self.next_cqe(&mut cq) {
            if (cqe.info.get() >> 24) & 1 == 0 {
                let len = u32::from_le_bytes(cqe.data[24..28].try_into().expect("length"));
                let all: [u8; 4096] = self.memory.read(self.answer).expect("answer");
                answer = Some(all[..len as usize].to_vec());
                self.post_answer_buffer();
            }
        }
        self.drain_hwc();
        answer
    }

    /// Sends a command; returns its status and body.
    pub fn try_command(&mut self, code: u32, device: u32, body: &[u8]) -> (u32, Vec<u8>) {
        let mut message = Self::header(code, device, REQ_HDR + body.len())
            .as_bytes()
            .to_vec();
        message.extend_from_slice(body);
        let answer = self.send_message(&message).expect("an answer");
        let (header, body) = RespHdr::read_from_prefix(&answer).expect("header");
        assert_eq!(header.activity_id.get(), 0x77);
        (header.status.get(), body.to_vec())
    }

    /// Sends a command that must succeed; returns its answer.
    pub fn command<T: FromBytes>(
        &mut self,
        code: u32,
        device: u32,
        body: &(impl IntoBytes + Immutable + ?Sized),
    ) -> T {
        let (status, answer) = self.try_command(code, device, body.as_bytes());
        assert_eq!(status, status::OK, "{}", name(code));
        T::read_from_prefix(&answer).expect("answer").0
    }

    pub fn verify_request() -> VerifyReq {
        let mut request = VerifyReq::new_zeroed();
        request.protocol_ver_min = 1.into();
        request.protocol_ver_max = 1.into();
        request
    }

    pub fn register(&mut self) -> RegisterResp {
        let _: VerifyResp =
            self.command(code::VERIFY_VF_DRIVER_VERSION, 0, &Self::verify_request());
        self.command(code::REGISTER_DEVICE, DEVICE_MANA, &())
    }

    /// A DMA region of contiguous pages: its address and handle.
    pub fn region(&mut self, size: u32) -> (u64, u64) {
        let pages = u64::from(size) / PAGE;
        let address = self.alloc(pages);
        let mut body = CreateRegionReq {
            length: u64::from(size).into(),
            offset_in_page: 0.into(),
            gdma_page_type: 0.into(),
            page_count: (pages as u32).into(),
            page_addr_list_len: (pages as u32).into(),
        }
        .as_bytes()
        .to_vec();
        for page in 0..pages {
            body.extend_from_slice(&(address + page * PAGE).to_le_bytes());
        }
        let answer: CreateRegionResp = self.command(code::CREATE_DMA_REGION, 0, body.as_slice());
        (address, answer.dma_region_handle.get())
    }

    pub fn eq_request(&mut self) -> (u64, CreateQueueReq) {
        let (address, region) = self.region(EQ_SIZE);
        let mut request = CreateQueueReq::new_zeroed();
        request.queue_type = queue_type::EQ.into();
        request.pdid = mana_id::PDID.into();
        request.doorbell_id = mana_id::DOORBELL.into();
        request.gdma_region = region.into();
        request.queue_size = EQ_SIZE.into();
        request.eq_pci_msix_index = 1.into();
        (address, request)
    }

    pub fn create_eq(&mut self) -> Reader {
        let (address, request) = self.eq_request();
        let answer: CreateQueueResp = self.command(code::CREATE_QUEUE, DEVICE_MANA, &request);
        let entries = EQ_SIZE / EQE_SIZE;
        Reader {
            id: answer.queue_index.get(),
            address,
            entries,
            head: entries,
        }
    }

    pub fn wq_request(&mut self, wq_type: u32) -> (u64, u64, CreateWqObjReq) {
        let (wq_address, wq_region) = self.region(WQ_SIZE);
        let (cq_address, cq_region) = self.region(CQ_SIZE);
        let mut request = CreateWqObjReq::new_zeroed();
        request.vport = self.vport.into();
        request.wq_type = wq_type.into();
        request.wq_gdma_region = wq_region.into();
        request.cq_gdma_region = cq_region.into();
        request.wq_size = WQ_SIZE.into();
        request.cq_size = CQ_SIZE.into();
        request.cq_parent_qid = self.eq.id.into();
        (wq_address, cq_address, request)
    }

    pub fn create_wq(&mut self, wq_type: u32) -> Queue {
        let (address, cq_address, request) = self.wq_request(wq_type);
        let answer: CreateWqObjResp = self.command(code::CREATE_WQ_OBJ, DEVICE_MANA, &request);
        let entries = CQ_SIZE / CQE_SIZE;
        let cq = Reader {
            id: answer.cq_id.get(),
            address: cq_address,
            entries,
            head: entries,
        };
        Queue {
            handle: answer.wq_obj.get(),
            id: answer.wq_id.get(),
            address,
            tail: 0,
            cq,
        }
    }

    pub fn destroy_wq(&mut self, wq_type: u32, handle: u64) -> u32 {
        let request = DestroyWqObjReq {
            wq_type: wq_type.into(),
            reserved: 0.into(),
            wq_obj_handle: handle.into(),
        };
        self.try_command(code::DESTROY_WQ_OBJ, DEVICE_MANA, request.as_bytes())
            .0
    }

    pub fn disable_eq(&mut self, id: u32) -> u32 {
        let request = DisableQueueReq {
            queue_type: queue_type::EQ.into(),
            queue_index: id.into(),
            alloc_res_id_on_creation: 1.into(),
        };
        self.try_command(code::DISABLE_QUEUE, DEVICE_MANA, request.as_bytes())
            .0
    }

    pub fn configure_vport(&mut self) {
        let config: VportConfigResp =
            self.command(code::QUERY_VPORT_CONFIG, DEVICE_MANA, &0u32.to_le_bytes());
        self.vport = config.vport.get();
        let request = ConfigVportReq {
            vport: self.vport.into(),
            pdid: mana_id::PDID.into(),
            doorbell_pageid: mana_id::DOORBELL.into(),
        };
        let _: ConfigVportResp = self.command(code::CONFIG_VPORT_TX, DEVICE_MANA, &request);
    }

    /// Steering of port 0 with a table of all one object.
    pub fn steer_request(&self, rx: u32, rss: u32, object: u64) -> (ConfigRxReq, Vec<u64>) {
        let mut request = ConfigRxReq::new_zeroed();
        request.vport = self.vport.into();
        request.num_indir_entries = 64.into();
        request.indir_tab_offset = ((REQ_HDR + size_of::<ConfigRxReq>()) as u16).into();
        request.rx_enable = rx.into();
        request.rss_enable = rss.into();
        request.rss_hash_types = 0x3f.into();
        let update = u8::from(rx != 0);
        request.update_default_rxobj = update;
        request.update_hashkey = update;
        request.update_indir_tab = update;
        request.default_rxobj = object.into();
        for (n, byte) in request.hashkey.iter_mut().enumerate() {
            *byte = (n * 7 + 1) as u8;
        }
        (request, vec![object; 64])
    }

    pub fn steer(&mut self, request: &ConfigRxReq, table: &[u64]) -> u32 {
        let mut body = request.as_bytes().to_vec();
        body.extend(table.iter().flat_map(|handle| handle.to_le_bytes()));
        self.try_command(code::CONFIG_VPORT_RX, DEVICE_MANA, &body)
            .0
    }

    pub fn up_without_steering(&mut self) {
        self.configure_vport();
        self.eq = self.create_eq();
        self.sq = self.create_wq(queue_type::SQ);
        self.rq = self.create_wq(queue_type::RQ);
    }

    pub fn up(&mut self) {
        self.up_without_steering();
        let (request, table) = self.steer_request(1, 1, self.rq.handle);
        assert_eq!(self.steer(&request, &table), status::OK);
    }

    pub fn down(&mut self) {
        let (request, table) = self.steer_request(0, 0, 0);
        assert_eq!(self.steer(&request, &table), status::OK);
        assert_eq!(self.destroy_wq(queue_type::RQ, self.rq.handle), status::OK);
        assert_eq!(self.destroy_wq(queue_type::SQ, self.sq.handle), status::OK);
        assert_eq!(self.disable_eq(self.eq.id), status::OK);
    }

    /// The short OOB that fits the send queue, with more bits in its first word.
    pub fn oob(&self, flags: u32, trans_off: u32) -> TxShortOob {
        let vport_offset = 3;
        TxShortOob {
            first: (flags | (self.sq.cq.id << 8)).into(),
            second: (trans_off | (((self.sq.id >> 10) & 0x3fff) << 10) | (vport_offset << 24))
                .into(),
        }
    }

    pub fn long_oob(&self, first: u32) -> TxLongOob {
        TxLongOob {
            first: first.into(),
            second: 0.into(),
            reserved: [0.into(); 2],
        }
    }

    /// Puts bytes into fresh memory; returns the element.
    pub fn data(&mut self, bytes: &[u8]) -> Sge {
        let address = self.alloc((bytes.len() as u64).div_ceil(PAGE).max(1));
        self.memory.write(address, bytes).expect("data");
        Sge {
            address: address.into(),
            mem_key: mana_id::GPA_MKEY.into(),
            size: (bytes.len() as u32).into(),
        }
    }

    /// Writes a WQE into the send queue.
    pub fn post_sq(&mut self, wqe: &[u8]) {
        write_ring(&self.memory, self.sq.address, WQ_SIZE, self.sq.tail, wqe);
        self.sq.tail = self.sq.tail.wrapping_add(wqe.len() as u32);
    }

    pub fn ring_sq(&mut self) {
        self.ring_wq(doorbell_offset::SQ, self.sq.id, self.sq.tail);
    }

    /// Sends a WQE; returns the type of its completion, if one came.
    pub fn send_wqe(&mut self, wqe: &[u8]) -> Option<u32> {
        self.post_sq(wqe);
        self.ring_sq();
        self.sent()
    }

    /// The type of the next completion of the send queue.
    pub fn sent(&mut self) -> Option<u32> {
        let mut cq = self.sq.cq;
        let entry = self.next_cqe(&mut cq);
        self.sq.cq = cq;
        entry.map(|entry| u32::from(entry.data[0] & 0x3f))
    }

    /// Sends a frame in short format.
    pub fn send_frame(&mut self, frame: &[u8], oob: TxShortOob) -> Option<u32> {
        let sge = self.data(frame);
        self.send_wqe(&tx_wqe(oob.as_bytes(), &[sge], 0))
    }

    /// Posts a receive buffer; returns its address.
    pub fn post_rq(&mut self, size: u32) -> u64 {
        let address = self.alloc(1);
        let wqe = rx_wqe(&[Sge {
            address: address.into(),
            mem_key: mana_id::GPA_MKEY.into(),
            size: size.into(),
        }]);
        self.post_rq_wqe(&wqe);
        address
    }

    pub fn post_rq_wqe(&mut self, wqe: &[u8]) {
        write_ring(&self.memory, self.rq.address, WQ_SIZE, self.rq.tail, wqe);
        self.rq.tail = self.rq.tail.wrapping_add(wqe.len() as u32);
        self.ring_wq(doorbell_offset::RQ, self.rq.id, self.rq.tail);
    }

    /// A frame comes in on port 0; the device does not work yet.
    pub fn frame_in(&mut self, frame: &[u8]) {
        self.model.frame(&mut self.bus, 0, frame);
    }

    /// A frame comes in on port 0; returns the completion, if one came.
    pub fn receive(&mut self, frame: &[u8]) -> Option<Cqe> {
        self.frame_in(frame);
        self.tick();
        self.received()
    }

    pub fn received(&mut self) -> Option<Cqe> {
        let mut cq = self.rq.cq;
        let entry = self.next_cqe(&mut cq);
        self.rq.cq = cq;
        entry
    }

    /// The next frame that port 0 put on its wire.
    pub fn sent_frame(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; 16384];
        let len = self.bus.wires[2].receive(&mut buffer)?;
        Some(buffer[..len].to_vec())
    }
}

fn write_ring(memory: &Memory, address: u64, size: u32, tail: u32, bytes: &[u8]) {
    for (n, unit) in bytes.chunks(32).enumerate() {
        let at = tail.wrapping_add(n as u32 * 32) % size;
        memory.write(address + u64::from(at), unit).expect("WQE");
    }
}

/// A WQE: header, OOB, elements, filled up to whole units.
fn wqe(first: u32, flags: u32, oob: &[u8], sges: &[Sge]) -> Vec<u8> {
    let flags = flags | sges.len() as u32 | ((oob.len() as u32 / 4) << 8);
    let mut bytes = [first, flags].as_bytes().to_vec();
    bytes.extend_from_slice(oob);
    bytes.extend_from_slice(sges.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    bytes
}

pub fn rx_wqe(sges: &[Sge]) -> Vec<u8> {
    wqe(0, 0, &[0; 8], sges)
}

/// A send WQE; `flags` are more bits of its second word.
pub fn tx_wqe(oob: &[u8], sges: &[Sge], flags: u32) -> Vec<u8> {
    wqe(0, flags, oob, sges)
}

/// A send WQE for segmentation: the first element holds the headers.
pub fn lso_wqe(oob: &[u8], sges: &[Sge], mss: u32) -> Vec<u8> {
    wqe(sges[0].size.get() << 24, (1 << 11) | (mss << 16), oob, sges)
}

/// `is_outer_ipv4`, `comp_iphdr_csum`, `comp_tcp_csum`, `comp_udp_csum` of the short OOB.
pub const IPV4: u32 = 1 << 2;
pub const IPV6: u32 = 1 << 3;
pub const IP_CSUM: u32 = 1 << 4;
pub const TCP_CSUM: u32 = 1 << 5;
pub const UDP_CSUM: u32 = 1 << 6;

/// An IPv4 packet from the peer to port 0, with right IP checksum and the pseudo header's sum as L4 checksum.
pub fn ipv4(protocol: u8, l4: &[u8], field: usize) -> Vec<u8> {
    let mut frame = mac_address(0).to_vec();
    frame.extend_from_slice(&[2, 0, 0, 0, 0, 9, 8, 0]);
    let total = 20 + l4.len() as u16;
    let mut ip = vec![
        0x45,
        0,
        (total >> 8) as u8,
        total as u8,
        0,
        1,
        0x40,
        0,
        64,
        protocol,
        0,
        0,
        10,
        0,
        0,
        9,
        10,
        0,
        0,
        1,
    ];
    let sum = nic::offload::checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend_from_slice(&ip);
    frame.extend_from_slice(l4);
    let pseudo = pseudo_sum(protocol, l4.len() as u16);
    frame[34 + field..36 + field].copy_from_slice(&pseudo.to_be_bytes());
    frame
}

/// Sum of the pseudo header of [`ipv4`]'s packets.
pub fn pseudo_sum(protocol: u8, len: u16) -> u16 {
    let words: [u16; 6] = [0x0a00, 0x0009, 0x0a00, 0x0001, protocol.into(), len];
    let sum: u32 = words.iter().map(|word| u32::from(*word)).sum();
    (sum & 0xffff) as u16 + (sum >> 16) as u16
}

pub fn tcp(payload: &[u8]) -> Vec<u8> {
    let mut l4 = vec![
        0x12, 0x34, 0x56, 0x78, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0, 0, 0, 0,
    ];
    l4.extend_from_slice(payload);
    ipv4(6, &l4, 16)
}

pub fn udp(payload: &[u8]) -> Vec<u8> {
    let len = 8 + payload.len() as u16;
    let mut l4 = vec![0x12, 0x34, 0x56, 0x78, (len >> 8) as u8, len as u8, 0, 0];
    l4.extend_from_slice(payload);
    ipv4(17, &l4, 6)
}

/// A TCP packet prepared for segmentation: lengths and IP checksum zero, seed without length.
pub fn lso(payload: &[u8]) -> Vec<u8> {
    let mut frame = tcp(payload);
    frame[16..18].fill(0);
    frame[24..26].fill(0);
    frame[50..52].copy_from_slice(&pseudo_sum(6, 0).to_be_bytes());
    frame
}

/// A frame that is not IP.
pub fn other(len: usize) -> Vec<u8> {
    let mut frame = mac_address(0).to_vec();
    frame.extend_from_slice(&[2, 0, 0, 0, 0, 9, 0x88, 0xb5]);
    frame.resize(len, 0x5a);
    frame
}
