//! `knotless._core.simulator`: arrays in, a simulation that runs in slices, arrays out.

use std::sync::Mutex;

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use simulator::{
    ChannelId, Forwarding, HostSettings, LinkChange, MessageClass, PriorityCounters, RingEntry,
    Settings, SlowReceiver, Tables, Transport, VirtualChannel, PRIORITIES,
};

use crate::forwarding::PyState;

mod arrays;
mod channels;
mod convert;
mod report;
mod traffic;

use arrays::{Channels, Tree};
use convert::wrong;
pub(crate) use traffic::PyTraffic;

type Counted<'py> = Bound<'py, PyArray2<u64>>;
type Sample<'py> =
    (Counted<'py>, Counted<'py>, Counted<'py>, Counted<'py>, Counted<'py>, Py<PyArray1<u64>>);

/// Source, destination, bytes, start, end and whether it is acknowledged of each message, and how
/// many are left out.
type Completions = (
    Py<PyArray1<u32>>,
    Py<PyArray1<u32>>,
    Py<PyArray1<u64>>,
    Py<PyArray1<u64>>,
    Py<PyArray1<u64>>,
    Py<PyArray1<bool>>,
    u64,
);

/// What a class sends, its reserve, the most outstanding ones, and what it adds to priorities.
type MessageClassTuple = (Option<u8>, u64, Option<u64>, u8);

/// What switches do with unicasts; see the `.pyi`.
#[pyclass(frozen, name = "Tables", module = "knotless._core.simulator")]
struct PyTables(Tables);

#[pymethods]
impl PyTables {
    #[new]
    fn new(
        py: Python<'_>,
        state: &PyState,
        ports: PyReadonlyArray1<'_, u16>,
    ) -> PyResult<PyTables> {
        let ports = ports.as_slice()?;
        py.detach(|| Tables::new(state.state(), ports)).map(PyTables).map_err(wrong)
    }

    fn repeated(&self, copies: usize) -> PyTables {
        PyTables(self.0.repeated(copies))
    }
}

/// A simulation; see the `.pyi`.
#[pyclass(module = "knotless._core.simulator")]
struct Simulation(Mutex<simulator::Simulation>);

impl Simulation {
    fn inner(&self) -> PyResult<std::sync::MutexGuard<'_, simulator::Simulation>> {
        self.0.try_lock().map_err(|_| PyValueError::new_err("the simulation is running"))
    }
}

