//! `knotless._core.replay`: recorded programs as the traffic of a simulation.

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simulator::programs::{replay, Ends, Step};
use simulator::Traffic;

use crate::simulator::PyTraffic;

const SEND: u8 = 0;
const RECEIVE: u8 = 1;
const COMPUTE: u8 = 2;

type Column<'py, T> = PyReadonlyArray1<'py, T>;

/// When the processes ended; see the `.pyi`.
#[pyclass(frozen, name = "Ends", module = "knotless._core.replay")]
pub(crate) struct PyEnds(pub(crate) Ends);

#[pymethods]
impl PyEnds {
    fn times_ps(&self) -> PyResult<Vec<Option<u64>>> {
        let ends = self.0.lock().map_err(|_| PyValueError::new_err("the simulation has failed"))?;
        Ok(ends.clone())
    }
}

#[pyfunction]
fn replay_traffic(
    hosts: usize,
    host: Column<'_, u32>,
    kind: Column<'_, u8>,
    peer: Column<'_, u32>,
    amount: Column<'_, u64>,
) -> PyResult<(PyTraffic, PyEnds)> {
    let (host, kind) = (host.as_slice()?, kind.as_slice()?);
    let (peer, amount) = (peer.as_slice()?, amount.as_slice()?);
    if kind.len() != host.len() || peer.len() != host.len() || amount.len() != host.len() {
        return Err(PyValueError::new_err("the columns must be equally long"));
    }
    let mut steps: Vec<Vec<Step>> = vec![Vec::new(); hosts];
    for row in 0..host.len() {
        let (at, peer, amount) = (host[row] as usize, peer[row], amount[row]);
        if at >= hosts || (kind[row] != COMPUTE && peer as usize >= hosts) {
            return Err(PyValueError::new_err(format!("row {row}: there are {hosts} hosts")));
        }
        if kind[row] != COMPUTE && peer as usize == at {
            return Err(PyValueError::new_err(format!("row {row}: host {at} and itself")));
        }
        steps[at].push(match kind[row] {
            SEND if amount > 0 => Step::Send { to: peer, bytes: amount },
            SEND => return Err(PyValueError::new_err(format!("row {row}: a message of 0 bytes"))),
            RECEIVE => Step::Receive { from: peer },
            COMPUTE => Step::Compute { time: amount },
            other => return Err(PyValueError::new_err(format!("row {row}: no kind {other}"))),
        });
    }
    let (processes, ends) = replay(steps);
    Ok((PyTraffic::of(Traffic::Processes(processes)), PyEnds(ends)))
}

pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyEnds>()?;
    module.add_function(wrap_pyfunction!(replay_traffic, module)?)
}
