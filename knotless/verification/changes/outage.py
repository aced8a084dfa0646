"""Pairs of hosts that are down: there is a path between them, and no rules serve them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from knotless.forwarding.openflow.reader import Generation
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import NO_FAILURES, hosts_by_part
from knotless.verification.changes.change import EVERYTHING, Change, Pair
from knotless.verification.changes.proof import Proof, ProofContext, StepVerdict


def pairs_down(change: Change, usable: Fabric | None = None) -> tuple[int, ...]:
    """Return how many pairs of hosts are down before a change, and after each of its steps.

    They are those whose installed routes failures have cut, ordered. Pairs that a step drops at
    admission count as dropped, and those that no path connects as separated. ``usable`` is what
    packets can use of the fabric, if the change is proven for more than that.
    """
    if not change.steps:
        return ()
    fabric = usable or change.before.fabric
    together = hosts_by_part(fabric, NO_FAILURES)
    part = {host: number for number, hosts in enumerate(together) for host in hosts}
    first = change.steps[0].proof
    states: list[tuple[Generation, tuple[Pair, ...], Proof]] = [(first.generations[-2], (), first)]
    states += [(step.proof.generations[-1], step.dropped, step.proof) for step in change.steps]
    counts = []
    for generation, dropped, proof in states:
        # What a mixture delivers is delivered by each of its generations.
        if usable is None and not _down(proof.mixed, part, fabric, dropped):
            counts.append(0)
            continue
        verdict = (
            proof.judge([generation]) if usable is None else _judged(generation, change, usable)
        )
        counts.append(_down(verdict, part, fabric, dropped))
    return tuple(counts)


def _judged(generation: Generation, change: Change, fabric: Fabric) -> StepVerdict:
    context = ProofContext(fabric, change.before.flow_control, change.groups)
    return context.judge([generation])


def _down(
    verdict: StepVerdict, part: Mapping[str, int], fabric: Fabric, dropped: Collection[Pair]
) -> int:
    left_out = set(dropped)
    return sum(
        part[source] == part.get(destination)
        and not {(source, destination), (source, EVERYTHING)} & left_out
        for source, destination in verdict.failing_pairs(fabric)
    )
