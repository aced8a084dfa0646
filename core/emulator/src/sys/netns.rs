//! Doing something inside a network namespace.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use super::check;

/// Run `work` in the namespace at `path` on a thread of its own, so that the rest of the process
/// stays where it is. Sockets opened there keep working from anywhere.
///
/// # Errors
/// When the namespace cannot be opened or entered; the error says which.
pub fn inside<T: Send>(path: &Path, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let context =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let namespace = File::open(path).map_err(context)?;
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            // SAFETY: setns() takes a live descriptor and changes only this thread, which ends here.
            check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })?;
            Ok(work())
        });
        match worker.join() {
            Ok(result) => result.map_err(context),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
