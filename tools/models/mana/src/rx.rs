// SPDX-License-Identifier: GPL-2.0
//! Frames from the wire: filter, steering, checksums, hash, VLAN, completions.

use nic::{
    offload::{self, Hashed, Headers, Network, Transport, Verdict},
    Bus,
};
use zerocopy::IntoBytes;

use crate::{
    abi::{cqe, cqe_header, hash_type, rx_flag, Ppi, RxCompOob},
    commands::mac_address,
    events::Owner,
    rss::Coalescing,
    session::Session,
    stats::GfStat,
};

const VLAN_TAG: usize = 4;

/// A packet in the driver's memory that was not reported yet.
#[derive(Clone, Copy)]
struct Packet {
    len: u16,
    hash: u32,
}

/// Packets that will share a CQE: all have the same flags.
pub(crate) struct Batch {
    rq: u32,
    cq: u32,
    coalescing: Coalescing,
    flags: u32,
    first_wqe: u32,
    packets: Vec<Packet>,
}

impl Batch {
    fn completion(&self) -> RxCompOob {
        let mut ppi = [Ppi::default(); 4];
        // One packet is reported in the same way with and without coalescing.
        let kind = match (self.coalescing, self.packets.len()) {
            (_, 1) | (Coalescing::Off, _) => cqe::RX_OKAY,
            (Coalescing::Four, _) => cqe::RX_COALESCED_4,
            (Coalescing::Eight, _) => cqe::RX_COALESCED_8,
        };
        if kind == cqe::RX_COALESCED_8 {
            for (entry, pair) in ppi.iter_mut().zip(self.packets.chunks(2)) {
                let second = pair.get(1).copied().unwrap_or(Packet { len: 0, hash: 0 });
                entry.word0 = pair[0].hash.into();
                entry.word1 = (u32::from(pair[0].len) | (u32::from(second.len) << 16)).into();
                entry.word2 = second.hash.into();
            }
        } else {
            for (entry, packet) in ppi.iter_mut().zip(&self.packets) {
                entry.word0 = u32::from(packet.len).into();
                entry.word2 = packet.hash.into();
            }
        }
        RxCompOob {
            header: cqe_header(kind).into(),
            flags: self.flags.into(),
            ppi,
            rx_wqe_offset: self.first_wqe.into(),
        }
    }
}

fn hash_type(hashed: &Hashed) -> u32 {
    match (hashed.network, hashed.ports) {
        (Network::V4, None) => hash_type::IPV4,
        (Network::V4, Some(Transport::Tcp)) => hash_type::TCP_IPV4,
        (Network::V4, Some(Transport::Udp)) => hash_type::UDP_IPV4,
        (Network::V6, None) => hash_type::IPV6,
        (Network::V6, Some(Transport::Tcp)) => hash_type::TCP_IPV6,
        (Network::V6, Some(Transport::Udp)) => hash_type::UDP_IPV6,
    }
}

/// Checksum flags of a frame. IPv6 has no header checksum: it counts as right.
fn checksum_flags(frame: &[u8], headers: Option<&Headers>) -> u32 {
    let Some(ip) = headers.and_then(|headers| headers.ip) else {
        return 0;
    };
    let verdicts = offload::verify(frame);
    let ip_flag = match verdicts.ip {
        Verdict::Bad => rx_flag::IPHDR_CSUM_FAIL,
        Verdict::Good | Verdict::Absent => rx_flag::IPHDR_CSUM_SUCCEED,
    };
    let l4_flag = match (ip.transport, verdicts.l4) {
        (None, _) | (_, Verdict::Absent) => 0,
        (Some(Transport::Tcp), Verdict::Good) => rx_flag::TCP_CSUM_SUCCEED,
        (Some(Transport::Tcp), Verdict::Bad) => rx_flag::TCP_CSUM_FAIL,
        (Some(Transport::Udp), Verdict::Good) => rx_flag::UDP_CSUM_SUCCEED,
        (Some(Transport::Udp), Verdict::Bad) => rx_flag::UDP_CSUM_FAIL,
    };
    ip_flag | l4_flag
}

impl Session {
    /// Whether each receive queue of a port has room for this many frames, and an armed CQ: arming says that all
    /// before was seen.
    pub(crate) fn is_rx_ready(&self, port: usize, frames: usize) -> bool {
        let mut rqs = self
            .rqs
            .live
            .values()
            .filter(|rq| rq.owner == Owner::Mana && rq.port == port)
            .peekable();
        rqs.peek().is_some()
            && self.vports[port].steering.is_rx_enabled
            && rqs.all(|rq| rq.posted.len() >= frames && self.events.is_armed(rq.cq))
    }

