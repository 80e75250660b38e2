// SPDX-License-Identifier: GPL-2.0

//! Driver for the Microsoft Azure Network Adapter (MANA), virtual function.
//!
//! C version of this driver: `drivers/net/ethernet/microsoft/mana`.
//!
//! # Definitions
//!
//! - **GDMA**: the part of the adapter that its functions share: queues, events
//!   and memory.
//! - **HWC**: hardware channel, through which the driver sends commands.
//! - **SMC**: shared memory channel, which boots the HWC.
//! - **EQ, CQ, SQ, RQ**: event, completion, send and receive queue. An **EQE**,
//!   **CQE** or **WQE** is an entry of an EQ, a CQ, or one of the other two.
//! - **OOB**: out-of-band data, what an entry says besides addresses.
//! - **vPort**: a port of the virtual function.

#![deny(unsafe_code)]

mod adapter;
mod bits;
mod driver;
mod gdma;
mod hwc;
mod link;
mod machine;
mod port;
mod ports;
mod regs;
mod rx;
mod shm;
mod stats;
mod tx;

netdev::module_pci_driver! {
    type: driver::Mana,
    name: "mana_rs",
    description: "Microsoft Azure Network Adapter driver",
    license: "GPL v2",
}
