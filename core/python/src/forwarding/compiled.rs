//! Rules compiled from a state, in columns.

use std::collections::BTreeSet;

use forwarding::compile::rules::{Action, Masked, Rule, Rules};
use numpy::{Element, IntoPyArray};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::rules::PySwitch;

/// The kind and the argument of an action; kinds are numbered as in `forwarding.pyi`.
fn encoded(action: Action) -> (u8, u32) {
    match action {
        Action::Output(port) => (0, port),
        Action::PushVlan => (1, 0),
        Action::PopVlan => (2, 0),
        Action::SetVlan(vlan) => (3, vlan.into()),
        Action::SetPriority(priority) => (4, priority.into()),
        Action::Group(number) => (5, number),
        Action::Choose(basis) => (6, basis.into()),
        Action::Member(port) => (7, port),
    }
}

/// Compiled rules; see the class of that name in `forwarding.pyi`.
#[pyclass(frozen, name = "Compiled", module = "knotless._core.forwarding")]
pub struct PyCompiled(pub Rules);

#[pymethods]
impl PyCompiled {
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        columns(py, &self.0)
    }

    fn switches(&self) -> Vec<PySwitch> {
        self.0.switches().into_iter().map(|switch| (switch, BTreeSet::new()).into()).collect()
    }
}

fn columns<'py>(py: Python<'py>, rules: &Rules) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    fn add<T: Element>(
        found: &Bound<'_, PyDict>,
        name: &str,
        rules: &[Rule],
        of: impl Fn(&Rule) -> T,
    ) -> PyResult<()> {
        let column: Vec<T> = rules.iter().map(of).collect();
        found.set_item(name, column.into_pyarray(found.py()))
    }
    let masked = |name: &str, of: fn(&Rule) -> Masked| -> PyResult<()> {
        add(&found, name, &rules.rules, |rule| of(rule).value)?;
        add(&found, &format!("{name}_mask"), &rules.rules, |rule| of(rule).mask)
    };
    masked("eth_dst", |rule| rule.eth_dst)?;
    masked("eth_src", |rule| rule.eth_src)?;
    masked("vlan_vid", |rule| rule.vlan)?;
    add(&found, "table", &rules.rules, |rule| rule.table)?;
    add(&found, "priority", &rules.rules, |rule| rule.priority)?;
    add(&found, "in_port", &rules.rules, |rule| rule.in_port)?;
    add(&found, "metadata", &rules.rules, |rule| rule.metadata)?;
    add(&found, "eth_type", &rules.rules, |rule| rule.eth_type)?;
    add(&found, "source_ip", &rules.rules, |rule| rule.source_ip)?;
    add(&found, "vlan_pcp", &rules.rules, |rule| rule.vlan_pcp)?;
    add(&found, "actions", &rules.rules, |rule| rule.actions)?;
    add(&found, "write_metadata", &rules.rules, |rule| rule.write_metadata)?;
    add(&found, "goto", &rules.rules, |rule| rule.goto)?;
    found.set_item("rule_ends", rules.ends.clone().into_pyarray(py))?;
    found.set_item("group_ends", rules.group_ends.clone().into_pyarray(py))?;
    found.set_item("bucket_ends", rules.bucket_ends.clone().into_pyarray(py))?;
    found.set_item("buckets", rules.buckets.clone().into_pyarray(py))?;
    found.set_item("list_ends", rules.lists.ends.clone().into_pyarray(py))?;
    let (kinds, arguments): (Vec<u8>, Vec<u32>) =
        rules.lists.actions.iter().map(|&action| encoded(action)).unzip();
    found.set_item("action_kind", kinds.into_pyarray(py))?;
    found.set_item("action_argument", arguments.into_pyarray(py))?;
    Ok(found)
}
