//! A barrier for threads that wait for each other after each some ten microseconds.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// How often a thread looks whether all others have come before it lets other threads run.
const SPINS: u32 = 2000;

/// All threads wait until the last one has come.
#[derive(Debug)]
pub(crate) struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    /// How often all have come.
    rounds: AtomicUsize,
    is_broken: AtomicBool,
}

impl Barrier {
    pub fn new(threads: usize) -> Barrier {
        Barrier {
            threads,
            arrived: AtomicUsize::new(0),
            rounds: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
        }
    }

    /// Wait for all others.
    ///
    /// # Panics
    /// If another thread has panicked.
    pub fn wait(&self) {
        let round = self.rounds.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.rounds.store(round.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut spins = 0;
        while self.rounds.load(Ordering::Acquire) == round {
            assert!(!self.is_broken.load(Ordering::Relaxed), "another part has panicked");
            spins += 1;
            if spins < SPINS {
                spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }
}

/// Breaks a barrier if its thread panics, so that the others do not wait for ever.
pub(crate) struct Guard<'a>(pub &'a Barrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.is_broken.store(true, Ordering::Relaxed);
        }
    }
}
