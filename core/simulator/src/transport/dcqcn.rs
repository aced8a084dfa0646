//! The reaction point of DCQCN: how a sender changes its rate (Zhu et al.: Congestion Control for
//! Large-Scale RDMA Deployments, SIGCOMM 2015, section 3.1).
//!
//! With a target rate `R_T`, a current rate `R_C` and an estimate of congestion `alpha`, at first 1:
//!
//! - A notification (CNP) sets `R_T = R_C`, `R_C = R_C (1 - alpha / 2)` and
//!   `alpha = (1 - g) alpha + g`, and restarts timers, byte counter and the counts of both.
//! - Each time without a notification for `alpha_interval` sets `alpha = (1 - g) alpha`.
//! - Each time that the increase timer or the byte counter expires, `R_C = (R_T + R_C) / 2`. Let `T`
//!   and `B` be how often they have. With `max(T, B) < F` that is all (fast recovery). Otherwise
//!   `R_T` grows before: by `R_HAI (min(T, B) - F)` with `min(T, B) > F` (hyper increase), else by
//!   `R_AI` (additive increase).
//! - When `R_C` has reached the rate of the line, the sender is not limited until the next
//!   notification.
//!
//! Timers need no events: what they have done is computed when the rate is needed. Rates and bytes
//! are of the line, headers and gaps included.

use serde::Deserialize;
use switch_model::{Time, SECOND};

use super::control::{Control, Controlled, Path};
use super::settings::{optional_rate, time};
use crate::error::Error;

/// The rate of the line for which parameters are published.
const PUBLISHED_BPS: f64 = 40e9;
const PUBLISHED_BYTES: f64 = 10e6;
const PUBLISHED_ADDITIVE_BPS: f64 = 40e6;
const PUBLISHED_HYPER_BPS: f64 = 200e6;
const PUBLISHED_LEAST_BPS: f64 = 100e6;
/// An estimate of congestion that changes nothing any more.
const NEGLIGIBLE: f64 = 1e-12;

/// DCQCN (Zhu et al.: Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015). What is
/// None is the published value for a line of 40 Gbit/s, scaled to the line of the host.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Dcqcn {
    /// The gain of the estimate of congestion, over 0 to 1.
    pub g: f64,
    /// A receiver sends at most one notification for a queue pair in this time.
    #[serde(rename = "cnp_us", deserialize_with = "time")]
    pub cnp_interval: Time,
    /// Without notifications, the estimate of congestion decays after each such time.
    #[serde(rename = "alpha_us", deserialize_with = "time")]
    pub alpha_interval: Time,
    /// The sender increases its rate after each such time,
    #[serde(rename = "timer_us", deserialize_with = "time")]
    pub increase_interval: Time,
    /// and after each so many bytes on the line; published: 10 MB.
    #[serde(rename = "counter_bytes")]
    pub increase_bytes: Option<f64>,
    /// Increases of fast recovery, before the target rate increases.
    #[serde(rename = "steps")]
    pub fast_recovery: u32,
    /// Additive increase of the target rate; published: 40 Mbit/s.
    #[serde(rename = "rai_mbps", deserialize_with = "optional_rate")]
    pub additive_bps: Option<f64>,
    /// Hyper increase of the target rate; of the authors' simulator: 200 Mbit/s.
    #[serde(rename = "rhai_mbps", deserialize_with = "optional_rate")]
    pub hyper_bps: Option<f64>,
    /// The lowest rate; of the authors' simulator: 100 Mbit/s.
    #[serde(rename = "min_mbps", deserialize_with = "optional_rate")]
    pub least_bps: Option<f64>,
}

impl Control for Dcqcn {
    fn check(&self) -> Result<(), Error> {
        let intervals = [self.cnp_interval, self.alpha_interval, self.increase_interval];
        let amounts = [self.increase_bytes, self.additive_bps, self.hyper_bps, self.least_bps];
        let is_positive = |amount: &f64| amount.is_finite() && *amount > 0.0;
        match () {
            () if !(self.g > 0.0 && self.g <= 1.0) => {
                Err(Error::new("dcqcn: g must be over 0 and at most 1"))
            }
            () if intervals.contains(&0) || self.fast_recovery == 0 => {
                Err(Error::new("dcqcn: intervals and steps of fast recovery must be over 0"))
            }
            () if !amounts.iter().flatten().all(is_positive) => {
                Err(Error::new("dcqcn: rates and bytes must be over 0"))
            }
            () => Ok(()),
        }
    }

    fn notification_interval(&self) -> Option<Time> {
        Some(self.cnp_interval)
    }

