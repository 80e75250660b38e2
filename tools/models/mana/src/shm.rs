// SPDX-License-Identifier: GPL-2.0
//! The shared memory channel (SMC): 256 bits that bootstrap the hardware channel.
//!
//! Source: `shm_channel.c` of the C driver.

use nic::Fault;

use crate::abi::MANA_PAGE_SIZE;

/// Dwords of the aperture.
const DWORDS: usize = 8;
/// Bit 31 of the last dword: the PF owns the aperture.
const OWNER_IS_PF: u32 = 1 << 31;
/// Bit 24 of the last dword: reset the VF before or after.
const RESET_VF: u32 = 1 << 24;
/// Bit 7 of the last dword: this is an answer.
const DIRECTION_RESPONSE: u32 = 1 << 7;
const MSG_TYPE_ESTABLISH_HWC: u32 = 1;
const MSG_TYPE_DESTROY_HWC: u32 = 2;
/// Status of a refused request.
const STATUS_FAILED: u32 = 1;

/// Where the driver put the HWC's rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Establish {
    /// Bus address of the event queue.
    pub eq: u64,
    /// Bus address of the completion queue.
    pub cq: u64,
    /// Bus address of the receive queue.
    pub rq: u64,
    /// Bus address of the send queue.
    pub sq: u64,
    /// MSI-X vector of the event queue.
    pub vector: u16,
}

/// A request of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Establish the HWC.
    Establish(Establish),
    /// Destroy the HWC.
    Destroy,
    /// Not a request: wrong type, version, direction or reserved bits.
    Malformed(u32),
}

/// The aperture.
#[derive(Default)]
pub struct Shm {
    dwords: [u32; DWORDS],
}

impl Shm {
    /// The dword at a byte offset.
    pub fn read(&self, offset: u64) -> u32 {
        self.dwords[offset as usize / 4 % DWORDS]
    }

    /// Whether the PF owns the aperture.
    pub fn is_busy(&self) -> bool {
        self.dwords[DWORDS - 1] & OWNER_IS_PF != 0
    }

    /// Writes the dword at a byte offset. Writing the last one hands the request to the PF.
    pub fn write(&mut self, offset: u64, value: u32) -> Option<Request> {
        let index = offset as usize / 4 % DWORDS;
        self.dwords[index] = value;
        if index != DWORDS - 1 {
            return None;
        }
        self.dwords[index] |= OWNER_IS_PF;
        Some(self.decode(value))
    }

    fn decode(&self, header: u32) -> Request {
        // type:3, version:3, reserved:1, direction:1, status:8, reserved:8, reset:1, reserved:6, owner:1.
        let (kind, rest) = (header & 7, header & !(7 | RESET_VF));
        match kind {
            MSG_TYPE_ESTABLISH_HWC if rest == 0 => Request::Establish(self.establish()),
            MSG_TYPE_DESTROY_HWC if rest == 0 => Request::Destroy,
            _ => Request::Malformed(header),
        }
    }

    /// Four frame numbers of 48 bits, then 4 bits more of each, then the vector.
    fn establish(&self) -> Establish {
        let mut bytes = [0; DWORDS * 4];
        for (dword, place) in self.dwords.iter().zip(bytes.chunks_exact_mut(4)) {
            place.copy_from_slice(&dword.to_le_bytes());
        }
        let high = u16::from_le_bytes([bytes[24], bytes[25]]);
        let address = |n: usize| {
            let mut frame = [0; 8];
            frame[..6].copy_from_slice(&bytes[n * 6..n * 6 + 6]);
            let top = u64::from((high >> (4 * n)) & 0xf);
            (u64::from_le_bytes(frame) | (top << 48)) * MANA_PAGE_SIZE
        };
        Establish {
            eq: address(0),
            cq: address(1),
            rq: address(2),
            sq: address(3),
            vector: u16::from_le_bytes([bytes[26], bytes[27]]),
        }
    }

    /// Answers the request in the aperture and gives it back to the VF.
    pub fn answer(&mut self, ok: bool) {
        let last = &mut self.dwords[DWORDS - 1];
        let status = if ok { 0 } else { STATUS_FAILED };
        // Type and version stay; the owner bit goes.
        *last = *last & 0x3f | DIRECTION_RESPONSE | (status << 8);
    }
}

impl Shm {
    /// Leaves the request without a right answer.
    pub fn fail(&mut self, fault: Fault) {
        let last = &mut self.dwords[DWORDS - 1];
        match fault {
            Fault::Error => self.answer(false),
            // The PF keeps the aperture.
            Fault::Nothing | Fault::Die => {}
            // All ones would say that the function is gone.
            Fault::Wrong => *last = !(OWNER_IS_PF | MSG_TYPE_ESTABLISH_HWC),
            Fault::Zero => *last = 0,
            // The header did not come whole: the direction is missing.
            Fault::Short => *last &= 0x3f,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_unpacked() {
        let mut shm = Shm::default();
        let frames: [u64; 4] = [
            0x1_2345_6789_abcd,
            0xf_0000_0000_0001,
            0x0_ffff_ffff_ffff,
            0x8_1111_2222_3333,
        ];
        let mut bytes = [0u8; 32];
        let mut high = 0u16;
        for (n, frame) in frames.iter().enumerate() {
            bytes[n * 6..n * 6 + 6].copy_from_slice(&frame.to_le_bytes()[..6]);
            high |= ((frame >> 48) as u16) << (4 * n);
        }
        bytes[24..26].copy_from_slice(&high.to_le_bytes());
        bytes[26..28].copy_from_slice(&9u16.to_le_bytes());
        bytes[28..].copy_from_slice(&1u32.to_le_bytes());
        let mut request = None;
        for (n, dword) in bytes.chunks_exact(4).enumerate() {
            request = shm.write(
                n as u64 * 4,
                u32::from_le_bytes(dword.try_into().expect("four bytes")),
            );
        }
        let address = |n: usize| frames[n] << 12;
        assert_eq!(
            request,
            Some(Request::Establish(Establish {
                eq: address(0),
                cq: address(1),
                rq: address(2),
                sq: address(3),
                vector: 9
            }))
        );
        assert!(shm.is_busy());
        shm.answer(true);
        assert!(!shm.is_busy());
        assert_eq!(shm.read(28), 1 | (1 << 7));
    }
}
