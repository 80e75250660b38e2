// SPDX-License-Identifier: GPL-2.0
//! Statistics of the function, as QUERY_GF_STAT reports them.

use zerocopy::little_endian::U64;

use crate::messages::GfStatResp;

/// One value: its place in the answer is its number, its bit in the request is given by [`GfStat::bit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum GfStat {
    /// Packets that found no receive WQE.
    RxDiscardsNoWqe,
    /// Packets for a port that does not receive.
    RxErrVportDisabled,
    /// Bytes received.
    HcRxBytes,
    /// Unicast packets received.
    HcRxUcastPkts,
    /// Their bytes.
    HcRxUcastBytes,
    /// Broadcast packets received.
    HcRxBcastPkts,
    /// Their bytes.
    HcRxBcastBytes,
    /// Multicast packets received.
    HcRxMcastPkts,
    /// Their bytes.
    HcRxMcastBytes,
    /// Packets of a disabled function.
    TxErrGfDisabled,
    /// Packets of a port that does not send.
    TxErrVportDisabled,
    /// Packets with a wrong vPort offset.
    TxErrInvalVportOffset,
    /// Packets with a forbidden VLAN tag.
    TxErrVlanEnforcement,
    /// Packets with a forbidden Ethernet type.
    TxErrEthTypeEnforcement,
    /// Packets with a forbidden source address.
    TxErrSaEnforcement,
    /// Packets of a send queue of another protection domain.
    TxErrSqpdidEnforcement,
    /// Packets with a CQ of another protection domain.
    TxErrCqpdidEnforcement,
    /// Packets longer than the MTU.
    TxErrMtuViolation,
    /// Packets with a wrong OOB.
    TxErrInvalOob,
    /// Bytes sent.
    HcTxBytes,
    /// Unicast packets sent.
    HcTxUcastPkts,
    /// Their bytes.
    HcTxUcastBytes,
    /// Broadcast packets sent.
    HcTxBcastPkts,
    /// Their bytes.
    HcTxBcastBytes,
    /// Multicast packets sent.
    HcTxMcastPkts,
    /// Their bytes.
    HcTxMcastBytes,
    /// Packets whose memory could not be read.
    TxErrGdma,
}

/// Number of values.
const COUNT: usize = 27;

impl GfStat {
    /// `STATISTICS_FLAGS_*`: multicast comes before broadcast here, after it in the answer.
    fn bit(place: usize) -> u32 {
        (match place {
            5 | 6 | 22 | 23 => place + 2,
            7 | 8 | 24 | 25 => place - 2,
            other => other,
        }) as u32
    }
}

/// The values.
#[derive(Clone, Copy, Debug, Default)]
pub struct GfStats([u64; COUNT]);

impl GfStats {
    /// Adds to one value.
    pub fn add(&mut self, stat: GfStat, n: u64) {
        self.0[stat as usize] += n;
    }

    /// Counts a received frame.
    pub fn received(&mut self, frame: &[u8]) {
        self.frames(frame, GfStat::HcRxBytes, 1, frame.len() as u64);
    }

    /// Counts sent frames that have the destination of `frame`.
    pub fn sent(&mut self, frame: &[u8], frames: u64, bytes: u64) {
        self.frames(frame, GfStat::HcTxBytes, frames, bytes);
    }

    /// `total` is followed by packets and bytes of unicast, broadcast and multicast.
    fn frames(&mut self, frame: &[u8], total: GfStat, count: u64, bytes: u64) {
        let kind = match frame.first() {
            Some(_) if frame.starts_with(&[0xff; 6]) => 1,
            Some(first) if first & 1 != 0 => 2,
            _ => 0,
        };
        let packets = total as usize + 1 + 2 * kind;
        self.0[total as usize] += bytes;
        self.0[packets] += count;
        self.0[packets + 1] += bytes;
    }

    /// The answer to a request for the values whose bits are set in `wanted`.
    pub fn answer(&self, wanted: u64) -> GfStatResp {
        let mut answer = GfStatResp {
            reported_stats: 0.into(),
            values: [U64::ZERO; COUNT],
        };
        let mut reported = 0;
        for (place, value) in self.0.iter().enumerate() {
            let bit = 1 << GfStat::bit(place);
            if wanted & bit != 0 {
                reported |= bit;
                answer.values[place] = (*value).into();
            }
        }
        answer.reported_stats = reported.into();
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_follow_the_header() {
        // STATISTICS_FLAGS_HC_RX_MCAST_PACKETS = 0x20, STATISTICS_FLAGS_HC_TX_BCAST_BYTES = 0x2000000.
        assert_eq!(1 << GfStat::bit(GfStat::HcRxMcastPkts as usize), 0x20);
        assert_eq!(1 << GfStat::bit(GfStat::HcRxBcastPkts as usize), 0x80);
        assert_eq!(
            1 << GfStat::bit(GfStat::HcTxBcastBytes as usize),
            0x200_0000
        );
        assert_eq!(1 << GfStat::bit(GfStat::TxErrGdma as usize), 0x400_0000);
        assert_eq!(1 << GfStat::bit(GfStat::HcTxMcastBytes as usize), 0x80_0000);
    }
}
