//! Whether the timers of TCP on hosts may have noticed that virtual time is slower than real time.
//!
//! Linux retransmits a segment after the measured round-trip time and its variation, at least after
//! 200 ms. Both are real times: if a round trip takes longer than that because virtual time is
//! stretched, TCP may behave unlike TCP on the emulated network. It does so only if it sends a
//! segment again meanwhile, and it changes a result only if the connection carries a good part of
//! the traffic: the connection with which iperf3 controls its test does not.
//!
//! On the hosts of a fabric with a slow-down K the least time is K times 200 ms (`rto_min` of their
//! route), so a stretch of K is none to them.

use std::collections::HashMap;

use switch_model::{Time, MICROSECOND};

use crate::clock::Moment;

/// Linux's least retransmission time-out (TCP_RTO_MIN).
const MIN_TIMEOUT: Time = 200_000 * MICROSECOND;
/// Connections that are observed.
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

/// A segment that is not acknowledged.
#[derive(Debug)]
struct Open {
    end: u32,
    sent: Moment,
    /// The end of what was sent since.
    last: u32,
    /// Whether something was sent again since.
    again: bool,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Sender {
    open: Option<Open>,
    bytes: u64,
    noticed: bool,
}

/// Round trips of TCP segments, as their senders see them.
#[derive(Debug)]
pub struct TcpTimers {
    slow_down: f64,
    senders: HashMap<Connection, Sender>,
    longest: Time,
    /// Of all frames of hosts.
    bytes: u64,
}

impl TcpTimers {
    /// No round trips yet. `slow_down` is the stretch for which the hosts' timers are set.
    pub fn new(slow_down: f64) -> TcpTimers {
        TcpTimers { slow_down, senders: HashMap::new(), longest: 0, bytes: 0 }
    }

    /// A host sends a frame.
    pub fn sent(&mut self, at: Moment, frame: &[u8]) {
        self.bytes += frame.len() as u64;
        let Some(segment) = parse(frame).filter(|segment| !segment.is_empty) else { return };
        if self.senders.len() == MAX_CONNECTIONS && !self.senders.contains_key(&segment.connection)
        {
            return;
        }
        let sender = self.senders.entry(segment.connection).or_default();
        sender.bytes += frame.len() as u64;
        let end = segment.end;
        match &mut sender.open {
            None => sender.open = Some(Open { end, sent: at, last: end, again: false }),
            Some(open) if is_after(end, open.last) => open.last = end,
            Some(open) => open.again = true,
        }
    }

    /// A host gets a frame.
    pub fn delivered(&mut self, at: Moment, frame: &[u8]) {
        if self.senders.is_empty() {
            return;
        }
        let Some(segment) = parse(frame).filter(|segment| segment.flags & ACK != 0) else {
            return;
        };
        let (from, to, source, destination) = segment.connection;
        let back = (to, from, destination, source);
        let Some(sender) = self.senders.get_mut(&back) else { return };
        let acknowledged = |open: &mut Open| !is_after(open.end, segment.acknowledged);
        let Some(open) = sender.open.take_if(acknowledged) else { return };
        let (real, now) = (at.real - open.sent.real, at.now - open.sent.now);
        self.longest = self.longest.max(real);
        // A round trip that is as long in virtual time is the emulated network's.
        let seen = (real as f64 / self.slow_down) as Time;
        let stretched = seen > MIN_TIMEOUT && seen > now + now / 10;
        sender.noticed |= stretched && open.again;
    }

    /// How many connections sent a segment again in a round trip that took over 200 ms of real
    /// time, and over a tenth longer than in virtual time, both times the slow-down, and their share
    /// of all bytes that hosts sent.
    pub fn noticed(&self) -> (usize, f64) {
        let noticed = || self.senders.values().filter(|sender| sender.noticed);
        let bytes: u64 = noticed().map(|sender| sender.bytes).sum();
        (noticed().count(), bytes as f64 / self.bytes.max(1) as f64)
    }

    /// The longest round trip in real time, in microseconds.
    pub fn longest_us(&self) -> u64 {
        self.longest / MICROSECOND
    }
}

/// Whether a sequence number comes after another.
fn is_after(number: u32, other: u32) -> bool {
    (number.wrapping_sub(other) as i32) > 0
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

    /// A round trip during which a segment of `meanwhile` is sent.
    fn round_trip(real: Time, now: Time, meanwhile: u32) -> TcpTimers {
        slowed_round_trip(1.0, real, now, meanwhile)
    }

    fn slowed_round_trip(slow_down: f64, real: Time, now: Time, meanwhile: u32) -> TcpTimers {
        let mut timers = TcpTimers::new(slow_down);
        timers.sent(Moment::default(), &segment(1, u32::MAX - 99, 0, 1000));
        timers.delivered(Moment { now: 1, real: 1 }, &segment(2, 0, u32::MAX - 99, 0));
        timers.sent(Moment { now: 1, real: 1 }, &segment(1, meanwhile, 0, 1000));
        timers.delivered(Moment { now, real }, &segment(2, 0, 900, 0));
        timers
    }

    const SAME: u32 = u32::MAX - 99;

    #[test]
    fn only_long_round_trips_that_were_stretched_count() {
        assert_eq!(round_trip(201 * MS, 100 * MS, SAME).noticed(), (1, 1.0));
        assert_eq!(round_trip(199 * MS, 10 * MS, SAME).noticed().0, 0);
        assert_eq!(round_trip(300 * MS, 299 * MS, SAME).noticed().0, 0);
        assert_eq!(round_trip(300 * MS, 299 * MS, SAME).longest_us(), 300_000);
    }

    #[test]
    fn timers_that_are_slowed_down_do_not_notice_that_stretch() {
        assert_eq!(slowed_round_trip(50.0, 11_000 * MS, 219 * MS, SAME).noticed().0, 0);
        assert_eq!(slowed_round_trip(50.0, 11_000 * MS, 100 * MS, SAME).noticed().0, 1);
    }

    #[test]
    fn a_timer_has_noticed_only_if_something_was_sent_again() {
        assert_eq!(round_trip(201 * MS, 100 * MS, 900).noticed().0, 0);
    }

    #[test]
    fn a_connection_counts_by_its_share_of_what_hosts_send() {
        let mut timers = round_trip(201 * MS, 100 * MS, SAME);
        timers.sent(Moment::default(), &[0; 2 * 1054 * 9]);
        assert_eq!(timers.noticed(), (1, 0.1));
    }

    #[test]
    fn acknowledgements_without_data_are_no_round_trips() {
        let mut timers = TcpTimers::new(1.0);
        timers.sent(Moment::default(), &segment(1, 5, 5, 0));
        assert!(timers.senders.is_empty());
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
