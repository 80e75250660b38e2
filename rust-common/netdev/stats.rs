// SPDX-License-Identifier: GPL-2.0

//! Counters that the stack knows.

use crate::bindings;

/// Makes a struct of counters that are the fields of a C struct by the same
/// names.
macro_rules! counters {
    (
        $(#[$doc:meta])*
        $name:ident of $c:ident {
            $($(#[$field_doc:meta])* $field:ident,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: Option<u64>,)*
        }

        impl $name {
            /// Writes those that are counted.
            pub(crate) fn fill(&self, stats: &mut bindings::$c) {
                $(if let Some(value) = self.$field {
                    stats.$field = value;
                })*
            }
        }
    };
}

counters! {
    /// Counters of one RX queue; `None` is not counted
    /// (include/net/netdev_queues.h).
    RxQueueStats of netdev_queue_stats_rx {
        /// Bytes given to the stack.
        bytes,
        /// Packets given to the stack.
        packets,
        /// Buffers or packets that there was no memory for.
        alloc_fail,
        /// Packets that the device dropped.
        hw_drops,
        /// Packets that the device dropped for want of buffers.
        hw_drop_overruns,
        /// Packets with the checksum over all of them.
        csum_complete,
        /// Packets whose checksums the device found good.
        csum_unnecessary,
        /// Packets that the device did not check.
        csum_none,
        /// Packets whose checksum the device found bad.
        csum_bad,
        /// Packets merged by the device.
        hw_gro_packets,
        /// Bytes in packets merged by the device.
        hw_gro_bytes,
        /// Packets on the wire that were merged.
        hw_gro_wire_packets,
        /// Bytes on the wire in packets that were merged.
        hw_gro_wire_bytes,
        /// Packets dropped by a rate limit of the device.
        hw_drop_ratelimits,
    }
}

counters! {
    /// Counters of one TX queue; `None` is not counted
    /// (include/net/netdev_queues.h).
    TxQueueStats of netdev_queue_stats_tx {
        /// Bytes sent.
        bytes,
        /// Packets sent.
        packets,
        /// Packets that the device dropped.
        hw_drops,
        /// Packets that the device dropped for errors in them.
        hw_drop_errors,
        /// Packets that needed no checksum of the device.
        csum_none,
        /// Packets that the device computed a checksum for.
        needs_csum,
        /// Packets given to the device to segment.
        hw_gso_packets,
        /// Bytes in packets given to the device to segment.
        hw_gso_bytes,
        /// Segments that the device sent.
        hw_gso_wire_packets,
        /// Bytes in segments that the device sent.
        hw_gso_wire_bytes,
        /// Packets dropped by a rate limit of the device.
        hw_drop_ratelimits,
        /// Times that the queue was stopped.
        stop,
        /// Times that the queue was woken.
        wake,
    }
}

/// Makes [`LinkStats`].
macro_rules! link_counters {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// Counters of a device over its whole life, those of
        /// `struct rtnl_link_stats64` that an Ethernet driver can know
        /// (Documentation/networking/statistics.rst).
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct LinkStats {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl LinkStats {
            pub(crate) fn fill(&self, stats: &mut bindings::rtnl_link_stats64) {
                $(stats.$field = self.$field;)*
            }
        }
    };
}

link_counters! {
    /// Good packets received.
    rx_packets,
    /// Packets sent.
    tx_packets,
    /// Bytes of the packets received, without frame check sequence.
    rx_bytes,
    /// Bytes of the packets sent, without frame check sequence.
    tx_bytes,
    /// Bad packets received.
    rx_errors,
    /// Packets that could not be sent for errors of the device.
    tx_errors,
    /// Packets received and dropped for want of resources in the host.
    rx_dropped,
    /// Packets dropped before they were sent, for want of resources.
    tx_dropped,
    /// Multicast packets received.
    multicast,
    /// Packets received with a length out of range.
    rx_length_errors,
    /// Packets that overflowed the device's memory.
    rx_over_errors,
    /// Packets received with a bad frame check sequence.
    rx_crc_errors,
    /// Packets received that are no whole number of bytes.
    rx_frame_errors,
    /// Packets missed for want of buffers.
    rx_missed_errors,
    /// Packets lost to a lack of link.
    tx_carrier_errors,
    /// Packets lost to an underrun of the device.
    tx_fifo_errors,
}
