// SPDX-License-Identifier: GPL-2.0
//! Commands of the driver: common checks, and the way to each one.

mod gdma;
mod objects;
mod regions;
mod vports;

pub use vports::mac_address;

use std::fmt::Display;

use nic::{Bus, Report, Rule};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{
    messages::{code, status, ReqHdr, DEVICE_HWC, DEVICE_MANA, REQ_HDR},
    rules,
    session::Session,
};

/// A command with its header.
pub struct Request<'a> {
    /// Its header.
    pub header: ReqHdr,
    /// The whole message.
    pub message: &'a [u8],
}

/// A refused command: the status for the driver. What the driver did wrong is in the report.
pub struct Refused(u32);

/// What a command gives.
type Outcome = Result<Reply, Refused>;

/// The answer to a command.
pub struct Reply {
    /// What follows the header.
    pub body: Vec<u8>,
    /// Newest layout that the body has.
    pub version: u16,
    /// See [`status`].
    pub status: u32,
}

impl Reply {
    fn new(body: &(impl IntoBytes + Immutable)) -> Self {
        Self {
            body: body.as_bytes().to_vec(),
            version: 1,
            status: status::OK,
        }
    }

    fn version(self, version: u16) -> Self {
        Self { version, ..self }
    }

    fn done() -> Self {
        Self {
            body: Vec::new(),
            version: 1,
            status: status::OK,
        }
    }

    /// An answer that is only a status.
    pub fn refused(status: u32) -> Self {
        Self {
            status,
            ..Self::done()
        }
    }
}

/// Records a violation and refuses the command.
fn refuse(report: &Report, rule: &'static Rule, place: impl Display) -> Refused {
    report.violate(rule, place);
    Refused(status::INVALID)
}

impl Request<'_> {
    fn code(&self) -> u32 {
        self.header.req.msg_type.get()
    }

    /// The body after the header.
    fn body<T: FromBytes>(&self, report: &Report) -> Result<T, Refused> {
        self.body_of(report, size_of::<T>())
    }

    /// The body after the header; an older driver's may end after `least` bytes, the rest is then zero.
    fn body_of<T: FromBytes>(&self, report: &Report, least: usize) -> Result<T, Refused> {
        let body = &self.message[REQ_HDR..];
        if body.len() < least {
            return Err(refuse(
                report,
                &rules::COMMAND_SIZE,
                format_args!("command {:#x}: {} bytes", self.code(), self.message.len()),
            ));
        }
        let mut bytes = body.to_vec();
        bytes.resize(body.len().max(size_of::<T>()), 0);
        let (value, _) = T::read_from_prefix(&bytes).map_err(|_| Refused(status::INVALID))?;
        Ok(value)
    }

    /// Refuses a value of the command.
    fn bad_value(&self, report: &Report, what: impl Display) -> Refused {
        refuse(
            report,
            &rules::COMMAND_VALUE,
            format_args!("command {:#x}: {what}", self.code()),
        )
    }
}

impl Session {
    /// Whether a command only takes things back, or keeps packets out before that: a driver that is refused must end up
    /// with things left.
    pub(crate) fn takes_back(code: u32) -> bool {
        matches!(
            code,
            code::DEREGISTER_DEVICE
                | code::DISABLE_QUEUE
                | code::DESTROY_DMA_REGION
                | code::DESTROY_WQ_OBJ
                | code::FENCE_RQ
                | code::CONFIG_VPORT_RX
        )
    }

    /// Executes a command.
    pub(crate) fn execute(&mut self, bus: &mut Bus, request: &Request<'_>) -> Reply {
        let outcome = self
            .check_order(bus, request)
            .and_then(|()| self.dispatch(bus, request));
        outcome.unwrap_or_else(|Refused(status)| Reply::refused(status))
    }

    /// Which device a command is for, and what must have happened before it.
    fn check_order(&self, bus: &Bus, request: &Request<'_>) -> Result<(), Refused> {
        let code = request.code();
        let device = request.header.dev_id.get();
        let place = || format!("command {code:#x} for device {device:#x}");
        let is_verified = self.driver_caps.is_some()
            || matches!(
                code,
                code::VERIFY_VF_DRIVER_VERSION | code::GENERATE_TEST_EQE
            );
        if !is_verified {
            return Err(refuse(&bus.report, &rules::COMMAND_ORDER, place()));
        }
        let fits = match code {
            code::GENERATE_TEST_EQE => device == DEVICE_HWC || device == DEVICE_MANA,
            code::REGISTER_DEVICE
            | code::DEREGISTER_DEVICE
            | code::CREATE_QUEUE
            | code::DISABLE_QUEUE => device == DEVICE_MANA,
            code::QUERY_DEV_CONFIG..=code::QUERY_PHY_STAT => device == DEVICE_MANA,
            _ => true,
        };
        if !fits {
            return Err(refuse(&bus.report, &rules::COMMAND_DEVICE, place()));
        }
        let needs_device = match code {
            code::QUERY_DEV_CONFIG => false,
            code::DEREGISTER_DEVICE | code::CREATE_QUEUE | code::DISABLE_QUEUE => true,
            code::QUERY_GF_STAT..=code::QUERY_PHY_STAT => true,
            _ => false,
        };
        if needs_device && !self.is_registered {
            return Err(refuse(&bus.report, &rules::COMMAND_ORDER, place()));
        }
        Ok(())
    }

    fn dispatch(&mut self, bus: &mut Bus, request: &Request<'_>) -> Outcome {
        match request.code() {
            code::VERIFY_VF_DRIVER_VERSION => self.verify_version(bus, request),
            code::QUERY_MAX_RESOURCES => Ok(self.query_max_resources(bus)),
            code::LIST_DEVICES => Ok(self.list_devices()),
            code::REGISTER_DEVICE => self.register_device(bus),
            code::DEREGISTER_DEVICE => Ok(self.deregister_device(bus)),
            code::GENERATE_TEST_EQE => self.generate_test_eqe(bus, request),
            code::QUERY_HWC_TIMEOUT => self.query_hwc_timeout(bus, request),
            code::CREATE_QUEUE => self.create_queue(bus, request),
            code::DISABLE_QUEUE => self.disable_queue(bus, request),
            code::CREATE_DMA_REGION => self.create_region(bus, request),
            code::DMA_REGION_ADD_PAGES => self.add_pages(bus, request),
            code::DESTROY_DMA_REGION => self.destroy_region(bus, request),
            code::QUERY_DEV_CONFIG => self.query_dev_config(bus, request),
            code::QUERY_GF_STAT => self.query_gf_stat(bus, request),
            code::CONFIG_VPORT_TX => self.config_vport_tx(bus, request),
            code::CREATE_WQ_OBJ => self.create_wq_obj(bus, request),
            code::DESTROY_WQ_OBJ => self.destroy_wq_obj(bus, request),
            code::FENCE_RQ => self.fence_rq(bus, request),
            code::CONFIG_VPORT_RX => self.config_vport_rx(bus, request),
            code::QUERY_VPORT_CONFIG => self.query_vport_config(bus, request),
            code::QUERY_LINK_CONFIG => self.query_link_config(bus, request),
            code::SET_BW_CLAMP => self.set_bw_clamp(bus, request),
            code::QUERY_PHY_STAT => Ok(self.query_phy_stat()),
            other => {
                bus.report
                    .violate(&rules::COMMAND_UNKNOWN, format_args!("{other:#x}"));
                Err(Refused(status::UNSUPPORTED))
            }
        }
    }
}
