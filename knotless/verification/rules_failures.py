"""The verdicts on failures of a fabric of OpenFlow switches whose rules stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.reader import Generation, state_of_generations, state_of_rules
from knotless.forwarding.openflow.rules import FabricRules
from knotless.importers.fabric import RulesFabric
from knotless.routing.graphs.channels import channels_of
from knotless.routing.multicast import MulticastGroup
from knotless.routing.vlans.host_tags import HostTags
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import usable
from knotless.verification.check import verdict_of
from knotless.verification.failover import diverted
from knotless.verification.failures import (
    Certificate,
    Failure,
    FailureVerdict,
    sets_of,
    single_failures,
)

Evaluated = tuple[Certificate, Iterable[Failure], Callable[[Failure], FailureVerdict]]
"""An empty certificate, the failures to evaluate, and how one is evaluated."""


def imported_rules_failures(imported: RulesFabric, most: int, seed: int, limit: int) -> Evaluated:
    """Return how the failures of a fabric with the rules of others are evaluated.

    What is not known of the fabric makes the verdicts on its failures unknown as well.
    """
    fabric, rules, findings = imported.fabric, imported.rules, imported.findings
    made, failures, evaluate = rules_failures(
        fabric, rules, (), None, imported.flow_control, most=most, seed=seed, limit=limit
    )

    def as_known(of: FailureVerdict) -> FailureVerdict:
        missing = findings.doubts if of.cycle else findings.gaps
        return replace(of, acyclic=None) if missing else of

    made.intact = as_known(made.intact)
    return made, failures, lambda failure: as_known(evaluate(failure))


def rules_failures(
    fabric: Fabric,
    rules: FabricRules,
    groups: Sequence[MulticastGroup],
    tags: HostTags | None,
    flow_control: FlowControl,
    *,
    most: int,
    seed: int,
    limit: int,
) -> Evaluated:
    """Return how the failures of a fabric are evaluated.

    What is sent to a dead link or switch is lost, unless a fast-failover group has a backup.
    Raises RuleError for rules that are wrong.
    """

    def evaluate(failure: Failure) -> FailureVerdict:
        failures = failure.of(fabric)
        now = diverted(fabric, rules, failures)
        left = {name: of for name, of in now.items() if name not in failures.switches}
        generation = Generation(left, tags)
        state = state_of_generations(usable(fabric, failures), [generation], groups)
        found = verdict_of(state, flow_control)
        hosts = len(fabric.hosts)
        working = sum(host.switch not in failures.switches for host in fabric.hosts)
        gone = hosts * (hosts - 1) - working * (working - 1)
        return FailureVerdict(
            failure.names, found.acyclic, found.cycle, found.undelivered - gone, found.witnesses
        )

    singles = single_failures(fabric, channels_of(fabric))
    total, planned, failures = sets_of(singles, most, seed, limit)
    found = verdict_of(state_of_rules(fabric, rules, groups, tags), flow_control)
    intact = FailureVerdict((), found.acyclic, found.cycle, found.undelivered, found.witnesses)
    made = Certificate("static", most, total, planned, seed, limit, intact)
    return made, failures, evaluate
