// SPDX-License-Identifier: GPL-2.0
//! The hardware channel: messages of the driver in, answers out.

use std::time::{Duration, Instant};

use nic::{Bus, Fault};
use zerocopy::{FromBytes, IntoBytes};

use crate::{
    abi::{HwcRxOob, HwcTxOob, ANSWER_LAYOUT},
    commands::{Reply, Request},
    messages::{self, status, MsgHdr, ReqHdr, RespHdr, REQ_HDR, RESP_HDR},
    rules,
    session::{hwc_id, Session},
    work::Wqe,
};

/// `hdr_type` of all messages.
const GDMA_STANDARD_HEADER_TYPE: u32 = 0;

/// Makes an answer wrong: its body, or its header where it has none.
fn spoil(answer: &mut Vec<u8>, fault: Fault) {
    let start = if answer.len() > RESP_HDR { RESP_HDR } else { 0 };
    match fault {
        Fault::Wrong => answer[start..].fill(0xff),
        Fault::Zero => answer[start..].fill(0),
        Fault::Short => answer.truncate(start + (answer.len() - start) / 2),
        Fault::Error | Fault::Nothing | Fault::Die => {}
    }
}

impl Session {
    /// Serves all messages that the driver announced.
    pub(crate) fn serve_messages(&mut self, bus: &mut Bus) {
        let in_flight = self
            .sqs
            .live
            .get(&hwc_id::SQ)
            .map_or(0, |sq| sq.posted.len());
        if in_flight > hwc_id::DEPTH as usize {
            bus.report
                .violate(&rules::HWC_DEPTH, format_args!("{in_flight} messages"));
        }
        while let Some(sq) = self.sqs.live.get_mut(&hwc_id::SQ) {
            let Some(wqe) = sq.consume() else { break };
            sq.counters.packets.add(1);
            let offset = sq.offset(wqe.position);
            let message = self.take_message(bus, &wqe);
            self.complete_message(bus, hwc_id::SQ, true, offset, wqe.data_len());
            let Some(message) = message else { continue };
            let delay = bus.knobs.answer_delay;
            if delay.is_zero() && self.waiting.is_empty() {
                self.serve(bus, &message);
                continue;
            }
            // Nobody waits for an answer that comes later than that.
            if delay >= Duration::from_millis(self.limits.command_timeout_ms.into()) {
                bus.report.excuse(true);
            }
            self.waiting.push_back((Instant::now() + delay, message));
        }
    }

