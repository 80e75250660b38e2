// SPDX-License-Identifier: GPL-2.0

//! Bit fields of the 32-bit words that are shared with the device.

/// A field of a 32-bit word.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    shift: u32,
    mask: u32,
}

impl Field {
    /// The field from bit `low` to bit `high`, both included.
    pub(crate) const fn bits(high: u32, low: u32) -> Self {
        assert!(low <= high && high < 32);
        Self {
            shift: low,
            mask: u32::MAX >> (31 - (high - low)),
        }
    }

    /// The field of the single bit `bit`.
    pub(crate) const fn bit(bit: u32) -> Self {
        Self::bits(bit, bit)
    }

    /// Largest value of the field.
    pub(crate) const fn max(self) -> u32 {
        self.mask
    }

    /// Value of the field in `word`.
    pub(crate) const fn get(self, word: u32) -> u32 {
        (word >> self.shift) & self.mask
    }

    /// Whether any bit of the field is set in `word`.
    pub(crate) const fn is_set(self, word: u32) -> bool {
        self.get(word) != 0
    }

    /// A word that is 0 but for this field. Callers check values against
    /// [`Field::max`] where they come from; what exceeds it is cut off.
    pub(crate) const fn of(self, value: u32) -> u32 {
        (value & self.mask) << self.shift
    }

    /// [`Field::of`] of a flag.
    pub(crate) const fn flag(self, value: bool) -> u32 {
        // CAST: lossless.
        self.of(value as u32)
    }
}
