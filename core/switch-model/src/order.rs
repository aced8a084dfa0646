//! The order of events that are due at the same time, which the emulator and the simulator share.
//!
//! Only events at one switch need an order. It follows from what the events are, and not from the
//! order in which a program has found them, so that it is the same in both programs and however a
//! fabric is divided among processors. Of events of one time, the first is the one with the least
//!
//! 1. *kind*: first what changes links and pauses, on which all others depend; then ends of
//!    transmissions, which release buffers and senders; then arrivals, which need them; then what
//!    hosts decide, who have received what has arrived ([`EventKind`]);
//! 2. *turn* and *channel*: frames have the turn that [`turn`] gives to each anew ([`Sent::turn`]),
//!    all other events turn 0. With the order of the channels alone, ports of low numbers would
//!    always be first, and some flows would gain by their number;
//! 3. *class* of a virtual channel;
//! 4. *number*, which the switch or host counts that has caused the events: of equal events, such
//!    as two pause signals for one sender, the earlier cause is first.
//!
//! [`EventOrder`] is all but the number. An event that becomes due at the present time, by a link
//! without delay, is in this order among those that are left.
//!
//! [`Sent::turn`]: crate::Sent::turn

use crate::ids::{ChannelId, VirtualChannel, PRIORITIES};

/// What an event does, in the order in which events of one time happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// Something changes in the fabric: a link, counters, what a watchdog does.
    Fabric = 1,
    /// A pause, its end, or an update of credit reaches the sender of a virtual channel.
    Pause,
    /// The pause of a virtual channel expires, or is to be repeated.
    PauseTimer,
    /// A transmission ends: the sender of a channel is free again.
    TransmissionEnd,
    /// A frame on a channel has arrived at a switch or host.
    Arrival,
    /// A host decides what to do.
    Host,
}

/// The place of an event among those of its time: kind, turn, channel and class as one number. The
/// least is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventOrder(u64);

const KIND_SHIFT: u32 = 60;
const TURN_SHIFT: u32 = 44;
const CHANNEL_SHIFT: u32 = 12;

impl EventOrder {
    /// Before all events of a time.
    pub const FIRST: EventOrder = EventOrder(0);

    /// An event of no channel.
    pub const fn of_kind(kind: EventKind) -> EventOrder {
        EventOrder((kind as u64) << KIND_SHIFT)
    }

    /// An event of a virtual channel: [`EventKind::Pause`] or [`EventKind::PauseTimer`].
    pub const fn of_target(kind: EventKind, target: VirtualChannel) -> EventOrder {
        let place = ((target.channel.0 as u64) << CHANNEL_SHIFT) | target.class as u64;
        EventOrder(Self::of_kind(kind).0 | place)
    }

    /// [`crate::Model::run_retry`]: behind the pauses of the channel.
    pub const fn of_retry(channel: ChannelId) -> EventOrder {
        let target = VirtualChannel { channel, class: PRIORITIES as u8 };
        Self::of_target(EventKind::PauseTimer, target)
    }

    /// An event of a frame, which has a turn: the end of its transmission on a channel, or its
    /// arrival.
    #[inline(always)]
    pub const fn of_frame(kind: EventKind, channel: ChannelId, turn: u16) -> EventOrder {
        let place = ((turn as u64) << TURN_SHIFT) | ((channel.0 as u64) << CHANNEL_SHIFT);
        EventOrder(Self::of_kind(kind).0 | place)
    }

    /// An event of a host: of a number of it, or of its own.
    pub const fn of_host(host: u32) -> EventOrder {
        EventOrder(Self::of_kind(EventKind::Host).0 | ((host as u64) << CHANNEL_SHIFT))
    }

    /// The same frame, channel or host in an event of another kind.
    #[inline(always)]
    pub const fn with_kind(self, kind: EventKind) -> EventOrder {
        EventOrder(Self::of_kind(kind).0 | (self.0 & !(u64::MAX << KIND_SHIFT)))
    }

    /// As a number that compares alike.
    #[inline(always)]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// The turn of the frame that is sent on a channel after `frames` others of its priority: a hash,
/// so that channels whose frames coincide again and again are in another order each time.
#[inline(always)]
pub const fn turn(channel: ChannelId, frames: u64) -> u16 {
    // Multiplications by the constants of MurmurHash3 (Appleby, 2011).
    let hash = channel.0.wrapping_mul(0xcc9e_2d51) ^ (frames as u32);
    let hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    (hash >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [EventKind; 6] = [
        EventKind::Fabric,
        EventKind::Pause,
        EventKind::PauseTimer,
        EventKind::TransmissionEnd,
        EventKind::Arrival,
        EventKind::Host,
    ];

    #[test]
    fn events_go_by_kind_then_turn_then_channel_then_class() {
        let last = ChannelId(u32::MAX);
        let frame = |kind, channel, turn| EventOrder::of_frame(kind, ChannelId(channel), turn);
        let target = |channel, class| VirtualChannel { channel: ChannelId(channel), class };
        let pause =
            |channel, class| EventOrder::of_target(EventKind::Pause, target(channel, class));
        let end = EventKind::TransmissionEnd;
        let ascending = [
            EventOrder::FIRST,
            EventOrder::of_kind(EventKind::Fabric),
            pause(0, 0),
            pause(0, 7),
            pause(1, 0),
            EventOrder::of_target(EventKind::Pause, VirtualChannel { channel: last, class: 7 }),
            EventOrder::of_target(EventKind::PauseTimer, target(0, 0)),
            frame(end, 9, 0),
            frame(end, 0, 1),
            frame(end, u32::MAX, 1),
            frame(end, 0, 2),
            frame(end, u32::MAX, u16::MAX),
            frame(EventKind::Arrival, 0, 0),
            frame(EventKind::Arrival, u32::MAX, u16::MAX),
            EventOrder::of_host(0),
            EventOrder::of_host(u32::MAX),
        ];
        assert!(ascending.windows(2).all(|pair| pair[0] < pair[1]), "{ascending:?}");
        assert!(KINDS.map(EventOrder::of_kind).is_sorted());
        let end = frame(end, 5, 7);
        assert_eq!(end.with_kind(EventKind::Arrival), frame(EventKind::Arrival, 5, 7));
    }

    #[test]
    fn no_channel_gains_by_its_number() {
        // Neighbouring channels, such as those of the hosts of a switch, whose frames coincide.
        for first in [0, 100, 40_000] {
            const CHANNELS: usize = 16;
            let rounds = 4000;
            let mut places = [[0u32; CHANNELS]; CHANNELS];
            for frames in 0..rounds {
                let mut order: Vec<usize> = (0..CHANNELS).collect();
                let channel = |place: usize| ChannelId(first + place as u32);
                order.sort_by_key(|&place| (turn(channel(place), frames), place));
                for (place, &channel) in order.iter().enumerate() {
                    places[channel][place] += 1;
                }
            }
            // Standard deviation of a count: sqrt(4000 / 16 * 15 / 16) = 15.3.
            let expected = rounds as f64 / CHANNELS as f64;
            for counts in &places {
                assert!(
                    counts.iter().all(|&n| (f64::from(n) - expected).abs() < 77.0),
                    "{counts:?}"
                );
            }
        }
    }

    #[test]
    fn turns_never_change() {
        // The order of all simulated frames depends on these.
        let known = [((0, 0), 0), ((1, 0), 26371), ((1, 1), 6136), ((70_000, 1 << 33), 40695)];
        for ((channel, frames), expected) in known {
            assert_eq!(turn(ChannelId(channel), frames), expected);
        }
    }
}
