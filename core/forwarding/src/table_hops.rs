//! The next hops of tables, one for each VLAN: what a plan with next-hop tables has at each switch.

use std::sync::Arc;

use graph::next_hops::NextHops;

use crate::fabric::Fabric;

/// In place of a destination's column: no host is there.
const NO_COLUMN: u32 = u32::MAX;
/// In place of a table: no table has this VLAN.
const NO_TABLE: u16 = u16::MAX;

/// The next hops to each switch that has hosts, in each VLAN.
#[derive(Debug)]
pub struct TableHops {
    next_hops: Arc<NextHops>,
    /// By VLAN: its table.
    table_of: Vec<u16>,
    /// By destination switch: its column.
    column_of: Vec<u32>,
}

impl TableHops {
    /// Takes the tables of some VLANs; None if a channel does not leave its switch.
    ///
    /// `vlans` are those of the tables; `wanted` has the column of each destination switch that has
    /// hosts.
    ///
    /// # Panics
    /// There are not as many VLANs as tables, or a column is not there.
    pub fn new(
        fabric: &Fabric,
        vlans: &[u16],
        wanted: &[Option<usize>],
        next_hops: Arc<NextHops>,
    ) -> Option<Self> {
        assert_eq!(vlans.len(), next_hops.tables(), "each table has a VLAN");
        assert!(wanted.iter().flatten().all(|&column| column < next_hops.width()));
        for at in 0..fabric.switches() {
            let leaves = |&channel: &u32| fabric.known_end(channel) == Some(at as u32);
            let mut channels = next_hops.of_switch(at).iter().flat_map(|&of| u32::try_from(of));
            if !channels.all(|channel| leaves(&channel)) {
                return None;
            }
        }
        let mut table_of = vec![NO_TABLE; vlans.iter().max().map_or(0, |&max| max.into()) + 1];
        for (table, &vlan) in (0..).zip(vlans) {
            table_of[usize::from(vlan)] = table;
        }
        let column = |of: &Option<usize>| of.map_or(NO_COLUMN, |column| column as u32);
        Some(Self { next_hops, table_of, column_of: wanted.iter().map(column).collect() })
    }

    /// The next hop at a switch to another.
    #[inline]
    pub(crate) fn get(&self, vlan: u16, at: u32, to: u32) -> Option<u32> {
        let table = *self.table_of.get(usize::from(vlan)).filter(|&&table| table != NO_TABLE)?;
        let column = self.column_of[to as usize];
        if column == NO_COLUMN {
            return None;
        }
        self.next_hops.get(table.into(), at as usize, column as usize).try_into().ok()
    }

    /// How many classes of destinations there are at a switch; they are numbered from 0.
    pub(crate) fn class_count(&self, at: u32) -> usize {
        self.next_hops.of_switch(at as usize).len() / self.next_hops.tables().max(1)
    }

    /// The class of a switch, which has hosts, at another: those of one class have the same next
    /// hops there in all VLANs.
    pub(crate) fn class(&self, at: u32, to: u32) -> u16 {
        self.next_hops.classes(at as usize)[self.column_of[to as usize] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A star: switch 0 has channels to and from each of `leaves` others.
    fn star(leaves: u32) -> Fabric {
        let out = (1..=leaves).map(|leaf| ((0, leaf), (leaf, 1)));
        let ends: Vec<_> = out.flat_map(|(a, b)| [(a, b), (b, a)]).collect();
        let (leaving, entering) = ends.into_iter().unzip();
        Fabric::new(leaves as usize + 1, leaving, entering, &[(1, 2), (leaves, 2)])
    }

    #[test]
    fn vlans_have_the_next_hops_of_their_tables() {
        let leaves = 3;
        let fabric = star(leaves);
        let switches = leaves as usize + 1;
        // In VLAN 7 to the first host, in VLAN 3 to the last one.
        let mut next_hop = vec![-1; 2 * switches * switches];
        for at in 0..switches {
            let up = 2 * at as i32 - 1;
            next_hop[at * switches + 1] = if at == 0 { 0 } else { up };
            let last = if at == 0 { 2 * leaves as i32 - 2 } else { up };
            next_hop[(switches + at) * switches + leaves as usize] = last;
        }
        let hops = |array: &[i32], wanted: &[Option<usize>]| {
            let next_hops = NextHops::from_array(array, (2, switches, switches)).expect("it fits");
            TableHops::new(&fabric, &[7, 3], wanted, Arc::new(next_hops))
        };
        let wanted = [None, Some(1), None, Some(3)];
        let made = hops(&next_hop, &wanted).expect("channels leave their switches");
        for at in 0..=leaves {
            for to in [1, leaves] {
                for (vlan, table) in [(7, 0), (3, 1)] {
                    let place = (table * switches + at as usize) * switches + to as usize;
                    assert_eq!(made.get(vlan, at, to), u32::try_from(next_hop[place]).ok());
                }
            }
            assert_ne!(made.class(at, 1), made.class(at, leaves));
        }
        assert_eq!([made.get(4, 0, 1), made.get(4000, 0, 1), made.get(7, 0, 0)], [None; 3]);
        next_hop[1] = 1;
        assert!(hops(&next_hop, &wanted).is_none());
    }
}
