//! Errors of an endpoint, each one line.

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
    /// Nothing happened in time.
    #[error("nothing happened within {0} us")]
    TimedOut(u64),
}
