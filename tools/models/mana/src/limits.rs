// SPDX-License-Identifier: GPL-2.0
//! What the device offers; each limit is a knob.

use nic::Knobs;

/// Names of the knobs of this model.
pub const KNOBS: &[&str] = &[
    "adapter_mtu",
    "cqe8_coalescing",
    "dim",
    "indirection_entries",
    "max_cq",
    "max_eq",
    "max_rq",
    "max_sq",
    "promiscuous",
    "source_check",
    "vport_max_queues",
    "vport_offset",
];

/// The limits and options of one session; read from the knobs when the HWC is established.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `max_sq=N`: send queues.
    pub max_sq: u32,
    /// `max_rq=N`: receive queues.
    pub max_rq: u32,
    /// `max_cq=N`: completion queues.
    pub max_cq: u32,
    /// `max_eq=N`: event queues.
    pub max_eq: u32,
    /// `vport_max_queues=N`: send queues and receive queues of one port.
    pub vport_max_queues: u32,
    /// `adapter_mtu=N`: longest frame, Ethernet header included, bytes.
    pub adapter_mtu: u16,
    /// `indirection_entries=N`: entries of the indirection table.
    pub indirection_entries: u32,
    /// `dim=1`: the device moderates interrupts and takes the DIM doorbell.
    pub dim: bool,
    /// `cqe8_coalescing=1`: up to eight packets per CQE.
    pub cqe8_coalescing: bool,
    /// Command timeout that the device asks for; 0 = the driver's.
    pub command_timeout_ms: u32,
    /// `vport_offset=N`: vPort offset of port 0; above 255 short-format packets cannot carry it.
    pub vport_offset: u16,
    /// `promiscuous=1`: ports receive unicast frames for other addresses too.
    pub promiscuous: bool,
    /// `source_check=1`: ports send only frames with their own source address.
    pub source_check: bool,
}

impl Limits {
    /// The limits that the knobs give.
    pub fn new(knobs: &Knobs) -> Self {
        let number = |name, default: u64| knobs.number(name).unwrap_or(default);
        Self {
            max_sq: number("max_sq", 512) as u32,
            max_rq: number("max_rq", 512) as u32,
            max_cq: number("max_cq", 1024) as u32,
            max_eq: number("max_eq", 256) as u32,
            vport_max_queues: number("vport_max_queues", 64) as u32,
            adapter_mtu: number("adapter_mtu", 9216) as u16,
            indirection_entries: number("indirection_entries", 64) as u32,
            dim: number("dim", 0) != 0,
            cqe8_coalescing: number("cqe8_coalescing", 0) != 0,
            command_timeout_ms: knobs.command_timeout_ms,
            vport_offset: number("vport_offset", 3) as u16,
            promiscuous: number("promiscuous", 0) != 0,
            source_check: number("source_check", 0) != 0,
        }
    }
}
