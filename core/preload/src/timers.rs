//! Timers: descriptors that become readable, and SIGALRM.
//!
//! The kernel's timers count real time. A thread of this library waits for the virtual time of each
//! timer and then has the descriptor become readable, or sends the signal.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::{ptr, thread};

use libc::{c_int, c_uint, clockid_t, itimerspec, itimerval, pollfd, ITIMER_REAL};

use crate::clock::{clock, set_errno, Clock};
use crate::real;
use crate::units::{from_timespec, from_timeval, to_timespec, to_timeval, SECOND};

/// What a timer does: a descriptor, or SIGALRM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Target {
    Descriptor(c_int),
    Alarm,
}

/// An armed timer.
#[derive(Clone, Copy, Debug)]
struct Timer {
    /// The virtual time at which it expires.
    at: u64,
    /// It expires again after this; 0: only once.
    interval: u64,
}

impl Timer {
    fn left(&self, clock: &Clock) -> u64 {
        // 0 would mean that it is not armed.
        self.at.saturating_sub(clock.now()).max(1)
    }
}

static TIMERS: Mutex<Option<HashMap<Target, Timer>>> = Mutex::new(None);
static RUNS: AtomicBool = AtomicBool::new(false);
/// This process is a new child, and has not looked at its timers yet.
static FORKED: AtomicBool = AtomicBool::new(false);
static WATCH_FORKS: Once = Once::new();
/// An eventfd that has input when a timer has changed. The waits of the standard library would ask
/// for the time, which is virtual.
static CHANGED: AtomicI32 = AtomicI32::new(-1);
/// Whether there has been any timer descriptor, so that close(2) usually takes no lock.
static ANY_DESCRIPTOR: AtomicBool = AtomicBool::new(false);

fn timers() -> MutexGuard<'static, Option<HashMap<Target, Timer>>> {
    let mut all = TIMERS.lock().unwrap_or_else(PoisonError::into_inner);
    if FORKED.swap(false, Ordering::Relaxed) {
        // As with the kernel's timers, a child inherits descriptors, but no alarm.
        all.get_or_insert_default().remove(&Target::Alarm);
    }
    all
}

/// Arm a timer, or disarm it; returns what it was.
fn set(target: Target, timer: Option<Timer>) -> Option<Timer> {
    let mut all = timers();
    let map = all.get_or_insert_default();
    let before = match timer {
        Some(timer) => map.insert(target, timer),
        None => map.remove(&target),
    };
    drop(all);
    if timer.is_some() && !RUNS.swap(true, Ordering::Relaxed) {
        start();
    }
    let one = 1_u64;
    // SAFETY: the value is valid.
    unsafe { libc::write(CHANGED.load(Ordering::Relaxed), ptr::from_ref(&one).cast(), 8) };
    before
}

/// Start the thread, which takes no signals of the program.
fn start() {
    // SAFETY: both sets are valid.
    unsafe {
        let mut every = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&mut every);
        CHANGED.store(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK), Ordering::Relaxed);
        libc::pthread_sigmask(libc::SIG_SETMASK, &every, &mut before);
        thread::spawn(run);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
    }
    // SAFETY: the function only sets flags.
    WATCH_FORKS.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(forked));
    });
}

/// A child does not have the thread.
extern "C" fn forked() {
    RUNS.store(false, Ordering::Relaxed);
    FORKED.store(true, Ordering::Relaxed);
}

fn run() {
    let Some(clock) = clock() else { return };
    loop {
        let mut all = timers();
        let first = all.iter().flatten().map(|(&target, &timer)| (timer.at, target));
        let first = first.min_by_key(|(at, _)| *at);
        let wait = first.and_then(|(at, _)| clock.wait(at)).map(to_timespec);
        if let (Some((_, target)), None) = (first, wait) {
            expire(&mut all, target);
            continue;
        }
        drop(all);
        let mut changed =
            pollfd { fd: CHANGED.load(Ordering::Relaxed), events: libc::POLLIN, revents: 0 };
        let time = wait.as_ref().map_or(ptr::null(), ptr::from_ref);
        let mut count = 0_u64;
        // SAFETY: the descriptor, the time and the counter are valid.
        unsafe {
            real::ppoll(&mut changed, 1, time, ptr::null());
            real::read(changed.fd, ptr::from_mut(&mut count).cast(), 8);
        }
    }
}

fn expire(all: &mut Option<HashMap<Target, Timer>>, target: Target) {
    let Some(map) = all else { return };
    let Some(timer) = map.remove(&target) else { return };
    if timer.interval > 0 {
        map.insert(target, Timer { at: timer.at + timer.interval, ..timer });
    }
    match target {
        Target::Descriptor(fd) => {
            let once = itimerspec { it_interval: to_timespec(0), it_value: to_timespec(1) };
            // SAFETY: the value is valid. A descriptor that is no timer any more is refused.
            unsafe { real::timerfd_settime(fd, 0, &once, ptr::null_mut()) };
        }
        // SAFETY: it sends a signal to this process.
        Target::Alarm => unsafe {
            libc::kill(libc::getpid(), libc::SIGALRM);
        },
    }
}

/// A descriptor is closed.
pub fn forget(fd: c_int) {
    if ANY_DESCRIPTOR.load(Ordering::Relaxed) {
        if let Some(map) = timers().as_mut() {
            map.remove(&Target::Descriptor(fd));
        }
    }
}

fn armed(value: u64, interval: u64, at: u64) -> Option<Timer> {
    (value > 0).then_some(Timer { at, interval })
}

fn as_itimerspec(clock: &Clock, timer: Option<Timer>) -> itimerspec {
    let (left, interval) = timer.map_or((0, 0), |timer| (timer.left(clock), timer.interval));
    itimerspec { it_interval: to_timespec(interval), it_value: to_timespec(left) }
}

