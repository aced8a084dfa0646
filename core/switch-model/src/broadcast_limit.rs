//! How much of its line a host may fill with broadcasts.
//!
//! A switch copies a broadcast to every host, so a host that sends nothing else slows all others
//! down. Where a host's frames enter its first switch, broadcasts and frames to multicast groups
//! that are not declared are therefore metered by a token bucket (RFC 2697 with one bucket) that
//! fills with a share of the line. What does not conform is dropped.

use crate::units::{wire_bytes, Time, SECOND};

/// Parts of a whole in [`BroadcastLimit::share_ppm`].
const WHOLE: u64 = 1_000_000;
/// Tokens of one bit: a line of 1 bit/s earns `share_ppm` of them in each unit of time.
const BIT: u128 = SECOND as u128 * WHOLE as u128;

/// Limit of the broadcasts of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BroadcastLimit {
    /// Millionths of the line that they may take in the long run, gaps between frames included; at
    /// most 1,000,000.
    pub share_ppm: u32,
    /// Bytes, gaps included, that may come at once.
    pub burst_bytes: u64,
    /// Whether frames beyond it are dropped; otherwise they are only counted.
    pub drops: bool,
}

impl BroadcastLimit {
    /// The default: 2 % of the line, and 64 KiB at once.
    pub const DEFAULT: BroadcastLimit =
        BroadcastLimit { share_ppm: 20_000, burst_bytes: 65_536, drops: true };

    /// A limit to a share of the line, from 0 to 1. 0 switches it off: hosts beyond the default
    /// share are then counted, and nothing is dropped.
    pub fn new(share: f64, burst_bytes: u64) -> BroadcastLimit {
        if share == 0.0 {
            return BroadcastLimit { burst_bytes, drops: false, ..BroadcastLimit::DEFAULT };
        }
        let share_ppm = (share * WHOLE as f64).round().clamp(1.0, WHOLE as f64) as u32;
        BroadcastLimit { share_ppm, burst_bytes, drops: true }
    }

    /// The tokens that a line earns in each unit of time.
    fn earns(&self, rate_bps: u64) -> u128 {
        u128::from(rate_bps) * u128::from(self.share_ppm)
    }

    /// The share of the line, from 0 to 1.
    pub fn share(&self) -> f64 {
        f64::from(self.share_ppm) / WHOLE as f64
    }
}

/// A bucket that tokens fill at a rate, in whole numbers: results do not depend on rounding.
#[derive(Clone, Copy, Debug)]
struct TokenBucket {
    /// Tokens in each unit of time.
    rate: u128,
    /// The most tokens that are kept.
    burst: u128,
    /// Tokens at time `at`.
    tokens: u128,
    at: Time,
}

impl TokenBucket {
    fn advance(&mut self, now: Time) {
        let earned = u128::from(now.saturating_sub(self.at)) * self.rate;
        self.tokens = self.tokens.saturating_add(earned).min(self.burst);
        self.at = self.at.max(now);
    }

    fn set_rate(&mut self, now: Time, rate: u128) {
        self.advance(now);
        self.rate = rate;
    }

    /// Takes tokens, if there are enough.
    fn take(&mut self, now: Time, needed: u128) -> bool {
        self.advance(now);
        let left = self.tokens.checked_sub(needed);
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }
}

/// The broadcasts of one host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BroadcastMeter {
    limit: BroadcastLimit,
    bucket: TokenBucket,
    /// Frames beyond the limit, and when the last one came.
    pub over: u64,
    pub last_over: Option<Time>,
}

impl BroadcastMeter {
    pub fn new(limit: BroadcastLimit, rate_bps: u64) -> BroadcastMeter {
        let burst = 8 * u128::from(limit.burst_bytes) * BIT;
        let bucket = TokenBucket { rate: limit.earns(rate_bps), burst, tokens: burst, at: 0 };
        BroadcastMeter { limit, bucket, over: 0, last_over: None }
    }

