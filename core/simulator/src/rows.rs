//! Lays a forwarding state out as [`Routes`]: columns of destinations, and rows of entries.

use forwarding::state::{Choice, Hop, HopId, State, Step};

use crate::message::ON_TREE;
use crate::routes::{Entry, Routes};
use crate::Error;

/// What unicasts of a state can meet.
struct Unicasts<'a> {
    state: &'a State,
    /// By host: its switch.
    at: Vec<u32>,
    /// By host: for how many hosts its unicasts stand, itself included.
    senders: Vec<u32>,
}

/// Destinations that share a class at every switch but their own.
struct Columns {
    /// By host.
    of: Vec<u16>,
    /// By column: its first host.
    hosts: Vec<u32>,
    /// By column: at their own switch, whatever comes for its hosts is delivered.
    direct: Vec<bool>,
}

/// By switch and class: a host in it; None where all are delivered.
type Samples = Vec<Vec<Option<u32>>>;

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
    let mut entries = Vec::with_capacity(end + most);
    let mut choices = Vec::new();
    for (switch, used) in &rows.used {
        for (sample, hop) in samples[*switch as usize].iter().zip(used) {
            entries.push(layout.entry(*sample, *hop, &mut choices)?);
        }
    }
    let nowhere = entries.len() as u32;
    entries.resize(entries.len() + most, Entry::Nowhere);
    let width = if state.first_labels.is_empty() { 1 } else { columns.hosts.len() };
    let (sender, first) = layout.first(&columns, width, nowhere);
    let mut least = vec![0; fabric.switches()];
    for (channel, &port) in (0..).zip(ports) {
        let of_switch = &mut least[fabric.leaves(channel).0 as usize];
        *of_switch = u32::max(*of_switch, u32::from(port) + 1);
    }
    Ok(Routes {
        switches: fabric.switches(),
        columns: columns.hosts.len(),
        column: columns.of,
        class,
        entries,
        choices,
        sender,
        first,
        width,
        ports: least,
    })
}

impl<'a> Unicasts<'a> {
    fn of(state: &'a State) -> Self {
        let fabric = &state.fabric;
        let hosts = fabric.hosts() as u32;
        let mut senders = vec![0; fabric.hosts()];
        for &first in &state.stands_for {
            senders[first as usize] += 1;
        }
        let at = (0..hosts).map(|host| fabric.enters(fabric.host_link(host)).0).collect();
        Self { state, at, senders }
    }

