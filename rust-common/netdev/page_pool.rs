// SPDX-License-Identifier: GPL-2.0

//! Buffers for received packets, from a page pool.
//!
//! The pool keeps its pages mapped for DMA and takes them back when the stack frees a packet.
//! Buffers share a page where they fit: two of them for an MTU of 1500 in 4 KiB.

use core::{
    mem::{
        forget,
        ManuallyDrop, //
    },
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
    netdev_err,
    skb::RxInfo,
    xdp::{
        Run,
        RxqInfo,
        Verdict,
        XdpSlot, //
    },
};

/// The source of the buffers of one RX queue, which one NAPI polls.
///
/// It must be dropped while that NAPI is disabled, and before the driver is unbound from the device
/// that does DMA. Buffers may outlive it.
///
/// # Invariants
///
/// - `pool` is a page pool of `page_size` bytes a page that maps its pages, with `napi` as its user; with
///   `rxq`, for DMA in both directions.
/// - `size` is what [`Layout`] says for `buffer_len` and `headroom`, and at most `page_size`.
pub struct PagePool {
    pool: NonNull<bindings::page_pool>,
    napi: NapiRef,
    size: u32,
    buffer_len: u32,
    headroom: u32,
    /// For programs; dropped by `drop`, while the NAPI is disabled.
    rxq: ManuallyDrop<Option<RxqInfo>>,
    // The pool's fast side has no lock.
    _not_sync: NotThreadSafe,
}

// SAFETY: The pool may be used by any one thread at a time.
unsafe impl Send for PagePool {}

impl PagePool {
    /// Largest MTU whose packets fit into a buffer, in bytes.
    pub const MAX_MTU: u32 = max_mtu(
        CPU_PAGE_SIZE << bindings::PAGE_ALLOC_COSTLY_ORDER,
        RxBuffer::HEADROOM,
    );

    /// Largest MTU whose packets fit into a buffer that XDP programs can run on, in bytes.
    ///
    /// Programs expect a packet, with room before and behind it, in one CPU page.
    pub const MAX_XDP_MTU: u32 = max_mtu(CPU_PAGE_SIZE, RxBuffer::XDP_HEADROOM);

    /// Makes a pool for a ring of `entries` buffers that hold frames of `mtu` bytes behind the
    /// Ethernet header and one VLAN tag; for RX queue `xdp`, if programs run on them. Sleeps.
    ///
    /// # Errors
    ///
    /// - `EINVAL` for an MTU above [`MAX_MTU`](Self::MAX_MTU) or [`MAX_XDP_MTU`](Self::MAX_XDP_MTU).
    /// - `ENOMEM` if there is no memory.
    pub fn new(
        dev: &device::Device,
        napi: NapiRef,
        entries: u32,
        mtu: u32,
        xdp: Option<u16>,
    ) -> Result<Self> {
        let (headroom, max_mtu) = match xdp {
            Some(_) => (RxBuffer::XDP_HEADROOM, Self::MAX_XDP_MTU),
            None => (RxBuffer::HEADROOM, Self::MAX_MTU),
        };
        if mtu > max_mtu {
            return Err(EINVAL);
        }
        let layout = Layout::new(mtu, headroom).ok_or(EINVAL)?;
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
            fast.dma_dir = match xdp {
                // A program may send a packet back out of its buffer.
                Some(_) => bindings::dma_data_direction_DMA_BIDIRECTIONAL,
                None => bindings::dma_data_direction_DMA_FROM_DEVICE,
            };
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
        let mut pool = Self {
            pool: NonNull::new(pool).ok_or(ENOMEM)?,
            napi,
            size: layout.size,
            buffer_len: layout.buffer_len,
            headroom,
            rxq: ManuallyDrop::new(None),
            _not_sync: NotThreadSafe,
        };
        if let Some(queue) = xdp {
            // SAFETY: The pool is valid. The result is dropped with it, while its NAPI is disabled; `napi`
            // refers to the device.
            let rxq = unsafe { RxqInfo::new(pool.napi.device(), queue, pool.pool)? };
            pool.rxq = ManuallyDrop::new(Some(rxq));
        }
        Ok(pool)
    }

