//! Which way frames go: what the switches' rules come to, as arrays.

use switch_model::{ChannelId, PRIORITIES};

use crate::fabric::{Fabric, Head, Node};
use crate::message::Packet;
use crate::Error;

const NOWHERE: u16 = u16::MAX;

/// A change of priority: frames that enter a switch by one channel on `was` and leave it by
/// another go on as `becomes`.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The channel that enters the switch.
    pub before: u32,
    /// The channel that leaves it.
    pub after: u32,
    /// Priority on entering.
    pub was: u8,
    /// Priority on leaving.
    pub becomes: u8,
}

/// One branch of a multicast tree at a switch: the channel that a copy leaves by, and its priority.
pub type Branch = (u32, u8);

/// Forwarding by VLAN and destination, the priority by (in port, out port, priority).
#[derive(Clone, Debug)]
pub struct Tables {
    switches: usize,
    vlans: usize,
    /// (switch, VLAN) -> row of `next`.
    rows: Vec<u32>,
    /// (row, destination switch) -> which of the channels that leave the switch.
    next: Vec<u16>,
    /// By host: its VLAN.
    pub(crate) host_vlan: Vec<u16>,
    /// By host: row of `first_priority`.
    host_row: Vec<u32>,
    /// (row, destination switch) -> the priority on admission.
    first_priority: Vec<u8>,
    /// By switch: (in port, out port) -> the new priority of each; empty where none changes.
    changes: Vec<Vec<[u8; PRIORITIES]>>,
    /// By switch: its ports.
    ports: Vec<u32>,
    /// Multicast trees: (tree, switch) -> branches.
    trees: Vec<Vec<Branch>>,
}

impl Tables {
    /// Tables for `fabric`.
    ///
    /// `rows` gives for each (switch, VLAN) a row of `next`, `next` for each (row, destination
    /// switch) which of the channels that leave the switch in order is taken, 65535 for none.
    /// `host_vlan` and `host_row` give each host its VLAN and its row of `first_priority`,
    /// which holds the priority that a frame for each destination switch is admitted with.
    ///
    /// # Errors
    /// Sizes or numbers that do not fit the fabric.
    pub fn new(
        fabric: &Fabric,
        rows: Vec<u32>,
        next: Vec<u16>,
        host_vlan: Vec<u16>,
        host_row: Vec<u32>,
        first_priority: Vec<u8>,
        changes: &[Change],
    ) -> Result<Tables, Error> {
        let switches = fabric.switches;
        let vlans = rows.len().checked_div(switches).unwrap_or(0);
        let wrong = |text: &str| Err(Error::new(format!("tables: {text}")));
        if switches >= usize::from(u16::MAX) || vlans > usize::from(u16::MAX) {
            return wrong("more switches or VLANs than 16 bits can number");
        }
        if rows.len() != vlans * switches
            || rows.iter().any(|&row| (row as usize + 1) * switches > next.len())
        {
            return wrong("a row of `next` is not there");
        }
        if host_vlan.len() != fabric.hosts() || host_row.len() != fabric.hosts() {
            return wrong("each host must have a VLAN and a row");
        }
        if host_vlan.iter().any(|&vlan| usize::from(vlan) >= vlans)
            || host_row.iter().any(|&row| (row as usize + 1) * switches > first_priority.len())
            || first_priority.iter().any(|&priority| usize::from(priority) >= PRIORITIES)
        {
            return wrong("a host's VLAN, row or priority is not there");
        }
        let mut ports = vec![0; switches];
        for head in &fabric.heads {
            if let Node::Switch(switch) = head.node {
                ports[switch as usize] += 1;
            }
        }
        for (place, &row) in rows.iter().enumerate() {
            let row = &next[row as usize * switches..][..switches];
            let most = ports[place / vlans];
            if row.iter().any(|&port| port != NOWHERE && u32::from(port) >= most) {
                return wrong("a channel that is not there");
            }
        }
        let mut tables = Tables {
            switches,
            vlans,
            rows,
            next,
            host_vlan,
            host_row,
            first_priority,
            changes: vec![Vec::new(); switches],
            ports,
            trees: Vec::new(),
        };
        for change in changes {
            tables.add_change(fabric, change)?;
        }
        Ok(tables)
    }

