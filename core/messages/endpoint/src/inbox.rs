//! Receive buffers and the messages in them.
//!
//! An incomplete message is charged for what has arrived of it, never for the length that its first
//! frame announces. So that incomplete messages cannot keep each other from ever being completed,
//! the oldest one of a stream has the rest of its length reserved, and the others leave room for
//! one of the longest messages.

use std::collections::{BTreeMap, VecDeque};

use crate::config::Config;
use crate::message::{Message, MessageKind};

/// Received messages that the program has not taken, and the memory of those being received.
#[derive(Debug)]
pub struct Inbox {
    ready: VecDeque<Message>,
    operations: VecDeque<Message>,
    posted: usize,
    used_bytes: usize,
    limit_bytes: usize,
    longest_bytes: usize,
    repost: bool,
    /// What is missing of each incomplete message of a stream, oldest first.
    missing: BTreeMap<u64, usize>,
    next_number: u64,
    /// Bytes of incomplete datagrams.
    datagram_bytes: usize,
    /// Whether there may be more room than before.
    freed: bool,
}

/// The memory of an incomplete message. It must be returned to its inbox, not dropped.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Buffer {
    total: usize,
    used_bytes: usize,
    /// Number among the incomplete messages of streams; None for a datagram.
    number: Option<u64>,
}

impl Buffer {
    /// Whether it is for a message of this length.
    pub fn is_for(&self, total: usize) -> bool {
        self.total == total
    }
}

impl Inbox {
    /// An inbox with the buffers that the configuration posts.
    pub fn new(config: &Config) -> Inbox {
        Inbox {
            ready: VecDeque::new(),
            operations: VecDeque::new(),
            posted: config.receive_buffers,
            used_bytes: 0,
            limit_bytes: config.inbox_bytes,
            longest_bytes: config.longest_message_bytes,
            repost: config.repost,
            missing: BTreeMap::new(),
            next_number: 0,
            datagram_bytes: 0,
            freed: false,
        }
    }

    /// Whether a message of this length can ever be received.
    pub fn admits(&self, total: usize) -> bool {
        total <= self.longest_bytes
    }

    /// Whether a buffer is posted, which a message needs to be completed.
    pub fn has_buffer(&self) -> bool {
        self.posted > 0
    }

    /// Whether a message of this length, complete in one frame, can be received now.
    pub fn takes(&self, total: usize) -> bool {
        self.has_buffer() && self.admits(total) && total <= self.room()
    }

    /// Bytes that are neither used nor reserved for the oldest incomplete message.
    fn room(&self) -> usize {
        let reserved = self.missing.first_key_value().map_or(0, |(_, missing)| *missing);
        self.limit_bytes.saturating_sub(self.used_bytes + reserved)
    }

    /// Begin to receive a message of a stream; `total` must be admitted.
    pub fn begin(&mut self, total: usize) -> Buffer {
        let number = self.next_number;
        self.next_number += 1;
        self.missing.insert(number, total);
        Buffer { total, used_bytes: 0, number: Some(number) }
    }

    /// Begin to receive a datagram; `total` must be admitted.
    pub fn begin_datagram(&mut self, total: usize) -> Buffer {
        Buffer { total, used_bytes: 0, number: None }
    }

    /// Charge `bytes` more to an incomplete message; returns false if there is no room for them.
    pub fn grow(&mut self, buffer: &mut Buffer, bytes: usize) -> bool {
        let oldest = self.missing.first_key_value().map(|(number, _)| *number);
        let fits = match buffer.number {
            None => {
                let most = self.longest_bytes.max(self.limit_bytes / 2);
                bytes <= self.room() && self.datagram_bytes + bytes <= most
            }
            number if number == oldest => self.used_bytes + bytes <= self.limit_bytes,
            _ => self.used_bytes + bytes + self.longest_bytes <= self.limit_bytes,
        };
        if !fits {
            return false;
        }
        match buffer.number.and_then(|number| self.missing.get_mut(&number)) {
            Some(missing) => *missing = missing.saturating_sub(bytes),
            None => self.datagram_bytes += bytes,
        }
        buffer.used_bytes += bytes;
        self.used_bytes += bytes;
        true
    }

    /// An incomplete message will not be completed.
    pub fn abandon(&mut self, buffer: Buffer) {
        match buffer.number {
            Some(number) => drop(self.missing.remove(&number)),
            None => self.datagram_bytes -= buffer.used_bytes,
        }
        self.used_bytes -= buffer.used_bytes;
        self.freed |= buffer.used_bytes > 0;
    }

    /// An incomplete message is complete. The caller has checked [`Inbox::has_buffer`].
    pub fn complete(&mut self, buffer: Buffer, message: Message) {
        self.abandon(buffer);
        self.deliver(message);
    }

    /// A message has arrived. The caller has checked [`Inbox::takes`].
    pub fn deliver(&mut self, message: Message) {
        self.posted = self.posted.saturating_sub(1);
        self.used_bytes += message.data.len();
        match message.kind {
            MessageKind::Operation => self.operations.push_back(message),
            MessageKind::Plain | MessageKind::Tagged => self.ready.push_back(message),
        }
    }

    /// Remove and return the oldest message for which `wanted` is true.
    pub fn take(&mut self, wanted: impl Fn(&Message) -> bool) -> Option<Message> {
        let place = self.ready.iter().position(wanted)?;
        let message = self.ready.remove(place)?;
        self.taken(&message, self.repost);
        Some(message)
    }

    /// Remove and return the oldest operation. Its buffer is posted again, because the program
    /// never sees it.
    pub fn take_operation(&mut self) -> Option<Message> {
        let message = self.operations.pop_front()?;
        self.taken(&message, true);
        Some(message)
    }

    fn taken(&mut self, message: &Message, repost: bool) {
        self.used_bytes -= message.data.len();
        self.posted += usize::from(repost);
        self.freed = true;
    }

    /// Post `count` more buffers.
    pub fn post(&mut self, count: usize) {
        self.posted = self.posted.saturating_add(count);
        self.freed = true;
    }

    /// Whether a message waits to be taken.
    pub fn has_message(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether there may be more room than at the last call.
    pub fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.freed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_messages_are_charged_for_what_has_arrived() {
        let config = Config { longest_message_bytes: 1000, inbox_bytes: 3100, ..Config::default() };
        let mut inbox = Inbox::new(&config);
        let mut buffers: Vec<Buffer> = (0..10).map(|_| inbox.begin(1000)).collect();
        buffers.extend((0..10).map(|_| inbox.begin_datagram(1000)));
        assert!(buffers.iter_mut().all(|buffer| inbox.grow(buffer, 100)));
        // Only the oldest message of a stream has the 900 bytes reserved that are missing.
        assert!(inbox.takes(200) && !inbox.takes(201));
        buffers.into_iter().for_each(|buffer| inbox.abandon(buffer));
        assert!(inbox.takes(1000));
        assert_eq!(inbox.used_bytes, 0);
    }
}
