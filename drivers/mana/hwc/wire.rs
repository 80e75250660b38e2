// SPDX-License-Identifier: GPL-2.0

//! Formats of the hardware channel (HWC): message headers, and what surrounds
//! a message in the work queues.

use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout, //
};

use crate::{
    bits::Field,
    regs::CQE_DATA_WORDS, //
};

/// Bytes of a request or a response, headers included.
pub(crate) const HW_CHANNEL_MAX_MESSAGE_SIZE: usize = 4096;

/// A function of the adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct DeviceId {
    kind: u16,
    instance: u16,
}

impl DeviceId {
    /// No function in particular.
    pub(crate) const NONE: Self = Self {
        kind: 0,
        instance: 0,
    };
    /// The hardware channel itself (`GDMA_DEVICE_HWC`).
    pub(crate) const HWC: Self = Self {
        kind: 1,
        instance: 0,
    };
    const GDMA_DEVICE_MANA: u16 = 2;

    /// Whether this is the Ethernet function.
    pub(crate) fn is_mana(&self) -> bool {
        self.kind == Self::GDMA_DEVICE_MANA
    }

    /// Whether an entry of the device list is empty.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}

/// Header of one direction of an exchange.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct MessageHeader {
    hdr_type: u32,
    msg_type: u32,
    msg_version: u16,
    hwc_msg_id: u16,
    msg_size: u32,
}
const _: () = assert!(size_of::<MessageHeader>() == 16);

impl MessageHeader {
    const GDMA_STANDARD_HEADER_TYPE: u32 = 0;

    /// The only slot of a channel that carries one message at a time.
    const MSG_ID: u16 = 0;

    fn new(opcode: u32, version: u16, size: u32) -> Self {
        Self {
            hdr_type: Self::GDMA_STANDARD_HEADER_TYPE,
            msg_type: opcode,
            msg_version: version,
            hwc_msg_id: Self::MSG_ID,
            msg_size: size,
        }
    }

    /// Version of the message, which older devices lower.
    pub(crate) fn version(&self) -> u16 {
        self.msg_version
    }
}

/// Header of a request.
#[derive(Clone, Copy, Debug, Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct RequestHeader {
    request: MessageHeader,
    response: MessageHeader,
    dev_id: DeviceId,
    activity_id: u32,
}
const _: () = assert!(size_of::<RequestHeader>() == 40);

impl RequestHeader {
    /// Header of a request of `request` bytes, headers included, that expects
    /// at most `response` bytes, headers included.
    pub(crate) fn new(
        opcode: u32,
        (request_version, request): (u16, u32),
        (response_version, response): (u16, u32),
        dev_id: DeviceId,
        activity_id: u32,
    ) -> Self {
        Self {
            request: MessageHeader::new(opcode, request_version, request),
            response: MessageHeader::new(opcode, response_version, response),
            dev_id,
            activity_id,
        }
    }

    /// Bytes of the request, this header included.
    pub(crate) fn len(&self) -> u32 {
        self.request.msg_size
    }
}

/// Header of a response.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct ResponseHeader {
    /// Version and size as the device sent them.
    pub(crate) response: MessageHeader,
    dev_id: DeviceId,
    activity_id: u32,
    /// 0, or why the device refused.
    pub(crate) status: u32,
    _reserved: u32,
}
const _: () = assert!(size_of::<ResponseHeader>() == 32);

impl ResponseHeader {
    /// `GDMA_STATUS_CMD_UNSUPPORTED`.
    pub(crate) const GDMA_STATUS_CMD_UNSUPPORTED: u32 = u32::MAX;
    /// `GDMA_STATUS_MORE_ENTRIES`: success, of a list that is not complete yet.
    pub(crate) const GDMA_STATUS_MORE_ENTRIES: u32 = 0x105;

    /// Commands of the Ethernet function; only their responses repeat device
    /// and activity.
    const MANA_COMMANDS: u32 = 0x20000;

    /// Whether this is the response to `request`.
    pub(crate) fn answers(&self, request: &RequestHeader) -> bool {
        let expected = &request.response;
        let same = self.response.msg_type == expected.msg_type
            && self.response.hwc_msg_id == expected.hwc_msg_id;
        let echoed = self.dev_id == request.dev_id && self.activity_id == request.activity_id;
        same && (echoed || expected.msg_type < Self::MANA_COMMANDS)
    }
}

/// Inline part of an entry of the HWC's send queue.
#[derive(Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct TxOob {
    words: [u32; 6],
}
const _: () = assert!(size_of::<TxOob>() == crate::regs::INLINE_OOB_LARGE_SIZE);

impl TxOob {
    const QUEUE_ID: Field = crate::regs::QUEUE_ID;

    /// A message on send queue `sq` that completes on `cq`. A virtual function
    /// leaves the destination (words 2 and 3) at 0.
    pub(crate) fn new(sq: u32, cq: u32) -> Self {
        Self {
            words: [0, 0, 0, 0, Self::QUEUE_ID.of(cq), Self::QUEUE_ID.of(sq)],
        }
    }
}

/// What an entry of the HWC's completion queue says of a receive queue entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RxOob {
    /// Byte offset in the receive queue of the entry that was used.
    pub(crate) wqe_offset: u32,
    /// Bytes that the device wrote.
    pub(crate) len: u32,
}

impl From<&[u32; CQE_DATA_WORDS]> for RxOob {
    fn from(data: &[u32; CQE_DATA_WORDS]) -> Self {
        let [_, _, _, wqe_offset, _, _, len, ..] = *data;
        Self { wqe_offset, len }
    }
}

/// What the device tells while the channel comes up (`HWC_INIT_DATA_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum InitData {
    /// Id of the completion queue.
    CqId = 1,
    /// Id of the receive queue.
    RqId = 2,
    /// Id of the send queue.
    SqId = 3,
    /// Longest request.
    MaxRequest = 5,
    /// Ids of completion queues are below this.
    MaxNumCqs = 7,
    /// Key for guest physical addresses.
    GpaMkey = 9,
}

impl InitData {
    /// All kinds are below this.
    pub(crate) const KINDS: usize = 10;
}

/// `HWC_DATA_*` of a reconfiguration event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reconfig {
    /// Time to wait for a response, ms.
    Timeout(u32),
    /// The link of all ports is up or down.
    Link(bool),
    /// Any other.
    Unknown(u32),
}

impl Reconfig {
    /// Decodes kind and value of the event.
    pub(crate) fn new(kind: u32, value: u32) -> Self {
        match kind {
            1 => Self::Timeout(value),
            2 => Self::Link(true),
            3 => Self::Link(false),
            _ => Self::Unknown(kind),
        }
    }
}
