//! Which part of a fabric each switch and host belongs to.

use switch_model::{ChannelId, Time};

use crate::fabric::{Fabric, Node};

/// How often switches are moved to where most of their neighbours are.
const PASSES: usize = 20;
/// A part may be larger than the others by this share.
const IMBALANCE: f64 = 0.02;

/// The parts of a fabric.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// How many there are.
    pub parts: usize,
    /// By switch and by host.
    pub of_switch: Vec<u8>,
    pub of_host: Vec<u8>,
    /// By channel: where its ends are.
    pub sender: Vec<u8>,
    pub receiver: Vec<u8>,
    /// The least delay of a channel between two parts.
    pub lookahead: Time,
}

impl Places {
    /// The parts of the sender and of the receiver of a channel.
    pub fn ends(&self, channel: ChannelId) -> [usize; 2] {
        [self.sender[channel.index()].into(), self.receiver[channel.index()].into()]
    }
}

/// Divide a fabric into parts with about as many channels each, and few channels between them. None
/// if it has fewer switches than parts.
pub(crate) fn divide(fabric: &Fabric, parts: usize) -> Option<Places> {
    if fabric.switches < parts || parts < 2 {
        return None;
    }
    let graph = Graph::of(fabric);
    let mut of_switch = graph.begin(parts);
    graph.fill(&mut of_switch, parts);
    graph.improve(&mut of_switch, parts);
    let of_host: Vec<u8> = fabric.at.iter().map(|&switch| of_switch[switch as usize]).collect();
    let part_of = |node: Node| match node {
        Node::Switch(switch) => of_switch[switch as usize],
        Node::Host(host) => of_host[host as usize],
    };
    let receiver: Vec<u8> = fabric.heads.iter().map(|head| part_of(head.node)).collect();
    let sender: Vec<u8> = fabric.back.iter().map(|back| receiver[back.index()]).collect();
    let between = (0..fabric.channels()).filter(|&channel| sender[channel] != receiver[channel]);
    let lookahead = between.map(|channel| fabric.configs[channel].delay).min();
    // Parts that no channel joins never need each other.
    let lookahead = lookahead.unwrap_or(Time::MAX);
    Some(Places { parts, of_switch, of_host, sender, receiver, lookahead })
}

/// Switches and the links between them.
struct Graph {
    /// By switch: the switches at the other ends of its links.
    neighbours: Vec<Vec<u32>>,
    /// By switch: how many channels enter it, with those to its hosts.
    weights: Vec<u64>,
    has_hosts: Vec<bool>,
}

impl Graph {
    fn of(fabric: &Fabric) -> Graph {
        let mut neighbours = vec![Vec::new(); fabric.switches];
        let mut weights = vec![0; fabric.switches];
        let mut has_hosts = vec![false; fabric.switches];
        for (channel, head) in fabric.heads.iter().enumerate() {
            let from = fabric.heads[fabric.back[channel].index()].node;
            match (from, head.node) {
                (Node::Switch(from), Node::Switch(to)) => {
                    neighbours[to as usize].push(from);
                    weights[to as usize] += 2;
                }
                (Node::Host(_), Node::Switch(to)) => {
                    weights[to as usize] += 2;
                    has_hosts[to as usize] = true;
                }
                _ => {}
            }
        }
        Graph { neighbours, weights, has_hosts }
    }

