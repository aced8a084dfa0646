//! Rules of Python as the core's.

use std::collections::BTreeSet;
use std::sync::Arc;

use forwarding::openflow::groups::Buckets;
use forwarding::openflow::problem::Problem;
use forwarding::openflow::rule::{Action, Field, Frame, Rule};
use forwarding::openflow::switch::Switch;
use forwarding::openflow::tags::Tags;
use forwarding::openflow::text::parse;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

fn field_named(name: &str) -> Option<Field> {
    Some(match name {
        "in_port" => Field::InPort,
        "metadata" => Field::Metadata,
        "eth_dst" => Field::EthDst,
        "eth_src" => Field::EthSrc,
        "eth_type" => Field::EthType,
        "vlan_vid" => Field::VlanVid,
        "vlan_pcp" => Field::VlanPcp,
        "arp_sha" => Field::ArpSha,
        "arp_spa" => Field::ArpSpa,
        "ipv4_src" => Field::Ipv4Src,
        _ => return None,
    })
}

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
            match name.to_str()? {
                "vlan_vid" => Action::SetVid((set & 0xFFF) as u16),
                "vlan_pcp" if set < 8 => Action::SetPcp(set as u8),
                other => Action::SetOther(other.to_owned()),
            }
        }
        "ToGroup" => {
            let group: u64 = value.getattr(intern!(py, "group_id"))?.extract()?;
            u32::try_from(group).map_or(Action::Other, Action::Group)
        }
        "Choose" => Action::Choose(value.getattr(intern!(py, "ports"))?.extract()?),
        _ => Action::Other,
    })
}

fn actions(values: &Bound<'_, PyAny>) -> PyResult<Vec<Action>> {
    values.try_iter()?.map(|value| action(&value?)).collect()
}

/// A rule, or the name of a field that it matches and that is not followed.
fn rule(value: &Bound<'_, PyAny>) -> PyResult<Result<Rule, Unfollowed>> {
    let py = value.py();
    let (mut fields, mut inside) = (Vec::new(), None);
    for field in value.getattr(intern!(py, "match"))?.try_iter()? {
        let field = field?;
        let name: Bound<'_, PyString> = field.getattr(intern!(py, "name"))?.extract()?;
        let Some(number) = field_named(name.to_str()?) else {
            let table = value.getattr(intern!(py, "table"))?.extract()?;
            return Ok(Err((table, name.to_str()?.to_owned())));
        };
        if matches!(number, Field::ArpSha | Field::ArpSpa | Field::Ipv4Src) {
            inside = Some(name.to_str()?.to_owned());
        }
        let wanted = field.getattr(intern!(py, "value"))?.extract()?;
        fields.push((number, wanted, field.getattr(intern!(py, "mask"))?.extract()?));
    }
    let rule = Rule {
        table: value.getattr(intern!(py, "table"))?.extract()?,
        priority: value.getattr(intern!(py, "priority"))?.extract()?,
        fields,
        actions: actions(&value.getattr(intern!(py, "actions"))?)?,
        metadata: value.getattr(intern!(py, "metadata"))?.extract()?,
        goto: value.getattr(intern!(py, "goto"))?.extract()?,
    };
    if rule.is_followed() {
        return Ok(Ok(rule));
    }
    Ok(Err((rule.table, inside.unwrap_or_default())))
}

/// A rule that is left out: its table, and a field that it matches.
pub type Unfollowed = (u8, String);

/// A switch, and the rules that are left out since they match what is not followed.
pub fn switch(value: &Bound<'_, PyAny>) -> PyResult<(Switch, BTreeSet<Unfollowed>)> {
    let py = value.py();
    let mut rules = Vec::new();
    let mut left_out = BTreeSet::new();
    for one in value.getattr(intern!(py, "rules"))?.try_iter()? {
        match rule(&one?)? {
            Ok(made) => rules.push(made),
            Err(unfollowed) => {
                left_out.insert(unfollowed);
            }
        }
    }
    let mut groups = Vec::new();
    for group in value.getattr(intern!(py, "groups"))?.try_iter()? {
        let group = group?;
        let number: u64 = group.getattr(intern!(py, "group_id"))?.extract()?;
        let buckets = group.getattr(intern!(py, "buckets"))?;
        let lists: PyResult<_> = buckets.try_iter()?.map(|bucket| actions(&bucket?)).collect();
        let selects = group.getattr(intern!(py, "selects"))?.extract()?;
        if let Ok(number) = u32::try_from(number) {
            groups.push((number, Buckets { lists: lists?, selects }));
        }
    }
    Ok((Switch::new(rules, groups), left_out))
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

impl From<(Switch, BTreeSet<Unfollowed>)> for PySwitch {
    fn from((switch, left_out): (Switch, BTreeSet<Unfollowed>)) -> Self {
        Self { switch: Arc::new(switch), left_out }
    }
}

#[pymethods]
impl PySwitch {
    #[new]
    fn new(rules: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(switch(rules)?.into())
    }

    #[staticmethod]
    fn written(py: Python<'_>, flows: &str, groups: &str) -> Option<Self> {
        let made = py.detach(|| parse(flows, groups).map(|(of, groups)| Switch::new(of, groups)));
        made.map(|switch| (switch, BTreeSet::new()).into())
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