#[pymethods]
impl Simulation {
    #[new]
    #[pyo3(signature = (switches, hosts, channels, tables, trees, traffic, *, seed, warm_up_ps, end_ps,
                        packet_bytes, header_bytes, link_changes, broadcasts=Vec::new(), transport=None,
                        receivers=Vec::new(), messages=Vec::new()))]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        switches: usize,
        hosts: usize,
        channels: Channels<'_>,
        tables: &PyTables,
        trees: Vec<Tree<'_>>,
        traffic: &PyTraffic,
        seed: u64,
        warm_up_ps: u64,
        end_ps: u64,
        packet_bytes: u32,
        header_bytes: u32,
        link_changes: Vec<(u64, u32, bool)>,
        broadcasts: Vec<usize>,
        transport: Option<&str>,
        receivers: Vec<(u32, u64)>,
        messages: Vec<MessageClassTuple>,
    ) -> PyResult<Simulation> {
        let fabric = channels.fabric(switches, hosts)?;
        let mut tables = tables.0.clone();
        for (number, tree) in trees.iter().enumerate() {
            tree.add(&mut tables, &fabric, broadcasts.contains(&number))?;
        }
        let traffic = traffic.take()?;
        let forwarding = match header_bytes {
            0 => Forwarding::StoreAndForward,
            header_bytes => Forwarding::CutThrough { header_bytes },
        };
        let changes = link_changes.into_iter();
        let settings = Settings {
            seed,
            warm_up: warm_up_ps,
            end: end_ps,
            packet_bytes,
            forwarding,
            link_changes: changes.map(|(at, channel, up)| LinkChange { at, channel, up }).collect(),
        };
        let slow = |(host, rate_bps)| SlowReceiver { host, rate_bps };
        let class = |(sends, reserve, outstanding, priority)| MessageClass {
            sends,
            reserve,
            outstanding,
            priority,
        };
        let hosts = HostSettings {
            transport: transport.map(Transport::from_json).transpose().map_err(wrong)?,
            receivers: receivers.into_iter().map(slow).collect(),
            messages: messages.into_iter().map(class).collect(),
        };
        let made = simulator::Simulation::with_hosts(fabric, tables, traffic, settings, &hosts);
        Ok(Simulation(Mutex::new(made.map_err(wrong)?)))
    }

    fn run(&self, py: Python<'_>, events: u64) -> PyResult<bool> {
        // The lock is taken inside: its guard must not outlive the interpreter's lock.
        py.detach(|| self.inner().map(|mut simulation| simulation.run(events)))
    }

    fn run_to(&self, py: Python<'_>, at_ps: u64) -> PyResult<()> {
        py.detach(|| self.inner().map(|mut simulation| simulation.run_to(at_ps)))
    }

    fn hold(&self, switch: u32, generation: u16) -> PyResult<()> {
        self.inner()?.hold(switch, generation).map_err(wrong)
    }

    fn passed<'py>(&self, py: Python<'py>) -> PyResult<(Counted<'py>, Counted<'py>)> {
        let simulation = self.inner()?;
        let passed = simulation.passed();
        let passed = passed.ok_or_else(|| PyValueError::new_err("the rules do not change"))?;
        let rows = [passed.queued.len() / PRIORITIES, PRIORITIES];
        let array = |numbers: &Vec<u64>| PyArray1::from_slice(py, numbers).reshape(rows);
        Ok((array(&passed.queued)?, array(&passed.arrived)?))
    }

    #[getter]
    fn now_ps(&self) -> PyResult<u64> {
        Ok(self.inner()?.now())
    }

    #[getter]
    fn events(&self) -> PyResult<u64> {
        Ok(self.inner()?.events())
    }

    fn sample<'py>(&self, py: Python<'py>, at_ps: u64) -> PyResult<Sample<'py>> {
        let counted = py.detach(|| self.inner().map(|mut simulation| simulation.sample(at_ps)))?;
        let rows = [counted.len(), PRIORITIES];
        let column = |of: fn(&PriorityCounters) -> u64| {
            let values = counted.iter().flat_map(|channel| channel.priorities.iter().map(of));
            PyArray1::from_vec(py, values.collect()).reshape(rows)
        };
        Ok((
            column(|counted| counted.tx_frames)?,
            column(|counted| counted.tx_bytes)?,
            column(|counted| counted.paused)?,
            column(|counted| counted.queue_bytes)?,
            column(|counted| counted.ingress_bytes)?,
            convert::array(py, counted.iter().map(simulator::ChannelCounters::dropped)),
        ))
    }

    fn take_turns(&self) -> PyResult<()> {
        self.inner()?.take_turns();
        Ok(())
    }

    fn use_cores(&self, py: Python<'_>, cores: usize) -> PyResult<Option<&'static str>> {
        py.detach(|| self.inner().map(|mut simulation| simulation.use_cores(cores).err()))
    }

    fn pause_host(&self, at_ps: u64, host: u32, until_ps: u64) -> PyResult<()> {
        self.inner()?.pause_host(at_ps, host, until_ps).map_err(wrong)
    }

    fn standing_behind(&self, host: u32) -> PyResult<Vec<(u32, u8)>> {
        let behind = self.inner()?.standing_behind(host).map_err(wrong)?;
        Ok(behind.iter().map(|target| (target.channel.0, target.class)).collect())
    }

    fn spray(&self) -> PyResult<()> {
        self.inner()?.spray();
        Ok(())
    }

    fn first_free(&self) -> PyResult<()> {
        self.inner()?.first_free().map_err(wrong)
    }

    fn use_bubbles(
        &self,
        rings: Vec<(u32, u8, u32)>,
        entry_units: u32,
        apart: bool,
    ) -> PyResult<()> {
        let target = |channel, class| VirtualChannel { channel: ChannelId(channel), class };
        let rings = rings.into_iter().map(|(channel, class, ring)| (target(channel, class), ring));
        let rings: Vec<(VirtualChannel, u32)> = rings.collect();
        let entry = RingEntry { units: entry_units, apart };
        self.inner()?.use_bubbles(&rings, entry).map_err(wrong)
    }

    fn choose_at_source(&self, threshold: u64) -> PyResult<()> {
        self.inner()?.choose_at_source(threshold).map_err(wrong)
    }

    fn hash_addresses(&self, addresses: Vec<u64>, seed: u32) -> PyResult<()> {
        self.inner()?.hash_addresses(addresses, seed).map_err(wrong)
    }

    fn record_completions(&self, limit: usize) -> PyResult<()> {
        self.inner()?.record_completions(limit);
        Ok(())
    }

    fn completions(&self, py: Python<'_>) -> PyResult<Completions> {
        let simulation = self.inner()?;
        let (kept, omitted) = simulation.completions();
        Ok((
            convert::array(py, kept.iter().map(|one| one.from)),
            convert::array(py, kept.iter().map(|one| one.to)),
            convert::array(py, kept.iter().map(|one| one.bytes)),
            convert::array(py, kept.iter().map(|one| one.born)),
            convert::array(py, kept.iter().map(|one| one.completed)),
            convert::array(py, kept.iter().map(|one| one.acknowledged)),
            omitted,
        ))
    }

    fn alone_ps(
        &self,
        py: Python<'_>,
        sources: PyReadonlyArray1<'_, u32>,
        destinations: PyReadonlyArray1<'_, u32>,
        message_bytes: PyReadonlyArray1<'_, u64>,
        acknowledged: PyReadonlyArray1<'_, bool>,
    ) -> PyResult<Py<PyArray1<u64>>> {
        let sources = sources.as_slice()?;
        let destinations = arrays::column(&destinations, sources.len())?;
        let bytes = arrays::column(&message_bytes, sources.len())?;
        let acknowledged = arrays::column(&acknowledged, sources.len())?;
        let simulation = self.inner()?;
        let hosts = simulation.hosts() as u32;
        if sources.iter().chain(destinations).any(|&host| host >= hosts) {
            return Err(PyValueError::new_err(format!("there are {hosts} hosts")));
        }
        let times = (0..sources.len()).map(|row| {
            let ends = (sources[row], destinations[row]);
            simulation.alone(ends.0, ends.1, bytes[row], acknowledged[row]).unwrap_or(0)
        });
        Ok(convert::array(py, times))
    }

    fn report(&self, py: Python<'_>) -> PyResult<report::PyReport> {
        let report = self.inner()?.report();
        report::PyReport::new(py, report)
    }
}

