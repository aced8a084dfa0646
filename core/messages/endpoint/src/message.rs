//! Messages and their delivery.

use crate::address::Address;

/// Whether delivery of a message is confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliability {
    /// Sent once. A lost message stays lost, and one that the network duplicates arrives twice.
    None,
    /// Acknowledged and sent again if lost; without duplicates; in order among such messages to one
    /// peer.
    Acknowledged,
}

/// Which part of the receiver a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MessageKind {
    /// The program, which receives messages in the order of their arrival.
    Plain = 0,
    /// The program, which receives messages by sender and tag (isend and irecv).
    Tagged = 1,
    /// An operation on memory or a lock of the receiver, or the answer to one.
    Operation = 2,
}

/// Why a message could not be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Nothing was received from the peer for [`Config::give_up`](crate::config::Config::give_up).
    #[error("peer lost")]
    PeerLost,
    /// The peer does not know the stream: another process has taken its port.
    #[error("peer restarted")]
    PeerRestarted,
}

/// The number of a posted message.
pub type SendId = u64;

/// The end of a posted message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Its number.
    pub id: SendId,
    /// Its destination.
    pub to: Address,
    /// Whether it was sent or, if reliable, acknowledged; or why not.
    pub result: Result<(), Failure>,
}

/// A message that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The sender.
    pub from: Address,
    /// The destination: this endpoint, or a group that it has joined.
    pub to: Address,
    /// Whether it was acknowledged.
    pub reliability: Reliability,
    /// Which part of the receiver it is for.
    pub kind: MessageKind,
    /// Its bytes.
    pub data: Vec<u8>,
}
