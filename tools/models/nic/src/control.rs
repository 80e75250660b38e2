// SPDX-License-Identifier: GPL-2.0
//! The control socket: JSON objects in, one per line, and one JSON line back for each.

use std::{
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::{UnixListener, UnixStream},
    },
    path::Path,
};

use serde_json::Value;

/// Longest line that is taken.
const MAX_LINE: usize = 64 << 10;

struct Client {
    stream: UnixStream,
    line: Vec<u8>,
}

/// Listener and clients.
pub struct Control {
    listener: UnixListener,
    clients: Vec<Client>,
}

impl Control {
    /// Listens at `path`.
    ///
    /// # Errors
    /// What binding the socket says.
    pub fn listen(path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            clients: Vec::new(),
        })
    }

    /// What becomes readable when [`serve`](Self::serve) has something to do.
    pub fn poll_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let clients = self.clients.iter().map(|client| client.stream.as_fd());
        std::iter::once(self.listener.as_fd()).chain(clients)
    }

    /// Accepts clients and answers each complete line with what `answer` makes of it.
    pub fn serve(&mut self, mut answer: impl FnMut(Value) -> Value) {
        self.clients
            .retain_mut(|client| client.serve(&mut answer).is_ok());
        while let Ok((stream, _)) = self.listener.accept() {
            let mut client = Client {
                stream,
                line: Vec::new(),
            };
            if client.stream.set_nonblocking(true).is_ok() && client.serve(&mut answer).is_ok() {
                self.clients.push(client);
            }
        }
    }
}

impl Client {
    /// Answers what is there; an error ends the client.
    fn serve(&mut self, answer: &mut impl FnMut(Value) -> Value) -> io::Result<()> {
        let mut chunk = [0; 4096];
        loop {
            let received = match self.stream.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            self.line.extend_from_slice(&chunk[..received]);
            while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.line.drain(..=end).collect();
                let reply = match serde_json::from_slice(&line) {
                    Ok(command) => answer(command),
                    Err(error) => {
                        serde_json::json!({"error": format!("not one JSON object per line: {error}")})
                    }
                };
                self.reply(&reply)?;
            }
            if self.line.len() > MAX_LINE {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }

    /// Writes a reply; a client that does not read its replies is given up, not waited for.
    fn reply(&mut self, reply: &Value) -> io::Result<()> {
        let mut line = reply.to_string();
        line.push('\n');
        self.stream.write_all(line.as_bytes())
    }
}
