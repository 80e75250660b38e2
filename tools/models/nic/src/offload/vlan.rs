// SPDX-License-Identifier: GPL-2.0
//! VLAN tags (IEEE 802.1Q).

use super::headers::{be16, Malformed, ETHERNET, ETHERTYPE, ETHERTYPE_VLAN};

/// Puts a tag in front of the EtherType.
///
/// # Errors
/// The frame is shorter than an Ethernet header.
pub fn insert(frame: &mut Vec<u8>, tci: u16) -> Result<(), Malformed> {
    if frame.len() < ETHERNET {
        return Err(Malformed("frame ends inside a header"));
    }
    let [kind, tag] = [ETHERTYPE_VLAN, tci].map(u16::to_be_bytes);
    frame.splice(ETHERTYPE..ETHERTYPE, kind.into_iter().chain(tag));
    Ok(())
}

/// Takes the outer tag out of a frame of `len` bytes at the start of `frame`: the tag and the new length, or
/// `None` if there is no tag.
pub fn strip(frame: &mut [u8], len: usize) -> Option<(u16, usize)> {
    let frame = frame.get_mut(..len)?;
    if be16(frame, ETHERTYPE) != Ok(ETHERTYPE_VLAN) || len < ETHERNET + 4 {
        return None;
    }
    let tci = be16(frame, ETHERTYPE + 2).ok()?;
    frame.copy_within(ETHERTYPE + 4.., ETHERTYPE);
    Some((tci, len - 4))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn strips_what_it_inserts() {
        let original = sample::arp();
        let mut frame = original.clone();
        assert_eq!(strip(&mut frame, original.len()), None);
        insert(&mut frame, 0xe064).unwrap();
        assert_eq!(&frame[12..16], [0x81, 0x00, 0xe0, 0x64]);
        let len = frame.len();
        assert_eq!(strip(&mut frame, len), Some((0xe064, original.len())));
        assert_eq!(&frame[..original.len()], original);
        assert_eq!(
            insert(&mut vec![0; 13], 1),
            Err(Malformed("frame ends inside a header"))
        );
        assert_eq!(strip(&mut [0; 4], 9), None);
    }
}
