//! Next-hop tables with equal destinations grouped, and what hosts send.

use rustc_hash::FxHashMap;

use crate::fabric::Fabric;
use crate::state::NOT_SENT;
use crate::tables::{Action, Tables, HERE};
use crate::turn_rows::TurnRows;
use crate::what_if::dependency_nodes::DependencyNodes;

/// What a switch does with a group of destinations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Act {
    /// It delivers to the destination.
    pub delivers: bool,
    /// Some packets are dropped, or delivered elsewhere.
    pub loses: bool,
    /// What it does is not known.
    pub unknown: bool,
    /// The label map that it applies before it looks at its table again.
    pub relabel: Option<u32>,
    /// The channels are a link to whose other end packets go: what comes from there has arrived.
    pub link: bool,
    /// The channels of which packets take any one, ascending.
    pub channels: Box<[u32]>,
}

impl Act {
    /// Whether the switch is where packets arrive, as far as routing is concerned.
    pub fn is_end(&self) -> bool {
        self.delivers || self.relabel.is_some()
    }
}

/// Acts by number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Acts {
    all: Vec<Act>,
    numbers: FxHashMap<Act, u32>,
}

impl Acts {
    pub fn number(&mut self, act: Act) -> u32 {
        if let Some(&number) = self.numbers.get(&act) {
            return number;
        }
        let number = self.all.len() as u32;
        self.all.push(act.clone());
        self.numbers.insert(act, number);
        number
    }

    pub fn get(&self, number: u32) -> &Act {
        &self.all[number as usize]
    }
}

/// What hosts send in one way.
#[derive(Debug, Clone)]
pub struct Sent {
    /// (hosts, destinations): the label at the start, [`NOT_SENT`]: nothing is sent. Empty:
    /// everybody sends to all others with label 0.
    pub first_labels: Vec<u16>,
    /// What is added to these labels.
    pub label: u16,
    /// Whether the pairs are counted; the same pairs may be sent in several ways.
    pub counted: bool,
}

/// Packets for a group from hosts of one switch that are treated alike.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    /// A host that sends them.
    pub source: u32,
    /// One of the destinations.
    pub destination: u32,
    pub label: u16,
    /// The pairs of a host and a destination that are counted.
    pub pairs: u64,
}

/// The groups of destinations, what switches do with each, and what is sent to each.
#[derive(Debug, Clone)]
pub struct Network {
    pub(crate) fabric: Fabric,
    pub(crate) acts: Acts,
    /// By group and switch: the number of the act, as read.
    pub(crate) rows: Vec<Vec<u32>>,
    /// By group, layer and switch: the acts that follow if no next hop of the first one is left.
    pub(crate) fallbacks: Vec<Vec<Vec<u32>>>,
    pub(crate) demands: Vec<Vec<Demand>>,
    pub(crate) group_of: Vec<u32>,
    /// By label: the group that tables are asked for.
    pub(crate) towards: Vec<Option<u32>>,
    pub(crate) relabelled: Vec<u16>,
    pub(crate) vc_row: TurnRows,
    pub(crate) vcs: Vec<u8>,
    pub(crate) vc_labels: Vec<u16>,
    pub(crate) dependency_nodes: DependencyNodes,
}

/// In fallbacks: there is none.
pub(crate) const NONE: u32 = u32::MAX;

