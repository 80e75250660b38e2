// SPDX-License-Identifier: GPL-2.0
//! Checksum, segmentation, VLAN and receive hash offloads, on plain frames.
//!
//! Nothing here trusts a frame: what does not parse is [`Malformed`], never a panic.

mod checksum;
mod headers;
mod rss;
#[cfg(test)]
mod sample;
mod segment;
mod vlan;

pub use checksum::{checksum, fill_ip, fill_l4, verify, Verdict, Verdicts};
pub use headers::{Headers, Malformed, Network, Transport};
pub use rss::{HashTypes, Hashed, Toeplitz};
pub use segment::segment;
pub use vlan::{insert as insert_vlan, strip as strip_vlan};

use crate::Wire;

/// What the driver asked for when it sent a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmit {
    /// Insert this VLAN tag (TCI).
    pub vlan: Option<u16>,
    /// Fill in the checksum of the IPv4 header.
    pub ip_checksum: bool,
    /// Fill in the checksum of this transport header.
    pub l4_checksum: Option<Transport>,
    /// Cut the TCP payload into segments of this many bytes, with all checksums.
    pub segment: Option<u16>,
}

/// What was put on the wire for one frame of the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Frames.
    pub frames: u64,
    /// Their bytes, without FCS and padding.
    pub bytes: u64,
}

impl Wire {
    /// Applies the offloads and sends the frame or its segments; `frame` is left changed.
    ///
    /// # Errors
    /// The headers do not fit what was asked for: nothing is sent, and the violation is in the report.
    pub fn transmit(&mut self, frame: &mut Vec<u8>, ask: &Transmit) -> Result<Sent, Malformed> {
        let sent = self.offload(frame, ask);
        if let Err(malformed) = &sent {
            self.violate_offload(malformed, ask);
        }
        sent
    }

    fn offload(&mut self, frame: &mut Vec<u8>, ask: &Transmit) -> Result<Sent, Malformed> {
        if let Some(tci) = ask.vlan {
            insert_vlan(frame, tci)?;
        }
        if let Some(mss) = ask.segment {
            let headers = Headers::parse(frame)?;
            let mut buffer = std::mem::take(&mut self.segment);
            let mut sent = Sent::default();
            let outcome = segment(frame, &headers, mss, &mut buffer, |segment| {
                sent.frames += 1;
                sent.bytes += segment.len() as u64;
                self.send(segment);
            });
            self.segment = buffer;
            return outcome.map(|()| sent);
        }
        if ask.ip_checksum || ask.l4_checksum.is_some() {
            let headers = Headers::parse(frame)?;
            if ask.l4_checksum.is_some() && headers.transport() != ask.l4_checksum {
                return Err(Malformed(
                    "not the transport protocol whose checksum is asked for",
                ));
            }
            if ask.ip_checksum {
                fill_ip(frame, &headers)?;
            }
            if ask.l4_checksum.is_some() {
                fill_l4(frame, &headers)?;
            }
        }
        self.send(frame);
        Ok(Sent {
            frames: 1,
            bytes: frame.len() as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{wire::MAX_FRAME, Report};

    /// What comes out at the other end of the wire.
    fn transmitted(frame: &[u8], ask: &Transmit) -> Result<Vec<Vec<u8>>, Malformed> {
        let report = Report::default();
        let (mut wire, mut peer) = Wire::pair(&report, 0, 1).unwrap();
        let sent = wire.transmit(&mut frame.to_vec(), ask)?;
        let mut buffer = vec![0; MAX_FRAME];
        let mut frames = Vec::new();
        while let Some(len) = peer.receive(&mut buffer) {
            frames.push(buffer[..len].to_vec());
        }
        assert_eq!(sent.frames, frames.len() as u64);
        assert_eq!(sent.bytes, report.get("port0.out_bytes"));
        Ok(frames)
    }

    #[test]
    fn does_all_that_is_asked_for() {
        let frame = sample::ipv4_tcp(&[7; 100]);
        let ask = Transmit {
            vlan: Some(0x0042),
            ip_checksum: true,
            l4_checksum: Some(Transport::Tcp),
            segment: None,
        };
        let frames = transmitted(&frame, &ask).unwrap();
        assert_eq!(frames.len(), 1);
        let verdicts = verify(&frames[0]);
        assert_eq!((verdicts.ip, verdicts.l4), (Verdict::Good, Verdict::Good));
        assert_eq!(Headers::parse(&frames[0]).unwrap().vlan, Some(0x0042));

        let segment = Transmit {
            segment: Some(60),
            ..ask
        };
        let frames = transmitted(&frame, &segment).unwrap();
        assert_eq!(frames.len(), 2);
        for frame in frames {
            assert_eq!(verify(&frame).l4, Verdict::Good);
            assert_eq!(Headers::parse(&frame).unwrap().vlan, Some(0x0042));
        }
    }

    #[test]
    fn does_nothing_that_is_not_asked_for() {
        let frame = sample::ipv4_tcp(&[7; 100]);
        assert_eq!(transmitted(&frame, &Transmit::default()), Ok(vec![frame]));
    }

    #[test]
    fn refuses_the_checksum_of_another_protocol() {
        let ask = |transport| Transmit {
            l4_checksum: Some(transport),
            ..Transmit::default()
        };
        let udp = sample::ipv6_udp(b"hello");
        transmitted(&udp, &ask(Transport::Tcp)).unwrap_err();
        transmitted(&udp, &ask(Transport::Udp)).unwrap();
    }
}
