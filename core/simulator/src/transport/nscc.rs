//! NSCC, the network-signalled congestion control of Ultra Ethernet (Ultra Ethernet Specification
//! 1.0): a window of bytes that may be under way, which each acknowledged packet changes by its mark
//! and its queueing delay, the round-trip time less that without queues.
//!
//! | | delay below the target | delay at the target or above |
//! |---|---|---|
//! | not marked | proportional increase | fair increase |
//! | marked | nothing | multiplicative decrease |
//!
//! With a round-trip time `R` without queues, a target `T`, a line of rate `C`, full packets of `M`
//! bytes, and `a = C R / (100 Gbit/s 12 us)`:
//!
//! - **Fair increase**: by `5 a M` in a round trip.
//! - **Proportional increase**: by `4 a M (T / 12 us) (1 - delay / T)` in a round trip. When the
//!   delay was below 1 us for a whole window, by `a / 4` of what is acknowledged (fast increase).
//! - **In each round trip** by `0.15 a M` as well.
//! - **Multiplicative decrease**, at most once in a round trip, if the mean delay `D` is above the
//!   target: by the factor `1 - 0.8 (D - T) / D`, at least one half. `D` moves by 1/80 of the
//!   difference with each packet; a packet without a mark and with a delay above the target counts
//!   as `R / 4`.
//! - **Quick adapt**: if, in a time of `R + T`, less than an eighth of the largest window has
//!   arrived, and a packet was lost or had a delay above `4 T`, the window becomes what has arrived.
//!   Marks are ignored then until what was under way has been acknowledged.
//! - **A lost packet** takes its bytes from the window otherwise.
//! - The window is at least a packet, and at most `1.5 C R`, which it is at first. Increases are
//!   added up, and applied when eight packets are acknowledged, or after a round trip.
//!
//! The structure is that of the specification; the numbers and the order of the steps are those of
//! its public simulator (`csg-htsim`, `uec.cpp`). All bytes are of the line, headers and gaps
//! included.

use serde::Deserialize;
use switch_model::{Time, MICROSECOND, SECOND};

use super::control::{Acknowledged, Control, Controlled, Path};
use super::settings::optional_time;
use crate::error::Error;

/// The bytes under way on the line for which parameters are published: 100 Gbit/s and 12 us.
const PUBLISHED_BYTES: f64 = 150_000.0;
const PUBLISHED_ROUND_TRIP: Time = 12 * MICROSECOND;
/// A delay below this is none.
const NO_DELAY: Time = MICROSECOND;
/// The share of acknowledged bytes by which a window increases without delays, before scaling.
const FAST_SHARE: f64 = 0.25;
/// Increases are applied when so many packets are acknowledged.
const ADJUST_PACKETS: f64 = 8.0;
/// The least factor of a decrease.
const LEAST_FACTOR: f64 = 0.5;
/// What a delay above the target counts without a mark, of a round trip.
const UNMARKED_SHARE: f64 = 0.25;
/// Quick adapt: delays above so many targets.
const LATE_TARGETS: u64 = 4;

/// NSCC, the network-signalled congestion control of Ultra Ethernet. Increases are in
/// packets for each round trip, for 100 Gbit/s and a round trip of 12 us; they are scaled to the
/// line of the host and the path.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nscc {
    /// The time of a round trip without queues; None: that of a full packet and its answer on the
    /// path on which the queue pair begins.
    #[serde(rename = "rtt_us", deserialize_with = "optional_time")]
    pub round_trip: Option<Time>,
    /// The target of the queueing delay; None: a round trip.
    #[serde(rename = "target_us", deserialize_with = "optional_time")]
    pub target: Option<Time>,
    /// Fair increase; published: 5.
    pub fair: f64,
    /// Proportional increase; published: 4.
    pub proportional: f64,
    /// What is added in any case; published: 0.15.
    pub constant: f64,
    /// How strong a decrease is, over 0 to 1; published: 0.8.
    pub gamma: f64,
    /// The gain of the mean delay, over 0 to 1; published: 0.0125.
    pub delay_gain: f64,
    /// Quick adapt acts if less of the largest window has arrived, 0 to 1; published: 1/8.
    pub low_share: f64,
    /// The largest window, of what is on the line in a round trip; published: 1.5.
    pub largest: f64,
}

