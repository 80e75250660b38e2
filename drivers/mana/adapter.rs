// SPDX-License-Identifier: GPL-2.0

//! The PCI function with its Ethernet function started: what all ports share.

use core::fmt;

use kernel::{
    device::{
        self,
        Core, //
    },
    pci,
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    }, //
};
use netdev::{
    cpu,
    irq::{
        IrqLine,
        MsixVectors, //
    },
    mmio::{
        Bar,
        Doorbell64, //
    },
    pci::Enabled, //
};
use zerocopy::{
    Immutable,
    IntoBytes, //
};

use crate::{
    hwc::{
        commands::{
            Command,
            DeregisterDevice,
            DevConfig,
            DeviceList,
            ListDevices,
            MaxResources,
            QueryDevConfig,
            QueryGfStat,
            QueryHwcTimeout,
            QueryMaxResources,
            RegisterDevice,
            Registered,
            VerifyVfDriverVersion, //
        },
        wire::DeviceId,
        Hwc, //
    },
    link::Link,
    regs::{
        self,
        Layout, //
    },
    stats::HcStats, //
};

/// BAR with all registers.
const BAR: u32 = 0;

/// The device reaches all addresses.
pub(crate) const DMA_BITS: u32 = 64;

/// MSI-X vector of the hardware channel; those of the ports follow.
const HWC_VECTOR: u32 = 0;

/// Queue pairs that a port never exceeds (`MANA_MAX_NUM_QUEUES`).
const MANA_MAX_NUM_QUEUES: u32 = 64;

/// Ports that an adapter never exceeds (`MAX_PORTS_IN_MANA_DEV`).
const MAX_PORTS_IN_MANA_DEV: u32 = 256;

/// Longest frame of a device that does not tell, Ethernet header included.
const ETH_FRAME_LEN: u16 = 1514;

/// Shortest frame that the device must carry: 68 bytes behind the header.
const MIN_FRAME_LEN: u16 = 68 + 14;

/// What the function can do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Ports.
    pub(crate) ports: u32,
    /// Queue pairs of each port.
    pub(crate) queues: u32,
    /// Longest frame, Ethernet header included.
    pub(crate) adapter_mtu: u16,
}

/// The Ethernet function, from its registration to its end.
///
/// Its user and open ports share it; the last of them ends the function on the
/// device and takes the hardware channel down.
pub(crate) struct Adapter {
    dev: ARef<device::Device>,
    bar: Arc<Bar>,
    layout: Layout,
    id: DeviceId,
    registered: Registered,
    limits: Limits,
    link: Arc<Link>,
    hc_stats: Arc<HcStats>,
    // In drop order: the channel needs its vector, both an enabled function.
    hwc: Pin<KBox<Hwc>>,
    vectors: MsixVectors,
    function: Arc<Enabled>,
}

impl Adapter {
    /// First MSI-X vector of the ports.
    pub(crate) const FIRST_PORT_VECTOR: u32 = HWC_VECTOR + 1;

