//! Virtual time for programs: a page of shared memory that the link emulator writes and programs
//! read.
//!
//! The page has the last moments (real time, virtual time), the slow-down, and a *limit*: the time
//! of the next event in the fabric. From the last moment on, virtual time advances with real time
//! divided by the slow-down, but not beyond the limit, since that event may come late. So a program
//! never sees a time at which it should already have got a frame. While the emulator takes frames
//! and hands them over, virtual time stands still, so that a program neither sends before the time
//! that it has seen nor gets a frame before the frame's time.
//!
//! The emulator locks the file, which all may read. If it has ended, time goes on at the speed of
//! real time, so that no program sleeps for ever.
//!
//! All times are in nanoseconds: real times of CLOCK_MONOTONIC, virtual times since the emulator's
//! start.

mod lock;
mod page;
mod reader;
mod writer;

pub use page::Moment;
pub use reader::Reader;
pub use writer::Writer;

/// After this real time without a moment a reader looks whether the emulator still runs.
pub const SILENCE_NS: u64 = 3_000_000_000;
/// No event is due.
pub const NO_LIMIT: u64 = u64::MAX;
