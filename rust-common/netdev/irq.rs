// SPDX-License-Identifier: GPL-2.0

//! Interrupts: the MSI-X vectors of a PCI device, and handlers for them.

use core::cell::UnsafeCell;

use kernel::{
    device,
    error::to_result,
    new_mutex, pci,
    prelude::*,
    str::CString,
    sync::{
        aref::ARef,
        Arc,
        Mutex, //
    },
};

use crate::{
    bindings,
    pci::raw_pci, //
};

/// The number of an interrupt, as Linux counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IrqNumber(u32);

impl IrqNumber {
    pub(crate) fn as_raw(self) -> c_int {
        // CAST: It came from an `int` that was not negative.
        self.0 as c_int
    }
}

/// The MSI-X vectors of a PCI device.
///
/// Where the kernel can, a vector is allocated when it is first asked for, else all of them at
/// once. All that is made from it must be dropped before the driver is unbound.
pub struct MsixVectors(Arc<Vectors>);

/// # Invariants
///
/// - `dev` has the vectors below `fixed` allocated, and may have any other if `dynamic`.
/// - `taken[i]` says whether an [`IrqLine`] of vector `i` exists.
#[pin_data(PinnedDrop)]
struct Vectors {
    dev: ARef<pci::Device>,
    fixed: u32,
    dynamic: bool,
    #[pin]
    taken: Mutex<KVec<bool>>,
}

impl MsixVectors {
    /// Allocates at least one vector and, where more cannot follow later, up to `max`. Sleeps.
    ///
    /// # Errors
    ///
    /// - `ENOSPC` or `ENODEV` if there is none, or the device has no MSI-X.
    /// - `ENOMEM` if there is no memory.
    pub fn alloc(dev: &pci::Device<device::Bound>, max: u32) -> Result<Self> {
        let pdev = raw_pci(dev);
        // SAFETY: The device is valid.
        let table_len = unsafe { bindings::pci_msix_vec_count(pdev) };
        let table_len = u32::try_from(table_len).map_err(|_| ENODEV)?;
        // SAFETY: The device is valid.
        let dynamic = unsafe { bindings::pci_msix_can_alloc_dyn(pdev) };
        let first = if dynamic {
            1
        } else {
            max.clamp(1, table_len.max(1))
        };
        let mut taken = KVec::new();
        for _ in 0..table_len {
            taken.push(false, GFP_KERNEL)?;
        }
        // SAFETY: The device is valid, and bound to the caller's driver.
        let fixed =
            unsafe { bindings::pci_alloc_irq_vectors(pdev, 1, first, bindings::PCI_IRQ_MSIX) };
        to_result(fixed)?;
        let dev: &pci::Device = dev;
        let vectors = Arc::pin_init(
            // INVARIANT: `fixed` vectors were allocated; no line of any exists.
            pin_init!(Vectors {
                dev: dev.into(),
                // CAST: It is not negative.
                fixed: fixed as u32,
                dynamic,
                taken <- new_mutex!(taken),
            }),
            GFP_KERNEL,
        )
        .inspect_err(|_| {
            // SAFETY: They were allocated above, and nobody uses them.
            unsafe { bindings::pci_free_irq_vectors(pdev) };
        })?;
        Ok(Self(vectors))
    }

    /// Vectors that the device has.
    pub fn table_len(&self) -> u32 {
        // CAST: It was made from a `u32`.
        self.0.taken.lock().len() as u32
    }

    /// Vectors that can be had.
    pub fn available(&self) -> u32 {
        if self.0.dynamic {
            self.table_len()
        } else {
            self.0.fixed
        }
    }

    /// Hands out vector `index`. Sleeps.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if there is no such vector.
    /// - `EBUSY` if it is handed out.
    /// - `ENOSPC` or `ENOMEM` if it cannot be allocated.
    pub fn line(&self, index: u32) -> Result<IrqLine> {
        // CAST: `usize` has 64 bits on every target.
        let slot = index as usize;
        let mut taken = self.0.taken.lock();
        if *taken.get(slot).ok_or(EINVAL)? {
            return Err(EBUSY);
        }
        let pdev = raw_pci(&self.0.dev);
        let (irq, allocated) = if index < self.0.fixed {
            // SAFETY: The device is valid.
            (unsafe { bindings::pci_irq_vector(pdev, index) }, None)
        } else if self.0.dynamic {
            // SAFETY: The device is valid and can allocate vectors at any time. `index` is inside of
            // its table, and not allocated: no line of it exists.
            let map = unsafe { bindings::pci_msix_alloc_irq_at(pdev, index, core::ptr::null()) };
            if map.index < 0 {
                return Err(Error::from_errno(map.index));
            }
            (map.virq, Some(map))
        } else {
            return Err(EINVAL);
        };
        let number = IrqNumber(u32::try_from(irq).map_err(|_| EINVAL)?);
        if let Some(taken) = taken.get_mut(slot) {
            *taken = true;
        }
        drop(taken);
        // INVARIANT: The vector was free, and is marked as handed out.
        Ok(IrqLine {
            vectors: self.0.clone(),
            index,
            number,
            allocated,
        })
    }
}

