//! Traffic, from columns.

use std::sync::Mutex;

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simulator::{Arrivals, Flow, Incasts, Senders, Sending, Sizes, Target, Time, Traffic};

use super::convert::{array, wrong};

type Column<T> = Py<PyArray1<T>>;
type Columns = (Column<u64>, Column<u32>, Column<u32>, Column<u64>);

/// The traffic of one simulation, which takes it.
#[pyclass(name = "Traffic", module = "knotless._core.simulator")]
pub(crate) struct PyTraffic(Mutex<Option<Traffic>>);

impl PyTraffic {
    pub(crate) fn of(traffic: Traffic) -> PyTraffic {
        PyTraffic(Mutex::new(Some(traffic)))
    }

    pub fn take(&self) -> PyResult<Traffic> {
        let taken = self.0.lock().ok().and_then(|mut traffic| traffic.take());
        taken.ok_or_else(|| {
            PyValueError::new_err("this traffic belongs to another simulation already")
        })
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

/// The columns of messages: time, source, destination, bytes.
fn columns(py: Python<'_>, sendings: &[Sending]) -> Columns {
    (
        array(py, sendings.iter().map(|sending| sending.at)),
        array(py, sendings.iter().map(|sending| sending.from)),
        array(py, sendings.iter().map(|sending| sending.to)),
        array(py, sendings.iter().map(|sending| sending.bytes)),
    )
}

/// Messages of random sizes at random times; see the `.pyi`.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn poisson_messages(
    py: Python<'_>,
    sources: PyReadonlyArray1<'_, u32>,
    targets: PyReadonlyArray1<'_, i64>,
    mean_ps: PyReadonlyArray1<'_, f64>,
    points: Vec<(u64, f64)>,
    hosts: u32,
    seed: u64,
    most: usize,
    until_ps: u64,
) -> PyResult<Columns> {
    let sizes = Sizes::new(points).map_err(wrong)?;
    let (sources, targets, means) = (sources.as_slice()?, targets.as_slice()?, mean_ps.as_slice()?);
    if targets.len() != sources.len() || means.len() != sources.len() {
        return Err(PyValueError::new_err("the columns must be equally long"));
    }
    let rows = sources.iter().zip(targets).zip(means);
    let flows = rows.map(|((&from, &to), &mean)| {
        if hosts < 2 || from >= hosts || !(mean.is_finite() && mean >= 1.0) {
            return Err(PyValueError::new_err(
                "a flow needs two hosts, and a mean of 1 ps or more",
            ));
        }
        Ok((Flow { from, to: target(to)? }, mean))
    });
    let flows = flows.collect::<PyResult<Vec<_>>>()?;
    let sendings = py.detach(|| simulator::poisson(&flows, &sizes, hosts, seed, (most, until_ps)));
    Ok(columns(py, &sendings))
}

/// The messages of incasts; see the `.pyi`.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn incast_messages(
    py: Python<'_>,
    senders: Vec<u32>,
    count: u32,
    receiver: Option<u32>,
    bytes: u64,
    arrivals: &str,
    mean_ps: f64,
    hosts: u32,
    seed: u64,
    most: usize,
    until_ps: u64,
) -> PyResult<Columns> {
    let arrivals = match arrivals {
        "poisson" => Arrivals::Poisson { mean: mean_ps },
        "constant" => Arrivals::Constant { interval: mean_ps.round() as Time },
        _ => return Err(PyValueError::new_err(format!("arrivals {arrivals:?} are unknown"))),
    };
    let senders = if senders.is_empty() { Senders::Random(count) } else { Senders::Hosts(senders) };
    let incasts = Incasts { senders, receiver, bytes, arrivals };
    let sendings = py.detach(|| simulator::incasts(&incasts, hosts, seed, (most, until_ps)));
    Ok(columns(py, &sendings.map_err(wrong)?))
}
