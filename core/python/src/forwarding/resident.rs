//! `Resident`: next-hop tables that stay in memory while routes change.

use forwarding::resident::{Resident, Traffic, Unknown};
use forwarding::state::Choice;
use forwarding::tables::Action;
use forwarding::what_if::DependencyNodes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{flat, rows};
use super::state::PyState;
use super::tables::{unexplored, Ends};

/// See the class of that name in `forwarding.pyi`.
#[pyclass(name = "Resident", module = "knotless._core.forwarding")]
pub struct PyResident(Resident, usize);

fn refused(_: Unknown) -> PyErr {
    PyValueError::new_err("packets meet what is not known")
}

#[pymethods]
impl PyResident {
    #[new]
    fn new(
        py: Python<'_>,
        switches: usize,
        leaves: Ends,
        enters: Ends,
        hosts: Ends,
        traffics: Vec<Bound<'_, PyDict>>,
        pausing: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let channels = leaves.len();
        let mut read = Vec::with_capacity(traffics.len());
        for arrays in &traffics {
            let (leaves, enters) = (leaves.clone(), enters.clone());
            let (state, behaviour) = unexplored(switches, leaves, enters, &hosts, arrays)?;
            if state.first_labels.is_empty() {
                return Err(PyValueError::new_err("first labels do not fit"));
            }
            let counted =
                arrays.get_item("counted")?.is_some_and(|of| of.is_truthy().unwrap_or(true));
            read.push(Traffic::new(state, behaviour, counted));
        }
        let nodes = match rows(pausing, "pausing")? {
            0 => DependencyNodes::Every,
            _ => DependencyNodes::pausing(&flat(pausing, "pausing", &[channels, 8, 16])?),
        };
        let count = read.len();
        let resident = py.detach(|| Resident::new(read, nodes)).map_err(refused)?;
        Ok(Self(resident, count))
    }

    fn change(
        &mut self,
        py: Python<'_>,
        switch: u32,
        actions: Vec<(u32, u8, Vec<u32>)>,
    ) -> PyResult<()> {
        let (switches, destinations) = self.0.sizes();
        let fits = |&(to, kind, _): &(u32, u8, Vec<u32>)| {
            (to as usize) < destinations && [0, 1, 4].contains(&kind)
        };
        if switch as usize >= switches || !actions.iter().all(fits) {
            return Err(PyValueError::new_err("actions do not fit"));
        }
        let action = |(to, kind, ports)| match kind {
            0 => (to, Action::Send(Choice::All, ports)),
            1 => (to, Action::Send(Choice::OneOf, ports)),
            _ => (to, Action::Link(ports)),
        };
        let actions: Vec<_> = actions.into_iter().map(action).collect();
        let resident = &mut self.0;
        py.detach(|| resident.change(switch, &actions)).map_err(refused)
    }

    #[getter]
    fn cycle(&self, py: Python<'_>) -> Vec<u32> {
        py.detach(|| self.0.cycle())
    }

    #[getter]
    fn virtual_channels(&self, py: Python<'_>) -> Vec<(u32, bool)> {
        py.detach(|| self.0.virtual_channels())
    }

    fn witness(&mut self, py: Python<'_>, holds: u32, requests: u32) -> Option<(usize, u32, u32)> {
        let resident = &mut self.0;
        py.detach(|| resident.witness(holds, requests))
    }

    fn state(&mut self, py: Python<'_>, traffic: usize) -> PyResult<PyState> {
        if traffic >= self.1 {
            return Err(PyValueError::new_err("there is no such traffic"));
        }
        let resident = &mut self.0;
        let (state, found) = py.detach(|| resident.state(traffic));
        Ok(PyState::found(state, found))
    }
}
