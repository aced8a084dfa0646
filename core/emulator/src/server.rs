//! The control socket: requests and answers, one line each. Nothing here blocks the daemon.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::error::{environment, Error};
use crate::sys::poll::{peer_user, Poll};

const MAX_LINE_BYTES: usize = 1 << 20;
const MAX_CLIENTS: usize = 64;
/// A client that leaves more than this unread is disconnected.
const MAX_UNREAD_BYTES: usize = 64 << 20;

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    input: Vec<u8>,
    output: Vec<u8>,
    closed: bool,
}

/// The listening socket and its connections.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    listener: UnixListener,
    clients: Vec<Client>,
}

impl Server {
    /// Listen at `path`; a socket left over from a daemon that has ended is replaced.
    ///
    /// # Errors
    /// A running daemon has it, or the path cannot be used.
    pub fn open(path: &Path, poll: &Poll, key: u64) -> Result<Server, Error> {
        let name = || path.display().to_string();
        match UnixStream::connect(path) {
            Ok(_) => {
                return Err(Error::Environment(format!("{}: another daemon listens here", name())))
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                environment(std::fs::remove_file(path), name)?;
            }
            Err(_) => {}
        }
        let listener = environment(UnixListener::bind(path), name)?;
        let permissions = std::fs::Permissions::from_mode(0o600);
        environment(std::fs::set_permissions(path, permissions), name)?;
        environment(listener.set_nonblocking(true), name)?;
        environment(poll.add(&listener, key), name)?;
        Ok(Server { path: path.to_path_buf(), listener, clients: Vec::new() })
    }

    /// Accept connections, read requests and answer each line by `answer`.
    pub fn serve(&mut self, poll: &Poll, key: u64, mut answer: impl FnMut(&[u8]) -> String) {
        while let Ok((stream, _)) = self.listener.accept() {
            let admitted = peer_user(&stream).is_ok_and(|user| user == 0)
                && self.clients.len() < MAX_CLIENTS
                && stream.set_nonblocking(true).is_ok()
                && poll.add(&stream, key).is_ok();
            if admitted {
                let (input, output) = (Vec::new(), Vec::new());
                self.clients.push(Client { stream, input, output, closed: false });
            }
        }
        for client in &mut self.clients {
            client.read(&mut answer);
        }
        self.flush();
    }

    /// Send pending answers; returns whether some remain.
    pub fn flush(&mut self) -> bool {
        for client in &mut self.clients {
            client.write();
        }
        self.clients.retain(|client| !(client.closed && client.output.is_empty()));
        self.clients.iter().any(|client| !client.output.is_empty())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Client {
    fn read(&mut self, answer: &mut impl FnMut(&[u8]) -> String) {
        let mut chunk = [0; 16384];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => self.closed = true,
                Ok(count) => {
                    self.input.extend_from_slice(&chunk[..count]);
                    self.answer_lines(answer);
                    if self.closed {
                        return;
                    }
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => self.abandon(),
            }
            return;
        }
    }

    fn answer_lines(&mut self, answer: &mut impl FnMut(&[u8]) -> String) {
        while let Some(end) = self.input.iter().position(|&byte| byte == b'\n') {
            let rest = self.input.split_off(end + 1);
            let line = std::mem::replace(&mut self.input, rest);
            self.output.extend(answer(&line[..end]).into_bytes());
            self.output.push(b'\n');
        }
        if self.input.len() > MAX_LINE_BYTES {
            self.output.extend(b"{\"ok\":false,\"error\":\"a line may be at most 1 MiB\"}\n");
            self.input.clear();
            self.closed = true;
        }
        if self.output.len() > MAX_UNREAD_BYTES {
            self.abandon();
        }
    }

    fn write(&mut self) {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) => {
                    self.output.drain(..count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.abandon(),
            }
        }
    }

    fn abandon(&mut self) {
        self.closed = true;
        self.output.clear();
        let _: io::Result<()> = self.stream.shutdown(std::net::Shutdown::Both);
    }
}