impl Control for Nscc {
    fn check(&self) -> Result<(), Error> {
        let amounts = [self.fair, self.proportional, self.constant, self.low_share];
        let is_amount = |amount: &f64| amount.is_finite() && *amount >= 0.0;
        let is_gain = |gain: f64| gain > 0.0 && gain <= 1.0;
        let times = [self.round_trip, self.target];
        match () {
            () if times.contains(&Some(0)) => Err(Error::new("nscc: times must be over 0")),
            () if !amounts.iter().all(is_amount) || self.low_share > 1.0 => {
                Err(Error::new("nscc: increases must be 0 or more, and the low share at most 1"))
            }
            () if !is_gain(self.gamma) || !is_gain(self.delay_gain) => {
                Err(Error::new("nscc: gamma and the gain must be over 0 and at most 1"))
            }
            () if !(self.largest.is_finite() && self.largest > 0.0) => {
                Err(Error::new("nscc: the largest window must be over 0"))
            }
            () => Ok(()),
        }
    }

    fn needs_answers(&self) -> bool {
        true
    }

    fn sender(&self, path: &Path<'_>) -> Box<dyn Controlled> {
        let round_trip = (path.round_trip)();
        Box::new(CongestionWindow::new(self, path.line_bps, round_trip, path.packet_bytes))
    }
}

/// The window of one queue pair. Increases in a round trip, and windows, are in bytes.
#[derive(Clone, Debug)]
struct CongestionWindow {
    settings: Nscc,
    round_trip: Time,
    target: Time,
    packet: f64,
    largest: f64,
    fair: f64,
    proportional: f64,
    constant: f64,
    fast_share: f64,
    window: f64,
    mean_delay: f64,
    decreased_at: Time,
    /// Increases that are not applied yet, times the window, and what was acknowledged meanwhile.
    increases: f64,
    acknowledged: f64,
    adjusted_at: Time,
    /// Bytes acknowledged without a delay since the last packet that had one.
    undelayed: f64,
    is_fast: bool,
    /// Quick adapt: the end of its time, and what has arrived since its beginning.
    period_end: Option<Time>,
    achieved: f64,
    /// It is to act at the end of this time.
    has_lost: bool,
    /// Bytes that are to be acknowledged before marks count again.
    ignored: f64,
}

impl CongestionWindow {
    /// That of a sender on a line of that rate, on a path with that time of a round trip without
    /// queues, with packets of so many bytes.
    pub fn new(settings: &Nscc, line_bps: u64, path: Time, packet_bytes: u32) -> CongestionWindow {
        let round_trip = settings.round_trip.unwrap_or(path);
        let target = settings.target.unwrap_or(round_trip);
        let packet = f64::from(packet_bytes);
        let on_line = line_bps as f64 * round_trip as f64 / (8.0 * SECOND as f64);
        let scale = on_line / PUBLISHED_BYTES;
        let largest = (settings.largest * on_line).max(packet);
        CongestionWindow {
            settings: *settings,
            round_trip,
            target,
            packet,
            largest,
            fair: settings.fair * scale * packet,
            proportional: settings.proportional * scale * packet * target as f64
                / PUBLISHED_ROUND_TRIP as f64,
            constant: settings.constant * scale * packet,
            fast_share: FAST_SHARE * scale,
            window: largest,
            mean_delay: 0.0,
            decreased_at: 0,
            increases: 0.0,
            acknowledged: 0.0,
            adjusted_at: 0,
            undelayed: 0.0,
            is_fast: false,
            period_end: None,
            achieved: 0.0,
            has_lost: false,
            ignored: 0.0,
        }
    }

    /// Whether the window is that of quick adapt, which nothing else is to change now.
    fn quick_adapt(&mut self, at: Time, is_marked: bool, is_bad: bool, in_flight: u64) -> bool {
        let mut acts = is_marked && self.ignored > 0.0;
        if !acts && self.period_end.is_none_or(|end| at > end) {
            let is_low = self.achieved < self.settings.low_share * self.largest;
            if self.period_end.is_some() && (self.has_lost || is_bad) && is_low {
                self.window = self.achieved.max(self.packet);
                self.ignored = in_flight as f64;
                self.has_lost = false;
                acts = true;
            }
            self.achieved = 0.0;
            self.period_end = Some(at.saturating_add(self.round_trip + self.target));
        }
        if acts {
            self.increases = 0.0;
            self.acknowledged = 0.0;
        }
        acts
    }

    fn increase(&mut self, bytes: f64, delay: Time) {
        if delay < NO_DELAY {
            self.undelayed += bytes;
            self.is_fast |= self.undelayed > self.window;
        } else {
            self.undelayed = 0.0;
            self.is_fast = false;
        }
        if self.is_fast {
            self.window += self.fast_share * bytes;
        } else {
            self.increases += self.proportional * (1.0 - delay as f64 / self.target as f64) * bytes;
        }
    }

