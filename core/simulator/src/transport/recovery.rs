//! Recovery of lost packets: what sender and receiver of a queue pair know of each other.
//!
//! Packets of a queue pair have sequence numbers, from 0. The receiver answers each packet:
//!
//! - **Go-back-N** (InfiniBand's reliable connection): a packet that is expected is taken, and
//!   acknowledged with all before. What comes after a missing packet is discarded; the first such
//!   packet is answered by a rejection, which names what is missing, and the sender sends all from
//!   there on again.
//! - **Selective** (IRN: Mittal et al.: Revisiting Network Support for RDMA, SIGCOMM 2018): the
//!   receiver keeps what comes after a missing packet, and its answer names it. The sender takes a
//!   packet for lost when one arrives that it sent later, since packets of a queue pair do not
//!   overtake each other, and sends only that again.
//!
//! When nothing new was acknowledged for a time, the sender sends again all that is not known to
//! have arrived.

use std::collections::{BTreeSet, VecDeque};

use switch_model::{wire_bytes, Time};

use super::settings::RecoveryKind;
use crate::message::HEADER_BYTES;

/// What a sender knows of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    UnderWay,
    Lost,
    Received,
}

/// A packet that is not acknowledged with all before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unacknowledged {
    pub message: u32,
    pub payload: u16,
    /// It is the last one of its message.
    pub last: bool,
    /// What its latency counts from.
    pub born: Time,
    state: State,
    /// How many packets were sent before it, or before it was sent again.
    sent_after: u64,
    /// When it was sent; None if more than once.
    sent: Option<Time>,
}

impl Unacknowledged {
    /// What it takes of the line.
    fn line_bytes(&self) -> u64 {
        wire_bytes(u32::from(self.payload) + HEADER_BYTES).into()
    }
}

/// Bytes on the line, as far as a sender knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bytes {
    /// Of packets that are under way.
    pub in_flight: u64,
    /// Of all packets that have arrived so far,
    pub arrived: u64,
    /// and of all that were taken for lost.
    pub lost: u64,
}

/// The sender of a queue pair.
#[derive(Debug)]
pub(crate) struct Sender {
    kind: RecoveryKind,
    /// The number of the first packet.
    first: u64,
    packets: VecDeque<Unacknowledged>,
    /// Go-back-N: the number of the next packet to send again, or of the next new packet.
    resume: u64,
    /// Selective: how many packets are lost.
    lost: usize,
    sends: u64,
    bytes: Bytes,
}

impl Sender {
    pub fn new(kind: RecoveryKind) -> Sender {
        Sender {
            kind,
            first: 0,
            packets: VecDeque::new(),
            resume: 0,
            lost: 0,
            sends: 0,
            bytes: Bytes::default(),
        }
    }

    /// What is under way, and what has become of the rest.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// When a packet was sent that is not known to have arrived; None if more than once.
    pub fn sent_at(&self, number: u64) -> Option<Time> {
        self.packet(number).filter(|packet| packet.state != State::Received)?.sent
    }

    /// Whether all packets are acknowledged.
    pub fn is_idle(&self) -> bool {
        self.packets.is_empty()
    }

    /// Whether a packet is to be sent again.
    pub fn repeats(&self) -> bool {
        match self.kind {
            RecoveryKind::GoBackN => self.resume < self.end(),
            RecoveryKind::Selective => self.lost > 0,
        }
    }

    /// Whether fewer packets than this are not acknowledged.
    pub fn has_room(&self, window: u32) -> bool {
        self.packets.len() < window as usize
    }

    /// Whether all before this packet is acknowledged, and it is not.
    pub fn misses(&self, number: u64) -> bool {
        self.first == number && !self.is_idle()
    }

    /// A packet that the receiver has taken, and the sender does not know of yet.
    pub fn packet(&self, number: u64) -> Option<&Unacknowledged> {
        self.packets.get(number.checked_sub(self.first)? as usize)
    }

    /// A new packet is sent; returns its number.
    pub fn send(&mut self, at: Time, message: u32, payload: u16, last: bool, born: Time) -> u64 {
        let (state, sent_after, sent) = (State::UnderWay, self.sends, Some(at));
        let packet = Unacknowledged { message, payload, last, born, state, sent_after, sent };
        self.bytes.in_flight += packet.line_bytes();
        self.packets.push_back(packet);
        self.sends += 1;
        self.resume = self.end();
        self.end() - 1
    }

