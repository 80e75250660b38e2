// SPDX-License-Identifier: GPL-2.0

//! Strings of fixed size.

use core::fmt::{
    self,
    Write, //
};

/// Size of a name and of most other strings, with the NUL at the end.
pub(super) const STRING_SIZE: usize = 32;

/// One string of up to 31 bytes; of what is longer, the end is cut.
pub struct Text<'a> {
    bytes: &'a mut [u8; STRING_SIZE],
    len: usize,
}

impl<'a> Text<'a> {
    pub(super) fn new(bytes: &'a mut [u8; STRING_SIZE]) -> Self {
        bytes.fill(0);
        Self { bytes, len: 0 }
    }

    /// Appends `text`.
    pub fn push(&mut self, text: fmt::Arguments<'_>) {
        // `write_str` below never fails; a formatter that does has ended the
        // string where it failed.
        let _ = self.write_fmt(text);
    }
}

impl Write for Text<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let free = &mut self.bytes[self.len..STRING_SIZE - 1];
        let n = s.len().min(free.len());
        free[..n].copy_from_slice(&s.as_bytes()[..n]);
        self.len += n;
        Ok(())
    }
}

/// Writes the names of statistics one after the other.
pub struct StringsWriter<'a>(core::slice::IterMut<'a, [u8; STRING_SIZE]>);

impl<'a> StringsWriter<'a> {
    pub(super) fn new(names: &'a mut [[u8; STRING_SIZE]]) -> Self {
        Self(names.iter_mut())
    }

    /// Writes the next name, of up to 31 bytes; of what is longer, the end is
    /// cut. Names beyond their number are ignored.
    pub fn push(&mut self, name: fmt::Arguments<'_>) {
        if let Some(bytes) = self.0.next() {
            Text::new(bytes).push(name);
        }
    }
}
