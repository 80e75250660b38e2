// SPDX-License-Identifier: GPL-2.0
//! `model-mana`: the MANA model as a process that QEMU's vfio-user-pci connects to.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    nic::run::run("model-mana", mana::Mana::new)
}
