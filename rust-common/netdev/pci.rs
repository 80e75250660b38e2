// SPDX-License-Identifier: GPL-2.0

//! PCI drivers, with what `kernel::pci` leaves out: `shutdown`, sleep, and enabling the whole device.
//!
//! A driver implements [`Driver`], declares its ids with `kernel::pci_device_table!`, and its module
//! with [`module_pci_driver!`](crate::module_pci_driver):
//!
//! ```ignore
//! struct Mana;
//!
//! kernel::pci_device_table!(IDS, <Mana as netdev::pci::Driver>::IdInfo, [
//!     (DeviceId::from_id(Vendor::MICROSOFT, 0x00ba), ()),
//! ]);
//!
//! #[vtable]
//! impl netdev::pci::Driver for Mana {
//!     type IdInfo = ();
//!     type Data = Adapter;
//!     const ID_TABLE: IdTable<()> = &IDS;
//!
//!     fn probe(dev: &Device<Core<'_>>, _: Option<&'static ()>) -> impl PinInit<Adapter, Error> {
//!         Adapter::new(dev)
//!     }
//! }
//!
//! netdev::module_pci_driver! {
//!     type: Mana,
//!     name: "mana_rs",
//!     license: "GPL v2",
//! }
//! ```

use core::{
    mem::offset_of,
    sync::atomic::{
        AtomicBool,
        Ordering, //
    }, //
};

use kernel::{
    device::{
        Core,
        CoreInternal,
        DeviceContext, //
    },
    device_id::RawDeviceIdIndex,
    dma::{
        Device as _,
        DmaMask, //
    },
    driver,
    error::{
        from_result,
        to_result, //
    },
    pci::{
        Device,
        DeviceId,
        IdTable, //
    },
    prelude::*,
    sync::aref::ARef,
    types::Opaque, //
};

use crate::bindings;

/// A PCI driver.
///
/// The callbacks of one device never run at the same time. Context: process.
#[vtable]
pub trait Driver {
    /// What the driver knows of each id.
    type IdInfo: 'static;

    /// What belongs to a device while the driver is bound to it.
    ///
    /// Dropped behind [`remove`](Self::remove), when all that it holds of the device still works.
    type Data: Send + 'static;

    /// The ids of the devices that it drives.
    const ID_TABLE: IdTable<Self::IdInfo>;

    /// Takes a device.
    ///
    /// # Errors
    ///
    /// What the driver says; nothing is left behind.
    fn probe(
        dev: &Device<Core<'_>>,
        info: Option<&'static Self::IdInfo>,
    ) -> impl PinInit<Self::Data, Error>;

