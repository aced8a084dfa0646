//! Unmodified programs in virtual time: `LD_PRELOAD=libknotless_virtual_time.so`.
//!
//! The environment variable `KNOTLESS_CLOCK` names the clock page of a link emulator, see
//! [`virtual_clock`]. Without it, or without that page, everything here does what the C library
//! does.
//!
//! | module | functions |
//! |---|---|
//! | [`clocks`] | `clock_gettime gettimeofday time timespec_get` |
//! | [`sleeps`] | `nanosleep clock_nanosleep usleep sleep` |
//! | [`waits`] | `poll ppoll select pselect epoll_wait epoll_pwait epoll_pwait2` |
//! | [`timers`] | `timerfd_settime timerfd_gettime timer_create timer_settime timer_gettime timer_delete
//! setitimer getitimer alarm` |
//! | [`sockets`] | `SO_RCVTIMEO`, time stamps of packets |
//! | [`locks`] | the functions of mutexes, read-write locks, condition variables and semaphores that
//! end in `timedlock clocklock timedrdlock clockrdlock timedwrlock clockwrlock timedwait clockwait`;
//! `syscall` for futexes |
//!
//! A wait until a virtual time is a series of waits in real time, each as long as it takes at
//! least. What stays in real time: docs/virtual-clock.md.

mod clock;
mod clocks;
mod locks;
mod real;
mod sleeps;
mod sockets;
mod timers;
mod timestamps;
mod units;
mod waits;
