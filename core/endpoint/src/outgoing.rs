//! The sending side of a stream: what is posted, what is under way, what must be sent again.
//!
//! Selective repeat with a window of 64 frames. A frame counts as lost when one that was sent three
//! transmissions or one time-out later has arrived (RFC 9002, 6.1), or when nothing was heard for the
//! time-out (RFC 6298, doubled each time). The fabric below loses nothing unless it is broken, so
//! there is no congestion control besides the window: a full network pauses its senders.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::config::{Failure, SendId, Time, Use, MILLISECOND, WINDOW_FRAMES};
use crate::wire::Ack;

const REORDER_FRAMES: u64 = 3;
const LONGEST_TIMEOUT: Time = 200 * MILLISECOND;
const MOST_DOUBLINGS: u32 = 6;

/// A posted message.
#[derive(Debug)]
struct Posted {
    id: SendId,
    data: Arc<[u8]>,
    use_for: Use,
}

#[derive(Debug)]
struct InFlight {
    id: SendId,
    data: Arc<[u8]>,
    use_for: Use,
    start: usize,
    end: usize,
    /// Of its last transmission.
    sent: Time,
    order: u64,
    transmissions: u32,
    arrived: bool,
    lost: bool,
}

/// A frame to be sent now.
#[derive(Debug, PartialEq, Eq)]
pub struct Cut<'stream> {
    /// Its number in the stream.
    pub sequence: u64,
    /// The oldest frame not known to have arrived.
    pub oldest: u64,
    /// Length of its message.
    pub total: u32,
    /// What its message is for.
    pub use_for: Use,
    /// Whether it begins its message.
    pub first: bool,
    /// Whether it ends it.
    pub last: bool,
    /// Whether it was sent before.
    pub again: bool,
    /// What it carries.
    pub payload: &'stream [u8],
}

/// The sending side of one stream.
#[derive(Debug)]
pub struct Outgoing {
    /// The stream's number: greater than that of any earlier one to this peer.
    pub session: u64,
    posted: VecDeque<Posted>,
    /// Bytes of the first posted message that are under way already.
    cut_bytes: usize,
    flight: VecDeque<InFlight>,
    /// Sequence number of the first frame in flight.
    oldest: u64,
    /// Transmissions so far.
    order: u64,
    /// Of the frame that was sent last among those that have arrived: transmission and time.
    arrived_order: u64,
    arrived_sent: Time,
    smoothed: Option<(Time, Time)>,
    shortest_timeout: Time,
    doublings: u32,
    /// Since when the peer owes an answer.
    unanswered: Option<Time>,
}

impl Outgoing {
    /// A stream without messages.
    pub fn new(session: u64, shortest_timeout: Time) -> Outgoing {
        Outgoing {
            session,
            posted: VecDeque::new(),
            cut_bytes: 0,
            flight: VecDeque::new(),
            oldest: 0,
            order: 0,
            arrived_order: 0,
            arrived_sent: 0,
            smoothed: None,
            shortest_timeout,
            doublings: 0,
            unanswered: None,
        }
    }

    /// Post a message.
    pub fn post(&mut self, id: SendId, data: Arc<[u8]>, use_for: Use) {
        self.posted.push_back(Posted { id, data, use_for });
    }

    /// Whether nothing is posted or under way.
    pub fn is_idle(&self) -> bool {
        self.posted.is_empty() && self.flight.is_empty()
    }

    /// Whether [`Outgoing::cut`] would return a frame.
    pub fn has_frame(&self) -> bool {
        self.has_new() || self.flight.iter().any(|frame| frame.lost)
    }

    fn has_new(&self) -> bool {
        !self.posted.is_empty() && self.flight.len() < WINDOW_FRAMES
    }

