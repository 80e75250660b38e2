// SPDX-License-Identifier: GPL-2.0

//! NAPI: packets are taken in a softirq, with interrupts off, until there are none.
//!
//! A NAPI is made in three steps, since the parts of a queue need each other: a [`NapiSlot`] is
//! added to the device; its [`NapiRef`]s go to the interrupt handler and to the page pools; and
//! [`NapiSlot::attach`] gives it what polls.
//!
//! The order of completing NAPI and arming the interrupt is the hardware's choice, made as a type
//! without a default: [`ArmThenComplete`] or [`CompleteThenArm`]. The poller only counts its work and
//! is told in [`Poll::settle`] whether to arm; when NAPI is completed is decided here.

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    num::NonZeroU32, //
};

use kernel::{
    new_mutex, new_spinlock,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        SpinLock, //
    },
    types::{
        NotThreadSafe,
        Opaque, //
    },
};

use crate::{
    bindings,
    irq::IrqNumber,
    lock::{
        DeviceRef,
        OpsLock, //
    },
    netdev_warn,
    page_pool::RxBuffer,
    skb::RxInfo, //
};

/// Whether the interrupt is to be armed at the end of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// The work is done: have the device interrupt on more.
    Yes,
    /// The poll goes on, or somebody else polls: no interrupt.
    No,
}

mod private {
    pub trait Sealed {
        /// Whether the interrupt is armed before NAPI is completed.
        const ARM_FIRST: bool;
    }
}

/// The order of completing NAPI and arming the interrupt.
pub trait Order: private::Sealed + 'static {}

/// The interrupt is armed first.
///
/// For devices whose arming write carries an index that another CPU could overtake as soon as
/// NAPI is complete (MANA).
pub struct ArmThenComplete;

/// NAPI is completed first, and only if nobody else polls is the interrupt armed.
///
/// For devices whose arming write carries no such index (liquidio, hns3, mvneta, mlx5).
pub struct CompleteThenArm;

impl private::Sealed for ArmThenComplete {
    const ARM_FIRST: bool = true;
}

impl private::Sealed for CompleteThenArm {
    const ARM_FIRST: bool = false;
}

impl Order for ArmThenComplete {}
impl Order for CompleteThenArm {}

/// What a poll may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Only TX completions. netpoll calls like this, possibly with interrupts off.
    TxOnly,
    /// TX completions, and up to this many received packets.
    Rx(NonZeroU32),
}

/// What takes packets.
pub trait Poll: Send + 'static {
    /// The order that the hardware wants.
    type Order: Order;

    /// Takes TX completions and, within the budget, received packets. Softirq.
    ///
    /// Returns the number of packets received, or the budget if there is work left. With
    /// [`Budget::TxOnly`] the result does not matter.
    fn poll(&mut self, cx: &PollContext<'_>) -> u32;

    /// Ends the poll on the device's side: arms the interrupt if `arm` says so. Called once at the
    /// end of each poll. Softirq.
    fn settle(&mut self, arm: Arm);
}

/// The poll that runs now.
///
/// # Invariants
///
/// `napi` is polled by this context with `budget`, for `'a`.
pub struct PollContext<'a> {
    napi: *mut bindings::napi_struct,
    budget: c_int,
    _poll: PhantomData<&'a ()>,
    _context: NotThreadSafe,
}

impl PollContext<'_> {
    /// What the poll may do.
    #[inline]
    pub fn budget(&self) -> Budget {
        u32::try_from(self.budget)
            .ok()
            .and_then(NonZeroU32::new)
            .map_or(Budget::TxOnly, Budget::Rx)
    }

    /// The budget as `napi_consume_skb()` wants it.
    #[inline(always)]
    pub(crate) fn napi_budget(&self) -> c_int {
        self.budget
    }

    /// Whether this is a poll of `napi` in which packets may be received.
    #[inline(always)]
    pub(crate) fn receives_for(&self, napi: &NapiRef) -> bool {
        self.napi == napi.0.napi.get() && self.budget > 0
    }

    /// Gives the packet of `len` bytes at the start of `buffer` to the stack, received on `queue`.
    ///
    /// Checksum and hash are passed on only while the user has these features switched on.
    ///
    /// # Errors
    ///
    /// The buffer goes back to its pool.
    ///
    /// - `EINVAL`: the length is below an Ethernet header or above what the buffer holds, or this
    ///   poll may not receive.
    /// - `ENOMEM`: no memory for the packet's metadata.
    #[inline]
    pub fn receive(&self, buffer: RxBuffer, len: u32, queue: u16, info: &RxInfo) -> Result {
        if !(bindings::ETH_HLEN..=buffer.capacity()).contains(&len) || self.budget <= 0 {
            return Err(EINVAL);
        }
        let raw = info.to_raw(buffer.headroom(), len, queue);
        let buffer = buffer.into_raw();
        // SAFETY:
        // - By the type invariant this context polls `napi`, with a budget.
        // - The buffer is owned and given up; headroom and length are inside of it.
        kernel::error::to_result(unsafe {
            bindings::rc_helper_rx_receive(self.napi, &buffer, &raw)
        })
    }
}

