// SPDX-License-Identifier: GPL-2.0
//! Layout of the messages (QEMU docs/interop/vfio-user.rst; the structures after the header are those of
//! linux/vfio.h). All fields are little endian here: client and server are on one machine, x86 or arm64.

use zerocopy::{little_endian as le, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub(crate) const VERSION: u16 = 1;
pub(crate) const DMA_MAP: u16 = 2;
pub(crate) const DMA_UNMAP: u16 = 3;
pub(crate) const DEVICE_GET_INFO: u16 = 4;
pub(crate) const DEVICE_GET_REGION_INFO: u16 = 5;
pub(crate) const DEVICE_GET_IRQ_INFO: u16 = 7;
pub(crate) const DEVICE_SET_IRQS: u16 = 8;
pub(crate) const REGION_READ: u16 = 9;
pub(crate) const REGION_WRITE: u16 = 10;
pub(crate) const DEVICE_RESET: u16 = 13;
pub(crate) const REGION_WRITE_MULTI: u16 = 15;

pub(crate) const FLAG_TYPE: u32 = 0xf;
pub(crate) const FLAG_REPLY: u32 = 1;
pub(crate) const FLAG_NO_REPLY: u32 = 1 << 4;
pub(crate) const FLAG_ERROR: u32 = 1 << 5;

pub(crate) const DEVICE_FLAG_RESET: u32 = 1 << 0;
pub(crate) const DEVICE_FLAG_PCI: u32 = 1 << 1;
pub(crate) const REGION_FLAG_READ: u32 = 1 << 0;
pub(crate) const REGION_FLAG_WRITE: u32 = 1 << 1;
pub(crate) const IRQ_FLAG_EVENTFD: u32 = 1 << 0;
pub(crate) const MAP_FLAG_READ: u32 = 1 << 0;
pub(crate) const MAP_FLAG_WRITE: u32 = 1 << 1;
pub(crate) const UNMAP_FLAG_ALL: u32 = 1 << 1;
pub(crate) const SET_DATA_NONE: u32 = 1 << 0;
pub(crate) const SET_DATA_EVENTFD: u32 = 1 << 2;
pub(crate) const SET_DATA: u32 = 0x7;
pub(crate) const SET_ACTION_MASK: u32 = 1 << 3;
pub(crate) const SET_ACTION_UNMASK: u32 = 1 << 4;
pub(crate) const SET_ACTION_TRIGGER: u32 = 1 << 5;
pub(crate) const SET_ACTION: u32 = 0x38;

/// Declares message structures: packed by construction, readable from and writable to bytes.
macro_rules! layout {
    ($($(#[$meta:meta])* $name:ident { $($field:ident: $type:ty),+ $(,)? })+) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
            #[repr(C)]
            pub(crate) struct $name { $(pub(crate) $field: $type),+ }
        )+
    };
}

layout! {
    Header { id: le::U16, command: le::U16, size: le::U32, flags: le::U32, error: le::U32 }
    /// Followed by the capabilities, JSON in a C string.
    Version { major: le::U16, minor: le::U16 }
    DmaMap { argsz: le::U32, flags: le::U32, offset: le::U64, address: le::U64, size: le::U64 }
    DmaUnmap { argsz: le::U32, flags: le::U32, address: le::U64, size: le::U64 }
    DeviceInfo { argsz: le::U32, flags: le::U32, regions: le::U32, irqs: le::U32 }
    RegionInfo { argsz: le::U32, flags: le::U32, index: le::U32, cap_offset: le::U32, size: le::U64, offset: le::U64 }
    IrqInfo { argsz: le::U32, flags: le::U32, index: le::U32, count: le::U32 }
    IrqSet { argsz: le::U32, flags: le::U32, index: le::U32, start: le::U32, count: le::U32 }
    /// Followed by `count` bytes in a write and in the reply to a read.
    RegionAccess { offset: le::U64, region: le::U32, count: le::U32 }
    /// Followed by this many [`OneWrite`].
    WriteMulti { writes: le::U64 }
    OneWrite { access: RegionAccess, data: [u8; 8] }
}

pub(crate) const HEADER: usize = size_of::<Header>();
