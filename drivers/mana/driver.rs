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
    pci::Driver,
    work::{
        Again,
        Run,
        Work, //
    }, //
};

use crate::machine::Machine;

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
    // In drop order: the work uses the machine.
    _keep_alive: Work<KeepAlive>,
    machine: Arc<Machine>,
}

#[vtable]
impl Driver for Mana {
    type IdInfo = ();
    type Data = Bound;
    const ID_TABLE: IdTable<()> = &IDS;

    fn probe(dev: &Device<Core<'_>>, _info: Option<&'static ()>) -> impl PinInit<Bound, Error> {
        Bound::new(dev)
    }

    fn remove(dev: &Device<Core<'_>>, bound: Pin<&Bound>) {
        bound.machine.end(dev);
    }

    fn shutdown(dev: &Device<Core<'_>>, bound: Pin<&Bound>) {
        bound.machine.end(dev);
    }

    fn suspend(dev: &Device<Core<'_>>, bound: Pin<&Bound>) {
        bound.machine.suspend(dev);
    }

    fn resume(dev: &Device<Core<'_>>, bound: Pin<&Bound>) {
        bound.machine.resume(dev);
    }
}

impl Bound {
    fn new(pdev: &Device<Core<'_>>) -> Result<Self> {
        let machine = Machine::new(pdev)?;
        let keep_alive = Work::new(KeepAlive(machine.clone()), static_lock_class!())
            .inspect_err(|_| machine.end(pdev))?;
        keep_alive.schedule_after(KEEP_ALIVE_PERIOD);
        Ok(Self {
            _keep_alive: keep_alive,
            machine,
        })
    }
}

/// Asks for statistics all the time.
pub(crate) struct KeepAlive(Arc<Machine>);

impl Run for KeepAlive {
    fn run(&mut self) -> Again {
        match self.0.refresh_statistics() {
            // A device without statistics gets no more questions than that.
            Err(EPROTO | EBADMSG | EOPNOTSUPP) => Again::After(RETRY_PERIOD),
            // Others are the end of an adapter, which another may follow.
            _ => Again::After(KEEP_ALIVE_PERIOD),
        }
    }
}
