// SPDX-License-Identifier: GPL-2.0
//! Commands of the function as a whole, and event queues.

use nic::Bus;
use zerocopy::little_endian::U32;

use super::{refuse, Outcome, Refused, Reply, Request};
use crate::{
    abi::{eqe, EQE_SIZE},
    events::{Eq, Owner},
    messages::{
        queue_type, status, CreateQueueReq, CreateQueueResp, DisableQueueReq, HwcTimeout,
        ListDevicesResp, MaxResourcesResp, RegisterResp, TestEqeReq, VerifyReq, VerifyResp,
        DEVICE_HWC, DEVICE_MANA,
    },
    regs, rules,
    session::{mana_id, Session},
};

/// `GDMA_PROTOCOL_V1`.
const GDMA_PROTOCOL_V1: u64 = 1;
/// `GDMA_DRV_CAP_FLAG_1_HWC_TIMEOUT_RECONFIG`: in the device's flags, it has QUERY_HWC_TIMEOUT.
const HWC_TIMEOUT_RECONFIG: u64 = 1 << 3;
/// `GDMA_DRV_CAP_FLAG_1_DEV_LIST_HOLES_SUP`: in the driver's flags, it skips holes in the device list.
const DEV_LIST_HOLES_SUP: u64 = 1 << 11;
/// `GDMA_PF_CAP_FLAG_1_DYN_INTERRUPT_MODERATION`: in the device's flags, it moderates interrupts.
const DYN_INTERRUPT_MODERATION: u64 = 1 << 15;

impl Session {
    pub(super) fn verify_version(&mut self, bus: &Bus, request: &Request<'_>) -> Outcome {
        let body: VerifyReq = request.body(&bus.report)?;
        let versions = body.protocol_ver_min.get()..=body.protocol_ver_max.get();
        if !versions.contains(&GDMA_PROTOCOL_V1) {
            return Err(
                request.bad_value(&bus.report, format_args!("protocol versions {versions:?}"))
            );
        }
        let caps = body.gd_drv_cap_flags[0].get();
        bus.report.gauge("driver_cap_flags1").set(caps);
        self.driver_caps = Some(caps);
        let mut flags = HWC_TIMEOUT_RECONFIG;
        if self.limits.dim {
            flags |= DYN_INTERRUPT_MODERATION;
        }
        Ok(Reply::new(&VerifyResp {
            gdma_protocol_ver: GDMA_PROTOCOL_V1.into(),
            pf_cap_flags: [flags.into(), 0.into(), 0.into(), 0.into()],
        }))
    }

    pub(super) fn query_max_resources(&self, bus: &Bus) -> Reply {
        let limits = &self.limits;
        Reply::new(&MaxResourcesResp {
            status: 0.into(),
            max_sq: limits.max_sq.into(),
            max_rq: limits.max_rq.into(),
            max_cq: limits.max_cq.into(),
            max_eq: limits.max_eq.into(),
            max_db: (regs::DB_PAGES as u32).into(),
            max_mst: 1024.into(),
            max_cq_mod_ctx: 0.into(),
            max_mod_cq: if limits.dim { limits.max_cq } else { 0 }.into(),
            max_msix: u32::from(bus.irq.count()).into(),
        })
    }

    /// The HWC, then a hole if the driver can skip one, then the Ethernet device.
    pub(super) fn list_devices(&self) -> Reply {
        let skips_holes = self
            .driver_caps
            .is_some_and(|caps| caps & DEV_LIST_HOLES_SUP != 0);
        let mut devs = [U32::ZERO; 64];
        devs[0] = DEVICE_HWC.into();
        devs[if skips_holes { 2 } else { 1 }] = DEVICE_MANA.into();
        Reply::new(&ListDevicesResp {
            num_of_devs: 2.into(),
            reserved: 0.into(),
            devs,
        })
    }

    pub(super) fn query_hwc_timeout(&self, bus: &Bus, request: &Request<'_>) -> Outcome {
        let mut body: HwcTimeout = request.body(&bus.report)?;
        if self.limits.command_timeout_ms != 0 {
            body.timeout_ms = self.limits.command_timeout_ms.into();
        }
        Ok(Reply::new(&body))
    }

    pub(super) fn register_device(&mut self, bus: &Bus) -> Outcome {
        if self.is_registered {
            return Err(refuse(
                &bus.report,
                &rules::COMMAND_ORDER,
                "the device was registered twice",
            ));
        }
        self.is_registered = true;
        Ok(Reply::new(&RegisterResp {
            pdid: mana_id::PDID.into(),
            gpa_mkey: mana_id::GPA_MKEY.into(),
            db_id: mana_id::DOORBELL.into(),
        }))
    }