    fn decrease(&mut self, at: Time) {
        self.undelayed = 0.0;
        self.is_fast = false;
        let excess = self.mean_delay - self.target as f64;
        if excess > 0.0 && at.saturating_sub(self.decreased_at) > self.round_trip {
            let factor = 1.0 - self.settings.gamma * excess / self.mean_delay;
            self.window *= factor.max(LEAST_FACTOR);
            self.decreased_at = at;
        }
    }

    /// Apply the increases; a round trip has passed since the last time, or more, if it `is_due`.
    fn adjust(&mut self, at: Time, is_due: bool) {
        self.window += self.increases / self.window;
        if is_due {
            self.window += self.constant;
            self.adjusted_at = at;
        }
        self.increases = 0.0;
        self.acknowledged = 0.0;
        self.bound();
    }

    fn bound(&mut self) {
        self.window = self.window.clamp(self.packet, self.largest);
    }
}

impl Controlled for CongestionWindow {
    fn most_packets(&self) -> Option<u32> {
        Some((self.largest / self.packet) as u32)
    }

    fn permits(&self, in_flight: u64) -> bool {
        in_flight as f64 + self.packet <= self.window
    }

    fn acknowledged(&mut self, at: Time, answer: Acknowledged) {
        let Acknowledged { bytes, round_trip, is_marked, in_flight } = answer;
        let bytes = bytes as f64;
        self.achieved += bytes;
        self.acknowledged += bytes;
        self.ignored = (self.ignored - bytes).max(0.0);
        let Some(round_trip) = round_trip else { return };
        let delay = round_trip.saturating_sub(self.round_trip);
        let is_late = delay >= self.target;
        let counted = match is_marked || delay <= self.target {
            true => delay as f64,
            false => UNMARKED_SHARE * self.round_trip as f64,
        };
        self.mean_delay += self.settings.delay_gain * (counted - self.mean_delay);
        if self.quick_adapt(at, is_marked, delay > LATE_TARGETS * self.target, in_flight) {
            return;
        }
        match (is_marked, is_late) {
            (false, true) => self.increases += self.fair * bytes,
            (false, false) => self.increase(bytes, delay),
            (true, true) => self.decrease(at),
            (true, false) => {}
        }
        self.bound();
        let is_due = at.saturating_sub(self.adjusted_at) > self.round_trip;
        if is_due || self.acknowledged > ADJUST_PACKETS * self.packet {
            self.adjust(at, is_due);
        }
    }

