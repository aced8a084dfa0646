//! The clock of this process.

use std::ffi::{c_int, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

use libc::{clockid_t, timespec};
use virtual_clock::Reader;

use crate::real;
use crate::units::{from_timespec, SECOND};

/// The environment variable with the path of the clock page.
const VARIABLE: &std::ffi::CStr = c"KNOTLESS_CLOCK";
/// A wait in real time is at least this long: the limit of virtual time may not let it advance.
const LEAST_WAIT: u64 = 100_000;
/// And at most this long: the emulator may end meanwhile.
const LONGEST_WAIT: u64 = SECOND;

/// Two clocks are compared this often.
const ATTEMPTS: u32 = 8;

/// The clocks that follow virtual time. All others, such as those of CPU time, are real.
const CLOCKS: [clockid_t; 7] = [
    libc::CLOCK_MONOTONIC,
    libc::CLOCK_REALTIME,
    libc::CLOCK_MONOTONIC_RAW,
    libc::CLOCK_REALTIME_COARSE,
    libc::CLOCK_MONOTONIC_COARSE,
    libc::CLOCK_BOOTTIME,
    libc::CLOCK_TAI,
];

/// Virtual time, for one process.
pub struct Clock {
    reader: Reader,
    /// By place in [`CLOCKS`]: its time at virtual time 0.
    bases: [u64; CLOCKS.len()],
    /// The latest time that this process has seen: time never goes back.
    latest: AtomicU64,
}

static CLOCK: OnceLock<Option<Clock>> = OnceLock::new();

/// The clock; None outside of virtual time.
pub fn clock() -> Option<&'static Clock> {
    // Not `get_or_init`: signal handlers come here, and so do the constructors of other libraries.
    CLOCK.get()?.as_ref()
}

extern "C" fn open() {
    CLOCK.get_or_init(Clock::open);
}

/// Runs when the library is loaded, before the program.
#[used]
#[link_section = ".init_array"]
static OPEN: extern "C" fn() = open;

/// The real time of a clock.
pub fn real_time(id: clockid_t) -> u64 {
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid.
    unsafe { real::clock_gettime(id, &mut time) };
    from_timespec(&time).unwrap_or(0)
}

/// How far a clock is ahead of CLOCK_MONOTONIC, from the attempt with the least delay in between.
fn ahead(id: clockid_t) -> i64 {
    if id == libc::CLOCK_MONOTONIC {
        return 0;
    }
    let attempt = |_| {
        let before = real_time(libc::CLOCK_MONOTONIC);
        let time = real_time(id);
        let after = real_time(libc::CLOCK_MONOTONIC);
        (after - before, time as i64 - (before + (after - before) / 2) as i64)
    };
    (0..ATTEMPTS).map(attempt).min().map_or(0, |(_, ahead)| ahead)
}

impl Clock {
    fn open() -> Option<Clock> {
        // SAFETY: no other thread exists yet that could change the environment.
        let path = unsafe { libc::getenv(VARIABLE.as_ptr()) };
        if path.is_null() {
            return None;
        }
        // SAFETY: the value is a string that ends with a zero byte.
        let path = OsStr::from_bytes(unsafe { std::ffi::CStr::from_ptr(path) }.to_bytes());
        let reader = Reader::open(Path::new(path)).ok()?;
        let bases = CLOCKS.map(|id| reader.start().saturating_add_signed(ahead(id)));
        Some(Clock { reader, bases, latest: AtomicU64::new(0) })
    }

    /// Virtual time.
    pub fn now(&self) -> u64 {
        let now = self.reader.now(real_time(libc::CLOCK_MONOTONIC));
        self.latest.fetch_max(now, Ordering::Relaxed).max(now)
    }

    /// Time of a clock at virtual time 0; None for a clock that is not virtual.
    pub fn base(&self, id: clockid_t) -> Option<u64> {
        CLOCKS.iter().position(|&clock| clock == id).map(|place| self.bases[place])
    }

    /// Virtual time at which the kernel's CLOCK_REALTIME was `ns`, which is in the past.
    pub fn at_realtime(&self, ns: u64) -> u64 {
        let base = self.base(libc::CLOCK_REALTIME).unwrap_or(0);
        self.reader.at(ns.saturating_sub(base) + self.reader.start())
    }

    /// How long to wait in real time until `deadline` may have come; None if it has come.
    pub fn wait(&self, deadline: u64) -> Option<u64> {
        let left = deadline.saturating_sub(self.now());
        (left > 0).then(|| self.reader.least_real(left).clamp(LEAST_WAIT, LONGEST_WAIT))
    }
}

pub fn set_errno(error: c_int) {
    // SAFETY: the address is that of this thread's errno.
    unsafe { *libc::__errno_location() = error };
}

pub fn errno() -> c_int {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() }
}
