// SPDX-License-Identifier: GPL-2.0
//! Commands that create, destroy and fence work queue objects.

use nic::Bus;
use zerocopy::IntoBytes;

use super::{refuse, Outcome, Refused, Reply, Request};
use crate::{
    abi::{cqe, cqe_header},
    events::{Cq, Moderation, Owner},
    messages::{queue_type, status, CreateWqObjReq, CreateWqObjResp, DestroyWqObjReq, FenceRqReq},
    rules,
    session::{Session, WqObject},
    work::{Kind, Wq},
};

/// Size of CREATE_WQ_OBJ version 1, without header, bytes.
const CREATE_WQ_OBJ_V1: usize = 48;

/// Parent of a CQ that never posts an event.
const GDMA_CQ_NO_EQ: u32 = 0xffff;

fn kind(wq_type: u32) -> Option<Kind> {
    match wq_type {
        queue_type::SQ => Some(Kind::Sq),
        queue_type::RQ => Some(Kind::Rq),
        _ => None,
    }
}

impl Session {
    pub(super) fn create_wq_obj(&mut self, bus: &Bus, request: &Request<'_>) -> Outcome {
        let report = &bus.report;
        let body: CreateWqObjReq = request.body_of(report, CREATE_WQ_OBJ_V1)?;
        let port = self.vport(report, body.vport.get())?;
        let wq_type = body.wq_type.get();
        let Some(kind) = kind(wq_type) else {
            return Err(refuse(
                report,
                &rules::QUEUE_HANDLE,
                format_args!("CREATE_WQ_OBJ of type {wq_type}"),
            ));
        };
        if !self.vports[port].is_configured {
            return Err(refuse(
                report,
                &rules::VPORT_ORDER,
                format_args!("{kind:?} on port {port}"),
            ));
        }
        if body.reserved.get() != 0 || body.reserved2 != [0; 2] {
            return Err(request.bad_value(report, "reserved fields are set"));
        }
        let eq = body.cq_parent_qid.get();
        let is_own = self
            .events
            .eqs
            .get(&eq)
            .is_some_and(|eq| eq.owner == Owner::Mana);
        if !is_own && eq != GDMA_CQ_NO_EQ {
            return Err(refuse(
                report,
                &rules::QUEUE_HANDLE,
                format_args!("CQ for EQ {eq}"),
            ));
        }
        let of_kind = self.objects.values().filter(|object| object.kind == kind);
        let on_port = of_kind.clone().filter(|object| object.port == port).count();
        let (in_all, max) = match kind {
            Kind::Sq => (of_kind.count(), self.limits.max_sq),
            Kind::Rq => (of_kind.count(), self.limits.max_rq),
        };
        if in_all >= max as usize
            || on_port >= self.limits.vport_max_queues as usize
            || self.objects.len() >= self.limits.max_cq as usize
        {
            report.violate(
                &rules::QUEUE_LIMIT,
                format_args!("{on_port} {kind:?}s on port {port}, {in_all} in all"),
            );
            return Err(Refused(status::NO_RESOURCES));
        }
        let mut moderation = Moderation::default();
        if body.req_cq_moderation != 0 {
            moderation = Moderation {
                usec: body.cq_moderation_usec.get().into(),
                comps: body.cq_moderation_comp.get().into(),
            };
            if moderation.usec + moderation.comps != 0 && !self.limits.dim {
                report.violate(&rules::DIM_UNSUPPORTED, format_args!("{moderation:?}"));
                moderation = Moderation::default();
            }
        }
        let (wq_region, cq_region) = (body.wq_gdma_region.get(), body.cq_gdma_region.get());
        self.check_ring(report, wq_region, body.wq_size.get())?;
        self.check_ring(report, cq_region, body.cq_size.get())?;
        if wq_region == cq_region {
            return Err(refuse(
                report,
                &rules::REGION_IN_USE,
                format_args!("one region {wq_region:#x} for two queues"),
            ));
        }
        let wq_ring = self.take_ring(report, wq_region)?;
        let cq_ring = self.take_ring(report, cq_region)?;

        let cqs = &self.events.cqs;
        let cq = self.ids.cq.next(|id| cqs.contains_key(&id));
        let (queues, ids) = match kind {
            Kind::Sq => (&mut self.sqs, &mut self.ids.sq),
            Kind::Rq => (&mut self.rqs, &mut self.ids.rq),
        };
        let used: Vec<usize> = queues
            .live
            .values()
            .filter(|wq| wq.owner == Owner::Mana && wq.port == port)
            .map(|wq| wq.index)
            .collect();
        let index = (0..).find(|index| !used.contains(index)).unwrap_or(0);
        let wq = ids.next(|id| queues.live.contains_key(&id));
        queues.add(
            wq,
            Wq::new(kind, Owner::Mana, wq_ring, cq, port, index, report),
        );
        self.events
            .add_cq(cq, Cq::new(Owner::Mana, cq_ring, eq, moderation));
        self.ids.object += 1;
        let handle = 0x5751_0000_0000 + self.ids.object;
        self.objects.insert(handle, WqObject { kind, wq, cq, port });
        Ok(Reply::new(&CreateWqObjResp {
            wq_id: wq.into(),
            cq_id: cq.into(),
            wq_obj: handle.into(),
            cq_moderation_comp: (moderation.comps as u16).into(),
            cq_moderation_usec: (moderation.usec as u16).into(),
            cq_moderation_enabled: (self.limits.dim && body.req_cq_moderation != 0).into(),
            reserved1: [0; 3],
        })
        .version(2))
    }

