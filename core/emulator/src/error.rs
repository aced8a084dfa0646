//! Errors that a user or a client of the control socket sees, each one line.

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is invalid.
    #[error("{0}")]
    Config(String),
    /// A namespace, interface, socket or privilege is missing.
    #[error("{0}")]
    Environment(String),
    /// A request on the control socket cannot be carried out.
    #[error("{0}")]
    Request(String),
}

/// Put `subject` in front of an error of the system.
pub fn environment<T>(
    result: std::io::Result<T>,
    subject: impl FnOnce() -> String,
) -> Result<T, Error> {
    result.map_err(|error| Error::Environment(format!("{}: {error}", subject())))
}
