// SPDX-License-Identifier: GPL-2.0

//! Raw declarations: everything of `kernel::bindings`, plus the networking
//! types, functions and C helpers that it lacks.
//!
//! Generated for each kernel by bindgen from `bindings/bindings.h`. Types that
//! `kernel::bindings` knows in full are the same types here. One seam: it
//! knows `net_device`, `napi_struct`, `page_pool` and `xdp_frame` by name
//! only, so pointers to these in its structures (`sk_buff.dev`) need a
//! `.cast()`.

#![allow(
    clippy::all,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    unsafe_op_in_unsafe_fn,
    unused_imports,
    clippy::as_underscore,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks
)]

use kernel::ffi;
use pin_init::{
    MaybeZeroable,
    Zeroable, //
};

pub use kernel::bindings::*;

// SAFETY: `__BindgenBitfieldUnit<Storage>` is a newtype around `Storage`.
unsafe impl<Storage> Zeroable for __BindgenBitfieldUnit<Storage> where Storage: Zeroable {}

include!(concat!(
    env!("RING_COMMON_OBJ"),
    "/netdev/bindings/generated.rs"
));

/// The layout of the kernel crate's types, checked at compile time.
mod kernel_layout {
    use super::*;

    include!(concat!(
        env!("RING_COMMON_OBJ"),
        "/netdev/bindings/kernel-layout.rs"
    ));
}
