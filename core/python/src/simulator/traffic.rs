//! Traffic, from columns.

use std::sync::Mutex;

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simulator::{Arrivals, Flow, Sending, Target, Time, Traffic};

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
