//! Rules of Python, or in text, as the core's.

use std::collections::BTreeSet;
use std::sync::Arc;

use forwarding::openflow::groups::Buckets;
use forwarding::openflow::problem::Problem;
use forwarding::openflow::rule::{Action, Field, Frame, Rule};
use forwarding::openflow::switch::Switch;
use forwarding::openflow::tags::Tags;
use forwarding::openflow::text::{self, Parsed};
use forwarding::openflow::text_values::TextError;
use graph::parallel::{by_part, threads};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyString;

use super::views::wrong;

fn action(value: &Bound<'_, PyAny>) -> PyResult<Action> {
    let py = value.py();
    Ok(match value.get_type().name()?.to_str()? {
        "Output" => {
            let port: u64 = value.getattr(intern!(py, "port"))?.extract()?;
            u32::try_from(port).map_or(Action::Other, Action::Output)
        }
        "PushVlan" => Action::PushVlan,
        "PopVlan" => Action::PopVlan,
        "SetField" => {
            let name: Bound<'_, PyString> = value.getattr(intern!(py, "name"))?.extract()?;
            let set: u64 = value.getattr(intern!(py, "value"))?.extract()?;
            let name = name.to_str()?;
            Field::named(name)
                .map_or_else(|| Action::SetOther(name.to_owned()), |field| Action::Set(field, set))
        }
        "ToGroup" => {
            let group: u64 = value.getattr(intern!(py, "group_id"))?.extract()?;
            u32::try_from(group).map_or(Action::Other, Action::Group)
        }
        "Choose" => Action::Choose {
            ports: value.getattr(intern!(py, "ports"))?.extract()?,
            basis: value.getattr(intern!(py, "basis"))?.extract()?,
        },
        _ => Action::Other,
    })
}

fn actions(values: &Bound<'_, PyAny>) -> PyResult<Vec<Action>> {
    values.try_iter()?.map(|value| action(&value?)).collect()
}

/// A rule that is left out, since it cannot be followed: its table, and a field that it matches.
pub type Unfollowed = (u8, String);

/// A rule, or the name of a field that no rule of the core matches.
fn rule(value: &Bound<'_, PyAny>) -> PyResult<Result<Rule, Unfollowed>> {
    let py = value.py();
    let table = value.getattr(intern!(py, "table"))?.extract()?;
    let mut fields = Vec::new();
    for field in value.getattr(intern!(py, "match"))?.try_iter()? {
        let field = field?;
        let name: Bound<'_, PyString> = field.getattr(intern!(py, "name"))?.extract()?;
        let Some(named) = Field::named(name.to_str()?) else {
            return Ok(Err((table, name.to_str()?.to_owned())));
        };
        let wanted = field.getattr(intern!(py, "value"))?.extract()?;
        fields.push((named, wanted, field.getattr(intern!(py, "mask"))?.extract()?));
    }
    Ok(Ok(Rule {
        table,
        priority: value.getattr(intern!(py, "priority"))?.extract()?,
        fields,
        actions: actions(&value.getattr(intern!(py, "actions"))?)?,
        metadata: value.getattr(intern!(py, "metadata"))?.extract()?,
        goto: value.getattr(intern!(py, "goto"))?.extract()?,
        cookie: value.getattr(intern!(py, "cookie"))?.extract()?,
    }))
}

fn group(value: &Bound<'_, PyAny>) -> PyResult<Buckets> {
    let py = value.py();
    let lists: PyResult<_> = value
        .getattr(intern!(py, "buckets"))?
        .try_iter()?
        .map(|bucket| actions(&bucket?))
        .collect();
    Ok(Buckets {
        lists: lists?,
        watch: value.getattr(intern!(py, "watch"))?.extract()?,
        selects: value.getattr(intern!(py, "selects"))?.extract()?,
    })
}

/// Copies that leave: the port and the tags of each.
type Copies = Vec<(u32, Vec<u16>)>;

/// One switch's rules, for single frames; see the class of that name in `forwarding.pyi`.
#[pyclass(frozen, name = "Switch", module = "knotless._core.forwarding")]
pub struct PySwitch {
    /// The rules.
    pub switch: Arc<Switch>,
    /// Rules that are left out.
    pub left_out: BTreeSet<Unfollowed>,
}

