// SPDX-License-Identifier: GPL-2.0

//! The hardware channel (HWC): commands to the device, one at a time.
//!
//! A request lies in a buffer that an entry of the channel's send queue points
//! at; the device writes the response to the buffer of the one entry of the
//! receive queue. Both queues complete on one completion queue, whose events
//! come with MSI-X vector 0. Which ids all of them have, the device tells by
//! events while the channel comes up.
//!
//! A device that once does not answer in time is not asked again: every later
//! command fails at once, and the device's access to memory is ended. So
//! teardown is bounded by one timeout.

use core::sync::atomic::{
    AtomicU32,
    AtomicU64,
    Ordering, //
};

use kernel::{
    device,
    new_mutex,
    prelude::*,
    sync::{
        aref::ARef,
        Arc,
        Mutex, //
    },
    time::Delta, //
};
use netdev::{
    completion::Completion,
    irq::IrqLine,
    mmio::Bar,
    pci::Enabled, //
};
use zerocopy::{
    Immutable,
    IntoBytes, //
};

use crate::{
    link::{
        Link,
        Trouble, //
    },
    regs::Layout,
    shm::Smc, //
};

mod channel;
pub(crate) mod commands;
mod interrupt;
pub(crate) mod wire;

use channel::Channel;
use commands::{
    Command,
    GenerateTestEqe, //
};
use wire::{
    DeviceId,
    InitData,
    ResponseHeader,
    RxOob, //
};

/// How long the device may take to bring the channel up.
const READY_TIMEOUT: Delta = Delta::from_secs(60);

/// How long it may take to answer, unless it tells otherwise
/// (`HW_CHANNEL_WAIT_RESOURCE_TIMEOUT_MS`).
const DEFAULT_TIMEOUT_MS: u32 = 30_000;

/// The device may ask for more or less, but not for no time at all, and not for
/// more than this.
const MAX_TIMEOUT_MS: u32 = 120_000;

/// How often a wait looks whether the device is still there.
const PRESENCE_MS: u32 = 1_000;

/// What the interrupt tells the tasks that wait for it.
#[pin_data]
struct Shared {
    /// The device has brought the channel up.
    #[pin]
    ready: Completion,
    /// A response is there.
    #[pin]
    answered: Completion,
    /// A test event was seen.
    #[pin]
    tested: Completion,
    /// Id of the event queue, and the doorbell page of all queues.
    eq: AtomicU32,
    doorbell_page: AtomicU32,
    /// By [`InitData`].
    init: [AtomicU32; InitData::KINDS],
    /// The [`RxOob`] of the response, length in the upper half. Written before
    /// `answered`.
    answer: AtomicU64,
    /// How long the device wants to be waited for, ms.
    timeout_ms: AtomicU32,
    link: Arc<Link>,
}

impl Shared {
    fn new(link: Arc<Link>) -> impl PinInit<Self> {
        pin_init!(Self {
            ready <- Completion::new(),
            answered <- Completion::new(),
            tested <- Completion::new(),
            eq: AtomicU32::new(0),
            doorbell_page: AtomicU32::new(0),
            init: [const { AtomicU32::new(0) }; InitData::KINDS],
            answer: AtomicU64::new(0),
            timeout_ms: AtomicU32::new(DEFAULT_TIMEOUT_MS),
            link,
        })
    }

    /// Where the response is.
    fn answer(&self) -> RxOob {
        let answer = self.answer.load(Ordering::Relaxed);
        RxOob {
            // CAST: the halves of the word.
            wqe_offset: answer as u32,
            len: (answer >> 32) as u32,
        }
    }

    fn set_timeout_ms(&self, ms: u32) {
        if ms != 0 {
            let ms = ms.min(MAX_TIMEOUT_MS);
            self.timeout_ms.store(ms, Ordering::Relaxed);
        }
    }

    fn init(&self, kind: InitData) -> u32 {
        // CAST: a fieldless enum; all values are below `KINDS`.
        self.init[kind as usize].load(Ordering::Relaxed)
    }
}

/// The channel.
#[pin_data]
pub(crate) struct Hwc {
    dev: ARef<device::Device>,
    shared: Arc<Shared>,
    #[pin]
    channel: Mutex<Channel>,
}

impl Hwc {
    /// Brings the channel up on the vector that `line` stands for, vector 0 of
    /// the function. Process context, sleeps.
    ///
    /// # Errors
    ///
    /// What the device is to blame for is reported, with what can be done.
    ///
    /// - `ENOMEM`
    /// - `ETIMEDOUT` or `ENODEV` if the device does not answer.
    /// - `EPROTO` if it answers what cannot be.
    pub(crate) fn new(
        function: &Arc<Enabled>,
        bar: &Arc<Bar>,
        layout: &Layout,
        line: IrqLine,
        link: Arc<Link>,
    ) -> Result<Pin<KBox<Self>>> {
        let dev: &device::Device = function.device().as_ref();
        let shared = Arc::pin_init(Shared::new(link), GFP_KERNEL)?;
        let smc = Smc::new(function.clone(), bar.clone(), layout);
        let (window, mut channel) = Channel::new(dev, bar, layout, line, &shared)?;
        channel.established = Some(smc.establish(&window)?);
        if shared.ready.wait_timeout(READY_TIMEOUT).is_err() {
            dev_err!(
                dev,
                "the hardware channel does not come up; remove and rescan the PCI function\n"
            );
            return Err(ETIMEDOUT);
        }
        channel.start(bar, layout, &shared).inspect_err(|_| {
            dev_err!(
                dev,
                "the hardware channel came up with ids that cannot be: completion queue {} of {}, doorbell page {}\n",
                shared.init(InitData::CqId),
                shared.init(InitData::MaxNumCqs),
                shared.doorbell_page.load(Ordering::Relaxed)
            )
        })?;
        let hwc = KBox::pin_init(
            pin_init!(Self {
                dev: dev.into(),
                shared,
                channel <- new_mutex!(channel),
            }),
            GFP_KERNEL,
        )?;
        hwc.test()?;
        Ok(hwc)
    }

