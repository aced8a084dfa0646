//! Barriers: no process leaves before all have entered.
//!
//! An [`Algorithm`] is expressed as one [`Program`] for each process: stages, each of which sends
//! messages and then waits for messages of other processes. A [`Process`] runs a program
//! repeatedly, once for each barrier, and tolerates frames that are lost, duplicated or reordered,
//! and processes that die.
//!
//! The crate has no clock and does no I/O. The driver of a [`Process`] passes received messages and
//! the time, and sends the messages that the process returns. The same code runs over a network
//! interface, over a simulated fabric, and over the faulty network of the tests.
//!
//! # Lost messages
//!
//! No message is acknowledged. Every message carries the *colour* of its barrier, which is its
//! number. A process that waits in one barrier receives messages of that barrier and of the next
//! only: no process can be further ahead, because all must have entered a barrier before one leaves
//! it. A process that misses a message therefore asks for it, and its sender knows from the colour
//! alone that it may repeat it. Nothing is stored for retransmission, and without losses a barrier
//! costs no additional message. (Two colours would suffice if no frame outlived a barrier; with 32
//! bits, duplicates that arrive any number of barriers later are harmless.)
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

/// An invalid request for a barrier; one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub(crate) String);
