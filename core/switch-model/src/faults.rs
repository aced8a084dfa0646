//! What a line does to frames besides carrying them: it loses, corrupts, duplicates and reorders
//! some of them at random.
//!
//! Pause signals are never affected. A frame has the same fate in all runs of a seed: it is drawn
//! from the seed, the channel and the number of the frame on it, and from nothing else, so that the
//! emulator and the simulator draw alike.

use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;

use crate::counters::DropCause;
use crate::ids::ChannelId;
use crate::units::{transmission_time, Time, GAP_BYTES};

const WHOLE: u32 = 1_000_000_000;

/// A probability, in billionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance(u32);

impl Chance {
    /// It never happens.
    pub const NEVER: Chance = Chance(0);

    /// A probability of 0 to 1; others are cut to that. One above 0 is at least a billionth.
    pub fn new(share: f64) -> Chance {
        let billionths = (share.clamp(0.0, 1.0) * f64::from(WHOLE)).round() as u32;
        Chance(billionths.max(u32::from(share > 0.0)))
    }

    fn happens(self, drawn: u64) -> bool {
        (u128::from(drawn) * u128::from(WHOLE)) >> 64 < u128::from(self.0)
    }
}

/// How often a line does what to a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// It loses it.
    pub loss: Chance,
    /// It changes some of its bits, and the receiver drops it.
    pub corrupt: Chance,
    /// It carries it twice, one directly after the other.
    pub duplicate: Chance,
    /// The frame arrives late by the time that two of the longest frames take: those behind it
    /// overtake it.
    pub reorder: Chance,
    /// It changes bits at this rate, and the receiver cannot use the frame.
    pub bit_errors: BitErrors,
}

/// How often a line changes a bit, and how many frames in a row it does that to.
///
/// A frame has an error with the probability that one of its bits has one. Errors in a row are those
/// of the model of Gilbert (1960): a row of frames with errors ends after each with the probability
/// of one in `in_a_row`, and rows begin so often that the share of frames with errors stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitErrors {
    /// Errors in 10^18 bits.
    rate: u64,
    in_a_row: u32,
}

impl BitErrors {
    /// It changes no bits.
    pub const NONE: BitErrors = BitErrors { rate: 0, in_a_row: 1 };

    /// `rate` errors for each bit, 0 to 1, others are cut to that; on average so many frames
    /// `in_a_row` have errors, and with 1 each frame by chance.
    pub fn new(rate: f64, in_a_row: u32) -> BitErrors {
        BitErrors { rate: (rate.clamp(0.0, 1.0) * 1e18).round() as u64, in_a_row: in_a_row.max(1) }
    }

    /// The probability that one of so many bits has an error.
    pub fn share(&self, bits: u32) -> f64 {
        // By doubling the number of bits: the logarithms of machines differ, and products do not.
        let (mut share, mut power, mut left) = (0.0, self.rate as f64 / 1e18, bits);
        while left > 0 {
            if left % 2 == 1 {
                share += power * (1.0 - share);
            }
            power += power * (1.0 - power);
            left /= 2;
        }
        share
    }
}

impl Default for BitErrors {
    fn default() -> BitErrors {
        BitErrors::NONE
    }
}

impl Faults {
    /// A line that does nothing of this.
    pub const NONE: Faults = Faults {
        loss: Chance::NEVER,
        corrupt: Chance::NEVER,
        duplicate: Chance::NEVER,
        reorder: Chance::NEVER,
        bit_errors: BitErrors::NONE,
    };

    /// Whether there are any.
    pub fn any(&self) -> bool {
        *self != Faults::NONE
    }

    /// By how much a reordered frame is late.
    pub fn lateness(rate_bps: u64, longest_frame_bytes: u32) -> Time {
        2 * transmission_time(longest_frame_bytes + GAP_BYTES, rate_bps)
    }

    /// The reaction time of [`crate::Buffer::headroom_needed`] on a line of this delay and jitter.
    /// Frames that are late, and copies, arrive after a pause in addition to those that the delay
    /// holds.
    pub fn reaction(
        &self,
        (rate_bps, delay, jitter): (u64, Time, Time),
        longest_frame_bytes: u32,
    ) -> Time {
        let late = Faults::lateness(rate_bps, longest_frame_bytes);
        let reordered = if self.reorder == Chance::NEVER { 0 } else { late };
        let duplicated = if self.duplicate == Chance::NEVER { 0 } else { late / 2 };
        delay + (jitter + reordered + duplicated).div_ceil(2)
    }
}

