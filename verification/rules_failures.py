"""The verdicts on failures of a fabric with rules of ours that stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from forwarding.openflow.reader import Generation, state_of_generations, state_of_rules
from forwarding.openflow.rules import FabricRules
from routing.graphs.channels import channels_of
from routing.multicast import MulticastGroup
from routing.vlans.host_tags import HostTags
from topologies.fabric import Fabric
from topologies.failures import usable
from verification.check import verdict_of
from verification.failures import Certificate, Failure, FailureVerdict, sets_of, single_failures


def rules_failures(
    fabric: Fabric,
    rules: FabricRules,
    groups: Sequence[MulticastGroup],
    tags: HostTags | None,
    flow_control: str,
    *,
    most: int,
    seed: int,
    limit: int,
) -> tuple[Certificate, Iterable[Failure], Callable[[Failure], FailureVerdict]]:
    """Return an empty certificate, the failures to evaluate, and how one is evaluated.

    What is sent to a dead link or switch is lost. Raises RuleError for rules that are wrong.
    """

    def evaluate(failure: Failure) -> FailureVerdict:
        failures = failure.of(fabric)
        left = {name: of for name, of in rules.items() if name not in failures.switches}
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
    now = verdict_of(state_of_rules(fabric, rules, groups, tags), flow_control)
    intact = FailureVerdict((), now.acyclic, now.cycle, now.undelivered, now.witnesses)
    made = Certificate("static", most, total, planned, seed, limit, intact)
    return made, failures, evaluate