    /// A frame came in on a port.
    pub(crate) fn receive(&mut self, bus: &mut Bus, port: usize, frame: &[u8]) {
        let steering = &self.vports[port].steering;
        if !steering.is_rx_enabled {
            self.counters.rx_disabled.add(1);
            self.stats.add(GfStat::RxErrVportDisabled, 1);
            return;
        }
        let is_for_us = frame[0] & 1 != 0 || frame[..6] == mac_address(port);
        if !is_for_us && !self.limits.promiscuous {
            self.counters.rx_filtered.add(1);
            return;
        }
        let headers = Headers::parse(frame).ok();
        let vlan = headers.and_then(|headers| headers.vlan);
        if frame.len() - vlan.map_or(0, |_| VLAN_TAG) > usize::from(self.limits.adapter_mtu) {
            self.counters.rx_too_long.add(1);
            return;
        }
        let hashed = headers.and_then(|headers| steering.hash(frame, &headers));
        let Some(rq_id) = steering.queue(hashed.map(|hashed| hashed.hash)) else {
            return;
        };
        let coalescing = steering.coalescing;
        let Some(rq) = self.rqs.live.get_mut(&rq_id) else {
            return;
        };
        let Some(wqe) = rq.consume() else {
            self.counters.rx_no_wqe.add(1);
            self.stats.add(GfStat::RxDiscardsNoWqe, 1);
            return;
        };
        rq.counters.packets.add(1);
        let (cq, first_wqe) = (rq.cq, rq.offset(wqe.position));

        let mut flags = checksum_flags(frame, headers.as_ref());
        if let Some(hashed) = &hashed {
            flags |= hash_type(hashed) << rx_flag::HASHTYPE_SHIFT;
        }
        // The tag is cut out: the addresses, then what follows the tag.
        let (start, rest) = match vlan {
            Some(tci) => {
                flags |= u32::from(tci & 0xfff) | rx_flag::VLANTAG_PRESENT;
                (&frame[..12], &frame[12 + VLAN_TAG..])
            }
            None => (frame, &frame[..0]),
        };
        let len = start.len() + rest.len();
        if wqe.is_broken || wqe.data_len() < len {
            self.counters.rx_truncated.add(1);
            self.flush_coalesced(bus);
            let header = cqe_header(cqe::RX_TRUNCATED).to_le_bytes();
            self.events.complete(bus, cq, &header, rq_id, false);
            return;
        }
        let mut pieces = [start, rest];
        for sge in &wqe.sges {
            let (mut at, mut room) = (sge.address.get(), sge.size.get() as usize);
            for piece in &mut pieces {
                let (now, later) = piece.split_at(piece.len().min(room));
                if !now.is_empty() && bus.dma.write(at, now).is_err() {
                    return;
                }
                at = at.wrapping_add(now.len() as u64);
                room -= now.len();
                *piece = later;
            }
        }
        self.counters.rx_packets.add(1);
        self.counters.rx_bytes.add(len as u64);
        self.stats.received(frame);

        let packet = Packet {
            len: len as u16,
            hash: hashed.map_or(0, |hashed| hashed.hash),
        };
        self.report_packet(
            bus,
            Batch {
                rq: rq_id,
                cq,
                coalescing,
                flags,
                first_wqe,
                packets: vec![packet],
            },
        );
    }

    /// Reports a packet, or keeps it until its CQE is full or nothing more comes.
    fn report_packet(&mut self, bus: &mut Bus, packet: Batch) {
        if packet.coalescing == Coalescing::Off {
            self.events.complete(
                bus,
                packet.cq,
                packet.completion().as_bytes(),
                packet.rq,
                false,
            );
            return;
        }
        let is_fitting = |batch: &Batch| {
            batch.flags == packet.flags && batch.packets.len() < batch.coalescing.packets()
        };
        match self.batches.iter().position(|batch| batch.rq == packet.rq) {
            Some(n) if is_fitting(&self.batches[n]) => {
                self.batches[n].packets.extend(packet.packets)
            }
            Some(n) => {
                let full = std::mem::replace(&mut self.batches[n], packet);
                self.report_batch(bus, &full);
            }
            None => self.batches.push(packet),
        }
    }

    fn report_batch(&mut self, bus: &mut Bus, batch: &Batch) {
        if batch.packets.len() > 1 {
            self.counters.rx_coalesced_cqes.add(1);
        }
        self.events.complete(
            bus,
            batch.cq,
            batch.completion().as_bytes(),
            batch.rq,
            false,
        );
    }

    /// Reports all packets that wait for others.
    pub(crate) fn flush_coalesced(&mut self, bus: &mut Bus) {
        for batch in std::mem::take(&mut self.batches) {
            self.report_batch(bus, &batch);
        }
    }
}
