//! Rules of the core as values of `knotless.forwarding.openflow.rules`.
//!
//! Python changes, compares and sends rules, so it has values of its own, which are made here only.

use std::collections::HashMap;

use forwarding::openflow::groups::Buckets;
use forwarding::openflow::rule::{Action, Matched, Rule};
use forwarding::openflow::text::{self, Known, Parsed};
use forwarding::openflow::text_values::{Ports, TextError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// The rules and the groups of a switch: tuples of Rule and Group.
pub type Views<'py> = (Bound<'py, PyTuple>, Bound<'py, PyTuple>);

/// A text that cannot be read, as an exception.
pub fn wrong(error: TextError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The values of one switch: what is equal is made once.
struct Maker<'py> {
    module: Bound<'py, PyModule>,
    field: Bound<'py, PyAny>,
    rule: Bound<'py, PyAny>,
    fields: HashMap<Matched, Bound<'py, PyAny>>,
    lists: HashMap<Vec<Action>, Bound<'py, PyTuple>>,
}

impl<'py> Maker<'py> {
    fn new(py: Python<'py>) -> PyResult<Self> {
        let module = py.import("knotless.forwarding.openflow.rules")?;
        let (field, rule) = (module.getattr("Field")?, module.getattr("Rule")?);
        Ok(Self { module, field, rule, fields: HashMap::new(), lists: HashMap::new() })
    }

    fn field(&mut self, matched: Matched) -> PyResult<Bound<'py, PyAny>> {
        if let Some(known) = self.fields.get(&matched) {
            return Ok(known.clone());
        }
        let (field, value, mask) = matched;
        let made = self.field.call1((field.name(), value, mask))?;
        self.fields.insert(matched, made.clone());
        Ok(made)
    }

    fn action(&self, action: &Action) -> PyResult<Bound<'py, PyAny>> {
        let class = |name: &str| self.module.getattr(name);
        match action {
            Action::Output(port) => class("Output")?.call1((port,)),
            Action::PushVlan => class("PushVlan")?.call0(),
            Action::PopVlan => class("PopVlan")?.call0(),
            Action::Set(field, value) => class("SetField")?.call1((field.name(), value)),
            Action::Group(number) => class("ToGroup")?.call1((number,)),
            Action::Choose { ports, basis } => {
                class("Choose")?.call1((PyTuple::new(self.module.py(), ports)?, basis))
            }
            Action::Bucket(..) | Action::Chosen(_) | Action::SetOther(_) | Action::Other => {
                Err(PyValueError::new_err("an action that no rule of a text or a plan has"))
            }
        }
    }

    fn actions(&mut self, actions: &[Action]) -> PyResult<Bound<'py, PyTuple>> {
        if let Some(known) = self.lists.get(actions) {
            return Ok(known.clone());
        }
        let made =
            actions.iter().map(|action| self.action(action)).collect::<PyResult<Vec<_>>>()?;
        let made = PyTuple::new(self.module.py(), made)?;
        self.lists.insert(actions.to_vec(), made.clone());
        Ok(made)
    }

    fn rule(&mut self, rule: &Rule) -> PyResult<Bound<'py, PyAny>> {
        let fields = rule.fields.iter().map(|&field| self.field(field));
        let fields = fields.collect::<PyResult<Vec<_>>>()?;
        let fields = PyTuple::new(self.module.py(), fields)?;
        let actions = self.actions(&rule.actions)?;
        let Rule { table, priority, metadata, goto, cookie, .. } = *rule;
        self.rule.call1((table, priority, fields, actions, metadata, goto, cookie))
    }

    fn rules(&mut self, rules: &[Rule]) -> PyResult<Bound<'py, PyTuple>> {
        let made = rules.iter().map(|rule| self.rule(rule)).collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(self.module.py(), made)
    }

    fn group(&mut self, id: u32, group: &Buckets) -> PyResult<Bound<'py, PyAny>> {
        let py = self.module.py();
        let lists =
            group.lists.iter().map(|list| self.actions(list)).collect::<PyResult<Vec<_>>>()?;
        let (lists, watch) = (PyTuple::new(py, lists)?, PyTuple::new(py, &group.watch)?);
        self.module.getattr("Group")?.call1((id, lists, watch, group.selects))
    }
}

/// The values of rules and groups.
pub fn views<'py>(
    py: Python<'py>,
    rules: &[Rule],
    groups: &[(u32, Buckets)],
) -> PyResult<Views<'py>> {
    let mut maker = Maker::new(py)?;
    let rules = maker.rules(rules)?;
    let groups = groups.iter().map(|(id, group)| maker.group(*id, group));
    Ok((rules, PyTuple::new(py, groups.collect::<PyResult<Vec<_>>>()?)?))
}

#[pyfunction]
pub fn parse_rules<'py>(py: Python<'py>, flows: &str, groups: &str) -> PyResult<Views<'py>> {
    let Parsed { rules, groups } = py.detach(|| text::parse(flows, groups)).map_err(wrong)?;
    views(py, &rules, &groups)
}

/// Rules, groups, faults and unread rules.
type KnownViews<'py> =
    (Bound<'py, PyTuple>, Bound<'py, PyTuple>, Bound<'py, PyList>, Bound<'py, PyTuple>);

#[pyfunction]
pub fn parse_known_rules<'py>(
    py: Python<'py>,
    text: &str,
    ports: HashMap<String, u32>,
) -> PyResult<KnownViews<'py>> {
    let ports = Ports::named(ports);
    let Known { parsed, faults, unread } = py.detach(|| text::parse_known(text, &ports));
    let (rules, groups) = views(py, &parsed.rules, &parsed.groups)?;
    let (unread, _) = views(py, &unread, &[])?;
    Ok((rules, groups, PyList::new(py, faults)?, unread))
}
