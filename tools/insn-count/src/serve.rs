// SPDX-License-Identifier: GPL-2.0
//! The socket where clients ask for the counts.

use std::{
    io::{self, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    thread,
};

/// Listens at `path`, in a thread that lives as long as the process.
pub fn start(path: &str, table: fn() -> Vec<u8>) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    thread::Builder::new()
        .name("insn-count".into())
        .spawn(move || {
            for client in listener.incoming().flatten() {
                if let Err(error) = answer(client, table) {
                    eprintln!("insn-count: {error}");
                }
            }
        })?;
    Ok(())
}

/// One table for each byte, until the client leaves.
fn answer(mut client: UnixStream, table: fn() -> Vec<u8>) -> io::Result<()> {
    let mut request = [0];
    while client.read(&mut request)? == 1 {
        client.write_all(&table())?;
    }
    Ok(())
}
