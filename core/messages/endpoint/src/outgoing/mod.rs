//! The sending side of a stream: messages posted, frames in flight, frames to be sent again.
//!
//! Selective repeat with a window of 64 frames. A frame counts as lost if one that was sent three
//! transmissions or one time-out later has arrived (RFC 9002, 6.1), or if nothing has arrived for
//! the time-out (RFC 6298, doubled each time). The fabric loses frames only if it is defective, so
//! there is no congestion control besides the window: a full network pauses its senders.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::config::{Time, MILLISECOND, WINDOW_FRAMES};
use crate::message::{Failure, MessageKind, SendId};
use crate::wire::Ack;

const REORDER_FRAMES: u64 = 3;
const LONGEST_TIMEOUT: Time = 200 * MILLISECOND;
const MAX_DOUBLINGS: u32 = 6;

/// A posted message.
#[derive(Debug)]
struct Posted {
    id: SendId,
    data: Arc<[u8]>,
    kind: MessageKind,
}

#[derive(Debug)]
struct InFlight {
    id: SendId,
    data: Arc<[u8]>,
    kind: MessageKind,
    start: usize,
    end: usize,
    /// Time and number of its last transmission.
    sent: Time,
    order: u64,
    transmissions: u32,
    arrived: bool,
    lost: bool,
}

/// The next frame to be sent.
#[derive(Debug, PartialEq, Eq)]
pub struct NextFrame<'stream> {
    /// Its number in the stream.
    pub sequence: u64,
    /// The oldest frame not known to have arrived.
    pub oldest: u64,
    /// Length of its message.
    pub total: u32,
    /// Which part of the receiver its message is for.
    pub kind: MessageKind,
    /// Whether it begins its message.
    pub first: bool,
    /// Whether it ends it.
    pub last: bool,
    /// Whether it was sent before.
    pub again: bool,
    /// The payload.
    pub payload: &'stream [u8],
}

/// The sending side of one stream.
#[derive(Debug)]
pub struct Outgoing {
    /// The stream's number, which no other stream to this peer has.
    pub session: u64,
    /// Whether the peer knows this stream. Until then one frame is sent.
    known: bool,
    posted: VecDeque<Posted>,
    /// Bytes of the first posted message that are in flight.
    started_bytes: usize,
    flight: VecDeque<InFlight>,
    /// Sequence number of the first frame in flight.
    oldest: u64,
    /// Transmissions so far.
    order: u64,
    /// Number and time of the last transmission among those that have arrived.
    arrived_order: u64,
    arrived_sent: Time,
    smoothed: Option<(Time, Time)>,
    shortest_timeout: Time,
    doublings: u32,
    /// Since when the peer has not answered.
    unanswered: Option<Time>,
}

