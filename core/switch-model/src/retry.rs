//! What both ends of a link know that repeats frames: link-level retry (LLR), as Ultra Ethernet has
//! it, of which the proposal for the Switch Abstraction Interface (SAI) gives an outline.
//!
//! The line keeps the order of frames and the time of each is known when it is sent, so what its
//! receiver will make of it is decided then, and both ends are in one place: that of the sender. What
//! the receiver answers is kept until it reaches the sender.

use std::collections::VecDeque;

use crate::config::{Buffer, ChannelConfig};
use crate::entries::Hold;
use crate::faults::{Faults, Heard};
use crate::units::{transmission_time, wire_bytes, Time};

/// Settings of links that repeat frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetrySettings {
    /// After so many replays in a row without an acknowledgement of a further frame, a link gives up;
    /// 0: never.
    pub limit: u32,
    /// The longest frame, FCS included.
    pub longest_frame_bytes: u32,
}

impl RetrySettings {
    /// Bytes of frames that the replay buffer of a channel holds: what is on the line for a round
    /// trip, the frame that begins then and the one that was acknowledged too late for it.
    pub fn buffer_bytes(&self, config: &ChannelConfig) -> u64 {
        Buffer::headroom_needed(config.rate_bps, reaction(config), self.longest_frame_bytes)
    }

    /// The time of the replay timer: twice that in which the line carries a whole replay buffer.
    fn timeout(&self, config: &ChannelConfig) -> Time {
        let frame = transmission_time(wire_bytes(self.longest_frame_bytes), config.rate_bps);
        4 * (reaction(config) + frame)
    }
}

/// Half a round trip.
fn reaction(config: &ChannelConfig) -> Time {
    Faults::NONE.reaction((config.rate_bps, config.delay, config.jitter), 0)
}

/// What a link that repeats frames counts. SAI has the same names after `SAI_PORT_STAT_`, apart from
/// the last; those of a port are of the channel that it sends on, or that it receives from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryCount {
    /// The sender: transmissions of frames, repeated ones included.
    TxOk,
    /// Replays that it has completed.
    TxReplay,
    /// Frames that it has discarded when it gave up, or the link was cut.
    TxDiscard,
    /// Acknowledgements that have reached it.
    RxAck,
    /// Negative acknowledgements that have reached it.
    RxNack,
    /// The receiver: frames without errors.
    RxOk,
    /// Frames with errors.
    RxBad,
    /// Frames without errors that it was to receive next.
    RxExpectedGood,
    /// Frames with errors that it was to receive next.
    RxExpectedBad,
    /// Frames before which another is missing.
    RxMissing,
    /// Frames that it has already.
    RxDuplicate,
    /// Replays that it has seen begin.
    RxReplay,
    /// Acknowledgements that it has sent.
    TxAck,
    /// Negative acknowledgements that it has sent.
    TxNack,
    /// How often the sender gave up.
    GivenUp,
}

impl RetryCount {
    /// All of them with their names, in the order of [`RetryCounters::counts`].
    pub const ALL: [(RetryCount, &'static str); 15] = [
        (RetryCount::TxOk, "llr_tx_ok"),
        (RetryCount::TxReplay, "llr_tx_replay"),
        (RetryCount::TxDiscard, "llr_tx_discard"),
        (RetryCount::RxAck, "llr_rx_ack_ctl_os"),
        (RetryCount::RxNack, "llr_rx_nack_ctl_os"),
        (RetryCount::RxOk, "llr_rx_ok"),
        (RetryCount::RxBad, "llr_rx_bad"),
        (RetryCount::RxExpectedGood, "llr_rx_expected_seq_good"),
        (RetryCount::RxExpectedBad, "llr_rx_expected_seq_bad"),
        (RetryCount::RxMissing, "llr_rx_missing_seq"),
        (RetryCount::RxDuplicate, "llr_rx_duplicate_seq"),
        (RetryCount::RxReplay, "llr_rx_replay"),
        (RetryCount::TxAck, "llr_tx_ack_ctl_os"),
        (RetryCount::TxNack, "llr_tx_nack_ctl_os"),
        (RetryCount::GivenUp, "given_up"),
    ];
}

/// Counters of a channel of a link that repeats frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryCounters {
    /// By [`RetryCount`], in the order of [`RetryCount::ALL`].
    pub counts: [u64; RetryCount::ALL.len()],
    /// The most bytes in the replay buffer so far.
    pub peak_bytes: u64,
    /// The sum of the bytes in the replay buffer over time: divided by it, their mean.
    pub byte_time: u128,
}

