// SPDX-License-Identifier: GPL-2.0
//! What tests of models need in place of a guest: memory that is mapped like a guest's, and eventfds.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    event::{eventfd, EventfdFlags},
    fs::{ftruncate, memfd_create, MemfdFlags},
    io::{pread, pwrite, Errno},
};
use vfio_user::{DmaMap, IrqAction};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{Bus, Commands, GuestDma, Knobs, MsiX, Report, Wire};

/// Which way the device may use a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// As a guest without an IOMMU maps all of its memory.
    Both,
    /// As a driver maps what it sends (`DMA_TO_DEVICE`).
    ReadOnly,
    /// Memory that the device may only fill.
    WriteOnly,
}

/// Memory of a guest that is not there: the test reads and writes it at once, the device through mappings.
///
/// A bus address is `base` more than the offset in the memory.
pub struct Memory {
    file: OwnedFd,
    /// Bus address of the first byte.
    pub base: u64,
    /// Length in bytes.
    pub len: u64,
}

impl Memory {
    /// Memory that no device may access yet.
    ///
    /// # Errors
    /// What memfd_create(2) and ftruncate(2) say.
    pub fn new(base: u64, len: u64) -> io::Result<Self> {
        let file = memfd_create("guest", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, len)?;
        Ok(Self { file, base, len })
    }

    /// A request to map `len` bytes at a bus address, as the client of the device sends it.
    ///
    /// # Errors
    /// What duplicating the file descriptor says.
    pub fn map(&self, address: u64, len: u64, access: Access) -> io::Result<DmaMap> {
        Ok(DmaMap {
            address,
            size: len,
            offset: address - self.base,
            read: access != Access::WriteOnly,
            write: access != Access::ReadOnly,
            fd: Some(self.file.try_clone()?),
        })
    }

    /// Reads an object as a CPU of the guest does.
    ///
    /// # Errors
    /// What pread(2) says, or EFAULT outside the memory.
    pub fn read<T: FromBytes + IntoBytes>(&self, address: u64) -> io::Result<T> {
        let mut object = T::new_zeroed();
        let bytes = object.as_mut_bytes();
        let len = bytes.len();
        let read = pread(&self.file, bytes, address.wrapping_sub(self.base))?;
        if read == len {
            Ok(object)
        } else {
            Err(Errno::FAULT.into())
        }
    }

    /// Writes an object as a CPU of the guest does.
    ///
    /// # Errors
    /// What pwrite(2) says, or EFAULT outside the memory.
    pub fn write<T: IntoBytes + Immutable + ?Sized>(
        &self,
        address: u64,
        object: &T,
    ) -> io::Result<()> {
        let at = address.wrapping_sub(self.base);
        let end = at.checked_add(object.as_bytes().len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(Errno::FAULT.into());
        }
        pwrite(&self.file, object.as_bytes(), at)?;
        Ok(())
    }
}

/// A bus with bus mastering on, all of `memory` mapped, and one wire per port; the other end of the wire of port
/// `n` is wire `ports + n`.
///
/// # Errors
/// What making the sockets and mapping the memory says.
pub fn bus(
    memory: &Memory,
    vectors: u16,
    ports: usize,
    knobs: &'static [&'static str],
) -> io::Result<Bus> {
    let report = Report::default();
    let mut dma = GuestDma::new(&report);
    dma.set_bus_master(true);
    dma.map(memory.map(memory.base, memory.len, Access::Both)?)?;
    let (mut wires, mut peers) = (Vec::new(), Vec::new());
    for port in 0..ports {
        let (wire, peer) = Wire::pair(&report, port, ports + port)?;
        wires.push(wire);
        peers.push(peer);
    }
    wires.append(&mut peers);
    let irq = MsiX::new(&report, vectors);
    Ok(Bus {
        dma,
        irq,
        wires,
        report,
        knobs: Knobs::new(knobs),
        commands: Commands::default(),
    })
}

/// One vector as the client of the device sees it.
pub struct Interrupt(OwnedFd);

impl Interrupt {
    /// Enables a vector.
    ///
    /// # Errors
    /// What eventfd(2) says, or EINVAL if there is no such vector.
    pub fn connect(irq: &mut MsiX, vector: u16) -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        irq.set(
            vector.into(),
            1,
            IrqAction::Connect(vec![fd.as_fd().try_clone_to_owned()?]),
        )?;
        Ok(Self(fd))
    }

    /// How often the vector was raised since the last call.
    pub fn take(&self) -> u64 {
        let mut count = [0; 8];
        match rustix::io::read(&self.0, &mut count) {
            Ok(8) => u64::from_ne_bytes(count),
            _ => 0,
        }
    }
}
