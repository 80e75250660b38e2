// SPDX-License-Identifier: GPL-2.0

//! The registered ports of a function.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};
use netdev::device::Registered;
use ring_common::port;

use crate::{
    adapter::Adapter,
    port::Port, //
};

/// All ports that are registered now.
///
/// They share the link, whose work refers to them: [`Ports::clear`] breaks the
/// circle.
#[pin_data]
pub(crate) struct Ports {
    #[pin]
    registered: Mutex<KVec<Registered<port::Port<Port>>>>,
}

impl Ports {
    /// No ports.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            registered <- new_mutex!(KVec::new()),
        })
    }

    /// Registers `port` with the network stack. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or what the network stack says.
    pub(crate) fn register(&self, port: Port) -> Result {
        // First, so that no port is unregistered under the lock for want of a place.
        self.registered.lock().reserve(1, GFP_KERNEL)?;
        let registered = port::Port::register(port)?;
        self.registered.lock().push(registered, GFP_KERNEL)?;
        // What came before that the link work has not seen here.
        self.link_changed();
        Ok(())
    }

    /// Takes all queues away, of a device that goes away for a time. Process
    /// context.
    pub(crate) fn suspend(&self) {
        for port in self.registered.lock().iter() {
            port::Port::suspend(port);
            port.nic().leave();
        }
    }

    /// Gives all ports the adapter that the device has now. Process context.
    ///
    /// # Errors
    ///
    /// Those of [`Port::renew`]; the ports are as before but for their adapters.
    pub(crate) fn renew(&self, adapter: &Arc<Adapter>) -> Result {
        let registered = self.registered.lock();
        registered
            .iter()
            .try_for_each(|port| port.nic().renew(adapter))
            .inspect_err(|_| registered.iter().for_each(|port| port.nic().leave()))
    }

    /// Makes the queues that were there before [`Ports::suspend`]. Process context.
    pub(crate) fn resume(&self) {
        for port in self.registered.lock().iter() {
            port::Port::resume(port);
        }
    }

    /// Takes all ports down and unregisters them. Process context.
    pub(crate) fn clear(&self) {
        let ports = core::mem::take(&mut *self.registered.lock());
        // Not under the lock, which the link work takes.
        drop(ports);
    }

    /// Passes the state of the link on to the network stack. Process context.
    pub(crate) fn link_changed(&self) {
        for port in self.registered.lock().iter() {
            port::Port::link_changed(port);
        }
    }
}