    /// Runs the program in `slot` on the packet of `len` bytes at the start of `buffer`, received on
    /// `queue`, and does what it says. Without a program the packet goes to the stack.
    ///
    /// A packet of a length that the buffer cannot hold, or a pool that was not made for programs, is a
    /// fault: [`Verdict::Aborted`].
    #[inline]
    pub fn run_xdp(
        &self,
        cx: &PollContext<'_>,
        slot: &XdpSlot,
        buffer: RxBuffer,
        len: u32,
        queue: u16,
        info: &RxInfo,
    ) -> Verdict {
        let fits = (bindings::ETH_HLEN..=buffer.capacity()).contains(&len);
        let Some(rxq) = self.rxq.as_ref().filter(|_| fits) else {
            return Verdict::Aborted(buffer);
        };
        if !cx.receives_for(&self.napi) {
            return Verdict::Aborted(buffer);
        }
        let run = Run {
            slot,
            rxq,
            napi: self.napi.as_ptr(),
            info: info.to_raw(buffer.headroom(), len, queue),
        };
        // SAFETY: This is within a poll of the NAPI, with a budget; the length was just checked.
        unsafe { run.on(buffer) }
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
            headroom: self.headroom,
        })
    }
}

impl Drop for PagePool {
    fn drop(&mut self) {
        let Self {
            pool, napi, rxq, ..
        } = self;
        let destroyed = napi.while_disabled(|| {
            // SAFETY: It is not used again.
            unsafe { ManuallyDrop::drop(rxq) };
            // SAFETY: The pool is alive, and its NAPI is disabled. It frees itself once the last
            // buffer is back.
            unsafe { bindings::page_pool_destroy(pool.as_ptr()) };
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

/// Largest MTU of a buffer that takes `page` bytes, behind so much headroom.
const fn max_mtu(page: u32, headroom: u32) -> u32 {
    let packet = page - bindings::SKB_SHARED_INFO_SIZE;
    let aligned = packet - packet % bindings::SMP_CACHE_BYTES;
    aligned - headroom - bindings::ETH_HLEN - bindings::VLAN_HLEN
}

impl Layout {
    fn new(mtu: u32, headroom: u32) -> Option<Self> {
        // A tag inside of the frame is not part of the MTU.
        let buffer_len = mtu.checked_add(bindings::ETH_HLEN + bindings::VLAN_HLEN)?;
        // SKB_DATA_ALIGN(), as napi_build_skb() expects it.
        let size = headroom
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
/// `headroom`, `capacity` bytes and the shared info fit in it. Its pool frees itself only after all
/// of its buffers are back.
pub struct RxBuffer {
    va: NonNull<u8>,
    dma: bindings::dma_addr_t,
    size: u32,
    capacity: u32,
    headroom: u32,
}

// SAFETY: A buffer belongs to no thread.
unsafe impl Send for RxBuffer {}

// SAFETY: Nothing can be changed through a shared reference.
unsafe impl Sync for RxBuffer {}

impl RxBuffer {
    /// Bytes before the packet that the stack wants.
    const HEADROOM: u32 = bindings::NET_SKB_PAD + bindings::NET_IP_ALIGN;

    /// Bytes before the packet that programs want.
    const XDP_HEADROOM: u32 = bindings::XDP_PACKET_HEADROOM + bindings::NET_IP_ALIGN;

    /// Bytes before the packet.
    #[inline(always)]
    pub(crate) fn headroom(&self) -> u32 {
        self.headroom
    }

    /// Where the device writes the packet.
    #[inline(always)]
    pub fn addr(&self) -> DmaAddr<'_> {
        let addr = self.dma.wrapping_add(u64::from(self.headroom));
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
        let raw = self.as_raw();
        forget(self);
        raw
    }

    /// Describes the buffer to who may take it over.
    #[inline(always)]
    pub(crate) fn as_raw(&self) -> bindings::rc_helper_rx_buf {
        bindings::rc_helper_rx_buf {
            va: self.va.as_ptr().cast(),
            dma: self.dma,
            size: self.size,
        }
    }
}

impl Drop for RxBuffer {
    fn drop(&mut self) {
        // SAFETY: The buffer is owned, and given back here.
        unsafe { bindings::rc_helper_rx_free(self.va.as_ptr().cast()) };
    }
}
