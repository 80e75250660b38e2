// SPDX-License-Identifier: GPL-2.0

//! Packets: `struct sk_buff` as an owned, mostly opaque, pointer.
//!
//! A packet to send may be shared with others, so a driver is given a read view of it. The one
//! change that hardware asks for, a template of the headers for TSO, goes through
//! [`TxSkb::prepare_tso`], which copies the head first where it must. Nothing is stored in the
//! packet itself.

use core::{
    mem::MaybeUninit,
    ptr::NonNull, //
};

use kernel::{
    error::to_result,
    prelude::*, //
};

use crate::bindings;

/// Most fragments that a packet has besides its linear part.
pub const MAX_SKB_FRAGS: u32 = bindings::MAX_SKB_FRAGS;

/// Why a packet is dropped, for drop monitors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The ring has no room.
    RingFull,
    /// No memory, or no DMA mapping.
    NoMemory,
    /// The packet could not be mapped for DMA.
    MapFailed,
    /// The device cannot send a packet like this.
    Unsupported,
    /// The port went down, or is about to be reset, with the packet in flight.
    DeviceGone,
}

impl Reason {
    fn as_raw(self) -> bindings::skb_drop_reason {
        match self {
            Self::RingFull => bindings::skb_drop_reason_SKB_DROP_REASON_FULL_RING,
            Self::NoMemory | Self::MapFailed => bindings::skb_drop_reason_SKB_DROP_REASON_NOMEM,
            Self::Unsupported => bindings::skb_drop_reason_SKB_DROP_REASON_DEV_HDR,
            Self::DeviceGone => bindings::skb_drop_reason_SKB_DROP_REASON_DEV_READY,
        }
    }

    /// The reason behind what a helper returned.
    fn check(err: c_int) -> Result<(), Self> {
        if err == 0 {
            Ok(())
        } else if err == ENOMEM.to_errno() {
            Err(Self::NoMemory)
        } else {
            Err(Self::Unsupported)
        }
    }
}

/// How a packet is to be segmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GsoKind {
    /// Not at all.
    None,
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP over IPv4.
    Udp4,
    /// UDP over IPv6.
    Udp6,
    /// Anything else.
    Other,
}

/// IP version of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L3 {
    /// Not IP, or not known: headers are looked at only where an offload is asked for.
    None,
    /// IPv4.
    Ip4,
    /// IPv6.
    Ip6,
}

/// A checksum that is left to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsumPartial {
    /// Offset in the packet from which to sum up, in bytes.
    pub start: u32,
    /// Offset behind `start` of the checksum field, in bytes.
    pub offset: u16,
}

/// What a driver asks about a packet, gathered by one call.
///
/// For an encapsulated packet the offsets and the header length are those of the inner headers.
/// Headers are looked at only where an offload is asked for; of other packets nothing is known.
#[repr(transparent)]
pub struct TxMeta(bindings::rc_helper_tx_meta);

/// Methods that return a field as it is.
macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $field:ident -> $type:ty,)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name(&self) -> $type {
                self.0.$field
            }
        )*
    };
}

impl TxMeta {
    fields! {
        /// Bytes in all.
        #[expect(clippy::len_without_is_empty, reason = "of a packet")]
        len: len -> u32,
        /// Bytes of the linear part.
        head_len: head_len -> u32,
        /// Bytes on the wire, without FCS: with GSO, each segment has its headers.
        bytes_on_wire: wire_bytes -> u32,
        /// Packets on the wire: the segments with GSO, else 1.
        packets: packets -> u32,
        /// Bytes up to the end of the L4 header with GSO, else 0.
        hdr_len: header_len -> u32,
        /// Payload bytes of a segment with GSO, else 0.
        gso_size: gso_size -> u32,
        /// Offset of the L3 header, 0 unless known.
        network_offset: network_offset -> u32,
        /// Offset of the L4 header, 0 unless known.
        transport_offset: transport_offset -> u32,
        /// Fragments besides the linear part.
        nr_frags: nr_frags -> u8,
        /// The TX queue that it is sent on.
        queue: queue -> u16,
        /// IP protocol number, 0 unless known.
        l4_proto: l4 -> u8,
    }

