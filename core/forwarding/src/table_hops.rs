//! The next hops of tables, one for each VLAN: what a plan with next-hop tables has at each switch.

use crate::fabric::Fabric;

/// In place of a destination's column: no host is there.
const NO_COLUMN: u32 = u32::MAX;
/// In place of a table: no table has this VLAN.
const NO_TABLE: u16 = u16::MAX;

/// The next hops to each switch that has hosts, in each VLAN.
///
/// A next hop is 0, or the place of its channel among those that leave the switch, from 1: mostly one
/// byte. Those of all VLANs at one switch lie next to each other.
#[derive(Debug)]
pub struct TableHops {
    tables: usize,
    /// By VLAN: its table.
    table_of: Vec<u16>,
    /// By destination switch: its column.
    column_of: Vec<u32>,
    /// By switch: where the channels that leave it begin in `leaving`; at last, their number.
    first: Vec<u32>,
    leaving: Vec<u32>,
    places: Places,
}

/// (columns, switches, tables).
#[derive(Debug)]
enum Places {
    Narrow(Vec<u8>),
    Wide(Vec<u16>),
}

impl TableHops {
    /// Takes the next hops from `next_hop` (tables, switches, columns): channels, -1 where there is
    /// none. None if a channel does not leave the switch.
    ///
    /// `vlans` are those of the tables; `wanted` has the column of each destination switch that has
    /// hosts.
    pub fn new(
        fabric: &Fabric,
        vlans: &[u16],
        wanted: &[Option<usize>],
        next_hop: &[i32],
    ) -> Option<Self> {
        let switches = fabric.switches();
        let mut by_switch: Vec<Vec<u32>> = vec![Vec::new(); switches];
        let mut place_of = Vec::with_capacity(fabric.channels());
        for channel in 0..fabric.channels() as u32 {
            let of_switch = &mut by_switch[fabric.leaves(channel).0 as usize];
            of_switch.push(channel);
            place_of.push(u16::try_from(of_switch.len()).ok()?);
        }
        let mut first = vec![0];
        by_switch.iter().for_each(|of| first.push(first[first.len() - 1] + of.len() as u32));
        let mut table_of = vec![NO_TABLE; vlans.iter().max().map_or(0, |&max| max.into()) + 1];
        for (table, &vlan) in (0..).zip(vlans) {
            table_of[usize::from(vlan)] = table;
        }
        let mut columns: Vec<usize> = Vec::new();
        let mut column_of = vec![NO_COLUMN; switches];
        for (column_of, &wanted) in column_of.iter_mut().zip(wanted) {
            let Some(column) = wanted else { continue };
            *column_of = columns.len() as u32;
            columns.push(column);
        }
        let width = next_hop.len() / (vlans.len() * switches).max(1);
        let size = columns.len() * switches * vlans.len();
        let mut places = match by_switch.iter().map(Vec::len).max() {
            Some(256..) => Places::Wide(vec![0; size]),
            _ => Places::Narrow(vec![0; size]),
        };
        for at in 0..switches {
            for table in 0..vlans.len() {
                let of_table = &next_hop[(table * switches + at) * width..][..width];
                for (column, &to) in columns.iter().enumerate() {
                    let Ok(channel) = u32::try_from(of_table[to]) else { continue };
                    if fabric.known_end(channel)? as usize != at {
                        return None;
                    }
                    let place = (column * switches + at) * vlans.len() + table;
                    match &mut places {
                        Places::Narrow(places) => {
                            places[place] = place_of[channel as usize] as u8;
                        }
                        Places::Wide(places) => places[place] = place_of[channel as usize],
                    }
                }
            }
        }
        let leaving = by_switch.concat();
        Some(Self { tables: vlans.len(), table_of, column_of, first, leaving, places })
    }

    /// Where the next hops at a switch to another start; None: that one has no hosts.
    fn start(&self, at: u32, to: u32) -> Option<usize> {
        let column = self.column_of[to as usize];
        let switches = self.column_of.len();
        let start = || (column as usize * switches + at as usize) * self.tables;
        (column != NO_COLUMN).then(start)
    }

    /// The next hop at a switch to another.
    #[inline]
    pub(crate) fn get(&self, vlan: u16, at: u32, to: u32) -> Option<u32> {
        let table = *self.table_of.get(usize::from(vlan)).filter(|&&table| table != NO_TABLE)?;
        let place = self.start(at, to)? + usize::from(table);
        let hop = match &self.places {
            Places::Narrow(places) => places[place].into(),
            Places::Wide(places) => u32::from(places[place]),
        };
        Some(self.leaving[(self.first[at as usize] + hop.checked_sub(1)?) as usize])
    }

    /// Adds the next hops at a switch to another, which has hosts, to a key: of all tables.
    pub(crate) fn extend_key(&self, at: u32, to: u32, key: &mut Vec<u32>) {
        let Some(start) = self.start(at, to) else { return };
        let range = start..start + self.tables;
        match &self.places {
            Places::Narrow(places) => key.extend(places[range].iter().map(|&of| u32::from(of))),
            Places::Wide(places) => key.extend(places[range].iter().map(|&of| u32::from(of))),
        }
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
    fn next_hops_are_the_same_in_one_byte_and_in_two() {
        for leaves in [2, 255, 256, 300] {
            let fabric = star(leaves);
            let switches = leaves as usize + 1;
            let mut wanted = vec![None; switches];
            (wanted[1], wanted[leaves as usize]) = (Some(1), Some(leaves as usize));
            // In VLAN 7 to the first host, in VLAN 3 to the second one.
            let mut next_hop = vec![-1; 2 * switches * switches];
            for at in 0..switches {
                let up = 2 * at as i32 - 1;
                next_hop[at * switches + 1] = if at == 0 { 0 } else { up };
                let last = if at == 0 { 2 * leaves as i32 - 2 } else { up };
                next_hop[(switches + at) * switches + leaves as usize] = last;
            }
            let hops = TableHops::new(&fabric, &[7, 3], &wanted, &next_hop).expect("they fit");
            assert_eq!(matches!(hops.places, Places::Narrow(_)), leaves < 256, "{leaves}");
            for at in 0..=leaves {
                for (vlan, table) in [(7, 0), (3, 1)] {
                    for to in [1, leaves] {
                        let place = (table * switches + at as usize) * switches + to as usize;
                        assert_eq!(hops.get(vlan, at, to), u32::try_from(next_hop[place]).ok());
                    }
                }
            }
            assert_eq!([hops.get(4, 0, 1), hops.get(4000, 0, 1), hops.get(7, 0, 0)], [None; 3]);
            next_hop[1] = 1;
            assert!(TableHops::new(&fabric, &[7, 3], &wanted, &next_hop).is_none());
        }
    }
}
