// SPDX-License-Identifier: GPL-2.0
//! Commands of the Ethernet device and its ports.

use nic::{Bus, Report};
use zerocopy::little_endian::U64;

use super::{refuse, Outcome, Refused, Reply, Request};
use crate::{
    messages::{
        BwClampReq, BwClampResp, ConfigRxReq, ConfigRxResp, ConfigVportReq, ConfigVportResp,
        DevConfigReq, DevConfigResp, LinkConfigReq, LinkConfigResp, PhyStatResp, StatReq,
        VportConfigReq, VportConfigResp, REQ_HDR,
    },
    rss::{Coalescing, HASH_TYPES},
    rules,
    session::{mana_id, Session},
    work::Kind,
};

/// Handle of port 0; the others follow.
const FIRST_VPORT: u64 = 0x7670_0000;
/// Speed of each port, Mbit/s.
const LINK_SPEED_MBPS: u32 = 200_000;
/// `MANA_PF_FLAG_1_CQE_8_COALESCING_SUPPORTED`.
const CQE_8_COALESCING_SUPPORTED: u64 = 1 << 5;
/// How long a packet waits for others of its CQE, ns. The model waits until the wire is empty instead.
const CQE_COALESCING_TIMEOUT_NS: u32 = 2048;

/// Address of a port: locally administered, the last byte counts ports.
pub fn mac_address(port: usize) -> [u8; 6] {
    [0x02, 0x4d, 0x41, 0x4e, 0x41, port as u8]
}

impl Session {
    /// The port of a handle.
    pub(super) fn vport(&self, report: &Report, handle: u64) -> Result<usize, Refused> {
        let port = handle
            .checked_sub(FIRST_VPORT)
            .filter(|port| *port < self.vports.len() as u64);
        port.map(|port| port as usize).ok_or_else(|| {
            refuse(
                report,
                &rules::VPORT_HANDLE,
                format_args!("vPort {handle:#x}"),
            )
        })
    }

    /// vPort offset of a port, which goes into the OOB of each packet.
    pub(crate) fn vport_offset(&self, port: usize) -> u16 {
        self.limits.vport_offset + port as u16
    }

    pub(super) fn query_dev_config(&self, bus: &Bus, request: &Request<'_>) -> Outcome {
        let body: DevConfigReq = request.body(&bus.report)?;
        if body.reserved.get() != 0 {
            return Err(request.bad_value(&bus.report, "a reserved field is set"));
        }
        let flags = if self.limits.cqe8_coalescing {
            CQE_8_COALESCING_SUPPORTED
        } else {
            0
        };
        Ok(Reply::new(&DevConfigResp {
            pf_cap_flags: [flags.into(), 0.into(), 0.into(), 0.into()],
            max_num_vports: (self.vports.len() as u16).into(),
            bm_hostmode: 0,
            reserved: 0,
            max_num_eqs: self.limits.max_eq.into(),
            adapter_mtu: self.limits.adapter_mtu.into(),
            reserved2: 0.into(),
            reserved3: 0.into(),
        })
        .version(3))
    }

    pub(super) fn query_gf_stat(&self, bus: &Bus, request: &Request<'_>) -> Outcome {
        let body: StatReq = request.body(&bus.report)?;
        Ok(Reply::new(&self.stats.answer(body.req_stats.get())).version(2))
    }

    /// All traffic is of class 0.
    pub(super) fn query_phy_stat(&self) -> Reply {
        let mut packets = [[U64::ZERO; 2]; 8];
        let mut bytes = [[U64::ZERO; 2]; 8];
        packets[0] = [
            self.counters.rx_packets.get().into(),
            self.counters.tx_packets.get().into(),
        ];
        bytes[0] = [
            self.counters.rx_bytes.get().into(),
            self.counters.tx_bytes.get().into(),
        ];
        Reply::new(&PhyStatResp {
            reported_stats: U64::ZERO,
            drops: [U64::ZERO; 2],
            packets,
            bytes,
            pause: [[U64::ZERO; 2]; 8],
        })
    }

    pub(super) fn query_vport_config(&self, bus: &Bus, request: &Request<'_>) -> Outcome {
        let body: VportConfigReq = request.body(&bus.report)?;
        let port = body.vport_index.get();
        if port as usize >= self.vports.len() {
            return Err(refuse(
                &bus.report,
                &rules::VPORT_HANDLE,
                format_args!("port {port}"),
            ));
        }
        Ok(Reply::new(&VportConfigResp {
            max_num_sq: self.limits.vport_max_queues.into(),
            max_num_rq: self.limits.vport_max_queues.into(),
            num_indirection_ent: self.limits.indirection_entries.into(),
            reserved1: 0.into(),
            mac_addr: mac_address(port as usize),
            reserved2: [0; 2],
            vport: (FIRST_VPORT + u64::from(port)).into(),
        }))
    }

    pub(super) fn config_vport_tx(&mut self, bus: &Bus, request: &Request<'_>) -> Outcome {
        let body: ConfigVportReq = request.body(&bus.report)?;
        let port = self.vport(&bus.report, body.vport.get())?;
        if body.pdid.get() != mana_id::PDID || body.doorbell_pageid.get() != mana_id::DOORBELL {
            return Err(refuse(
                &bus.report,
                &rules::QUEUE_OWNER,
                format_args!(
                    "port {port}: PD {} doorbell page {}",
                    body.pdid, body.doorbell_pageid
                ),
            ));
        }
        self.vports[port].is_configured = true;
        Ok(Reply::new(&ConfigVportResp {
            tx_vport_offset: self.vport_offset(port).into(),
            short_form_allowed: 1,
            reserved: 0,
        }))
    }