/// What the core calls.
///
/// # Invariants
///
/// `poll` may be called with `data` while the NAPI is enabled.
struct Entry {
    data: *const c_void,
    poll: unsafe fn(*const c_void, &PollContext<'_>) -> c_int,
}

/// What the core knows as a NAPI.
///
/// # Invariants
///
/// - `napi` was added to the device of `device`, and is removed when this is dropped.
/// - `entry` is written only while the NAPI was never enabled, or is disabled for good.
/// - `enabled` says whether the NAPI is enabled. Lock order: instance lock, then this one.
#[pin_data(PinnedDrop)]
struct Core {
    device: DeviceRef,
    entry: UnsafeCell<Option<Entry>>,
    #[pin]
    enabled: Mutex<bool>,
    #[pin]
    napi: Opaque<bindings::napi_struct>,
}

// SAFETY: A NAPI belongs to no thread.
unsafe impl Send for Core {}

// SAFETY:
// - `napi` is used through functions of the core that lock.
// - `entry` is not written while it may be read, by the type invariant.
unsafe impl Sync for Core {}

#[pinned_drop]
impl PinnedDrop for Core {
    fn drop(self: Pin<&mut Self>) {
        let _lock = InstanceLock::new(&self.device);
        // SAFETY:
        // - By the type invariant the NAPI was added. It is disabled: `Napi`, the only one that
        //   enables it, disables it in its drop.
        // - The lock of its device is held.
        unsafe { bindings::rc_helper_napi_del(self.napi.get()) };
    }
}

impl Core {
    fn disable(&self) {
        let _lock = InstanceLock::new(&self.device);
        let mut enabled = self.enabled.lock();
        if *enabled {
            // SAFETY: The NAPI was added, and is enabled; the lock of its device is held.
            unsafe { bindings::rc_helper_napi_disable(self.napi.get()) };
            *enabled = false;
        }
    }
}

/// The instance lock of a device, taken unless the task holds it already.
///
/// # Invariants
///
/// The task holds the lock; it was taken for this if `taken`.
struct InstanceLock<'a> {
    device: &'a DeviceRef,
    taken: bool,
    _task: NotThreadSafe,
}

impl<'a> InstanceLock<'a> {
    fn new(device: &'a DeviceRef) -> Self {
        // SAFETY: The device is valid while it is referred to.
        let taken = unsafe { bindings::rc_helper_napi_lock(device.as_ptr()) };
        // INVARIANT: That is what the helper does.
        Self {
            device,
            taken,
            _task: NotThreadSafe,
        }
    }
}

impl Drop for InstanceLock<'_> {
    fn drop(&mut self) {
        if self.taken {
            // SAFETY: By the type invariant the lock was taken for this.
            unsafe { bindings::rc_helper_netdev_unlock(self.device.as_ptr()) };
        }
    }
}

/// # Safety
///
/// `napi` is the field of a [`Core`], and this context polls it with `budget`.
unsafe extern "C" fn poll_callback(napi: *mut bindings::napi_struct, budget: c_int) -> c_int {
    // SAFETY: By the safety requirement; `Opaque` is a transparent wrapper.
    let core = unsafe { kernel::container_of!(Opaque::cast_from(napi), Core, napi) };
    // SAFETY: The core lives while its NAPI is polled, and by its invariant nobody writes to `entry`
    // meanwhile.
    let entry = unsafe { &*(*core).entry.get() };
    // INVARIANT: By the safety requirement.
    let cx = PollContext {
        napi,
        budget,
        _poll: PhantomData,
        _context: NotThreadSafe,
    };
    match entry {
        // SAFETY: By the invariant of `Entry`: a NAPI that is polled is enabled.
        Some(entry) => unsafe { (entry.poll)(entry.data, &cx) },
        None => 0,
    }
}

