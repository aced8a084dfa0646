//! The functions of the C library behind those of this library.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{
    c_int, c_long, c_uint, c_void, clockid_t, epoll_event, itimerspec, itimerval, msghdr, nfds_t,
    pollfd, pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, sem_t, sigevent, sigset_t, size_t,
    sockaddr, socklen_t, ssize_t, timer_t, timespec,
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
    fn pthread_mutex_clocklock(
        mutex: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec,
    ) -> c_int;
    fn pthread_rwlock_clockrdlock(
        lock: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec,
    ) -> c_int;
    fn pthread_rwlock_clockwrlock(
        lock: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec,
    ) -> c_int;
    fn timer_create(clock: clockid_t, event: *mut sigevent, timer: *mut timer_t) -> c_int;
    fn timer_settime(
        timer: timer_t, flags: c_int, new: *const itimerspec, old: *mut itimerspec,
    ) -> c_int;
    fn timer_gettime(timer: timer_t, current: *mut itimerspec) -> c_int;
    fn timer_delete(timer: timer_t) -> c_int;
}

/// A value that the C library fills.
pub fn filled<T>(fill: impl FnOnce(*mut T) -> c_int) -> Option<T> {
    let mut value = MaybeUninit::uninit();
    let filled = fill(value.as_mut_ptr()) == 0;
    // SAFETY: the C library says that it has filled it.
    filled.then(|| unsafe { value.assume_init() })
}

/// As syscall(2), without the C library: allocators call it before they can allocate, and a search
/// for the next function of this name may allocate.
///
/// # Safety
/// As the system call.
pub unsafe fn kernel(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
    let result: c_long;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: promised by the caller; the registers are those of the kernel's interface.
    unsafe {
        std::arch::asm!(
            "syscall", inlateout("rax") number => result, in("rdi") a, in("rsi") b, in("rdx") c,
            in("r10") d, in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _,
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!(
            "svc 0", in("x8") number, inlateout("x0") a => result, in("x1") b, in("x2") c,
            in("x3") d, in("x4") e, in("x5") f,
        );
    }
    if (-4095..0).contains(&result) {
        // SAFETY: the address is that of this thread's errno.
        unsafe { *libc::__errno_location() = -result as c_int };
        return -1;
    }
    result
}
