// SPDX-License-Identifier: GPL-2.0

//! Safe abstractions over the kernel's networking core for Ethernet drivers.

pub(crate) mod bindings;
pub mod completion;
pub mod cpu;
pub mod device;
pub mod dma;
pub mod ethtool;
pub mod features;
pub mod irq;
pub mod lock;
pub mod log;
pub mod mac;
pub mod mmio;
pub mod napi;
pub mod page_pool;
pub mod pci;
pub mod skb;
pub mod stats;
pub mod tx_lock;
pub mod tx_queue;
pub mod work;
pub mod xdp;
