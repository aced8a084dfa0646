//! `State`, and how one is read from rules.

use std::collections::BTreeSet;
use std::sync::Arc;

use forwarding::explore::explore;
use forwarding::fabric::Fabric;
use forwarding::found::Found;
use forwarding::host_waits::host_waits;
use forwarding::openflow::behaviour::{read, Group};
use forwarding::openflow::generations::{Generations, Order};
use forwarding::state::{Behaviour, Hop, State, TooManyClasses, Unassigned};
use forwarding::trace::{difference, shares, trace};
use numpy::ndarray::ArrayView2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::rules::PySwitch;

type Ends = Vec<(u32, u32)>;
type HopTuple = (u32, u16, u8);
type TraceTuple = (Vec<HopTuple>, Vec<(u32, u16)>, Vec<u32>, Vec<u32>, bool, bool);

/// What is held, what is waited for, the source and the destination.
type FirstFreeTuple = ((u32, u8), Vec<(u32, u8)>, u32, u32);

/// What is held, and what is waited for the first free of.
type HostFirstFreeTuple = ((u32, u8), Vec<(u32, u8)>);

/// Loads as whole numbers and fractions of 2^-64.
type ExactLoads<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u64>>);

/// Hops of one trace that Python gets to see.
const TRACED_HOPS: usize = 1_000_000;

/// A state, explored; see the class of that name in `forwarding.pyi`.
#[pyclass(frozen, name = "State", module = "knotless._core.forwarding")]
pub struct PyState {
    state: Arc<State>,
    found: Found,
    problems: Vec<(u32, String)>,
}

impl PyState {
    /// Explores what hosts can send.
    pub fn explored(
        mut state: State,
        behaviour: &mut (impl Behaviour + Send),
        members: &[Vec<bool>],
    ) -> Self {
        let found = explore(&mut state, behaviour, members);
        Self::found(Arc::new(state), found)
    }

    /// A state with what exploration has shown.
    pub fn found(state: Arc<State>, found: Found) -> Self {
        Self { state, found, problems: Vec::new() }
    }

    /// Adds problems found while the state was explored: (switch, text).
    pub fn with_problems(mut self, problems: Vec<(u32, String)>) -> Self {
        self.problems = problems;
        self
    }

    /// The state itself, explored.
    pub fn state(&self) -> &State {
        &self.state
    }

    fn known(&self, host: u32) -> PyResult<()> {
        let fits = (host as usize) < self.state.fabric.hosts();
        fits.then_some(()).ok_or_else(|| PyValueError::new_err(format!("there is no host {host}")))
    }
}

fn tuple(hop: &Hop) -> HopTuple {
    (hop.channel, hop.label, hop.vc)
}

#[pymethods]
impl PyState {
    #[getter]
    fn undelivered(&self) -> u64 {
        self.found.undelivered
    }

    #[getter]
    fn floods_undelivered(&self) -> Vec<u64> {
        self.found.floods_undelivered.clone()
    }

    #[getter]
    fn lost(&self) -> u64 {
        self.found.lost
    }

    #[getter]
    fn lost_pairs(&self) -> Ends {
        self.found.lost_pairs.clone()
    }

    #[getter]
    fn floods_lost(&self) -> Vec<u64> {
        self.found.floods_lost.clone()
    }

