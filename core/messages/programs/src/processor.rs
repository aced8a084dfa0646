//! A processor after LogP: what sending and receiving cost it.

use std::collections::VecDeque;

use simulator::{Target, Time, Wish};

/// What a message costs a processor, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// LogP's o_s: how long it is busy with sending one.
    pub send: Time,
    /// LogP's o_r: how long it is busy with receiving one.
    pub receive: Time,
    /// LogP's g: least time between the beginnings of two sendings by one interface. What
    /// comes in is spaced out by the line that it comes by.
    pub gap: Time,
    /// The part of `receive` that is the interface's interrupt: a message that has come before
    /// the one before it, by the same interface, was received, needs none of its own.
    pub interrupt: Time,
}

/// A message that the processor is to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Letter {
    pub interface: u32,
    pub to: Target,
    pub bytes: u64,
    pub tag: u64,
}

/// The mark of a [`Wish::Wake`] that is the processor's own.
pub(crate) const DONE: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Send(Letter),
    Receive { from: u32, tag: u64 },
}

/// A message that waits to be received.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    interface: usize,
    from: u32,
    tag: u64,
}

/// The most interfaces that a processor has.
pub(crate) const INTERFACES: usize = 2;

/// One processor: it does one thing after the other, sendings before receptions.
#[derive(Debug)]
pub(crate) struct Processor {
    costs: Costs,
    outbox: VecDeque<Letter>,
    inbox: VecDeque<Arrived>,
    busy: Option<Work>,
    next_send: [Time; INTERFACES],
    /// The interface whose interrupt is being served: while it has messages there is no other.
    serving: Option<usize>,
}

impl Processor {
    pub fn new(costs: Costs) -> Self {
        Processor {
            costs,
            outbox: VecDeque::new(),
            inbox: VecDeque::new(),
            busy: None,
            next_send: [0; INTERFACES],
            serving: None,
        }
    }

    /// The program wants this sent.
    pub fn send(&mut self, letter: Letter) {
        self.outbox.push_back(letter);
    }

    /// A network has delivered this.
    pub fn deliver(&mut self, interface: usize, from: u32, tag: u64) {
        self.inbox.push_back(Arrived { interface, from, tag });
    }

    /// Whether all that the program wanted sent has been given to the network.
    pub fn has_sent(&self) -> bool {
        self.outbox.is_empty() && !matches!(self.busy, Some(Work::Send(_)))
    }

    /// Begin the next piece of work if there is nothing being done.
    pub fn work(&mut self, now: Time, wishes: &mut Vec<Wish>) {
        if self.busy.is_some() {
            return;
        }
        let at = if let Some(letter) = self.outbox.pop_front() {
            let next = &mut self.next_send[letter.interface as usize];
            let begins = now.max(*next);
            *next = begins + self.costs.gap;
            self.serving = None;
            self.busy = Some(Work::Send(letter));
            begins + self.costs.send
        } else if let Some((Arrived { from, tag, .. }, cost)) = self.take() {
            self.busy = Some(Work::Receive { from, tag });
            now + cost
        } else {
            return;
        };
        wishes.push(Wish::Wake { at, tag: DONE });
    }

    /// The message to receive next, and what that costs.
    fn take(&mut self) -> Option<(Arrived, Time)> {
        let more = |served| self.inbox.iter().position(|arrived| arrived.interface == served);
        if let Some(place) = self.serving.and_then(more) {
            let cost = self.costs.receive.saturating_sub(self.costs.interrupt);
            return self.inbox.remove(place).map(|arrived| (arrived, cost));
        }
        let arrived = self.inbox.pop_front();
        self.serving = arrived.map(|arrived| arrived.interface);
        arrived.map(|arrived| (arrived, self.costs.receive))
    }

    /// The piece of work is done: what was sent goes to the network, what was received is returned.
    pub fn done(&mut self, wishes: &mut Vec<Wish>) -> Option<(u32, u64)> {
        match self.busy.take()? {
            Work::Send(Letter { interface, to, bytes, tag }) => {
                wishes.push(Wish::SendBy { interface, to, bytes, tag });
                None
            }
            Work::Receive { from, tag } => Some((from, tag)),
        }
    }
}