/// What becomes of a frame on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Arrives,
    Late,
    Twice,
    Lost(DropCause),
}

/// What the receiver of a link that repeats frames makes of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Good,
    /// With a wrong check sequence.
    Bad,
    Nothing,
}

/// The random numbers of the faults of a channel.
#[derive(Clone, Debug)]
pub(crate) struct Fates {
    frames: SplitMix64,
    bits: SplitMix64,
    /// The last frame had bit errors.
    had_error: bool,
}

/// The random numbers of the jitter of a channel.
#[derive(Clone, Debug)]
pub(crate) struct Jitter(SplitMix64);

/// A stream that follows from the seed and a number.
fn stream(seed: u64, number: u64) -> SplitMix64 {
    let mixed = |number| SplitMix64::seed_from_u64(number).next_u64();
    SplitMix64::seed_from_u64(mixed(mixed(seed) ^ number))
}

impl Jitter {
    pub fn new(seed: u64, channel: ChannelId) -> Jitter {
        // Other numbers than those of faults and of marking.
        Jitter(stream(seed, 1 << 62 | u64::from(channel.0)))
    }

    /// By how much the next frame is late: less than `jitter`.
    pub fn next(&mut self, jitter: Time) -> Time {
        self.0.next_u64() % jitter
    }
}

impl Fates {
    pub fn new(seed: u64, channel: ChannelId) -> Fates {
        let number = u64::from(channel.0);
        // Other numbers than those of jitter and of marking.
        let bits = stream(seed, 1 << 61 | number);
        Fates { frames: stream(seed, number), bits, had_error: false }
    }

    /// The fate of the next frame. One number is drawn for each kind of fault, whether or not there
    /// is any: which frames are lost does not depend on the other faults.
    pub fn next(&mut self, faults: &Faults, bytes: u32) -> Fate {
        let has_error = self.has_error(&faults.bit_errors, bytes);
        let [loss, corrupt, duplicate, reorder] = [(); 4].map(|()| self.frames.next_u64());
        match () {
            () if faults.loss.happens(loss) || has_error => Fate::Lost(DropCause::Loss),
            () if faults.corrupt.happens(corrupt) => Fate::Lost(DropCause::Corrupt),
            () if faults.duplicate.happens(duplicate) => Fate::Twice,
            () if faults.reorder.happens(reorder) => Fate::Late,
            () => Fate::Arrives,
        }
    }

    /// What a receiver hears of the next frame, which it can ask for again.
    pub fn heard(&mut self, faults: &Faults, bytes: u32) -> Heard {
        let has_error = self.has_error(&faults.bit_errors, bytes);
        match self.next(&Faults { bit_errors: BitErrors::NONE, ..*faults }, bytes) {
            Fate::Lost(DropCause::Loss) => Heard::Nothing,
            Fate::Lost(_) => Heard::Bad,
            _ if has_error => Heard::Bad,
            _ => Heard::Good,
        }
    }

    fn has_error(&mut self, errors: &BitErrors, bytes: u32) -> bool {
        if *errors == BitErrors::NONE {
            return false;
        }
        let (share, in_a_row) = (errors.share(8 * bytes), f64::from(errors.in_a_row));
        let share = match (errors.in_a_row, self.had_error) {
            (1, _) => share,
            (_, true) => 1.0 - 1.0 / in_a_row,
            (_, false) => share / (in_a_row * (1.0 - share)),
        };
        self.had_error = self.draws(share);
        self.had_error
    }

    /// Whether one of so many bits of an answer has an error, on a line like this.
    pub fn loses_answer(&mut self, errors: &BitErrors, bits: u32) -> bool {
        *errors != BitErrors::NONE && self.draws(errors.share(bits))
    }