    #[getter]
    fn loads<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.found.loads.clone().into_pyarray(py)
    }

    #[getter]
    fn exact_loads<'py>(&self, py: Python<'py>) -> ExactLoads<'py> {
        let whole: Vec<i64> =
            self.found.exact_loads.iter().map(|&load| (load >> 64) as i64).collect();
        let parts: Vec<u64> = self.found.exact_loads.iter().map(|&load| load as u64).collect();
        (whole.into_pyarray(py), parts.into_pyarray(py))
    }

    #[getter]
    fn switches_passed(&self) -> f64 {
        self.found.switches_passed
    }

    #[getter]
    fn max_switches(&self) -> u32 {
        self.found.max_switches.max(1)
    }

    #[getter]
    fn edges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let columns = |edge: &forwarding::found::Edge| {
            let (before, held) = edge.before;
            let (after, wanted) = edge.after;
            [
                i64::from(before),
                i64::from(held),
                i64::from(after),
                i64::from(wanted),
                i64::from(edge.source),
                i64::from(edge.destination),
            ]
        };
        let flat: Vec<i64> = self.found.edges.iter().flat_map(columns).collect();
        flat.into_pyarray(py).reshape([self.found.edges.len(), 6])
    }

    #[getter]
    fn vcs(&self) -> Vec<u8> {
        self.found.vcs()
    }

    fn is_acyclic(&self, py: Python<'_>, classes: Vec<u8>) -> bool {
        py.detach(|| self.found.is_acyclic(&classes))
    }

    #[getter]
    fn alone<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        let alone: Vec<bool> = self.found.edges.iter().map(|edge| edge.alone).collect();
        alone.into_pyarray(py)
    }

    #[getter]
    fn first_free(&self) -> Vec<FirstFreeTuple> {
        let waits = self.found.first_free.iter();
        waits.map(|of| (of.before, of.after.clone(), of.source, of.destination)).collect()
    }

    fn host_waits<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyArray2<i64>>, Vec<HostFirstFreeTuple>)> {
        let waits = py.detach(|| host_waits(&self.state));
        let columns = |&((before, held), (after, wanted)): &((u32, u8), (u32, u8))| {
            [i64::from(before), i64::from(held), i64::from(after), i64::from(wanted)]
        };
        let flat: Vec<i64> = waits.alone.iter().flat_map(columns).collect();
        let alone = flat.into_pyarray(py).reshape([waits.alone.len(), 4])?;
        Ok((alone, waits.first_free.into_iter().collect()))
    }

    #[getter]
    fn failed(&self) -> Ends {
        self.found.failed.clone()
    }

    #[getter]
    fn failed_floods(&self) -> Ends {
        self.found.failed_floods.iter().map(|flood| (flood.source, flood.destination)).collect()
    }

    #[getter]
    fn failing<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.found.failing.iter().map(|failing| PyBytes::new(py, failing.bytes())).collect()
    }

    #[getter]
    fn problems(&self) -> Vec<(u32, String)> {
        self.problems.clone()
    }

    #[getter]
    fn floods(&self) -> Vec<(u32, Vec<u32>)> {
        self.state.floods.iter().map(|flood| (flood.group, flood.sources.clone())).collect()
    }

    fn flood_of(&self, source: u32, group: u32) -> PyResult<u32> {
        let mut floods = self.state.floods.iter();
        let found = floods.position(|of| of.group == group && of.sources.contains(&source));
        let text = || format!("host {source} floods nothing to group {group}");
        let number = found.ok_or_else(|| PyValueError::new_err(text()))?;
        Ok((self.state.fabric.hosts() + number) as u32)
    }

    #[getter]
    fn unassigned(&self) -> Vec<&str> {
        self.state.unassigned.iter().map(|of| of.address.as_str()).collect()
    }

    fn unassigned_of(&self, source: u32, address: &str) -> Option<u32> {
        let first = self.state.destinations() - self.state.unassigned.len();
        let sends = |of: &Unassigned| of.senders.as_ref().is_none_or(|all| all.contains(&source));
        let mut all = self.state.unassigned.iter();
        let place = all.position(|of| of.address == address && sends(of))?;
        Some((first + place) as u32)
    }

    fn trace(&self, source: u32, destination: u32) -> PyResult<TraceTuple> {
        self.known(source)?;
        if destination as usize >= self.state.destinations() {
            return Err(PyValueError::new_err(format!("there is no destination {destination}")));
        }
        if source == destination && !self.state.sends_to_itself {
            let text = format!("what host {source} sends to its own address was not followed");
            return Err(PyValueError::new_err(text));
        }
        let found = trace(&self.state, source, destination, TRACED_HOPS);
        let hops = found.hops.iter().map(tuple).collect();
        Ok((hops, found.delivered, found.dropped, found.unsupported, found.repeats, found.loops))
    }

    fn shares(&self, source: u32, destination: u32) -> PyResult<Vec<(HopTuple, f64)>> {
        self.known(source)?;
        if destination as usize >= self.state.destinations() {
            return Err(PyValueError::new_err(format!("there is no destination {destination}")));
        }
        let found = shares(&self.state, source, destination);
        Ok(found.iter().map(|(hop, share)| (tuple(hop), *share)).collect())
    }

    fn difference(&self, py: Python<'_>, other: &Self) -> PyResult<Option<(u32, u32, HopTuple)>> {
        let (a, b) = (&self.state, &other.state);
        if a.fabric.hosts() != b.fabric.hosts() || a.fabric.channels() != b.fabric.channels() {
            return Err(PyValueError::new_err("the states are of different fabrics"));
        }
        let mut floods = Vec::new();
        for (number, flood) in a.floods.iter().enumerate() {
            for &source in &flood.sources {
                let to = other.flood_of(source, flood.group)?;
                floods.push(((a.fabric.hosts() + number) as u32, to, source));
            }
        }
        let found = py.detach(|| difference(a, b, &floods));
        Ok(found.map(|(source, destination, hop)| (source, destination, tuple(&hop))))
    }
}

