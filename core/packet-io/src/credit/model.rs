//! Interleavings of programs that claim credit while the emulator grants it.

use std::sync::atomic::Ordering;

use loom::sync::atomic::AtomicU64;
use loom::sync::Arc;

use super::{claim, SharedCounter};

impl SharedCounter for AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }

    fn exchange(&self, old: u64, new: u64, set: Ordering, get: Ordering) -> Result<u64, u64> {
        self.compare_exchange_weak(old, new, set, get)
    }
}

/// Two programs claim, while the emulator grants more; `first` is where both counters start.
fn check(first: u64) {
    let mut model = loom::model::Builder::new();
    // Every interleaving would take minutes.
    model.preemption_bound = Some(2);
    model.check(move || {
        let counters = Arc::new((AtomicU64::new(first.wrapping_add(3)), AtomicU64::new(first)));
        let program = |bytes: u64| {
            let counters = Arc::clone(&counters);
            loom::thread::spawn(move || {
                let (granted, claimed) = &*counters;
                u64::from(claim(granted, claimed, bytes)) * bytes
            })
        };
        let programs = [program(2), program(3)];
        let (granted, claimed) = &*counters;
        let end = first.wrapping_add(6);
        granted.store(end, Ordering::Release);
        // Never more than is granted by then.
        let so_far = claimed.load(Ordering::Acquire).wrapping_sub(first);
        assert!(so_far <= 6, "{so_far} bytes claimed of 6");
        let sent: u64 = programs.map(|program| program.join().unwrap()).iter().sum();
        assert_eq!(claimed.load(Ordering::Acquire).wrapping_sub(first), sent);
        assert!(sent <= 6, "{sent} bytes sent of 6 granted");
        // Whoever was refused finds what is left.
        let left = 6 - sent;
        assert!(!claim(granted, claimed, left + 1));
        assert!(claim(granted, claimed, left));
    });
}

#[test]
fn programs_never_send_more_than_is_granted() {
    check(0);
}

#[test]
fn counters_that_wrap_make_no_difference() {
    check(u64::MAX - 3);
}
