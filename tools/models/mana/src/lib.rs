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
//!
//! # Counters
//! * `doorbell_sq`, `doorbell_rq`, `doorbell_cq`, `doorbell_eq`, `doorbell_dim`: doorbells of the Ethernet
//!   device; `doorbell_hwc`: those of the HWC; `doorbell_sq_empty`, `doorbell_rq_empty`: those that announced
//!   nothing; `doorbell_after_destroy`: those that came when no HWC was there any more;
//! * `sq_wqes`, `rq_wqes`: entries announced; `sq_wqes_per_doorbell_max`, `rq_wqes_per_doorbell_max`: the most
//!   that one doorbell announced;
//! * `cqes`, `eqes`, `cq_arms`, `moderated_events`, `dropped_completions`;
//! * `tx_packets`, `tx_bytes`, `rx_packets`, `rx_bytes`: frames on the wires; `port0_txq0_packets` and so on:
//!   packets of one queue, LSO packets counted once;
//! * `tx_lso_packets`, `tx_lso_segments`, `tx_csum_packets`, `tx_vlan_packets`, `tx_errors`;
//! * `rx_no_wqe`, `rx_truncated`, `rx_filtered`, `rx_too_long`, `rx_disabled`: frames that were lost;
//!   `rx_coalesced_cqes`;
//! * `command.NAME`: commands; `hwc_tx_messages`, `hwc_rx_messages`, `hwc_established`;
//! * gauge `driver_cap_flags1`: capabilities that the driver told.
//!
//! The knobs are documented at [`limits::Limits`].

#![forbid(unsafe_code)]

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
