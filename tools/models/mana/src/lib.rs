// SPDX-License-Identifier: GPL-2.0
//! Model of the VF of a Microsoft Azure Network Adapter (MANA), PCI 1414:00ba.
//!
//! Written from what the unmodified C driver of Linux 7.3 expects, and proved by that driver.
//! It is strict: whatever the C driver would never do is a violation of one of [`rules::RULES`].
//!
//! * [`regs`], [`shm`]: BAR 0 and the shared memory that bootstraps the hardware channel (HWC);
//! * [`session`]: everything that lives as long as an HWC;
//! * [`hwc`], [`commands`], [`messages`]: commands of the driver;
//! * [`ring`], [`events`], [`work`], [`abi`]: queues and their entries;
//! * [`tx`], [`rx`], [`rss`], [`stats`]: packets.

pub mod abi;
pub mod commands;
pub mod device;
pub mod events;
pub mod hwc;
pub mod limits;
pub mod messages;
pub mod regs;
pub mod ring;
pub mod rss;
pub mod rules;
pub mod rx;
pub mod session;
pub mod shm;
pub mod stats;
pub mod tx;
pub mod work;

pub use device::Mana;
