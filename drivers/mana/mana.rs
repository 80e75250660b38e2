// SPDX-License-Identifier: GPL-2.0

//! Driver for the Microsoft Azure Network Adapter (MANA).

#![deny(unsafe_code)]

use kernel::prelude::*;

struct Mana;

impl kernel::Module for Mana {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Mana)
    }
}

module! {
    type: Mana,
    name: "mana_rs",
    description: "Microsoft Azure Network Adapter driver",
    license: "GPL v2",
}