/// What switches choose; see the `.pyi`.
#[pyfunction]
fn select_members(
    py: Python<'_>,
    seed: u32,
    switches: PyReadonlyArray1<'_, u32>,
    sources: PyReadonlyArray1<'_, u64>,
    destinations: PyReadonlyArray1<'_, u64>,
    counts: PyReadonlyArray1<'_, u16>,
) -> PyResult<Py<PyArray1<u16>>> {
    let (switches, counts) = (switches.as_slice()?, counts.as_slice()?);
    let (sources, destinations) = (sources.as_slice()?, destinations.as_slice()?);
    let lengths = [switches.len(), sources.len(), destinations.len()];
    if lengths.iter().any(|&length| length != counts.len()) {
        return Err(PyValueError::new_err("the columns must be equally long"));
    }
    let rows = switches.iter().zip(sources).zip(destinations).zip(counts);
    Ok(convert::array(
        py,
        rows.map(|(((&switch, &from), &to), &count)| {
            simulator::select_member(simulator::hash_basis(seed, switch), from, to, count)
        }),
    ))
}

pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTables>()?;
    module.add_class::<PyTraffic>()?;
    module.add_class::<Simulation>()?;
    channels::fill(module)?;
    module.add_function(wrap_pyfunction!(traffic::poisson_messages, module)?)?;
    module.add_function(wrap_pyfunction!(traffic::incast_messages, module)?)?;
    module.add_function(wrap_pyfunction!(select_members, module)?)?;
    let causes = simulator::drop_causes().iter().map(|(_, name)| name);
    module.add("DROP_CAUSES", PyTuple::new(module.py(), causes.collect::<Vec<_>>())?)?;
    let counts = simulator::RetryCount::ALL.map(|(_, name)| name);
    module.add("RETRY_COUNTS", PyTuple::new(module.py(), counts)?)?;
    module.add_class::<report::PyDeadlock>()?;
    module.add_class::<report::PyHistogram>()?;
    module.add_class::<report::PyReport>()
}
