// SPDX-License-Identifier: GPL-2.0
//! Whatever the driver writes, the model does not panic and does not stop.

mod common;

use common::{tx_wqe, Raw, BASE};
use mana::{
    messages::*,
    regs::{doorbell_offset, BAR0_SIZE},
    session::mana_id,
};
use nic::Model;
use zerocopy::IntoBytes;

/// A generator of the xorshift family: the same numbers in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A number that is small, large, or near a power of two.
    fn value(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(16),
            1 => self.next(),
            2 => BASE + self.below(64) * 4096,
            _ => (1u64 << self.below(64)).wrapping_sub(self.below(2)),
        }
    }
}

#[test]
fn registers() {
    let mut random = Random(1);
    for _ in 0..20 {
        let mut raw = Raw::running();
        for _ in 0..2000 {
            let len = 1 << random.below(4);
            let offset = random.below(BAR0_SIZE) / len * len;
            if random.below(4) == 0 {
                raw.read_reg(offset, len as usize);
            } else {
                raw.write_reg(offset, len as usize, random.value());
            }
        }
        raw.tick();
    }
}

#[test]
fn doorbells_and_entries() {
    let mut random = Random(2);
    let offsets = [
        doorbell_offset::SQ,
        doorbell_offset::RQ,
        doorbell_offset::CQ,
        doorbell_offset::EQ,
        doorbell_offset::DIM,
    ];
    for _ in 0..50 {
        let mut raw = Raw::running_with(&[("dim", "1")]);
        for _ in 0..200 {
            let words: Vec<u64> = (0..512).map(|_| random.value()).collect();
            raw.memory
                .write(raw.sq.address, words.as_slice())
                .expect("entries");
            raw.memory
                .write(raw.rq.address, words.as_slice())
                .expect("entries");
            let id = [raw.sq.id, raw.rq.id, raw.sq.cq.id, raw.rq.cq.id, raw.eq.id]
                [random.below(5) as usize];
            let offset = offsets[random.below(5) as usize];
            let tail = random.below(160) as u32 * 32;
            raw.ring_page(
                mana_id::DOORBELL,
                offset,
                u64::from(id) | (u64::from(tail) << 32),
            );
            raw.tick();
            raw.frame_in(&common::other(14 + random.below(9000) as usize));
        }
    }
}

#[test]
fn packets_with_random_bits() {
    let mut random = Random(3);
    for _ in 0..300 {
        let mut raw = Raw::running();
        for _ in 0..20 {
            let mut frame = common::lso(&[7; 3000]);
            let at = random.below(60) as usize;
            frame[at] = random.next() as u8;
            let cut = 1 + random.below(100) as usize;
            let sges = [raw.data(&frame[..cut]), raw.data(&frame[cut..])];
            let oob = raw.oob(random.next() as u32 & 0x7c, random.below(64) as u32);
            let mut wqe = tx_wqe(oob.as_bytes(), &sges, random.next() as u32 & 0x3fff_0800);
            wqe[3] = random.next() as u8;
            raw.send_wqe(&wqe);
            let mut oob = oob.as_bytes().to_vec();
            oob.extend((0..16).map(|_| random.next() as u8));
            raw.send_wqe(&tx_wqe(&oob, &sges, 0));
            raw.frame_in(&frame);
        }
    }
}

#[test]
fn commands() {
    let mut random = Random(4);
    let codes: Vec<u32> = (0..100).chain(0x20000..0x20010).collect();
    for _ in 0..20 {
        let mut raw = Raw::running();
        for _ in 0..400 {
            let code = codes[random.below(codes.len() as u64) as usize];
            let mut body: Vec<u8> = Vec::new();
            for _ in 0..random.below(40) {
                let word = [random.value(), raw.vport, raw.rq.handle, raw.sq.handle]
                    [random.below(4) as usize];
                if random.below(2) == 0 {
                    body.extend_from_slice(&word.to_le_bytes());
                } else {
                    body.extend_from_slice(&(word as u32).to_le_bytes());
                }
            }
            let mut message = Raw::header(code, random.below(4) as u32, REQ_HDR + body.len())
                .as_bytes()
                .to_vec();
            message.extend_from_slice(&body);
            if random.below(8) == 0 {
                let at = random.below(message.len() as u64) as usize;
                message[at] = random.next() as u8;
            }
            raw.send_message(&message);
        }
        raw.model.reset(&mut raw.bus);
    }
}
