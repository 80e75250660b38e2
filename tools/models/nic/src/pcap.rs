// SPDX-License-Identifier: GPL-2.0
//! Capture of a wire as a pcapng file with the direction of each frame.

use std::{
    collections::VecDeque,
    fs::File,
    io::{BufWriter, Result, Write},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

/// Which way a frame went, with the value of pcapng's `epb_flags`.
#[derive(Clone, Copy)]
pub enum Direction {
    /// From the wire to the device.
    In = 1,
    /// From the device to the wire.
    Out = 2,
}

/// One capture file.
pub struct Pcap(BufWriter<File>);

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const LINKTYPE_ETHERNET: u32 = 1;

impl Pcap {
    /// Makes the file.
    ///
    /// # Errors
    /// What creating or writing it says.
    pub fn create(path: &Path) -> Result<Self> {
        let mut pcap = Self(BufWriter::new(File::create(path)?));
        // Byte order magic, version 1.0, section length unknown.
        pcap.block(
            SECTION_HEADER,
            &[0x1a2b_3c4d, 1, u32::MAX, u32::MAX],
            &[],
            &[],
        )?;
        // Link type, no snap length; timestamps are in microseconds by default.
        pcap.block(INTERFACE_DESCRIPTION, &[LINKTYPE_ETHERNET, 0], &[], &[])?;
        pcap.0.flush()?;
        Ok(pcap)
    }

    /// Adds a frame.
    ///
    /// # Errors
    /// What writing the file says.
    pub fn frame(&mut self, direction: Direction, frame: &[u8]) -> Result<()> {
        self.record(&Record::new(direction, frame, frame.len()))
    }

    fn record(&mut self, record: &Record) -> Result<()> {
        // Interface, timestamp, captured and original length; option epb_flags (2) of 4 bytes, end of options.
        let fixed = [
            0,
            (record.time >> 32) as u32,
            record.time as u32,
            record.data.len() as u32,
            record.len as u32,
        ];
        self.block(
            ENHANCED_PACKET,
            &fixed,
            &record.data,
            &[2 | (4 << 16), record.direction as u32, 0],
        )
    }

    /// Writes what is still in memory.
    ///
    /// # Errors
    /// What writing the file says.
    pub fn flush(&mut self) -> Result<()> {
        self.0.flush()
    }

    /// One block: fixed words, padded data, option words.
    fn block(&mut self, kind: u32, fixed: &[u32], data: &[u8], options: &[u32]) -> Result<()> {
        let padding = data.len().next_multiple_of(4) - data.len();
        let total = (12 + 4 * (fixed.len() + options.len()) + data.len() + padding) as u32;
        for word in [kind, total].iter().chain(fixed) {
            self.0.write_all(&word.to_ne_bytes())?;
        }
        self.0.write_all(data)?;
        self.0.write_all(&[0; 3][..padding])?;
        for word in options.iter().chain([&total]) {
            self.0.write_all(&word.to_ne_bytes())?;
        }
        Ok(())
    }
}

/// One frame as a capture holds it.
struct Record {
    /// Microseconds since the epoch.
    time: u64,
    direction: Direction,
    /// Length on the wire.
    len: usize,
    data: Vec<u8>,
}

impl Record {
    fn new(direction: Direction, frame: &[u8], most: usize) -> Self {
        let time = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_micros() as u64;
        Self {
            time,
            direction,
            len: frame.len(),
            data: frame[..frame.len().min(most)].to_vec(),
        }
    }
}

/// The last frames of a wire, kept in memory and written when the model ends.
pub struct Tail {
    path: PathBuf,
    records: VecDeque<Record>,
}

impl Tail {
    /// How many frames are kept.
    pub const FRAMES: usize = 4096;
    /// How much of each frame is kept, in bytes.
    pub const SNAP: usize = 192;

    /// No frame yet; `path` is where the file will be.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            records: VecDeque::with_capacity(Self::FRAMES),
        }
    }

    /// Adds a frame; the oldest one goes when there are too many.
    pub fn frame(&mut self, direction: Direction, frame: &[u8]) {
        if self.records.len() == Self::FRAMES {
            self.records.pop_front();
        }
        self.records
            .push_back(Record::new(direction, frame, Self::SNAP));
    }

    /// Writes the file.
    ///
    /// # Errors
    /// What creating or writing it says.
    pub fn save(&self) -> Result<()> {
        let mut pcap = Pcap::create(&self.path)?;
        for record in &self.records {
            pcap.record(record)?;
        }
        pcap.flush()
    }
}
