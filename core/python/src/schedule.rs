//! `knotless._core.schedule`: operations of ranks and what they require, as the traffic of a
//! simulation.

use std::sync::Mutex;

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simulator::programs::{row_schedule, scheduled, GoalReader, Operation, RankSchedule, Transfer};
use simulator::Traffic;

use crate::replay::PyEnds;
use crate::simulator::PyTraffic;

const SEND: u8 = 0;
const RECEIVE: u8 = 1;
const COMPUTE: u8 = 2;
const JOIN: u8 = 3;

/// See the `.pyi`.
#[pyclass(frozen, name = "Schedule", module = "knotless._core.schedule")]
struct PySchedule(Vec<RankSchedule>);

#[pymethods]
impl PySchedule {
    #[getter]
    fn ranks(&self) -> usize {
        self.0.len()
    }

    #[getter]
    fn operations(&self) -> usize {
        self.0.iter().map(RankSchedule::len).sum()
    }

    fn traffic(
        &self,
        hosts: usize,
        places: PyReadonlyArray1<'_, u32>,
    ) -> PyResult<(PyTraffic, PyEnds)> {
        let places = places.as_slice()?;
        let mut used = vec![false; hosts];
        let fits = places.len() == self.0.len()
            && places.iter().all(|&place| {
                used.get_mut(place as usize).is_some_and(|used| !std::mem::replace(used, true))
            });
        if !fits {
            return Err(PyValueError::new_err("each rank needs a host of its own"));
        }
        let (processes, ends) = scheduled(self.0.clone(), places, hosts);
        Ok((PyTraffic::of(Traffic::Processes(processes)), PyEnds(ends)))
    }
}

/// See the `.pyi`.
#[pyclass(name = "GoalReader", module = "knotless._core.schedule")]
struct PyGoalReader(Mutex<Option<GoalReader>>);

#[pymethods]
impl PyGoalReader {
    #[new]
    fn new(most_ranks: u32) -> PyGoalReader {
        PyGoalReader(Mutex::new(Some(GoalReader::new(most_ranks))))
    }

    fn feed(&self, py: Python<'_>, piece: &[u8]) -> PyResult<()> {
        let fed = py.detach(|| {
            let mut reader = self.0.lock().ok()?;
            reader.as_mut().map(|reader| reader.feed(piece))
        });
        fed.ok_or_else(ended)?.map_err(PyValueError::new_err)
    }

    fn finish(&self, py: Python<'_>) -> PyResult<PySchedule> {
        let reader = self.0.lock().ok().and_then(|mut reader| reader.take());
        let reader = reader.ok_or_else(ended)?;
        py.detach(|| reader.finish()).map(PySchedule).map_err(PyValueError::new_err)
    }
}

fn ended() -> PyErr {
    PyValueError::new_err("the file has ended")
}

/// The schedule of transfers; see the `.pyi`.
#[pyfunction]
fn transfer_schedule(
    ranks: u32,
    sources: PyReadonlyArray1<'_, u32>,
    destinations: PyReadonlyArray1<'_, u32>,
    transfer_bytes: PyReadonlyArray1<'_, u64>,
    waiting: PyReadonlyArray1<'_, u32>,
    needed: PyReadonlyArray1<'_, u32>,
) -> PyResult<PySchedule> {
    let (sources, destinations) = (sources.as_slice()?, destinations.as_slice()?);
    let (bytes, waiting, needed) =
        (transfer_bytes.as_slice()?, waiting.as_slice()?, needed.as_slice()?);
    let count = sources.len();
    if destinations.len() != count || bytes.len() != count || waiting.len() != needed.len() {
        return Err(PyValueError::new_err("the columns must be equally long"));
    }
    let rows = sources.iter().zip(destinations).zip(bytes);
    let transfers =
        rows.map(|((&from, &to), &bytes)| Transfer { from, to, bytes }).collect::<Vec<_>>();
    let pairs = waiting.iter().copied().zip(needed.iter().copied());
    let ranks = simulator::programs::transfer_schedule(ranks, &transfers, pairs);
    ranks.map(PySchedule).map_err(PyValueError::new_err)
}

/// The schedule of operations in rows; see the `.pyi`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the columns of one table")]
fn operation_schedule(
    ranks: u32,
    rank: PyReadonlyArray1<'_, u32>,
    kind: PyReadonlyArray1<'_, u8>,
    peer: PyReadonlyArray1<'_, u32>,
    amount: PyReadonlyArray1<'_, u64>,
    tag: PyReadonlyArray1<'_, u32>,
    waiting: PyReadonlyArray1<'_, u32>,
    needed: PyReadonlyArray1<'_, u32>,
) -> PyResult<PySchedule> {
    let (rank, kind, peer) = (rank.as_slice()?, kind.as_slice()?, peer.as_slice()?);
    let (amount, tag) = (amount.as_slice()?, tag.as_slice()?);
    let (waiting, needed) = (waiting.as_slice()?, needed.as_slice()?);
    let count = rank.len();
    let equal = [kind.len(), peer.len(), amount.len(), tag.len()] == [count; 4];
    if !equal || waiting.len() != needed.len() {
        return Err(PyValueError::new_err("the columns must be equally long"));
    }
    let mut rows = Vec::with_capacity(count);
    for row in 0..count {
        let (peer, amount, tag) = (peer[row], amount[row], tag[row]);
        let operation = match kind[row] {
            SEND => Operation::Send { to: peer, bytes: amount, tag },
            RECEIVE => Operation::Receive { from: peer, tag },
            COMPUTE => Operation::Compute { time: amount, processor: peer },
            JOIN => Operation::Join,
            other => return Err(PyValueError::new_err(format!("row {row}: no kind {other}"))),
        };
        rows.push((rank[row], operation));
    }
    let pairs = waiting.iter().copied().zip(needed.iter().copied());
    row_schedule(ranks, &rows, pairs).map(PySchedule).map_err(PyValueError::new_err)
}

pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySchedule>()?;
    module.add_class::<PyGoalReader>()?;
    module.add_function(wrap_pyfunction!(transfer_schedule, module)?)?;
    module.add_function(wrap_pyfunction!(operation_schedule, module)?)
}