    /// The packet that is to be sent again next, with its number.
    pub fn repeat(&mut self) -> Option<(u64, Unacknowledged)> {
        let place = match self.kind {
            RecoveryKind::GoBackN => (self.resume - self.first) as usize,
            RecoveryKind::Selective => {
                self.packets.iter().position(|packet| packet.state == State::Lost)?
            }
        };
        let packet = self.packets.get_mut(place)?;
        self.lost -= usize::from(packet.state == State::Lost);
        if packet.state != State::UnderWay {
            self.bytes.in_flight += packet.line_bytes();
        }
        packet.state = State::UnderWay;
        packet.sent_after = self.sends;
        packet.sent = None;
        let repeated = *packet;
        self.sends += 1;
        self.resume = self.first + place as u64 + 1;
        Some((self.first + place as u64, repeated))
    }

    /// All packets before `next` are acknowledged: returns those that were not before.
    pub fn acknowledged(&mut self, next: u64) -> Vec<Unacknowledged> {
        let count = next.saturating_sub(self.first).min(self.packets.len() as u64);
        self.first += count;
        self.resume = self.resume.max(self.first);
        let taken: Vec<_> = self.packets.drain(..count as usize).collect();
        self.lost -= taken.iter().filter(|packet| packet.state == State::Lost).count();
        taken.iter().for_each(|packet| self.bytes.count_arrived(packet));
        taken
    }

    /// Selective: the receiver also has this packet, after a missing one.
    pub fn received(&mut self, number: u64) {
        let Some(place) = number.checked_sub(self.first).map(|place| place as usize) else {
            return;
        };
        let Some(packet) = self.packets.get_mut(place) else { return };
        self.lost -= usize::from(packet.state == State::Lost);
        self.bytes.count_arrived(packet);
        packet.state = State::Received;
        let later = packet.sent_after;
        for before in self.packets.iter_mut() {
            if before.state == State::UnderWay && before.sent_after < later {
                before.state = State::Lost;
                self.lost += 1;
                self.bytes.count_lost(before);
            }
        }
    }

    /// Go-back-N: the receiver misses the first packet. For all kinds: nothing was acknowledged for
    /// too long.
    pub fn go_back(&mut self) {
        self.resume = self.first;
        for packet in self.packets.iter_mut().filter(|packet| packet.state == State::UnderWay) {
            packet.state = State::Lost;
            self.lost += 1;
            self.bytes.count_lost(packet);
        }
    }

    fn end(&self) -> u64 {
        self.first + self.packets.len() as u64
    }
}

impl Bytes {
    /// A packet is known to have arrived; its state is still that of before.
    fn count_arrived(&mut self, packet: &Unacknowledged) {
        match packet.state {
            State::UnderWay => self.in_flight -= packet.line_bytes(),
            State::Lost => {}
            State::Received => return,
        }
        self.arrived += packet.line_bytes();
    }

    /// A packet that was under way is lost.
    fn count_lost(&mut self, packet: &Unacknowledged) {
        self.in_flight -= packet.line_bytes();
        self.lost += packet.line_bytes();
    }
}

/// What a control frame of a receiver says: all packets before `next` have arrived, and it answers
/// packet `number`, which has arrived marked or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub next: u64,
    pub number: u64,
    pub is_marked: bool,
}

impl Answered {
    /// The bits of a number relative to `next`; both are in the windows of two round trips.
    const NUMBER_BITS: u32 = 17;
    const MIDDLE: u64 = 1 << (Answered::NUMBER_BITS - 1);
    const MARK: u64 = 1 << 63;

    /// The value that a frame carries.
    pub fn value(self) -> u64 {
        let most = 2 * Answered::MIDDLE - 1;
        let number = (self.number + Answered::MIDDLE).saturating_sub(self.next).min(most);
        let mark = if self.is_marked { Answered::MARK } else { 0 };
        mark | self.next << Answered::NUMBER_BITS | number
    }

    /// The reverse of [`Answered::value`].
    pub fn of(value: u64) -> Answered {
        let next = (value & !Answered::MARK) >> Answered::NUMBER_BITS;
        let relative = value & (2 * Answered::MIDDLE - 1);
        let number = (next + relative).saturating_sub(Answered::MIDDLE);
        Answered { next, number, is_marked: value & Answered::MARK != 0 }
    }
}

/// What a receiver answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It has all packets before `next`, and this one.
    Acknowledgement { next: u64, also: Option<u64> },
    /// Go-back-N: it has all packets before `next`, and misses that.
    Rejection { next: u64 },
}

