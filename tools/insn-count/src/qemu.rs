// SPDX-License-Identifier: GPL-2.0
//! The plugin as QEMU knows it. Declares what is used of QEMU's plugin interface, version 7: the header is in
//! no Debian package.

use std::{
    ffi::{c_char, c_int, c_void, CStr},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use crate::{
    blocks::{Block, Blocks, SLOTS},
    serve,
};

/// Opaque types of QEMU.
#[repr(C)]
struct Tb([u8; 0]);
#[repr(C)]
struct Scoreboard([u8; 0]);

/// `qemu_plugin_u64`: a 64-bit number at `offset` in each processor's element of a scoreboard.
#[repr(C)]
#[derive(Clone, Copy)]
struct U64 {
    score: *mut Scoreboard,
    offset: usize,
}

/// `QEMU_PLUGIN_INLINE_ADD_U64`.
const INLINE_ADD_U64: c_int = 0;

extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(
        id: u64,
        translated: extern "C" fn(tb: *mut Tb, userdata: *mut c_void),
        userdata: *mut c_void,
    );
    fn qemu_plugin_tb_vaddr(tb: *const Tb) -> u64;
    fn qemu_plugin_tb_n_insns(tb: *const Tb) -> usize;
    fn qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
        tb: *mut Tb,
        operation: c_int,
        counter: U64,
        step: u64,
    );
    fn qemu_plugin_scoreboard_new(element_size: usize) -> *mut Scoreboard;
    fn qemu_plugin_u64_sum(counter: U64) -> u64;
}

/// The plugin interface that this library is written for; QEMU refuses it where it has another.
#[no_mangle]
pub static qemu_plugin_version: c_int = 7;

struct Counters {
    blocks: Mutex<Blocks>,
    /// One element per processor, with [`SLOTS`] numbers.
    score: *mut Scoreboard,
}

// SAFETY: `score` is only handed to functions of QEMU that may be called from any thread.
unsafe impl Send for Counters {}
// SAFETY: as above; all else is behind a lock.
unsafe impl Sync for Counters {}

static COUNTERS: OnceLock<Counters> = OnceLock::new();

impl Counters {
    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counter(&self, slot: usize) -> U64 {
        U64 {
            score: self.score,
            offset: slot * size_of::<u64>(),
        }
    }
}

/// All counts as they are now. Exact where the guest rests meanwhile: a processor's count is read without
/// stopping it.
fn table() -> Vec<u8> {
    let Some(counters) = COUNTERS.get() else {
        return Vec::new();
    };
    counters.blocks().table(|slot| {
        // SAFETY: the scoreboard is never freed, and `slot` is below `SLOTS`, so the number lies in each element.
        unsafe { qemu_plugin_u64_sum(counters.counter(slot)) }
    })
}

extern "C" fn translated(tb: *mut Tb, _userdata: *mut c_void) {
    let Some(counters) = COUNTERS.get() else {
        return;
    };
    // SAFETY: QEMU gives a valid block for the time of this call.
    let block = unsafe {
        Block {
            address: qemu_plugin_tb_vaddr(tb),
            insns: qemu_plugin_tb_n_insns(tb) as u64,
        }
    };
    let count = counters.blocks().count(block);
    // SAFETY:
    // - QEMU gives a valid block for the time of this call;
    // - the scoreboard is never freed, and `slot` is below `SLOTS`, so the number lies in each element.
    unsafe {
        qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
            tb,
            INLINE_ADD_U64,
            counters.counter(count.slot),
            count.step,
        );
    }
}

/// QEMU calls this once, before the guest starts; anything but 0 ends QEMU.
///
/// # Safety
///
/// `argv` points to `argc` pointers to C strings, valid for the time of the call.
#[no_mangle]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    _info: *const c_void,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    let arguments = (0..usize::try_from(argc).unwrap_or(0)).map(|n| {
        // SAFETY: by the contract of this function, `argv[n]` is a C string.
        unsafe { CStr::from_ptr(*argv.add(n)) }.to_string_lossy()
    });
    let mut socket = None;
    for argument in arguments {
        match argument.split_once('=') {
            Some(("socket", path)) => socket = Some(path.to_owned()),
            _ => {
                eprintln!("insn-count: takes socket=PATH, not \"{argument}\"");
                return 1;
            }
        }
    }
    let Some(socket) = socket else {
        eprintln!("insn-count: socket=PATH is missing");
        return 1;
    };
    COUNTERS.get_or_init(|| Counters {
        blocks: Mutex::new(Blocks::new(SLOTS)),
        // SAFETY: may be called at any time after QEMU loaded the plugin.
        score: unsafe { qemu_plugin_scoreboard_new(SLOTS * size_of::<u64>()) },
    });
    if let Err(error) = serve::start(&socket, table) {
        eprintln!("insn-count: cannot listen at {socket}: {error}");
        return 1;
    }
    // SAFETY: `id` is the one that QEMU gave, and `translated` has the signature of interface version 7.
    unsafe { qemu_plugin_register_vcpu_tb_trans_cb(id, translated, std::ptr::null_mut()) };
    0
}
