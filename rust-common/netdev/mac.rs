// SPDX-License-Identifier: GPL-2.0

//! Ethernet addresses.

use kernel::fmt;

/// The address of one Ethernet station.
///
/// # Invariants
///
/// Neither zero nor a group address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacAddress([u8; 6]);

impl MacAddress {
    /// Takes six bytes in the order on the wire; `None` if no station can have
    /// that address.
    pub fn new(bytes: [u8; 6]) -> Option<Self> {
        let is_group = bytes[0] & 1 != 0;
        // INVARIANT: Both are checked here.
        (!is_group && bytes != [0; 6]).then_some(Self(bytes))
    }

    /// Returns the bytes in the order on the wire.
    pub fn as_bytes(&self) -> &[u8; 6] {
        &self.0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}
