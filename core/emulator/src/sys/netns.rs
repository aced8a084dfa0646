//! Running code inside a network namespace.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};

/// Run `work` in the namespace at `path` on a thread of its own, so that the rest of the process
/// stays in its own namespace. Sockets opened there remain usable everywhere.
///
/// # Errors
/// The namespace cannot be opened or entered; the error names it.
pub fn inside<T: Send>(path: &Path, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let context =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let namespace = File::open(path).map_err(context)?;
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        });
        match worker.join() {
            Ok(result) => result.map_err(context),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