/// The receiver of a queue pair.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    /// The number of the first packet that is missing.
    pub next: u64,
    /// Selective: packets after it that are there.
    beyond: BTreeSet<u64>,
    /// Go-back-N: a rejection was sent since it is missing.
    rejected: bool,
}

impl Receiver {
    /// A packet has arrived: whether it is taken, and the answer.
    pub fn arrived(&mut self, kind: RecoveryKind, number: u64) -> (bool, Option<Answer>) {
        let mut is_taken = number == self.next;
        let mut also = None;
        if is_taken {
            self.rejected = false;
            self.next += 1;
            while self.beyond.remove(&self.next) {
                self.next += 1;
            }
        } else if number > self.next {
            match kind {
                RecoveryKind::GoBackN if self.rejected => return (false, None),
                RecoveryKind::GoBackN => {
                    self.rejected = true;
                    return (false, Some(Answer::Rejection { next: self.next }));
                }
                RecoveryKind::Selective => {
                    is_taken = self.beyond.insert(number);
                    also = Some(number);
                }
            }
        }
        (is_taken, Some(Answer::Acknowledgement { next: self.next, also }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [RecoveryKind; 2] = [RecoveryKind::GoBackN, RecoveryKind::Selective];

    /// A sender that has sent packets 0 to `count` - 1, of one message each.
    fn sender(kind: RecoveryKind, count: u32) -> Sender {
        let mut sender = Sender::new(kind);
        for message in 0..count {
            assert_eq!(sender.send(0, message, 1000, true, 0), u64::from(message));
        }
        sender
    }

    #[test]
    fn an_answer_is_read_from_the_value_that_its_frame_carries() {
        for next in [0, 1, 65_000, 1 << 40] {
            for (ahead, is_marked) in [(0, true), (7, false), (64_999, true)] {
                let answer = Answered { next, number: next + ahead, is_marked };
                assert_eq!(Answered::of(answer.value()), answer);
                let answer = Answered { next: next + ahead, number: next, is_marked };
                assert_eq!(Answered::of(answer.value()), answer);
            }
        }
    }

    #[test]
    fn bytes_are_under_way_until_they_have_arrived_or_are_lost() {
        let line = u64::from(wire_bytes(1000 + HEADER_BYTES));
        let mut sender = sender(RecoveryKind::Selective, 5);
        let packets = |in_flight, arrived, lost| Bytes {
            in_flight: in_flight * line,
            arrived: arrived * line,
            lost: lost * line,
        };
        assert_eq!(sender.bytes(), packets(5, 0, 0));
        sender.acknowledged(1);
        assert_eq!(sender.bytes(), packets(4, 1, 0));
        // 1 and 2 are lost.
        sender.received(3);
        assert_eq!(sender.bytes(), packets(1, 2, 2));
        assert_eq!(
            (sender.sent_at(1), sender.sent_at(3), sender.sent_at(4)),
            (Some(0), None, Some(0))
        );
        assert_eq!(repeated(&mut sender), [1, 2]);
        assert_eq!(sender.bytes(), packets(3, 2, 2));
        assert_eq!(sender.sent_at(1), None, "it was sent twice");
        sender.acknowledged(5);
        assert_eq!(sender.bytes(), packets(0, 5, 2));
        assert_eq!(sender.sent_at(4), None);
    }

    /// The numbers of the packets that it sends again.
    fn repeated(sender: &mut Sender) -> Vec<u64> {
        let mut numbers = Vec::new();
        while sender.repeats() {
            numbers.push(sender.repeat().unwrap().0);
        }
        numbers
    }

    #[test]
    fn packets_in_order_are_acknowledged_one_by_one() {
        for kind in KINDS {
            let (mut sender, mut receiver) = (sender(kind, 3), Receiver::default());
            for number in 0..3 {
                let (is_taken, answer) = receiver.arrived(kind, number);
                let next = number + 1;
                assert!(is_taken);
                assert_eq!(answer, Some(Answer::Acknowledgement { next, also: None }));
                let done = sender.acknowledged(next);
                assert_eq!(
                    done.iter().map(|packet| packet.message).collect::<Vec<_>>(),
                    [number as u32]
                );
            }
            assert!(sender.is_idle() && !sender.repeats());
        }
    }

    #[test]
    fn go_back_n_rejects_once_and_sends_all_from_the_missing_packet_again() {
        let kind = RecoveryKind::GoBackN;
        let (mut sender, mut receiver) = (sender(kind, 5), Receiver::default());
        assert!(receiver.arrived(kind, 0).0);
        assert_eq!(receiver.arrived(kind, 2), (false, Some(Answer::Rejection { next: 1 })));
        assert_eq!(receiver.arrived(kind, 3), (false, None));
        sender.acknowledged(1);
        sender.go_back();
        assert_eq!(sender.repeat().map(|(number, _)| number), Some(1));
        // What it has sent again is acknowledged while it goes on.
        assert!(receiver.arrived(kind, 1).0);
        sender.acknowledged(2);
        assert_eq!(repeated(&mut sender), [2, 3, 4]);
        assert_eq!(sender.send(0, 5, 1000, true, 0), 5);
        // A new gap is rejected again; a duplicate is acknowledged.
        assert_eq!(receiver.arrived(kind, 3), (false, Some(Answer::Rejection { next: 2 })));
        let again = Answer::Acknowledgement { next: 2, also: None };
        assert_eq!(receiver.arrived(kind, 1), (false, Some(again)));
    }

    #[test]
    fn selective_sends_what_is_missing_again_also_if_it_is_lost_twice() {
        let kind = RecoveryKind::Selective;
        let (mut sender, mut receiver) = (sender(kind, 6), Receiver::default());
        let mut deliver = |sender: &mut Sender, number| {
            let (_, answer) = receiver.arrived(kind, number);
            let Some(Answer::Acknowledgement { next, also }) = answer else { panic!("{answer:?}") };
            let done = sender.acknowledged(next);
            if let Some(also) = also {
                sender.received(also);
            }
            done.len()
        };
        // 1 and 3 are lost.
        for (number, done) in [(0, 1), (2, 0), (4, 0)] {
            assert_eq!(deliver(&mut sender, number), done);
        }
        assert_eq!(repeated(&mut sender), [1, 3]);
        // 1 is lost again: 3, which was sent later, shows it.
        assert_eq!(deliver(&mut sender, 5), 0);
        assert!(!sender.repeats());
        assert_eq!(deliver(&mut sender, 3), 0);
        assert_eq!(repeated(&mut sender), [1]);
        assert_eq!(deliver(&mut sender, 1), 5);
        assert!(sender.is_idle());
        // A duplicate changes nothing.
        assert_eq!(deliver(&mut sender, 3), 0);
        assert!(sender.is_idle() && !sender.repeats());
    }

    #[test]
    fn after_a_timeout_all_is_sent_again_that_is_not_known_to_have_arrived() {
        for (kind, expected) in KINDS.into_iter().zip([vec![0, 1, 2], vec![0, 1]]) {
            let mut sender = sender(kind, 3);
            if kind == RecoveryKind::Selective {
                sender.received(2);
                assert_eq!(repeated(&mut sender), [0, 1]);
            }
            assert!(!sender.repeats());
            sender.go_back();
            assert_eq!(repeated(&mut sender), expected);
        }
    }

    #[test]
    fn packets_that_are_lost_at_random_arrive_in_order() {
        use crate::random::Stream;
        for kind in KINDS {
            let mut stream = Stream::new(3, kind as u64);
            let (mut sender, mut receiver) = (Sender::new(kind), Receiver::default());
            let (mut sent, mut done, mut line) = (0, Vec::new(), VecDeque::new());
            let mut answers = VecDeque::new();
            while done.len() < 500 {
                let loses = |stream: &mut Stream| stream.below(10) == 0;
                if let Some((number, _)) = sender.repeats().then(|| sender.repeat()).flatten() {
                    line.push_back(number);
                } else if sent < 500 && sender.has_room(20) {
                    line.push_back(sender.send(0, sent, 1000, true, 0));
                    sent += 1;
                } else if line.is_empty() && answers.is_empty() {
                    sender.go_back();
                }
                if let Some(number) = line.pop_front().filter(|_| !loses(&mut stream)) {
                    answers.extend(receiver.arrived(kind, number).1);
                }
                match answers.pop_front().filter(|_| !loses(&mut stream)) {
                    Some(Answer::Acknowledgement { next, also }) => {
                        done.extend(sender.acknowledged(next).iter().map(|packet| packet.message));
                        if let Some(also) = also {
                            sender.received(also);
                        }
                    }
                    Some(Answer::Rejection { next }) => {
                        done.extend(sender.acknowledged(next).iter().map(|packet| packet.message));
                        sender.go_back();
                    }
                    None => {}
                }
            }
            assert_eq!(done, (0..500).collect::<Vec<_>>());
            assert_eq!(receiver.next, 500);
        }
    }
}
