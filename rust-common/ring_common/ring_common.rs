// SPDX-License-Identifier: GPL-2.0

//! Mechanisms that Ethernet drivers share, on top of the crates `netdev`
//! (kernel abstractions) and `ring_core` (pure logic). Names no vendor.

use kernel::prelude::*;

mod channel;
pub mod desc_ring;
mod ethtool;
pub mod nic;
pub mod port;
mod reconfigure;
mod rss;
mod rx;
pub mod slab;
mod spsc;
pub mod stats;
mod tx;
mod xdp;

/// The module. It does nothing by itself: drivers call into it.
pub struct RingCommon;

impl kernel::Module for RingCommon {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(RingCommon)
    }
}

module! {
    type: RingCommon,
    name: "ring_common",
    description: "Shared ring and queue mechanisms of Ethernet drivers in Rust",
    license: "GPL v2",
}