    fn sender(&self, path: &Path<'_>) -> Box<dyn Controlled> {
        Box::new(RateLimiter::new(self, path.line_bps))
    }
}

/// The rate of one queue pair.
#[derive(Clone, Debug)]
struct RateLimiter {
    settings: Dcqcn,
    line_bps: f64,
    increase_bytes: f64,
    additive_bps: f64,
    hyper_bps: f64,
    least_bps: f64,
    current_bps: f64,
    target_bps: f64,
    alpha: f64,
    /// The rate is below that of the line.
    limited: bool,
    alpha_due: Time,
    increase_due: Time,
    bytes_left: f64,
    /// How often timer and byte counter have expired since the last notification.
    timer_count: u32,
    byte_count: u32,
}

impl RateLimiter {
    /// A sender on a line of that rate, which sends as fast as it.
    pub fn new(settings: &Dcqcn, line_bps: u64) -> RateLimiter {
        let line_bps = line_bps as f64;
        let scaled = |given: Option<f64>, published: f64| {
            given.unwrap_or(published * line_bps / PUBLISHED_BPS)
        };
        RateLimiter {
            settings: *settings,
            line_bps,
            increase_bytes: scaled(settings.increase_bytes, PUBLISHED_BYTES),
            additive_bps: scaled(settings.additive_bps, PUBLISHED_ADDITIVE_BPS),
            hyper_bps: scaled(settings.hyper_bps, PUBLISHED_HYPER_BPS),
            least_bps: scaled(settings.least_bps, PUBLISHED_LEAST_BPS).min(line_bps),
            current_bps: line_bps,
            target_bps: line_bps,
            alpha: 1.0,
            limited: false,
            alpha_due: Time::MAX,
            increase_due: Time::MAX,
            bytes_left: 0.0,
            timer_count: 0,
            byte_count: 0,
        }
    }

    /// Do what the timers have done up to a time.
    fn advance(&mut self, at: Time) {
        while self.alpha_due <= at {
            self.alpha *= 1.0 - self.settings.g;
            self.alpha_due = self.alpha_due.saturating_add(self.settings.alpha_interval);
            if self.alpha < NEGLIGIBLE {
                self.alpha_due = Time::MAX;
            }
        }
        while self.limited && self.increase_due <= at {
            self.increase_due = self.increase_due.saturating_add(self.settings.increase_interval);
            self.timer_count += 1;
            self.increase();
        }
    }

    fn increase(&mut self) {
        let (timer, bytes) = (self.timer_count, self.byte_count);
        let steps = self.settings.fast_recovery;
        if timer.min(bytes) > steps {
            self.target_bps += self.hyper_bps * f64::from(timer.min(bytes) - steps);
        } else if timer.max(bytes) >= steps {
            self.target_bps += self.additive_bps;
        }
        self.current_bps = (self.target_bps + self.current_bps) / 2.0;
        if self.current_bps >= self.line_bps {
            self.current_bps = self.line_bps;
            self.target_bps = self.line_bps;
            self.limited = false;
        }
    }
}

impl Controlled for RateLimiter {
    fn notified(&mut self, at: Time) {
        self.advance(at);
        self.target_bps = self.current_bps;
        self.current_bps = (self.current_bps * (1.0 - self.alpha / 2.0)).max(self.least_bps);
        self.alpha = (1.0 - self.settings.g) * self.alpha + self.settings.g;
        self.limited = true;
        self.alpha_due = at.saturating_add(self.settings.alpha_interval);
        self.increase_due = at.saturating_add(self.settings.increase_interval);
        self.bytes_left = self.increase_bytes;
        self.timer_count = 0;
        self.byte_count = 0;
    }

