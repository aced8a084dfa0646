//! What switches do with frames: unicasts follow a forwarding state, multicasts follow trees.

use std::hint::black_box;
use std::sync::Arc;

use forwarding::state::State;
use switch_model::PRIORITIES;

use crate::error::Error;
use crate::fabric::{Fabric, Node};
use crate::layout::routes_of;
use crate::routes::{Entry, Routes};

/// One branch of a multicast tree at a switch: the channel of a copy, and its priority.
pub type Branch = (u32, u8);

/// What all switches do. Clones share the routes of unicasts.
#[derive(Clone, Debug)]
pub struct Tables {
    routes: Arc<Routes>,
    /// Multicast trees: (tree, switch) -> branches.
    trees: Vec<Vec<Branch>>,
    /// By tree: whether frames on it are broadcasts, of which hosts may send only so many.
    broadcast: Vec<bool>,
    /// The most that a class of messages adds to priorities.
    added: u8,
}

impl Tables {
    /// The tables of an explored `state`. `ports` has, for each of its channels, its position among
    /// the channels that leave its switch, in the order of a [`Fabric`].
    ///
    /// # Errors
    /// A switch copies unicasts, or treats them in a way that cannot be simulated; or there are too
    /// many channels or destinations.
    pub fn new(state: &State, ports: &[u16]) -> Result<Tables, Error> {
        let routes = routes_of(state, ports)?;
        Ok(Tables::of_routes(routes))
    }

    /// Tables without routes between switches: enough for one switch or hub, and for trees.
    pub fn without_routes(fabric: &Fabric) -> Tables {
        let routes = Routes::none(fabric.switches, &fabric.at);
        Tables::of_routes(routes)
    }

    fn of_routes(routes: Routes) -> Tables {
        Tables { routes: Arc::new(routes), trees: Vec::new(), broadcast: Vec::new(), added: 0 }
    }

    /// The same without trees, for `copies` copies of the fabric that no link joins. Switches and
    /// hosts of each copy follow those of the copy before.
    pub fn repeated(&self, copies: usize) -> Tables {
        Tables::of_routes(self.routes.repeated(copies))
    }

    /// The same with entries for classes of messages, which are one copy of all for each: `added` is
    /// what a class adds to priorities.
    ///
    /// # Errors
    /// Priorities or entries that are too many.
    pub(crate) fn with_priorities(
        &self,
        added: impl Iterator<Item = u8> + Clone,
    ) -> Result<Tables, Error> {
        let most = added.clone().max().unwrap_or(0);
        if usize::from(self.priorities() + most) > PRIORITIES {
            let text = format!("end points: priorities are below {PRIORITIES}");
            return Err(Error::new(text));
        }
        let routes = Arc::new(self.routes.for_classes(added)?);
        Ok(Tables { routes, added: most, ..self.clone() })
    }

    /// Start of the entries, and the column, of messages of a class.
    pub(crate) fn first_of_class(&self, from: u32, to: u32, class: u8) -> (u32, u16) {
        let (place, column) = self.routes.first(from, to);
        (place + u32::from(class) * self.routes.entries_of_class, column)
    }

    /// Refuse a fabric that does not match the tables.
    pub(crate) fn check(&self, fabric: &Fabric) -> Result<(), Error> {
        let routes = &self.routes;
        let mut ports = vec![0; fabric.switches];
        for head in &fabric.heads {
            if let Node::Switch(switch) = head.node {
                ports[switch as usize] += 1;
            }
        }
        let enough = ports.iter().zip(&routes.ports).all(|(ports, least)| ports >= least);
        if routes.switches != fabric.switches || routes.column.len() != fabric.hosts() || !enough {
            return Err(Error::new("the tables are for another fabric"));
        }
        Ok(())
    }