/// # Safety
///
/// `poller` points to a `SpinLock<KBox<P>>` that lives until the end of the poll.
unsafe fn poll<P: Poll>(poller: *const c_void, cx: &PollContext<'_>) -> c_int {
    // SAFETY: By the safety requirement.
    let poller = unsafe { &*poller.cast::<SpinLock<KBox<P>>>() };
    let Budget::Rx(budget) = cx.budget() else {
        // netpoll may have interrupted who holds the lock.
        if let Some(mut poller) = poller.try_lock() {
            poller.poll(cx);
            poller.settle(Arm::No);
        }
        return 0;
    };
    let mut poller = poller.lock();
    let work = poller.poll(cx);
    if work >= budget.get() {
        poller.settle(Arm::No);
        return cx.budget;
    }
    // CAST: It is below the budget, which is an `int`.
    let work = work as c_int;
    if <P::Order as private::Sealed>::ARM_FIRST {
        poller.settle(Arm::Yes);
        drop(poller);
        // SAFETY: This context polls the NAPI, and touches nothing of it afterwards.
        unsafe { bindings::napi_complete_done(cx.napi, work) };
    } else {
        // The lock keeps out a poll that starts on another CPU before the interrupt is armed.
        // SAFETY: This context polls the NAPI.
        let arm = unsafe { bindings::napi_complete_done(cx.napi, work) };
        poller.settle(if arm { Arm::Yes } else { Arm::No });
    }
    work
}

/// A reference to a NAPI, for the interrupt that schedules it.
///
/// It must be gone when the device is stopped: unregistering the device waits for it.
#[derive(Clone)]
pub struct NapiRef(Arc<Core>);

impl NapiRef {
    /// Has the NAPI polled; nothing happens while it is disabled. Any context.
    #[inline]
    pub fn schedule(&self) {
        // SAFETY: The NAPI was added, and is not removed while it is referred to.
        unsafe { bindings::rc_helper_napi_schedule(self.0.napi.get()) };
    }

    pub(crate) fn as_ptr(&self) -> *mut bindings::napi_struct {
        self.0.napi.get()
    }

    pub(crate) fn device(&self) -> &DeviceRef {
        &self.0.device
    }

    /// Runs `f` while the NAPI is, and stays, disabled; returns `None` if it is enabled. Sleeps.
    pub(crate) fn while_disabled<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        let enabled = self.0.enabled.lock();
        (!*enabled).then(f)
    }
}

/// A NAPI that does not know yet what polls.
pub struct NapiSlot(Arc<Core>);

impl NapiSlot {
    /// Adds a NAPI to the device whose lock is held. Sleeps.
    ///
    /// `index` selects the settings that outlive it; one for each channel, of which one NAPI at a time
    /// is enabled.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the device was allocated with fewer queues than `index` wants.
    /// - `ENODEV` if the device is not registered.
    /// - `ENOMEM` if there is no memory.
    pub fn add(lock: &OpsLock<'_>, index: u32) -> Result<Self> {
        let dev = lock.device_ptr();
        // SAFETY: The device is valid while its lock is held; these two never change.
        let slots = unsafe { (*dev).num_tx_queues.max((*dev).num_rx_queues) };
        if index >= slots {
            return Err(EINVAL);
        }
        let device = lock.hold()?;
        let core = Arc::pin_init(
            pin_init!(Core {
                device,
                entry: UnsafeCell::new(None),
                enabled <- new_mutex!(false),
                // INVARIANT: It is added here, disabled, as the last step of the initialisation.
                napi <- Opaque::ffi_init(|napi: *mut bindings::napi_struct| {
                    // SAFETY:
                    // - `napi` is valid for writes, and zeroes are a valid value of it.
                    // - The lock of the registered device `dev` is held; the NAPI keeps its place
                    //   in memory and is removed before that is freed.
                    // - `index` is the number of a slot, as checked above.
                    unsafe {
                        napi.write_bytes(0, 1);
                        bindings::rc_helper_napi_add(dev, napi, Some(poll_callback), index);
                    }
                }),
            }),
            GFP_KERNEL,
        )?;
        Ok(Self(core))
    }

    /// A reference, for interrupt handler and page pool.
    pub fn handle(&self) -> NapiRef {
        NapiRef(self.0.clone())
    }