impl Outgoing {
    /// A stream without messages.
    pub fn new(session: u64, shortest_timeout: Time) -> Outgoing {
        Outgoing {
            session,
            known: false,
            posted: VecDeque::new(),
            started_bytes: 0,
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
    pub fn post(&mut self, id: SendId, data: Arc<[u8]>, kind: MessageKind) {
        self.posted.push_back(Posted { id, data, kind });
    }

    /// Whether nothing is posted or in flight.
    pub fn is_idle(&self) -> bool {
        self.posted.is_empty() && self.flight.is_empty()
    }

    /// Whether [`Outgoing::next_frame`] would return a frame.
    pub fn has_frame(&self) -> bool {
        self.has_new() || self.flight.iter().any(|frame| frame.lost)
    }

    fn has_new(&self) -> bool {
        let most = if self.known { WINDOW_FRAMES } else { 1 };
        !self.posted.is_empty() && self.flight.len() < most
    }

    /// Return the next frame to be sent, lost ones first.
    pub fn next_frame(&mut self, now: Time, payload_bytes: usize) -> Option<NextFrame<'_>> {
        let place = match self.flight.iter().position(|frame| frame.lost) {
            Some(place) => place,
            None if self.has_new() => {
                self.add_new(payload_bytes);
                self.flight.len() - 1
            }
            None => return None,
        };
        self.order += 1;
        self.unanswered.get_or_insert(now);
        let frame = &mut self.flight[place];
        (frame.sent, frame.order, frame.lost) = (now, self.order, false);
        frame.transmissions += 1;
        Some(NextFrame {
            sequence: self.oldest + place as u64,
            oldest: self.oldest,
            total: frame.data.len() as u32,
            kind: frame.kind,
            first: frame.start == 0,
            last: frame.end == frame.data.len(),
            again: frame.transmissions > 1,
            payload: &frame.data[frame.start..frame.end],
        })
    }

    fn add_new(&mut self, payload_bytes: usize) {
        let Some(posted) = self.posted.front() else { return };
        let start = self.started_bytes;
        let end = posted.data.len().min(start + payload_bytes);
        self.flight.push_back(InFlight {
            id: posted.id,
            data: Arc::clone(&posted.data),
            kind: posted.kind,
            start,
            end,
            sent: 0,
            order: 0,
            transmissions: 0,
            arrived: false,
            lost: false,
        });
        self.started_bytes = end;
        if end == posted.data.len() {
            self.posted.pop_front();
            self.started_bytes = 0;
        }
    }

    /// The peer has answered.
    pub fn answered(&mut self, now: Time) {
        self.unanswered = (!self.flight.is_empty()).then_some(now);
    }

    /// Process an acknowledgement; calls `complete` for each message that has arrived completely.
    pub fn acknowledged(&mut self, now: Time, ack: &Ack, mut complete: impl FnMut(SendId)) {
        let end = self.oldest + self.flight.len() as u64;
        // Ignore numbers that were never sent, and acknowledgements that a newer one has overtaken.
        if ack.session != self.session || ack.next > end || ack.next < self.oldest {
            return;
        }
        self.known = true;
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
        self.answered(now);
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

    /// When to call [`Outgoing::expire`]; None while nothing is in flight.
    pub fn deadline(&self, give_up: Time) -> Option<Time> {
        let first = self.flight.front()?;
        // A frame that will be sent again waits for the interface, not for the peer.
        let resend = (!first.lost).then_some(first.sent + self.timeout());
        let end = self.unanswered.map(|since| since + give_up);
        [resend, end].into_iter().flatten().min()
    }

    /// Mark the oldest frame as lost if its time is over. Returns false if the peer is given up.
    pub fn expire(&mut self, now: Time, give_up: Time) -> bool {
        if self.unanswered.is_some_and(|since| now >= since + give_up) {
            return false;
        }
        let timeout = self.timeout();
        if let Some(first) = self.flight.front_mut() {
            // Only this one: its acknowledgement tells which others are missing.
            if !first.lost && now >= first.sent + timeout {
                first.lost = true;
                self.doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
            }
        }
        true
    }

    /// The oldest frame whose acknowledgement has not been received.
    pub fn oldest(&self) -> u64 {
        self.oldest
    }

    /// The peer will know this stream, of which it has received nothing: send all frames again.
    pub fn restart(&mut self) {
        self.known = true;
        for frame in &mut self.flight {
            (frame.arrived, frame.lost, frame.transmissions) = (false, true, 0);
        }
    }

    /// Whether what is in flight can be sent in another stream without arriving twice: whole
    /// messages, of which no frame was sent twice.
    pub fn can_move(&self) -> bool {
        let whole = self.flight.front().is_none_or(|frame| frame.start == 0);
        whole && self.flight.iter().all(|frame| frame.transmissions <= 1)
    }

    /// Continue as another stream, from its first frame on.
    pub fn renew(&mut self, session: u64) {
        (self.session, self.oldest, self.known) = (session, 0, false);
        for (place, frame) in self.flight.iter_mut().enumerate() {
            (frame.arrived, frame.lost, frame.transmissions) = (false, place == 0, 0);
        }
    }

    /// End this stream and begin that of number `next`; calls `fail` for each incomplete message.
    pub fn fail(&mut self, failure: Failure, next: u64, mut fail: impl FnMut(SendId, Failure)) {
        let mut last = None;
        let ids = self.flight.iter().map(|frame| frame.id);
        for id in ids.chain(self.posted.iter().map(|posted| posted.id)) {
            if last.replace(id) != Some(id) {
                fail(id, failure);
            }
        }
        *self = Outgoing::new(next, self.shortest_timeout);
    }
}