    /// Takes the channel down: the device gives its rings back, and commands fail.
    /// Process context, sleeps.
    pub(crate) fn end(&self) {
        let mut channel = self.channel.lock();
        channel.failed = true;
        channel.established = None;
    }

    /// Gives the device up, as after a command without an answer: commands fail,
    /// and it has no access to memory any more. Process context, sleeps.
    pub(crate) fn give_up(&self) {
        let mut channel = self.channel.lock();
        if !channel.failed {
            dev_err!(
                self.dev,
                "the device keeps memory that it must give back, so its DMA is stopped; remove and rescan the PCI function\n"
            );
            self.fail(&mut channel);
        }
    }

    /// No command from here on, no DMA, and so no carrier.
    fn fail(&self, channel: &mut Channel) {
        channel.fail();
        self.shared.link.lose(Trouble::GivenUp);
    }

    /// Checks that commands and interrupts work.
    fn test(&self) -> Result {
        let queue_index = self.shared.eq.load(Ordering::Relaxed);
        self.call(DeviceId::HWC, &GenerateTestEqe { queue_index })?;
        let tested = self.shared.tested.wait_timeout(self.timeout());
        tested.map_err(|_| {
            dev_err!(
                self.dev,
                "the test event does not come; do MSI-X interrupts work?\n"
            );
            ETIMEDOUT
        })
    }

    fn timeout(&self) -> Delta {
        Delta::from_millis(self.shared.timeout_ms.load(Ordering::Relaxed).into())
    }

    /// How long a command may take, ms.
    pub(crate) fn timeout_ms(&self) -> u32 {
        self.shared.timeout_ms.load(Ordering::Relaxed)
    }

    /// Takes over how long a command may take, ms, within limits.
    pub(crate) fn set_timeout_ms(&self, ms: u32) {
        self.shared.set_timeout_ms(ms);
    }

    /// Sends `command` to the function `id` and returns the response. Process
    /// context, sleeps.
    ///
    /// # Errors
    ///
    /// The first failure of the channel and each refusal is reported, except
    /// that of an optional command.
    ///
    /// - `EOPNOTSUPP` if the device does not know the command.
    /// - `EPROTO` if it refuses.
    /// - `EBADMSG` if it answers what cannot be: nobody knows what it has done.
    /// - `EMSGSIZE` if the command is too long for it.
    /// - `ETIMEDOUT` if it does not answer, `ENODEV` if it is gone or was given up.
    pub(crate) fn call<C: Command>(&self, id: DeviceId, command: &C) -> Result<C::Response> {
        self.exchange(id, command, core::iter::empty::<u64>())
            .map(|(_, response)| response)
    }

    /// [`Hwc::call`] of a command with a list behind its body; also returns the
    /// version of the response.
    ///
    /// # Errors
    ///
    /// Those of [`Hwc::call`].
    pub(crate) fn exchange<C: Command, T: IntoBytes + Immutable>(
        &self,
        id: DeviceId,
        command: &C,
        list: impl ExactSizeIterator<Item = T>,
    ) -> Result<(u16, C::Response)> {
        let mut channel = self.channel.lock();
        if channel.failed {
            return Err(ENODEV);
        }
        let request = channel.write_request(id, command, list).inspect_err(|e| {
            dev_err!(
                self.dev,
                "command {} does not fit the device ({:?}); {}\n",
                C::NAME,
                e,
                C::HINT
            )
        })?;
        self.shared.answered.reinit();
        channel.post_request(request.len())?;
        self.wait(&channel).inspect_err(|e| {
            dev_err!(
                self.dev,
                "command {} got no answer ({:?}), no other is tried; remove and rescan the PCI function\n",
                C::NAME,
                e
            );
            self.fail(&mut channel);
        })?;
        let response = channel.read_response(&request, self.shared.answer());
        channel.post_receive()?;
        let (header, body) = response.inspect_err(|e| {
            dev_err!(
                self.dev,
                "the answer to command {} makes no sense ({:?}); {}\n",
                C::NAME,
                e,
                C::HINT
            )
        })?;
        match header.status {
            0 | ResponseHeader::GDMA_STATUS_MORE_ENTRIES => {}
            ResponseHeader::GDMA_STATUS_CMD_UNSUPPORTED if C::OPTIONAL => return Err(EOPNOTSUPP),
            status => {
                dev_err!(
                    self.dev,
                    "command {} refused with status {:#x}; {}\n",
                    C::NAME,
                    status,
                    C::HINT
                );
                return Err(EPROTO);
            }
        }
        let body = body.ok_or(EBADMSG).inspect_err(|_| {
            dev_err!(
                self.dev,
                "the answer to command {} is too short; {}\n",
                C::NAME,
                C::HINT
            )
        })?;
        Ok((header.response.version(), body))
    }

    /// Waits for the answer, as long as the device is there.
    fn wait(&self, channel: &Channel) -> Result {
        let mut left = self.timeout_ms();
        loop {
            let slice = left.min(PRESENCE_MS);
            let slice_time = Delta::from_millis(slice.into());
            if self.shared.answered.wait_timeout(slice_time).is_ok() {
                return Ok(());
            }
            left = left.wrapping_sub(slice);
            if channel.is_gone() {
                return Err(ENODEV);
            }
            if left == 0 {
                return Err(ETIMEDOUT);
            }
        }
    }
}
