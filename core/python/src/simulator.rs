//! `knotless_core.simulator`: arrays in, a simulation that runs in slices, arrays out.

use std::sync::Mutex;

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simulator::{
    Arrivals, Change, ChannelConfig, Error, Fabric, Flow, FlowControl, Forwarding, LinkChange,
    Node, Sending, Settings, Tables, Target, Time, Traffic,
};

mod report;

fn wrong(error: Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// What traffic a simulation has; it is used up by the simulation that it is given to.
#[pyclass(name = "Traffic", module = "knotless_core.simulator")]
pub(crate) struct PyTraffic(Mutex<Option<Traffic>>);

impl PyTraffic {
    pub(crate) fn of(traffic: Traffic) -> PyTraffic {
        PyTraffic(Mutex::new(Some(traffic)))
    }
}

/// A host, or -1 for any other, or -2 - T for multicast tree T.
fn target(number: i64) -> PyResult<Target> {
    let host =
        |number: i64| u32::try_from(number).map_err(|_| PyValueError::new_err("host number"));
    Ok(match number {
        -1 => Target::Anyone,
        0.. => Target::Host(host(number)?),
        _ => Target::Tree(host(-2 - number)?),
    })
}

#[pymethods]
impl PyTraffic {
    #[staticmethod]
    fn flows(
        sources: PyReadonlyArray1<'_, u32>,
        targets: PyReadonlyArray1<'_, i64>,
        arrivals: &str,
        mean_ps: f64,
        count: u64,
        message_bytes: u64,
    ) -> PyResult<PyTraffic> {
        let arrivals = match arrivals {
            "saturate" => Arrivals::Saturate,
            "poisson" => Arrivals::Poisson { mean: mean_ps },
            "constant" => Arrivals::Constant { interval: mean_ps.round() as Time },
            "acknowledged" => Arrivals::Acknowledged { count },
            _ => return Err(PyValueError::new_err(format!("arrivals {arrivals:?} are unknown"))),
        };
        let pairs =
            sources.as_array().into_iter().copied().zip(targets.as_array().into_iter().copied());
        let flows = pairs.map(|(from, to)| Ok(Flow { from, to: target(to)? }));
        let flows = flows.collect::<PyResult<Vec<Flow>>>()?;
        Ok(PyTraffic::of(Traffic::Flows { flows, arrivals, message_bytes }))
    }

    #[staticmethod]
    fn phases(
        destinations: PyReadonlyArray2<'_, u32>,
        message_bytes: u64,
        barrier: bool,
    ) -> PyTraffic {
        let destinations = destinations.as_array().iter().copied().collect();
        PyTraffic::of(Traffic::Phases { destinations, message_bytes, barrier })
    }

    #[staticmethod]
    fn trace(
        at_ps: PyReadonlyArray1<'_, u64>,
        sources: PyReadonlyArray1<'_, u32>,
        targets: PyReadonlyArray1<'_, u32>,
        message_bytes: PyReadonlyArray1<'_, u64>,
    ) -> PyTraffic {
        let (at, from) = (at_ps.as_array(), sources.as_array());
        let (to, bytes) = (targets.as_array(), message_bytes.as_array());
        let lines = at.iter().zip(from).zip(to.iter().zip(bytes));
        let sending =
            lines.map(|((&at, &from), (&to, &bytes))| Sending { at, from, to, bytes }).collect();
        PyTraffic::of(Traffic::Trace(sending))
    }
}

/// The columns of a list of channels.
#[derive(FromPyObject)]
struct Channels<'py> {
    leaves: PyReadonlyArray1<'py, i64>,
    enters: PyReadonlyArray1<'py, i64>,
    back: PyReadonlyArray1<'py, u32>,
    rate_bps: PyReadonlyArray1<'py, u64>,
    delay_ps: PyReadonlyArray1<'py, u64>,
    flow_control: PyReadonlyArray1<'py, u8>,
    queue_bytes: PyReadonlyArray1<'py, u64>,
    xoff_bytes: PyReadonlyArray1<'py, u64>,
    xon_bytes: PyReadonlyArray1<'py, u64>,
    headroom_bytes: PyReadonlyArray1<'py, u64>,
    watchdog_ps: PyReadonlyArray1<'py, u64>,
    jitter_ps: PyReadonlyArray1<'py, u64>,
}

/// A switch from 0 on, or -1 - H for host H.
fn node(number: i64) -> Node {
    if number >= 0 {
        Node::Switch(number as u32)
    } else {
        Node::Host((-1 - number) as u32)
    }
}

impl Channels<'_> {
    fn fabric(&self, switches: usize, hosts: usize) -> PyResult<Fabric> {
        let count = self.leaves.len()?;
        let lengths = [
            self.enters.len()?,
            self.back.len()?,
            self.rate_bps.len()?,
            self.delay_ps.len()?,
            self.flow_control.len()?,
            self.queue_bytes.len()?,
            self.xoff_bytes.len()?,
            self.xon_bytes.len()?,
            self.headroom_bytes.len()?,
            self.watchdog_ps.len()?,
            self.jitter_ps.len()?,
        ];
        if lengths.iter().any(|&length| length != count) {
            return Err(PyValueError::new_err("the columns of channels are not equally long"));
        }
        let at = |column: &PyReadonlyArray1<'_, u64>, channel: usize| column.as_array()[channel];
        let mut channels = Vec::with_capacity(count);
        for c in 0..count {
            let to = node(self.enters.as_array()[c]);
            let flow_control = match self.flow_control.as_array()[c] {
                0 => FlowControl::Off,
                1 => FlowControl::Pause,
                _ => FlowControl::Pfc,
            };
            let config = ChannelConfig {
                rate_bps: at(&self.rate_bps, c),
                delay: at(&self.delay_ps, c),
                flow_control,
                buffer: simulator::Buffer {
                    queue_bytes: at(&self.queue_bytes, c),
                    xoff_bytes: at(&self.xoff_bytes, c),
                    xon_bytes: at(&self.xon_bytes, c),
                    headroom_bytes: at(&self.headroom_bytes, c),
                },
                to_switch: matches!(to, Node::Switch(_)),
                watchdog: Some(at(&self.watchdog_ps, c)).filter(|&limit| limit > 0),
                jitter: at(&self.jitter_ps, c),
            };
            channels.push((config, node(self.leaves.as_array()[c]), to, self.back.as_array()[c]));
        }
        Fabric::new(switches, hosts, channels).map_err(wrong)
    }
}

