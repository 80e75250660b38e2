// SPDX-License-Identifier: GPL-2.0

//! Settings and their C structures.

use crate::bindings;

/// Which optional members of [`Ringparam`] a device has.
#[derive(Clone, Copy, Debug)]
pub struct RingKinds(pub(super) u32);

impl RingKinds {
    /// None.
    pub const NONE: Self = Self(0);
    /// [`Ringparam::rx_buf_len`].
    pub const RX_BUF_LEN: Self =
        Self(bindings::ethtool_supported_ring_param_ETHTOOL_RING_USE_RX_BUF_LEN);
    /// [`Ringparam::tx_push`].
    pub const TX_PUSH: Self = Self(bindings::ethtool_supported_ring_param_ETHTOOL_RING_USE_TX_PUSH);
    /// [`Ringparam::tx_push_buf_len`].
    pub const TX_PUSH_BUF_LEN: Self =
        Self(bindings::ethtool_supported_ring_param_ETHTOOL_RING_USE_TX_PUSH_BUF_LEN);

    /// Union.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Sizes of rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ringparam {
    /// Most packets in an RX ring.
    pub rx_max_pending: u32,
    /// Most packets in a TX ring.
    pub tx_max_pending: u32,
    /// Packets in an RX ring.
    pub rx_pending: u32,
    /// Packets in a TX ring.
    pub tx_pending: u32,
    /// Bytes in an RX buffer.
    pub rx_buf_len: u32,
    /// Are descriptors written to the device, not fetched by it?
    pub tx_push: bool,
    /// Bytes of a packet that may lie in its descriptor.
    pub tx_push_buf_len: u32,
    /// Largest `tx_push_buf_len`.
    pub tx_push_buf_max_len: u32,
}

impl Ringparam {
    pub(super) fn from_raw(
        ring: &bindings::ethtool_ringparam,
        kernel_ring: &bindings::kernel_ethtool_ringparam,
    ) -> Self {
        Self {
            rx_max_pending: ring.rx_max_pending,
            tx_max_pending: ring.tx_max_pending,
            rx_pending: ring.rx_pending,
            tx_pending: ring.tx_pending,
            rx_buf_len: kernel_ring.rx_buf_len,
            tx_push: kernel_ring.tx_push != 0,
            tx_push_buf_len: kernel_ring.tx_push_buf_len,
            tx_push_buf_max_len: kernel_ring.tx_push_buf_max_len,
        }
    }

    pub(super) fn fill(
        &self,
        ring: &mut bindings::ethtool_ringparam,
        kernel_ring: &mut bindings::kernel_ethtool_ringparam,
    ) {
        ring.rx_max_pending = self.rx_max_pending;
        ring.tx_max_pending = self.tx_max_pending;
        ring.rx_pending = self.rx_pending;
        ring.tx_pending = self.tx_pending;
        kernel_ring.rx_buf_len = self.rx_buf_len;
        kernel_ring.tx_push = self.tx_push.into();
        kernel_ring.tx_push_buf_len = self.tx_push_buf_len;
        kernel_ring.tx_push_buf_max_len = self.tx_push_buf_max_len;
    }
}

/// Numbers of channels: an interrupt with the queues that it serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    /// Most channels with RX queues only.
    pub max_rx: u32,
    /// Most channels with TX queues only.
    pub max_tx: u32,
    /// Most channels for other things.
    pub max_other: u32,
    /// Most channels with RX and TX queues.
    pub max_combined: u32,
    /// Channels with RX queues only.
    pub rx: u32,
    /// Channels with TX queues only.
    pub tx: u32,
    /// Channels for other things.
    pub other: u32,
    /// Channels with RX and TX queues.
    pub combined: u32,
}

impl Channels {
    pub(super) fn from_raw(channels: &bindings::ethtool_channels) -> Self {
        Self {
            max_rx: channels.max_rx,
            max_tx: channels.max_tx,
            max_other: channels.max_other,
            max_combined: channels.max_combined,
            rx: channels.rx_count,
            tx: channels.tx_count,
            other: channels.other_count,
            combined: channels.combined_count,
        }
    }

    pub(super) fn fill(&self, channels: &mut bindings::ethtool_channels) {
        channels.max_rx = self.max_rx;
        channels.max_tx = self.max_tx;
        channels.max_other = self.max_other;
        channels.max_combined = self.max_combined;
        channels.rx_count = self.rx;
        channels.tx_count = self.tx;
        channels.other_count = self.other;
        channels.combined_count = self.combined;
    }
}

/// Hash function that spreads received packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashFunction {
    /// Toeplitz.
    Toeplitz,
    /// Exclusive or.
    Xor,
    /// CRC-32.
    Crc32,
}

impl HashFunction {
    pub(super) fn into_raw(self) -> u8 {
        match self {
            Self::Toeplitz => 1 << bindings::ETH_RSS_HASH_TOP_BIT,
            Self::Xor => 1 << bindings::ETH_RSS_HASH_XOR_BIT,
            Self::Crc32 => 1 << bindings::ETH_RSS_HASH_CRC32_BIT,
        }
    }

