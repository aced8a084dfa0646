//! A state from next-hop tables.

use std::sync::Arc;

use forwarding::explore::explore_change;
use forwarding::fabric::Fabric;
use forwarding::state::{Choice, State};
use forwarding::tables::{with_tables, Action, Gap, TableSwitches, Tables};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{flat, rows};
use super::state::{fabric, PyState};

pub(super) type Ends = Vec<(u32, u32)>;

/// The actions: each of a kind, with a list of ports or the number of a map.
pub(super) fn actions(arrays: &Bound<'_, PyDict>, maps: usize) -> PyResult<Vec<Action>> {
    let wrong = || PyValueError::new_err("actions do not fit");
    let count = rows(arrays, "action_kind")?;
    let kinds: Vec<u8> = flat(arrays, "action_kind", &[count])?;
    let ends: Vec<u32> = flat(arrays, "port_end", &[count])?;
    let ports: Vec<u32> = flat(arrays, "ports", &[rows(arrays, "ports")?])?;
    let mut first = 0;
    let mut found = Vec::with_capacity(count);
    for (kind, end) in kinds.into_iter().zip(ends) {
        let of_action = ports.get(first..end as usize).ok_or_else(wrong)?.to_vec();
        first = end as usize;
        found.push(match kind {
            0 => Action::Send(Choice::All, of_action),
            1 => Action::Send(Choice::OneOf, of_action),
            4 => Action::Link(of_action),
            2 => match of_action[..] {
                [map] if (map as usize) < maps => Action::Relabel(map),
                _ => return Err(wrong()),
            },
            _ => Action::Unknown,
        });
    }
    Ok(found)
}

pub(super) fn tables(arrays: &Bound<'_, PyDict>, fabric: &Fabric) -> PyResult<Tables> {
    let (switches, hosts) = (fabric.switches(), fabric.hosts());
    let channels = fabric.channels() + hosts;
    let destinations = rows(arrays, "class")?;
    let wrong = |what: &str| PyValueError::new_err(format!("{what} do not fit"));
    let towards: Vec<i64> = flat(arrays, "towards", &[rows(arrays, "towards")?])?;
    let labels = towards.len();
    let maps = rows(arrays, "relabelled")?;
    let pairs = rows(arrays, "vc_in")?;
    let vc_in: Vec<u32> = flat(arrays, "vc_in", &[pairs])?;
    let vc_out: Vec<u32> = flat(arrays, "vc_out", &[pairs])?;
    let vc_row: Vec<u32> = flat(arrays, "vc_row", &[pairs])?;
    if vc_in.iter().any(|&channel| channel as usize >= channels) {
        return Err(wrong("channels in"));
    }
    let (vcs, vc_labels) = virtual_channels(arrays, &vc_row, labels)?;
    let tables = Tables {
        first_class: flat(arrays, "first_class", &[switches])?,
        action_of: flat(arrays, "action_of", &[rows(arrays, "action_of")?])?,
        actions: actions(arrays, maps)?,
        towards: towards.iter().map(|&to| u32::try_from(to).ok()).collect(),
        relabelled: flat(arrays, "relabelled", &[maps, labels])?,
        vc_row: vc_in.into_iter().zip(vc_out).zip(vc_row.iter().copied()).collect(),
        vcs,
        vc_labels,
        class: flat(arrays, "class", &[destinations, switches])?,
    };
    if destinations < hosts || switches == 0 && destinations > 0 {
        return Err(wrong("destinations"));
    }
    let known = |label: &u16| usize::from(*label) < labels;
    if !tables.relabelled.iter().all(known) || labels > usize::from(u16::MAX) {
        return Err(wrong("labels"));
    }
    if tables.towards.iter().flatten().any(|&to| to as usize >= hosts) {
        return Err(wrong("destinations of labels"));
    }
    let (actions, places) = (tables.actions.len(), tables.action_of.len());
    let fits = tables.class.chunks(switches.max(1)).all(|of_destination| {
        let mut ends = of_destination.iter().zip(&tables.first_class);
        ends.all(|(&class, &first)| first as usize + usize::from(class) < places)
    });
    if !fits || tables.action_of.iter().any(|&action| action as usize >= actions) {
        return Err(wrong("classes"));
    }
    Ok(tables)
}

/// The virtual channels, and the labels on the channels out, of `vc_row`.
fn virtual_channels(
    arrays: &Bound<'_, PyDict>,
    vc_row: &[u32],
    labels: usize,
) -> PyResult<(Vec<u8>, Vec<u16>)> {
    let vc_rows = rows(arrays, "vcs")?;
    let label_rows = rows(arrays, "vc_labels")?;
    let vcs = flat(arrays, "vcs", &[vc_rows, labels])?;
    let vc_labels: Vec<u16> = flat(arrays, "vc_labels", &[label_rows, labels])?;
    let known = vc_labels.iter().all(|&label| usize::from(label) < labels);
    if ![0, vc_rows].contains(&label_rows) || !known {
        return Err(PyValueError::new_err("labels do not fit"));
    }
    if vc_row.iter().any(|&row| row as usize >= vc_rows) {
        return Err(PyValueError::new_err("rows of virtual channels do not fit"));
    }
    Ok((vcs, vc_labels))
}

