// SPDX-License-Identifier: GPL-2.0

//! The PCI function from bind to unbind, through all the adapters that it is.
//!
//! An adapter ends when the system goes to sleep, when the device stops answering
//! commands, and when it says that it is about to reset. Ports, settings and
//! counters stay; the next adapter gets the queues that there were.

use kernel::{
    device::Core,
    new_mutex,
    pci::Device,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    time::Delta, //
};
use netdev::{
    pci::Enabled,
    work::Again, //
};

use crate::{
    adapter::{
        Adapter,
        DMA_BITS, //
    },
    link::{
        Link,
        Trouble, //
    },
    port::Port,
    ports::Ports,
    stats::HcStats, //
};

/// Time to the next look while somebody else holds the device.
const BUSY_DELAY: Delta = Delta::from_millis(100);
/// What a device takes that resets itself (`MANA_SERVICE_PERIOD`).
const RESET_TIME: Delta = Delta::from_secs(10);
/// Seconds from a start that failed to the next: twice as many each time.
const RETRY_FIRST: i64 = 1;
const RETRY_LAST: i64 = 64;

/// The function, and the adapter that it is now.
#[pin_data]
pub(crate) struct Machine {
    function: Arc<Enabled>,
    ports: Arc<Ports>,
    hc_stats: Arc<HcStats>,
    #[pin]
    state: Mutex<State>,
}

struct State {
    adapter: Option<Arc<Adapter>>,
    /// Gone with the end of the machine, which the link's work refers to.
    link: Option<Arc<Link>>,
    /// Whether there is to be an adapter.
    wanted: bool,
    /// Seconds to the next start, should this one fail.
    retry: i64,
}

impl Machine {
    /// Enables the PCI function, starts it and registers its ports. Process
    /// context, sleeps.
    ///
    /// # Errors
    ///
    /// Reported, but for `ENOMEM`, with what can be done.
    pub(crate) fn new(pdev: &Device<Core<'_>>) -> Result<Arc<Self>> {
        let function = Arc::new(
            Enabled::new(pdev, DMA_BITS).inspect_err(|e| {
                dev_err!(
                    pdev,
                    "cannot be enabled with {} bits of addresses ({:?})\n",
                    DMA_BITS,
                    e
                )
            })?,
            GFP_KERNEL,
        )?;
        let ports = Arc::pin_init(Ports::new(), GFP_KERNEL)?;
        let hc_stats = Arc::new(HcStats::default(), GFP_KERNEL)?;
        let machine = Arc::pin_init(
            pin_init!(Self {
                function,
                ports,
                hc_stats,
                state <- new_mutex!(State {
                    adapter: None,
                    link: None,
                    wanted: false,
                    retry: RETRY_FIRST,
                }),
            }),
            GFP_KERNEL,
        )?;
        let link = Arc::new(Link::new(machine.clone())?, GFP_KERNEL)?;
        machine.state.lock().link = Some(link);
        machine.probe(pdev).inspect_err(|_| machine.end(pdev))?;
        Ok(machine)
    }

    fn probe(&self, pdev: &Device<Core<'_>>) -> Result {
        self.start(pdev)?;
        let adapter = self.state.lock().adapter.clone().ok_or(ENODEV)?;
        let limits = adapter.limits();
        let mut vector = Adapter::FIRST_PORT_VECTOR;
        for index in 0..limits.ports {
            self.ports.register(Port::new(&adapter, index, vector)?)?;
            vector += limits.queues;
        }
        self.state.lock().wanted = true;
        Ok(())
    }

    /// Makes an adapter of the function, and has the ports go on with it.
    fn start(&self, pdev: &Device<Core<'_>>) -> Result {
        // What an earlier start has left with the device must be gone before it does DMA again.
        self.reset(pdev)?;
        let link = self.state.lock().link.clone().ok_or(ENODEV)?;
        link.renew();
        self.function.start(pdev)?;
        let adapter = Adapter::new(pdev, self.function.clone(), &link, &self.hc_stats)?;
        self.ports.renew(&adapter)?;
        self.state.lock().adapter = Some(adapter);
        self.ports.resume();
        Ok(())
    }

