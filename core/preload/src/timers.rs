//! Timers: descriptors that become readable, those of POSIX, and SIGALRM.
//!
//! The kernel's timers count real time. A thread of this library waits for the virtual time of each
//! timer and then has the kernel's expire at once, or sends the signal.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::{ptr, thread};

use libc::{
    c_int, c_uint, clockid_t, itimerspec, itimerval, pollfd, sigevent, timer_t, ITIMER_REAL,
};

use crate::clock::{clock, set_errno, Clock};
use crate::real;
use crate::units::{from_timespec, from_timeval, to_timespec, to_timeval, SECOND};

/// What a timer does: a timer of the kernel by its descriptor or its address, or SIGALRM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Target {
    Descriptor(c_int),
    Posix(usize),
    Alarm,
}

impl Target {
    /// Have the kernel's timer expire after `ns` of real time, once; 0: never.
    fn set_real(self, ns: u64) -> c_int {
        let once = itimerspec { it_interval: to_timespec(0), it_value: to_timespec(ns) };
        // SAFETY: the value is valid. The kernel refuses what is no timer any more.
        unsafe {
            match self {
                Target::Descriptor(fd) => real::timerfd_settime(fd, 0, &once, ptr::null_mut()),
                Target::Posix(timer) => {
                    real::timer_settime(timer as timer_t, 0, &once, ptr::null_mut())
                }
                Target::Alarm => 0,
            }
        }
    }
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
        // As with the kernel's timers, a child inherits descriptors alone.
        all.get_or_insert_default().retain(|target, _| matches!(target, Target::Descriptor(_)));
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
    target.set_real(1);
    if target == Target::Alarm {
        // SAFETY: it sends a signal to this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGALRM) };
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

/// The clock that each timer was created with, which the kernel does not tell.
static CLOCKS: Mutex<Option<HashMap<Target, clockid_t>>> = Mutex::new(None);

/// Remember the clock of a new timer.
fn created(target: Target, id: clockid_t) {
    if clock().is_some() {
        let mut clocks = CLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
        clocks.get_or_insert_default().insert(target, id);
        drop(clocks);
        timers().as_mut().map(|map| map.remove(&target));
    }
}

fn clock_of(target: Target) -> Option<clockid_t> {
    let clocks = CLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    clocks.as_ref()?.get(&target).copied()
}

/// Arm a timer of the kernel in virtual time; None if it is to be armed in real time.
///
/// # Safety
/// As timer_settime(2).
unsafe fn set_time(
    target: Target,
    is_absolute: bool,
    new: *const itimerspec,
    old: *mut itimerspec,
) -> Option<c_int> {
    // SAFETY: promised by the caller.
    let new = unsafe { new.as_ref() }?;
    let (value, interval) = (from_timespec(&new.it_value)?, from_timespec(&new.it_interval)?);
    let clock = clock()?;
    let base = clock.base(clock_of(target)?)?;
    // An expiration that nobody has read is void, and the timer must exist.
    if target.set_real(0) != 0 {
        return Some(-1);
    }
    let at =
        if is_absolute { value.saturating_sub(base) } else { clock.now().saturating_add(value) };
    let before = set(target, armed(value, interval, at));
    if !old.is_null() {
        // SAFETY: promised by the caller.
        unsafe { *old = as_itimerspec(clock, before) };
    }
    Some(0)
}

/// Say when a timer expires that is armed in virtual time; false if none is.
///
/// # Safety
/// As timer_gettime(2).
unsafe fn get_time(target: Target, current: *mut itimerspec) -> bool {
    let timer = timers().as_ref().and_then(|map| map.get(&target).copied());
    let (Some(clock), Some(timer)) = (clock(), timer) else { return false };
    // SAFETY: promised by the caller.
    unsafe { *current = as_itimerspec(clock, Some(timer)) };
    true
}

/// # Safety
/// As timerfd_create(2).
#[no_mangle]
pub unsafe extern "C" fn timerfd_create(id: clockid_t, flags: c_int) -> c_int {
    // SAFETY: promised by the caller.
    let fd = unsafe { real::timerfd_create(id, flags) };
    if fd >= 0 {
        ANY_DESCRIPTOR.store(clock().is_some(), Ordering::Relaxed);
        created(Target::Descriptor(fd), id);
    }
    fd
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
    let is_absolute = flags & libc::TFD_TIMER_ABSTIME != 0;
    // SAFETY: promised by the caller.
    unsafe {
        set_time(Target::Descriptor(fd), is_absolute, new, old)
            .unwrap_or_else(|| real::timerfd_settime(fd, flags, new, old))
    }
}

/// # Safety
/// As timerfd_gettime(2).
#[no_mangle]
pub unsafe extern "C" fn timerfd_gettime(fd: c_int, current: *mut itimerspec) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        if get_time(Target::Descriptor(fd), current) {
            return 0;
        }
        real::timerfd_gettime(fd, current)
    }
}

/// # Safety
/// As timer_create(2).
#[no_mangle]
pub unsafe extern "C" fn timer_create(
    id: clockid_t,
    event: *mut sigevent,
    timer: *mut timer_t,
) -> c_int {
    // SAFETY: promised by the caller.
    let failed = unsafe { real::timer_create(id, event, timer) };
    if failed == 0 {
        // SAFETY: it has been filled.
        created(Target::Posix(unsafe { *timer } as usize), id);
    }
    failed
}

/// # Safety
/// As timer_settime(2).
#[no_mangle]
pub unsafe extern "C" fn timer_settime(
    timer: timer_t,
    flags: c_int,
    new: *const itimerspec,
    old: *mut itimerspec,
) -> c_int {
    let is_absolute = flags & libc::TIMER_ABSTIME != 0;
    // SAFETY: promised by the caller.
    unsafe {
        set_time(Target::Posix(timer as usize), is_absolute, new, old)
            .unwrap_or_else(|| real::timer_settime(timer, flags, new, old))
    }
}

/// # Safety
/// As timer_gettime(2).
#[no_mangle]
pub unsafe extern "C" fn timer_gettime(timer: timer_t, current: *mut itimerspec) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        if get_time(Target::Posix(timer as usize), current) {
            return 0;
        }
        real::timer_gettime(timer, current)
    }
}

/// # Safety
/// As timer_delete(2).
#[no_mangle]
pub unsafe extern "C" fn timer_delete(timer: timer_t) -> c_int {
    timers().as_mut().map(|map| map.remove(&Target::Posix(timer as usize)));
    // SAFETY: promised by the caller.
    unsafe { real::timer_delete(timer) }
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