    /// Switches with hosts in the order of their numbers; each of the others where most of its
    /// neighbours are, and where there is least.
    fn begin(&self, parts: usize) -> Vec<u8> {
        const NONE: u8 = u8::MAX;
        let all: u64 =
            self.weights.iter().zip(&self.has_hosts).map(|(w, &has)| w * u64::from(has)).sum();
        let mut of_switch = vec![NONE; self.weights.len()];
        let mut loads = vec![0; parts];
        let mut before = 0;
        for (switch, part) in of_switch.iter_mut().enumerate().filter(|&(s, _)| self.has_hosts[s]) {
            // By the middle of its own share.
            let middle = before + self.weights[switch] / 2;
            *part = ((middle * parts as u64 / all.max(1)) as usize).min(parts - 1) as u8;
            loads[usize::from(*part)] += self.weights[switch];
            before += self.weights[switch];
        }
        let mut open: Vec<usize> = (0..of_switch.len()).filter(|&s| of_switch[s] == NONE).collect();
        while !open.is_empty() {
            let is_reached =
                |&s: &usize| self.neighbours[s].iter().any(|&n| of_switch[n as usize] != NONE);
            let (mut now, mut rest): (Vec<usize>, Vec<usize>) =
                open.iter().partition(|s| is_reached(s));
            if now.is_empty() {
                (now, rest) = (rest, now);
            }
            for switch in now {
                let near = self.near(switch, &of_switch, parts);
                let best =
                    (0..parts).max_by_key(|&part| (near[part], std::cmp::Reverse(loads[part])));
                let part = best.unwrap_or(0);
                of_switch[switch] = part as u8;
                loads[part] += self.weights[switch];
            }
            open = rest;
        }
        of_switch
    }

    /// Give each empty part a switch of the one that has most.
    fn fill(&self, of_switch: &mut [u8], parts: usize) {
        let mut counts = counts(of_switch, parts);
        while let Some(empty) = counts.iter().position(|&count| count == 0) {
            let largest = (0..parts).max_by_key(|&part| counts[part]).unwrap_or(0);
            let its = |&switch: &usize| usize::from(of_switch[switch]) == largest;
            let lightest = (0..of_switch.len()).filter(its).min_by_key(|&s| self.weights[s]);
            let Some(switch) = lightest else { return };
            of_switch[switch] = empty as u8;
            counts[largest] -= 1;
            counts[empty] += 1;
        }
    }

    /// By part: how many links a switch has to it.
    fn near(&self, switch: usize, of_switch: &[u8], parts: usize) -> Vec<u64> {
        let mut near = vec![0; parts];
        for &neighbour in &self.neighbours[switch] {
            if let Some(count) = near.get_mut(usize::from(of_switch[neighbour as usize])) {
                *count += 1;
            }
        }
        near
    }

    /// Move switches to other parts as long as that leaves fewer channels between parts, or levels
    /// their sizes.
    fn improve(&self, of_switch: &mut [u8], parts: usize) {
        let total: u64 = self.weights.iter().sum();
        let most = (total as f64 / parts as f64 * (1.0 + IMBALANCE)) as u64;
        let mut loads = vec![0; parts];
        for (switch, &part) in of_switch.iter().enumerate() {
            loads[usize::from(part)] += self.weights[switch];
        }
        let mut counts = counts(of_switch, parts);
        for _ in 0..PASSES {
            let mut moved = false;
            for switch in 0..of_switch.len() {
                let (own, weight) = (usize::from(of_switch[switch]), self.weights[switch]);
                if counts[own] == 1 {
                    continue;
                }
                let near = self.near(switch, of_switch, parts);
                let is_heavy = loads[own] > most;
                let fits = |&part: &usize| {
                    let after = loads[part] + weight;
                    let levels = after < loads[own];
                    part != own
                        && (near[part] > near[own] && (after <= most || levels)
                            || levels && (near[part] == near[own] || is_heavy))
                };
                let best = (0..parts)
                    .filter(fits)
                    .max_by_key(|&part| (near[part], std::cmp::Reverse(loads[part])));
                if let Some(part) = best {
                    loads[own] -= weight;
                    loads[part] += weight;
                    counts[own] -= 1;
                    counts[part] += 1;
                    of_switch[switch] = part as u8;
                    moved = true;
                }
            }
            if !moved {
                return;
            }
        }
    }
}

/// By part: how many switches it has.
fn counts(of_switch: &[u8], parts: usize) -> Vec<usize> {
    let mut counts = vec![0; parts];
    of_switch.iter().for_each(|&part| counts[usize::from(part)] += 1);
    counts
}