    /// Everything that the driver made must be gone by now; what is left goes with the device.
    pub(super) fn deregister_device(&mut self, bus: &Bus) -> Reply {
        let eqs: Vec<u32> = self
            .events
            .eqs
            .iter()
            .filter(|(_, eq)| eq.owner == Owner::Mana)
            .map(|(id, _)| *id)
            .collect();
        if !eqs.is_empty() || !self.objects.is_empty() {
            bus.report.violate(
                &rules::QUEUE_LEAK,
                format_args!("EQs {eqs:x?}, objects {:x?}", self.objects.values()),
            );
        }
        if self.regions.unused() > 0 {
            bus.report.violate(
                &rules::REGION_LEAK,
                format_args!("{} regions", self.regions.unused()),
            );
        }
        for handle in self.objects.keys().copied().collect::<Vec<_>>() {
            self.remove_object(handle);
        }
        for id in eqs {
            self.events.remove_eq(id);
        }
        self.regions.clear();
        self.vports.fill_with(Default::default);
        self.is_registered = false;
        Reply::done()
    }

    pub(super) fn generate_test_eqe(&mut self, bus: &mut Bus, request: &Request<'_>) -> Outcome {
        let body: TestEqeReq = request.body(&bus.report)?;
        let id = body.queue_index.get();
        let owner = if request.header.dev_id.get() == DEVICE_HWC {
            Owner::Hwc
        } else {
            Owner::Mana
        };
        if self.events.eqs.get(&id).is_none_or(|eq| eq.owner != owner) {
            return Err(refuse(
                &bus.report,
                &rules::QUEUE_HANDLE,
                format_args!("test event for EQ {id} of {owner:?}"),
            ));
        }
        self.events.event(bus, id, eqe::TEST_EVENT, 0);
        Ok(Reply::done())
    }

    /// Event queues are created by this command; all others come with CREATE_WQ_OBJ.
    pub(super) fn create_queue(&mut self, bus: &Bus, request: &Request<'_>) -> Outcome {
        let report = &bus.report;
        let body: CreateQueueReq = request.body(report)?;
        let kind = body.queue_type.get();
        if kind != queue_type::EQ {
            return Err(refuse(
                report,
                &rules::QUEUE_HANDLE,
                format_args!("CREATE_QUEUE of type {kind}"),
            ));
        }
        if body.pdid.get() != mana_id::PDID || body.doorbell_id.get() != mana_id::DOORBELL {
            return Err(refuse(
                report,
                &rules::QUEUE_OWNER,
                format_args!("PD {} doorbell page {}", body.pdid, body.doorbell_id),
            ));
        }
        let reserved = [body.reserved1, body.reserved2, body.reserved3];
        if reserved.iter().any(|word| word.get() != 0) {
            return Err(request.bad_value(report, format_args!("reserved fields {reserved:?}")));
        }
        let size = body.queue_size.get();
        let throttle = body.log2_throttle_limit.get();
        if throttle > (size / EQE_SIZE).checked_ilog2().unwrap_or(0) {
            return Err(request.bad_value(
                report,
                format_args!("throttle limit {throttle} of an EQ of {size} bytes"),
            ));
        }
        let vector = body.eq_pci_msix_index.get();
        let Some(vector) = u16::try_from(vector)
            .ok()
            .filter(|vector| *vector < bus.irq.count())
        else {
            return Err(refuse(
                report,
                &rules::EQ_VECTOR,
                format_args!("vector {vector} of {}", bus.irq.count()),
            ));
        };
        let count = self
            .events
            .eqs
            .values()
            .filter(|eq| eq.owner == Owner::Mana)
            .count();
        if count >= self.limits.max_eq as usize {
            report.violate(&rules::QUEUE_LIMIT, format_args!("{count} EQs are there"));
            return Err(Refused(status::NO_RESOURCES));
        }
        self.check_ring(report, body.gdma_region.get(), size)?;
        let ring = self.take_ring(report, body.gdma_region.get())?;
        let eqs = &self.events.eqs;
        let id = self.ids.eq.next(|id| eqs.contains_key(&id));
        self.events.add_eq(id, Eq::new(Owner::Mana, ring, vector));
        Ok(Reply::new(&CreateQueueResp {
            queue_index: id.into(),
        }))
    }

    pub(super) fn disable_queue(&mut self, bus: &Bus, request: &Request<'_>) -> Outcome {
        let report = &bus.report;
        let body: DisableQueueReq = request.body(report)?;
        let id = body.queue_index.get();
        let is_own = self
            .events
            .eqs
            .get(&id)
            .is_some_and(|eq| eq.owner == Owner::Mana);
        if body.queue_type.get() != queue_type::EQ || !is_own {
            return Err(refuse(
                report,
                &rules::QUEUE_HANDLE,
                format_args!("DISABLE_QUEUE {id} of type {}", body.queue_type),
            ));
        }
        if body.alloc_res_id_on_creation.get() != 1 {
            return Err(request.bad_value(report, "alloc_res_id_on_creation is not 1"));
        }
        let users: Vec<u32> = self
            .events
            .cqs
            .iter()
            .filter(|(_, cq)| cq.eq() == id)
            .map(|(cq, _)| *cq)
            .collect();
        if !users.is_empty() {
            bus.report
                .violate(&rules::EQ_IN_USE, format_args!("EQ {id}, CQs {users:?}"));
            return Err(Refused(status::INVALID));
        }
        if let Some(eq) = self.events.remove_eq(id) {
            self.regions.release(eq.ring());
        }
        Ok(Reply::done())
    }
}