    /// The line has another rate from `now` on.
    pub fn set_rate(&mut self, now: Time, rate_bps: u64) {
        self.bucket.set_rate(now, self.limit.earns(rate_bps));
    }

    /// Whether a frame of `bytes` bytes, FCS included, may pass at `now`.
    pub fn passes(&mut self, now: Time, bytes: u32) -> bool {
        if self.bucket.take(now, 8 * u128::from(wire_bytes(bytes)) * BIT) {
            return true;
        }
        self.over += 1;
        self.last_over = Some(now);
        !self.limit.drops
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RATE_BPS: u64 = 10_000_000;
    /// Time in which the default share of the line earns one byte.
    const EARNS_BYTE: Time = 8 * SECOND / (RATE_BPS / 50);

    fn meter(limit: BroadcastLimit) -> BroadcastMeter {
        BroadcastMeter::new(limit, RATE_BPS)
    }

    #[test]
    fn a_burst_passes_and_then_the_share_of_the_line() {
        let mut host = meter(BroadcastLimit::DEFAULT);
        // 84 bytes on the wire.
        let at_once = (0..1000).filter(|_| host.passes(0, 64)).count();
        assert_eq!((at_once, host.over), (65_536 / 84, 1000 - 65_536 / 84));
        // Ten seconds of a full line.
        let frames = 10 * RATE_BPS / (8 * 84);
        let passed = (1..=frames).filter(|n| host.passes(n * 10 * SECOND / frames, 64)).count();
        assert_eq!(passed as u64, (10 * RATE_BPS / 50 / 8 + 65_536 % 84) / 84);
    }

    #[test]
    fn without_a_limit_everything_passes_and_is_counted() {
        let mut host = meter(BroadcastLimit::new(0.0, 65_536));
        assert!((0..1000).all(|_| host.passes(7, 64)));
        assert_eq!((host.over, host.last_over), (1000 - 65_536 / 84, Some(7)));
    }

    #[test]
    fn shares_are_millionths() {
        assert_eq!(BroadcastLimit::new(0.02, 65_536), BroadcastLimit::DEFAULT);
        for (share, share_ppm) in [(1.0, 1_000_000), (0.5, 500_000), (1e-9, 1)] {
            assert_eq!(BroadcastLimit::new(share, 1).share_ppm, share_ppm);
        }
    }

    #[test]
    fn the_largest_values_do_not_overflow() {
        let limit = BroadcastLimit { share_ppm: 1_000_000, burst_bytes: 1 << 40, drops: true };
        let mut host = BroadcastMeter::new(limit, 400_000_000_000);
        assert!(host.passes(0, u32::MAX - 20) && host.passes(Time::MAX, u32::MAX - 20));
    }

    proptest! {
        #[test]
        fn no_window_has_more_than_the_burst_and_its_share(
            frames in prop::collection::vec((0u64..400 * EARNS_BYTE, 64u32..1523), 1..120),
        ) {
            let limit = BroadcastLimit { burst_bytes: 4000, ..BroadcastLimit::DEFAULT };
            let mut host = meter(limit);
            let (mut now, mut passed) = (0, Vec::new());
            for (wait, bytes) in frames {
                now += wait;
                if host.passes(now, bytes) {
                    passed.push((now, u64::from(wire_bytes(bytes))));
                }
            }
            for from in 0..passed.len() {
                let mut sum = 0;
                for &(at, bytes) in &passed[from..] {
                    sum += bytes;
                    prop_assert!(sum <= 4000 + (at - passed[from].0) / EARNS_BYTE + 1);
                }
            }
        }

        #[test]
        fn a_host_within_its_share_is_never_limited(
            frames in prop::collection::vec((64u32..1523, 0u64..5000 * EARNS_BYTE), 1..120),
        ) {
            let mut host = meter(BroadcastLimit { burst_bytes: 1542, ..BroadcastLimit::DEFAULT });
            let mut now = 0;
            for (bytes, pause) in frames {
                now += u64::from(wire_bytes(bytes)) * EARNS_BYTE + pause;
                prop_assert!(host.passes(now, bytes));
            }
        }
    }
}