    /// What becomes of packets for a host that come by a hop. That of what no host sends, since it
    /// is its own or another's link that it is sent on, counts as not reached.
    fn step(&self, id: HopId, destination: u32) -> Step<'a> {
        if let Some(host) = self.state.fabric.host(self.state.hop(id).link) {
            let senders = self.senders[host as usize];
            if senders == 0 || (senders == 1 && host == destination) {
                return Step::Unreached;
            }
        }
        self.state.next(id, destination)
    }

    /// Whether a hop brings packets for a host to it, without a label.
    fn delivers(&self, id: HopId, destination: u32) -> bool {
        let Hop { link, label, .. } = self.state.hop(id);
        self.state.fabric.host(link) == Some(destination) && label == 0
    }

    /// By host: whether all that comes for it to its own switch is delivered there.
    fn direct(&self) -> Vec<bool> {
        let fabric = &self.state.fabric;
        let mut hosts = vec![Vec::new(); fabric.switches()];
        for (host, &switch) in (0..).zip(&self.at) {
            hosts[switch as usize].push(host);
        }
        let mut direct = vec![true; self.at.len()];
        for (id, hop) in (0..).zip(self.state.hops()) {
            for &host in &hosts[fabric.enters(hop.link).0 as usize] {
                direct[host as usize] &= match self.step(id, host) {
                    Step::Unreached => true,
                    Step::Next(_, &[only]) => self.delivers(only, host),
                    Step::Next(..) | Step::Unsupported => false,
                };
            }
        }
        direct
    }

    /// Hosts share a column with the first host of their switch that is `direct` as they are, if all
    /// other switches, and what hosts label, treat the two alike.
    fn columns(&self) -> Result<Columns, Error> {
        let (state, hosts) = (self.state, self.at.len() as u32);
        let direct = self.direct();
        let mut first_at = vec![None; state.fabric.switches()];
        let mut like: Vec<u32> = (0..hosts).collect();
        for host in (0..hosts).filter(|&host| direct[host as usize]) {
            let switch = self.at[host as usize] as usize;
            like[host as usize] = *first_at[switch].get_or_insert(host);
        }
        let mut alike = vec![true; self.at.len()];
        let mut compare = |same: &dyn Fn(u32, u32) -> bool| {
            for (host, alike) in (0..).zip(&mut alike) {
                *alike &= same(host, like[host as usize]);
            }
        };
        for switch in 0..state.fabric.switches() as u32 {
            let class = |host| state.class_of(switch, host);
            compare(&|a, b| self.at[a as usize] == switch || class(a) == class(b));
        }
        if !state.first_labels.is_empty() {
            for source in 0..hosts {
                compare(&|a, b| state.first_label(source, a) == state.first_label(source, b));
            }
        }
        let mut columns = Columns { of: Vec::new(), hosts: Vec::new(), direct: Vec::new() };
        for host in 0..hosts {
            let other = if alike[host as usize] { like[host as usize] } else { host };
            if other == host {
                columns.hosts.push(host);
                columns.direct.push(direct[host as usize]);
            }
            let column = columns.of.get(other as usize).copied();
            let column = column.map_or(columns.hosts.len() - 1, usize::from);
            let column = u16::try_from(column)
                .map_err(|_| Error::new("tables: more destinations than 16 bits can number"))?;
            columns.of.push(column);
        }
        Ok(columns)
    }

    /// (switches, columns): the class of each column at each switch, without gaps, and a host of
    /// each class. At its own switch, each column is a class by itself.
    fn classes(&self, columns: &Columns) -> (Vec<u16>, Samples) {
        let switches = self.state.fabric.switches();
        let mut class = Vec::with_capacity(switches * columns.hosts.len());
        let mut samples = Vec::with_capacity(switches);
        for switch in 0..switches as u32 {
            let mut known = vec![None; self.state.class_count(switch) as usize];
            let mut of_switch = Vec::new();
            for (&host, &direct) in columns.hosts.iter().zip(&columns.direct) {
                let next = of_switch.len() as u16;
                let number = if self.at[host as usize] == switch {
                    of_switch.push((!direct).then_some(host));
                    next
                } else {
                    let old = usize::from(self.state.class_of(switch, host));
                    *known[old].get_or_insert_with(|| {
                        of_switch.push(Some(host));
                        next
                    })
                };
                class.push(number);
            }
            samples.push(of_switch);
        }
        (class, samples)
    }
}

/// Which hops have one row of entries.
struct Rows {
    /// By hop: its row.
    of: Vec<u32>,
    /// By row: the switch, and by class a hop that has the row's entry; None: no packet gets there.
    used: Vec<(u32, Vec<Option<HopId>>)>,
}

impl Rows {
    /// Few rows in which no two hops contradict each other. To begin with, all hops into a switch
    /// share one; rows are divided until nobody in them sends the same packets on differently.
    fn of(unicasts: &Unicasts<'_>, samples: &Samples) -> Rows {
        let fabric = &unicasts.state.fabric;
        let hops = unicasts.state.hops();
        let of = hops.iter().map(|hop| fabric.enters(hop.link).0).collect();
        let used = (0..fabric.switches() as u32).map(|switch| (switch, Vec::new())).collect();
        let mut rows = Rows { of, used };
        loop {
            let divided = rows.divided(unicasts, samples);
            let stable = divided.used.len() == rows.used.len();
            rows = divided;
            if stable {
                return rows;
            }
        }
    }