impl RetryCounters {
    /// One of the counts.
    pub fn count(&self, of: RetryCount) -> u64 {
        self.counts[of as usize]
    }

    pub(crate) fn add(&mut self, to: RetryCount) {
        self.counts[to as usize] += 1;
    }

    /// What was counted since `before`; the peak stays as it is.
    pub fn since(&self, before: &RetryCounters) -> RetryCounters {
        let mut since = *self;
        since.byte_time -= before.byte_time;
        for (count, former) in since.counts.iter_mut().zip(before.counts) {
            *count -= former;
        }
        since
    }
}

/// A frame in a replay buffer.
#[derive(Clone, Debug)]
pub(crate) struct Kept<P> {
    pub priority: u8,
    pub bytes: u32,
    pub marked: bool,
    pub turn: u16,
    /// When it was sent first.
    pub since: Time,
    /// None once a transmission has begun that the receiver accepts.
    pub payload: Option<P>,
}

/// An acknowledgement of all frames before a number.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// When it reaches the sender.
    at: Time,
    number: u64,
    /// It is a negative one: the receiver asks for the frame of this number and those behind it.
    asks: bool,
}

/// The state of one channel.
#[derive(Clone, Debug)]
pub(crate) struct Retry<P> {
    settings: RetrySettings,
    buffer_bytes: u64,
    timeout: Time,
    pub counters: RetryCounters,
    /// The replay buffer, its bytes, and the sequence number of its first frame.
    pub kept: VecDeque<Kept<P>>,
    bytes: u64,
    first: u64,
    /// The place of the frame to be repeated next; behind the last: none is.
    pub next: usize,
    /// Replays since the last progress.
    attempts: u32,
    /// When the replay timer ends; MAX: it does not run.
    deadline: Time,
    /// It sends nothing before this, since it has given up and begins anew.
    pub begins: Time,
    /// What the frame in transmission holds.
    pub hold: Hold,
    /// The transmission does not lead to an arrival, or there is none and it waits.
    pub is_unheard: bool,
    /// When [`crate::Model::run_retry`] is due because of the timer, and because it waits.
    pub timer: Time,
    pub wakes: Time,
    /// The receiver: the number of the frame that it accepts next, whether it has asked for it, and
    /// the number that it has seen last.
    expected: u64,
    has_asked: bool,
    seen: Option<u64>,
    answers: VecDeque<Answer>,
}

impl<P> Retry<P> {
    pub fn new(settings: RetrySettings, config: &ChannelConfig) -> Retry<P> {
        Retry {
            settings,
            buffer_bytes: settings.buffer_bytes(config),
            timeout: settings.timeout(config),
            counters: RetryCounters::default(),
            kept: VecDeque::new(),
            bytes: 0,
            first: 0,
            next: 0,
            attempts: 0,
            deadline: Time::MAX,
            begins: 0,
            hold: Hold::Uncharged,
            is_unheard: false,
            timer: Time::MAX,
            wakes: 0,
            expected: 0,
            has_asked: false,
            seen: None,
            answers: VecDeque::new(),
        }
    }

    /// The line is another one from now on. Returns the bytes that headroom needs more than without
    /// retry: those of a longest frame.
    pub fn set_line(&mut self, config: &ChannelConfig) -> u32 {
        self.buffer_bytes = self.settings.buffer_bytes(config);
        self.timeout = self.settings.timeout(config);
        self.settings.longest_frame_bytes
    }

    /// A new frame is sent.
    pub fn add(&mut self, frame: Kept<P>) {
        if self.kept.is_empty() {
            self.deadline = frame.since + self.timeout;
        }
        self.bytes += u64::from(frame.bytes);
        self.counters.peak_bytes = self.counters.peak_bytes.max(self.bytes);
        self.kept.push_back(frame);
        self.next = self.kept.len();
    }

