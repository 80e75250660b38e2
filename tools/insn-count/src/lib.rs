// SPDX-License-Identifier: GPL-2.0
//! A plugin for QEMU's TCG that counts how often the guest executed each block of kernel instructions.
//!
//! `-plugin libinsn_count.so,socket=PATH` counts from the first instruction on, inline in the translated
//! code. Each byte that a client writes to the unix socket at PATH is answered with a table of all counts:
//! the number of rows, then per row the address of a block, its number of instructions, and how often it was
//! executed, each 64 bits in little endian. What ran between two tables is their difference; names are the
//! client's business.
//!
//! Programs of the guest share addresses, so all their instructions are one row, at address 0.

mod blocks;
// The functions of QEMU exist only where QEMU loads this library.
#[cfg(not(test))]
mod qemu;
#[cfg(not(test))]
mod serve;
