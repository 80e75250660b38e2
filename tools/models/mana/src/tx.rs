// SPDX-License-Identifier: GPL-2.0
//! Packets of the driver: checks of their OOB against their bytes, offloads, completions.

use std::time::Instant;

use nic::{
    offload::{Headers, Network, Transmit, Transport},
    Bus, Report, Rule, TX_PATIENCE,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::{
    abi::{cqe, cqe_header, TxCompOob, TxLongOob, TxShortOob, OOB_LARGE, OOB_SMALL, WQE_BU},
    commands::mac_address,
    events::Owner,
    rules,
    session::Session,
    stats::GfStat,
    work::{Wq, Wqe},
};

/// `MANA_SHORT_PKT_FMT`.
const MANA_SHORT_PKT_FMT: u32 = 0;
/// `MANA_LONG_PKT_FMT`.
const MANA_LONG_PKT_FMT: u32 = 1;
/// Largest vPort offset that `short_vp_offset` holds.
const SHORT_VPORT_OFFSET_MAX: u32 = 255;
const ETHERNET_HEADER: usize = 14;
const VLAN_TAG: usize = 4;
/// Longest packet to be cut into segments: a BIG TCP packet with its headers.
const MAX_LSO_PACKET: usize = 8 * 65536 + 256;

/// The queue of a packet, as its OOB must name it.
struct Sender {
    id: u32,
    cq: u32,
    port: usize,
}

/// A packet that is not sent: the type of its CQE, and the statistic that counts it.
struct Drop(u32, GfStat);

const INVALID_OOB: Drop = Drop(cqe::TX_INVALID_OOB, GfStat::TxErrInvalOob);
const BAD_HEADERS: Drop = Drop(cqe::TX_HDR_PROCESSING_ERROR, GfStat::TxErrInvalOob);
const UNREADABLE: Drop = Drop(cqe::TX_HDR_PROCESSING_ERROR, GfStat::TxErrGdma);
const TOO_LONG: Drop = Drop(cqe::TX_MTU_DROP, GfStat::TxErrMtuViolation);
const WRONG_SOURCE: Drop = Drop(cqe::TX_SA_DROP, GfStat::TxErrSaEnforcement);

/// OOB of a packet.
#[derive(Debug)]
struct Oob {
    short: TxShortOob,
    /// Present in long format.
    long: Option<TxLongOob>,
}

impl Oob {
    /// Decodes the OOB; the size of the inline OOB must be that of the format.
    fn decode(report: &Report, wqe: &Wqe) -> Option<Self> {
        let (short, rest) = TxShortOob::read_from_prefix(&wqe.oob).ok()?;
        let (long, _) = TxLongOob::read_from_prefix(rest).ok()?;
        let (size, long) = match short.pkt_fmt() {
            MANA_SHORT_PKT_FMT => (OOB_SMALL, None),
            MANA_LONG_PKT_FMT => (OOB_LARGE, Some(long)),
            other => {
                report.violate(
                    &rules::TX_OOB_RESERVED,
                    format_args!("packet format {other}"),
                );
                return None;
            }
        };
        if wqe.header.inline_oob_size() != size {
            report.violate(
                &rules::WQE_OOB_SIZE,
                format_args!("{:x?}, format {}", wqe.header, short.pkt_fmt()),
            );
            return None;
        }
        Some(Self { short, long })
    }

    /// The first rule that the OOB breaks, whatever the packet is.
    fn broken_rule(&self, sender: &Sender, vport_offset: u32) -> Option<&'static Rule> {
        let short = &self.short;
        if short.vcq_num() != sender.cq {
            return Some(&rules::TX_OOB_CQ);
        }
        if short.vsq_frame() != (sender.id >> 10) & 0x3fff {
            return Some(&rules::TX_OOB_VSQ);
        }
        // The offset goes into the short part if it fits there, in long format too.
        let long_offset = self.long.map_or(0, |long| long.long_vp_offset());
        let expected = if vport_offset > SHORT_VPORT_OFFSET_MAX {
            (0, vport_offset)
        } else {
            (vport_offset, 0)
        };
        if (short.short_vp_offset(), long_offset) != expected {
            return Some(&rules::TX_OOB_VPORT);
        }
        let long = self.long?;
        if long.is_encap() || long.has_inner_fields() {
            return Some(&rules::TX_OOB_ENCAP);
        }
        let has_stray_tag = !long.inject_vlan_pri_tag() && long.vlan_tci() != 0;
        (long.reserved() != 0 || has_stray_tag).then_some(&rules::TX_OOB_RESERVED)
    }

    /// The tag to insert.
    fn vlan(&self) -> Option<u16> {
        self.long
            .filter(TxLongOob::inject_vlan_pri_tag)
            .map(|long| long.vlan_tci())
    }

    /// The transport protocol whose checksum is to be filled.
    fn l4_checksum(&self) -> Option<Transport> {
        match (self.short.comp_tcp_csum(), self.short.comp_udp_csum()) {
            (true, _) => Some(Transport::Tcp),
            (false, true) => Some(Transport::Udp),
            (false, false) => None,
        }
    }

    /// The first rule that the OOB breaks for this packet.
    fn mismatch(&self, wqe: &Wqe, frame: &[u8], headers: &Headers) -> Option<&'static Rule> {
        let short = &self.short;
        let network = headers.ip.map(|ip| ip.network);
        let said = match (short.is_outer_ipv4(), short.is_outer_ipv6()) {
            (false, false) => None,
            (true, false) => Some(Network::V4),
            (false, true) => Some(Network::V6),
            (true, true) => return Some(&rules::TX_OOB_IP),
        };
        let wants_checksum = self.l4_checksum().is_some() || short.comp_iphdr_csum();
        let is_named = said.is_some() && said == network;
        if !is_named && (said.is_some() || wants_checksum) {
            return Some(&rules::TX_OOB_IP);
        }
        let is_lso = wqe.header.oob_in_sgl();
        let has_ip_checksum = short.comp_iphdr_csum() || network == Some(Network::V6);
        if is_lso && !(is_named && has_ip_checksum && short.comp_tcp_csum()) {
            return Some(&rules::TX_LSO_FLAGS);
        }
        let transport = self.l4_checksum()?;
        let is_both = short.comp_tcp_csum() && short.comp_udp_csum();
        if is_both || headers.transport() != Some(transport) {
            return Some(&rules::TX_OOB_PROTOCOL);
        }
        let ip = headers.ip?;
        // The C driver gives the offset for TCP only.
        let is_given = transport == Transport::Tcp || short.trans_off() != 0;
        if is_given && short.trans_off() as usize != ip.l4_offset {
            return Some(&rules::TX_OOB_TRANS_OFF);
        }
        let at = ip.l4_offset + transport.checksum_offset();
        let seed = u16::from_be_bytes([frame[at], frame[at + 1]]);
        let is_seeded = headers
            .pseudo_header_sum(frame, !is_lso)
            .is_ok_and(|sum| is_same_sum(sum, seed));
        if !is_lso {
            return (!is_seeded).then_some(&rules::TX_CSUM_SEED);
        }
        let is_prepared = match ip.network {
            // Total length and checksum.
            Network::V4 => [2, 3, 10, 11]
                .iter()
                .all(|byte| frame[ip.offset + byte] == 0),
            // Payload length.
            Network::V6 => [4, 5].iter().all(|byte| frame[ip.offset + byte] == 0),
        };
        (!is_seeded || !is_prepared).then_some(&rules::TX_LSO_SEED)
    }
}