    /// Brings up the hardware channel of `function` and starts the Ethernet
    /// function. Changes of the link go to `link`, statistics to `hc_stats`.
    /// Process context, sleeps.
    ///
    /// # Errors
    ///
    /// Reported, but for `ENOMEM`, with what can be done.
    pub(crate) fn new(
        pdev: &pci::Device<Core<'_>>,
        function: Arc<Enabled>,
        link: &Arc<Link>,
        hc_stats: &Arc<HcStats>,
    ) -> Result<Arc<Self>> {
        let dev: &device::Device = pdev.as_ref();
        let bar = Bar::map(pdev, BAR, c"mana_rs").inspect_err(|e| {
            dev_err!(
                dev,
                "cannot map BAR {} ({:?}); does another driver use it?\n",
                BAR,
                e
            )
        })?;
        let layout = read_layout(dev, &bar)?;
        // One vector for the channel, one for each queue pair of each port.
        let vectors = MsixVectors::alloc(pdev, u32::MAX).inspect_err(|e| {
            dev_err!(
                dev,
                "cannot have MSI-X vectors ({:?}); is the kernel booted with pci=nomsi?\n",
                e
            )
        })?;
        let line = vectors.line(HWC_VECTOR)?;
        let hwc = Hwc::new(&function, &bar, &layout, line, link.clone())?;

        agree_on_version(&hwc)?;
        let id = find_mana(dev, &hwc.call(DeviceId::NONE, &ListDevices)?)?;
        let resources = hwc.call(DeviceId::NONE, &QueryMaxResources)?;
        let (version, config) = hwc.exchange(id, &QueryDevConfig::new(), NO_LIST)?;
        let limits = limits(dev, &vectors, &resources, version, &config)?;

        let registered = hwc.call(id, &RegisterDevice)?;
        let adapter = Arc::new(
            Self {
                dev: dev.into(),
                bar,
                layout,
                id,
                registered,
                limits,
                link: link.clone(),
                hc_stats: hc_stats.clone(),
                hwc,
                vectors,
                function,
            },
            GFP_KERNEL,
        )?;
        // From here on, dropping the adapter deregisters the function.
        adapter.doorbell(0).inspect_err(|_| {
            adapter.complain(format_args!(
                "the device gave the doorbell page {}, which lies outside of its BAR",
                registered.db_id
            ))
        })?;
        Ok(adapter)
    }

    /// The device behind all DMA.
    pub(crate) fn device(&self) -> &device::Device {
        &self.dev
    }

    /// What the function can do.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What the device gave to the Ethernet function.
    pub(crate) fn registered(&self) -> &Registered {
        &self.registered
    }

    /// The link of all ports.
    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Statistics of the function, as of the last [`Adapter::refresh_statistics`].
    pub(crate) fn hc_stats(&self) -> &Arc<HcStats> {
        &self.hc_stats
    }

    /// Asks the device for the statistics. Process context, sleeps.
    ///
    /// # Errors
    ///
    /// Those of [`Adapter::call`].
    pub(crate) fn refresh_statistics(&self) -> Result {
        let answer = self.call(&QueryGfStat::all())?;
        self.hc_stats.update(&answer.counters);
        Ok(())
    }

    /// The line of MSI-X vector `index`. Process context.
    pub(crate) fn line(&self, index: u32) -> Result<IrqLine> {
        self.vectors.line(index)
    }

    /// The doorbell at `offset` in the function's doorbell page.
    pub(crate) fn doorbell(&self, offset: usize) -> Result<Doorbell64> {
        let page = self.layout.doorbell_page(self.registered.db_id);
        Doorbell64::new(&self.bar, page.ok_or(EPROTO)? + offset)
    }

    /// Sends a command; see [`Hwc::call`].
    pub(crate) fn call<C: Command>(&self, command: &C) -> Result<C::Response> {
        self.call_with_list(command, NO_LIST)
    }

    /// Sends a command with a list behind its body; see [`Hwc::exchange`].
    pub(crate) fn call_with_list<C: Command, T: IntoBytes + Immutable>(
        &self,
        command: &C,
        list: impl ExactSizeIterator<Item = T>,
    ) -> Result<C::Response> {
        let id = if C::ADDRESSED {
            self.id
        } else {
            DeviceId::NONE
        };
        let (_, response) = self.hwc.exchange(id, command, list)?;
        Ok(response)
    }

    /// Ends the function, and all of its access to memory; commands fail from
    /// here on. Process context, sleeps.
    pub(crate) fn end(&self) {
        // A failure has been reported; what follows does not depend on it.
        let _ = self.call(&DeregisterDevice);
        self.hwc.end();
        self.function.clear_master();
    }

    /// Sends a command that makes the device give memory back. If it does not,
    /// it loses its access to all memory.
    pub(crate) fn take_back<C: Command>(&self, command: &C) {
        if self.call(command).is_err() {
            self.give_up();
        }
    }

    /// Takes the device's access to all memory, and reports that.
    pub(crate) fn give_up(&self) {
        self.hwc.give_up();
    }

    /// Reports a device that says what cannot be.
    pub(crate) fn complain(&self, what: fmt::Arguments<'_>) {
        dev_err!(self.dev, "{}; remove and rescan the PCI function\n", what);
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        self.end();
    }
}