    /// Serves the messages whose answer is due.
    pub(crate) fn serve_waiting(&mut self, bus: &mut Bus, now: Instant) {
        while self.waiting.front().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, message)) = self.waiting.pop_front() {
                self.serve(bus, &message);
            }
        }
    }

    /// Reads the message of a WQE; `None` if it is not one.
    fn take_message(&self, bus: &Bus, wqe: &Wqe) -> Option<Vec<u8>> {
        let report = &bus.report;
        if wqe.is_broken {
            return None;
        }
        let [sge] = wqe.sges[..] else {
            report.violate(&rules::HWC_WQE, format_args!("{} elements", wqe.sges.len()));
            return None;
        };
        let (oob, _) = HwcTxOob::read_from_prefix(&wqe.oob).ok()?;
        // A VF addresses nobody: the destinations are zero, the sources are the HWC's own queues.
        let is_own = oob.vscq.get() == hwc_id::CQ && oob.vsq.get() == hwc_id::SQ;
        if !is_own
            || oob.vrq.get() != 0
            || oob.vrcq.get() != 0
            || oob.reserved.iter().any(|word| word.get() != 0)
        {
            report.violate(&rules::HWC_OOB, format_args!("{oob:x?}"));
        }
        let size = sge.size.get();
        if !(REQ_HDR as u32..=hwc_id::MAX_MESSAGE).contains(&size) {
            report.violate(&rules::HWC_MESSAGE, format_args!("{size} bytes"));
            return None;
        }
        let mut message = vec![0; size as usize];
        bus.dma.read(sge.address.get(), &mut message).ok()?;
        Some(message)
    }

    /// Checks a message's header, executes the command, and answers.
    fn serve(&mut self, bus: &mut Bus, message: &[u8]) {
        let Ok((header, _)) = ReqHdr::read_from_prefix(message) else {
            return;
        };
        let code = header.req.msg_type.get();
        let is_standard = [header.req, header.resp].iter().all(|hdr| {
            hdr.hdr_type.get() == GDMA_STANDARD_HEADER_TYPE && hdr.msg_version.get() >= 1
        });
        let is_consistent = header.req.msg_size.get() as usize == message.len()
            && header.resp.msg_type.get() == code
            && (RESP_HDR as u32..=hwc_id::MAX_MESSAGE).contains(&header.resp.msg_size.get())
            && u32::from(header.req.hwc_msg_id.get()) < hwc_id::DEPTH;
        if !is_standard || !is_consistent {
            bus.report
                .violate(&rules::HWC_MESSAGE, format_args!("{header:x?}"));
        }
        let request = Request { header, message };
        let fault = bus.command(code.into(), messages::name(code));
        // A refusal to make something is all that a driver needs to know.
        if fault.is_some_and(|fault| fault != Fault::Error || Self::takes_back(code)) {
            bus.report.excuse(true);
        }
        let mut reply = match fault {
            Some(Fault::Nothing | Fault::Die) => return,
            Some(Fault::Error) => Reply::refused(status::INJECTED),
            // What the driver is not told has still been done.
            None | Some(Fault::Wrong | Fault::Zero | Fault::Short) => self.execute(bus, &request),
        };
        self.tell_live(&bus.report);
        // An older driver gets the part of the answer that it knows.
        let wanted = (header.resp.msg_size.get() as usize).max(RESP_HDR);
        let size = wanted.min(RESP_HDR + reply.body.len());
        reply.body.truncate(size - RESP_HDR);
        let answer = RespHdr {
            response: MsgHdr {
                msg_version: reply.version.min(header.resp.msg_version.get()).into(),
                hwc_msg_id: header.req.hwc_msg_id,
                msg_size: (size as u32).into(),
                ..header.resp
            },
            dev_id: header.dev_id,
            activity_id: header.activity_id,
            status: reply.status.into(),
            reserved: 0.into(),
        };
        let mut bytes = answer.as_bytes().to_vec();
        bytes.extend_from_slice(&reply.body);
        if let Some(fault) = fault {
            spoil(&mut bytes, fault);
        }
        self.send_answer(bus, &bytes);
    }

    /// Puts an answer into the next receive buffer of the driver.
    fn send_answer(&mut self, bus: &mut Bus, answer: &[u8]) {
        let Some(rq) = self.rqs.live.get_mut(&hwc_id::RQ) else {
            return;
        };
        let Some(wqe) = rq
            .consume()
            .filter(|wqe| !wqe.is_broken && wqe.data_len() >= answer.len())
        else {
            bus.report.violate(
                &rules::HWC_NO_BUFFER,
                format_args!("answer of {} bytes", answer.len()),
            );
            return;
        };
        rq.counters.packets.add(1);
        let offset = rq.offset(wqe.position);
        let mut rest = answer;
        for sge in &wqe.sges {
            let (now, later) = rest.split_at(rest.len().min(sge.size.get() as usize));
            let Bus { dma, knobs, .. } = &mut *bus;
            let written = knobs
                .fuzz
                .write(dma, &ANSWER_LAYOUT, sge.address.get(), now);
            if written.is_err() {
                return;
            }
            rest = later;
        }
        self.complete_message(bus, hwc_id::RQ, false, offset, answer.len());
    }

    fn complete_message(&mut self, bus: &mut Bus, wq: u32, is_sq: bool, offset: u32, len: usize) {
        let oob = HwcRxOob {
            // One chunk: end and start of the message.
            first: (3 << 6).into(),
            source: hwc_id::SQ.into(),
            reserved: 0.into(),
            wqe_offset: offset.into(),
            wqe_addr_high: 0.into(),
            client_data_unit: 0.into(),
            tx_oob_data_size: (len as u32).into(),
            chunk_offset: 0.into(),
        };
        self.events
            .complete(bus, hwc_id::CQ, oob.as_bytes(), wq, is_sq);
    }
}