    /// Add a multicast tree: `branches` are (switch, channel that leaves it, priority). Trees are
    /// numbered from 0.
    ///
    /// # Errors
    /// A channel that does not leave its switch, or branches that meet again or form a cycle:
    /// frames would arrive twice, or circulate for ever.
    pub fn add_tree(&mut self, fabric: &Fabric, branches: &[(u32, u32, u8)]) -> Result<(), Error> {
        let mut tree = vec![Vec::new(); self.routes.switches];
        let mut entered = vec![false; fabric.channels()];
        for &(switch, channel, priority) in branches {
            let back = fabric.back.get(channel as usize).map(|back| fabric.heads[back.index()]);
            let fits = back.is_some_and(|back| back.node == Node::Switch(switch));
            if !fits || usize::from(priority) >= PRIORITIES {
                let text = format!("tree: channel {channel} does not leave switch {switch}");
                return Err(Error::new(text));
            }
            if std::mem::replace(&mut entered[channel as usize], true) {
                return Err(Error::new(format!("tree: channel {channel} is in it twice")));
            }
            tree[switch as usize].push((channel, priority));
        }
        let mut parents: Vec<Option<u32>> = vec![None; self.routes.switches];
        for &(from, channel, _) in branches {
            if let Node::Switch(switch) = fabric.heads[channel as usize].node {
                if parents[switch as usize].replace(from).is_some() {
                    return Err(Error::new(format!("tree: it enters switch {switch} twice")));
                }
            }
        }
        // Each switch is entered once at most, so a switch with that many ancestors is on a cycle.
        for parent in &parents {
            let mut ancestors = std::iter::successors(*parent, |&at| parents[at as usize]);
            if let Some(switch) = ancestors.nth(self.routes.switches - 1) {
                return Err(Error::new(format!("tree: it has a cycle through switch {switch}")));
            }
        }
        self.trees.extend(tree);
        self.broadcast.push(false);
        Ok(())
    }

    /// Add the tree of a host's broadcasts, as [`Tables::add_tree`] does: what it sends on it is
    /// subject to the limit of its line, [`switch_model::ChannelConfig::broadcast_limit`].
    ///
    /// # Errors
    /// As for [`Tables::add_tree`].
    pub fn add_broadcast(
        &mut self,
        fabric: &Fabric,
        branches: &[(u32, u32, u8)],
    ) -> Result<(), Error> {
        self.add_tree(fabric, branches)?;
        if let Some(last) = self.broadcast.last_mut() {
            *last = true;
        }
        Ok(())
    }

    /// Whether frames on a tree are broadcasts.
    pub(crate) fn is_broadcast(&self, tree: u32) -> bool {
        self.broadcast[tree as usize]
    }

    /// How many multicast trees there are.
    pub fn trees(&self) -> usize {
        self.trees.len() / self.routes.switches.max(1)
    }

    /// Whether there are several next hops anywhere, of which switches choose by sender and
    /// receiver of a packet.
    pub(crate) fn has_choices(&self) -> bool {
        !self.routes.choices.is_empty()
    }

    /// The branches of a tree at a switch.
    pub(crate) fn branches(&self, tree: u32, switch: u32) -> &[Branch] {
        &self.trees[tree as usize * self.routes.switches + switch as usize]
    }

    /// Start of the entries, and the column, of packets from a host to another.
    #[inline]
    pub(crate) fn first(&self, from: u32, to: u32) -> (u32, u16) {
        self.routes.first(from, to)
    }

    /// What a switch does with a unicast packet.
    #[inline]
    pub(crate) fn entry(&self, switch: u32, place: u32, column: u16) -> Entry {
        self.routes.entry(switch, place, column)
    }

    /// Prefetch where the class of a column at a switch is, which [`Tables::entry`] needs.
    #[inline(always)]
    pub(crate) fn prefetch(&self, switch: u32, column: u16) {
        black_box(self.routes.class.start(switch, column));
    }

    /// The number of priorities that frames may have: hosts send with priority 0, and switches give
    /// them others.
    pub(crate) fn priorities(&self) -> u8 {
        let entries = self.routes.entries.iter().chain(&self.routes.choices);
        let of_unicasts = entries.filter_map(|entry| match *entry {
            Entry::Forward { priority, .. } => Some(priority),
            _ => None,
        });
        let of_trees = self.trees.iter().flatten().map(|&(_, priority)| priority);
        of_unicasts.chain(of_trees).max().unwrap_or(0).max(self.added) + 1
    }

    /// How many generations of rules switches may hold; 1 if the rules do not change.
    pub fn generations(&self) -> u16 {
        self.routes.generations
    }

    /// What one of the choices of [`Entry::OneOf`] and [`Entry::Held`] says.
    pub(crate) fn choice(&self, number: u32) -> Entry {
        self.routes.choices[number as usize]
    }
}