/// All ones is another zero in one's complement.
fn is_same_sum(a: u16, b: u16) -> bool {
    a == b || (a ^ b == 0xffff && (a == 0 || b == 0))
}

/// The first rule that an LSO packet breaks; `max_frame` is the longest frame that a segment may become.
fn lso_mismatch(
    wqe: &Wqe,
    frame: &[u8],
    headers: &Headers,
    max_frame: usize,
) -> Option<&'static Rule> {
    let Ok(header_len) = headers.payload_offset(frame) else {
        return Some(&rules::TX_LSO_HEADER);
    };
    let first = wqe.sges.first()?.size.get();
    if first as usize != header_len
        || wqe.header.last_vbytes() != first & 0xff
        || wqe.sges.len() < 2
    {
        return Some(&rules::TX_LSO_HEADER);
    }
    let mss = wqe.header.client_data_unit() as usize;
    let fits = mss > 0 && header_len + mss <= max_frame && frame.len() > header_len;
    (!fits).then_some(&rules::TX_LSO_MSS)
}

impl Session {
    /// Sends all packets that the driver announced, but for those that wait for their batch.
    pub(crate) fn transmit(&mut self, bus: &mut Bus) {
        let now = Instant::now();
        let is_late = self.tx_due.is_some_and(|due| due <= now);
        let batch = Some(bus.knobs.tx_batch as usize).filter(|n| *n > 0 && !is_late);
        let due = |sq: &Wq| match batch {
            _ if sq.owner != Owner::Mana => 0,
            None => sq.posted.len(),
            Some(n) if sq.posted.len() >= n && self.events.is_armed(sq.cq) => n,
            Some(_) => 0,
        };
        let work = self.sqs.live.iter().map(|(id, sq)| (*id, due(sq)));
        let work: Vec<_> = work.filter(|(_, count)| *count > 0).collect();
        for (id, count) in &work {
            for _ in 0..*count {
                let Some(sq) = self.sqs.live.get_mut(id) else {
                    break;
                };
                let Some(wqe) = sq.consume() else { break };
                sq.counters.packets.add(1);
                let sender = Sender {
                    id: *id,
                    cq: sq.cq,
                    port: sq.port,
                };
                self.transmit_one(bus, &sender, &wqe);
            }
        }
        let is_waiting = |sq: &Wq| sq.owner == Owner::Mana && !sq.posted.is_empty();
        if !self.sqs.live.values().any(is_waiting) {
            self.tx_due = None;
        } else if self.tx_due.is_none() || !work.is_empty() {
            self.tx_due = Some(now + TX_PATIENCE);
        }
    }

