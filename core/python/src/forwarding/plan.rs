//! A state from the arrays of a plan.

use std::sync::Arc;

use forwarding::plan::{Conflict, HopSets, NextHops, Paths, Plan};
use forwarding::planned::planned;
use forwarding::source_choices::SourceChoices;
use forwarding::state::NOT_SENT;
use forwarding::table_hops::TableHops;
use pyo3::exceptions::{PyLookupError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{flat, rows as len, square};
use super::state::{fabric, PyState};
use crate::graph::next_hops::PyNextHops;

fn conflict(conflict: Conflict) -> PyErr {
    match conflict {
        Conflict::NextHop(at, vlan, to, channels) => {
            PyLookupError::new_err(("next hop", at, vlan, to, channels))
        }
        Conflict::Priority(before, after, was, two) => {
            PyLookupError::new_err(("priority", before, after, was, two.map(u32::from)))
        }
    }
}

/// The arrays of a plan whose first switches choose.
fn source_choices(
    arrays: &Bound<'_, PyDict>,
    switches: usize,
    channels: usize,
) -> PyResult<SourceChoices> {
    let intermediates = len(arrays, "towards")?;
    let kinds = len(arrays, "rises")?;
    let vlan: Vec<u16> = flat(arrays, "vlan", &[len(arrays, "vlan")?])?;
    let direct: Vec<i32> = flat(arrays, "direct", &[switches, switches])?;
    let towards: Vec<i32> = flat(arrays, "towards", &[intermediates, switches])?;
    let rises: Vec<bool> = flat(arrays, "rises", &[kinds, kinds])?;
    let choices = SourceChoices {
        vlan: vlan.first().copied().unwrap_or(0),
        intermediate: flat(arrays, "intermediate", &[switches])?,
        ends: flat(arrays, "choice_ends", &[switches, switches])?,
        over: flat(arrays, "over", &[len(arrays, "over")?])?,
        kind: flat(arrays, "kind", &[channels])?,
        rises: rises.chunks(kinds.max(1)).map(<[bool]>::to_vec).collect(),
        direct: direct.as_slice().into(),
        towards: towards.as_slice().into(),
    };
    let is_channel = |&channel: &i32| (-1..channels as i32).contains(&channel);
    let fits = direct.iter().chain(&towards).all(is_channel)
        && choices.intermediate.iter().all(|&number| (number as usize) < intermediates)
        && choices.over.iter().all(|&number| usize::from(number) < intermediates)
        && choices.kind.iter().all(|&kind| usize::from(kind) < kinds)
        && choices.ends.last().copied().unwrap_or(0) as usize == choices.over.len()
        && choices.ends.is_sorted()
        && intermediates + usize::from(choices.vlan) < usize::from(NOT_SENT);
    fits.then_some(choices).ok_or_else(|| PyValueError::new_err("choices at sources do not fit"))
}

type Ends = Vec<(u32, u32)>;

#[pyfunction]
#[allow(clippy::too_many_arguments)] // a border: each is an argument of its own in Python
pub fn of_plan(
    py: Python<'_>,
    switches: usize,
    leaves: Ends,
    enters: Ends,
    hosts: Ends,
    members: Vec<Vec<bool>>,
    host_tags: bool,
    arrays: &Bound<'_, PyDict>,
    also_for: Vec<Bound<'_, PyState>>,
) -> PyResult<PyState> {
    let fabric = fabric(switches, leaves, enters, &hosts)?;
    let channels = fabric.channels();
    let row: Vec<u32> = flat(arrays, "row", &[hosts.len()])?;
    let flood_vlan: Vec<u16> = flat(arrays, "flood_vlan", &[len(arrays, "flood_vlan")?])?;
    let rows = flood_vlan.len();
    let vlan: Vec<u16> = flat(arrays, "vlan", &[len(arrays, "vlan")?])?;
    let tree = square(arrays, "tree", switches)?;
    let tree = tree.as_slice()?;
    let tree_priority: Vec<u8> = flat(arrays, "tree_priority", &[switches, switches])?;
    let is_channel = |&channel: &i32| (-1..channels as i32).contains(&channel);
    let is_tree = tree.iter().all(is_channel);
    let tree = tree.into();
    let mut plan =
        Plan { row, vlan, host_tags, flood_vlan, tree, tree_priority, members, ..Plan::default() };
    let mut fits = [rows, rows * switches].contains(&plan.vlan.len())
        && plan.row.iter().all(|&row| (row as usize) < rows)
        && is_tree
        && plan.members.iter().all(|of_group| of_group.len() == hosts.len());
    let mut wanted = vec![false; switches];
    hosts.iter().for_each(|&(switch, _)| wanted[switch as usize] = true);
    if arrays.contains("channels")? {
        let longest: usize =
            arrays.get_item("longest")?.map_or(Ok(0), |longest| longest.extract())?;
        let paths: Vec<i32> = flat(arrays, "channels", &[rows, switches, longest])?;
        let priorities: Vec<u8> = flat(arrays, "priorities", &[rows, switches, longest])?;
        plan.layers = arrays.get_item("layers")?.map_or(Ok(1), |layers| layers.extract())?;
        let layers = plan.layers.max(1) as usize;
        fits &= paths.iter().all(is_channel)
            && rows == rows / layers * layers
            && plan.row.iter().all(|&row| (row as usize) < rows / layers);
        if !fits {
            return Err(PyValueError::new_err("rows, channels or members do not fit"));
        }
        let paths = Paths { channels: &paths, priorities: &priorities, longest };
        plan.follow(&fabric, paths, &wanted).map_err(conflict)?;
    } else if arrays.contains("set_ends")? {
        let ends: Vec<u32> = flat(arrays, "set_ends", &[switches, switches])?;
        let sets: Vec<i32> = flat(arrays, "set_channels", &[len(arrays, "set_channels")?])?;
        plan.first = (0..rows as u32).collect();
        plan.first_priority = flat(arrays, "first_priority", &[rows, switches])?;
        fits &= (ends.last().copied().unwrap_or(0) as usize == sets.len())
            && ends.is_sorted()
            && sets.iter().all(|&channel| (0..channels as i32).contains(&channel))
            && plan.vlan.windows(2).all(|pair| pair[0] == pair[1]);
        if !fits {
            return Err(PyValueError::new_err("rows, channels or members do not fit"));
        }
        let vlan = plan.vlan.first().copied().unwrap_or(0);
        let channels: Vec<u32> = sets.into_iter().map(|channel| channel as u32).collect();
        let vcs = match arrays.contains("set_vcs")? {
            true => flat(arrays, "set_vcs", &[channels.len()])?,
            false => Vec::new(),
        };
        let stays = arrays.get_item("set_stays")?.map_or(Ok(false), |stays| stays.extract())?;
        plan.next = NextHops::Sets(HopSets { vlan, ends, channels, vcs, stays });
    } else if arrays.contains("choice_ends")? {
        plan.first = (0..rows as u32).collect();
        plan.first_priority = vec![0; rows * switches];
        let choices = source_choices(arrays, switches, channels)?;
        fits &= plan.vlan.iter().all(|&vlan| vlan == choices.vlan);
        if !fits {
            return Err(PyValueError::new_err("rows, channels or members do not fit"));
        }
        plan.next = NextHops::AtSource(choices);
    } else {
        let vlans: Vec<u16> = flat(arrays, "table_vlan", &[len(arrays, "table_vlan")?])?;
        let columns: Vec<i32> = match arrays.contains("columns")? {
            true => flat(arrays, "columns", &[switches])?,
            false => (0..switches as i32).collect(),
        };
        let width = columns.iter().filter(|&&column| column >= 0).count();
        let next_hops = arrays.get_item("next_hop")?;
        let next_hops = next_hops.as_ref().map(|of| of.cast::<PyNextHops>()).transpose()?;
        let next_hops = next_hops.map(|of| Arc::clone(&of.get().0)).unwrap_or_default();
        fits &= (next_hops.tables(), next_hops.switches(), next_hops.width())
            == (vlans.len(), switches, width);
        plan.first = flat(arrays, "first", &[rows])?;
        plan.first_priority =
            flat(arrays, "first_priority", &[len(arrays, "first_priority")?, switches])?;
        let firsts = plan.first_priority.len() / switches.max(1);
        fits &= plan.first.iter().all(|&first| (first as usize) < firsts);
        if !fits {
            return Err(PyValueError::new_err("rows, channels or members do not fit"));
        }
        let column = |(&is_wanted, &column): (&bool, &i32)| {
            usize::try_from(column).ok().filter(|_| is_wanted)
        };
        let columns_of: Vec<Option<usize>> = wanted.iter().zip(&columns).map(column).collect();
        let has_all = columns_of.iter().zip(&wanted).all(|(of, &wanted)| of.is_some() == wanted);
        if !has_all || columns.iter().any(|&column| column >= width as i32) {
            return Err(PyValueError::new_err("columns do not fit"));
        }
        let hops = TableHops::new(&fabric, &vlans, &columns_of, next_hops);
        let text = "next hops: a channel does not leave its switch";
        plan.next = NextHops::Tables(hops.ok_or_else(|| PyValueError::new_err(text))?);
        let changes: Vec<i32> = flat(arrays, "changes", &[len(arrays, "changes")?, 4])?;
        let change = |row: &[i32]| ((row[0] as u32, row[1] as u32, row[2] as u8), row[3] as u8);
        plan.changes = changes.chunks(4).map(change).collect();
    }
    let others: Vec<&PyState> = also_for.iter().map(Bound::get).collect();
    let hosts = fabric.hosts();
    py.detach(move || {
        let members = plan.members.clone();
        let (mut state, mut behaviour) = planned(fabric, plan);
        for other in others.iter().map(|of| of.state()) {
            if other.fabric.hosts() != hosts || other.floods != state.floods {
                let text = "the states are of different fabrics or groups";
                return Err(PyValueError::new_err(text));
            }
            state.fill_for(other, &mut behaviour);
        }
        Ok(PyState::explored(state, &mut behaviour, &members))
    })
}
