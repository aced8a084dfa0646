//! What programs read of what the emulator has written.

use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use proptest::prelude::*;
use virtual_clock::{Moment, Reader, Writer, NO_LIMIT, SILENCE_NS};

const START: u64 = 1_000_000_000;

fn path(test: &str) -> PathBuf {
    std::env::temp_dir().join(format!("virtual-clock-{}-{test}", std::process::id()))
}

fn pair(test: &str, slow_down: f64) -> (Writer, Reader) {
    let path = path(test);
    let writer = Writer::create(&path, START, slow_down).unwrap();
    let reader = Reader::open(&path).unwrap();
    (writer, reader)
}

fn moment(real: u64, virtual_: u64) -> Moment {
    Moment { real: START + real, virtual_ }
}

#[test]
fn time_advances_up_to_the_limit() {
    let (mut writer, reader) = pair("limit", 4.0);
    writer.publish(moment(1000, 500), 700);
    assert_eq!(reader.start(), START);
    assert_eq!(reader.now(START + 1000), 500);
    assert_eq!(reader.now(START + 1400), 600);
    assert_eq!(reader.now(START + 100_000), 700);
    writer.publish(moment(200_000, 700), NO_LIMIT);
    assert_eq!(reader.now(START + 240_000), 10_700);
    assert_eq!(reader.least_real(100), 400);
}

#[test]
fn while_it_is_held_time_stands_where_it_was_or_at_its_limit() {
    let (mut writer, reader) = pair("held", 4.0);
    writer.publish(moment(1000, 500), 700);
    writer.hold(START + 1400);
    assert_eq!(reader.now(START + 1400), 600);
    assert_eq!(reader.now(START + 100_000), 600);
    writer.hold(START + 100_000);
    assert_eq!(reader.now(START + 200_000), 600);
    writer.publish(moment(200_000, 700), 800);
    writer.hold(START + 300_000);
    assert_eq!(reader.now(START + 300_000), 800);
}

#[test]
fn time_goes_on_when_the_emulator_has_ended() {
    let (mut writer, reader) = pair("ended", 50.0);
    writer.publish(moment(1000, 500), 600);
    assert_eq!(reader.now(START + 2 * SILENCE_NS), 600);
    drop(writer);
    assert_eq!(reader.now(START + 1000 + SILENCE_NS), 600);
    assert_eq!(reader.now(START + 1000 + SILENCE_NS + 1000), 1500);
}

#[test]
fn no_reader_can_keep_time_from_going_on() {
    let (mut writer, reader) = pair("foreign", 50.0);
    writer.publish(moment(1000, 500), 600);
    // As any user may do who can read it.
    let path = path("foreign");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o444);
    let foreign = std::fs::File::open(&path).unwrap();
    foreign.lock().unwrap();
    let lock = |kind: libc::c_int| {
        // SAFETY: all bytes zero are a lock of the whole file.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as libc::c_short;
        // SAFETY: the descriptor is open, and the kernel only reads the lock.
        unsafe { libc::fcntl(foreign.as_raw_fd(), libc::F_OFD_SETLK, &lock) }
    };
    assert_eq!(lock(libc::F_RDLCK), -1, "the emulator has it");
    assert_eq!(reader.now(START + 2 * SILENCE_NS), 600);
    drop(writer);
    assert_eq!(lock(libc::F_RDLCK), 0);
    assert_eq!(lock(libc::F_WRLCK), -1, "it may not be written");
    assert_eq!(reader.now(START + 1000 + SILENCE_NS + 1000), 1500);
}

#[test]
fn a_past_time_lies_between_its_moments() {
    let (mut writer, reader) = pair("past", 1.0);
    for tenth in 1..=1000 {
        writer.publish(moment(tenth * 100_000, tenth * 10_000), NO_LIMIT);
    }
    assert_eq!(reader.at(START + 99_950_000), 9_995_000);
    assert_eq!(reader.at(START + 100_000_100), 10_000_100);
    // Older than what is kept: the oldest moment.
    assert_eq!(reader.at(START), (1000 - 127) * 10_000);
}

#[test]
fn a_file_of_another_kind_is_refused() {
    let path = path("other");
    std::fs::write(&path, [0; 4096]).unwrap();
    assert!(Reader::open(&path).is_err());
    std::fs::write(&path, "short").unwrap();
    assert!(Reader::open(&path).is_err());
    std::fs::remove_file(&path).unwrap();
    assert!(Reader::open(&path).is_err());
}

#[test]
fn readers_see_no_half_written_moment() {
    let path = path("torn");
    let mut writer = Writer::create(&path, 0, 1.0).unwrap();
    let reader = Reader::open(&path).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for now in 1..200_000 {
                writer.publish(Moment { real: now * 1000, virtual_: now * 1000 }, now * 1000);
            }
        });
        let mut before = 0;
        for _ in 0..200_000 {
            let now = reader.now(0);
            assert!(now >= before && now.is_multiple_of(1000), "{before} then {now}");
            before = now;
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn past_times_are_monotonic(steps in prop::collection::vec((0u64..500_000, 0u64..500_000), 1..300)) {
        let (mut writer, reader) = pair("monotonic", 1.0);
        let (mut real, mut virtual_) = (0, 0);
        for (longer, further) in steps {
            (real, virtual_) = (real + longer, virtual_ + further.min(longer));
            writer.publish(moment(real, virtual_), NO_LIMIT);
        }
        let mut before = 0;
        for at in (0..=real).step_by((real / 100).max(1) as usize) {
            let now = reader.at(START + at);
            prop_assert!(now >= before);
            before = now;
        }
    }
}