    fn sent(&mut self, at: Time, wire_bytes: u32) -> Time {
        self.advance(at);
        if self.limited {
            self.bytes_left -= f64::from(wire_bytes);
            if self.bytes_left <= 0.0 {
                self.bytes_left += self.increase_bytes;
                self.byte_count += 1;
                self.increase();
            }
        }
        if self.limited {
            (f64::from(wire_bytes) * (8.0 * SECOND as f64) / self.current_bps) as Time
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use switch_model::MICROSECOND;

    use super::*;

    const LINE_BPS: u64 = 100_000_000_000;
    /// A packet of 1538 bytes on the line at 100 Gbit/s.
    const PACKET_TIME: Time = 123_040;

    fn settings() -> Dcqcn {
        Dcqcn {
            g: 1.0 / 256.0,
            cnp_interval: 50 * MICROSECOND,
            alpha_interval: 55 * MICROSECOND,
            increase_interval: 55 * MICROSECOND,
            increase_bytes: None,
            fast_recovery: 5,
            additive_bps: None,
            hyper_bps: None,
            least_bps: None,
        }
    }

    /// The rate in parts of the line.
    fn share(limiter: &RateLimiter) -> f64 {
        limiter.current_bps / LINE_BPS as f64
    }

    #[test]
    fn a_sender_is_not_limited_before_a_notification_and_at_half_the_rate_after_the_first() {
        let mut limiter = RateLimiter::new(&settings(), LINE_BPS);
        assert_eq!(limiter.sent(0, 1538), 0);
        limiter.notified(MICROSECOND);
        assert_eq!(limiter.sent(MICROSECOND, 1538), 2 * PACKET_TIME);
        assert_eq!(share(&limiter), 0.5);
    }

    #[test]
    fn notifications_cut_by_half_of_alpha_which_rises_to_one() {
        let gain = settings().g;
        let mut limiter = RateLimiter::new(&Dcqcn { least_bps: Some(1.0), ..settings() }, LINE_BPS);
        let (mut alpha, mut rate, mut target, mut at) = (1.0, 1.0, 1.0, 0);
        for number in 0..20 {
            if number % 2 == 1 {
                // Long enough for both timers to expire once.
                at += 60 * MICROSECOND;
                alpha *= 1.0 - gain;
                rate = (rate + target) / 2.0;
            } else {
                at += 30 * MICROSECOND;
            }
            limiter.notified(at);
            target = rate;
            rate *= 1.0 - alpha / 2.0;
            alpha = (1.0 - gain) * alpha + gain;
            assert!((share(&limiter) / rate - 1.0).abs() < 1e-9, "{number}: {}", share(&limiter));
            assert!((limiter.alpha - alpha).abs() < 1e-12);
        }
    }

    #[test]
    fn fast_recovery_halves_the_distance_and_then_the_target_rises() {
        let mut limiter = RateLimiter::new(&settings(), LINE_BPS);
        limiter.notified(0);
        limiter.notified(0);
        let (mut target, mut current) = (0.5, 0.25);
        assert_eq!(share(&limiter), current);
        for expired in 1..=9 {
            limiter.advance(expired * 55 * MICROSECOND);
            if expired >= 5 {
                // 40 Mbit/s of 40 Gbit/s.
                target += 0.001;
            }
            current = (target + current) / 2.0;
            assert!((share(&limiter) - current).abs() < 1e-12, "{expired}");
        }
    }

    #[test]
    fn bytes_increase_the_rate_as_time_does_and_both_together_faster() {
        let slow = Dcqcn { increase_interval: 1 << 50, ..settings() };
        let mut limiter = RateLimiter::new(&slow, LINE_BPS);
        limiter.notified(0);
        // 25 MB, scaled from 10 MB at 40 Gbit/s.
        for _ in 0..25 {
            limiter.sent(0, 999_999);
        }
        assert_eq!(share(&limiter), 0.5);
        limiter.sent(0, 1000);
        assert_eq!(share(&limiter), 0.75);
        let mut limiter = RateLimiter::new(&settings(), LINE_BPS);
        for _ in 0..6 {
            limiter.notified(0);
        }
        limiter.advance(6 * 55 * MICROSECOND);
        let before = limiter.target_bps;
        limiter.byte_count = 5;
        limiter.bytes_left = 1.0;
        limiter.sent(6 * 55 * MICROSECOND, 1538);
        assert!((limiter.target_bps - before - 500e6).abs() < 1.0, "hyper increase");
    }

    #[test]
    fn a_rate_recovers_to_that_of_the_line_and_is_not_limited_then() {
        let mut limiter = RateLimiter::new(&settings(), LINE_BPS);
        limiter.notified(0);
        assert!(limiter.sent(100 * MICROSECOND, 1538) > PACKET_TIME);
        assert_eq!(limiter.sent(1_000_000 * MICROSECOND, 1538), 0);
        assert!(limiter.alpha < 1e-9);
        // The estimate has decayed: the next notification changes little.
        limiter.notified(1_000_000 * MICROSECOND);
        assert!(share(&limiter) > 0.999);
    }

    #[test]
    fn the_rate_does_not_fall_below_the_lowest() {
        let mut limiter = RateLimiter::new(&settings(), LINE_BPS);
        for _ in 0..100 {
            limiter.notified(0);
        }
        assert_eq!(share(&limiter), 1.0 / 400.0);
    }
}
