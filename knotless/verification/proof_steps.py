"""Proof files for the steps of a change of rules.

A step is proven for switches that hold the rules of any of some folders, each for itself and for
each frame anew: those before the step and after it, and earlier ones whose frames may still be in
the fabric. That is more than can happen, and asks for no assumption on the order in which switches
take their rules. Who receives frames is claimed for those that meet the last two folders only, if
every mixture delivers them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knotless.base.errors import ProofError
from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.reader import Generation, state_of_generations
from knotless.forwarding.openflow.rules import FabricRules
from knotless.routing.graphs.dependencies import cycle_names, find_cycle, waiting
from knotless.routing.multicast import MulticastGroup
from knotless.topologies.fabric import Fabric
from knotless.verification.check import outcome_of
from knotless.verification.dependencies import edges_of
from knotless.verification.proof_file import (
    class_lines,
    head_lines,
    rank_lines,
    reason_not_covered,
    require_covered,
    tests_more,
)
from knotless.verification.proof_frames import sent_in_all


@dataclass(frozen=True)
class StepProof:
    """The ``text`` of a proof file, and whether it claims that all frames arrive."""

    text: str
    delivers: bool


def step_proof(
    folders: Sequence[Mapping[str, bytes]],
    fabric: Fabric,
    rules: Sequence[FabricRules],
    control: FlowControl,
    groups: Sequence[MulticastGroup] = (),
) -> StepProof:
    """Return the proof of a step.

    Parameters
    ----------
    folders : sequence of mapping of str to bytes
        The files of each folder of rules by name, in the order in which switches get them. Hosts
        add no tags.
    fabric, rules : Fabric, sequence of FabricRules
        What was read from these.
    control : FlowControl
        In use on the links.
    groups : sequence of MulticastGroup
        To which hosts send.

    Raises
    ------
    ProofError
        The specification does not cover the rules, or some mixture of them can deadlock.

    """
    for files in folders:
        if reason := reason_not_covered(files):
            raise ProofError(f"proofs do not cover {reason}")
    # With such a lag, a frame may meet any of the generations after any other one.
    generations = [Generation(each, lag=len(rules)) for each in rules]
    mixed = state_of_generations(fabric, generations, groups)
    require_covered(mixed, control)
    edges = waiting(edges_of(mixed), control)
    if cycle := find_cycle(edges):
        names = " -> ".join(cycle_names(mixed.channels, cycle))
        raise ProofError(f"rules of all these folders, mixed in any order, can deadlock: {names}")
    last = state_of_generations(fabric, generations[-2:], groups)
    delivers = outcome_of(last, control).failed == 0 and not any(map(tests_more, folders))
    lines = [
        *head_lines(control, folders, sent_in_all(fabric, rules, control)),
        "claim safe" if delivers else "claim deadlock-free",
        *rank_lines(edges, mixed.channels),
        *class_lines(folders),
    ]
    return StepProof("\n".join(lines) + "\n", delivers)
