//! `WhatIf`: verdicts on failures of a fabric with next-hop tables.

use forwarding::state::NOT_SENT;
use forwarding::what_if::{Answer, DependencyNodes, Network, Packet, Reaction, Sent, WhatIf};
use numpy::PyReadonlyArray2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{flat, rows};
use super::state::fabric;
use super::tables::{tables, unread, Ends};

/// The cycle, its witnesses, undelivered pairs, and whether something is unknown.
type AnswerTuple = (Vec<u32>, Vec<Packet>, u64, bool);

/// See the class of that name in `forwarding.pyi`.
#[pyclass(name = "WhatIf", module = "knotless._core.forwarding")]
pub struct PyWhatIf {
    what_if: WhatIf,
    channels: usize,
    switches: usize,
}

fn tuple(answer: Answer) -> AnswerTuple {
    (answer.cycle, answer.witnesses, answer.undelivered, answer.unknown)
}

#[pymethods]
impl PyWhatIf {
    #[new]
    #[allow(clippy::too_many_arguments)] // a border: each is an array of its own in Python
    fn new(
        py: Python<'_>,
        switches: usize,
        leaves: Ends,
        enters: Ends,
        hosts: Ends,
        arrays: &Bound<'_, PyDict>,
        sent: Vec<(PyReadonlyArray2<'_, u16>, u16, bool)>,
        reaction: &str,
    ) -> PyResult<Self> {
        let (channels, count) = (leaves.len(), hosts.len());
        let fabric = fabric(switches, leaves, enters, &hosts)?;
        let tables = tables(arrays, &fabric)?;
        let (destinations, unread) = (rows(arrays, "class")?, unread(arrays, count)?);
        let layers = rows(arrays, "fallbacks")?;
        let fallbacks: Vec<i32> = flat(arrays, "fallbacks", &[layers, destinations, switches])?;
        let actions = rows(arrays, "action_kind")? as i32;
        let known = tables.towards.len();
        let mut listed = Vec::with_capacity(sent.len());
        for (labels, label, counted) in sent {
            let first_labels = labels.as_slice()?.to_vec();
            let sent = first_labels.iter().filter(|&&of| of != NOT_SENT);
            let most = usize::from(sent.max().copied().unwrap_or(0)) + usize::from(label);
            if ![0, count * destinations].contains(&first_labels.len()) || most >= known {
                return Err(PyValueError::new_err("first labels do not fit"));
            }
            listed.push(Sent { first_labels, label, counted });
        }
        if fallbacks.iter().any(|&action| action >= actions) {
            return Err(PyValueError::new_err("fallbacks do not fit"));
        }
        let pausing = rows(arrays, "pausing")?;
        let dependency_nodes = match pausing {
            0 => DependencyNodes::Every,
            _ => DependencyNodes::pausing(&flat(arrays, "pausing", &[channels, 8, 16])?),
        };
        let wide = |&vc: &u8| pausing == 0 && (16..254).contains(&vc) || (128..254).contains(&vc);
        if tables.vcs.iter().any(wide) {
            return Err(PyValueError::new_err("virtual channels do not fit"));
        }
        let reaction = match reaction {
            "static" => Reaction::Static,
            "local" => Reaction::Local,
            "shortest" => Reaction::Shortest,
            "valley-free" => Reaction::ValleyFree(flat(arrays, "rises", &[channels])?),
            _ => return Err(PyValueError::new_err(format!("no reaction is called {reaction:?}"))),
        };
        let what_if = py.detach(|| {
            WhatIf::new(
                Network::new(fabric, tables, &fallbacks, (&listed, unread), dependency_nodes),
                reaction,
            )
        });
        Ok(Self { what_if, channels, switches })
    }

    fn intact(&self) -> AnswerTuple {
        tuple(self.what_if.first().clone())
    }

    fn differences(&self) -> Ends {
        self.what_if.differences()
    }

    fn causes(&mut self, py: Python<'_>, holds: u32, requests: u32) -> Vec<u32> {
        let what_if = &mut self.what_if;
        py.detach(|| what_if.causes(holds, requests))
    }

    fn evaluate(
        &mut self,
        py: Python<'_>,
        channels: Vec<u32>,
        switches: Vec<u32>,
    ) -> PyResult<AnswerTuple> {
        if channels.iter().any(|&of| of as usize >= self.channels)
            || switches.iter().any(|&of| of as usize >= self.switches)
        {
            return Err(PyValueError::new_err("there is no such channel or switch"));
        }
        let what_if = &mut self.what_if;
        Ok(tuple(py.detach(|| what_if.evaluate(&channels, &switches))))
    }

    fn copy(&self) -> Self {
        let (channels, switches) = (self.channels, self.switches);
        Self { what_if: self.what_if.clone(), channels, switches }
    }
}