impl PySwitch {
    /// The switch that has the rules and groups of two texts.
    fn read(flows: &str, groups: &str) -> Result<Self, TextError> {
        let Parsed { rules, groups } = text::parse(flows, groups)?;
        Ok(Self::of(rules, groups, BTreeSet::new()))
    }

    /// The switch that has these rules and groups; rules that cannot be followed are left out.
    fn of(
        mut rules: Vec<Rule>,
        groups: Vec<(u32, Buckets)>,
        mut left_out: BTreeSet<Unfollowed>,
    ) -> Self {
        rules.retain(|rule| {
            let field = rule.unfollowed();
            left_out.extend(field.map(|field| (rule.table, field.name().to_owned())));
            field.is_none()
        });
        Self { switch: Arc::new(Switch::new(rules, groups)), left_out }
    }
}

/// Rules that were read, or why they were not.
#[derive(IntoPyObject)]
pub enum Written {
    Rules(PySwitch),
    Fault(String),
}

impl From<Switch> for PySwitch {
    fn from(switch: Switch) -> Self {
        Self { switch: Arc::new(switch), left_out: BTreeSet::new() }
    }
}

#[pymethods]
impl PySwitch {
    #[new]
    fn new(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = value.py();
        let (mut rules, mut left_out) = (Vec::new(), BTreeSet::new());
        for one in value.getattr(intern!(py, "rules"))?.try_iter()? {
            match rule(&one?)? {
                Ok(made) => rules.push(made),
                Err(unfollowed) => {
                    left_out.insert(unfollowed);
                }
            }
        }
        let mut groups = Vec::new();
        for one in value.getattr(intern!(py, "groups"))?.try_iter()? {
            let one = one?;
            let number: u64 = one.getattr(intern!(py, "group_id"))?.extract()?;
            if let Ok(number) = u32::try_from(number) {
                groups.push((number, group(&one)?));
            }
        }
        Ok(Self::of(rules, groups, left_out))
    }

    #[staticmethod]
    fn written(py: Python<'_>, flows: &str, groups: &str) -> PyResult<Self> {
        py.detach(|| Self::read(flows, groups)).map_err(wrong)
    }

    #[staticmethod]
    fn all_written(py: Python<'_>, texts: Vec<(PyBackedStr, PyBackedStr)>) -> Vec<Written> {
        let read = |(): &mut (), number: usize| {
            let (flows, groups) = &texts[number];
            match Self::read(flows, groups) {
                Ok(switch) => Written::Rules(switch),
                Err(error) => Written::Fault(error.to_string()),
            }
        };
        py.detach(|| by_part(threads(), texts.len(), || (), read))
    }

    #[getter]
    fn floods(&self) -> bool {
        self.switch.floods()
    }

    fn equals(&self, other: &Self) -> bool {
        self.switch == other.switch && self.left_out == other.left_out
    }

    #[pyo3(signature = (in_port, eth_dst, eth_src, eth_type, tags, source_ip=0))]
    fn outputs(
        &self,
        in_port: u32,
        eth_dst: u64,
        eth_src: u64,
        eth_type: u16,
        tags: Vec<u16>,
        source_ip: u32,
    ) -> PyResult<(Copies, Vec<String>)> {
        let (mut sets, problems) =
            self.choices(in_port, eth_dst, eth_src, eth_type, tags, source_ip)?;
        Ok((sets.swap_remove(0), problems))
    }

    #[pyo3(signature = (in_port, eth_dst, eth_src, eth_type, tags, source_ip=0))]
    fn choices(
        &self,
        in_port: u32,
        eth_dst: u64,
        eth_src: u64,
        eth_type: u16,
        tags: Vec<u16>,
        source_ip: u32,
    ) -> PyResult<(Vec<Copies>, Vec<String>)> {
        let tags = Tags::new(&tags)
            .ok_or_else(|| PyValueError::new_err("a frame has at most two tags"))?;
        let frame = Frame { eth_dst, eth_src, eth_type, source_ip, tags };
        let (mut sets, mut problems) = (Vec::new(), Vec::new());
        self.switch.outputs(in_port, frame, &mut sets, &mut problems);
        let list = |tags: Tags| tags.both()[..usize::from(tags.depth())].to_vec();
        let shown = |copies: Vec<(u32, Tags)>| -> Copies {
            copies.into_iter().map(|(port, tags)| (port, list(tags))).collect()
        };
        let sets = sets.into_iter().map(shown).collect();
        Ok((sets, problems.iter().map(Problem::to_string).collect()))
    }
}
