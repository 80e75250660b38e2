// SPDX-License-Identifier: GPL-2.0

//! Safe abstractions over the kernel's networking core for Ethernet drivers.

pub mod bindings;
pub mod device;
pub mod ethtool;
pub mod features;
pub mod lock;
pub mod log;
pub mod mac;
pub mod skb;
pub mod stats;
pub mod tx_lock;
