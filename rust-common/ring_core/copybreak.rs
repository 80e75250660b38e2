// SPDX-License-Identifier: GPL-2.0

//! Whether TX copies a packet or maps it.

/// What is copied into the bounce ring; the rest is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// The whole packet.
    Whole,
    /// The linear part; the fragments are mapped.
    Head,
    /// Nothing.
    Nothing,
}

/// Decides for a packet of `len` bytes whose linear part is `head_len`.
///
/// `copybreak` is the `tx-copybreak` tunable in bytes; 0 copies nothing. A part
/// of exactly `copybreak` bytes is copied. Whether the bounce ring has room is
/// the caller's next question; if not, the packet is mapped and counted.
///
/// ```
/// use ring_core::copybreak::{decide, Copied};
///
/// assert_eq!(decide(256, 256, 256), Copied::Whole);
/// assert_eq!(decide(9000, 66, 256), Copied::Head);
/// assert_eq!(decide(9000, 9000, 256), Copied::Nothing);
/// assert_eq!(decide(60, 60, 0), Copied::Nothing);
/// ```
#[inline]
pub const fn decide(len: u32, head_len: u32, copybreak: u32) -> Copied {
    if len == 0 || copybreak == 0 {
        Copied::Nothing
    } else if len <= copybreak {
        Copied::Whole
    } else if 0 < head_len && head_len <= copybreak {
        Copied::Head
    } else {
        Copied::Nothing
    }
}