    /// The next frame to be sent, lost ones first.
    pub fn cut(&mut self, now: Time, payload_bytes: usize) -> Option<Cut<'_>> {
        let place = match self.flight.iter().position(|frame| frame.lost) {
            Some(place) => place,
            None if self.has_new() => {
                self.cut_new(payload_bytes);
                self.flight.len() - 1
            }
            None => return None,
        };
        self.order += 1;
        self.unanswered.get_or_insert(now);
        let frame = &mut self.flight[place];
        (frame.sent, frame.order, frame.lost) = (now, self.order, false);
        frame.transmissions += 1;
        Some(Cut {
            sequence: self.oldest + place as u64,
            oldest: self.oldest,
            total: frame.data.len() as u32,
            use_for: frame.use_for,
            first: frame.start == 0,
            last: frame.end == frame.data.len(),
            again: frame.transmissions > 1,
            payload: &frame.data[frame.start..frame.end],
        })
    }

    fn cut_new(&mut self, payload_bytes: usize) {
        let Some(posted) = self.posted.front() else { return };
        let start = self.cut_bytes;
        let end = posted.data.len().min(start + payload_bytes);
        self.flight.push_back(InFlight {
            id: posted.id,
            data: Arc::clone(&posted.data),
            use_for: posted.use_for,
            start,
            end,
            sent: 0,
            order: 0,
            transmissions: 0,
            arrived: false,
            lost: false,
        });
        self.cut_bytes = end;
        if end == posted.data.len() {
            self.posted.pop_front();
            self.cut_bytes = 0;
        }
    }

    /// The peer is alive.
    pub fn heard(&mut self, now: Time) {
        self.unanswered = (!self.flight.is_empty()).then_some(now);
    }

    /// Note what has arrived; `complete` is told of each message that has, whole.
    pub fn acknowledged(&mut self, now: Time, ack: &Ack, mut complete: impl FnMut(SendId)) {
        let end = self.oldest + self.flight.len() as u64;
        // A number that was never sent is a lie; an older one was overtaken by a newer one.
        if ack.session != self.session || ack.next > end || ack.next < self.oldest {
            return;
        }
        let mut sample = None;
        let mut progress = false;
        let (mut order, mut sent) = (self.arrived_order, self.arrived_sent);
        let mut arrived = |frame: &mut InFlight| {
            if !frame.arrived {
                (frame.arrived, frame.lost, progress) = (true, false, true);
                (order, sent) = (order.max(frame.order), sent.max(frame.sent));
                if frame.transmissions == 1 {
                    sample = Some(now.saturating_sub(frame.sent));
                }
            }
        };
        for _ in self.oldest..ack.next {
            if let Some(mut frame) = self.flight.pop_front() {
                arrived(&mut frame);
                if frame.end == frame.data.len() {
                    complete(frame.id);
                }
            }
        }
        self.oldest = ack.next;
        for (bit, frame) in self.flight.iter_mut().skip(1).take(64).enumerate() {
            if ack.further >> bit & 1 == 1 {
                arrived(frame);
            }
        }
        (self.arrived_order, self.arrived_sent) = (order, sent);
        if progress {
            self.doublings = 0;
        }
        let timeout = self.timeout();
        for frame in &mut self.flight {
            let overtaken = frame.order + REORDER_FRAMES <= order || frame.sent + timeout <= sent;
            frame.lost |= !frame.arrived && overtaken;
        }
        if let Some(sample) = sample {
            self.measure(sample);
        }
        self.heard(now);
    }

    fn measure(&mut self, sample: Time) {
        self.smoothed = Some(match self.smoothed {
            None => (sample, sample / 2),
            Some((mean, deviation)) => {
                ((7 * mean + sample) / 8, (3 * deviation + mean.abs_diff(sample)) / 4)
            }
        });
    }

    fn timeout(&self) -> Time {
        let measured = self.smoothed.map_or(0, |(mean, deviation)| mean + 4 * deviation);
        (measured.max(self.shortest_timeout) << self.doublings).min(LONGEST_TIMEOUT)
    }

    /// When to call [`Outgoing::expire`]; None while nothing is under way.
    pub fn deadline(&self, give_up: Time) -> Option<Time> {
        let first = self.flight.front()?;
        // One that is to be sent again waits for the interface, not for the peer.
        let resend = (!first.lost).then_some(first.sent + self.timeout());
        let end = self.unanswered.map(|since| since + give_up);
        [resend, end].into_iter().flatten().min()
    }

    /// Time has passed: send the oldest frame again when it is due. False when the peer is given up.
    pub fn expire(&mut self, now: Time, give_up: Time) -> bool {
        if self.unanswered.is_some_and(|since| now >= since + give_up) {
            return false;
        }
        let timeout = self.timeout();
        if let Some(first) = self.flight.front_mut() {
            // Only this one: the answer to it tells which others are missing.
            if !first.lost && now >= first.sent + timeout {
                first.lost = true;
                self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
            }
        }
        true
    }

    /// End this stream and begin the next; `fail` is told of each message that was not complete.
    pub fn fail(&mut self, failure: Failure, mut fail: impl FnMut(SendId, Failure)) {
        let mut last = None;
        let ids = self.flight.iter().map(|frame| frame.id);
        for id in ids.chain(self.posted.iter().map(|posted| posted.id)) {
            if last.replace(id) != Some(id) {
                fail(id, failure);
            }
        }
        *self = Outgoing::new(self.session + 1, self.shortest_timeout);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(messages: usize) -> Outgoing {
        let mut stream = Outgoing::new(7, MILLISECOND);
        for id in 0..messages {
            stream.post(id as u64, Arc::from(vec![0; 10]), Use::Plain);
        }
        stream
    }

    fn sent(stream: &mut Outgoing, now: Time) -> Vec<u64> {
        let mut sequences = Vec::new();
        while let Some(cut) = stream.cut(now, 100) {
            sequences.push(cut.sequence);
        }
        sequences
    }

    fn acknowledge(stream: &mut Outgoing, now: Time, next: u64, further: u64) -> Vec<SendId> {
        let mut complete = Vec::new();
        let ack = Ack { session: 7, next, further };
        stream.acknowledged(now, &ack, |id| complete.push(id));
        complete
    }

    #[test]
    fn sends_again_what_three_later_ones_overtook_and_nothing_else() {
        let mut stream = stream(6);
        assert_eq!(sent(&mut stream, 0), [0, 1, 2, 3, 4, 5]);
        assert_eq!(acknowledge(&mut stream, 10, 1, 0b11), [0]);
        assert_eq!(sent(&mut stream, 10), []);
        assert_eq!(acknowledge(&mut stream, 20, 1, 0b111), []);
        assert_eq!(sent(&mut stream, 20), [1]);
        assert_eq!(acknowledge(&mut stream, 30, 6, 0), [1, 2, 3, 4, 5]);
        assert!(stream.is_idle());
    }

    #[test]
    fn asks_with_one_frame_and_less_and_less_often() {
        let mut stream = stream(3);
        sent(&mut stream, 0);
        assert_eq!(stream.deadline(1 << 40), Some(MILLISECOND));
        assert!(stream.expire(MILLISECOND, 1 << 40));
        assert_eq!(sent(&mut stream, MILLISECOND), [0]);
        assert_eq!(stream.deadline(1 << 40), Some(3 * MILLISECOND));
        // The answer to it tells that the other two are lost.
        acknowledge(&mut stream, 2 * MILLISECOND, 1, 0);
        assert_eq!(sent(&mut stream, 2 * MILLISECOND), [1, 2]);
    }

    #[test]
    fn gives_a_silent_peer_up_and_begins_a_new_stream() {
        let mut stream = stream(3);
        sent(&mut stream, 5);
        assert!(stream.expire(104, 100));
        assert!(!stream.expire(105, 100));
        let mut failed = Vec::new();
        stream.fail(Failure::PeerLost, |id, _| failed.push(id));
        assert_eq!((failed, stream.session), (vec![0, 1, 2], 8));
        assert!(stream.is_idle() && stream.deadline(100).is_none());
    }

    #[test]
    fn believes_no_acknowledgement_of_what_it_never_sent() {
        let mut stream = stream(100);
        assert_eq!(sent(&mut stream, 0).len(), WINDOW_FRAMES);
        assert_eq!(acknowledge(&mut stream, 1, 65, 0), []);
        assert_eq!(acknowledge(&mut stream, 1, 0, u64::MAX), []);
        assert_eq!(acknowledge(&mut stream, 1, 64, 0).len(), 64);
    }
}
