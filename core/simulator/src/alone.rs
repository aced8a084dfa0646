//! The time that a message takes if nothing else is in the network.
//!
//! Switches store and forward. On a path of lines i = 1.. n, let `s_i` be the time of a full packet
//! on line i, its headers, tag and gap included, and `d_i` the delay of the line. Of k full packets,
//! the last has arrived at the end of line i at
//!
//! ```text
//! F(i) = (s_1 + d_1) + ... + (s_i + d_i) + (k - 1) max(s_1, ..., s_i)
//! ```
//!
//! A shorter last packet, which takes `r_i`, starts on line i when it has arrived and the packet
//! before it has been sent: `R(i) = max(R(i - 1), F(i) - d_i) + r_i + d_i`, with `R(0) = 0`. The time
//! of the message is `F(n)`, or `R(n)` if it has a shorter last packet. The jitter of lines and
//! cut-through are left out.

use switch_model::{transmission_time, wire_bytes, ChannelConfig, Time};

use crate::message::{ACKNOWLEDGEMENT_BYTES, HEADER_BYTES, TAG_BYTES};

/// A line of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    rate_bps: u64,
    delay: Time,
}

impl Line {
    pub fn of(config: &ChannelConfig) -> Line {
        Line { rate_bps: config.rate_bps, delay: config.delay }
    }

    /// The time of a frame on line `place` of `lines`; between switches it has a tag.
    fn frame(self, bytes: u32, place: usize, lines: usize) -> Time {
        let tag = if place > 0 && place + 1 < lines { TAG_BYTES } else { 0 };
        transmission_time(wire_bytes(bytes + tag), self.rate_bps)
    }
}

/// The time from giving a message to its host until all of it has arrived.
pub(crate) fn message_time(lines: &[Line], bytes: u64, packet_bytes: u32) -> Time {
    let (full, rest) = (bytes / u64::from(packet_bytes), (bytes % u64::from(packet_bytes)) as u32);
    let (mut path, mut slowest) = (0, 0);
    let (mut all_full, mut last): (Time, Time) = (0, 0);
    for (place, line) in lines.iter().enumerate() {
        if full > 0 {
            let lasts = line.frame(packet_bytes + HEADER_BYTES, place, lines.len());
            path += lasts + line.delay;
            slowest = lasts.max(slowest);
            all_full = (full - 1).saturating_mul(slowest).saturating_add(path);
        }
        let sent = all_full.saturating_sub(line.delay);
        let lasts = line.frame(rest + HEADER_BYTES, place, lines.len());
        last = last.max(sent).saturating_add(lasts + line.delay);
    }
    if rest > 0 {
        last
    } else {
        all_full
    }
}

/// The time of an acknowledgement.
pub(crate) fn acknowledgement_time(lines: &[Line]) -> Time {
    let time = |(place, line): (usize, &Line)| {
        line.frame(ACKNOWLEDGEMENT_BYTES, place, lines.len()) + line.delay
    };
    lines.iter().enumerate().map(time).sum()
}
