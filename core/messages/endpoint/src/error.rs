//! Errors of an endpoint, each one line.

use crate::address::Address;
use crate::message::Failure;

/// What a caller did wrong, or what the system refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A setting.
    #[error("{0}")]
    Config(String),
    /// The arguments of a call.
    #[error("{0}")]
    Argument(String),
    /// Every send descriptor is in use: complete some first.
    #[error("all {0} send descriptors are in use: wait until a message is complete")]
    Full(usize),
    /// The operation that failed, and the reason that the system gave.
    #[error("{0}")]
    System(String),
    /// Messages for which no acknowledgement came.
    #[error(
        "messages that were not delivered: {count}, the first to {to}: {reason}: is there a process \
        with this port on a host with this MAC?"
    )]
    Undelivered {
        /// How many.
        count: usize,
        /// The destination of the first.
        to: Address,
        /// Why that one was not delivered.
        reason: Failure,
    },
    /// Nothing happened in time.
    #[error("nothing happened within {0} us")]
    TimedOut(u64),
}
