//! Whether the timers of TCP on hosts may have noticed that virtual time is slower than real time.
//!
//! Linux retransmits a segment after the measured round-trip time and its variation, at least after
//! 200 ms. Both are real times: if a round trip takes longer than that because virtual time is
//! stretched, TCP may behave unlike TCP on the emulated network.

use std::collections::HashMap;

use switch_model::{Time, MICROSECOND};

use crate::clock::Moment;

/// Linux's least retransmission time-out (TCP_RTO_MIN).
const MIN_TIMEOUT: Time = 200_000 * MICROSECOND;
/// Connections that are observed at the same time.
const MAX_CONNECTIONS: usize = 4096;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// Source and destination address, source and destination port.
type Connection = ([u8; 4], [u8; 4], u16, u16);

/// A TCP segment over IPv4.
struct Segment {
    connection: Connection,
    flags: u8,
    /// The sequence number behind its payload.
    end: u32,
    acknowledged: u32,
    is_empty: bool,
}

/// Round trips of TCP segments, as their senders see them.
#[derive(Debug, Default)]
pub struct TcpTimers {
    /// One segment of each connection that is not acknowledged: its end, when it was sent.
    open: HashMap<Connection, (u32, Moment)>,
    longest: Time,
    stretched: u64,
}

impl TcpTimers {
    /// A host sends a frame.
    pub fn sent(&mut self, at: Moment, frame: &[u8]) {
        let Some(segment) = parse(frame).filter(|segment| !segment.is_empty) else { return };
        if self.open.len() < MAX_CONNECTIONS {
            self.open.entry(segment.connection).or_insert((segment.end, at));
        }
    }

    /// A host gets a frame.
    pub fn delivered(&mut self, at: Moment, frame: &[u8]) {
        if self.open.is_empty() {
            return;
        }
        let Some(segment) = parse(frame).filter(|segment| segment.flags & ACK != 0) else {
            return;
        };
        let (from, to, source, destination) = segment.connection;
        let back = (to, from, destination, source);
        let Some(&(end, sent)) = self.open.get(&back) else { return };
        if (segment.acknowledged.wrapping_sub(end) as i32) < 0 {
            return;
        }
        self.open.remove(&back);
        let (real, now) = (at.real - sent.real, at.now - sent.now);
        self.longest = self.longest.max(real);
        // A round trip that is as long in virtual time is the emulated network's.
        if real > MIN_TIMEOUT && real > now + now / 10 {
            self.stretched += 1;
        }
    }

    /// Round trips that took over 200 ms of real time, and over a tenth longer than in virtual
    /// time.
    pub fn stretched(&self) -> u64 {
        self.stretched
    }

    /// The longest round trip in real time, in microseconds.
    pub fn longest_us(&self) -> u64 {
        self.longest / MICROSECOND
    }
}

fn parse(frame: &[u8]) -> Option<Segment> {
    let word = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u32::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let ip = match word(12)? {
        0x0800 => 14,
        0x8100 if word(16)? == 0x0800 => 18,
        _ => return None,
    };
    let is_first = word(ip + 6)? & 0x1fff == 0;
    if *frame.get(ip + 9)? != 6 || !is_first {
        return None;
    }
    let tcp = ip + 4 * usize::from(*frame.get(ip)? & 15);
    let header = tcp - ip + 4 * usize::from(frame.get(tcp + 12)? >> 4);
    let payload = usize::from(word(ip + 2)?).checked_sub(header)? as u32;
    let flags = *frame.get(tcp + 13)?;
    let length = payload + u32::from(flags & SYN != 0);
    let address = |at: usize| frame.get(at..)?.first_chunk().copied();
    Some(Segment {
        connection: (address(ip + 12)?, address(ip + 16)?, word(tcp)?, word(tcp + 2)?),
        flags,
        end: long(tcp + 4)?.wrapping_add(length),
        acknowledged: long(tcp + 8)?,
        is_empty: length == 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Time = 1000 * MICROSECOND;

    /// A segment from host `from` to the other of hosts 1 and 2.
    fn segment(from: u8, sequence: u32, acknowledged: u32, payload: u16) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((40 + payload).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, 3 - from]);
        frame.extend([0, from, 0, 3 - from]);
        frame.extend(sequence.to_be_bytes());
        frame.extend(acknowledged.to_be_bytes());
        frame.extend([0x50, ACK, 0, 0, 0, 0, 0, 0]);
        frame.resize(frame.len() + usize::from(payload), 0);
        frame
    }

    fn round_trip(real: Time, now: Time) -> TcpTimers {
        let mut timers = TcpTimers::default();
        timers.sent(Moment::default(), &segment(1, u32::MAX - 99, 0, 1000));
        timers.delivered(Moment { now: 1, real: 1 }, &segment(2, 0, u32::MAX - 99, 0));
        timers.delivered(Moment { now, real }, &segment(2, 0, 900, 0));
        timers
    }

    #[test]
    fn only_long_round_trips_that_were_stretched_count() {
        assert_eq!(round_trip(201 * MS, 100 * MS).stretched(), 1);
        assert_eq!(round_trip(199 * MS, 10 * MS).stretched(), 0);
        assert_eq!(round_trip(300 * MS, 299 * MS).stretched(), 0);
        assert_eq!(round_trip(300 * MS, 299 * MS).longest_us(), 300_000);
    }

    #[test]
    fn acknowledgements_without_data_are_no_round_trips() {
        let mut timers = TcpTimers::default();
        timers.sent(Moment::default(), &segment(1, 5, 5, 0));
        assert!(timers.open.is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..80), length in 0u8..16,
        ) {
            let _ = parse(&bytes);
            let mut frame = segment(1, 1, 1, 10);
            frame[14] = 0x40 | length;
            frame.truncate(bytes.len());
            let _ = parse(&frame);
        }
    }
}