    pub(super) fn from_raw(raw: u8) -> Option<Self> {
        [Self::Toeplitz, Self::Xor, Self::Crc32]
            .into_iter()
            .find(|function| function.into_raw() == raw)
    }
}

/// What is to change about the choice of RX queues; `None` stays.
pub struct RxfhChange<'a> {
    /// Hash function.
    pub function: Option<HashFunction>,
    /// Indirection table: RX queue by the low bits of the hash.
    pub indir: Option<&'a [u32]>,
    /// Hash key.
    pub key: Option<&'a [u8]>,
}

/// State of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSettings {
    /// Megabits per second; `None` if not known, or without link.
    pub speed: Option<u32>,
    /// Both directions at once? `None` if not known.
    pub full_duplex: Option<bool>,
}

impl LinkSettings {
    pub(super) fn fill(&self, settings: &mut bindings::ethtool_link_settings) {
        let duplex = match self.full_duplex {
            Some(true) => bindings::DUPLEX_FULL,
            Some(false) => bindings::DUPLEX_HALF,
            None => bindings::DUPLEX_UNKNOWN,
        };
        // CAST: The constants fit; SPEED_UNKNOWN is all ones by definition.
        settings.speed = self.speed.unwrap_or(bindings::SPEED_UNKNOWN as u32);
        settings.duplex = duplex as u8;
        settings.port = bindings::PORT_OTHER as u8;
    }
}

/// Which members of [`Coalesce`] a device has.
#[derive(Clone, Copy, Debug)]
pub struct CoalesceKinds(pub(super) u32);

impl CoalesceKinds {
    /// None.
    pub const NONE: Self = Self(0);
    /// [`Coalesce::rx_usecs`].
    pub const RX_USECS: Self = Self(bindings::ETHTOOL_COALESCE_RX_USECS);
    /// [`Coalesce::rx_frames`].
    pub const RX_FRAMES: Self = Self(bindings::ETHTOOL_COALESCE_RX_MAX_FRAMES);
    /// [`Coalesce::tx_usecs`].
    pub const TX_USECS: Self = Self(bindings::ETHTOOL_COALESCE_TX_USECS);
    /// [`Coalesce::tx_frames`].
    pub const TX_FRAMES: Self = Self(bindings::ETHTOOL_COALESCE_TX_MAX_FRAMES);
    /// [`Coalesce::adaptive_rx`].
    pub const ADAPTIVE_RX: Self = Self(bindings::ETHTOOL_COALESCE_USE_ADAPTIVE_RX);
    /// [`Coalesce::adaptive_tx`].
    pub const ADAPTIVE_TX: Self = Self(bindings::ETHTOOL_COALESCE_USE_ADAPTIVE_TX);

    /// Union.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How interrupts are delayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coalesce {
    /// Microseconds from a received packet to its interrupt, at most.
    pub rx_usecs: u32,
    /// Received packets before an interrupt, at most.
    pub rx_frames: u32,
    /// Microseconds from a sent packet to its interrupt, at most.
    pub tx_usecs: u32,
    /// Sent packets before an interrupt, at most.
    pub tx_frames: u32,
    /// Does software adapt `rx_usecs` and `rx_frames` to the traffic?
    pub adaptive_rx: bool,
    /// Does software adapt `tx_usecs` and `tx_frames` to the traffic?
    pub adaptive_tx: bool,
}

impl Coalesce {
    pub(super) fn from_raw(coalesce: &bindings::ethtool_coalesce) -> Self {
        Self {
            rx_usecs: coalesce.rx_coalesce_usecs,
            rx_frames: coalesce.rx_max_coalesced_frames,
            tx_usecs: coalesce.tx_coalesce_usecs,
            tx_frames: coalesce.tx_max_coalesced_frames,
            adaptive_rx: coalesce.use_adaptive_rx_coalesce != 0,
            adaptive_tx: coalesce.use_adaptive_tx_coalesce != 0,
        }
    }

    pub(super) fn fill(&self, coalesce: &mut bindings::ethtool_coalesce) {
        coalesce.rx_coalesce_usecs = self.rx_usecs;
        coalesce.rx_max_coalesced_frames = self.rx_frames;
        coalesce.tx_coalesce_usecs = self.tx_usecs;
        coalesce.tx_max_coalesced_frames = self.tx_frames;
        coalesce.use_adaptive_rx_coalesce = self.adaptive_rx.into();
        coalesce.use_adaptive_tx_coalesce = self.adaptive_tx.into();
    }
}

/// A tunable that is one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tunable {
    /// Received packets of up to so many bytes are copied.
    RxCopybreak,
    /// Packets to send of up to so many bytes are copied.
    TxCopybreak,
    /// Bytes of memory for packets to send that are copied.
    TxCopybreakBufSize,
}

impl Tunable {
    pub(super) fn from_raw(id: u32) -> Option<Self> {
        match id {
            bindings::tunable_id_ETHTOOL_RX_COPYBREAK => Some(Self::RxCopybreak),
            bindings::tunable_id_ETHTOOL_TX_COPYBREAK => Some(Self::TxCopybreak),
            bindings::tunable_id_ETHTOOL_TX_COPYBREAK_BUF_SIZE => Some(Self::TxCopybreakBufSize),
            _ => None,
        }
    }
}
