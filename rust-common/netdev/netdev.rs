// SPDX-License-Identifier: GPL-2.0

//! Safe abstractions over the kernel's networking core for Ethernet drivers.

pub mod bindings;