    /// Gives the NAPI what polls. It is not enabled yet. Sleeps.
    ///
    /// `irq` is the interrupt that schedules it, so that the core can spread interrupts over CPUs.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there is no memory.
    pub fn attach<P: Poll>(self, poller: P, irq: Option<IrqNumber>) -> Result<Napi<P>> {
        // In a box of its own, since a lock pins what lies in it.
        let poller = KBox::new(poller, GFP_KERNEL)?;
        let poller = KBox::pin_init(new_spinlock!(poller), GFP_KERNEL)?;
        // INVARIANT: `poller` lives until `Napi` is dropped, which disables the NAPI before.
        let entry = Entry {
            data: core::ptr::from_ref::<SpinLock<KBox<P>>>(&poller).cast(),
            poll: poll::<P>,
        };
        // SAFETY: The NAPI was never enabled, so nobody reads `entry`. There is one `NapiSlot` of a
        // `Core`, so nobody else writes to it.
        unsafe { *self.0.entry.get() = Some(entry) };
        Ok(Napi {
            core: self.0,
            irq: irq.map_or(-1, IrqNumber::as_raw),
            poller,
        })
    }
}

/// A NAPI with what polls.
///
/// Dropping it disables it, with the instance lock held or not, and drops the poller. Sleeps.
pub struct Napi<P: Poll> {
    core: Arc<Core>,
    irq: c_int,
    #[expect(dead_code, reason = "the core's `entry` points to it")]
    poller: Pin<KBox<SpinLock<KBox<P>>>>,
}

impl<P: Poll> Napi<P> {
    fn is_of(&self, lock: &OpsLock<'_>) -> bool {
        let same = self.core.device.as_ptr() == lock.device_ptr();
        if !same {
            netdev_warn!(lock, "a NAPI is used under the lock of another device\n");
        }
        same
    }

    /// Lets it run. Sleeps.
    pub fn enable(&self, lock: &OpsLock<'_>) {
        if !self.is_of(lock) {
            return;
        }
        let mut enabled = self.core.enabled.lock();
        if !*enabled {
            // SAFETY: The NAPI was added to the device whose lock is held, and is disabled.
            unsafe { bindings::rc_helper_napi_enable(self.core.napi.get(), self.irq) };
            *enabled = true;
        }
    }

    /// Waits until it does not run, and keeps it from running. Sleeps.
    pub fn disable(&self, _lock: &OpsLock<'_>) {
        self.stop();
    }

    fn stop(&self) {
        self.core.disable();
        if !<P::Order as private::Sealed>::ARM_FIRST {
            // The poller is used for a moment after NAPI is complete.
            // SAFETY: Process context, as required by all callers.
            unsafe { bindings::synchronize_net() };
        }
    }

    /// Tells the core that this NAPI serves TX and RX queue `index`.
    pub fn link_queues(&self, lock: &OpsLock<'_>, index: u32) {
        if self.is_of(lock) {
            set_queues(lock, index, self.core.napi.get());
        }
    }

    /// Takes [`link_queues`](Self::link_queues) back.
    pub fn unlink_queues(&self, lock: &OpsLock<'_>, index: u32) {
        if self.is_of(lock) {
            set_queues(lock, index, core::ptr::null_mut());
        }
    }
}

fn set_queues(lock: &OpsLock<'_>, index: u32, napi: *mut bindings::napi_struct) {
    let dev = lock.device_ptr();
    // SAFETY: The device is valid while its lock is held; these two never change.
    let (tx, rx) = unsafe { ((*dev).num_tx_queues, (*dev).num_rx_queues) };
    let types = [
        (tx, bindings::netdev_queue_type_NETDEV_QUEUE_TYPE_TX),
        (rx, bindings::netdev_queue_type_NETDEV_QUEUE_TYPE_RX),
    ];
    for (queues, queue_type) in types {
        if index < queues {
            // SAFETY: The lock of the valid device is held, and `index` is that of a queue. The
            // NAPI is one of the device, or null.
            unsafe { bindings::netif_queue_set_napi(dev, index, queue_type, napi) };
        }
    }
}

impl<P: Poll> Drop for Napi<P> {
    fn drop(&mut self) {
        self.stop();
        // SAFETY: The NAPI is disabled, and nobody else can enable it: nobody reads or writes
        // `entry` any more.
        unsafe { *self.core.entry.get() = None };
    }
}