    pub(super) fn destroy_wq_obj(&mut self, bus: &Bus, request: &Request<'_>) -> Outcome {
        let report = &bus.report;
        let body: DestroyWqObjReq = request.body(report)?;
        let handle = body.wq_obj_handle.get();
        let object = self
            .objects
            .get(&handle)
            .filter(|object| kind(body.wq_type.get()) == Some(object.kind));
        let Some(&WqObject { kind, wq, cq, port }) = object else {
            return Err(refuse(
                report,
                &rules::QUEUE_HANDLE,
                format_args!("DESTROY_WQ_OBJ {handle:#x} of type {}", body.wq_type),
            ));
        };
        match kind {
            Kind::Sq => {
                let posted = self.sqs.live.get(&wq).map_or(0, |sq| sq.posted.len());
                let unreported = self.events.unreported(cq);
                if posted + unreported > 0 {
                    bus.report.violate(
                        &rules::SQ_BUSY,
                        format_args!("SQ {wq}: {posted} to send, {unreported} to report"),
                    );
                }
            }
            Kind::Rq => {
                if self.vports[port].steering.uses(wq) {
                    bus.report
                        .violate(&rules::RQ_STEERED, format_args!("RQ {wq} of port {port}"));
                }
            }
        }
        self.remove_object(handle);
        Ok(Reply::done())
    }

    /// Removes an object and its queues.
    pub(super) fn remove_object(&mut self, handle: u64) {
        let Some(object) = self.objects.remove(&handle) else {
            return;
        };
        let wq = match object.kind {
            Kind::Sq => self.sqs.remove(object.wq),
            Kind::Rq => {
                self.vports[object.port].steering.forget(object.wq);
                self.rqs.remove(object.wq)
            }
        };
        if let Some(wq) = wq {
            self.regions.release(wq.ring());
        }
        if let Some(cq) = self.events.remove_cq(object.cq) {
            self.regions.release(cq.ring());
        }
    }

    pub(super) fn fence_rq(&mut self, bus: &mut Bus, request: &Request<'_>) -> Outcome {
        let body: FenceRqReq = request.body(&bus.report)?;
        let handle = body.wq_obj_handle.get();
        let Some(&object) = self
            .objects
            .get(&handle)
            .filter(|object| object.kind == Kind::Rq)
        else {
            return Err(refuse(
                &bus.report,
                &rules::QUEUE_HANDLE,
                format_args!("FENCE_RQ {handle:#x}"),
            ));
        };
        self.flush_coalesced(bus);
        let header = cqe_header(cqe::RX_OBJECT_FENCE).to_le_bytes();
        self.events
            .complete(bus, object.cq, header.as_bytes(), object.wq, false);
        Ok(Reply::done())
    }
}
