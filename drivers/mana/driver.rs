// SPDX-License-Identifier: GPL-2.0

//! Binding to the PCI function: ids, probe and remove.

use kernel::{
    device::Core,
    pci::{
        Device,
        DeviceId,
        IdTable,
        Vendor, //
    },
    prelude::*,
    sync::{
        static_lock_class,
        Arc, //
    },
    time::Delta, //
};
use netdev::{
    pci::{
        Driver,
        Enabled, //
    },
    work::{
        Again,
        Run,
        Work, //
    }, //
};

use crate::{
    adapter::{
        Adapter,
        DMA_BITS, //
    },
    port::Port,
    ports::Ports, //
};

/// Time between two questions for statistics (`MANA_GF_STATS_PERIOD`). The device
/// takes them as a sign of life.
const KEEP_ALIVE_PERIOD: Delta = Delta::from_secs(2);
/// Time to the next question when the device has refused one, which is reported.
const RETRY_PERIOD: Delta = Delta::from_secs(60);

kernel::pci_device_table!(
    IDS,
    <Mana as Driver>::IdInfo,
    [
        // MANA_VF_DEVICE_ID
        (DeviceId::from_id(Vendor::MICROSOFT, 0x00ba), ()),
    ]
);

/// The driver.
pub(crate) struct Mana;

/// What the driver has of one function.
pub(crate) struct Bound {
    // In drop order: the work uses the adapter, as the ports do.
    _keep_alive: Work<KeepAlive>,
    ports: Arc<Ports>,
    adapter: Arc<Adapter>,
    function: Arc<Enabled>,
}

impl Driver for Mana {
    type IdInfo = ();
    type Data = Bound;
    const ID_TABLE: IdTable<()> = &IDS;

    fn probe(dev: &Device<Core<'_>>, _info: Option<&'static ()>) -> impl PinInit<Bound, Error> {
        Bound::new(dev)
    }

    fn remove(dev: &Device<Core<'_>>, bound: Pin<&Bound>) {
        bound.end();
        reset(&bound.function, dev);
    }

    fn shutdown(_dev: &Device<Core<'_>>, bound: Pin<&Bound>) {
        bound.end();
    }
}

impl Bound {
    /// Enables the PCI function, starts it and registers its ports.
    fn new(pdev: &Device<Core<'_>>) -> Result<Self> {
        let function = Arc::new(Enabled::new(pdev, DMA_BITS)?, GFP_KERNEL)?;
        Self::start(pdev, &function).inspect_err(|_| reset(&function, pdev))
    }

    fn start(pdev: &Device<Core<'_>>, function: &Arc<Enabled>) -> Result<Self> {
        let ports = Arc::pin_init(Ports::new(), GFP_KERNEL)?;
        let adapter = Adapter::new(pdev, function.clone(), &ports)?;
        let keep_alive = Work::new(KeepAlive(adapter.clone()), static_lock_class!())?;
        keep_alive.schedule_after(KEEP_ALIVE_PERIOD);
        let bound = Self {
            _keep_alive: keep_alive,
            ports,
            adapter,
            function: function.clone(),
        };
        let limits = bound.adapter.limits();
        let mut vector = Adapter::FIRST_PORT_VECTOR;
        for index in 0..limits.ports {
            bound
                .ports
                .register(Port::new(&bound.adapter, index, vector)?)?;
            vector += limits.queues;
        }
        Ok(bound)
    }

    /// Takes the ports and the function down.
    fn end(&self) {
        self.ports.clear();
        self.adapter.end();
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.ports.clear();
    }
}

/// Has a device that was given up forget the memory that it was given, so that it
/// can be started again.
fn reset(function: &Enabled, dev: &Device<Core<'_>>) {
    if let Err(e) = function.reset_if_abandoned(dev) {
        dev_err!(
            dev,
            "the device was given up and cannot be reset ({:?}); power it off before it is used again\n",
            e
        );
    }
}

/// Asks for statistics all the time.
pub(crate) struct KeepAlive(Arc<Adapter>);

impl Run for KeepAlive {
    fn run(&mut self) -> Again {
        match self.0.refresh_statistics() {
            // Reported, and the last time that the device was asked for anything.
            Err(ETIMEDOUT | ENODEV) => Again::No,
            // A device without statistics gets no more questions than that.
            Err(_) => Again::After(RETRY_PERIOD),
            Ok(()) => Again::After(KEEP_ALIVE_PERIOD),
        }
    }
}
