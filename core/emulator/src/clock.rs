//! The clock: how virtual time follows real time, and what held it back.
//!
//! Virtual time advances with real time, divided by the slow-down. It is held while a frame that is
//! due is still inside Open vSwitch, or while a host that has more to send has not handed it over.
//! Real time that passes meanwhile is lost to virtual time. What a host or the daemon itself took,
//! virtual time catches up, up to [`MAX_LAG`]; not what a switch took, or else the next host that
//! gets a frame would see the time of the switches in its clock. The *stretch* is real over virtual
//! time.

use serde_json::{json, Value};
use switch_model::{Time, MICROSECOND, SECOND};

/// How far virtual time may lag behind real time and still catch up.
const MAX_LAG: Time = 2000 * MICROSECOND;
/// How much of the real time between two calls of [`Clock::elapse`] is own time at most.
const OWN_STEP: Time = 1000 * MICROSECOND;
/// Least real time over which the current stretch is measured.
const WINDOW: Time = SECOND;

/// The reason why virtual time did not advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A frame was still in the switch of this index.
    Switch(usize),
    /// A host had not handed over its next packets.
    Host,
    /// The daemon itself was not scheduled in time, or was too slow.
    Daemon,
}

/// A point in time on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Virtual time.
    pub now: Time,
    /// Real time since the daemon's start.
    pub real: Time,
}

/// Real time that was lost by a cause.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    real: Time,
    longest: Time,
}

impl Lost {
    fn add(&mut self, real: Time) {
        self.real += real;
        self.longest = self.longest.max(real);
    }

    fn as_json(self) -> Value {
        json!({ "ms": milliseconds(self.real), "longest_ms": milliseconds(self.longest) })
    }
}

/// The clock of the emulator.
#[derive(Debug)]
pub struct Clock {
    slow_down: f64,
    max_lag: Time,
    own_step: Time,
    own: Time,
    moment: Moment,
    /// Virtual time that real time permits, but that has not passed.
    lag: Time,
    began: Moment,
    /// The last two boundaries of windows.
    marks: [Moment; 2],
    switches: Vec<Lost>,
    host: Lost,
    daemon: Lost,
}

impl Clock {
    /// Real seconds that a second of virtual time takes at least.
    pub fn slow_down(&self) -> f64 {
        self.slow_down
    }

    /// A clock at 0. A second of virtual time takes at least `slow_down` seconds; the daemon wakes
    /// up after `tick` at the latest.
    pub fn new(slow_down: f64, tick: Time, switches: usize) -> Clock {
        Clock {
            slow_down,
            max_lag: MAX_LAG.max(2 * tick),
            own_step: OWN_STEP.max(2 * tick),
            own: 0,
            moment: Moment::default(),
            lag: 0,
            began: Moment::default(),
            marks: [Moment::default(); 2],
            switches: vec![Lost::default(); switches],
            host: Lost::default(),
            daemon: Lost::default(),
        }
    }

    /// Both clocks.
    pub fn moment(&self) -> Moment {
        self.moment
    }

    /// Real time in which the daemon was there to see what happened, for time limits: of longer
    /// gaps only a part counts, in which others had no processor either.
    pub fn own(&self) -> Time {
        self.own
    }

    /// The virtual time that may be reached now.
    pub fn target(&self) -> Time {
        self.moment.now + self.lag
    }

    /// The virtual time that the next call of [`Clock::elapse`] permits at most, unless it is idle.
    pub fn reached_at_most(&self) -> Time {
        self.moment.now + self.max_lag
    }

    /// Real time has advanced. `held` is what has held virtual time since the last call, None if
    /// nothing has; `idle` is whether no frame was in the network, so that all of it may pass.
    pub fn elapse(&mut self, real: Time, held: Option<Cause>, idle: bool) {
        let elapsed = real.saturating_sub(self.moment.real);
        self.moment.real += elapsed;
        self.own += elapsed.min(self.own_step);
        let cause = match held {
            Some(Cause::Switch(switch)) => return self.switches[switch].add(elapsed),
            Some(Cause::Host) => &mut self.host,
            Some(Cause::Daemon) | None => &mut self.daemon,
        };
        self.lag += (elapsed as f64 / self.slow_down) as Time;
        if idle || self.lag <= self.max_lag {
            return;
        }
        cause.add(((self.lag - self.max_lag) as f64 * self.slow_down) as Time);
        self.lag = self.max_lag;
    }

    /// Virtual time has reached `now`, at most [`Clock::target`].
    pub fn reach(&mut self, now: Time) {
        self.lag -= now - self.moment.now;
        self.moment.now = now;
        if self.moment.real - self.marks[1].real >= WINDOW {
            self.marks = [self.marks[1], self.moment];
        }
    }

    /// Real time until virtual time may reach `at`, in picoseconds.
    pub fn until(&self, at: Time) -> Time {
        (at.saturating_sub(self.target()) as f64 * self.slow_down) as Time
    }

    /// Set the statistics to zero; both clocks continue.
    pub fn reset(&mut self) {
        self.began = self.moment;
        self.marks = [self.moment; 2];
        self.switches.fill(Lost::default());
        (self.host, self.daemon) = (Lost::default(), Lost::default());
    }

