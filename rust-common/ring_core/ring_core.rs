// SPDX-License-Identifier: GPL-2.0

//! Pure ring logic shared by all drivers: no kernel, no hardware, no memory.
//!
//! Everything here is arithmetic on numbers that a caller owns. It is compiled
//! twice from the same files: by kbuild into `ring_common.ko`, and by cargo on
//! the host, where the tests run.
//!
//! Common to all items unless they say otherwise:
//!
//! * Context: any. Nothing sleeps, allocates, locks or logs.
//! * Locking: none. A `&mut` is the caller's proof of exclusive access; where
//!   two CPUs share a ring, [`shared`] says which count each of them owns.
//! * Errors: `Option` or a small error type. Nothing panics, whatever number a
//!   device or a user supplies.

#![cfg_attr(not(MODULE), no_std)] // kbuild passes `no_std` itself
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

pub mod arm;
pub mod bounce;
pub mod copybreak;
pub mod doorbell;
pub mod index;
pub mod owner;
pub mod queue_map;
pub mod shared;
pub mod slab;
pub mod stop;