    /// The same with each row divided into rows of hops that agree, as far as these rows can tell.
    fn divided(&self, unicasts: &Unicasts<'_>, samples: &Samples) -> Rows {
        let mut parts: Vec<Vec<u32>> = vec![Vec::new(); self.used.len()];
        let mut next = Rows { of: Vec::with_capacity(self.of.len()), used: Vec::new() };
        for (id, &row) in (0..).zip(&self.of) {
            let (switch, _) = self.used[row as usize];
            let samples = &samples[switch as usize];
            let steps: Vec<Step<'_>> = samples
                .iter()
                .map(|sample| sample.map_or(Step::Unreached, |host| unicasts.step(id, host)))
                .collect();
            let fits = |&part: &u32| {
                let used = &next.used[part as usize].1;
                let known = |class: usize, hop: HopId| {
                    samples[class].map_or(Step::Unreached, |host| unicasts.step(hop, host))
                };
                steps.iter().zip(used).enumerate().all(|(class, (&step, hop))| {
                    hop.is_none_or(|hop| self.agree(unicasts.state, step, known(class, hop)))
                })
            };
            let part = parts[row as usize].iter().copied().find(fits).unwrap_or_else(|| {
                let part = next.used.len() as u32;
                next.used.push((switch, vec![None; steps.len()]));
                parts[row as usize].push(part);
                part
            });
            for (step, used) in steps.iter().zip(&mut next.used[part as usize].1) {
                if used.is_none() && *step != Step::Unreached {
                    *used = Some(id);
                }
            }
            next.of.push(part);
        }
        next
    }

    /// Whether one entry can do for both of what no packet gets to, or do the same.
    fn agree(&self, state: &State, a: Step<'_>, b: Step<'_>) -> bool {
        let same = |a: HopId, b: HopId| {
            let (to_a, to_b) = (state.hop(a), state.hop(b));
            let row = |id: HopId| self.of[id as usize];
            a == b || (to_a.link, to_a.vc) == (to_b.link, to_b.vc) && row(a) == row(b)
        };
        match (a, b) {
            (Step::Unreached, _) | (_, Step::Unreached) => true,
            (Step::Next(how_a, a), Step::Next(how_b, b)) => {
                let alike = how_a == how_b || a.len() < 2;
                alike && a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| same(a, b))
            }
            (a, b) => a == b,
        }
    }
}

/// What entries are written with.
struct Layout<'a> {
    unicasts: &'a Unicasts<'a>,
    rows: &'a Rows,
    /// By row: where it begins.
    places: &'a [u32],
    ports: &'a [u16],
}

impl Layout<'_> {
    fn place(&self, id: HopId) -> u32 {
        self.places[self.rows.of[id as usize] as usize]
    }

    /// The entry for what comes by a hop, for the hosts in the class of `sample`.
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
            Step::Next(Choice::OneOf, hops) => {
                let first = choices.len() as u32;
                choices.extend(hops.iter().map(|&id| self.onward(id, host)));
                Ok(Entry::OneOf { first, count: hops.len() as u16 })
            }
            Step::Next(Choice::All, _) | Step::Unsupported => {
                let (switch, _) =
                    self.unicasts.state.fabric.enters(self.unicasts.state.hop(id).link);
                Err(Error::new(format!(
                    "tables: what switch {switch} does with packets for host {host} cannot be \
                     simulated: it copies them, or more than a packet tells decides"
                )))
            }
        }
    }

    /// What a hop comes to for packets for `host`. Those that reach another host, or theirs with a
    /// label, are lost; they are so before the link to it.
    fn onward(&self, id: HopId, host: u32) -> Entry {
        let Hop { link, vc, .. } = self.unicasts.state.hop(id);
        if self.unicasts.delivers(id, host) {
            Entry::Deliver
        } else if let Some(&port) = self.ports.get(link as usize) {
            Entry::Forward { place: self.place(id), port, priority: vc }
        } else {
            Entry::Nowhere
        }
    }

    /// By host its row, and (rows, width): where the entries for what hosts send begin.
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
                let hop = Hop { link: state.fabric.host_link(host), label, vc: 0 };
                first.push(state.known_hop(hop).map_or(nowhere, |id| self.place(id)));
            }
        }
        (state.stands_for.iter().map(|&first| row[first as usize]).collect(), first)
    }
}
