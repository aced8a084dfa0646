//! A state from the tables of 802.1Q switches.

use std::collections::HashMap;

use forwarding::dot1q::{bridges, Port, Tables};
use numpy::PyReadonlyArray2;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::state::{fabric, PyState};

fn port(value: &Bound<'_, PyAny>) -> PyResult<Port> {
    let py = value.py();
    Ok(Port {
        number: value.getattr(intern!(py, "port"))?.extract()?,
        pvid: value.getattr(intern!(py, "pvid"))?.extract()?,
        untagged: value.getattr(intern!(py, "untagged"))?.extract()?,
        tagged: value.getattr(intern!(py, "tagged"))?.extract()?,
    })
}

/// The tables of a switch; entries for addresses that no host has are left out: they add nothing to
/// what floods do.
fn tables(value: &Bound<'_, PyAny>, hosts: &HashMap<String, u32>) -> PyResult<Tables> {
    let py = value.py();
    let ports = value.getattr(intern!(py, "ports"))?;
    let ports: PyResult<_> = ports.try_iter()?.map(|one| port(&one?)).collect();
    let mut entries = Vec::new();
    for (vlan, of_vlan) in value.getattr(intern!(py, "macs"))?.cast::<PyDict>()? {
        let vlan = vlan.extract()?;
        for (mac, port) in of_vlan.cast::<PyDict>()? {
            if let Some(&host) = hosts.get(mac.cast::<PyString>()?.to_str()?) {
                entries.push((host, vlan, port.extract()?));
            }
        }
    }
    Ok(Tables { ports: ports?, entries })
}

type Ends = Vec<(u32, u32)>;

#[pyfunction]
#[allow(clippy::too_many_arguments)] // a border: each is an argument of its own in Python
pub fn of_dot1q(
    py: Python<'_>,
    switches: Vec<Bound<'_, PyAny>>,
    leaves: Ends,
    enters: Ends,
    hosts: Ends,
    macs: Vec<String>,
    tags: Option<PyReadonlyArray2<'_, u16>>,
) -> PyResult<PyState> {
    let fabric = fabric(switches.len(), leaves, enters, &hosts)?;
    let tag_shape = [hosts.len(), hosts.len() + 1];
    if hosts.len() != macs.len()
        || tags.as_ref().is_some_and(|tags| tags.as_array().shape() != tag_shape)
    {
        return Err(PyValueError::new_err("hosts and tags do not fit"));
    }
    let by_mac = macs.into_iter().zip(0..).collect();
    let tables: PyResult<_> = switches.iter().map(|switch| tables(switch, &by_mac)).collect();
    let tables = tables?;
    let tags = tags.map_or_else(Vec::new, |tags| tags.as_array().iter().copied().collect());
    let explored = py.detach(move || {
        let members = vec![vec![true; hosts.len()]];
        let (state, mut behaviour) = bridges(fabric, tables, tags)?;
        Ok(PyState::explored(state, &mut behaviour, &members))
    });
    explored.map_err(|_: forwarding::state::TooManyClasses| {
        PyValueError::new_err("a switch distinguishes more than 65,535 kinds of destinations")
    })
}
