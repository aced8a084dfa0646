//! Explicit congestion notification: which frames a queue marks when they leave it.

use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;

use crate::ids::ChannelId;
use crate::switch_settings::MarkingSettings;

/// The marker of an egress queue.
#[derive(Clone, Debug)]
pub(crate) struct Marker {
    kmin_bytes: u64,
    kmax_bytes: u64,
    pmax: f64,
    /// Frames that it has marked.
    pub marked: u64,
    stream: SplitMix64,
}

impl Marker {
    /// The marker of a priority of a channel. Its random numbers follow from these and the seed.
    pub fn new(settings: &MarkingSettings, seed: u64, channel: ChannelId, priority: u8) -> Marker {
        let mixed = |number| SplitMix64::seed_from_u64(number).next_u64();
        // Other numbers than those of faults, which use the channel alone.
        let queue = 1 << 63 | u64::from(channel.0) << 8 | u64::from(priority);
        Marker {
            kmin_bytes: settings.kmin_bytes,
            kmax_bytes: settings.kmax_bytes,
            pmax: settings.pmax,
            marked: 0,
            stream: SplitMix64::seed_from_u64(mixed(mixed(seed) ^ queue)),
        }
    }

    /// Whether to mark a frame that leaves `queue_bytes` bytes behind it. One number is drawn for
    /// each frame, whatever the length of the queue.
    pub fn marks(&mut self, queue_bytes: u64) -> bool {
        // 53 bits are a number of 0 to 1 without rounding.
        let drawn = (self.stream.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let marks = if queue_bytes <= self.kmin_bytes {
            false
        } else if queue_bytes > self.kmax_bytes {
            true
        } else {
            let above = (queue_bytes - self.kmin_bytes) as f64;
            drawn < self.pmax * above / (self.kmax_bytes - self.kmin_bytes) as f64
        };
        self.marked += u64::from(marks);
        marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(seed: u64, channel: u32, priority: u8) -> Marker {
        let settings = MarkingSettings {
            priorities: vec![3],
            kmin_bytes: 10_000,
            kmax_bytes: 50_000,
            pmax: 0.2,
        };
        Marker::new(&settings, seed, ChannelId(channel), priority)
    }

    #[test]
    fn as_many_are_marked_as_the_length_says() {
        let frames = 200_000;
        for (queue, share) in [(20_000, 0.05), (30_000, 0.1), (50_000, 0.2)] {
            let mut marker = marker(5, 2, 3);
            let counted = (0..frames).filter(|_| marker.marks(queue)).count() as f64;
            let mean = share * f64::from(frames);
            let sigma = (mean * (1.0 - share)).sqrt();
            assert!((counted - mean).abs() < 3.0 * sigma, "{queue}: {counted} of {mean}");
            assert_eq!(marker.marked as f64, counted);
        }
    }

    #[test]
    fn none_up_to_kmin_and_each_above_kmax() {
        let mut marker = marker(5, 2, 3);
        assert!((0..1000).all(|_| !marker.marks(0) && !marker.marks(10_000)));
        assert!((0..1000).all(|_| marker.marks(50_001)));
    }

    #[test]
    fn queues_draw_independently() {
        let drawn =
            |mut marker: Marker| -> Vec<bool> { (0..200).map(|_| marker.marks(40_000)).collect() };
        let first = drawn(marker(1, 0, 0));
        assert_eq!(first, drawn(marker(1, 0, 0)));
        for other in [marker(2, 0, 0), marker(1, 1, 0), marker(1, 0, 1)] {
            assert_ne!(first, drawn(other));
        }
    }
}
