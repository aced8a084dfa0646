//! A state from the tables of 802.1Q switches.

use std::collections::{BTreeMap, HashMap, HashSet};

use forwarding::dot1q::{bridges, Port, Tables};
use numpy::ndarray::ArrayView1;
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

/// By address that no host has: (switch, VLAN, port) of its entries.
type Others = BTreeMap<String, Vec<(usize, u16, u32)>>;

/// The tables of a switch, with the entries for hosts; those for other addresses are added to
/// `others`.
fn tables(
    number: usize,
    value: &Bound<'_, PyAny>,
    hosts: &HashMap<String, u32>,
    others: &mut Others,
) -> PyResult<Tables> {
    let py = value.py();
    let ports = value.getattr(intern!(py, "ports"))?;
    let ports: PyResult<_> = ports.try_iter()?.map(|one| port(&one?)).collect();
    let mut entries = Vec::new();
    for (vlan, of_vlan) in value.getattr(intern!(py, "macs"))?.cast::<PyDict>()? {
        let vlan = vlan.extract()?;
        for (mac, port) in of_vlan.cast::<PyDict>()? {
            let (mac, port) = (mac.cast::<PyString>()?.to_str()?, port.extract()?);
            match hosts.get(mac) {
                Some(&host) => entries.push((host, vlan, port)),
                None => others.entry(mac.to_owned()).or_default().push((number, vlan, port)),
            }
        }
    }
    Ok(Tables { ports: ports?, entries })
}

/// Adds the entries for addresses that no host has to the tables of switches. Returns the addresses,
/// one of those with equal entries.
fn add_others(tables: &mut [Tables], others: Others, first: u32) -> Vec<String> {
    let mut addresses = Vec::new();
    let mut known = HashSet::new();
    for (address, entries) in others {
        if known.contains(&entries) {
            continue;
        }
        let destination = first + addresses.len() as u32;
        for &(switch, vlan, port) in &entries {
            tables[switch].entries.push((destination, vlan, port));
        }
        known.insert(entries);
        addresses.push(address);
    }
    addresses
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
    let mut others = Others::new();
    let read = |(number, switch)| tables(number, switch, &by_mac, &mut others);
    let tables: PyResult<Vec<Tables>> = switches.iter().enumerate().map(read).collect();
    let mut tables = tables?;
    let unassigned = add_others(&mut tables, others, hosts.len() as u32 + 1);
    // Addresses that no host has get the tag of broadcasts.
    let more = unassigned.len();
    let tags = tags.map_or_else(Vec::new, |tags| {
        let row = |of: ArrayView1<'_, u16>| {
            let last = of[hosts.len()];
            of.iter().copied().chain(std::iter::repeat_n(last, more)).collect::<Vec<_>>()
        };
        tags.as_array().rows().into_iter().flat_map(row).collect()
    });
    let explored = py.detach(move || {
        let members = vec![vec![true; hosts.len()]];
        let (state, mut behaviour) = bridges(fabric, tables, tags, unassigned)?;
        Ok(PyState::explored(state, &mut behaviour, &members))
    });
    explored.map_err(|_: forwarding::state::TooManyClasses| {
        PyValueError::new_err("a switch distinguishes more than 65,535 kinds of destinations")
    })
}
