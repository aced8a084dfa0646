//! The functions of the C library behind those of this library.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{
    c_int, c_uint, c_void, clockid_t, epoll_event, itimerspec, itimerval, msghdr, nfds_t, pollfd,
    pthread_cond_t, pthread_mutex_t, sem_t, sigset_t, size_t, sockaddr, socklen_t, ssize_t,
    timespec,
};

/// A function of the next library that has its name.
struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Next {
        Next { name, found: AtomicPtr::new(ptr::null_mut()) }
    }

    fn get(&self) -> *mut c_void {
        let known = self.found.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the name ends with a zero byte.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if found.is_null() {
            // SAFETY: it ends the process. Without the function the program cannot go on.
            unsafe { libc::abort() };
        }
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

macro_rules! real {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty;)*) => { $(
        /// The C library's function of this name.
        ///
        /// # Safety
        /// As for that function.
        pub unsafe fn $name($($argument: $type),*) -> $result {
            // SAFETY: the literal ends with its only zero byte.
            const NAME: &CStr = unsafe {
                CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes())
            };
            static NEXT: Next = Next::new(NAME);
            // SAFETY: the C library declares the function with this type.
            let function = unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> $result>(
                    NEXT.get(),
                )
            };
            // SAFETY: promised by the caller.
            unsafe { function($($argument),*) }
        }
    )* };
}

real! {
    fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int;
    fn clock_nanosleep(
        clock: clockid_t, flags: c_int, time: *const timespec, left: *mut timespec,
    ) -> c_int;
    fn ppoll(
        fds: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t,
    ) -> c_int;
    fn pselect(
        count: c_int, read: *mut libc::fd_set, write: *mut libc::fd_set, other: *mut libc::fd_set,
        timeout: *const timespec, mask: *const sigset_t,
    ) -> c_int;
    fn epoll_pwait(
        epoll: c_int, events: *mut epoll_event, most: c_int, timeout: c_int, mask: *const sigset_t,
    ) -> c_int;
    fn timerfd_create(clock: clockid_t, flags: c_int) -> c_int;
    fn timerfd_settime(
        fd: c_int, flags: c_int, new: *const itimerspec, old: *mut itimerspec,
    ) -> c_int;
    fn timerfd_gettime(fd: c_int, current: *mut itimerspec) -> c_int;
    fn setitimer(which: c_int, new: *const itimerval, old: *mut itimerval) -> c_int;
    fn getitimer(which: c_int, current: *mut itimerval) -> c_int;
    fn alarm(seconds: c_uint) -> c_uint;
    fn setsockopt(
        fd: c_int, level: c_int, name: c_int, value: *const c_void, length: socklen_t,
    ) -> c_int;
    fn getsockopt(
        fd: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut socklen_t,
    ) -> c_int;
    fn recv(fd: c_int, buffer: *mut c_void, length: size_t, flags: c_int) -> ssize_t;
    fn recvfrom(
        fd: c_int, buffer: *mut c_void, length: size_t, flags: c_int, from: *mut sockaddr,
        from_length: *mut socklen_t,
    ) -> ssize_t;
    fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t;
    fn read(fd: c_int, buffer: *mut c_void, length: size_t) -> ssize_t;
    fn close(fd: c_int) -> c_int;
    fn pthread_cond_clockwait(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t,
        until: *const timespec,
    ) -> c_int;
    fn sem_clockwait(semaphore: *mut sem_t, clock: clockid_t, until: *const timespec) -> c_int;
}

/// A value that the C library fills.
pub fn filled<T>(fill: impl FnOnce(*mut T) -> c_int) -> Option<T> {
    let mut value = MaybeUninit::uninit();
    let filled = fill(value.as_mut_ptr()) == 0;
    // SAFETY: the C library says that it has filled it.
    filled.then(|| unsafe { value.assume_init() })
}
