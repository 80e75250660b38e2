// SPDX-License-Identifier: GPL-2.0

//! Contents of the window of the shared memory channel.

use crate::{
    bits::Field,
    regs::SMC_APERTURE_SIZE, //
};

/// Words of the window.
pub(crate) const SMC_APERTURE_DWORDS: usize = SMC_APERTURE_SIZE / 4;
/// Index of the word with the protocol header.
pub(crate) const SMC_LAST_DWORD: usize = SMC_APERTURE_DWORDS - 1;

/// Bytes of a page frame, as the device counts them.
pub(crate) const PAGE_SHIFT: u32 = 12;

/// Low bits of a page frame number, which lie one after another; the four high
/// bits of each follow together.
const PAGE_FRAME_L48_WIDTH_BYTES: usize = 6;
const PAGE_FRAME_H4_WIDTH_BITS: usize = 4;
const PAGE_FRAME_BITS: u32 = 52;

const MSG_TYPE: Field = Field::bits(2, 0);
const MSG_VERSION: Field = Field::bits(5, 3);
const DIRECTION: Field = Field::bit(7);
const STATUS: Field = Field::bits(15, 8);
const OWNER_IS_PF: Field = Field::bit(31);

/// What the window reads as while the function is in reset or gone.
const SHMEM_VF_RESET_STATE: u32 = u32::MAX;

/// Version of both messages.
const SMC_MSG_VERSION: u32 = 0;

/// Messages of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// `SMC_MSG_TYPE_ESTABLISH_HWC`: here are the rings.
    EstablishHwc = 1,
    /// `SMC_MSG_TYPE_DESTROY_HWC`: forget the rings.
    DestroyHwc = 2,
}

impl Message {
    /// Name for messages of the driver.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::EstablishHwc => "SMC_MSG_TYPE_ESTABLISH_HWC",
            Self::DestroyHwc => "SMC_MSG_TYPE_DESTROY_HWC",
        }
    }
}

/// Why an answer is no success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The window holds something else than the answer to the message.
    Protocol,
    /// The device refused with this status.
    Status(u32),
}

/// The last word of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header(pub(crate) u32);

impl Header {
    /// The header of a request; the direction (0) and the owner (driver) are
    /// those of a request.
    pub(crate) const fn request(message: Message) -> Self {
        // CAST: a fieldless enum.
        Self(MSG_TYPE.of(message as u32) | MSG_VERSION.of(SMC_MSG_VERSION))
    }

    /// Whether the function does not answer at all.
    pub(crate) const fn is_gone(self) -> bool {
        self.0 == SHMEM_VF_RESET_STATE
    }

    /// Whether the device works on the window.
    pub(crate) const fn is_busy(self) -> bool {
        OWNER_IS_PF.is_set(self.0)
    }

    /// Checks that this is a successful answer to `message`.
    pub(crate) fn check_response(self, message: Message) -> Result<(), Refusal> {
        // CAST: a fieldless enum.
        if MSG_TYPE.get(self.0) != message as u32
            || MSG_VERSION.get(self.0) > SMC_MSG_VERSION
            || !DIRECTION.is_set(self.0)
        {
            return Err(Refusal::Protocol);
        }
        match STATUS.get(self.0) {
            0 => Ok(()),
            status => Err(Refusal::Status(status)),
        }
    }
}

/// The window's contents of [`Message::EstablishHwc`]: the page frames of event
/// queue, completion queue, receive queue and send queue, and the MSI-X vector
/// of the event queue.
///
/// `None` if a page frame number has more than 52 bits.
pub(crate) fn establish(frames: [u64; 4], msix: u16) -> Option<[u32; SMC_APERTURE_DWORDS]> {
    let mut window = [0u8; SMC_APERTURE_SIZE];
    let mut high = 0u16;
    for (i, frame) in frames.into_iter().enumerate() {
        if frame >> PAGE_FRAME_BITS != 0 {
            return None;
        }
        let bytes = frame.to_le_bytes();
        let (low, rest) = bytes.split_at(PAGE_FRAME_L48_WIDTH_BYTES);
        window
            .chunks_exact_mut(PAGE_FRAME_L48_WIDTH_BYTES)
            .nth(i)?
            .copy_from_slice(low);
        high |= u16::from(*rest.first()?) << (i * PAGE_FRAME_H4_WIDTH_BITS);
    }
    let (_, tail) = window.split_at_mut(frames.len() * PAGE_FRAME_L48_WIDTH_BYTES);
    tail.get_mut(0..2)?.copy_from_slice(&high.to_le_bytes());
    tail.get_mut(2..4)?.copy_from_slice(&msix.to_le_bytes());
    tail.get_mut(4..8)?
        .copy_from_slice(&Header::request(Message::EstablishHwc).0.to_le_bytes());

    let mut words = [0; SMC_APERTURE_DWORDS];
    for (word, bytes) in words.iter_mut().zip(window.chunks_exact(4)) {
        *word = u32::from_le_bytes(bytes.try_into().ok()?);
    }
    Some(words)
}
