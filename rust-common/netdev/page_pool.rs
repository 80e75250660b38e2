// SPDX-License-Identifier: GPL-2.0

//! Buffers for received packets, from a page pool.
//!
//! The pool keeps its pages mapped for DMA and takes them back when the stack frees a packet.
//! Buffers share a page where they fit: two of them for an MTU of 1500 in 4 KiB.

use core::{
    mem::forget,
    ptr::NonNull, //
};

use kernel::{
    device,
    error::from_err_ptr,
    prelude::*,
    types::NotThreadSafe, //
};

use crate::{
    bindings,
    dma::{
        raw_device,
        DmaAddr, //
    },
    napi::{
        NapiRef,
        PollContext, //
    },
    netdev_err, //
};

/// The source of the buffers of one RX queue, which one NAPI polls.
///
/// It must be dropped while that NAPI is disabled, and before the driver is unbound from the device
/// that does DMA. Buffers may outlive it.
///
/// # Invariants
///
/// - `pool` is a page pool of `page_size` bytes a page that maps its pages, with `napi` as its user.
/// - `size` is what [`Layout`] says for `buffer_len`, and at most `page_size`.
pub struct PagePool {
    pool: NonNull<bindings::page_pool>,
    napi: NapiRef,
    size: u32,
    buffer_len: u32,
    // The pool's fast side has no lock.
    _not_sync: NotThreadSafe,
}

// SAFETY: The pool may be used by any one thread at a time.
unsafe impl Send for PagePool {}

impl PagePool {
    /// Largest MTU whose packets fit into a buffer, in bytes.
    pub const MAX_MTU: u32 = {
        let page = CPU_PAGE_SIZE << bindings::PAGE_ALLOC_COSTLY_ORDER;
        let packet = page - bindings::SKB_SHARED_INFO_SIZE;
        let aligned = packet - packet % bindings::SMP_CACHE_BYTES;
        aligned - RxBuffer::HEADROOM - bindings::ETH_HLEN - bindings::VLAN_HLEN
    };

    /// Makes a pool for a ring of `entries` buffers that hold frames of `mtu` bytes behind the
    /// Ethernet header and one VLAN tag. Sleeps.
    ///
    /// # Errors
    ///
    /// - `EINVAL` for an MTU that no page is large enough for.
    /// - `ENOMEM` if there is no memory.
    pub fn new(dev: &device::Device, napi: NapiRef, entries: u32, mtu: u32) -> Result<Self> {
        let layout = Layout::new(mtu).ok_or(EINVAL)?;
        // SAFETY: Zeroes are a valid value of the C type, all of whose pointers may be null.
        let mut params: bindings::page_pool_params = unsafe { core::mem::zeroed() };
        {
            // SAFETY: Both views of these anonymous unions have the same layout.
            let fast = unsafe { &mut params.__bindgen_anon_1.fast };
            fast.order = layout.order;
            // More than this the ring behind the pool cannot have; it holds what is recycled.
            fast.pool_size = entries.min(MAX_POOL_SIZE);
            fast.nid = bindings::NUMA_NO_NODE;
            fast.dev = raw_device(dev);
            fast.napi = napi.as_ptr();
            fast.dma_dir = bindings::dma_data_direction_DMA_FROM_DEVICE;
            fast.max_len = layout.page_size();
            fast.offset = 0;
        }
        {
            // SAFETY: As above.
            let slow = unsafe { &mut params.__bindgen_anon_2.slow };
            slow.netdev = napi.device().as_ptr();
            slow.flags = bindings::PP_FLAG_DMA_MAP | bindings::PP_FLAG_DMA_SYNC_DEV;
        }
        // SAFETY: The parameters are complete. The device that does DMA is bound to the caller's
        // driver; the NAPI outlives the pool's use of it, since `napi` refers to it.
        let pool = from_err_ptr(unsafe { bindings::page_pool_create(&params) })?;
        // INVARIANT: The pool was made with these parameters.
        Ok(Self {
            pool: NonNull::new(pool).ok_or(ENOMEM)?,
            napi,
            size: layout.size,
            buffer_len: layout.buffer_len,
            _not_sync: NotThreadSafe,
        })
    }

    /// Bytes that a device may write to each buffer.
    pub fn buffer_len(&self) -> u32 {
        self.buffer_len
    }

    /// Takes a buffer, within the poll of the pool's NAPI. `None` if there is no memory, or in any
    /// other poll.
    #[inline]
    pub fn alloc(&self, cx: &PollContext<'_>) -> Option<RxBuffer> {
        if !cx.receives_for(&self.napi) {
            return None;
        }
        // SAFETY: This is the poll of the pool's NAPI.
        unsafe { self.take() }
    }

    /// Takes a buffer before the NAPI is enabled. `None` if there is no memory, or the NAPI is
    /// enabled. Sleeps.
    pub fn alloc_disabled(&self) -> Option<RxBuffer> {
        self.napi.while_disabled(|| {
            // SAFETY: The NAPI is disabled, so this is the only user of the pool's fast side: the
            // pool is not `Sync`, and who frees a page elsewhere takes that side only where the
            // NAPI is being polled.
            unsafe { self.take() }
        })?
    }

