// SPDX-License-Identifier: GPL-2.0
//! Each rule of the model is provoked by a raw driver that breaks just this one.

mod common;

use common::{
    lso_wqe, other, rx_wqe, tcp, tx_wqe, udp, Raw, CQ_SIZE, IPV4, IPV6, IP_CSUM, PAGE, TCP_CSUM,
    UDP_CSUM, VECTORS, WQ_SIZE,
};
use mana::{
    abi::{Sge, TxLongOob, CQE_SIZE, OOB_SMALL},
    messages::*,
    regs::{doorbell_offset, SHM_OFFSET},
    rules::*,
    session::{hwc_id, mana_id},
};
use nic::Rule;
use zerocopy::{FromZeros, IntoBytes};

/// A test: the device, up to the step before the fault, and the fault.
type Fault = fn(&mut Raw);
type Case = (&'static Rule, fn() -> Raw, Fault);

fn zero_sge(raw: &mut Raw) -> Sge {
    raw.data(&other(64))
}

/// Sends a good frame with one word of its short OOB changed.
fn with_oob(raw: &mut Raw, first: u32, second: u32) {
    let mut oob = raw.oob(0, 0);
    oob.first = (oob.first.get() ^ first).into();
    oob.second = (oob.second.get() ^ second).into();
    raw.send_frame(&other(64), oob);
}

/// Sends a frame in long format.
fn with_long(raw: &mut Raw, long: TxLongOob) {
    let sge = zero_sge(raw);
    let mut oob = raw.oob(1, 0).as_bytes().to_vec();
    oob.extend_from_slice(long.as_bytes());
    raw.send_wqe(&tx_wqe(&oob, &[sge], 0));
}

/// Sends an LSO packet as a header element and a payload element, with `change` applied to both and the size.
fn with_lso(raw: &mut Raw, frame: &[u8], header: usize, mss: u32) {
    let sges = [raw.data(&frame[..header]), raw.data(&frame[header..])];
    let oob = raw.oob(IPV4 | IP_CSUM | TCP_CSUM, 34);
    raw.send_wqe(&lso_wqe(oob.as_bytes(), &sges, mss));
}

/// Sends a good LSO packet with other flags in its OOB.
fn lso_with_flags(raw: &mut Raw, flags: u32) {
    let frame = common::lso(&[1; 3000]);
    let sges = [raw.data(&frame[..54]), raw.data(&frame[54..])];
    let oob = raw.oob(flags, 34);
    raw.send_wqe(&lso_wqe(oob.as_bytes(), &sges, 1000));
}

fn receive_buffer(raw: &mut Raw, change: fn(&mut Sge), first: u32, flags: u32) {
    let mut sge = Sge {
        address: raw.alloc(1).into(),
        mem_key: mana_id::GPA_MKEY.into(),
        size: 2048.into(),
    };
    change(&mut sge);
    let mut wqe = rx_wqe(&[sge]);
    let (header, _) = wqe.split_at_mut(8);
    let old = u32::from_le_bytes(header[4..8].try_into().expect("word"));
    header[..4].copy_from_slice(&first.to_le_bytes());
    header[4..8].copy_from_slice(&(old | flags).to_le_bytes());
    raw.post_rq_wqe(&wqe);
}

fn create_eq(raw: &mut Raw, change: fn(&mut CreateQueueReq)) {
    let (_, mut request) = raw.eq_request();
    change(&mut request);
    raw.try_command(code::CREATE_QUEUE, DEVICE_MANA, request.as_bytes());
}

fn create_wq(raw: &mut Raw, change: fn(&mut CreateWqObjReq)) {
    let (_, _, mut request) = raw.wq_request(queue_type::SQ);
    change(&mut request);
    raw.try_command(code::CREATE_WQ_OBJ, DEVICE_MANA, request.as_bytes());
}

fn steer(raw: &mut Raw, change: fn(&mut ConfigRxReq, &mut Vec<u64>)) {
    let (mut request, mut table) = raw.steer_request(1, 1, raw.rq.handle);
    change(&mut request, &mut table);
    raw.steer(&request, &table);
}

fn create_region(raw: &mut Raw, length: u64, pages: &[u64]) {
    let mut body = CreateRegionReq {
        length: length.into(),
        offset_in_page: 0.into(),
        gdma_page_type: 0.into(),
        page_count: (pages.len() as u32).into(),
        page_addr_list_len: (pages.len() as u32).into(),
    }
    .as_bytes()
    .to_vec();
    body.extend(pages.iter().flat_map(|page| page.to_le_bytes()));
    raw.try_command(code::CREATE_DMA_REGION, 0, &body);
}

fn message(raw: &mut Raw, change: fn(&mut ReqHdr)) {
    let mut header = Raw::header(code::LIST_DEVICES, 0, REQ_HDR);
    change(&mut header);
    raw.send_message(header.as_bytes());
}

/// Completions until the CQ has wrapped 8 times, and one more, without a doorbell.
fn wrap_without_doorbell(raw: &mut Raw) {
    let oob = raw.oob(0, 0);
    let sge = raw.data(&other(64));
    for _ in 0..CQ_SIZE / CQE_SIZE * 8 + 1 {
        raw.send_wqe(&tx_wqe(oob.as_bytes(), &[sge], 0));
    }
}

/// Test events until the EQ is full, and one more.
fn overflow_eq(raw: &mut Raw) {
    for _ in 0..raw.eq.entries + 1 {
        raw.try_command(
            code::GENERATE_TEST_EQE,
            DEVICE_MANA,
            &raw.eq.id.to_le_bytes(),
        );
    }
}

fn without_dim() -> Raw {
    Raw::running()
}

fn limited() -> Raw {
    Raw::running_with(&[("max_eq", "1")])
}

fn delayed() -> Raw {
    Raw::running_with(&[("completion_delay_us", "60000000")])
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    (&REG_ACCESS, Raw::new, |raw| { raw.read_reg(0x20, 4); }),
    (&REG_ACCESS, Raw::new, |raw| { raw.read_reg(0x8, 4); }),
    (&REG_ACCESS, Raw::new, |raw| raw.write_reg(0x10, 4, 0)),
    (&REG_ACCESS, Raw::new, |raw| raw.write_reg(SHM_OFFSET, 8, 0)),
    (&SHM_BUSY, Raw::new, |raw| {
        let request = raw.establish_request([BASE_PAGE; 4], 0);
        raw.smc(request);
        raw.smc(request);
    }),
    (&SHM_MESSAGE, Raw::new, |raw| raw.smc_served([0, 0, 0, 0, 0, 0, 0, 5])),
    (&SHM_MESSAGE, Raw::new, |raw| raw.smc_served([0, 0, 0, 0, 0, 0, 0, 1 | (1 << 7)])),
    (&SHM_ORDER, Raw::new, |raw| raw.smc_served([0, 0, 0, 0, 0, 0, 0, 2])),
    (&SHM_ORDER, Raw::established, |raw| { let again = raw.establish_request([BASE_PAGE; 4], 0); raw.smc_served(again); }),
    (&SHM_VECTOR, Raw::new, |raw| { let request = raw.establish_request([BASE_PAGE; 4], VECTORS); raw.smc_served(request); }),
    (&HWC_DESTROY_IN_USE, Raw::registered, |raw| raw.smc_served([0, 0, 0, 0, 0, 0, 0, 2])),

    (&DOORBELL_ACCESS, Raw::running, |raw| raw.write_reg(mana::regs::DB_PAGE_OFFSET, 4, 0)),
    (&DOORBELL_ACCESS, Raw::running, |raw| raw.ring_page(mana_id::DOORBELL, 0x10, 0)),
    (&DOORBELL_ACCESS, Raw::running, |raw| { raw.read_reg(mana::regs::DB_PAGE_OFFSET, 8); }),
    (&DOORBELL_PAGE, Raw::running, |raw| raw.ring_page(hwc_id::DOORBELL, doorbell_offset::SQ, raw.sq.id.into())),
    (&DOORBELL_RESERVED, Raw::running, |raw| raw.ring(doorbell_offset::SQ, u64::from(raw.sq.id) | (1 << 24))),
    (&DOORBELL_RESERVED, Raw::running, |raw| raw.ring(doorbell_offset::EQ, u64::from(raw.eq.id) | (1 << 16) | (u64::from(raw.eq.head) << 32))),
    (&DOORBELL_QUEUE, Raw::running, |raw| raw.ring_wq(doorbell_offset::SQ, 0x3fff, 0)),
    (&DOORBELL_QUEUE, Raw::running, |raw| raw.ring_wq(doorbell_offset::CQ, 0xfff, 0)),
    (&DOORBELL_DESTROYED, Raw::running, |raw| { let old = raw.sq.id; raw.down(); raw.ring_wq(doorbell_offset::SQ, old, 0); }),
    (&DOORBELL_DESTROYED, Raw::running, |raw| { let old = raw.rq.cq.id; raw.down(); raw.ring_wq(doorbell_offset::CQ, old, 0); }),
    (&WQ_DOORBELL_ALIGN, Raw::running, |raw| raw.ring_wq(doorbell_offset::SQ, raw.sq.id, 16)),
    (&WQ_DOORBELL_BACKWARD, Raw::running, |raw| raw.ring_wq(doorbell_offset::SQ, raw.sq.id, 0u32.wrapping_sub(32))),
    (&WQ_DOORBELL_OVERRUN, Raw::running, |raw| raw.ring_wq(doorbell_offset::RQ, raw.rq.id, WQ_SIZE + 32)),
    (&WQ_DOORBELL_PARTIAL, Raw::running, |raw| {
        let sge = zero_sge(raw);
        raw.post_sq(&tx_wqe(raw.oob(0, 0).as_bytes(), &[sge, sge], 0));
        raw.ring_wq(doorbell_offset::SQ, raw.sq.id, 32);
    }),
    (&RQ_DOORBELL_COUNT, Raw::running, |raw| raw.ring(doorbell_offset::RQ, u64::from(raw.rq.id) | (1 << 24))),
    (&CQ_DOORBELL_INDEX, Raw::running, |raw| raw.ring_wq(doorbell_offset::CQ, raw.sq.cq.id, CQ_SIZE / CQE_SIZE * 8)),
    (&CQ_DOORBELL_AHEAD, Raw::running, |raw| raw.ring_wq(doorbell_offset::CQ, raw.sq.cq.id, raw.sq.cq.head + 1)),
    (&CQ_DOORBELL_AHEAD, Raw::running, |raw| raw.ring_wq(doorbell_offset::CQ, raw.sq.cq.id, raw.sq.cq.head - 1)),
    (&CQ_EIGHT_WRAPS, Raw::running, wrap_without_doorbell),
    (&EQ_DOORBELL_INDEX, Raw::running, |raw| raw.ring_wq(doorbell_offset::EQ, raw.eq.id, raw.eq.entries * 8)),
    (&EQ_DOORBELL_AHEAD, Raw::running, |raw| raw.ring_wq(doorbell_offset::EQ, raw.eq.id, raw.eq.head + 1)),
    (&EQ_OVERFLOW, Raw::running, overflow_eq),
    (&DIM_UNSUPPORTED, without_dim, |raw| raw.ring_wq(doorbell_offset::DIM, raw.rq.cq.id, (1 << 15) | 8)),
    (&DIM_UNSUPPORTED, without_dim, |raw| create_wq(raw, |request| {
        request.req_cq_moderation = 1;
        request.cq_moderation_usec = 8.into();
    })),

    (&HWC_WQE, Raw::established, |raw| {
        let sge = Sge { address: raw.request.into(), mem_key: hwc_id::GPA_MKEY.into(), size: 20.into() };
        raw.post_hwc(Raw::hwc_oob(), &[sge, sge]);
        raw.ring_hwc();
    }),
    (&HWC_OOB, Raw::registered, |raw| {
        let message = Raw::header(code::LIST_DEVICES, 0, REQ_HDR);
        raw.memory.write(raw.request, &message).expect("message");
        let sge = Sge { address: raw.request.into(), mem_key: hwc_id::GPA_MKEY.into(), size: (REQ_HDR as u32).into() };
        let mut oob = Raw::hwc_oob();
        oob[5] = 1;
        raw.post_hwc(oob, &[sge]);
        raw.ring_hwc();
    }),
    (&HWC_MESSAGE, Raw::registered, |raw| { raw.send_message(&[0; 16]); }),
    (&HWC_MESSAGE, Raw::registered, |raw| message(raw, |header| header.req.msg_size = 41.into())),
    (&HWC_MESSAGE, Raw::registered, |raw| message(raw, |header| header.req.hdr_type = 1.into())),
    (&HWC_MESSAGE, Raw::registered, |raw| message(raw, |header| header.resp.msg_type = 1.into())),
    (&HWC_MESSAGE, Raw::registered, |raw| message(raw, |header| header.req.hwc_msg_id = 1.into())),
    (&HWC_DEPTH, Raw::registered, |raw| {
        let message = Raw::header(code::LIST_DEVICES, 0, REQ_HDR);
        raw.memory.write(raw.request, &message).expect("message");
        let sge = Sge { address: raw.request.into(), mem_key: hwc_id::GPA_MKEY.into(), size: (REQ_HDR as u32).into() };
        raw.post_answer_buffer();
        raw.post_hwc(Raw::hwc_oob(), &[sge]);
        raw.post_hwc(Raw::hwc_oob(), &[sge]);
        raw.ring_hwc();
    }),
    (&HWC_NO_BUFFER, Raw::registered, |raw| {
        let message = Raw::header(code::LIST_DEVICES, 0, REQ_HDR);
        raw.memory.write(raw.request, &message).expect("message");
        let sge = Sge { address: raw.request.into(), mem_key: hwc_id::GPA_MKEY.into(), size: (REQ_HDR as u32).into() };
        for _ in 0..2 {
            raw.post_hwc(Raw::hwc_oob(), &[sge]);
            raw.ring_hwc();
        }
    }),
    (&COMMAND_UNKNOWN, Raw::registered, |raw| assert_eq!(raw.try_command(0x28000, DEVICE_MANA, &[]).0, status::UNSUPPORTED)),
    (&COMMAND_SIZE, Raw::running, |raw| { raw.try_command(code::CREATE_WQ_OBJ, DEVICE_MANA, &[0; 40]); }),
    (&COMMAND_DEVICE, Raw::registered, |raw| { raw.try_command(code::QUERY_GF_STAT, DEVICE_HWC, &[0; 8]); }),
    (&COMMAND_ORDER, Raw::established, |raw| { raw.try_command(code::LIST_DEVICES, 0, &[]); }),
    (&COMMAND_ORDER, Raw::registered, |raw| { raw.try_command(code::REGISTER_DEVICE, DEVICE_MANA, &[]); }),
    (&COMMAND_ORDER, Raw::registered, |raw| {
        raw.try_command(code::DEREGISTER_DEVICE, DEVICE_MANA, &[]);
        raw.try_command(code::QUERY_VPORT_CONFIG, DEVICE_MANA, &[0; 4]);
    }),
    (&COMMAND_VALUE, Raw::established, |raw| {
        let mut request = Raw::verify_request();
        request.protocol_ver_min = 2.into();
        request.protocol_ver_max = 3.into();
        raw.try_command(code::VERIFY_VF_DRIVER_VERSION, 0, request.as_bytes());
    }),
    (&COMMAND_VALUE, Raw::registered, |raw| create_eq(raw, |request| request.reserved3 = 1.into())),
    (&COMMAND_VALUE, Raw::registered, |raw| create_eq(raw, |request| request.log2_throttle_limit = 9.into())),
    (&COMMAND_VALUE, Raw::running, |raw| create_wq(raw, |request| request.reserved2 = [1, 0])),
    (&COMMAND_VALUE, Raw::running, |raw| steer(raw, |request, _| request.rx_enable = u32::MAX.into())),
    (&COMMAND_VALUE, Raw::running, |raw| steer(raw, |request, _| request.rss_hash_types = 0.into())),
    (&COMMAND_VALUE, Raw::running, |raw| steer(raw, |request, _| {
        request.cqe_coalescing_enable = 1;
        request.cqe8_coalescing_enable = 1;
    })),

    (&REGION_LAYOUT, Raw::registered, |raw| create_region(raw, PAGE, &[BASE_PAGE + 8])),
    (&REGION_LAYOUT, Raw::registered, |raw| create_region(raw, 2 * PAGE, &[BASE_PAGE])),
    (&REGION_LAYOUT, Raw::registered, |raw| create_region(raw, 0, &[])),
    (&REGION_LAYOUT, Raw::registered, |raw| {
        let mut request = CreateRegionReq::new_zeroed();
        request.length = PAGE.into();
        request.page_count = 1.into();
        request.page_addr_list_len = 1.into();
        raw.try_command(code::CREATE_DMA_REGION, 0, request.as_bytes());
    }),
    (&REGION_HANDLE, Raw::registered, |raw| { raw.try_command(code::DESTROY_DMA_REGION, 0, &[9; 8]); }),
    (&REGION_HANDLE, Raw::registered, |raw| {
        let (_, handle) = raw.region(4096);
        for _ in 0..2 {
            raw.try_command(code::DESTROY_DMA_REGION, 0, &handle.to_le_bytes());
        }
    }),
    (&REGION_SIZE, Raw::registered, |raw| create_eq(raw, |request| request.queue_size = 8192.into())),
    (&REGION_IN_USE, Raw::registered, |raw| {
        let (_, request) = raw.eq_request();
        raw.try_command(code::CREATE_QUEUE, DEVICE_MANA, request.as_bytes());
        raw.try_command(code::DESTROY_DMA_REGION, 0, &request.gdma_region.get().to_le_bytes());
    }),
    (&REGION_IN_USE, Raw::running, |raw| create_wq(raw, |request| request.cq_gdma_region = request.wq_gdma_region)),
    (&REGION_LEAK, Raw::registered, |raw| {
        raw.region(4096);
        raw.try_command(code::DEREGISTER_DEVICE, DEVICE_MANA, &[]);
    }),

    (&QUEUE_SIZE, Raw::registered, |raw| create_eq(raw, |request| request.queue_size = 2048.into())),
    (&QUEUE_SIZE, Raw::running, |raw| create_wq(raw, |request| request.cq_size = 12288.into())),
    (&QUEUE_OWNER, Raw::registered, |raw| create_eq(raw, |request| request.pdid = hwc_id::PDID.into())),
    (&QUEUE_OWNER, Raw::registered, |raw| create_eq(raw, |request| request.doorbell_id = 0.into())),
    (&QUEUE_HANDLE, Raw::registered, |raw| create_eq(raw, |request| request.queue_type = queue_type::SQ.into())),
    (&QUEUE_HANDLE, Raw::registered, |raw| { raw.disable_eq(hwc_id::EQ); }),
    (&QUEUE_HANDLE, Raw::running, |raw| { raw.destroy_wq(queue_type::RQ, raw.sq.handle); }),
    (&QUEUE_HANDLE, Raw::running, |raw| { raw.destroy_wq(queue_type::SQ, 1); }),
    (&QUEUE_HANDLE, Raw::running, |raw| { raw.try_command(code::FENCE_RQ, DEVICE_MANA, &raw.sq.handle.to_le_bytes()); }),
    (&QUEUE_HANDLE, Raw::running, |raw| { raw.try_command(code::GENERATE_TEST_EQE, DEVICE_HWC, &raw.eq.id.to_le_bytes()); }),
    (&QUEUE_HANDLE, Raw::running, |raw| create_wq(raw, |request| request.cq_parent_qid = 0x999.into())),
    (&QUEUE_LIMIT, limited, |raw| create_eq(raw, |_| {})),
    (&QUEUE_LEAK, Raw::running, |raw| { raw.try_command(code::DEREGISTER_DEVICE, DEVICE_MANA, &[]); }),
    (&EQ_VECTOR, Raw::registered, |raw| create_eq(raw, |request| request.eq_pci_msix_index = u32::from(VECTORS).into())),
    (&EQ_IN_USE, Raw::running, |raw| { raw.disable_eq(raw.eq.id); }),
    (&SQ_BUSY, delayed, |raw| {
        let oob = raw.oob(0, 0);
        raw.send_frame(&other(64), oob);
        raw.destroy_wq(queue_type::SQ, raw.sq.handle);
    }),
    (&RQ_STEERED, Raw::running, |raw| { raw.destroy_wq(queue_type::RQ, raw.rq.handle); }),
    (&VPORT_HANDLE, Raw::running, |raw| create_wq(raw, |request| request.vport = 1.into())),
    (&VPORT_HANDLE, Raw::registered, |raw| { raw.try_command(code::QUERY_VPORT_CONFIG, DEVICE_MANA, &2u32.to_le_bytes()); }),
    (&VPORT_ORDER, Raw::running, |raw| create_wq(raw, |request| request.vport = (request.vport.get() + 1).into())),
    (&STEER_TABLE, Raw::running, |raw| steer(raw, |request, table| { table.truncate(32); request.num_indir_entries = 32.into(); })),
    (&STEER_TABLE, Raw::running, |raw| steer(raw, |request, _| request.indir_tab_offset = 112.into())),
    (&STEER_TABLE, Raw::running, |raw| { let sq = raw.sq.handle; let (request, mut table) = raw.steer_request(1, 1, raw.rq.handle); table[7] = sq; raw.steer(&request, &table); }),
    (&STEER_TABLE, Raw::running, |raw| {
        // The RQ goes; a new one becomes the default, but the table still names the old one.
        raw.down();
        raw.up_without_steering();
        steer(raw, |request, _| request.update_indir_tab = 0);
    }),
    (&STEER_DEFAULT, Raw::running, |raw| {
        raw.down();
        raw.up_without_steering();
        steer(raw, |request, _| request.update_default_rxobj = 0);
    }),

    (&WQE_SIZE, Raw::running, |raw| { let oob = raw.oob(0, 0); raw.send_wqe(&tx_wqe(oob.as_bytes(), &[], 0)); }),
    (&WQE_SIZE, Raw::running, |raw| { let sge = zero_sge(raw); let oob = raw.oob(0, 0); raw.send_wqe(&tx_wqe(oob.as_bytes(), &[sge; 32], 0)); }),
    (&WQE_RESERVED, Raw::running, |raw| { let sge = zero_sge(raw); let oob = raw.oob(0, 0); raw.send_wqe(&tx_wqe(oob.as_bytes(), &[sge], 1 << 12)); }),
    (&WQE_RESERVED, Raw::running, |raw| { let sge = zero_sge(raw); let oob = raw.oob(0, 0); raw.send_wqe(&tx_wqe(oob.as_bytes(), &[sge], 1000 << 16)); }),
    (&WQE_OOB_SIZE, Raw::running, |raw| { let sge = zero_sge(raw); raw.send_wqe(&tx_wqe(&[0; 12], &[sge], 0)); }),
    (&WQE_OOB_SIZE, Raw::running, |raw| { let sge = zero_sge(raw); let oob = raw.oob(1, 0); raw.send_wqe(&tx_wqe(&oob.as_bytes()[..OOB_SMALL as usize], &[sge], 0)); }),
    (&SGE_KEY, Raw::running, |raw| receive_buffer(raw, |sge| sge.mem_key = hwc_id::GPA_MKEY.into(), 0, 0)),
    (&SGE_EMPTY, Raw::running, |raw| receive_buffer(raw, |sge| sge.size = 0.into(), 0, 0)),
    (&RQE_LSO, Raw::running, |raw| receive_buffer(raw, |_| {}, 8 << 24, 0)),
    (&RQE_LSO, Raw::running, |raw| receive_buffer(raw, |_| {}, 0, 1 << 11)),

    (&TX_OOB_CQ, Raw::running, |raw| with_oob(raw, 1 << 8, 0)),
    (&TX_OOB_VSQ, Raw::running, |raw| with_oob(raw, 0, 1 << 10)),
    (&TX_OOB_VPORT, Raw::running, |raw| with_oob(raw, 0, 1 << 24)),
    (&TX_OOB_VPORT, || Raw::running_with(&[("vport_offset", "300")]), |raw| with_oob(raw, 0, 0)),
    (&TX_OOB_RESERVED, Raw::running, |raw| with_oob(raw, 2, 0)),
    (&TX_OOB_RESERVED, Raw::running, |raw| { let long = raw.long_oob(1 << 4); with_long(raw, long); }),
    (&TX_OOB_RESERVED, Raw::running, |raw| { let long = raw.long_oob(5 << 20); with_long(raw, long); }),
    (&TX_OOB_ENCAP, Raw::running, |raw| { let long = raw.long_oob(1); with_long(raw, long); }),
    (&TX_OOB_IP, Raw::running, |raw| { let oob = raw.oob(IPV6 | TCP_CSUM, 34); raw.send_frame(&tcp(b"x"), oob); }),
    (&TX_OOB_IP, Raw::running, |raw| { let oob = raw.oob(IPV4 | IPV6, 0); raw.send_frame(&tcp(b"x"), oob); }),
    (&TX_OOB_IP, Raw::running, |raw| { let oob = raw.oob(TCP_CSUM, 34); raw.send_frame(&tcp(b"x"), oob); }),
    (&TX_OOB_PROTOCOL, Raw::running, |raw| { let oob = raw.oob(IPV4 | UDP_CSUM, 0); raw.send_frame(&tcp(b"x"), oob); }),
    (&TX_OOB_PROTOCOL, Raw::running, |raw| { let oob = raw.oob(IPV4 | TCP_CSUM | UDP_CSUM, 34); raw.send_frame(&tcp(b"x"), oob); }),
    (&TX_OOB_TRANS_OFF, Raw::running, |raw| { let oob = raw.oob(IPV4 | TCP_CSUM, 20); raw.send_frame(&tcp(b"x"), oob); }),
    (&TX_OOB_TRANS_OFF, Raw::running, |raw| { let oob = raw.oob(IPV4 | TCP_CSUM, 0); raw.send_frame(&tcp(b"x"), oob); }),
    (&TX_OOB_TRANS_OFF, Raw::running, |raw| { let oob = raw.oob(IPV4 | UDP_CSUM, 20); raw.send_frame(&udp(b"x"), oob); }),
    (&TX_CSUM_SEED, Raw::running, |raw| { let oob = raw.oob(IPV4 | TCP_CSUM, 34); let mut frame = tcp(b"x"); frame[50] ^= 1; raw.send_frame(&frame, oob); }),
    (&TX_LSO_HEADER, Raw::running, |raw| with_lso(raw, &common::lso(&[1; 3000]), 53, 1000)),
    (&TX_LSO_HEADER, Raw::running, |raw| with_lso(raw, &common::lso(&[1; 3000]), 60, 1000)),
    (&TX_LSO_HEADER, Raw::running, |raw| {
        let sges = [raw.data(&common::lso(&[1; 3000]))];
        let oob = raw.oob(IPV4 | IP_CSUM | TCP_CSUM, 34);
        raw.send_wqe(&lso_wqe(oob.as_bytes(), &sges, 1000));
    }),
    (&TX_LSO_MSS, Raw::running, |raw| with_lso(raw, &common::lso(&[1; 3000]), 54, 0)),
    (&TX_LSO_MSS, Raw::running, |raw| with_lso(raw, &common::lso(&[1; 12000]), 54, 10000)),
    (&TX_LSO_FLAGS, Raw::running, |raw| lso_with_flags(raw, IPV4 | TCP_CSUM)),
    (&TX_LSO_FLAGS, Raw::running, |raw| lso_with_flags(raw, IPV4 | IP_CSUM)),
    (&TX_LSO_FLAGS, Raw::running, |raw| lso_with_flags(raw, 0)),
    (&TX_OOB_IP, Raw::running, |raw| { let oob = raw.oob(IP_CSUM, 0); raw.send_frame(&other(64), oob); }),
    (&TX_LSO_SEED, Raw::running, |raw| { let mut frame = common::lso(&[1; 3000]); frame[17] = 60; with_lso(raw, &frame, 54, 1000); }),
    (&TX_LSO_SEED, Raw::running, |raw| { let mut frame = common::lso(&[1; 3000]); frame[25] = 1; with_lso(raw, &frame, 54, 1000); }),
    (&TX_LSO_SEED, Raw::running, |raw| { let mut frame = common::lso(&[1; 3000]); frame[51] ^= 1; with_lso(raw, &frame, 54, 1000); }),
    (&nic::FRAME_LENGTH, Raw::running, |raw| { let oob = raw.oob(0, 0); raw.send_frame(&other(9217), oob); }),
    (&nic::FRAME_LENGTH, Raw::running, |raw| { let oob = raw.oob(0, 0); raw.send_frame(&other(13), oob); }),
    (&nic::DMA_UNMAPPED, Raw::running, |raw| receive_then_frame(raw)),
];

/// A page of memory that no test uses otherwise.
const BASE_PAGE: u64 = common::BASE + 0x100_0000;

/// A buffer outside of memory is seen when a frame comes in.
fn receive_then_frame(raw: &mut Raw) {
    receive_buffer(raw, |sge| sge.address = 0x10.into(), 0, 0);
    raw.receive(&other(64));
}

#[test]
fn every_case_breaks_its_rule_and_no_other() {
    for (n, (rule, start, fault)) in CASES.iter().enumerate() {
        let mut raw = start();
        raw.assert_clean();
        fault(&mut raw);
        let violations = raw.bus.report.json()["violations"].clone();
        assert!(
            raw.violations(rule) > 0,
            "case {n}: {} was not broken, but {violations}",
            rule.name
        );
        let others = violations.as_array().expect("a list").len() - 1;
        assert_eq!(others, 0, "case {n}: {} only, but {violations}", rule.name);
    }
}

#[test]
fn every_rule_has_a_case() {
    let untested: Vec<_> = RULES
        .iter()
        .filter(|rule| !CASES.iter().any(|(tested, ..)| tested == *rule))
        .map(|rule| rule.name)
        .collect();
    assert_eq!(untested, Vec::<&str>::new());
}
