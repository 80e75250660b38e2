// SPDX-License-Identifier: GPL-2.0

//! Offload features of a network device.

use crate::bindings;
use core::ops::{
    BitAnd,
    BitOr,
    BitOrAssign,
    Sub, //
};

/// A set of features, `netdev_features_t`
/// (Documentation/networking/netdev-features.rst).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(u64);

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident = $bit:ident;)*) => {
        impl Features {
            $($(#[$doc])* pub const $name: Self = Self(1 << bindings::$bit);)*
        }
    };
}

features! {
    /// Scatter-gather: packets of several pieces.
    SG = NETIF_F_SG_BIT;
    /// TX checksum of TCP and UDP over IPv4.
    IP_CSUM = NETIF_F_IP_CSUM_BIT;
    /// TX checksum of TCP and UDP over IPv6.
    IPV6_CSUM = NETIF_F_IPV6_CSUM_BIT;
    /// TX checksum anywhere in the packet, by start and offset.
    HW_CSUM = NETIF_F_HW_CSUM_BIT;
    /// RX checksum.
    RXCSUM = NETIF_F_RXCSUM_BIT;
    /// RX hash.
    RXHASH = NETIF_F_RXHASH_BIT;
    /// DMA to all of memory.
    HIGHDMA = NETIF_F_HIGHDMA_BIT;
    /// TCP segmentation over IPv4.
    TSO = NETIF_F_TSO_BIT;
    /// TCP segmentation over IPv6.
    TSO6 = NETIF_F_TSO6_BIT;
    /// TCP segmentation of packets with ECN.
    TSO_ECN = NETIF_F_TSO_ECN_BIT;
    /// UDP segmentation (not fragmentation).
    GSO_UDP_L4 = NETIF_F_GSO_UDP_L4_BIT;
    /// Segmentation inside a UDP tunnel without outer checksum.
    GSO_UDP_TUNNEL = NETIF_F_GSO_UDP_TUNNEL_BIT;
    /// Segmentation inside a UDP tunnel with outer checksum.
    GSO_UDP_TUNNEL_CSUM = NETIF_F_GSO_UDP_TUNNEL_CSUM_BIT;
    /// Segmentation inside GRE without checksum.
    GSO_GRE = NETIF_F_GSO_GRE_BIT;
    /// Merging of received segments in software.
    GRO = NETIF_F_GRO_BIT;
    /// Merging of received segments in hardware, lossless.
    GRO_HW = NETIF_F_GRO_HW_BIT;
    /// Insertion of a VLAN tag on TX.
    HW_VLAN_CTAG_TX = NETIF_F_HW_VLAN_CTAG_TX_BIT;
    /// Removal of the VLAN tag on RX.
    HW_VLAN_CTAG_RX = NETIF_F_HW_VLAN_CTAG_RX_BIT;
    /// Steering rules (ethtool -N).
    NTUPLE = NETIF_F_NTUPLE_BIT;
    /// Loopback inside the device.
    LOOPBACK = NETIF_F_LOOPBACK_BIT;
    /// Frame check sequence handed up on RX.
    RXFCS = NETIF_F_RXFCS_BIT;
    /// Broken frames handed up on RX.
    RXALL = NETIF_F_RXALL_BIT;
}

impl Features {
    /// No feature.
    pub const NONE: Self = Self(0);

    /// Every kind of segmentation offload, known here or not.
    pub const ALL_GSO: Self = Self(
        (u64::MAX << bindings::NETIF_F_GSO_SHIFT) & (u64::MAX >> (63 - bindings::NETIF_F_GSO_LAST)),
    );

    pub(crate) const fn from_raw(raw: bindings::netdev_features_t) -> Self {
        Self(raw)
    }

    pub(crate) const fn into_raw(self) -> bindings::netdev_features_t {
        self.0
    }

    /// Union that also works in constants.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Are all of `other` in this set?
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Is any of `other` in this set?
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Features {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

impl BitOrAssign for Features {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

impl BitAnd for Features {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// Set difference.
impl Sub for Features {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}