    /// # Safety
    ///
    /// Either this is the poll of the pool's NAPI, or that is disabled.
    #[inline(always)]
    unsafe fn take(&self) -> Option<RxBuffer> {
        let mut raw = bindings::rc_helper_rx_buf {
            va: core::ptr::null_mut(),
            dma: 0,
            size: 0,
        };
        // SAFETY: The pool is alive, by the safety requirement this is its user, and `size` is at
        // most a page of it.
        if !unsafe { bindings::rc_helper_rx_alloc(self.pool.as_ptr(), self.size, &mut raw) } {
            return None;
        }
        // INVARIANT: The buffer was just taken, of at least `size` bytes, which is what the layout
        // needs for `buffer_len`.
        Some(RxBuffer {
            va: NonNull::new(raw.va.cast())?,
            dma: raw.dma,
            size: raw.size,
            capacity: self.buffer_len,
        })
    }
}

impl Drop for PagePool {
    fn drop(&mut self) {
        let destroyed = self.napi.while_disabled(|| {
            // SAFETY: The pool is alive, and its NAPI is disabled. It frees itself once the last
            // buffer is back.
            unsafe { bindings::page_pool_destroy(self.pool.as_ptr()) };
        });
        if destroyed.is_none() {
            // The NAPI could use the pool while it is taken down: better leak both.
            netdev_err!(
                self.napi.device(),
                "a page pool is dropped while its NAPI is enabled\n"
            );
            forget(self.napi.clone());
        }
    }
}

/// Largest `pool_size` that page_pool_create() takes.
const MAX_POOL_SIZE: u32 = 16384;

/// How buffers lie in pages.
struct Layout {
    /// Bytes that the device may write.
    buffer_len: u32,
    /// Bytes of the whole buffer.
    size: u32,
    /// Binary logarithm of the CPU pages of an allocation.
    order: u32,
}

impl Layout {
    fn new(mtu: u32) -> Option<Self> {
        // A tag inside of the frame is not part of the MTU.
        let buffer_len = mtu.checked_add(bindings::ETH_HLEN + bindings::VLAN_HLEN)?;
        // SKB_DATA_ALIGN(), as napi_build_skb() expects it.
        let size = RxBuffer::HEADROOM
            .checked_add(buffer_len)?
            .checked_next_multiple_of(bindings::SMP_CACHE_BYTES)?
            .checked_add(bindings::SKB_SHARED_INFO_SIZE)?;
        let order = size
            .div_ceil(CPU_PAGE_SIZE)
            .checked_next_power_of_two()?
            .trailing_zeros();
        // What the page allocator gives without effort.
        (order <= bindings::PAGE_ALLOC_COSTLY_ORDER).then_some(Self {
            buffer_len,
            size,
            order,
        })
    }

    fn page_size(&self) -> u32 {
        CPU_PAGE_SIZE << self.order
    }
}

// CAST: A page has at most 64 KiB.
const CPU_PAGE_SIZE: u32 = kernel::page::PAGE_SIZE as u32;

/// A buffer for one received packet, mapped for the device.
///
/// Dropping it gives it back to its pool. Context: any but hard interrupt.
///
/// # Invariants
///
/// `va`, `dma` and `size` describe a buffer that `rc_helper_rx_alloc()` returned and that is owned;
/// `capacity` bytes, the headroom and the shared info fit in it. Its pool frees itself only after all
/// of its buffers are back.
pub struct RxBuffer {
    va: NonNull<u8>,
    dma: bindings::dma_addr_t,
    size: u32,
    capacity: u32,
}

// SAFETY: A buffer belongs to no thread.
unsafe impl Send for RxBuffer {}

// SAFETY: Nothing can be changed through a shared reference.
unsafe impl Sync for RxBuffer {}

impl RxBuffer {
    /// Bytes before the packet that the stack wants.
    pub(crate) const HEADROOM: u32 = bindings::NET_SKB_PAD + bindings::NET_IP_ALIGN;

    /// Where the device writes the packet.
    #[inline(always)]
    pub fn addr(&self) -> DmaAddr<'_> {
        let addr = self.dma.wrapping_add(u64::from(Self::HEADROOM));
        // SAFETY: The pool keeps the buffer mapped while it is owned.
        unsafe { DmaAddr::new(addr) }
    }

    /// Bytes that the device may write.
    #[inline(always)]
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Gives the buffer up to who consumes it.
    #[inline(always)]
    pub(crate) fn into_raw(self) -> bindings::rc_helper_rx_buf {
        let raw = bindings::rc_helper_rx_buf {
            va: self.va.as_ptr().cast(),
            dma: self.dma,
            size: self.size,
        };
        forget(self);
        raw
    }
}

impl Drop for RxBuffer {
    fn drop(&mut self) {
        // SAFETY: The buffer is owned, and given back here.
        unsafe { bindings::rc_helper_rx_free(self.va.as_ptr().cast()) };
    }
}
