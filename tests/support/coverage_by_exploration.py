"""The coverage of backups, with all packets explored again for each failure."""

from __future__ import annotations

from collections.abc import Sequence

from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.reader import Generation, state_of_generations
from knotless.forwarding.openflow.rules import FabricRules
from knotless.routing.graphs.channels import channels_of
from knotless.routing.graphs.dependencies import cycle_names, find_cycle, waiting
from knotless.routing.multicast import MulticastGroup
from knotless.routing.vlans.host_tags import HostTags
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import host_parts, usable
from knotless.verification.dependencies import edges_of
from knotless.verification.failover import Coverage, Failover, after_failover
from knotless.verification.failures import Failure, single_failures


def coverage_by_exploration(
    fabric: Fabric,
    rules: FabricRules,
    flow_control: FlowControl,
    groups: Sequence[MulticastGroup] = (),
    tags: HostTags | None = None,
) -> Coverage:
    """Return the same as :func:`knotless.verification.failover.coverage`."""
    switches = {name: rules[name] for name in rules}
    hosts = len(fabric.hosts)
    channels = channels_of(fabric)

    def failover(failure: Failure) -> Failover:
        failures = failure.parts_of(fabric)
        before = Generation(switches, tags)
        after = Generation(after_failover(fabric, switches, failures), tags)
        mixed = state_of_generations(fabric, [before, after], groups)
        cycle = find_cycle(waiting(edges_of(mixed), flow_control))
        parts = host_parts(fabric, failures)
        apart = hosts * hosts - sum(parts.count(part) ** 2 for part in set(parts))
        left = usable(fabric, failures)

        def lost(generation: Generation) -> int:
            alive = {
                name: generation.rules[name]
                for name in generation.rules
                if name not in failures.switches
            }
            state = state_of_generations(left, [Generation(alive, tags)], groups)
            return state.core.undelivered - apart

        pairs, names = hosts * (hosts - 1) - apart, tuple(cycle_names(channels, cycle))
        return Failover(failure.names[0], pairs, lost(before), lost(after), names)

    return Coverage(tuple(map(failover, single_failures(fabric, channels))))
