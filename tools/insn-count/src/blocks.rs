// SPDX-License-Identifier: GPL-2.0
//! Which block of the guest has which counter.

use std::collections::HashMap;

/// Counters there are. A guest that boots and passes some traffic takes about a tenth.
pub const SLOTS: usize = 1 << 20;
/// Instructions of the guest's programs.
pub const USER: usize = 0;
/// Instructions of kernel blocks for which no counter was left.
pub const OVERFLOW: usize = 1;
/// Address at which the overflow is reported: no block begins there.
const OVERFLOW_ADDRESS: u64 = u64::MAX;

/// Some instructions that are executed one after the other, as they were translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Guest-virtual address of the first.
    pub address: u64,
    /// How many there are.
    pub insns: u64,
}

/// What a block's execution adds to which counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Number of the counter.
    pub slot: usize,
    /// What is added.
    pub step: u64,
}

/// All blocks that were translated, in the order of their counters.
pub struct Blocks {
    rows: Vec<Block>,
    slots: HashMap<Block, usize>,
    limit: usize,
}

impl Blocks {
    /// No blocks yet, and room for `limit` counters.
    pub fn new(limit: usize) -> Self {
        let single = |address| Block { address, insns: 1 };
        Self {
            rows: vec![single(0), single(OVERFLOW_ADDRESS)],
            slots: HashMap::new(),
            limit,
        }
    }

    /// The counter of a block. A block that is translated again keeps the one it had.
    pub fn count(&mut self, block: Block) -> Count {
        let lump = |slot| Count {
            slot,
            step: block.insns,
        };
        if block.address >> 63 == 0 {
            return lump(USER);
        }
        let slot = match self.slots.get(&block) {
            Some(slot) => *slot,
            None if self.rows.len() == self.limit => return lump(OVERFLOW),
            None => {
                self.rows.push(block);
                self.slots.insert(block, self.rows.len() - 1);
                self.rows.len() - 1
            }
        };
        Count { slot, step: 1 }
    }

    /// The table for a client; `executed` reads a counter.
    pub fn table(&self, executed: impl Fn(usize) -> u64) -> Vec<u8> {
        let mut table = Vec::with_capacity(8 + 24 * self.rows.len());
        table.extend((self.rows.len() as u64).to_le_bytes());
        for (slot, block) in self.rows.iter().enumerate() {
            for value in [block.address, block.insns, executed(slot)] {
                table.extend(value.to_le_bytes());
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: u64 = 0xffff_ffff_8100_0000;

    fn block(address: u64, insns: u64) -> Block {
        Block { address, insns }
    }

    #[test]
    fn a_kernel_block_has_a_counter_of_its_own() {
        let mut blocks = Blocks::new(SLOTS);
        let first = blocks.count(block(KERNEL, 5));
        let longer = blocks.count(block(KERNEL, 6));
        assert_eq!((first.step, longer.step), (1, 1));
        assert_ne!(first.slot, longer.slot);
        assert_eq!(blocks.count(block(KERNEL, 5)), first);
    }

    #[test]
    fn programs_share_one_counter_of_instructions() {
        let mut blocks = Blocks::new(SLOTS);
        for (address, step) in [(0x40_0000, 3), (0x7fff_ffff_f000, 9)] {
            let slot = USER;
            assert_eq!(blocks.count(block(address, step)), Count { slot, step });
        }
    }

    #[test]
    fn instructions_without_a_counter_are_not_lost() {
        let mut blocks = Blocks::new(3);
        assert_eq!(blocks.count(block(KERNEL, 5)).slot, 2);
        let slot = OVERFLOW;
        assert_eq!(blocks.count(block(KERNEL + 64, 7)), Count { slot, step: 7 });
        assert_eq!(blocks.count(block(KERNEL, 5)).slot, 2);
    }

    #[test]
    fn a_table_has_a_row_per_counter() {
        let mut blocks = Blocks::new(SLOTS);
        let slot = blocks.count(block(KERNEL, 5)).slot;
        let table = blocks.table(|asked| if asked == slot { 42 } else { 0 });
        let words: Vec<u64> = table
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words, [3, 0, 1, 0, u64::MAX, 1, 0, KERNEL, 5, 42]);
    }
}
