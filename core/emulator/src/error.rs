//! The mistakes that a user or a client can make, each one line.

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration makes no sense.
    #[error("{0}")]
    Config(String),
    /// Something outside is not as it should be: namespace, interface, socket, privileges.
    #[error("{0}")]
    Environment(String),
    /// A request on the control socket cannot be met.
    #[error("{0}")]
    Request(String),
}

/// Add what was being done to an error of the system.
pub fn environment<T>(
    result: std::io::Result<T>,
    doing: impl FnOnce() -> String,
) -> Result<T, Error> {
    result.map_err(|error| Error::Environment(format!("{}: {error}", doing())))
}