/// A fabric of which every number is known to fit.
pub fn fabric(
    switches: usize,
    leaves: Ends,
    enters: Ends,
    hosts: &[(u32, u32)],
) -> PyResult<Fabric> {
    let wrong = |&(switch, _): &(u32, u32)| switch as usize >= switches;
    if leaves.len() != enters.len() || leaves.iter().chain(&enters).chain(hosts).any(wrong) {
        return Err(PyValueError::new_err("switches, channels and hosts do not fit"));
    }
    Ok(Fabric::new(switches, leaves, enters, hosts))
}

/// What is flooded: an address, an EtherType and the receivers by host.
type Flooded = (u64, u16, Vec<bool>);

/// Problems of rules, each with its switch.
type Problems = BTreeSet<(u32, String)>;

#[pyfunction]
#[allow(clippy::too_many_arguments)] // a border: each is an array of its own in Python
pub fn of_rules(
    py: Python<'_>,
    generations: Vec<Vec<Bound<'_, PySwitch>>>,
    leaves: Ends,
    enters: Ends,
    hosts: Ends,
    macs: Vec<u64>,
    ips: Vec<Option<u32>>,
    groups: Vec<Flooded>,
    tags: Vec<PyReadonlyArray2<'_, u16>>,
    lags: Vec<u8>,
    cut_links: bool,
    replayed: bool,
    any_address: bool,
) -> PyResult<PyState> {
    let (count, known) = (generations.first().map_or(0, Vec::len), generations.len());
    if known == 0
        || known > 255
        || lags.len() != known
        || generations.iter().any(|of| of.len() != count)
    {
        return Err(PyValueError::new_err("1 to 255 generations, each with rules of all switches"));
    }
    let mut problems = Problems::new();
    for (number, switch) in generations.iter().flat_map(|of| (0..).zip(of)) {
        problems.extend(switch.get().left_out.iter().map(|(table, field)| {
            let text = format!("a rule of table {table} matches {field}: not followed here");
            (number, text)
        }));
    }
    let of_generation =
        |number: usize| move |of: &Vec<Bound<'_, PySwitch>>| Arc::clone(&of[number].get().switch);
    let order = Order::new(&lags);
    let at = |number| {
        let found = Generations::new(generations.iter().map(of_generation(number)), &order);
        if replayed {
            found.replayed()
        } else {
            found
        }
    };
    let switches: Vec<Generations> = (0..count).map(at).collect();
    let fabric = fabric(switches.len(), leaves, enters, &hosts)?;
    let tag_shape = [macs.len(), macs.len() + groups.len()];
    if hosts.len() != macs.len()
        || hosts.len() != ips.len()
        || groups.iter().any(|(_, _, members)| members.len() != hosts.len())
        || !(tags.is_empty() || tags.len() == known)
        || tags.iter().any(|tags| tags.as_array().shape() != tag_shape)
    {
        return Err(PyValueError::new_err("hosts, groups and tags do not fit"));
    }
    let tags: Vec<_> = tags.iter().map(|tags| tags.as_array()).collect();
    let (addresses, members): (Vec<Group>, Vec<Vec<bool>>) = groups
        .into_iter()
        .map(|(address, eth_type, members)| (Group { address, eth_type }, members))
        .unzip();
    let explored = py.detach(move || {
        let tags: Vec<_> = tags.iter().map(tag_function).collect();
        let tags: Vec<_> = tags.iter().map(|tag| tag as &dyn Fn(usize, usize) -> u16).collect();
        let how = (order, cut_links, any_address);
        let (state, mut behaviour) = read(fabric, switches, how, (macs, ips), addresses, &tags)?;
        let mut explored = PyState::explored(state, &mut behaviour, &members);
        problems.extend(behaviour.problems().map(|(switch, text)| (switch, text.to_owned())));
        explored.problems = problems.into_iter().collect();
        Ok(explored)
    });
    explored.map_err(|TooManyClasses| {
        PyValueError::new_err("a switch distinguishes more than 65,535 kinds of packets")
    })
}

fn tag_function<'a>(tags: &'a ArrayView2<'_, u16>) -> impl Fn(usize, usize) -> u16 + 'a {
    |from, to| tags[[from, to]]
}