    pub(crate) fn as_raw(&self) -> &bindings::rc_helper_tx_meta {
        &self.0
    }

    /// That of an XDP frame of `len` bytes to send on `queue`: one piece that asks for nothing, but for
    /// the tag that is to be inserted.
    #[inline(always)]
    pub fn of_frame(queue: u16, len: u32, vlan: Option<u16>) -> Self {
        Self(bindings::rc_helper_tx_meta {
            len,
            head_len: len,
            wire_bytes: len,
            packets: 1,
            header_len: 0,
            gso_size: 0,
            network_offset: 0,
            transport_offset: 0,
            csum_start: 0,
            csum_offset: 0,
            vlan_tci: vlan.unwrap_or(0),
            queue,
            nr_frags: 0,
            // CAST: Small constants.
            gso_kind: bindings::RC_HELPER_GSO_NONE as u8,
            l3: 0,
            l4: 0,
            // CAST: As above.
            flags: if vlan.is_some() {
                bindings::RC_HELPER_TX_VLAN as u8
            } else {
                0
            },
        })
    }

    #[inline(always)]
    fn has(&self, flag: u32) -> bool {
        u32::from(self.0.flags) & flag != 0
    }

    /// How it is to be segmented.
    #[inline]
    pub fn gso_kind(&self) -> GsoKind {
        match u32::from(self.0.gso_kind) {
            bindings::RC_HELPER_GSO_NONE => GsoKind::None,
            bindings::RC_HELPER_GSO_TCP4 => GsoKind::Tcp4,
            bindings::RC_HELPER_GSO_TCP6 => GsoKind::Tcp6,
            bindings::RC_HELPER_GSO_UDP4 => GsoKind::Udp4,
            bindings::RC_HELPER_GSO_UDP6 => GsoKind::Udp6,
            _ => GsoKind::Other,
        }
    }

    /// IP version.
    #[inline]
    pub fn l3(&self) -> L3 {
        match self.0.l3 {
            4 => L3::Ip4,
            6 => L3::Ip6,
            _ => L3::None,
        }
    }

    /// The checksum that is left to the device.
    #[inline]
    pub fn csum(&self) -> Option<CsumPartial> {
        self.csum_partial().then_some(CsumPartial {
            start: self.0.csum_start,
            offset: self.0.csum_offset,
        })
    }

    /// Tag control information to insert, of EtherType 0x8100.
    #[inline]
    pub fn vlan(&self) -> Option<u16> {
        self.has(bindings::RC_HELPER_TX_VLAN)
            .then_some(self.0.vlan_tci)
    }

    /// Whether a checksum is left to the device.
    #[inline]
    pub fn csum_partial(&self) -> bool {
        self.has(bindings::RC_HELPER_TX_CSUM)
    }

    /// Whether the offsets are those of inner headers.
    #[inline]
    pub fn encapsulated(&self) -> bool {
        self.has(bindings::RC_HELPER_TX_ENCAP)
    }

    /// Whether the core has another packet for this queue and calls again at once.
    #[inline]
    pub fn more(&self) -> bool {
        self.has(bindings::RC_HELPER_TX_MORE)
    }

    /// Whether it is known to be TCP.
    #[inline]
    pub fn is_tcp(&self) -> bool {
        u32::from(self.l4_proto()) == bindings::IPPROTO_TCP
    }

    /// Whether it is known to be UDP.
    #[inline]
    pub fn is_udp(&self) -> bool {
        u32::from(self.l4_proto()) == bindings::IPPROTO_UDP
    }

    /// Whether it is known to be IPv4.
    #[inline]
    pub fn is_ipv4(&self) -> bool {
        self.l3() == L3::Ip4
    }

