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
    /// Their bytes, without FCS.
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
