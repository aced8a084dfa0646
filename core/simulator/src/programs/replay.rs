//! Recorded programs: each host does in order what its process once did, as fast as the network
//! lets it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::{Process, Target, Time, Wish};

/// One thing that a recorded process did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Give a message to the network, and go on at once.
    Send {
        /// The host that it goes to.
        to: u32,
        /// Its length; at least 1.
        bytes: u64,
    },
    /// Wait for one more message of that host.
    Receive {
        /// The host that it comes from.
        from: u32,
    },
    /// Compute for so long.
    Compute {
        /// How long.
        time: Time,
    },
}

/// When each host's process came to its end; `None` where it has not, or not yet.
pub type Ends = Arc<Mutex<Vec<Option<Time>>>>;

#[derive(Debug)]
struct Replay {
    host: usize,
    steps: Vec<Step>,
    next: usize,
    /// Messages that have come and are not waited for yet.
    arrived: HashMap<u32, u64>,
    computing: bool,
    ends: Ends,
}

impl Replay {
    fn go_on(&mut self, now: Time, wishes: &mut Vec<Wish>) {
        while !self.computing {
            match self.steps.get(self.next) {
                None => {
                    if let Ok(mut ends) = self.ends.lock() {
                        ends[self.host].get_or_insert(now);
                    }
                    return;
                }
                Some(&Step::Send { to, bytes }) => {
                    wishes.push(Wish::Send { to: Target::Host(to), bytes, tag: 0 });
                }
                Some(Step::Receive { from }) => match self.arrived.get_mut(from) {
                    Some(count) if *count > 0 => *count -= 1,
                    _ => return,
                },
                Some(&Step::Compute { time }) => {
                    self.computing = true;
                    wishes.push(Wish::Wake { at: now + time, tag: 0 });
                }
            }
            self.next += 1;
        }
    }
}

impl Process for Replay {
    fn begin(&mut self, now: Time, wishes: &mut Vec<Wish>) {
        self.go_on(now, wishes);
    }

    fn received(&mut self, now: Time, from: u32, _tag: u64, wishes: &mut Vec<Wish>) {
        *self.arrived.entry(from).or_default() += 1;
        self.go_on(now, wishes);
    }

    fn woken(&mut self, now: Time, _tag: u64, wishes: &mut Vec<Wish>) {
        self.computing = false;
        self.go_on(now, wishes);
    }
}

/// Processes for the hosts that do these steps, and when they end. A host without steps ends at
/// once.
#[must_use]
pub fn replay(hosts: Vec<Vec<Step>>) -> (Vec<Box<dyn Process>>, Ends) {
    let ends: Ends = Arc::new(Mutex::new(vec![None; hosts.len()]));
    let processes = hosts
        .into_iter()
        .enumerate()
        .map(|(host, steps)| {
            Box::new(Replay {
                host,
                steps,
                next: 0,
                arrived: HashMap::new(),
                computing: false,
                ends: Arc::clone(&ends),
            }) as Box<dyn Process>
        })
        .collect();
    (processes, ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(steps: Vec<Step>) -> (Box<dyn Process>, Ends) {
        let (mut processes, ends) = replay(vec![steps]);
        (processes.remove(0), ends)
    }

    #[test]
    fn a_process_waits_for_what_it_receives_and_while_it_computes() {
        let (mut process, ends) = one(vec![
            Step::Send { to: 3, bytes: 10 },
            Step::Receive { from: 2 },
            Step::Compute { time: 50 },
            Step::Send { to: 2, bytes: 20 },
        ]);
        let mut wishes = Vec::new();
        process.begin(0, &mut wishes);
        assert_eq!(wishes, [Wish::Send { to: Target::Host(3), bytes: 10, tag: 0 }]);
        wishes.clear();
        process.received(7, 3, 0, &mut wishes);
        assert_eq!(wishes, [], "it waits for another host");
        process.received(9, 2, 0, &mut wishes);
        assert_eq!(wishes, [Wish::Wake { at: 59, tag: 0 }]);
        wishes.clear();
        process.received(20, 2, 0, &mut wishes);
        assert_eq!(wishes, [], "it computes");
        process.woken(59, 0, &mut wishes);
        assert_eq!(wishes, [Wish::Send { to: Target::Host(2), bytes: 20, tag: 0 }]);
        assert_eq!(*ends.lock().unwrap(), [Some(59)]);
    }

    #[test]
    fn messages_that_come_early_are_kept_by_sender() {
        let (mut process, ends) = one(vec![
            Step::Receive { from: 1 },
            Step::Receive { from: 2 },
            Step::Receive { from: 2 },
        ]);
        let mut wishes = Vec::new();
        process.begin(0, &mut wishes);
        process.received(1, 2, 0, &mut wishes);
        process.received(2, 2, 0, &mut wishes);
        assert_eq!(*ends.lock().unwrap(), [None]);
        process.received(3, 1, 0, &mut wishes);
        assert_eq!(*ends.lock().unwrap(), [Some(3)]);
    }
}