    /// Whether it is known to be IPv6.
    #[inline]
    pub fn is_ipv6(&self) -> bool {
        self.l3() == L3::Ip6
    }
}

/// A packet that the core has given to a driver to send.
///
/// Each way through xmit ends it by a name: [`into_in_flight`](Self::into_in_flight) or
/// [`drop_reason`](Self::drop_reason).
///
/// # Invariants
///
/// `ptr` is valid, and one count of it belongs to this.
#[must_use = "a packet is sent, or dropped with a reason"]
pub struct TxSkb {
    ptr: NonNull<bindings::sk_buff>,
}

// SAFETY: A packet belongs to no thread.
unsafe impl Send for TxSkb {}

impl TxSkb {
    /// Takes a packet from the core.
    ///
    /// # Safety
    ///
    /// `ptr` is valid, and the caller gives up one count of it.
    pub(crate) unsafe fn from_raw(ptr: *mut bindings::sk_buff) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            // SAFETY: A valid pointer is not null.
            ptr: unsafe { NonNull::new_unchecked(ptr) },
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut bindings::sk_buff {
        self.ptr.as_ptr()
    }

    fn into_raw(self) -> *mut bindings::sk_buff {
        let ptr = self.as_ptr();
        core::mem::forget(self);
        ptr
    }

    /// Gathers in `meta` what a driver asks about the packet, with the queue whose xmit lock this CPU
    /// holds; `None` if it holds none.
    ///
    /// # Safety
    ///
    /// `dev` is valid, and this is within its `ndo_start_xmit`.
    #[inline(always)]
    pub(crate) unsafe fn describe<'a>(
        &self,
        dev: *const bindings::net_device,
        meta: &'a mut MaybeUninit<TxMeta>,
    ) -> Option<&'a mut TxMeta> {
        // `TxMeta` is a transparent wrapper.
        let raw = meta.as_mut_ptr().cast();
        // SAFETY: The packet is valid, and so is the device by the safety requirement.
        let owned = unsafe { bindings::rc_helper_tx_describe(dev, self.as_ptr(), raw) };
        // SAFETY: The helper has written all of it.
        owned.then(|| unsafe { meta.assume_init_mut() })
    }

    /// Turns the headers of a TCP GSO packet into the template that devices want: no IP length, no
    /// IPv4 checksum, and in the TCP header the checksum of the pseudo header without its length.
    ///
    /// # Errors
    ///
    /// [`Reason::Unsupported`] if it is no TCP GSO packet or somebody else holds it too,
    /// [`Reason::NoMemory`] if the head is shared and there is no memory for a copy.
    pub fn prepare_tso(&mut self) -> Result<(), Reason> {
        // SAFETY: The packet is valid, and owned.
        Reason::check(unsafe { bindings::rc_helper_tx_prepare_tso(self.as_ptr()) })
    }

    /// Fills in the checksum that was left to the device, for a packet that the device cannot do.
    ///
    /// # Errors
    ///
    /// [`Reason::Unsupported`] if somebody else holds it too or it is damaged,
    /// [`Reason::NoMemory`] if the head is shared and there is no memory for a copy.
    pub fn checksum_help(&mut self, meta: &mut TxMeta) -> Result<(), Reason> {
        // SAFETY: The packet is valid, and owned.
        Reason::check(unsafe { bindings::rc_helper_tx_checksum(self.as_ptr()) })?;
        // CAST: The flag is one bit of eight.
        meta.0.flags &= !(bindings::RC_HELPER_TX_CSUM as u8);
        Ok(())
    }

    /// Copies all of the packet into its linear part.
    ///
    /// # Errors
    ///
    /// [`Reason::Unsupported`] if somebody else holds it too, [`Reason::NoMemory`] if there is no
    /// memory.
    pub fn linearize(&mut self, meta: &mut TxMeta) -> Result<(), Reason> {
        // SAFETY: The packet is valid, and owned.
        Reason::check(unsafe { bindings::rc_helper_tx_linearize(self.as_ptr()) })?;
        meta.0.head_len = meta.0.len;
        meta.0.nr_frags = 0;
        Ok(())
    }

    /// Pads the packet with zeroes to `len` bytes.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there is no memory; the packet is dropped.
    pub fn pad_to(self, len: u32) -> Result<Self> {
        let ptr = self.into_raw();
        // SAFETY: The packet is valid, and owned; on error the helper frees it.
        to_result(unsafe { bindings::rc_helper_tx_pad(ptr, len) })?;
        // SAFETY: It still is.
        Ok(unsafe { Self::from_raw(ptr) })
    }

    /// Marks the packet as one that the device has.
    #[inline]
    pub fn into_in_flight(self) -> InFlightSkb {
        InFlightSkb { skb: self }
    }

    /// Frees the packet as not sent.
    pub fn drop_reason(self, reason: Reason) {
        // SAFETY: The packet is valid, and its count is given up.
        unsafe { bindings::rc_helper_tx_drop(self.into_raw(), reason.as_raw()) };
    }
}