    /// The frame at a place of the buffer is sent: whether its receiver accepts it, and when a
    /// negative acknowledgement reaches the sender, if it sends one. An answer takes until `at`, if the
    /// line does not lose it.
    pub fn receive(
        &mut self,
        place: usize,
        heard: Heard,
        at: Time,
        is_lost: impl FnOnce() -> bool,
    ) -> (bool, Option<Time>) {
        let number = self.first + place as u64;
        self.counters.add(RetryCount::TxOk);
        let is_good = match heard {
            Heard::Good => true,
            Heard::Bad => false,
            Heard::Nothing => return (false, None),
        };
        self.counters.add(if is_good { RetryCount::RxOk } else { RetryCount::RxBad });
        if self.seen.replace(number).is_some_and(|seen| number <= seen) {
            // A replay, of which it may ask for frames again.
            self.counters.add(RetryCount::RxReplay);
            self.has_asked = false;
        }
        let is_next = number == self.expected;
        self.counters.add(match number.cmp(&self.expected) {
            std::cmp::Ordering::Less => RetryCount::RxDuplicate,
            std::cmp::Ordering::Equal if is_good => RetryCount::RxExpectedGood,
            std::cmp::Ordering::Equal => RetryCount::RxExpectedBad,
            std::cmp::Ordering::Greater => RetryCount::RxMissing,
        });
        let is_accepted = is_good && is_next;
        if is_accepted {
            self.expected += 1;
            self.has_asked = false;
        }
        let asks = number >= self.expected && !is_accepted;
        if self.has_asked || !(asks || is_good) {
            return (is_accepted, None);
        }
        self.has_asked = asks;
        self.counters.add(if asks { RetryCount::TxNack } else { RetryCount::TxAck });
        if is_lost() {
            return (is_accepted, None);
        }
        // On a line that was shortened, answers do not overtake each other either.
        let at = self.answers.back().map_or(at, |last| at.max(last.at));
        self.answers.push_back(Answer { at, number: self.expected, asks });
        (is_accepted, asks.then_some(at))
    }

    /// Take the answers that have reached the sender, and look at the timer.
    pub fn hear(&mut self, now: Time) {
        while self.answers.front().is_some_and(|answer| answer.at <= now) {
            let Some(Answer { at, number, asks }) = self.answers.pop_front() else { return };
            self.counters.add(if asks { RetryCount::RxNack } else { RetryCount::RxAck });
            if number > self.first {
                self.attempts = 0;
                while self.first < number {
                    self.drop_first(at);
                }
                self.deadline =
                    if self.kept.is_empty() { Time::MAX } else { at.saturating_add(self.timeout) };
            }
            if asks {
                self.replay(at);
            }
        }
        if self.deadline <= now {
            self.replay(now);
        }
    }

    /// The first frame leaves the replay buffer.
    fn drop_first(&mut self, at: Time) -> Option<Kept<P>> {
        self.first += 1;
        self.next = self.next.saturating_sub(1);
        let frame = self.kept.pop_front()?;
        self.bytes -= u64::from(frame.bytes);
        self.counters.byte_time += kept_for(&frame, at);
        Some(frame)
    }

    fn replay(&mut self, at: Time) {
        self.next = 0;
        self.attempts += 1;
        self.deadline = at + self.timeout;
    }

    /// Whether it has replayed too often.
    pub fn gives_up(&self) -> bool {
        self.settings.limit > 0 && self.attempts > self.settings.limit
    }

    /// Until when no new frame may be sent, if it may not be now: the buffer has no room for it, or
    /// the link begins anew. At that time there may be.
    pub fn waits(&self, now: Time) -> Option<Time> {
        if now < self.begins {
            return Some(self.begins);
        }
        let is_full = self.bytes + u64::from(self.settings.longest_frame_bytes) > self.buffer_bytes;
        let answer = self.answers.front().map_or(Time::MAX, |answer| answer.at);
        is_full.then_some(answer.min(self.deadline))
    }

    /// When the timer ends, if nothing is due then yet.
    pub fn unset_timer(&mut self) -> Option<Time> {
        let is_needed = self.timer == Time::MAX && self.deadline < Time::MAX;
        is_needed.then(|| {
            self.timer = self.deadline;
            self.timer
        })
    }

    /// Discard all that is kept, and have both ends begin anew. Returns what has not arrived.
    pub fn clear(&mut self, now: Time) -> Vec<Kept<P>> {
        let mut discarded = Vec::new();
        while !self.kept.is_empty() {
            discarded.extend(self.drop_first(now).filter(|frame| frame.payload.is_some()));
        }
        self.counters.counts[RetryCount::TxDiscard as usize] += discarded.len() as u64;
        (self.next, self.attempts, self.deadline) = (0, 0, Time::MAX);
        (self.expected, self.has_asked, self.seen) = (self.first, false, None);
        self.answers.clear();
        discarded
    }