/// By timer descriptor: the clock that it was created with, which the kernel does not tell.
static CLOCKS: Mutex<Option<HashMap<c_int, clockid_t>>> = Mutex::new(None);

/// Remembers the clock.
///
/// # Safety
/// As timerfd_create(2).
#[no_mangle]
pub unsafe extern "C" fn timerfd_create(id: clockid_t, flags: c_int) -> c_int {
    // SAFETY: promised by the caller.
    let fd = unsafe { real::timerfd_create(id, flags) };
    if fd >= 0 && clock().is_some() {
        ANY_DESCRIPTOR.store(true, Ordering::Relaxed);
        let mut clocks = CLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
        clocks.get_or_insert_default().insert(fd, id);
        drop(clocks);
        forget(fd);
    }
    fd
}

fn clock_of(fd: c_int) -> Option<clockid_t> {
    let clocks = CLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    clocks.as_ref()?.get(&fd).copied()
}

/// # Safety
/// As timerfd_settime(2).
#[no_mangle]
pub unsafe extern "C" fn timerfd_settime(
    fd: c_int,
    flags: c_int,
    new: *const itimerspec,
    old: *mut itimerspec,
) -> c_int {
    // SAFETY: promised by the caller.
    let wanted = unsafe { new.as_ref() }
        .and_then(|new| Some((from_timespec(&new.it_value)?, from_timespec(&new.it_interval)?)));
    let virtual_ = clock().and_then(|clock| Some((clock, clock.base(clock_of(fd)?)?, wanted?)));
    let Some((clock, base, (value, interval))) = virtual_ else {
        // SAFETY: promised by the caller.
        return unsafe { real::timerfd_settime(fd, flags, new, old) };
    };
    // An expiration that nobody has read is void, and the descriptor must be a timer.
    let off = itimerspec { it_interval: to_timespec(0), it_value: to_timespec(0) };
    // SAFETY: the value is valid.
    if unsafe { real::timerfd_settime(fd, 0, &off, ptr::null_mut()) } != 0 {
        return -1;
    }
    let absolute = flags & libc::TFD_TIMER_ABSTIME != 0;
    let at = if absolute { value.saturating_sub(base) } else { clock.now().saturating_add(value) };
    let before = set(Target::Descriptor(fd), armed(value, interval, at));
    if !old.is_null() {
        // SAFETY: promised by the caller.
        unsafe { *old = as_itimerspec(clock, before) };
    }
    0
}

/// # Safety
/// As timerfd_gettime(2).
#[no_mangle]
pub unsafe extern "C" fn timerfd_gettime(fd: c_int, current: *mut itimerspec) -> c_int {
    let timer = timers().as_ref().and_then(|map| map.get(&Target::Descriptor(fd)).copied());
    let (Some(clock), Some(timer)) = (clock(), timer) else {
        // SAFETY: promised by the caller.
        return unsafe { real::timerfd_gettime(fd, current) };
    };
    // SAFETY: promised by the caller.
    unsafe { *current = as_itimerspec(clock, Some(timer)) };
    0
}

/// # Safety
/// As setitimer(2).
#[no_mangle]
pub unsafe extern "C" fn setitimer(
    which: c_int,
    new: *const itimerval,
    old: *mut itimerval,
) -> c_int {
    let Some(clock) = clock().filter(|_| which == ITIMER_REAL) else {
        // SAFETY: promised by the caller.
        return unsafe { real::setitimer(which, new, old) };
    };
    // SAFETY: promised by the caller; null disarms it.
    let wanted = unsafe { new.as_ref() }.map_or(Some((0, 0)), |new| {
        Some((from_timeval(&new.it_value)?, from_timeval(&new.it_interval)?))
    });
    let Some((value, interval)) = wanted else {
        set_errno(libc::EINVAL);
        return -1;
    };
    let at = clock.now().saturating_add(value);
    let before = set(Target::Alarm, armed(value, interval, at));
    if !old.is_null() {
        // SAFETY: promised by the caller.
        unsafe { *old = as_itimerval(clock, before) };
    }
    0
}

fn as_itimerval(clock: &Clock, timer: Option<Timer>) -> itimerval {
    let (left, interval) = timer.map_or((0, 0), |timer| (timer.left(clock), timer.interval));
    itimerval {
        it_interval: to_timeval(interval),
        it_value: to_timeval(left.max(1000 * u64::from(left > 0))),
    }
}

/// # Safety
/// As getitimer(2).
#[no_mangle]
pub unsafe extern "C" fn getitimer(which: c_int, current: *mut itimerval) -> c_int {
    let Some(clock) = clock().filter(|_| which == ITIMER_REAL && !current.is_null()) else {
        // SAFETY: promised by the caller.
        return unsafe { real::getitimer(which, current) };
    };
    let timer = timers().as_ref().and_then(|map| map.get(&Target::Alarm).copied());
    // SAFETY: promised by the caller.
    unsafe { *current = as_itimerval(clock, timer) };
    0
}

/// As alarm(2).
#[no_mangle]
pub extern "C" fn alarm(seconds: c_uint) -> c_uint {
    if clock().is_none() {
        // SAFETY: it has no pointers.
        return unsafe { real::alarm(seconds) };
    }
    let none = to_timeval(0);
    let new = itimerval { it_interval: none, it_value: to_timeval(u64::from(seconds) * SECOND) };
    // SAFETY: both values are valid.
    let before = real::filled(|old| unsafe { setitimer(ITIMER_REAL, &new, old) });
    let left = before.and_then(|before| from_timeval(&before.it_value)).unwrap_or(0);
    left.div_ceil(SECOND) as c_uint
}
