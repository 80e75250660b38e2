// SPDX-License-Identifier: GPL-2.0
//! MSI-X: one eventfd per vector that the driver has enabled.
//!
//! The client keeps the vector table and the mask bits, and raises what a masked vector owes; this side keeps
//! what was raised before the vector had an eventfd, which the pending bit array (PBA) shows.

use std::{collections::BTreeSet, os::fd::OwnedFd};

use rustix::io::Errno;
use vfio_user::IrqAction;

use crate::{Counter, Report};

#[derive(Default)]
struct Vector {
    eventfd: Option<OwnedFd>,
    masked: bool,
    pending: bool,
    raised: Counter,
}

/// The interrupts of the function.
pub struct MsiX {
    report: Report,
    vectors: Vec<Vector>,
    raised: Counter,
    pended: Counter,
    /// Vectors to raise at [`release`](MsiX::release).
    held: Option<BTreeSet<u16>>,
}

impl MsiX {
    /// `count` vectors, all disabled.
    pub fn new(report: &Report, count: u16) -> Self {
        let vector = |n| Vector {
            raised: report.counter(format!("irq.vector{n}")),
            ..Vector::default()
        };
        Self {
            report: report.clone(),
            vectors: (0..count).map(vector).collect(),
            raised: report.counter("irq.raised"),
            pended: report.counter("irq.pended"),
            held: None,
        }
    }

    /// Number of vectors that the function has.
    pub fn count(&self) -> u16 {
        self.vectors.len() as u16
    }

    /// Raises an interrupt. A vector that the driver has not enabled, or has masked, becomes pending.
    pub fn raise(&mut self, vector: u16) {
        let Some(entry) = self.vectors.get_mut(usize::from(vector)) else {
            self.report
                .violate(&crate::IRQ_VECTOR_RANGE, format_args!("vector {vector}"));
            return;
        };
        if let Some(held) = &mut self.held {
            held.insert(vector);
            return;
        }
        entry.raised.add(1);
        self.raised.add(1);
        if !entry.signal() {
            entry.pending = true;
            self.pended.add(1);
        }
    }

    /// Keeps back interrupts, so that the driver finds all of a batch when it looks.
    pub fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    /// Raises what was kept back, each vector once.
    pub fn release(&mut self) {
        for vector in self.held.take().unwrap_or_default() {
            self.raise(vector);
        }
    }

    /// Acts on what the client says about vectors `start .. start + count`.
    ///
    /// # Errors
    /// EINVAL for vectors that do not exist.
    pub fn set(&mut self, start: u32, count: u32, action: IrqAction) -> Result<(), Errno> {
        let end = start.checked_add(count).ok_or(Errno::INVAL)?;
        let chosen = self
            .vectors
            .get_mut(start as usize..end as usize)
            .ok_or(Errno::INVAL)?;
        match action {
            IrqAction::Connect(eventfds) => {
                let mut eventfds = eventfds.into_iter();
                for vector in chosen {
                    vector.eventfd = eventfds.next();
                    vector.deliver_pending();
                }
            }
            IrqAction::DisableAll => self.disable_all(),
            IrqAction::Trigger => {
                for vector in chosen {
                    vector.signal();
                }
            }
            IrqAction::Mask => chosen.iter_mut().for_each(|vector| vector.masked = true),
            IrqAction::Unmask => {
                for vector in chosen {
                    vector.masked = false;
                    vector.deliver_pending();
                }
            }
        }
        Ok(())
    }

    /// All vectors as after a reset.
    pub fn disable_all(&mut self) {
        for vector in &mut self.vectors {
            vector.eventfd = None;
            vector.masked = false;
            vector.pending = false;
        }
    }

    /// Forgets what is pending: a reset of the function, which the client does not follow with its eventfds.
    pub fn clear_pending(&mut self) {
        self.vectors
            .iter_mut()
            .for_each(|vector| vector.pending = false);
    }

    /// Reads the pending bit array, `offset` bytes from its start.
    pub fn read_pba(&self, offset: usize, data: &mut [u8]) {
        for (byte, at) in data.iter_mut().zip(offset..) {
            let vectors = self.vectors.iter().skip(at * 8).take(8);
            *byte = vectors.enumerate().fold(0, |bits, (n, vector)| {
                bits | (u8::from(vector.pending) << n)
            });
        }
    }
}

impl Vector {
    /// Signals the eventfd if there is one and the vector is not masked.
    fn signal(&self) -> bool {
        let Some(eventfd) = self.eventfd.as_ref().filter(|_| !self.masked) else {
            return false;
        };
        // A full counter (EAGAIN) means that the client has an interrupt to deliver anyway.
        match rustix::io::write(eventfd, &1u64.to_ne_bytes()) {
            Ok(_) | Err(Errno::AGAIN) => true,
            Err(error) => {
                eprintln!("cannot signal an interrupt: {error}");
                false
            }
        }
    }

    fn deliver_pending(&mut self) {
        if self.pending && self.signal() {
            self.pending = false;
        }
    }
}