    fn transmit_one(&mut self, bus: &mut Bus, sender: &Sender, wqe: &Wqe) {
        let mut frame = std::mem::take(&mut self.scratch);
        let oob = Oob::decode(&bus.report, wqe).filter(|_| !wqe.is_broken);
        let sent = match &oob {
            Some(oob) => self.send_packet(bus, sender, wqe, oob, &mut frame),
            None => Err(INVALID_OOB),
        };
        self.scratch = frame;
        let kind = match sent {
            Ok(()) => cqe::TX_OKAY,
            Err(Drop(kind, stat)) => {
                self.counters.tx_errors.add(1);
                self.stats.add(stat, 1);
                kind
            }
        };
        if kind == cqe::TX_OKAY && oob.is_some_and(|oob| oob.short.suppress_txcqe_gen()) {
            return;
        }
        let completion = TxCompOob {
            header: cqe_header(kind).into(),
            tx_data_offset: 0.into(),
            offsets: ((wqe.position / WQE_BU) << 5).into(),
        };
        self.events
            .complete(bus, sender.cq, completion.as_bytes(), sender.id, true);
    }

    fn send_packet(
        &mut self,
        bus: &mut Bus,
        sender: &Sender,
        wqe: &Wqe,
        oob: &Oob,
        frame: &mut Vec<u8>,
    ) -> Result<(), Drop> {
        let report = bus.report.clone();
        let violate = |rule| {
            report.violate(
                rule,
                format_args!(
                    "SQ {} at {:#x}: {:x?} {oob:x?}",
                    sender.id, wqe.position, wqe.header
                ),
            )
        };
        if let Some(rule) = oob.broken_rule(sender, self.vport_offset(sender.port).into()) {
            violate(rule);
            return Err(INVALID_OOB);
        }
        let is_lso = wqe.header.oob_in_sgl();
        if !is_lso && (wqe.header.client_data_unit() != 0 || wqe.header.last_vbytes() != 0) {
            violate(&rules::WQE_RESERVED);
            return Err(INVALID_OOB);
        }
        if wqe.data_len() > MAX_LSO_PACKET {
            report.violate(
                &nic::FRAME_LENGTH,
                format_args!("SQ {}: {} bytes", sender.id, wqe.data_len()),
            );
            return Err(TOO_LONG);
        }
        gather(bus, wqe, frame)?;
        let headers = Headers::parse(frame);
        let is_tagged = headers.is_ok_and(|headers| headers.vlan.is_some());
        let max_frame = usize::from(self.limits.adapter_mtu) + if is_tagged { VLAN_TAG } else { 0 };
        if frame.len() < ETHERNET_HEADER || !is_lso && frame.len() > max_frame {
            report.violate(
                &nic::FRAME_LENGTH,
                format_args!("SQ {}: {} bytes, MTU {max_frame}", sender.id, frame.len()),
            );
            return Err(TOO_LONG);
        }
        if self.limits.source_check && frame[6..12] != mac_address(sender.port) {
            return Err(WRONG_SOURCE);
        }
        let broken = match &headers {
            Ok(headers) => {
                let lso = is_lso
                    .then(|| lso_mismatch(wqe, frame, headers, max_frame))
                    .flatten();
                lso.or_else(|| oob.mismatch(wqe, frame, headers))
            }
            Err(_) if is_lso || oob.l4_checksum().is_some() => Some(&rules::TX_OOB_IP),
            Err(_) => None,
        };
        if let Some(rule) = broken {
            violate(rule);
            return Err(BAD_HEADERS);
        }
        let is_ipv4 =
            headers.is_ok_and(|headers| headers.ip.is_some_and(|ip| ip.network == Network::V4));
        let ask = Transmit {
            vlan: oob.vlan(),
            ip_checksum: oob.short.comp_iphdr_csum() && is_ipv4,
            l4_checksum: oob.l4_checksum(),
            segment: is_lso.then(|| wqe.header.client_data_unit() as u16),
        };
        let sent = bus.wires[sender.port]
            .transmit(frame, &ask)
            .map_err(|_| BAD_HEADERS)?;
        let counters = &self.counters;
        counters.tx_packets.add(sent.frames);
        counters.tx_bytes.add(sent.bytes);
        if is_lso {
            counters.tx_lso_packets.add(1);
            counters.tx_lso_segments.add(sent.frames);
        } else if ask.l4_checksum.is_some() {
            counters.tx_csum_packets.add(1);
        }
        if ask.vlan.is_some() {
            counters.tx_vlan_packets.add(1);
        }
        self.stats.sent(frame, sent.frames, sent.bytes);
        Ok(())
    }
}

/// Reads a packet's memory into one frame.
fn gather(bus: &Bus, wqe: &Wqe, frame: &mut Vec<u8>) -> Result<(), Drop> {
    frame.clear();
    frame.resize(wqe.data_len(), 0);
    let mut rest = frame.as_mut_slice();
    for sge in &wqe.sges {
        let (piece, later) = rest.split_at_mut(sge.size.get() as usize);
        bus.dma
            .read(sge.address.get(), piece)
            .map_err(|_| UNREADABLE)?;
        rest = later;
    }
    Ok(())
}
