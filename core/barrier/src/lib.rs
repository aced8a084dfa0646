//! Barriers: nobody leaves before everybody has entered.
//!
//! An [`Algorithm`] is written down as one [`Program`] for each process: stages, each of which
//! sends something and then waits for somebody. A [`Process`] runs a program again and again,
//! one barrier after the other, and makes it safe against frames that are lost, duplicated or
//! overtaken, and against processes that die.
//!
//! The crate has no clock and does no I/O. Whoever drives a [`Process`] tells it what comes in
//! and what time it is, and sends what it wants sent: over a real network interface, over a
//! simulated fabric, or over the hostile network of the tests; the barrier is the same.
//!
//! # Lost messages
//!
//! No message is acknowledged. Every message carries the *colour* of its barrier, its number. A
//! process that waits in one barrier can only be met by messages of that barrier and of the
//! next: nobody can be further ahead, for to leave a barrier everybody must have entered it. So
//! whoever misses a message asks for it, and whoever has sent it knows from the colour alone that
//! it may say it again. Nothing is stored to be sent again, and without losses a barrier
//! costs no message more. (Two colours would do if no frame outlived a barrier; 32 bits make
//! duplicates harmless that turn up any number of barriers later.)
//!
//! References: Iwasaki, Matsuoka, Sakae, Ogawa (algorithms with multicast release, colouring);
//! Koibuchi, Watanabe, Otsuka, Jouraku, Amano (visiting lists); Hensgen, Finkel, Manber, Two
//! algorithms for barrier synchronization, 1988 (dissemination).
#![forbid(unsafe_code)]

mod algorithms;
mod message;
mod process;
mod program;
mod rankset;
mod timing;
mod visiting;

pub use algorithms::{programs, Algorithm, MAX_SIZE};
pub use message::{DecodeError, Message};
pub use process::{Counters, Post, Process, Refused, State};
pub use program::{Destination, Program, Send, Stage};
pub use timing::Timing;
pub use visiting::{random_order, VisitingTree};

/// The number of a process in its barrier, from 0. Process 0 is the master.
pub type Rank = usize;

/// A point in time or a duration in nanoseconds, from any zero.
pub type Time = u64;

/// What is wrong with what a barrier was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(pub(crate) String);

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