impl Network {
    /// Groups the destinations of `tables`. `fallbacks` (layers, destinations, switches) are
    /// numbers of actions, -1: none. Pairs with the last `unread` hosts, or with destinations after
    /// the hosts, are not counted.
    pub fn new(
        fabric: Fabric,
        tables: Tables,
        fallbacks: &[i32],
        (sent, unread): (&[Sent], u32),
        dependency_nodes: DependencyNodes,
    ) -> Self {
        let mut network = Self {
            fabric,
            acts: Acts::default(),
            rows: Vec::new(),
            fallbacks: Vec::new(),
            demands: Vec::new(),
            group_of: Vec::new(),
            towards: Vec::new(),
            relabelled: tables.relabelled,
            vc_row: tables.vc_row,
            vcs: tables.vcs,
            vc_labels: tables.vc_labels,
            dependency_nodes,
        };
        let switches = network.fabric.switches();
        let count = tables.class.len() / switches.max(1);
        let mut known: FxHashMap<(Vec<u32>, Vec<Vec<u32>>), u32> = FxHashMap::default();
        for destination in 0..count {
            let first = |at: usize| {
                let class = tables.class[destination * switches + at];
                tables.action_of[tables.first_class[at] as usize + usize::from(class)] as usize
            };
            let row: Vec<u32> = (0..switches)
                .map(|at| network.act(at, destination, &tables.actions[first(at)]))
                .collect();
            let mut layers = Vec::new();
            for layer in fallbacks.chunks_exact((count * switches).max(1)) {
                let numbers = layer[destination * switches..][..switches].iter().enumerate();
                let mut of = Vec::with_capacity(switches);
                for (at, &number) in numbers {
                    of.push(match usize::try_from(number) {
                        Ok(number) => network.act(at, destination, &tables.actions[number]),
                        Err(_) => NONE,
                    });
                }
                layers.push(of);
            }
            let next = network.rows.len() as u32;
            let group = *known.entry((row, layers)).or_insert_with_key(|(row, layers)| {
                network.rows.push(row.clone());
                network.fallbacks.push(layers.clone());
                next
            });
            network.group_of.push(group);
        }
        let of_label = |towards: &Option<u32>| towards.map(|of| network.group_of[of as usize]);
        network.towards = tables.towards.iter().map(of_label).collect();
        network.demands = network.demands(sent, unread);
        network
    }

    fn act(&mut self, at: usize, destination: usize, action: &Action) -> u32 {
        let mut act = Act::default();
        match action {
            Action::Unknown => (act.unknown, act.loses) = (true, true),
            Action::Relabel(map) => act.relabel = Some(*map),
            Action::Send(_, ports) | Action::Link(ports) => {
                let at = at as u32;
                let is_host = destination < self.fabric.hosts();
                let home = is_host
                    .then(|| self.fabric.enters(self.fabric.host_channel(destination as u32)));
                let mut channels = Vec::with_capacity(ports.len());
                for &port in ports {
                    if port == HERE || home == Some((at, port)) {
                        act.delivers = true;
                        continue;
                    }
                    match self.fabric.leaving(at, port) {
                        None => (act.unknown, act.loses) = (true, true),
                        Some(channel) if self.fabric.host(channel).is_some() => act.loses = true,
                        Some(channel) => channels.push(channel),
                    }
                }
                channels.sort_unstable();
                channels.dedup();
                act.loses |= channels.is_empty() && !act.delivers;
                act.channels = channels.into();
                act.link = matches!(action, Action::Link(_));
            }
        }
        self.acts.number(act)
    }

    /// What is sent to each group.
    fn demands(&self, sent: &[Sent], unread: u32) -> Vec<Vec<Demand>> {
        let (hosts, destinations) = (self.fabric.hosts(), self.group_of.len());
        let counted = hosts - unread as usize;
        let sender_classes = self.sender_classes();
        let mut demands: Vec<Vec<Demand>> = vec![Vec::new(); self.rows.len()];
        let mut places: Vec<FxHashMap<(u32, u16), usize>> =
            vec![FxHashMap::default(); demands.len()];
        for of in sent {
            for (source, &sender) in sender_classes.iter().enumerate() {
                for destination in (0..destinations).filter(|&destination| destination != source) {
                    let place = source * destinations + destination;
                    let label = of.first_labels.get(place).map_or(0, |&l| l);
                    if label == NOT_SENT {
                        continue;
                    }
                    let (group, label) = (self.group_of[destination] as usize, label + of.label);
                    let known = &mut demands[group];
                    let place = *places[group].entry((sender, label)).or_insert_with(|| {
                        let (source, destination) = (source as u32, destination as u32);
                        known.push(Demand { source, destination, label, pairs: 0 });
                        known.len() - 1
                    });
                    let expected = of.counted && source < counted && destination < hosts;
                    known[place].pairs += u64::from(expected);
                }
            }
        }
        demands
    }

    /// By host: the first host of its switch whose packets get the same virtual channels.
    fn sender_classes(&self) -> Vec<u32> {
        let mut first = FxHashMap::default();
        let of_host = |host: u32| {
            let channel = self.fabric.host_channel(host);
            let rows = self.vc_row.of(channel);
            *first.entry((self.fabric.enters(channel).0, rows)).or_insert(host)
        };
        (0..self.fabric.hosts() as u32).map(of_host).collect()
    }
}
