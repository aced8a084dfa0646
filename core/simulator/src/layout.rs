//! The layout of a forwarding state as [`Routes`].

use forwarding::state::{Hop, HopId, State, Step};

use crate::columns::{Columns, Unicasts};
use crate::error::Error;
use crate::message::ON_TREE;
use crate::routes::{Entry, Routes};
use crate::rows::Rows;

/// The routes of an explored state, see [`crate::Tables::new`].
pub(crate) fn routes_of(state: &State, ports: &[u16]) -> Result<Routes, Error> {
    let fabric = &state.fabric;
    if ports.len() != fabric.channels() {
        return Err(Error::new("tables: each channel of the state must have a port"));
    }
    let unicasts = Unicasts::of(state);
    let columns = unicasts.columns()?;
    let (class, samples) = unicasts.classes(&columns);
    let rows = Rows::of(&unicasts, &samples);
    let mut places = Vec::with_capacity(rows.used.len());
    let mut end = 0;
    for (switch, _) in &rows.used {
        places.push(end as u32);
        end += samples[*switch as usize].len();
    }
    let most = samples.iter().map(Vec::len).max().unwrap_or(0);
    if end + most >= ON_TREE as usize {
        return Err(Error::new("tables: more entries than 32 bits can number"));
    }
    let layout = Layout { unicasts: &unicasts, rows: &rows, places: &places, ports };
    let mut generations = 1;
    let mut entries = Vec::with_capacity(end + most);
    let mut choices = Vec::new();
    for (switch, used) in &rows.used {
        for (sample, hop) in samples[*switch as usize].iter().zip(used) {
            if let (Some(host), Some(id)) = (*sample, *hop) {
                if let Step::AnyOf(sets) = unicasts.step(id, host) {
                    generations = sets.iter().len() as u16;
                }
            }
            entries.push(layout.entry(*sample, *hop, &mut choices)?);
        }
    }
    let nowhere = entries.len() as u32;
    entries.resize(entries.len() + most, Entry::Nowhere);
    let width = if state.first_labels.is_empty() { 1 } else { columns.hosts.len() };
    let (sender, places) = layout.first(&columns, width, nowhere);
    let mut least = vec![0; fabric.switches()];
    for (channel, &port) in (0..).zip(ports) {
        let of_switch = &mut least[fabric.leaves(channel).0 as usize];
        *of_switch = u32::max(*of_switch, u32::from(port) + 1);
    }
    Ok(Routes {
        switches: fabric.switches(),
        column: columns.of,
        class,
        entries,
        choices,
        sender,
        places,
        width,
        ports: least,
        generations,
        entries_of_class: 0,
    })
}

/// The input of entries.
struct Layout<'a> {
    unicasts: &'a Unicasts<'a>,
    rows: &'a Rows,
    /// By row: its start.
    places: &'a [u32],
    ports: &'a [u16],
}

