//! Receive buffers and the messages in them.

use std::collections::VecDeque;

use crate::config::Config;
use crate::message::{Message, MessageKind};

/// Received messages that the program has not taken, and buffers for those being received.
#[derive(Debug)]
pub struct Inbox {
    ready: VecDeque<Message>,
    operations: VecDeque<Message>,
    posted: usize,
    used_bytes: usize,
    limit_bytes: usize,
    longest_bytes: usize,
    repost: bool,
}

/// A buffer in use for a message of `total` bytes. It must be returned to its inbox, not dropped.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Buffer {
    total: usize,
}

impl Buffer {
    /// Whether it was claimed for a message of this length.
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
        }
    }

    /// Whether a message of this length can ever be received.
    pub fn admits(&self, total: usize) -> bool {
        total <= self.longest_bytes
    }

    /// Claim a posted buffer for a message of `total` bytes; None when there is no buffer or no
    /// room.
    pub fn claim(&mut self, total: usize) -> Option<Buffer> {
        if self.posted == 0 || total > self.limit_bytes - self.used_bytes || !self.admits(total) {
            return None;
        }
        self.posted -= 1;
        self.used_bytes += total;
        Some(Buffer { total })
    }

    /// Return a buffer whose message will not be completed.
    pub fn abandon(&mut self, buffer: Buffer) {
        self.posted += 1;
        self.used_bytes -= buffer.total;
    }

    /// The message in this buffer is complete.
    pub fn complete(&mut self, _buffer: Buffer, message: Message) {
        match message.kind {
            MessageKind::Operation => self.operations.push_back(message),
            MessageKind::Plain | MessageKind::Tagged => self.ready.push_back(message),
        }
    }

    /// Remove and return the oldest message for which `wanted` is true.
    pub fn take(&mut self, wanted: impl Fn(&Message) -> bool) -> Option<Message> {
        let place = self.ready.iter().position(wanted)?;
        let message = self.ready.remove(place)?;
        self.used_bytes -= message.data.len();
        self.posted += usize::from(self.repost);
        Some(message)
    }

    /// Remove and return the oldest operation. Its buffer is posted again, because the program
    /// never sees it.
    pub fn take_operation(&mut self) -> Option<Message> {
        let message = self.operations.pop_front()?;
        self.used_bytes -= message.data.len();
        self.posted += 1;
        Some(message)
    }

    /// Post `count` more buffers.
    pub fn post(&mut self, count: usize) {
        self.posted = self.posted.saturating_add(count);
    }

    /// Whether a message waits to be taken.
    pub fn has_message(&self) -> bool {
        !self.ready.is_empty()
    }
}
