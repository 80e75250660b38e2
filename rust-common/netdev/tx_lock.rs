// SPDX-License-Identifier: GPL-2.0

//! The core's lock of a TX queue, as proof of exclusive access.
//!
//! The core calls `ndo_start_xmit` under `__netif_tx_lock` of one queue (no device of ours asks for
//! lockless TX). What belongs to that queue's producer may then be used without a lock of its own:
//! [`PerTxQueue`] lends it against the token [`TxLocked`].

use core::{
    cell::UnsafeCell,
    marker::PhantomData, //
};

use kernel::{
    prelude::*,
    types::NotThreadSafe, //
};

use crate::{
    bindings,
    device::DeviceId, //
};

/// Proof that the xmit lock of one queue of one device is held, BHs off.
///
/// # Invariants
///
/// While a value exists, this context holds `__netif_tx_lock` of queue `queue` of `dev`, and no other
/// value for it exists.
pub struct TxLocked<'a> {
    dev: *mut bindings::net_device,
    queue: u16,
    _held: PhantomData<&'a mut ()>,
    _context: NotThreadSafe,
}

impl TxLocked<'_> {
    /// Takes note that the lock is held.
    ///
    /// # Safety
    ///
    /// For the lifetime of the result the caller holds the xmit lock of queue `queue` of `dev`, and
    /// makes no second token for it.
    pub(crate) unsafe fn assume(dev: *mut bindings::net_device, queue: u16) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            dev,
            queue,
            _held: PhantomData,
            _context: NotThreadSafe,
        }
    }

    /// The queue whose lock is held.
    pub fn queue(&self) -> u16 {
        self.queue
    }

    /// Has the core send nothing on the queue until it is woken.
    pub fn stop_queue(&self) {
        // SAFETY: By the type invariant the device is valid and has the queue, whose lock is held.
        unsafe { bindings::rc_helper_netif_tx_stop(self.dev, self.queue.into()) };
    }
}

/// One `T` for each TX queue of a device, lent to who holds the lock of that queue.
///
/// # Invariants
///
/// The cell `q` is accessed only by a context that holds the xmit lock of queue `q` of `dev`, or by one
/// that owns `self`.
pub struct PerTxQueue<T> {
    dev: DeviceId,
    cells: KVVec<UnsafeCell<Option<T>>>,
}

// SAFETY: By the type invariant a cell is accessed by one context at a time; the lock orders them. The
// value moves between contexts, which `T: Send` allows.
unsafe impl<T: Send> Sync for PerTxQueue<T> {}

impl<T> PerTxQueue<T> {
    /// Makes `queues` empty cells for `dev`.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there is no memory.
    pub fn new(dev: DeviceId, queues: usize) -> Result<Self> {
        let mut cells = KVVec::with_capacity(queues, GFP_KERNEL)?;
        for _ in 0..queues {
            cells.push(UnsafeCell::new(None), GFP_KERNEL)?;
        }
        Ok(Self { dev, cells })
    }

    #[inline]
    fn cell(&self, lock: &TxLocked<'_>) -> Option<&UnsafeCell<Option<T>>> {
        if lock.dev != self.dev.as_ptr() {
            return None;
        }
        self.cells.get(usize::from(lock.queue))
    }

    /// Lends the value of the locked queue.
    ///
    /// `None` if the cell is empty, or the lock is that of another device.
    #[inline]
    pub fn get<'a>(&'a self, lock: &'a mut TxLocked<'_>) -> Option<&'a mut T> {
        let cell = self.cell(lock)?;
        // SAFETY:
        // - `cell` is that of the queue whose lock this context holds, by the invariant of
        //   `TxLocked`; so no other context accesses it.
        // - The token is borrowed mutably for as long as the reference lives, so this context makes no
        //   second one.
        unsafe { (*cell.get()).as_mut() }
    }

    /// Puts a value into the cell of the locked queue and returns the one before it.
    ///
    /// # Errors
    ///
    /// Gives the value back if there is no such cell, or the lock is that of another device.
    pub fn replace(
        &self,
        lock: &mut TxLocked<'_>,
        value: Option<T>,
    ) -> Result<Option<T>, Option<T>> {
        let Some(cell) = self.cell(lock) else {
            return Err(value);
        };
        // SAFETY: As in `get`; the reference ends with this statement.
        Ok(core::mem::replace(unsafe { &mut *cell.get() }, value))
    }
}