/// The arrays of forwarding tables.
#[derive(FromPyObject)]
struct Forward<'py> {
    rows: PyReadonlyArray2<'py, u32>,
    next: PyReadonlyArray2<'py, u16>,
    host_vlan: PyReadonlyArray1<'py, u16>,
    host_row: PyReadonlyArray1<'py, u32>,
    first_priority: PyReadonlyArray2<'py, u8>,
    changes: PyReadonlyArray2<'py, u32>,
    trees: Vec<PyReadonlyArray2<'py, u32>>,
}

impl Forward<'_> {
    fn tables(&self, fabric: &Fabric) -> PyResult<Tables> {
        let changes = self.changes.as_array();
        let changes: Vec<Change> = changes
            .outer_iter()
            .map(|row| Change {
                before: row[0],
                after: row[1],
                was: row[2] as u8,
                becomes: row[3] as u8,
            })
            .collect();
        let mut tables = Tables::new(
            fabric,
            self.rows.as_array().iter().copied().collect(),
            self.next.as_array().iter().copied().collect(),
            self.host_vlan.as_array().to_vec(),
            self.host_row.as_array().to_vec(),
            self.first_priority.as_array().iter().copied().collect(),
            &changes,
        )
        .map_err(wrong)?;
        for tree in &self.trees {
            let rows = tree.as_array();
            let branches: Vec<(u32, u32, u8)> =
                rows.outer_iter().map(|row| (row[0], row[1], row[2] as u8)).collect();
            tables.add_tree(fabric, &branches).map_err(wrong)?;
        }
        Ok(tables)
    }
}

/// A simulation; see the `.pyi`.
#[pyclass(module = "knotless_core.simulator")]
struct Simulation(Mutex<simulator::Simulation>);

impl Simulation {
    fn inner(&self) -> PyResult<std::sync::MutexGuard<'_, simulator::Simulation>> {
        self.0.try_lock().map_err(|_| PyValueError::new_err("the simulation is running"))
    }
}

#[pymethods]
impl Simulation {
    #[new]
    #[pyo3(signature = (switches, hosts, channels, tables, traffic, *, seed, warm_up_ps, end_ps,
                        packet_bytes, header_bytes, link_changes))]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        switches: usize,
        hosts: usize,
        channels: Channels<'_>,
        tables: Forward<'_>,
        traffic: &PyTraffic,
        seed: u64,
        warm_up_ps: u64,
        end_ps: u64,
        packet_bytes: u32,
        header_bytes: u32,
        link_changes: Vec<(u64, u32, bool)>,
    ) -> PyResult<Simulation> {
        let fabric = channels.fabric(switches, hosts)?;
        let tables = tables.tables(&fabric)?;
        let taken = traffic.0.lock().ok().and_then(|mut traffic| traffic.take());
        let traffic = taken.ok_or_else(|| PyValueError::new_err("traffic was used already"))?;
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
        let made = simulator::Simulation::new(fabric, tables, traffic, settings).map_err(wrong)?;
        Ok(Simulation(Mutex::new(made)))
    }

    fn run(&self, py: Python<'_>, events: u64) -> PyResult<bool> {
        // Taken inside: a guard may not cross to where the interpreter's lock is not held.
        py.detach(|| self.inner().map(|mut simulation| simulation.run(events)))
    }

    #[getter]
    fn now_ps(&self) -> PyResult<u64> {
        Ok(self.inner()?.now())
    }

    #[getter]
    fn events(&self) -> PyResult<u64> {
        Ok(self.inner()?.events())
    }

    #[getter]
    fn deadlocked(&self) -> PyResult<bool> {
        Ok(self.inner()?.is_deadlocked())
    }

    fn report(&self, py: Python<'_>) -> PyResult<report::PyReport> {
        let report = self.inner()?.report();
        report::PyReport::new(py, report)
    }
}

/// Bytes that an input buffer needs above XOFF to lose nothing.
#[pyfunction]
fn headroom_bytes(rate_bps: u64, delay_ps: u64, longest_frame_bytes: u32) -> u64 {
    simulator::Buffer::headroom_needed(rate_bps, delay_ps, longest_frame_bytes)
}

/// Time that bytes take on a line.
#[pyfunction]
fn transmission_ps(bytes: u32, rate_bps: u64) -> PyResult<u64> {
    if rate_bps == 0 {
        return Err(PyValueError::new_err("a line must have a rate"));
    }
    Ok(simulator::transmission_time(bytes, rate_bps))
}

pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTraffic>()?;
    module.add_class::<Simulation>()?;
    module.add_function(wrap_pyfunction!(headroom_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(transmission_ps, module)?)?;
    module.add_class::<report::PyDeadlock>()?;
    module.add_class::<report::PyHistogram>()?;
    module.add_class::<report::PyReport>()
}

fn array<'py, T: numpy::Element>(
    py: Python<'py>,
    values: impl Iterator<Item = T>,
) -> Py<PyArray1<T>> {
    PyArray1::from_vec(py, values.collect()).unbind()
}
