//! The control socket: requests and answers, one line each. Nothing here blocks the daemon.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{environment, Error};
use crate::sys::poll::{peer_user, Poll};

const MAX_LINE_BYTES: usize = 1 << 20;
const MAX_CLIENTS: usize = 64;
/// A client that leaves more than this unread is disconnected.
const MAX_UNREAD_BYTES: usize = 64 << 20;
/// Time for requests in one turn of the daemon. A request is always answered completely; the next
/// one waits for the next turn.
const TURN: Duration = Duration::from_micros(200);
/// After a turn requests wait for this many times as long as it took.
const REST_FACTOR: u32 = 4;
/// Bytes of one client that are read in one turn.
const TURN_BYTES: usize = 1 << 16;

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    input: Vec<u8>,
    /// Bytes of `input` in which no line ends.
    searched: usize,
    /// Whether a complete line waits for the next turn.
    waiting: bool,
    output: VecDeque<u8>,
    closed: bool,
}

/// The listening socket and its connections.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    listener: UnixListener,
    clients: Vec<Client>,
    /// When requests are served again.
    resume: Instant,
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
        Ok(Server {
            path: path.to_path_buf(),
            listener,
            clients: Vec::new(),
            resume: Instant::now(),
        })
    }

    /// Accept connections, read requests and answer each line by `answer`, for at most one turn:
    /// frames must not wait for a client that asks without end.
    pub fn serve(&mut self, poll: &Poll, key: u64, mut answer: impl FnMut(&[u8]) -> String) {
        let start = Instant::now();
        if start < self.resume {
            return;
        }
        for _ in 0..MAX_CLIENTS {
            let Ok((stream, _)) = self.listener.accept() else { break };
            let admitted = peer_user(&stream).is_ok_and(|user| user == 0)
                && self.clients.len() < MAX_CLIENTS
                && stream.set_nonblocking(true).is_ok()
                && poll.add(&stream, key).is_ok();
            if admitted {
                self.clients.push(Client::new(stream));
            }
        }
        let mut served = 0;
        for client in &mut self.clients {
            client.read();
            client.answer_lines(&mut answer, start + TURN);
            served += 1;
            if Instant::now() >= start + TURN {
                break;
            }
        }
        // Those who were not served are the first in the next turn.
        self.clients.rotate_left(served);
        self.flush();
        self.resume = Instant::now() + REST_FACTOR * start.elapsed();
    }

    /// Whether requests that have been read wait for the next turn.
    pub fn has_waiting(&self) -> bool {
        self.clients.iter().any(|client| client.waiting)
    }

    /// Whether requests wait because a turn has just ended.
    pub fn is_resting(&self) -> bool {
        Instant::now() < self.resume
    }

    /// Send pending answers; returns whether some remain.
    pub fn flush(&mut self) -> bool {
        for client in &mut self.clients {
            client.write();
        }
        self.clients
            .retain(|client| !(client.closed && !client.waiting && client.output.is_empty()));
        self.clients.iter().any(|client| !client.output.is_empty())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn is_newline(byte: &u8) -> bool {
    *byte == b'\n'
}

impl Client {
    fn new(stream: UnixStream) -> Client {
        let (input, output) = (Vec::new(), VecDeque::new());
        Client { stream, input, searched: 0, waiting: false, output, closed: false }
    }

    /// Read what has arrived, unless lines wait: then the client waits as well.
    fn read(&mut self) {
        let mut chunk = [0; 16384];
        let most = self.input.len() + TURN_BYTES;
        while !self.closed && !self.waiting && self.input.len() < most {
            match self.stream.read(&mut chunk) {
                Ok(0) => self.closed = true,
                Ok(count) => self.input.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.abandon(),
            }
        }
    }

    /// Answer complete lines until `end`, but at least one.
    fn answer_lines(&mut self, answer: &mut impl FnMut(&[u8]) -> String, end: Instant) {
        let mut start = 0;
        let mut in_time = true;
        self.waiting = false;
        while let Some(length) = self.input[start + self.searched..].iter().position(is_newline) {
            if !in_time {
                self.waiting = true;
                break;
            }
            let line_end = start + self.searched + length;
            self.output.extend(answer(&self.input[start..line_end]).into_bytes());
            self.output.push_back(b'\n');
            (start, self.searched) = (line_end + 1, 0);
            in_time = Instant::now() < end;
        }
        self.input.drain(..start);
        if !self.waiting {
            self.searched = self.input.len();
        }
        if self.searched > MAX_LINE_BYTES {
            self.output.extend(b"{\"ok\":false,\"error\":\"a line may be at most 1 MiB\"}\n");
            self.input.clear();
            (self.searched, self.closed) = (0, true);
        }
        if self.output.len() > MAX_UNREAD_BYTES {
            self.abandon();
        }
    }

    fn write(&mut self) {
        while !self.output.is_empty() {
            match self.stream.write(self.output.as_slices().0) {
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
        (self.closed, self.waiting) = (true, false);
        self.input.clear();
        self.searched = 0;
        self.output.clear();
        let _: io::Result<()> = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (UnixStream, Client) {
        let (user, stream) = UnixStream::pair().unwrap();
        stream.set_nonblocking(true).unwrap();
        (user, Client::new(stream))
    }

    #[test]
    fn a_flood_of_requests_takes_one_turn_at_a_time() {
        let (mut user, mut client) = pair();
        user.write_all(&b"ask\n".repeat(1000)).unwrap();
        let mut count = 0;
        for turn in 1..=1000 {
            client.read();
            let mut answer = |line: &[u8]| {
                assert_eq!(line, b"ask");
                count += 1;
                "told".to_string()
            };
            // A turn that has no time left still makes progress.
            client.answer_lines(&mut answer, Instant::now());
            assert_eq!(count, turn);
            assert_eq!(client.waiting, turn < 1000);
        }
        assert_eq!(client.output.len(), 1000 * "told\n".len());
    }

    #[test]
    fn clients_take_turns_and_rest_after_each() {
        let folder = std::env::temp_dir().join(format!("emulator-turns-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let poll = Poll::new().unwrap();
        let mut server = Server::open(&folder.join("socket"), &poll, 1).unwrap();
        let mut users = Vec::new();
        for name in [b"a\n", b"b\n"] {
            let (mut user, client) = pair();
            user.write_all(&name.repeat(4)).unwrap();
            users.push(user);
            server.clients.push(client);
        }
        let mut order = Vec::new();
        for _ in 0..4 {
            let start = Instant::now();
            server.serve(&poll, 1, |line| {
                order.push(line.to_vec());
                let begin = Instant::now();
                while begin.elapsed() < TURN {}
                String::new()
            });
            assert!(server.resume >= start + (1 + REST_FACTOR) * TURN);
            // However long the test itself takes.
            server.resume = Instant::now() + Duration::from_secs(3600);
            assert!(server.is_resting() && server.has_waiting());
            server.serve(&poll, 1, |_| unreachable!());
            server.resume = Instant::now();
        }
        assert_eq!(order, [b"a", b"b", b"a", b"b"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn lines_are_found_in_any_pieces() {
        let (mut user, mut client) = pair();
        let mut lines = Vec::new();
        for byte in b"a\n\nbcd\nef" {
            user.write_all(&[*byte]).unwrap();
            client.read();
            let mut answer = |line: &[u8]| {
                lines.push(line.to_vec());
                String::new()
            };
            client.answer_lines(&mut answer, Instant::now() + TURN);
        }
        assert_eq!(lines, [&b"a"[..], b"", b"bcd"]);
        drop(user);
        client.read();
        assert!(client.closed && !client.waiting);
    }

    #[test]
    fn a_line_without_end_ends_the_connection() {
        let (mut user, mut client) = pair();
        let writer = std::thread::spawn(move || user.write_all(&[b'x'; MAX_LINE_BYTES + 1]));
        while !client.closed {
            client.read();
            client.answer_lines(&mut |_| unreachable!(), Instant::now());
            assert!(client.input.len() <= MAX_LINE_BYTES + 2 * TURN_BYTES);
        }
        assert!(!client.output.is_empty());
        drop(client);
        let _ = writer.join().unwrap();
    }
}
