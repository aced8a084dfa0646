//! Work on all processors, with results that do not depend on how many there are.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The threads among which work is divided: one for each processor that this process may use.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The results of `work` on each of `count` parts, in their order.
///
/// Each of at most some `threads` takes the next part when it is done with one. What `start`
/// returns belongs to a thread.
///
/// # Panics
/// As `work`.
pub fn by_part<S, T: Send>(
    threads: usize,
    count: usize,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let take = || {
        let (mut own, mut made) = (start(), Vec::new());
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= count {
                return made;
            }
            made.push((part, work(&mut own, part)));
        }
    };
    let mut made = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(count)).map(|_| scope.spawn(take)).collect();
        let mut made = take();
        for other in others {
            made.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        made
    });
    made.sort_unstable_by_key(|&(part, _)| part);
    made.into_iter().map(|(_, made)| made).collect()
}

/// Numbers below `count`, divided among `threads`: as many parts as there are threads, or numbers.
pub fn shares(threads: usize, count: usize) -> Vec<Range<usize>> {
    let parts = threads.min(count).max(1);
    (0..parts).map(|part| count * part / parts..count * (part + 1) / parts).collect()
}

/// Calls `work` for each row of `length` values, with its number, on at most some `threads`.
///
/// # Panics
/// As `work`.
pub fn for_each_row<T: Send>(
    threads: usize,
    all: &mut [T],
    length: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    let length = length.max(1);
    let work = |first: usize, rows: &mut [T]| {
        (first..).zip(rows.chunks_exact_mut(length)).for_each(|(number, row)| work(number, row));
    };
    let of_thread = (all.len() / length).div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        let mut parts = (0..).step_by(of_thread).zip(all.chunks_mut(of_thread * length));
        let own = parts.next();
        for (first, rows) in parts {
            scope.spawn(move || work(first, rows));
        }
        own.into_iter().for_each(|(first, rows)| work(first, rows));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_whatever_the_number_of_threads() {
        for threads in 1..4 {
            for count in [0, 1, 2, 7] {
                let doubled = by_part(threads, count, || 2, |two, part| *two * part);
                assert_eq!(doubled, (0..count).map(|part| 2 * part).collect::<Vec<_>>());
                let shared: Vec<usize> = shares(threads, count).into_iter().flatten().collect();
                assert_eq!(shared, (0..count).collect::<Vec<_>>());
                let mut rows = vec![0; 3 * count];
                for_each_row(threads, &mut rows, 3, |number, row| row.fill(number));
                assert_eq!(rows, (0..3 * count).map(|place| place / 3).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_panic_of_another_thread_is_one_of_the_caller() {
        let both_have_begun = std::sync::Barrier::new(2);
        let caller = std::thread::current().id();
        let result = std::panic::catch_unwind(|| {
            by_part(
                2,
                2,
                || (),
                |(), _| {
                    both_have_begun.wait();
                    assert_eq!(std::thread::current().id(), caller, "another thread");
                },
            )
        });
        let panic = result.expect_err("one of two parts is on another thread");
        assert!(panic.downcast_ref::<String>().is_some_and(|text| text.contains("another thread")));
    }
}