impl Drop for TxSkb {
    /// A way out that forgot to end the packet: it is freed all the same.
    fn drop(&mut self) {
        // SAFETY: The packet is valid, and its count ends here.
        unsafe {
            bindings::rc_helper_tx_drop(
                self.as_ptr(),
                bindings::skb_drop_reason_SKB_DROP_REASON_NOT_SPECIFIED,
            )
        };
    }
}

/// A packet that the device reads.
///
/// It is ended together with its mappings: see [`PieceUnmapper`](crate::dma::PieceUnmapper).
#[must_use = "a packet is consumed, or dropped with a reason"]
pub struct InFlightSkb {
    skb: TxSkb,
}

impl InFlightSkb {
    #[inline]
    pub(crate) fn into_raw(self) -> *mut bindings::sk_buff {
        self.skb.into_raw()
    }

    /// Frees the packet as not sent.
    pub fn drop_reason(self, reason: Reason) {
        self.skb.drop_reason(reason);
    }
}

/// What a device found out about the checksum of a received packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RxCsum {
    /// Nothing.
    #[default]
    None,
    /// The L4 checksum is right.
    Unnecessary,
}

/// What an RSS hash was computed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashKind {
    /// L3 addresses.
    L3,
    /// L3 addresses and L4 ports.
    L4,
}

/// What a device found out about a received packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct RxInfo {
    /// Its checksum.
    pub csum: RxCsum,
    /// Its RSS hash.
    pub hash: Option<(u32, HashKind)>,
    /// The tag control information that the device took out of it, of EtherType 0x8100.
    pub vlan: Option<u16>,
}

impl RxInfo {
    /// What the helpers are told of a packet of `len` bytes behind `headroom`.
    #[inline(always)]
    pub(crate) fn to_raw(self, headroom: u32, len: u32, queue: u16) -> bindings::rc_helper_rx_info {
        let mut raw = bindings::rc_helper_rx_info {
            headroom,
            len,
            hash: 0,
            vlan_tci: 0,
            queue,
            flags: 0,
        };
        let mut flags = 0;
        if self.csum == RxCsum::Unnecessary {
            flags |= bindings::RC_HELPER_RX_CSUM_OK;
        }
        if let Some((hash, kind)) = self.hash {
            raw.hash = hash;
            flags |= match kind {
                HashKind::L3 => bindings::RC_HELPER_RX_HASH_L3,
                HashKind::L4 => bindings::RC_HELPER_RX_HASH_L4,
            };
        }
        if let Some(tci) = self.vlan {
            raw.vlan_tci = tci;
            flags |= bindings::RC_HELPER_RX_VLAN;
        }
        // CAST: The flags are the low bits.
        raw.flags = flags as u8;
        raw
    }
}
