//! `knotless_core.rules`.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use rules::fabric::Fabric;
use rules::switch::{Action, Field, Rule, Switch};
use rules::walk::{self, Flood};

type End = (usize, u32);
type Pairs<'py, T> = Bound<'py, PyArray2<T>>;
type Walked<'py> = (
    Pairs<'py, u32>,
    Pairs<'py, u32>,
    Bound<'py, PyArray1<i64>>,
    Pairs<'py, i64>,
    (u64, u64),
    Vec<usize>,
);

fn field_named(name: &str) -> Option<Field> {
    Some(match name {
        "in_port" => Field::InPort,
        "metadata" => Field::Metadata,
        "eth_dst" => Field::EthDst,
        "eth_src" => Field::EthSrc,
        "eth_type" => Field::EthType,
        "vlan_vid" => Field::VlanVid,
        "vlan_pcp" => Field::VlanPcp,
        _ => return None,
    })
}

fn action(value: &Bound<'_, PyAny>) -> PyResult<Action> {
    let py = value.py();
    Ok(match value.get_type().name()?.to_str()? {
        "Output" => {
            let port: u64 = value.getattr(intern!(py, "port"))?.extract()?;
            u32::try_from(port).map_or(Action::Unfollowed, Action::Output)
        }
        "PushVlan" => Action::PushVlan,
        "PopVlan" => Action::PopVlan,
        "SetField" => {
            let name: Bound<'_, PyString> = value.getattr(intern!(py, "name"))?.extract()?;
            let set: u64 = value.getattr(intern!(py, "value"))?.extract()?;
            match name.to_str()? {
                "vlan_vid" => Action::SetVid((set & 0xFFF) as u16),
                "vlan_pcp" if set < 8 => Action::SetPcp(set as u8),
                _ => Action::Unfollowed,
            }
        }
        "ToGroup" => {
            let group: u64 = value.getattr(intern!(py, "group_id"))?.extract()?;
            u32::try_from(group).map_or(Action::Unfollowed, Action::Group)
        }
        _ => Action::Unfollowed,
    })
}

fn actions(values: &Bound<'_, PyAny>) -> PyResult<Vec<Action>> {
    values.try_iter()?.map(|value| action(&value?)).collect()
}

/// A rule, or None where it matches what is not followed.
fn rule(value: &Bound<'_, PyAny>) -> PyResult<Option<Rule>> {
    let py = value.py();
    let mut fields = Vec::new();
    for field in value.getattr(intern!(py, "match"))?.try_iter()? {
        let field = field?;
        let name: Bound<'_, PyString> = field.getattr(intern!(py, "name"))?.extract()?;
        let Some(number) = field_named(name.to_str()?) else { return Ok(None) };
        let wanted = field.getattr(intern!(py, "value"))?.extract()?;
        fields.push((number, wanted, field.getattr(intern!(py, "mask"))?.extract()?));
    }
    Ok(Some(Rule {
        table: value.getattr(intern!(py, "table"))?.extract()?,
        priority: value.getattr(intern!(py, "priority"))?.extract()?,
        fields,
        actions: actions(&value.getattr(intern!(py, "actions"))?)?,
        metadata: value.getattr(intern!(py, "metadata"))?.extract()?,
        goto: value.getattr(intern!(py, "goto"))?.extract()?,
    }))
}

/// A switch, and whether it has rules that match what is not followed.
fn switch(value: &Bound<'_, PyAny>) -> PyResult<(Switch, bool)> {
    let py = value.py();
    let mut rules = Vec::new();
    let mut strange = false;
    for one in value.getattr(intern!(py, "rules"))?.try_iter()? {
        match rule(&one?)? {
            Some(made) => rules.push(made),
            None => strange = true,
        }
    }
    let mut groups = Vec::new();
    for group in value.getattr(intern!(py, "groups"))?.try_iter()? {
        let group = group?;
        let number: u64 = group.getattr(intern!(py, "group_id"))?.extract()?;
        let buckets = group.getattr(intern!(py, "buckets"))?;
        let buckets: PyResult<_> = buckets.try_iter()?.map(|bucket| actions(&bucket?)).collect();
        if let Ok(number) = u32::try_from(number) {
            groups.push((number, buckets?));
        }
    }
    Ok((Switch::new(rules, groups), strange))
}

fn pairs<T: numpy::Element>(py: Python<'_>, flat: Vec<T>) -> PyResult<Pairs<'_, T>> {
    let rows = flat.len() / 2;
    flat.into_pyarray(py).reshape([rows, 2])
}

#[pyfunction]
#[pyo3(name = "walk")]
#[allow(clippy::too_many_arguments)] // a border: each is an array of its own in Python
fn walk_rules<'py>(
    py: Python<'py>,
    switches: Vec<Bound<'py, PyAny>>,
    leaves: Vec<End>,
    enters: Vec<End>,
    hosts: Vec<End>,
    macs: Vec<u64>,
    floods: Vec<(u64, u16, Vec<bool>)>,
    tags: Option<PyReadonlyArray2<'py, u16>>,
) -> PyResult<Walked<'py>> {
    let count = switches.len();
    let wrong = |&(switch, _): &End| switch >= count;
    let tag_shape = [macs.len(), macs.len() + floods.len()];
    if leaves.len() != enters.len()
        || hosts.len() != macs.len()
        || leaves.iter().chain(&enters).chain(&hosts).any(wrong)
        || floods.iter().any(|(_, _, members)| members.len() != hosts.len())
        || tags.as_ref().is_some_and(|tags| tags.as_array().shape() != tag_shape)
    {
        return Err(PyValueError::new_err("switches, channels, hosts and floods do not fit"));
    }
    let made: PyResult<Vec<(Switch, bool)>> = switches.iter().map(switch).collect();
    let (made, strange): (Vec<Switch>, Vec<bool>) = made?.into_iter().unzip();
    let fabric = Fabric::new(count, &leaves, enters, hosts);
    let floods =
        floods.into_iter().map(|(address, eth_type, member)| Flood { address, eth_type, member });
    let floods: Vec<Flood> = floods.collect();
    let tags = tags.as_ref().map(|tags| tags.as_array());
    let found = py.detach(|| {
        walk::walk(&fabric, made, &macs, &floods, |from, to| tags.map(|tags| tags[[from, to]]))
    });
    let flat = |found: Vec<(u32, u32)>| found.into_iter().flat_map(|(a, b)| [a, b]).collect();
    let edges = found.edges.into_iter().flat_map(|(a, b)| [a as i64, b as i64]).collect();
    Ok((
        pairs(py, flat(found.late))?,
        pairs(py, flat(found.lame))?,
        found.loads.into_pyarray(py),
        pairs(py, edges)?,
        (found.switches_passed, found.max_switches),
        (0..count).filter(|&switch| strange[switch]).collect(),
    ))
}

pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(walk_rules, module)?)
}
