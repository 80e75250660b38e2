// SPDX-License-Identifier: GPL-2.0

//! The shared memory channel (SMC): eight 32-bit words in BAR 0 through which
//! the driver hands the rings of the hardware channel (HWC) to the device, and
//! takes them back.
//!
//! Writing the last word passes the window to the device, which sets bit 31 of
//! it until it has answered.

use kernel::{
    device,
    io::poll::read_poll_timeout,
    prelude::*,
    sync::Arc,
    time::Delta, //
};
use netdev::{
    dma::DmaAddr,
    mmio::Bar,
    pci::Enabled, //
};

use crate::regs::Layout;

pub(crate) mod window;

use window::{
    Header,
    Message,
    Refusal, //
};

/// How long the device may keep the window, as in the C driver.
const OWNERSHIP_TIMEOUT: Delta = Delta::from_secs(20);
const OWNERSHIP_POLL: Delta = Delta::from_millis(1);

/// All words of the window.
pub(crate) type Window = [u32; window::SMC_APERTURE_DWORDS];

/// The contents that hand over event queue, completion queue, receive queue and
/// send queue, in this order, each at the start of a page.
///
/// # Errors
///
/// `EINVAL` if an address does not fit.
pub(crate) fn window(rings: [DmaAddr<'_>; 4], msix: u16) -> Result<Window> {
    let frames = rings.map(|ring| ring.raw() >> window::PAGE_SHIFT);
    window::establish(frames, msix).ok_or(EINVAL)
}

/// The window's place.
pub(crate) struct Smc {
    function: Arc<Enabled>,
    bar: Arc<Bar>,
    base: usize,
}

/// The device has the rings of the HWC, until this is dropped.
///
/// If it does not give them back, it loses its access to memory, so that they
/// can be freed in any case.
pub(crate) struct Established(Smc);

impl Smc {
    /// The window at the place that `layout` names.
    pub(crate) fn new(function: Arc<Enabled>, bar: Arc<Bar>, layout: &Layout) -> Self {
        Self {
            function,
            bar,
            base: layout.shm(),
        }
    }

    /// Hands the rings of `window` over. Process context, sleeps.
    ///
    /// # Errors
    ///
    /// - `ETIMEDOUT` or `ENODEV` if the device does not answer.
    /// - `EPROTO` if it refuses.
    pub(crate) fn establish(self, window: &Window) -> Result<Established> {
        self.wait_ready(Message::EstablishHwc)?;
        for (i, word) in window.iter().enumerate() {
            self.bar.write32(self.base + 4 * i, *word)?;
        }
        // From here on the device may use the rings.
        let established = Established(self);
        established.0.check(Message::EstablishHwc)?;
        Ok(established)
    }

    /// Whether the function has gone from the bus, or is in reset.
    pub(crate) fn is_gone(&self) -> bool {
        self.header().map_or(true, Header::is_gone)
    }

    fn header(&self) -> Result<Header> {
        self.bar
            .read32(self.base + 4 * window::SMC_LAST_DWORD)
            .map(Header)
    }

    /// Waits until the window belongs to the driver.
    fn wait(&self) -> Result<Header> {
        let header = read_poll_timeout(
            || self.header(),
            |header| header.is_gone() || !header.is_busy(),
            OWNERSHIP_POLL,
            OWNERSHIP_TIMEOUT,
        )?;
        if header.is_gone() {
            dev_err!(
                self.dev(),
                "the registers read as all ones; is the PCI function still there?\n"
            );
            return Err(ENODEV);
        }
        Ok(header)
    }

    /// Waits until the device takes `message`.
    fn wait_ready(&self, message: Message) -> Result {
        self.wait().inspect_err(|e| {
            dev_err!(
                self.dev(),
                "the device is not ready for {} ({:?}); reset or remove and rescan the PCI function\n",
                message.name(),
                e
            )
        })?;
        Ok(())
    }

    /// Waits for the answer to `message`.
    fn check(&self, message: Message) -> Result {
        let header = self.wait().inspect_err(|e| {
            dev_err!(
                self.dev(),
                "{} got no answer ({:?}); reset or remove and rescan the PCI function\n",
                message.name(),
                e
            )
        })?;
        header.check_response(message).map_err(|refusal| {
            match refusal {
                Refusal::Status(status) => dev_err!(
                    self.dev(),
                    "{} refused with status {:#x}; remove and rescan the PCI function\n",
                    message.name(),
                    status
                ),
                Refusal::Protocol => dev_err!(
                    self.dev(),
                    "{} answered with {:#x}, which is no answer to it; remove and rescan the PCI function\n",
                    message.name(),
                    header.0
                ),
            }
            EPROTO
        })
    }

    fn destroy(&self) -> Result {
        self.wait_ready(Message::DestroyHwc)?;
        self.bar.write32(
            self.base + 4 * window::SMC_LAST_DWORD,
            Header::request(Message::DestroyHwc).0,
        )?;
        self.check(Message::DestroyHwc)
    }

    fn dev(&self) -> &device::Device {
        self.function.device().as_ref()
    }
}

impl Established {
    /// The window, to look at the device through it.
    pub(crate) fn smc(&self) -> &Smc {
        &self.0
    }

    /// Ends the device's access to memory. Process context.
    pub(crate) fn stop_dma(&self) {
        self.0.function.abandon();
    }
}

impl Drop for Established {
    fn drop(&mut self) {
        if self.0.destroy().is_err() {
            self.stop_dma();
        }
    }
}