    fn draws(&mut self, share: f64) -> bool {
        const WHOLE: f64 = (1u64 << 53) as f64;
        ((self.bits.next_u64() >> 11) as f64) < share * WHOLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(seed: u64, channel: u32, faults: &Faults, frames: u64) -> Vec<u64> {
        let mut fates = Fates::new(seed, ChannelId(channel));
        let is_lost = |_: &u64| fates.next(faults, 1000) == Fate::Lost(DropCause::Loss);
        (0..frames).filter(is_lost).collect()
    }

    #[test]
    fn losses_follow_seed_and_channel_and_no_other_fault() {
        let faults = Faults { loss: Chance::new(0.1), ..Faults::NONE };
        let all = Faults {
            corrupt: Chance::new(0.3),
            duplicate: Chance::new(0.3),
            reorder: Chance::new(0.3),
            ..faults
        };
        let first = lost(1, 0, &faults, 1000);
        assert_eq!(first, lost(1, 0, &all, 1000));
        assert_ne!(first, lost(2, 0, &faults, 1000));
        assert_ne!(first, lost(1, 1, &faults, 1000));
    }

    #[test]
    fn jitter_follows_seed_and_channel_and_is_below_its_limit() {
        let drawn = |seed, channel| -> Vec<Time> {
            let mut jitter = Jitter::new(seed, ChannelId(channel));
            (0..1000).map(|_| jitter.next(1000)).collect()
        };
        let first = drawn(1, 0);
        assert_eq!(first, drawn(1, 0));
        assert_ne!(first, drawn(2, 0));
        assert_ne!(first, drawn(1, 1));
        assert!(first.iter().all(|&late| late < 1000));
        assert!(first.iter().min() < Some(&10) && first.iter().max() > Some(&990));
    }

    #[test]
    fn as_many_frames_meet_each_fault_as_its_chance_says() {
        let share = 0.01;
        let chance = Chance::new(share);
        let frames = 1_000_000;
        let of = |faults: Faults, fate: Fate| {
            let mut fates = Fates::new(7, ChannelId(3));
            (0..frames).filter(|_| fates.next(&faults, 1000) == fate).count() as f64
        };
        let (mean, sigma) = (share * f64::from(frames), (f64::from(frames) * share * 0.99).sqrt());
        for (faults, fate) in [
            (Faults { loss: chance, ..Faults::NONE }, Fate::Lost(DropCause::Loss)),
            (Faults { corrupt: chance, ..Faults::NONE }, Fate::Lost(DropCause::Corrupt)),
            (Faults { duplicate: chance, ..Faults::NONE }, Fate::Twice),
            (Faults { reorder: chance, ..Faults::NONE }, Fate::Late),
        ] {
            let counted = of(faults, fate);
            assert!((counted - mean).abs() < 3.0 * sigma, "{fate:?}: {counted} of {mean}");
        }
    }

    #[test]
    fn frames_have_errors_as_often_as_their_bits_alone_and_in_rows() {
        for (rate, bits) in [(1e-15, 12_000), (1e-6, 1), (1e-6, 12_144), (0.1, 60)] {
            let expected = -(f64::from(bits) * f64::ln_1p(-rate)).exp_m1();
            let share = BitErrors::new(rate, 1).share(bits);
            assert!((share / expected - 1.0).abs() < 1e-9, "{share} {expected}");
        }
        for in_a_row in [1, 5] {
            let bit_errors = BitErrors::new(1e-5, in_a_row);
            let mut fates = Fates::new(3, ChannelId(2));
            let mut draw = |_| fates.heard(&Faults { bit_errors, ..Faults::NONE }, 1000);
            let heard: Vec<Heard> = (0..400_000).map(&mut draw).collect();
            let bad = heard.iter().filter(|&&heard| heard == Heard::Bad).count() as f64;
            let ends = heard.windows(2).filter(|w| w[0] == Heard::Bad && w[1] == Heard::Good);
            let (share, row) = (bit_errors.share(8000), bad / ends.count() as f64);
            // By chance, rows have 1 / (1 - share) frames.
            let expected = if in_a_row == 1 { 1.0 / (1.0 - share) } else { 5.0 };
            assert!((bad / 400_000.0 / share - 1.0).abs() < 0.05, "{bad} of {share}");
            assert!((row / expected - 1.0).abs() < 0.05, "{row} of {expected}");
        }
    }

    #[test]
    fn chances_reach_from_never_to_always() {
        assert!(!Chance::NEVER.happens(0) && !Chance::new(0.0).happens(0));
        assert!(Chance::new(1.0).happens(u64::MAX));
        assert!(Chance::new(1e-12).happens(0));
        assert_eq!(Chance::new(f64::NAN), Chance::NEVER);
    }

    #[test]
    fn late_frames_and_copies_count_as_in_flight() {
        let line = (10_000_000, 500, 100);
        assert_eq!(Faults::NONE.reaction(line, 1522), 550);
        let late = 2 * 1_233_600_000;
        let reorder = Faults { reorder: Chance::new(0.1), ..Faults::NONE };
        assert_eq!(reorder.reaction(line, 1522), 550 + late / 2);
        let duplicate = Faults { duplicate: Chance::new(0.1), ..Faults::NONE };
        assert_eq!(duplicate.reaction(line, 1522), 550 + late / 4);
    }
}