    /// Leaves a device; its data is dropped next.
    fn remove(_dev: &Device<Core<'_>>, _data: Pin<&Self::Data>) {}

    /// The system goes down, or boots another kernel: the device must stop its DMA.
    fn shutdown(_dev: &Device<Core<'_>>, _data: Pin<&Self::Data>) {}

    /// The system goes to sleep, or its memory is about to be written to a disk: the device must stop its
    /// DMA. Interrupt vectors that are kept stay valid.
    fn suspend(_dev: &Device<Core<'_>>, _data: Pin<&Self::Data>) {}

    /// The system is back; the device may have lost all that it was told.
    fn resume(_dev: &Device<Core<'_>>, _data: Pin<&Self::Data>) {}
}

/// Declares a module that is one [`Driver`].
#[macro_export]
macro_rules! module_pci_driver {
    ($($f:tt)*) => {
        ::kernel::module_driver!(<T>, $crate::pci::Adapter<T>, { $($f)* });
    };
}

/// What registers a [`Driver`].
pub struct Adapter<T: Driver>(T);

// SAFETY:
// - `pci_driver` is a C type, declared as `repr(C)`.
// - `T::Data` is the type of the data that `probe_callback` stores.
// - `pci_driver` has its `device_driver` at that offset.
unsafe impl<T: Driver> driver::DriverLayout for Adapter<T> {
    type DriverType = bindings::pci_driver;
    type DriverData<'bound> = T::Data;
    const DEVICE_DRIVER_OFFSET: usize = offset_of!(bindings::pci_driver, driver);
}

// SAFETY: What was registered can be unregistered.
unsafe impl<T: Driver> driver::RegistrationOps for Adapter<T> {
    unsafe fn register(
        driver: &Opaque<Self::DriverType>,
        name: &'static CStr,
        module: &'static ThisModule,
    ) -> Result {
        let driver = driver.get();
        // SAFETY: The driver is valid, and not registered yet, so its fields may be set.
        unsafe {
            (*driver).name = name.as_char_ptr();
            (*driver).probe = Some(Self::probe_callback);
            (*driver).remove = Some(Self::remove_callback);
            (*driver).shutdown = Some(Self::shutdown_callback);
            (*driver).id_table = T::ID_TABLE.as_ptr();
            (*driver).driver.pm = &Self::PM;
        }
        // SAFETY: The driver is valid and complete. It stays where it is until it is unregistered,
        // as the caller promises.
        to_result(unsafe {
            bindings::__pci_register_driver(driver, module.as_ptr(), name.as_char_ptr())
        })
    }

    unsafe fn unregister(driver: &Opaque<Self::DriverType>) {
        // SAFETY: The caller promises that it was registered.
        unsafe { bindings::pci_unregister_driver(driver.get()) };
    }
}

impl<T: Driver> Adapter<T> {
    /// Sleep of any depth is the same to a driver that takes its device down for it.
    const PM: bindings::dev_pm_ops = bindings::dev_pm_ops {
        suspend: Some(Self::suspend_callback),
        resume: Some(Self::resume_callback),
        freeze: Some(Self::suspend_callback),
        thaw: Some(Self::resume_callback),
        poweroff: Some(Self::suspend_callback),
        restore: Some(Self::resume_callback),
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// `pdev` is valid for the duration of the call, which is one of the PCI core's to this driver.
    unsafe fn device<'a>(pdev: *mut bindings::pci_dev) -> &'a Device<CoreInternal<'a>> {
        // SAFETY: By the safety requirement; `Device` is a transparent wrapper.
        unsafe { &*pdev.cast() }
    }

    /// # Safety
    ///
    /// `probe_callback` has succeeded for `dev`, and the device is not unbound yet.
    unsafe fn data<'a>(dev: &'a Device<CoreInternal<'_>>) -> Pin<&'a T::Data> {
        // SAFETY: By the safety requirement. `probe_callback` has stored a `T::Data`.
        unsafe { dev.as_ref().drvdata_borrow::<T::Data>() }
    }

    extern "C" fn probe_callback(
        pdev: *mut bindings::pci_dev,
        id: *const bindings::pci_device_id,
    ) -> c_int {
        // SAFETY: The PCI core passes a valid device.
        let dev = unsafe { Self::device(pdev) };
        // SAFETY: The PCI core passes a valid id; `DeviceId` is a transparent wrapper.
        let id = unsafe { &*id.cast::<DeviceId>() };
        // SAFETY: The id is one of `T::ID_TABLE`, or one that was added later, which has the data of
        // one in the table, or none.
        let info = unsafe { id.info_unchecked_opt::<T::IdInfo>() };
        from_result(|| {
            dev.as_ref().set_drvdata(T::probe(dev, info))?;
            Ok(0)
        })
    }

    extern "C" fn remove_callback(pdev: *mut bindings::pci_dev) {
        // SAFETY: The PCI core passes a valid device.
        let dev = unsafe { Self::device(pdev) };
        // SAFETY: The PCI core calls this after a probe that succeeded, before the device is unbound.
        T::remove(dev, unsafe { Self::data(dev) });
    }

    extern "C" fn shutdown_callback(pdev: *mut bindings::pci_dev) {
        // SAFETY: The PCI core passes a valid device.
        let dev = unsafe { Self::device(pdev) };
        // SAFETY: The PCI core calls this for devices that are bound, under the lock of the device
        // that probe holds too.
        T::shutdown(dev, unsafe { Self::data(dev) });
    }
}

impl<T: Driver> Adapter<T> {
    /// # Safety
    ///
    /// `dev` is that of a PCI device that is bound to this driver, whose lock is held.
    unsafe fn with(
        dev: *mut bindings::device,
        f: impl FnOnce(&Device<Core<'_>>, Pin<&T::Data>),
    ) -> c_int {
        // SAFETY: By the safety requirement.
        let dev = unsafe { Self::device(kernel::container_of!(dev, bindings::pci_dev, dev)) };
        // SAFETY: By the safety requirement; a device is bound once probe has succeeded.
        f(dev, unsafe { Self::data(dev) });
        0
    }

    extern "C" fn suspend_callback(dev: *mut bindings::device) -> c_int {
        // SAFETY: The core calls this for devices that are bound, under their lock.
        unsafe { Self::with(dev, |dev, data| T::suspend(dev, data)) }
    }

    extern "C" fn resume_callback(dev: *mut bindings::device) -> c_int {
        // SAFETY: As above.
        unsafe { Self::with(dev, |dev, data| T::resume(dev, data)) }
    }
}

/// The C side of a device.
pub(crate) fn raw_pci<Ctx: DeviceContext>(dev: &Device<Ctx>) -> *mut bindings::pci_dev {
    // `Device` is a transparent wrapper of `struct pci_dev`.
    core::ptr::from_ref(dev).cast_mut().cast()
}

/// A device that is enabled, and may do DMA, until dropped.
///
/// # Invariants
///
/// `dev` was enabled for this.
pub struct Enabled {
    dev: ARef<Device>,
    is_abandoned: AtomicBool,
}

impl Enabled {
    /// Enables the device, and lets it reach `dma_bits` bits of addresses. It does no DMA before
    /// [`start`](Self::start). Process context.
    ///
    /// # Errors
    ///
    /// What pci_enable_device() or dma_set_mask_and_coherent() says.
    pub fn new(dev: &Device<Core<'_>>, dma_bits: u32) -> Result<Self> {
        let mask = DmaMask::try_new(dma_bits)?;
        // SAFETY: The device is valid.
        to_result(unsafe { bindings::pci_enable_device(raw_pci(dev)) })?;
        let normal: &Device = dev;
        // INVARIANT: It was enabled just now.
        let this = Self {
            dev: normal.into(),
            is_abandoned: AtomicBool::new(false),
        };
        // SAFETY: The driver starts with the device here: it has no DMA memory yet.
        unsafe { dev.dma_set_mask_and_coherent(mask)? };
        Ok(this)
    }

    /// Makes the device a bus master. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `dev` is another device.
    pub fn start(&self, dev: &Device<Core<'_>>) -> Result {
        if raw_pci(dev) != raw_pci(&self.dev) {
            return Err(EINVAL);
        }
        dev.set_master();
        Ok(())
    }

    /// Runs `f` while nobody binds, unbinds, suspends or resumes the device; `None` if somebody does just now, or
    /// the device is not bound. Process context, sleeps.
    ///
    /// To try again later is the way for work that `remove` waits for.
    pub fn try_core<R>(&self, f: impl FnOnce(&Device<Core<'_>>) -> R) -> Option<R> {
        let pdev = raw_pci(&self.dev);
        // SAFETY: The device is valid.
        let dev = unsafe { &raw mut (*pdev).dev };
        // SAFETY: As above.
        if !unsafe { bindings::rc_helper_device_trylock(dev) } {
            return None;
        }
        // SAFETY: As above, and its lock is held.
        let result = unsafe { bindings::device_is_bound(dev) }.then(|| {
            // SAFETY: The device is valid, bound, and its lock is held until behind `f`; `Device` is a
            // transparent wrapper.
            f(unsafe { &*pdev.cast::<Device<CoreInternal<'_>>>() })
        });
        // SAFETY: The lock was taken above.
        unsafe { bindings::rc_helper_device_unlock(dev) };
        result
    }

    /// Whether the device is there, as its configuration space tells. Process context.
    pub fn is_present(&self) -> bool {
        // SAFETY: The device is valid.
        unsafe { bindings::pci_device_is_present(raw_pci(&self.dev)) }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.dev
    }

    /// Stops DMA and interrupts of the device. Process context.
    pub fn clear_master(&self) {
        // SAFETY: The device is valid.
        unsafe { bindings::pci_clear_master(raw_pci(&self.dev)) };
    }

    /// Stops DMA and interrupts of a device that no longer answers, and so may keep memory that it must give back.
    /// Process context.
    pub fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
        self.clear_master();
    }

    /// Resets a device that was abandoned, if it is still there: else it would use what it keeps as soon as somebody
    /// lets it do DMA again. Nobody uses the device any more. Process context, sleeps.
    ///
    /// `dev` is the same device, whose lock is held while it is bound or unbound.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `dev` is another device, else what pci_reset_function_locked() says.
    pub fn reset_if_abandoned(&self, dev: &Device<Core<'_>>) -> Result {
        let pdev = raw_pci(dev);
        if pdev != raw_pci(&self.dev) {
            return Err(EINVAL);
        }
        if !self.is_abandoned.load(Ordering::Relaxed) {
            return Ok(());
        }
        if !self.is_present() {
            return Ok(());
        }
        // SAFETY: The device is valid. It is in a `Core` context, so its lock is held.
        to_result(unsafe { bindings::pci_reset_function_locked(pdev) })?;
        self.is_abandoned.store(false, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Enabled {
    fn drop(&mut self) {
        self.clear_master();
        // SAFETY: The device is valid, and was enabled for this.
        unsafe { bindings::pci_disable_device(raw_pci(&self.dev)) };
    }
}