    /// Ends the adapter; the ports wait for the next one.
    fn stop(&self, pdev: &Device<Core<'_>>) {
        self.ports.suspend();
        self.end_adapter();
        // Without it the next start fails, which says so.
        let _ = self.reset(pdev);
    }

    fn end_adapter(&self) {
        let adapter = self.state.lock().adapter.take();
        if let Some(adapter) = adapter {
            adapter.end();
        }
    }

    /// Has a device that was given up forget the memory that it was given, so that it
    /// can be started again.
    fn reset(&self, pdev: &Device<Core<'_>>) -> Result {
        self.function.reset_if_abandoned(pdev).inspect_err(|e| {
            dev_err!(
                pdev,
                "the device was given up and cannot be reset ({:?}); power it off before it is used again\n",
                e
            )
        })
    }

    /// Takes the ports and the function down. Process context, sleeps.
    pub(crate) fn end(&self, pdev: &Device<Core<'_>>) {
        self.state.lock().wanted = false;
        self.ports.clear();
        self.end_adapter();
        // Reported: nothing else can be done.
        let _ = self.reset(pdev);
        // Not under the lock, which the link's work takes.
        let link = self.state.lock().link.take();
        drop(link);
    }

    /// The system goes to sleep. Process context, sleeps.
    pub(crate) fn suspend(&self, pdev: &Device<Core<'_>>) {
        self.state.lock().wanted = false;
        self.stop(pdev);
    }

    /// The system is back. Process context, sleeps.
    ///
    /// What fails is reported, and tried again.
    pub(crate) fn resume(&self, pdev: &Device<Core<'_>>) {
        self.state.lock().wanted = true;
        if let Again::After(_) = self.try_start(pdev) {
            if let Some(link) = &self.state.lock().link {
                link.look();
            }
        }
    }

    /// Follows what the device has told: see [`Link`].
    pub(crate) fn watch(&self) -> Again {
        self.ports.link_changed();
        let (trouble, is_missing) = {
            let state = self.state.lock();
            if !state.wanted {
                return Again::No;
            }
            let trouble = state.link.as_ref().and_then(|link| link.trouble());
            (trouble, state.adapter.is_none())
        };
        if is_missing {
            return self.with_device(|pdev| self.try_start(pdev));
        }
        match trouble {
            None => Again::No,
            Some(Trouble::GivenUp) => self.with_device(|pdev| {
                self.stop(pdev);
                self.try_start(pdev)
            }),
            Some(Trouble::ResetRequest) => self.with_device(|pdev| {
                self.stop(pdev);
                Again::After(RESET_TIME)
            }),
        }
    }

    fn with_device(&self, f: impl FnOnce(&Device<Core<'_>>) -> Again) -> Again {
        self.function
            .try_core(f)
            .unwrap_or(Again::After(BUSY_DELAY))
    }

    /// Starts the function, or says when to try again.
    fn try_start(&self, pdev: &Device<Core<'_>>) -> Again {
        let failed = self.start(pdev);
        let mut state = self.state.lock();
        let Err(e) = failed else {
            state.retry = RETRY_FIRST;
            dev_info!(pdev, "the device works again\n");
            return Again::No;
        };
        if !self.function.is_present() {
            dev_err!(pdev, "the device is gone ({:?})\n", e);
            state.wanted = false;
            return Again::No;
        }
        let seconds = state.retry;
        dev_err!(
            pdev,
            "the device does not start ({:?}), next try in {} s\n",
            e,
            seconds
        );
        state.retry = seconds.saturating_mul(2).min(RETRY_LAST);
        Again::After(Delta::from_secs(seconds))
    }

    /// Asks for statistics, which the device takes as a sign of life. Process context,
    /// sleeps.
    ///
    /// # Errors
    ///
    /// Those of [`Adapter::refresh_statistics`].
    pub(crate) fn refresh_statistics(&self) -> Result {
        match &self.state.lock().adapter {
            Some(adapter) => adapter.refresh_statistics(),
            None => Ok(()),
        }
    }
}