    /// The counters at `now`, when answers may have arrived that nobody has taken.
    pub fn counters(&self, now: Time) -> RetryCounters {
        let mut counters = self.counters;
        let mut answers = self.answers.iter().filter(|answer| answer.at <= now).peekable();
        for (number, frame) in (self.first..).zip(&self.kept) {
            while answers.next_if(|answer| answer.number <= number).is_some() {}
            counters.byte_time += kept_for(frame, answers.peek().map_or(now, |answer| answer.at));
        }
        counters
    }
}

/// The bytes of a frame times how long it was kept.
fn kept_for<P>(frame: &Kept<P>, at: Time) -> u128 {
    u128::from(frame.bytes) * u128::from(at.saturating_sub(frame.since))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Time = 1000;

    /// The first frames are sent, of which the receiver hears this, and answers at once.
    fn sent(retry: &mut Retry<()>, heard: &[Heard], loses_answers: bool) {
        for (place, &heard) in (retry.kept.len()..).zip(heard) {
            let since = place as Time * FRAME;
            let (priority, marked, turn) = (0, false, 0);
            retry.add(Kept { priority, bytes: 1000, marked, turn, since, payload: Some(()) });
            repeat(retry, place, heard, loses_answers);
        }
    }

    fn repeat(retry: &mut Retry<()>, place: usize, heard: Heard, loses_answers: bool) {
        let at = retry.kept[place].since + 5 * FRAME;
        if retry.receive(place, heard, at, || loses_answers).0 {
            retry.kept[place].payload = None;
        }
    }

    fn retry(limit: u32) -> Retry<()> {
        let line = crate::Limits::default();
        let config = ChannelConfig {
            rate_bps: 8_000_000_000_000,
            delay: 2 * FRAME,
            flow_control: crate::FlowControl::Pfc,
            buffer: line.with_defaults(8_000_000_000_000, 2 * FRAME, 1000),
            to_switch: true,
            watchdog: None,
            pause_limit: None,
            broadcast_limit: None,
            jitter: 0,
            faults: Faults::NONE,
        };
        Retry::new(RetrySettings { limit, longest_frame_bytes: 1000 }, &config)
    }

    #[test]
    fn one_negative_answer_asks_for_all_that_follows_a_gap() {
        let mut retry = retry(0);
        sent(&mut retry, &[Heard::Good, Heard::Nothing, Heard::Good, Heard::Good], false);
        assert_eq!(retry.counters.count(RetryCount::TxNack), 1);
        retry.hear(10 * FRAME);
        assert_eq!((retry.first, retry.next, retry.kept.len()), (1, 0, 3));
        // The first repeated frame has an error: it is asked for again, and then all arrive.
        repeat(&mut retry, 0, Heard::Bad, false);
        repeat(&mut retry, 1, Heard::Good, false);
        assert_eq!(retry.counters.count(RetryCount::TxNack), 2);
        (0..3).for_each(|place| repeat(&mut retry, place, Heard::Good, false));
        let counts = [RetryCount::RxReplay, RetryCount::RxMissing, RetryCount::RxExpectedBad];
        assert_eq!(counts.map(|of| retry.counters.count(of)), [2, 3, 1]);
        retry.hear(40 * FRAME);
        assert!(retry.kept.is_empty() && retry.deadline == Time::MAX);
    }

    #[test]
    fn without_answers_the_timer_replays_until_the_link_gives_up() {
        let mut retry = retry(3);
        sent(&mut retry, &[Heard::Good; 2], true);
        for attempt in 1..=3 {
            let due = retry.deadline;
            retry.hear(due - 1);
            assert_eq!(retry.next, retry.kept.len(), "not before its time");
            retry.hear(due);
            assert_eq!((retry.next, retry.gives_up()), (0, false), "{attempt}");
            (0..2).for_each(|place| repeat(&mut retry, place, Heard::Good, true));
            retry.next = 2;
        }
        // The receiver has both frames, and takes none of them twice.
        assert_eq!(retry.counters.count(RetryCount::RxDuplicate), 6);
        retry.hear(retry.deadline);
        assert!(retry.gives_up());
        assert!(retry.clear(0).is_empty(), "both have arrived");
    }
}
