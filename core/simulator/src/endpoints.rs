//! Hosts that send a message before they take more: end points with message classes.
//!
//! Every data packet is a message. A host takes one of a class that requires nothing when it
//! arrives. One of a class that requires another is taken at once while the host has a reserve for
//! it; otherwise it stays in the buffer of the host, which has the limits of a switch's ingress
//! buffer at the end of the same line, until what it requires is sent: to the switch model, the host
//! is a switch that forwards the answer in place of the message. So pauses and deadlocks are those of
//! switches.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::fabric::Fabric;
use crate::message::Message;

/// A class of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageClass {
    /// The class of the message that a host sends to the sender before it takes one of this class.
    pub sends: Option<u8>,
    /// How many of this class a host holds while it has not sent what they require.
    pub reserve: u64,
    /// How many a host may have unanswered at each other host; None: any number.
    pub outstanding: Option<u64>,
    /// What its frames add to the priorities of the tables.
    pub priority: u8,
}

/// A message that is sent for another.
#[derive(Clone, Copy, Debug)]
struct Answer {
    class: u8,
    /// The class and the host that began the transaction.
    began: u8,
    beginner: u32,
    /// The class whose reserve it frees when it is sent.
    frees: Option<u8>,
}

/// The state of all end points.
#[derive(Clone, Debug)]
pub(crate) struct Endpoints {
    classes: Vec<MessageClass>,
    /// The classes that hosts send by themselves. Flows take turns among them.
    begun: Vec<u8>,
    /// (hosts, classes): how many messages a host holds in its reserve.
    held: Vec<u64>,
    /// Transactions with a bound that are not complete: class, source and destination.
    open: BTreeMap<(u8, u32, u32), u64>,
    /// By number of their message.
    answers: BTreeMap<u32, Answer>,
    /// Answers that their receivers have taken.
    pub answered: u64,
}

impl Endpoints {
    /// End points of the hosts of a fabric, whose buffers become those of switches.
    ///
    /// # Errors
    /// Classes that do not exist, or that are only sent for each other; hubs; links of hosts that do
    /// not pause, or use credits.
    pub fn new(classes: &[MessageClass], fabric: &mut Fabric) -> Result<Endpoints, Error> {
        let wrong = |text: &str| Err(Error::new(format!("end points: {text}")));
        let is_required = |class: &u8| classes.iter().any(|one| one.sends == Some(*class));
        if classes.iter().filter_map(|one| one.sends).any(|sent| usize::from(sent) >= classes.len())
        {
            return wrong("a class requires one that does not exist");
        }
        let begun: Vec<u8> = (0..classes.len() as u8).filter(|class| !is_required(class)).collect();
        if begun.is_empty() {
            return wrong("no class is sent for itself alone");
        }
        if fabric.hubs {
            return wrong("hosts of hubs take frames at once");
        }
        for channel in &fabric.down {
            let config = &mut fabric.configs[channel.index()];
            if !config.flow_control.pauses() {
                return wrong("links to hosts do not pause");
            }
            if config.flow_control.uses_credits() {
                return wrong("hosts pause their links, not with credits");
            }
            config.to_switch = true;
        }
        Ok(Endpoints {
            held: vec![0; fabric.hosts() * classes.len()],
            classes: classes.to_vec(),
            begun,
            open: BTreeMap::new(),
            answers: BTreeMap::new(),
            answered: 0,
        })
    }

    /// The class of a message under way.
    pub fn class_of(&self, number: u32, message: &Message) -> u8 {
        let answer = self.answers.get(&number);
        answer.map_or(self.begun[message.flow as usize % self.begun.len()], |one| one.class)
    }

    /// What hosts do with messages of a class.
    pub fn class(&self, class: u8) -> &MessageClass {
        &self.classes[usize::from(class)]
    }

    /// Whether a message is sent for another.
    pub fn is_answer(&self, number: u32) -> bool {
        self.answers.contains_key(&number)
    }

    /// Whether a host may begin another transaction with a message of a class.
    pub fn may_begin(&self, class: u8, from: u32, to: u32) -> bool {
        let open = || self.open.get(&(class, from, to)).copied().unwrap_or(0);
        let is_bounded = |bound: u64| self.class(class).sends.is_some() && open() >= bound;
        !self.class(class).outstanding.is_some_and(is_bounded)
    }

    /// A host has begun a transaction.
    pub fn begin(&mut self, class: u8, from: u32, to: u32) {
        if self.class(class).outstanding.is_some() && self.class(class).sends.is_some() {
            *self.open.entry((class, from, to)).or_default() += 1;
        }
    }

    /// The message `answer` is to be sent for the message `number` of a host that has arrived at
    /// another. Returns whether the receiver has a reserve for that one.
    pub fn owe(&mut self, number: u32, class: u8, (from, to): (u32, u32), answer: u32) -> bool {
        let Some(sent) = self.class(class).sends else { return true };
        let before = self.answers.get(&number).copied();
        let (began, beginner) = before.map_or((class, from), |one| (one.began, one.beginner));
        let reserve = self.class(class).reserve;
        let held = &mut self.held[to as usize * self.classes.len() + usize::from(class)];
        let has_reserve = *held < reserve;
        *held += u64::from(has_reserve);
        let frees = has_reserve.then_some(class);
        self.answers.insert(answer, Answer { class: sent, began, beginner, frees });
        has_reserve
    }

    /// A message has left its host, which has gone to another. Returns a host that may begin another
    /// transaction, if one may.
    pub fn sent(&mut self, number: u32, from: u32, to: u32) -> Option<u32> {
        let answer = self.answers.get_mut(&number)?;
        if let Some(freed) = answer.frees.take() {
            self.held[from as usize * self.classes.len() + usize::from(freed)] -= 1;
        }
        let answer = *answer;
        self.complete(answer, from, to)
    }

    /// A host has taken a message. Returns as [`Endpoints::sent`] does.
    pub fn taken(&mut self, number: u32, from: u32, to: u32) -> Option<u32> {
        let answer = self.answers.remove(&number)?;
        self.answered += 1;
        self.complete(answer, to, from)
    }

    /// An answer is lost.
    pub fn lost(&mut self, number: u32) {
        self.answers.remove(&number);
    }

    /// The host that began a transaction has sent or taken the last message of it, if `host` is that
    /// one and the message requires no other.
    fn complete(&mut self, answer: Answer, host: u32, other: u32) -> Option<u32> {
        if self.class(answer.class).sends.is_some() || answer.beginner != host {
            return None;
        }
        let open = self.open.get_mut(&(answer.began, host, other))?;
        *open = open.saturating_sub(1);
        Some(host)
    }
}
