// SPDX-License-Identifier: GPL-2.0

//! Registers of a PCI device in a memory BAR. Little-endian.

use core::ptr::NonNull;

use kernel::{
    device,
    error::to_result,
    pci,
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    },
};

use crate::{
    bindings,
    pci::raw_pci, //
};

/// A memory BAR, reserved and mapped.
///
/// Reads and writes are in order with each other. A write comes after all earlier writes to
/// consistent memory, as `writel()` and `writeq()` have it. Context: accesses from any; made and
/// dropped in process context. It must be dropped before the driver is unbound.
///
/// # Invariants
///
/// `base` maps `len` bytes of BAR `index` of `dev`, which was requested for it.
pub struct Bar {
    dev: ARef<pci::Device>,
    index: c_int,
    base: NonNull<c_void>,
    len: usize,
}

// SAFETY: The mapping belongs to no thread.
unsafe impl Send for Bar {}

// SAFETY: Accesses to registers are single accesses, from any number of threads.
unsafe impl Sync for Bar {}

impl Bar {
    /// Reserves and maps BAR `index`, for the driver `name`. Sleeps.
    ///
    /// # Errors
    ///
    /// - `EBUSY` if somebody else has it.
    /// - `ENODEV` if the device has no such BAR.
    /// - `ENOMEM` if it cannot be mapped.
    pub fn map(
        dev: &pci::Device<device::Bound>,
        index: u32,
        name: &'static CStr,
    ) -> Result<Arc<Self>> {
        let len = usize::try_from(dev.resource_len(index)?)?;
        if len == 0 {
            return Err(ENODEV);
        }
        let pdev = raw_pci(dev);
        let index = c_int::try_from(index)?;
        // SAFETY: The device is valid, and `resource_len` has checked the index.
        to_result(unsafe { bindings::pci_request_region(pdev, index, name.as_char_ptr()) })?;
        // SAFETY: As above, and the BAR is reserved.
        let base = unsafe { bindings::pci_iomap(pdev, index, 0) };
        let Some(base) = NonNull::new(base) else {
            // SAFETY: It was reserved above.
            unsafe { bindings::pci_release_region(pdev, index) };
            return Err(ENOMEM);
        };
        let dev: &pci::Device = dev;
        // INVARIANT: All of the BAR was mapped; from here on `Drop` undoes both.
        let bar = Self {
            dev: dev.into(),
            index,
            base,
            len,
        };
        Ok(Arc::new(bar, GFP_KERNEL)?)
    }

    /// Bytes of the BAR.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns a pointer to the register of type `T` at `offset` if it lies inside, and is aligned.
    fn at<T>(&self, offset: usize) -> Result<NonNull<c_void>> {
        let size = size_of::<T>();
        if offset % size != 0 || offset > self.len || size > self.len - offset {
            return Err(EINVAL);
        }
        // SAFETY: The result is inside of the mapping.
        Ok(unsafe { self.base.byte_add(offset) })
    }

    /// Reads the 32-bit register at `offset`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is not aligned, or not inside.
    pub fn read32(&self, offset: usize) -> Result<u32> {
        let reg = self.at::<u32>(offset)?;
        // SAFETY: `reg` is that of a register in the mapping.
        Ok(unsafe { bindings::readl(reg.as_ptr()) })
    }

    /// Reads the 64-bit register at `offset`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is not aligned, or not inside.
    pub fn read64(&self, offset: usize) -> Result<u64> {
        let reg = self.at::<u64>(offset)?;
        // SAFETY: `reg` is that of a register in the mapping.
        Ok(unsafe { bindings::readq(reg.as_ptr()) })
    }

    /// Writes the 32-bit register at `offset`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is not aligned, or not inside.
    pub fn write32(&self, offset: usize, value: u32) -> Result {
        let reg = self.at::<u32>(offset)?;
        // SAFETY: `reg` is that of a register in the mapping.
        unsafe { bindings::writel(value, reg.as_ptr()) };
        Ok(())
    }

    /// Writes the 64-bit register at `offset`, in one access.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is not aligned, or not inside.
    pub fn write64(&self, offset: usize, value: u64) -> Result {
        let reg = self.at::<u64>(offset)?;
        // SAFETY: `reg` is that of a register in the mapping.
        unsafe { bindings::writeq(value, reg.as_ptr()) };
        Ok(())
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        let pdev = raw_pci(&self.dev);
        // SAFETY: By the type invariant the BAR is mapped and reserved; nobody uses it any more.
        unsafe {
            bindings::pci_iounmap(pdev, self.base.as_ptr());
            bindings::pci_release_region(pdev, self.index);
        }
    }
}

macro_rules! doorbell {
    ($name:ident, $value:ty, $write:ident, $bits:literal) => {
        #[doc = concat!("A ", $bits, "-bit register that is written often: checked once, when made.")]
        ///
        /// Context: any.
        ///
        /// # Invariants
        ///
        /// `reg` is that of a register of this width in the mapping of `bar`.
        #[derive(Clone)]
        pub struct $name {
            reg: NonNull<c_void>,
            #[expect(dead_code, reason = "keeps `reg` mapped")]
            bar: Arc<Bar>,
        }

        // SAFETY: The mapping belongs to no thread.
        unsafe impl Send for $name {}

        // SAFETY: A write is one access.
        unsafe impl Sync for $name {}

        impl $name {
            /// The register at `offset` of `bar`. Any context.
            ///
            /// # Errors
            ///
            /// `EINVAL` if it is not aligned, or not inside.
            pub fn new(bar: &Arc<Bar>, offset: usize) -> Result<Self> {
                // INVARIANT: `at` has checked it.
                Ok(Self {
                    reg: bar.at::<$value>(offset)?,
                    bar: bar.clone(),
                })
            }

            /// Writes the register, in one access, after all earlier writes to consistent memory.
            #[inline(always)]
            pub fn write(&self, value: $value) {
                // SAFETY: By the type invariant.
                unsafe { bindings::$write(value, self.reg.as_ptr()) };
            }
        }
    };
}

doorbell!(Doorbell32, u32, writel, "32");
doorbell!(Doorbell64, u64, writeq, "64");
