// SPDX-License-Identifier: GPL-2.0

//! Messages that name the network device they are about.
//!
//! `netdev_err!(dev, "text {}\n", value)` and its siblings take a [`Device`],
//! a lock token or a [`DeviceRef`]. What traffic or a device can provoke at
//! will goes through the `_ratelimited` variants. Context: any.
//!
//! [`Device`]: crate::device::Device
//! [`DeviceRef`]: crate::lock::DeviceRef

use crate::bindings;
use kernel::prelude::*;

/// What is, or leads to, a network device that a message can name.
///
/// # Safety
///
/// `as_netdev` returns a valid device for as long as `self` is borrowed.
pub unsafe trait AsNetdev {
    /// Returns the device.
    fn as_netdev(&self) -> *mut bindings::net_device;
}

/// Level of a message.
#[derive(Clone, Copy)]
pub enum Level {
    /// Something failed that the user sees.
    Err,
    /// Something looks wrong, and work goes on.
    Warn,
    /// Something worth knowing.
    Info,
    /// For developers; not on the console by default.
    Debug,
}

/// Prints `message`, which ends in a newline, with the name of `dev`.
///
/// Use the macros of this module instead.
#[doc(hidden)]
pub fn print(level: Level, dev: &impl AsNetdev, message: core::fmt::Arguments<'_>) {
    // SOH and the digit of the level, as in include/linux/kern_levels.h.
    let level = match level {
        Level::Err => c"\x013",
        Level::Warn => c"\x014",
        Level::Info => c"\x016",
        Level::Debug => c"\x017",
    };
    // SAFETY:
    // - `level` is a NUL-terminated string in the form that printk() takes.
    // - The device is valid by the contract of `AsNetdev`.
    // - "%pA" takes a pointer to `fmt::Arguments`, alive during the call.
    unsafe {
        bindings::netdev_printk(
            level.as_char_ptr(),
            dev.as_netdev(),
            c"%pA".as_char_ptr(),
            core::ptr::from_ref(&message).cast::<c_void>(),
        )
    };
}

/// May the network code print one more message?
#[doc(hidden)]
pub fn ratelimit() -> bool {
    // SAFETY: Has no preconditions.
    unsafe { bindings::rc_helper_net_ratelimit() }
}

/// Prints an error about a network device.
#[macro_export]
macro_rules! netdev_err {
    ($dev:expr, $($f:tt)*) => {
        $crate::log::print($crate::log::Level::Err, $dev, ::kernel::prelude::fmt!($($f)*))
    };
}

/// Prints a warning about a network device.
#[macro_export]
macro_rules! netdev_warn {
    ($dev:expr, $($f:tt)*) => {
        $crate::log::print($crate::log::Level::Warn, $dev, ::kernel::prelude::fmt!($($f)*))
    };
}

/// Prints something worth knowing about a network device.
#[macro_export]
macro_rules! netdev_info {
    ($dev:expr, $($f:tt)*) => {
        $crate::log::print($crate::log::Level::Info, $dev, ::kernel::prelude::fmt!($($f)*))
    };
}

/// Prints a message for developers about a network device.
#[macro_export]
macro_rules! netdev_dbg {
    ($dev:expr, $($f:tt)*) => {
        $crate::log::print($crate::log::Level::Debug, $dev, ::kernel::prelude::fmt!($($f)*))
    };
}

/// [`netdev_err!`](crate::netdev_err), unless network code prints too much.
#[macro_export]
macro_rules! netdev_err_ratelimited {
    ($dev:expr, $($f:tt)*) => {
        if $crate::log::ratelimit() {
            $crate::netdev_err!($dev, $($f)*)
        }
    };
}

/// [`netdev_warn!`](crate::netdev_warn), unless network code prints too much.
#[macro_export]
macro_rules! netdev_warn_ratelimited {
    ($dev:expr, $($f:tt)*) => {
        if $crate::log::ratelimit() {
            $crate::netdev_warn!($dev, $($f)*)
        }
    };
}

/// The kernel's [`dev_err!`](kernel::dev_err), unless network code prints too
/// much.
#[macro_export]
macro_rules! dev_err_ratelimited {
    ($dev:expr, $($f:tt)*) => {
        if $crate::log::ratelimit() {
            ::kernel::dev_err!($dev, $($f)*)
        }
    };
}