/// How many of the last hosts stand for ports whose far end is not known.
pub(super) fn unread(arrays: &Bound<'_, PyDict>, hosts: usize) -> PyResult<u32> {
    let item = arrays.get_item("unread")?;
    let unread = item.map_or(Ok(0), |value| value.extract::<u32>())?;
    let fits = unread as usize <= hosts;
    fits.then_some(unread).ok_or_else(|| PyValueError::new_err("unread ports do not fit"))
}

fn described(gap: Gap) -> String {
    match gap {
        Gap::Class(class) => format!("class {class}"),
        Gap::Port(port) => format!("port {port}"),
        Gap::Vc(before, after) => format!("ports {before} {after}"),
    }
}

/// The state that arrays describe, not yet explored, and the behaviour from which it is filled.
pub(super) fn unexplored(
    switches: usize,
    leaves: Ends,
    enters: Ends,
    hosts: &Ends,
    arrays: &Bound<'_, PyDict>,
) -> PyResult<(State, TableSwitches)> {
    let fabric = fabric(switches, leaves, enters, hosts)?;
    let tables = tables(arrays, &fabric)?;
    let representative: Vec<u32> = flat(arrays, "representative", &[hosts.len()])?;
    let label_rows = rows(arrays, "first_labels")?;
    if ![0, hosts.len()].contains(&label_rows)
        || representative.iter().any(|&host| host as usize >= hosts.len())
    {
        return Err(PyValueError::new_err("hosts do not fit"));
    }
    let destinations = rows(arrays, "class")?;
    let first_labels: Vec<u16> = flat(arrays, "first_labels", &[label_rows, destinations])?;
    let unread = unread(arrays, hosts.len())?;
    let labels = tables.towards.len();
    let sent = first_labels.iter().filter(|&&label| label != forwarding::state::NOT_SENT);
    if labels == 0 || sent.max().is_some_and(|&label| usize::from(label) >= labels) {
        return Err(PyValueError::new_err("first labels do not fit"));
    }
    Ok(with_tables(fabric, tables, representative, first_labels, unread))
}

#[pyfunction]
pub fn of_tables(
    py: Python<'_>,
    switches: usize,
    leaves: Ends,
    enters: Ends,
    hosts: Ends,
    arrays: &Bound<'_, PyDict>,
) -> PyResult<PyState> {
    let (state, mut behaviour) = unexplored(switches, leaves, enters, &hosts, arrays)?;
    Ok(py.detach(move || {
        let explored = PyState::explored(state, &mut behaviour, &[]);
        explored.with_problems(behaviour.unknown().map(|(at, gap)| (at, described(gap))).collect())
    }))
}

/// What packets for some destinations do before and after a change of a switch's classes; see
/// `forwarding.pyi`.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // a border: each is an array of its own in Python
pub fn of_changed_tables(
    py: Python<'_>,
    switches: usize,
    leaves: Ends,
    enters: Ends,
    hosts: Ends,
    arrays: &Bound<'_, PyDict>,
    traffics: Vec<Bound<'_, PyDict>>,
    switch: u32,
    classes: PyReadonlyArray1<'_, u16>,
    only: Vec<u32>,
) -> PyResult<Vec<(PyState, PyState)>> {
    let Some(first) = traffics.first() else { return Ok(Vec::new()) };
    for name in ["vcs", "vc_labels"] {
        arrays.set_item(name, first.get_item(name)?)?;
    }
    let (mut state, mut behaviour) = unexplored(switches, leaves, enters, &hosts, arrays)?;
    let labels = rows(arrays, "towards")?;
    let vc_row: Vec<u32> = flat(arrays, "vc_row", &[rows(arrays, "vc_row")?])?;
    let classes = classes.as_slice()?.to_vec();
    let places: Vec<u32> = flat(arrays, "first_class", &[switches])?;
    let first = places.get(switch as usize).copied();
    let end = places.get(switch as usize + 1).copied();
    let end = end.map_or_else(|| rows(arrays, "action_of").map(|count| count as u32), Ok)?;
    let own = first.map_or(0, |first| end.saturating_sub(first));
    if classes.len() != state.destinations() || classes.iter().any(|&of| u32::from(of) >= own) {
        return Err(PyValueError::new_err("changed classes do not fit"));
    }
    if only.iter().any(|&destination| destination as usize >= state.destinations()) {
        return Err(PyValueError::new_err("destinations do not fit"));
    }
    let old: Vec<u16> =
        (0..state.destinations()).map(|of| state.class_of(switch, of as u32)).collect();
    state.reserve_classes(switch, own);
    let mut results = Vec::with_capacity(traffics.len());
    for traffic in &traffics {
        let (vcs, vc_labels) = virtual_channels(traffic, &vc_row, labels)?;
        let tables = Tables { vcs, vc_labels, ..behaviour.into_tables() };
        behaviour = TableSwitches::new(tables);
        let mut unfilled = state.clone();
        results.push(py.detach(|| {
            behaviour.set_classes(switch, &old);
            let (before, after) =
                explore_change(&mut unfilled, &mut behaviour, &only, |state, behaviour| {
                    state.set_classes(switch, &classes);
                    behaviour.set_classes(switch, &classes);
                });
            let unknown = behaviour.unknown().map(|(at, gap)| (at, described(gap)));
            let problems: Vec<_> = unknown.collect();
            let found = |found| PyState::found(Arc::default(), found);
            (found(before).with_problems(problems.clone()), found(after).with_problems(problems))
        }));
    }
    Ok(results)
}
