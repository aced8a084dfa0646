"""Lines of proof files on the single failures that rules with fast-failover groups provide for.

While a link or a switch fails or returns, each switch beside it does what it does with the port up
or with the port down, for each frame anew. When all have noticed it, frames between the hosts that
are left arrive, but for some pairs, which the file lists. A proof has one order of queues for the
intact fabric and all failures, if there is one; else each failure has its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.reader import Generation, state_of_generations
from knotless.forwarding.openflow.rules import FabricRules
from knotless.forwarding.state import ForwardingState
from knotless.routing.graphs.dependencies import Edges, find_cycle, waiting
from knotless.topologies.failures import Failures, usable
from knotless.verification.dependencies import edges_of
from knotless.verification.failover import after_failover

MAX_PAIRS = 4_000_000
"""Pairs of hosts, in all failures together: above that, nothing is claimed of who receives frames.

The checker follows each of them.
"""


@dataclass(frozen=True)
class SingleFailure:
    """A failure: its ``name`` in proof files, and the ``edges`` of what waits for what meanwhile.

    ``cut`` are the pairs of hosts, source and destination, that it cuts off although both are left;
    None: nothing is claimed of who receives frames.
    """

    name: str
    edges: Edges
    cut: tuple[tuple[str, str], ...] | None


@dataclass(frozen=True)
class ProvenFailures:
    """The failures that rules provide for, and the names of those in which frames can deadlock.

    ``edges`` are those of all failures and of the intact fabric together, if they have no cycle;
    else None.
    """

    failures: tuple[SingleFailure, ...]
    edges: Edges | None
    can_deadlock: tuple[str, ...] = ()


def proven_failures(
    state: ForwardingState, rules: FabricRules, control: FlowControl
) -> ProvenFailures:
    """Return what is to be proven of the single failures that ``rules`` provide for.

    ``state`` is that of the rules, of a fabric in which nothing can deadlock. Without fast-failover
    groups there are none.
    """
    together = waiting(edges_of(state), control)
    failures, can_deadlock = list[SingleFailure](), list[str]()
    provided = list(_provided(state, rules))
    claims = len(provided) * len(state.fabric.hosts) ** 2 <= MAX_PAIRS
    for name, failed, diverted in provided:
        generations = [Generation(each) for each in (rules, diverted)]
        mixed = state_of_generations(state.fabric, generations, state.groups)
        edges = waiting(edges_of(mixed), control)
        if find_cycle(edges):
            can_deadlock.append(name)
            continue
        cut = _cut_pairs(state, diverted, failed) if claims else None
        failures.append(SingleFailure(name, edges, cut))
        together = np.unique(np.concatenate([together, edges]), axis=0)
    shared = None if find_cycle(together) else together
    return ProvenFailures(tuple(failures), shared, tuple(can_deadlock))


def _provided(
    state: ForwardingState, rules: FabricRules
) -> Iterator[tuple[str, Failures, FabricRules]]:
    """Yield each failure that changes what a switch does: name, parts, and the rules then."""
    fabric = state.fabric
    parts = [(f"link {link.a}:{link.a_port}", Failures((link.name,))) for link in fabric.links]
    parts += [(f"switch {each.name}", Failures((), (each.name,))) for each in fabric.switches]
    for name, failed in parts:
        if (diverted := after_failover(fabric, rules, failed)) is not rules:
            yield name, failed, diverted


def _cut_pairs(
    state: ForwardingState, diverted: FabricRules, failed: Failures
) -> tuple[tuple[str, str], ...]:
    """Return the pairs of hosts that are left and of which some frame may not arrive."""
    fabric = state.fabric
    working = {name: each for name, each in diverted.items() if name not in failed.switches}
    after = state_of_generations(usable(fabric, failed), [Generation(working, None)], state.groups)
    hosts = fabric.hosts
    bits = int.from_bytes(after.core.failing[0], "little")
    left = [number for number, host in enumerate(hosts) if host.switch not in failed.switches]
    return tuple(
        (hosts[source].name, hosts[to].name)
        for source in left
        for to in left
        if source != to and bits >> source * len(hosts) + to & 1
    )


def cut_lines(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield a line for each source with the destinations to which it is cut.

    Examples
    --------
    >>> list(cut_lines([("h1", "h2"), ("h1", "h3"), ("h2", "h1")]))
    ['cut h1 h2 h3', 'cut h2 h1']

    """
    destinations: dict[str, list[str]] = {}
    for source, to in pairs:
        destinations.setdefault(source, []).append(to)
    for source, names in destinations.items():
        yield f"cut {source} {' '.join(names)}"
