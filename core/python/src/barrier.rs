//! `knotless._core.barrier`.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::time::Duration;

use barrier::{Algorithm, State, Timing};
use programs::real::sys::clock_ns;
use programs::real::{Member, Network};
use pyo3::exceptions::{PyException, PyTimeoutError, PyValueError};
use pyo3::prelude::*;

use crate::endpoint::in_slices;
use crate::endpoint::values::{py_error, seconds};

pyo3::create_exception!(knotless._core.barrier, BarrierError, PyException);

/// A member of barriers; see the class of that name in `barrier.pyi`.
#[pyclass(name = "Barrier", module = "knotless._core.barrier")]
struct PyBarrier {
    member: Member,
    members: Vec<String>,
}

#[pymethods]
impl PyBarrier {
    #[new]
    #[pyo3(signature = (interface, port, members, *, algorithm="shuffle", group=None, order=None,
        retry_s=0.1, patience_s=10.0))]
    #[allow(clippy::too_many_arguments)] // keywords in Python
    fn new(
        interface: &str,
        port: u8,
        members: Vec<String>,
        algorithm: &str,
        group: Option<String>,
        order: Option<Vec<usize>>,
        retry_s: f64,
        patience_s: f64,
    ) -> PyResult<Self> {
        let invalid = |error: barrier::Error| PyValueError::new_err(error.to_string());
        let algorithm = match algorithm.parse().map_err(invalid)? {
            Algorithm::Unicast(_) => Algorithm::Unicast(order),
            other if order.is_none() => other,
            _ => return Err(PyValueError::new_err("only unicast has a visiting list (order)")),
        };
        let [retry, patience] = [seconds(retry_s)?, seconds(patience_s)?];
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let timing = Timing::new(nanoseconds(retry), nanoseconds(patience)).map_err(invalid)?;
        let network = Network { namespace: None, interface: interface.into(), members, group };
        let member = Member::open(&network, port, &algorithm, timing).map_err(py_error)?;
        Ok(PyBarrier { member, members: network.members })
    }

    #[getter]
    fn rank(&self) -> usize {
        self.member.rank()
    }

    #[getter]
    fn size(&self) -> usize {
        self.members.len()
    }

    fn fileno(&self) -> i32 {
        self.member.descriptors()[0].as_raw_fd()
    }

    #[pyo3(signature = (timeout_s=None))]
    fn wait(&mut self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<()> {
        self.member.enter(clock_ns());
        let ended = in_slices(py, timeout_s, |slice| {
            Ok(Some(self.member.proceed(slice)?).filter(|state| *state != State::Inside))
        })?;
        match ended {
            Some(State::Broken(rank)) => Err(BarrierError::new_err(format!(
                "process {rank} of the barrier ({}) does not answer: no more barriers will complete",
                self.members[rank]
            ))),
            Some(_) => Ok(()),
            None => Err(PyTimeoutError::new_err("not all processes have entered the barrier in time")),
        }
    }

    fn answer(&mut self, py: Python<'_>, timeout_s: f64) -> PyResult<()> {
        in_slices(py, Some(timeout_s), |slice| {
            self.member.answer(slice)?;
            Ok(None::<()>)
        })?;
        Ok(())
    }

    #[pyo3(signature = (timeout_s=10.0))]
    fn flush(&mut self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let done = in_slices(py, Some(timeout_s), |slice| {
            Ok(self.member.networks_mut().flush(slice)?.then_some(()))
        })?;
        Ok(done.is_some())
    }

    fn counters(&self) -> BTreeMap<&'static str, u64> {
        let counters = self.member.counters();
        [
            ("passed", counters.passed),
            ("asked", counters.asked),
            ("repeated", counters.repeated),
            ("stale", counters.stale),
            ("invalid", counters.invalid),
        ]
        .into()
    }
}

pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyBarrier>()?;
    module.add("BarrierError", module.py().get_type::<BarrierError>())
}
