// SPDX-License-Identifier: GPL-2.0

//! PCI drivers, with what `kernel::pci` leaves out: `shutdown`, and enabling the whole device.
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
    fn remove(dev: &Device<Core<'_>>, data: Pin<&Self::Data>) {
        let _ = (dev, data);
    }

    /// The system goes down, or boots another kernel: the device must stop its DMA.
    fn shutdown(dev: &Device<Core<'_>>, data: Pin<&Self::Data>) {
        let _ = (dev, data);
    }
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
    /// Enables the device, lets it reach `dma_bits` bits of addresses, and makes it a bus master.
    /// Process context.
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
        dev.set_master();
        Ok(this)
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
        // SAFETY: The device is valid.
        if !unsafe { bindings::pci_device_is_present(pdev) } {
            return Ok(());
        }
        // SAFETY: The device is valid. It is in a `Core` context, so its lock is held.
        to_result(unsafe { bindings::pci_reset_function_locked(pdev) })
    }
}

impl Drop for Enabled {
    fn drop(&mut self) {
        self.clear_master();
        // SAFETY: The device is valid, and was enabled for this.
        unsafe { bindings::pci_disable_device(raw_pci(&self.dev)) };
    }
}
