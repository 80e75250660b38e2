// SPDX-License-Identifier: GPL-2.0

//! Offsets of equal elements in one DMA-mapped block.
//!
//! One mapping for all elements of a ring replaces one per element (headers,
//! gather lists, command buffers). All arithmetic that could overflow is done
//! when the slab is described; look-ups cannot fail for a valid index.

/// Layout of `count` elements in one block, in bytes.
///
/// ```
/// use ring_core::slab::Slab;
///
/// // Gather lists of 200 bytes for a ring of 512, each on its own cache line.
/// let slab = Slab::new(200, 512, 64).unwrap();
/// assert_eq!((slab.stride(), slab.bytes()), (256, 512 * 256));
/// assert_eq!(slab.offset(511), Some(511 * 256));
/// assert_eq!(slab.offset(512), None);
/// assert_eq!(slab.index(256), Some(1));
/// assert_eq!(slab.index(257), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slab {
    size: usize,
    stride: usize,
    count: u32,
    bytes: usize,
}

impl Slab {
    /// Describes `count` elements of `size` bytes, each aligned to `align`
    /// relative to the block, which must itself be aligned so.
    ///
    /// `None` if `size` or `count` is 0, `align` is no power of two, or the
    /// block would exceed `isize::MAX` bytes.
    pub const fn new(size: usize, count: u32, align: usize) -> Option<Self> {
        if size == 0 || count == 0 || !align.is_power_of_two() {
            return None;
        }
        // CAST: usize has 32 bits or more on every target.
        let elements = count as usize;
        let Some(stride) = size.checked_next_multiple_of(align) else {
            return None;
        };
        let Some(bytes) = stride.checked_mul(elements) else {
            return None;
        };
        // CAST: isize::MAX is positive.
        if bytes > isize::MAX as usize {
            return None;
        }
        Some(Self {
            size,
            stride,
            count,
            bytes,
        })
    }

    /// Usable bytes of one element.
    pub const fn size(self) -> usize {
        self.size
    }

    /// Bytes from one element to the next.
    pub const fn stride(self) -> usize {
        self.stride
    }

    /// Number of elements.
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Bytes of the whole block.
    pub const fn bytes(self) -> usize {
        self.bytes
    }

    /// Where element `index` starts; `None` past the last.
    #[inline]
    pub const fn offset(self, index: u32) -> Option<usize> {
        if index >= self.count {
            return None;
        }
        // Below `bytes`, so it does not overflow. CAST: as in `new`.
        Some(self.stride.wrapping_mul(index as usize))
    }

    /// The element that starts at `offset`, for a device that hands back an
    /// address; `None` if none starts there.
    #[inline]
    pub const fn index(self, offset: usize) -> Option<u32> {
        if offset >= self.bytes {
            return None;
        }
        match (
            offset.checked_rem(self.stride),
            offset.checked_div(self.stride),
        ) {
            // CAST: below `count`, which is a u32.
            (Some(0), Some(index)) => Some(index as u32),
            _ => None,
        }
    }
}