const NO_LIST: core::iter::Empty<u64> = core::iter::empty();

fn read_layout(dev: &device::Device, bar: &Bar) -> Result<Layout> {
    let db_page_offset = bar.read64(regs::GDMA_REG_DB_PAGE_OFFSET)?;
    let db_page_size = bar.read32(regs::GDMA_REG_DB_PAGE_SIZE)?;
    let shm_offset = bar.read64(regs::GDMA_REG_SHM_OFFSET)?;
    Layout::new(db_page_offset, db_page_size, shm_offset, bar.len()).ok_or_else(|| {
        dev_err!(
            dev,
            "BAR 0 of {:#x} bytes cannot hold doorbells at {:#x} ({:#x} per page) and shared memory at {:#x}; is this a MANA virtual function?\n",
            bar.len(),
            db_page_offset,
            db_page_size,
            shm_offset
        );
        EPROTO
    })
}

fn agree_on_version(hwc: &Hwc) -> Result {
    let device = hwc.call(DeviceId::NONE, &VerifyVfDriverVersion::new())?;
    if device.pf_cap_flags1 & VerifyVfDriverVersion::HWC_TIMEOUT_RECONFIG != 0 {
        let proposal = QueryHwcTimeout::new(hwc.timeout_ms());
        let answer = hwc.call(DeviceId::NONE, &proposal)?;
        hwc.set_timeout_ms(answer.timeout_ms);
    }
    Ok(())
}

fn find_mana(dev: &device::Device, list: &DeviceList) -> Result<DeviceId> {
    let present = list.devs.iter().filter(|id| !id.is_none());
    // CAST: `usize` has 64 bits.
    let mut present = present.take(list.num_of_devs as usize);
    present.find(|id| id.is_mana()).copied().ok_or_else(|| {
        dev_err!(
            dev,
            "the adapter has no Ethernet function; is accelerated networking enabled for this machine?\n"
        );
        ENODEV
    })
}

fn limits(
    dev: &device::Device,
    vectors: &MsixVectors,
    resources: &MaxResources,
    version: u16,
    config: &DevConfig,
) -> Result<Limits> {
    let adapter_mtu = match config.adapter_mtu {
        mtu if version >= 2 && mtu >= MIN_FRAME_LEN => mtu,
        mtu if version < 2 || mtu == 0 => ETH_FRAME_LEN,
        mtu => {
            dev_err!(
                dev,
                "the device carries frames of {} bytes only, too few for IPv4\n",
                mtu
            );
            return Err(EPROTO);
        }
    };
    let ports = u32::from(config.max_num_vports).min(MAX_PORTS_IN_MANA_DEV);
    let vectors = vectors.available().min(resources.max_msix);
    let (ports, queues) = share(ports, vectors, cpu::possible(), resources).ok_or_else(|| {
        dev_err!(
            dev,
            "the device offers {} ports, {} vectors, {} event, {} completion, {} send and {} receive queues; at least 1 port, 2 vectors and 1 of each are needed\n",
            config.max_num_vports,
            vectors,
            resources.max_eq,
            resources.max_cq,
            resources.max_sq,
            resources.max_rq
        );
        ENOSPC
    })?;
    if ports < config.max_num_vports.into() {
        dev_warn!(
            dev,
            "{} MSI-X vectors serve {} of {} ports only\n",
            vectors,
            ports,
            config.max_num_vports
        );
    }
    Ok(Limits {
        ports,
        queues,
        adapter_mtu,
    })
}

/// Shares vectors and queues out: ports that can be served, and queue pairs of
/// each, which have a vector of their own and are no more than CPUs.
fn share(ports: u32, vectors: u32, cpus: u32, resources: &MaxResources) -> Option<(u32, u32)> {
    let vectors = vectors.checked_sub(1)?;
    let ports = ports.min(vectors);
    let queues = vectors
        .checked_div(ports)?
        .min(cpus)
        .min(MANA_MAX_NUM_QUEUES)
        .min(resources.max_eq)
        .min(resources.max_cq)
        .min(resources.max_sq)
        .min(resources.max_rq);
    (queues > 0).then_some((ports, queues))
}