    fn lost(&mut self, at: Time, bytes: u64, in_flight: u64) {
        self.has_lost = true;
        if !self.quick_adapt(at, true, true, in_flight) {
            self.window -= bytes as f64;
            self.bound();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE_BPS: u64 = 100_000_000_000;
    /// With these, nothing is scaled, and a packet has bytes that are easy to count.
    const ROUND_TRIP: Time = 12 * MICROSECOND;
    const PACKET: u32 = 1500;

    fn settings() -> Nscc {
        Nscc {
            round_trip: None,
            target: None,
            fair: 5.0,
            proportional: 4.0,
            constant: 0.0,
            gamma: 0.8,
            delay_gain: 1.0,
            low_share: 0.125,
            largest: 1.5,
        }
    }

    fn window(settings: &Nscc) -> CongestionWindow {
        CongestionWindow::new(settings, LINE_BPS, ROUND_TRIP, PACKET)
    }

    /// A packet is acknowledged with that delay, with so many others under way.
    fn answer(delay: Time, is_marked: bool, in_flight: u64) -> Acknowledged {
        let round_trip = Some(ROUND_TRIP + delay);
        Acknowledged { bytes: PACKET.into(), round_trip, is_marked, in_flight }
    }

    /// What a round trip with such answers changes, in packets; it begins with this window.
    fn change(settings: &Nscc, packets: u32, delay: Time, is_marked: bool) -> f64 {
        let mut window = window(settings);
        window.window = f64::from(packets * PACKET);
        let before = window.window;
        for number in 1..=packets {
            let at = Time::from(number) * ROUND_TRIP / Time::from(packets);
            window.acknowledged(at, answer(delay, is_marked, u64::MAX));
        }
        window.adjust(ROUND_TRIP, true);
        (window.window - before) / f64::from(PACKET)
    }

    #[test]
    fn a_window_is_at_first_one_and_a_half_of_what_the_line_holds() {
        let mut window = window(&settings());
        assert_eq!((window.window, window.most_packets()), (225_000.0, Some(150)));
        assert!(window.permits(225_000 - 1500) && !window.permits(225_000 - 1499));
        window.lost(0, 1_000_000, 0);
        assert!(window.permits(0) && !window.permits(1), "at least a packet");
    }

    #[test]
    fn increases_of_a_round_trip_are_those_that_are_published_whatever_the_window() {
        let close = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.05;
        for packets in [10, 40, 80] {
            let fair = change(&settings(), packets, ROUND_TRIP, false);
            assert!(close(fair, 5.0), "{packets}: {fair}");
            for (delay, share) in [(2, 10.0 / 12.0), (6, 0.5), (9, 0.25)] {
                let found = change(&settings(), packets, delay * MICROSECOND, false);
                assert!(close(found, 4.0 * share), "{packets}, {delay} us: {found}");
            }
            let steady = Nscc { constant: 0.15, fair: 0.0, ..settings() };
            assert!(close(change(&steady, packets, ROUND_TRIP, false), 0.15));
        }
        // Twice as much on the line: increases are twice as large, and twice that with the target.
        let longer = Nscc { round_trip: Some(2 * ROUND_TRIP), ..settings() };
        assert_eq!(window(&longer).fair, 2.0 * window(&settings()).fair);
        assert_eq!(window(&longer).proportional, 4.0 * window(&settings()).proportional);
    }

    #[test]
    fn marks_decrease_only_with_a_delay_and_once_in_a_round_trip() {
        assert_eq!(change(&settings(), 40, 11 * MICROSECOND, true), 0.0);
        let mut window = window(&settings());
        window.window = 60_000.0;
        let after = |window: &mut CongestionWindow, at: Time, targets: Time| {
            window.acknowledged(at * MICROSECOND, answer(targets * ROUND_TRIP, true, 0));
            window.window
        };
        // A delay of two targets: by 0.8 / 2.
        assert_eq!(after(&mut window, 13, 2), 36_000.0);
        assert_eq!(after(&mut window, 20, 2), 36_000.0);
        assert_eq!(
            after(&mut window, 26, 4),
            18_000.0,
            "0.8 3 / 4 is more than the most, one half"
        );
    }

    #[test]
    fn an_unmarked_packet_with_a_delay_tells_that_congestion_is_going_down() {
        let mut window = window(&settings());
        window.acknowledged(1, answer(3 * ROUND_TRIP, false, 0));
        assert_eq!(window.mean_delay, 0.25 * ROUND_TRIP as f64);
        window.acknowledged(2, answer(3 * ROUND_TRIP, true, 0));
        assert_eq!(window.mean_delay, 3.0 * ROUND_TRIP as f64);
    }

    #[test]
    fn without_delays_for_a_window_it_increases_fast() {
        let mut window = window(&settings());
        window.window = 15_000.0;
        for number in 1..=10 {
            window.acknowledged(number, answer(0, false, 0));
        }
        // Four packets in a round trip, of which nine packets of ten are applied.
        assert!(!window.is_fast && window.window < 15_000.0 + 4.0 * 1500.0);
        for number in 11..=29 {
            window.acknowledged(number, answer(0, false, 0));
        }
        assert!(window.is_fast);
        for number in 30..=40 {
            let before = window.window;
            window.acknowledged(number, answer(0, false, 0));
            assert_eq!(window.window - before, 0.25 * 1500.0);
        }
        window.acknowledged(41, answer(MICROSECOND, false, 0));
        assert!(!window.is_fast);
    }

    #[test]
    fn quick_adapt_takes_what_has_arrived_and_ignores_marks_until_that_is_acknowledged() {
        let mut window = window(&settings());
        let late = |at: Time| (at * MICROSECOND, answer(5 * ROUND_TRIP, true, 6000));
        // Its time begins with the first answer, and ends 24 us later.
        window.acknowledged(late(1).0, answer(0, false, 0));
        for at in [10, 20] {
            window.acknowledged(at * MICROSECOND, answer(0, false, 0));
        }
        window.acknowledged(late(26).0, late(26).1);
        assert_eq!(window.window, 4500.0);
        // 6000 bytes were under way.
        for at in 27..30 {
            window.acknowledged(late(at).0, late(at).1);
            assert_eq!(window.window, 4500.0);
        }
        window.acknowledged(late(40).0, late(40).1);
        assert_eq!(window.window, 2250.0, "a mark counts again");
    }

    #[test]
    fn a_lost_packet_takes_its_bytes_from_the_window() {
        let mut window = window(&settings());
        window.lost(MICROSECOND, 1500, 100_000);
        assert_eq!(window.window, 225_000.0 - 1500.0);
        // After a time in which little has arrived, the window is that.
        window.lost(26 * MICROSECOND, 1500, 3000);
        assert_eq!(window.window, 1500.0);
    }
}