    /// Virtual time since the last reset.
    pub fn since_reset(&self) -> Time {
        self.moment.now - self.began.now
    }

    /// Real over virtual time, since the last reset and over the last one to two seconds; None if
    /// virtual time has stood still.
    pub fn stretch(&self) -> (Option<f64>, Option<f64>) {
        let since = |mark: Moment| {
            let (real, now) = (self.moment.real - mark.real, self.moment.now - mark.now);
            (now > 0).then(|| (real as f64 / now as f64 * 1000.0).round() / 1000.0)
        };
        (since(self.began), since(self.marks[0]))
    }

    /// Stretch, holds and the slowest switch, with `names` of all switches, for `status`.
    pub fn report(&self, names: &[String]) -> Value {
        let (since_reset, window) = self.stretch();
        let switch = self.switches.iter().fold(Lost::default(), |sum, one| Lost {
            real: sum.real + one.real,
            longest: sum.longest.max(one.longest),
        });
        let slowest = self.switches.iter().zip(names).max_by_key(|(lost, _)| lost.real);
        let slowest = slowest
            .filter(|(lost, _)| lost.real > 0)
            .map(|(lost, name)| json!({ "switch": name, "ms": milliseconds(lost.real) }));
        json!({
            "stretch": since_reset,
            "stretch_now": window,
            "slow_down": self.slow_down,
            "holds": {
                "switch": switch.as_json(),
                "host": self.host.as_json(),
                "daemon": self.daemon.as_json(),
            },
            "slowest_switch": slowest,
        })
    }
}

fn milliseconds(time: Time) -> f64 {
    (time / MICROSECOND) as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Time = 1000 * MICROSECOND;

    fn clock(slow_down: f64) -> Clock {
        Clock::new(slow_down, 0, 2)
    }

    #[test]
    fn follows_real_time_divided_by_the_slow_down() {
        let mut clock = clock(4.0);
        for ms in 1..=100 {
            clock.elapse(ms * MS, None, false);
            clock.reach(clock.target());
        }
        assert_eq!(clock.moment(), Moment { now: 25 * MS, real: 100 * MS });
        assert_eq!(clock.stretch(), (Some(4.0), Some(4.0)));
    }

    #[test]
    fn a_hold_is_lost_by_its_cause_but_for_what_can_be_caught_up() {
        let mut clock = clock(1.0);
        for ms in 1..=11 {
            clock.elapse(ms * MS, Some(Cause::Host), false);
        }
        assert_eq!(clock.target(), 2 * MS);
        clock.reach(clock.target());
        clock.elapse(14 * MS, Some(Cause::Daemon), false);
        clock.elapse(15 * MS, None, false);
        let report = clock.report(&["s1".into(), "s2".into()]);
        assert_eq!(report["holds"]["host"], json!({ "ms": 9.0, "longest_ms": 1.0 }));
        assert_eq!(report["holds"]["daemon"]["ms"], 2.0);
        assert_eq!(report["stretch"], 7.5);
    }

    #[test]
    fn no_host_sees_the_time_that_a_switch_took() {
        let mut clock = clock(1.0);
        clock.elapse(MS, None, false);
        clock.reach(clock.target());
        for ms in 2..=11 {
            clock.elapse(ms * MS, Some(Cause::Switch(1)), false);
        }
        clock.elapse(12 * MS, None, true);
        clock.reach(clock.target());
        assert_eq!(clock.moment(), Moment { now: 2 * MS, real: 12 * MS });
        let report = clock.report(&["s1".into(), "s2".into()]);
        assert_eq!(report["holds"]["switch"], json!({ "ms": 10.0, "longest_ms": 1.0 }));
        assert_eq!(report["slowest_switch"], json!({ "switch": "s2", "ms": 10.0 }));
    }

    #[test]
    fn no_program_is_told_a_time_that_a_late_daemon_does_not_reach() {
        let mut clock = clock(4.0);
        clock.elapse(3 * MS, None, false);
        clock.reach(clock.target() / 2);
        let most = clock.reached_at_most();
        clock.elapse(SECOND, None, false);
        assert_eq!(clock.target(), most);
    }

    #[test]
    fn of_a_gap_a_part_is_own_time() {
        let mut clock = clock(1.0);
        for ms in 1..=50 {
            clock.elapse(ms * MS, None, false);
        }
        clock.elapse(5 * SECOND, None, false);
        assert_eq!((clock.own(), clock.moment().real), (51 * MS, 5 * SECOND));
    }

    #[test]
    fn nothing_is_lost_while_the_network_is_idle() {
        let mut clock = clock(1.0);
        clock.elapse(SECOND, None, true);
        clock.reach(clock.target());
        assert_eq!(clock.stretch().0, Some(1.0));
    }

    #[test]
    fn a_reset_starts_new_statistics_and_no_new_time() {
        let mut clock = clock(1.0);
        clock.elapse(10 * MS, Some(Cause::Host), false);
        clock.reach(clock.target());
        clock.reset();
        assert_eq!(clock.stretch(), (None, None));
        clock.elapse(11 * MS, None, false);
        clock.reach(clock.target());
        assert_eq!(clock.stretch().0, Some(1.0));
        assert_eq!(clock.moment().now, 3 * MS);
    }
}