    pub(super) fn query_link_config(&self, bus: &Bus, request: &Request<'_>) -> Outcome {
        let body: LinkConfigReq = request.body(&bus.report)?;
        let port = self.vport(&bus.report, body.vport.get())?;
        let speed = match self.vports[port].clamp_mbps {
            0 => LINK_SPEED_MBPS,
            clamp => clamp.min(LINK_SPEED_MBPS),
        };
        Ok(Reply::new(&LinkConfigResp {
            qos_speed_mbps: LINK_SPEED_MBPS.into(),
            qos_unconfigured: 0,
            reserved1: [0; 3],
            link_speed_mbps: speed.into(),
            reserved2: 0.into(),
        })
        .version(2))
    }

    pub(super) fn set_bw_clamp(&mut self, bus: &Bus, request: &Request<'_>) -> Outcome {
        let body: BwClampReq = request.body(&bus.report)?;
        let port = self.vport(&bus.report, body.vport.get())?;
        self.vports[port].clamp_mbps = match body.enable_clamping.get() {
            0 => 0,
            1 => body.link_speed_mbps.get(),
            other => {
                return Err(request.bad_value(&bus.report, format_args!("enable_clamping {other}")))
            }
        };
        Ok(Reply::new(&BwClampResp {
            qos_unconfigured: 0,
            reserved: [0; 7],
        }))
    }

    pub(super) fn config_vport_rx(&mut self, bus: &mut Bus, request: &Request<'_>) -> Outcome {
        let report = &bus.report;
        let body: ConfigRxReq = request.body(report)?;
        let port = self.vport(report, body.vport.get())?;
        let (rx_enable, rss_enable) = (body.rx_enable.get(), body.rss_enable.get());
        if rx_enable > 1
            || rss_enable > 1
            || body.reserved != 0
            || body.reserved2 != [0; 3]
            || body.reserved3 != 0
        {
            return Err(request.bad_value(report, format_args!("{body:x?}")));
        }
        let mut steering = self.vports[port].steering.clone();
        if body.update_default_rxobj != 0 {
            steering.default_rq = self.steered_rq(report, port, body.default_rxobj.get())?;
        }
        if body.update_hashkey != 0 {
            steering.set_key(&body.hashkey);
        }
        if body.update_indir_tab != 0 {
            let entries = usize::from(body.num_indir_entries.get());
            let start = usize::from(body.indir_tab_offset.get());
            let table = request.message.get(start..start + entries * 8);
            let Some(table) = table.filter(|_| {
                entries == self.limits.indirection_entries as usize
                    && start >= REQ_HDR + size_of::<ConfigRxReq>()
            }) else {
                return Err(refuse(
                    report,
                    &rules::STEER_TABLE,
                    format_args!(
                        "{entries} entries at {start} of {} bytes",
                        request.message.len()
                    ),
                ));
            };
            steering.table.clear();
            for entry in table.chunks_exact(8) {
                let handle = entry
                    .iter()
                    .rev()
                    .fold(0, |handle, byte| (handle << 8) | u64::from(*byte));
                steering.table.push(self.steered_rq(report, port, handle)?);
            }
        }
        let types = u32::from(body.rss_hash_types.get());
        if types & !HASH_TYPES != 0 || rss_enable != 0 && types == 0 {
            return Err(request.bad_value(report, format_args!("hash types {types:#x}")));
        }
        steering.hash_types = types;
        steering.is_rx_enabled = rx_enable != 0;
        steering.is_rss_enabled = rss_enable != 0;
        steering.coalescing = match (body.cqe_coalescing_enable, body.cqe8_coalescing_enable) {
            (0, _) => Coalescing::Off,
            (_, 0) => Coalescing::Four,
            _ if self.limits.cqe8_coalescing => Coalescing::Eight,
            _ => {
                return Err(request.bad_value(
                    report,
                    "eight packets per CQE, which the device does not offer",
                ))
            }
        };
        if steering.is_rx_enabled && steering.default_rq.is_none() {
            return Err(refuse(
                report,
                &rules::STEER_DEFAULT,
                format_args!("port {port}"),
            ));
        }
        let has_table = !steering.table.is_empty() && steering.table.iter().all(Option::is_some);
        if steering.is_rx_enabled && steering.is_rss_enabled && !has_table {
            return Err(refuse(
                report,
                &rules::STEER_TABLE,
                format_args!("port {port} has no complete table"),
            ));
        }
        self.flush_coalesced(bus);
        self.vports[port].steering = steering;
        Ok(Reply::new(&ConfigRxResp {
            cqe_coalescing_timeout_ns: CQE_COALESCING_TIMEOUT_NS.into(),
            reserved1: 0.into(),
        })
        .version(2))
    }

    /// The RQ of an object that packets of a port are steered to.
    fn steered_rq(
        &self,
        report: &Report,
        port: usize,
        handle: u64,
    ) -> Result<Option<u32>, Refused> {
        let object = self
            .objects
            .get(&handle)
            .filter(|object| object.kind == Kind::Rq && object.port == port);
        match object {
            Some(object) => Ok(Some(object.wq)),
            None => Err(refuse(
                report,
                &rules::STEER_TABLE,
                format_args!("port {port}, object {handle:#x}"),
            )),
        }
    }
}