#[pinned_drop]
impl PinnedDrop for Vectors {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The vectors were allocated, and no line refers to them any more.
        unsafe { bindings::pci_free_irq_vectors(raw_pci(&self.dev)) };
    }
}

/// One MSI-X vector, handed out once at a time.
///
/// # Invariants
///
/// - Vector `index` of the device is allocated, and has the interrupt `number`.
/// - No other line of it exists.
/// - It was allocated for this line if `allocated` says how.
pub struct IrqLine {
    vectors: Arc<Vectors>,
    index: u32,
    number: IrqNumber,
    allocated: Option<bindings::msi_map>,
}

impl IrqLine {
    /// The number of the interrupt.
    pub fn number(&self) -> IrqNumber {
        self.number
    }

    /// The index of the vector in the device's table.
    pub fn index(&self) -> u32 {
        self.index
    }
}

impl Drop for IrqLine {
    fn drop(&mut self) {
        let mut taken = self.vectors.taken.lock();
        if let Some(map) = self.allocated {
            // SAFETY: The vector was allocated by `pci_msix_alloc_irq_at()`, and has no handler: a
            // `Registration` owns its line.
            unsafe { bindings::pci_msix_free_irq(raw_pci(&self.vectors.dev), map) };
        }
        // CAST: `usize` has 64 bits on every target.
        if let Some(taken) = taken.get_mut(self.index as usize) {
            *taken = false;
        }
    }
}

/// Whether a handler had something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IrqReturn {
    /// Nothing: too many of these, and the kernel switches the interrupt off.
    None,
    /// The device had something to say.
    Handled,
}

/// What runs when an interrupt comes.
pub trait Handler: Send + 'static {
    /// Hard interrupt. Never runs twice at a time, so it may change its state.
    fn handle(&mut self) -> IrqReturn;
}

/// What lies still while the handler is registered.
struct Inner<H> {
    line: IrqLine,
    name: CString,
    handler: UnsafeCell<H>,
}

/// A handler that is registered, until dropped.
///
/// Dropping it waits for a handler that runs. It must not be leaked: the code behind it goes away
/// with the module.
///
/// # Invariants
///
/// The handler was requested with `inner` as its cookie, and is the only one of its line.
pub struct Registration<H: Handler> {
    inner: Pin<KBox<Inner<H>>>,
}

// SAFETY: Only the interrupt uses the handler, which may be sent to it; the rest belongs to no thread.
unsafe impl<H: Handler> Send for Registration<H> {}

// SAFETY: A shared reference gives access to nothing.
unsafe impl<H: Handler> Sync for Registration<H> {}

impl<H: Handler> Registration<H> {
    /// Requests the interrupt; it may come before this returns. Sleeps.
    ///
    /// `name` is what /proc/interrupts shows.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or what request_irq() says.
    pub fn new(line: IrqLine, name: CString, handler: H) -> Result<Self> {
        let inner = KBox::pin(
            Inner {
                line,
                name,
                handler: UnsafeCell::new(handler),
            },
            GFP_KERNEL,
        )?;
        let cookie = core::ptr::from_ref::<Inner<H>>(&inner);
        // SAFETY:
        // - The interrupt is allocated: the line says so, and lives in `inner`.
        // - `name` and `cookie` stay where they are until the handler is freed.
        // - `callback::<H>` takes such a cookie.
        to_result(unsafe {
            bindings::request_threaded_irq(
                inner.line.number.0,
                Some(callback::<H>),
                None,
                0,
                inner.name.as_char_ptr(),
                cookie.cast_mut().cast(),
            )
        })?;
        // INVARIANT: It was requested; without IRQF_SHARED a line has one handler.
        Ok(Self { inner })
    }
}

impl<H: Handler> Drop for Registration<H> {
    fn drop(&mut self) {
        let cookie = core::ptr::from_ref::<Inner<H>>(&self.inner);
        // SAFETY: By the type invariant it was requested with this cookie.
        unsafe {
            bindings::free_irq(self.inner.line.number.0, cookie.cast_mut().cast());
        }
    }
}

/// # Safety
///
/// `cookie` points to the [`Inner`] of a registration that is not dropped yet.
unsafe extern "C" fn callback<H: Handler>(
    _irq: c_int,
    cookie: *mut c_void,
) -> kernel::bindings::irqreturn {
    // SAFETY: By the safety requirement.
    let inner = unsafe { &*cookie.cast::<Inner<H>>() };
    // SAFETY: The handler is used here only, and the handler of an interrupt never runs twice at a
    // time, so this is the only reference.
    let handler = unsafe { &mut *inner.handler.get() };
    match handler.handle() {
        IrqReturn::None => kernel::bindings::irqreturn::IRQ_NONE,
        IrqReturn::Handled => kernel::bindings::irqreturn::IRQ_HANDLED,
    }
}