    fn add_change(&mut self, fabric: &Fabric, change: &Change) -> Result<(), Error> {
        let wrong = || Error::new(format!("tables: {change:?} does not fit the fabric"));
        let head = fabric.heads.get(change.before as usize).ok_or_else(wrong)?;
        let Node::Switch(switch) = head.node else { return Err(wrong()) };
        let ports = self.ports[switch as usize];
        let out = change.after.checked_sub(head.first).filter(|&out| out < ports);
        let out = out.ok_or_else(wrong)?;
        if change.was.max(change.becomes) as usize >= PRIORITIES {
            return Err(wrong());
        }
        let of_switch = &mut self.changes[switch as usize];
        if of_switch.is_empty() {
            *of_switch = vec![[0, 1, 2, 3, 4, 5, 6, 7]; (ports * ports) as usize];
        }
        of_switch[(head.port * ports + out) as usize][usize::from(change.was)] = change.becomes;
        Ok(())
    }

    /// Add a multicast tree: `branches` are (switch, channel that leaves it, priority). The
    /// number of the tree is how many there were before.
    ///
    /// # Errors
    /// A channel that does not leave its switch, or branches that meet again or go in a circle:
    /// frames would arrive twice or go round for ever.
    pub fn add_tree(&mut self, fabric: &Fabric, branches: &[(u32, u32, u8)]) -> Result<(), Error> {
        let mut tree = vec![Vec::new(); self.switches];
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
        let mut parents: Vec<Option<u32>> = vec![None; self.switches];
        for &(from, channel, _) in branches {
            if let Node::Switch(switch) = fabric.heads[channel as usize].node {
                if parents[switch as usize].replace(from).is_some() {
                    return Err(Error::new(format!("tree: it enters switch {switch} twice")));
                }
            }
        }
        // Each switch is entered once at most, so what has so many ancestors goes in a circle.
        for parent in &parents {
            let mut ancestors = std::iter::successors(*parent, |&at| parents[at as usize]);
            if let Some(switch) = ancestors.nth(self.switches - 1) {
                return Err(Error::new(format!("tree: it goes in a circle by switch {switch}")));
            }
        }
        self.trees.extend(tree);
        Ok(())
    }

    /// How many multicast trees there are.
    pub fn trees(&self) -> usize {
        self.trees.len() / self.switches.max(1)
    }

    /// The branches of a tree at a switch.
    pub(crate) fn branches(&self, tree: u32, switch: u32) -> &[Branch] {
        &self.trees[tree as usize * self.switches + switch as usize]
    }

    /// The priority that a frame of `from` for a host on `to_switch` is admitted with.
    pub(crate) fn first_priority(&self, from: u32, to_switch: u32) -> u8 {
        let row = self.host_row[from as usize] as usize;
        self.first_priority[row * self.switches + to_switch as usize]
    }

    /// Where a unicast packet that came in by a channel with this head goes on, and its priority.
    pub(crate) fn forward(
        &self,
        head: &Head,
        switch: u32,
        packet: &Packet,
        priority: u8,
    ) -> Option<(ChannelId, u8)> {
        let row = self.rows[switch as usize * self.vlans + usize::from(packet.vlan)] as usize;
        let port = self.next[row * self.switches + usize::from(packet.to_switch)];
        if port == NOWHERE {
            return None;
        }
        let out = ChannelId(head.first + u32::from(port));
        if head.from_host {
            return Some((out, packet.first_priority));
        }
        let changes = &self.changes[switch as usize];
        if changes.is_empty() {
            return Some((out, priority));
        }
        let ports = self.ports[switch as usize];
        let place = (head.port * ports + u32::from(port)) as usize;
        Some((out, changes[place][usize::from(priority)]))
    }
}