impl Layout<'_> {
    fn place(&self, id: HopId) -> u32 {
        self.places[self.rows.of[id as usize] as usize]
    }

    /// The entry for packets that arrive on a hop, for the hosts in the class of `sample`.
    fn entry(
        &self,
        sample: Option<u32>,
        hop: Option<HopId>,
        choices: &mut Vec<Entry>,
    ) -> Result<Entry, Error> {
        let Some(host) = sample else { return Ok(Entry::Deliver) };
        let Some(id) = hop else { return Ok(Entry::Nowhere) };
        match self.unicasts.step(id, host) {
            Step::Unreached | Step::Next(_, []) => Ok(Entry::Nowhere),
            Step::Next(_, &[only]) => Ok(self.onward(only, host)),
            Step::Next(choice, hops) if choice.takes_one() => {
                let first = choices.len() as u32;
                choices.extend(hops.iter().map(|&id| self.onward(id, host)));
                Ok(Entry::OneOf { first, count: hops.len() as u16 })
            }
            Step::AnyOf(sets) if sets.iter().all(|set| set.len() < 2) => {
                let first = choices.len() as u32;
                let onward = |set: &[HopId]| match *set {
                    [only] => self.onward(only, host),
                    _ => Entry::Nowhere,
                };
                choices.extend(sets.iter().map(onward));
                Ok(Entry::Held { first })
            }
            Step::Next(..) | Step::AnyOf(_) | Step::Unsupported => {
                let (switch, _) =
                    self.unicasts.state.fabric.enters(self.unicasts.state.hop(id).channel);
                Err(Error::new(format!(
                    "tables: switch {switch} cannot be simulated for packets to host {host}: it \
                     copies them, or its rules use something that is not followed"
                )))
            }
        }
    }

    /// The entry that sends packets for `host` on a hop. Packets that would reach another host, or
    /// theirs with a label, are dropped before the link to it.
    fn onward(&self, id: HopId, host: u32) -> Entry {
        let Hop { channel, vc, .. } = self.unicasts.state.hop(id);
        if self.unicasts.delivers(id, host) {
            Entry::Deliver
        } else if let Some(&port) = self.ports.get(channel as usize) {
            Entry::Forward { place: self.place(id), port, priority: vc }
        } else {
            Entry::Nowhere
        }
    }

    /// By host its row, and (rows, width): start of the entries for packets of hosts.
    fn first(&self, columns: &Columns, width: usize, nowhere: u32) -> (Vec<u32>, Vec<u32>) {
        let state = self.unicasts.state;
        let mut row = vec![0; self.unicasts.senders.len()];
        let mut first = Vec::new();
        for (host, &senders) in (0..).zip(&self.unicasts.senders) {
            if senders == 0 {
                continue;
            }
            row[host as usize] = (first.len() / width) as u32;
            for &to in &columns.hosts[..width] {
                let label = state.first_label(host, to);
                let hop = Hop { channel: state.fabric.host_channel(host), label, vc: 0 };
                first.push(state.known_hop(hop).map_or(nowhere, |id| self.place(id)));
            }
        }
        (state.representative.iter().map(|&first| row[first as usize]).collect(), first)
    }
}

#[cfg(test)]
mod tests {
    use forwarding::explore::explore;
    use forwarding::fabric::Fabric;
    use forwarding::state::{Behaviour, Choice, Unsupported};

    use super::*;

    /// Four switches in a line, two hosts each; each host labels what it sends with its number.
    struct Line;

    impl Behaviour for Line {
        fn next(
            &mut self,
            fabric: &Fabric,
            hop: Hop,
            destination: u32,
            out: &mut Vec<Hop>,
        ) -> Result<Choice, Unsupported> {
            let (at, _) = fabric.enters(hop.channel);
            let label = fabric.host(hop.channel).map_or(hop.label, |host| host as u16 + 1);
            out.push(match destination / 2 {
                to if to == at => {
                    Hop { channel: fabric.host_channel(destination), label: 0, vc: 0 }
                }
                to if to > at => Hop { channel: at, label, vc: 1 },
                _ => Hop { channel: 2 + at, label, vc: 1 },
            });
            Ok(Choice::All)
        }
    }

    #[test]
    fn what_is_treated_alike_is_kept_once() {
        // Channel s goes from switch s to the next, channel 3 + s back.
        let up = (0..3).map(|s| ((s, 1), (s + 1, 2)));
        let down = (0..3).map(|s| ((s + 1, 2), (s, 1)));
        let (leaves, enters) = up.chain(down).unzip();
        let hosts: Vec<(u32, u32)> = (0..8).map(|host| (host / 2, 3 + host % 2)).collect();
        let class = |at, host: u16| if host / 2 == at { 4 + host % 2 } else { host / 2 };
        let class = (0..8).flat_map(|host| (0..4).map(move |at| class(at, host))).collect();
        let mut state = State::new(Fabric::new(4, leaves, enters, &hosts), Vec::new(), class);
        explore(&mut state, &mut Line, &[]);
        assert!(state.hops().len() > 24, "hops of eight labels");
        let routes = routes_of(&state, &[2, 2, 2, 3, 3, 3]).unwrap();
        // Two hosts of a switch are one destination; at each switch, labels make no difference.
        assert_eq!(routes.column, [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(routes.width, 1);
        // A row of four classes at each switch, and one where nothing is known.
        assert_eq!(routes.entries.len(), 4 * 4 + 4);
        let forwards = routes.entries.iter().filter(|entry| matches!(entry, Entry::Forward { .. }));
        assert_eq!(forwards.count(), 12);
        let (mut place, column) = routes.first(0, 7);
        for switch in 0..3 {
            let Entry::Forward { place: next, port: 2, priority: 1 } =
                routes.entry(switch, place, column)
            else {
                panic!("switch {switch} sends it up");
            };
            place = next;
        }
        assert_eq!(routes.entry(3, place, column), Entry::Deliver);
    }
}
