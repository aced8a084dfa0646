"""``knotless check`` of OpenFlow rules of ours: of a directory, or of a running fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import AUTO
from knotless.cli.answer import Several
from knotless.cli.commands._observed import observed
from knotless.cli.commands.check.answer import Extras, draw_cycle, print_verdict
from knotless.cli.commands.check.failures import engine_failure_table, evaluate_failures, report_of
from knotless.cli.commands.check.options import CheckOptions, FailureOptions
from knotless.cli.commands.check.proof import Proven, WrittenProof, write_proof
from knotless.cli.commands.check.sarif import write_sarif
from knotless.cli.commands.check.trace import print_pair
from knotless.emulation.cuts import Cables
from knotless.emulation.names import Names
from knotless.emulation.ovs_dump import live_multicast, read_live
from knotless.emulation.state import stopped_switches
from knotless.forwarding.openflow.directory import read_dir, read_multicast, read_tags
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import FabricRules
from knotless.forwarding.state import ForwardingState
from knotless.importers.causes import Place
from knotless.routing.multicast import MulticastGroup
from knotless.routing.vlans.host_tags import HostTags
from knotless.topologies.fabric import Fabric
from knotless.verification.check import Verdict, verdict_of
from knotless.verification.check_state import ShownFailureTable
from knotless.verification.cut_links import with_losses
from knotless.verification.failure_models import RulesModel
from knotless.verification.pair_paths import followed
from knotless.verification.switch_verdict import verdict_with_switches

if TYPE_CHECKING:
    from knotless.traffic.endpoints import EndpointModel
    from knotless.verification.endpoint_verdict import EndpointVerdict
    from knotless.verification.remedies import Remedy

_HIDDEN = {
    *("fabric", "problems", "witnesses", "assumes", "losses", "notes", "blocked"),
    *("reserves", "through_hosts"),
}
"""Values of the verdict that ``--details`` has elsewhere."""


@dataclass(frozen=True)
class _Rules:
    """A fabric and its rules; ``flow_control`` is the one in use, ``auto`` if that is not known."""

    fabric: Fabric
    rules: FabricRules
    groups: Sequence[MulticastGroup]
    tags: HostTags | None
    flow_control: str

    def state(self) -> ForwardingState:
        return state_of_rules(self.fabric, self.rules, self.groups, self.tags)


def check_rules(options: CheckOptions) -> NoReturn:
    """Print the verdict on a directory of rules or a running fabric, or the links of one packet.

    The status of the process is 1 unless all is well.
    """
    source, output = options.source, options.output
    names = observed(source.name) if source.live else None
    read = _read_dir(source.paths[0]) if names is None else _read_live(names)
    state = read.state()
    if options.query.pair is not None:
        print_pair(followed(state, *options.query.pair), as_json=output.as_json)
    control = read.flow_control if source.flow_control == AUTO else source.flow_control
    settings = options.switches.switch_settings
    verdict: Verdict
    remedies: list[Remedy] | None = None
    if options.endpoints is not None:
        verdict, remedies = _with_endpoints(state, options.endpoints, control)
    elif settings is None:
        verdict = verdict_of(state, control)
    else:
        longest = options.switches.packet_bytes
        verdict = verdict_with_switches(state, settings, control, packet_bytes=longest)
    if names is not None:
        verdict = _with_outages(verdict, read, control, names)
    table = _failure_table(read, verdict, options.failures)
    proof: WrittenProof | None = None
    if output.proof is not None:
        proven = Proven(read.fabric, read.rules, state, verdict, read.tags)
        proof = write_proof(output.proof, proven, None if names is not None else source.paths[0])
    if output.draw is not None:
        draw_cycle(read.fabric, state.channels, output.draw, verdict.cycle)
    if output.sarif is not None:
        where = source.paths[0] if names is None else f"fabric:{names.name}"
        write_sarif(output.sarif, verdict, table, [where], _places(verdict, where))
    values = verdict.as_json()
    print_verdict(
        verdict,
        source.paths if names is None else ["--live", "--name", names.name],
        {key: value for key, value in values.items() if key not in _HIDDEN},
        [Several([f"note: {line}" for line in verdict.notes], "notes")],
        Extras(
            table,
            remedies,
            freeze=options.freeze.find(
                state, verdict.flow_control, settings, endpoints=options.one_priority
            ),
            proof=proof,
        ),
        output,
    )


def _with_endpoints(
    state: ForwardingState, model: EndpointModel, control: str
) -> tuple[EndpointVerdict, list[Remedy]]:
    """Return the verdict on rules with end points, and changes of these that make it safe.

    Rules give frames of hosts their priorities, so all message classes have the same ones.
    """
    from knotless.verification.endpoint_remedies import endpoint_remedies
    from knotless.verification.endpoint_verdict import verdict_with_endpoints  # loads pydantic

    together = model.on_one_priority()
    verdict = verdict_with_endpoints(state, together, control)
    if model.priorities != (0,):
        note = "rules give all messages of hosts the same priorities: those of classes are not used"
        verdict = replace(verdict, notes=[*verdict.notes, note])
    if verdict.safe:
        return verdict, []
    return verdict, [*endpoint_remedies(state, together, verdict, replanned=False)]


def _places(verdict: Verdict, where: str) -> dict[str, list[Place]]:
    """Return the file of the switch that each line begins with."""
    lines = [*verdict.problems, *verdict.losses, *verdict.notes]
    files = {line: Path(where, f"{line.split(':')[0][:200]}.flows") for line in lines}
    return {line: [Place(str(file))] for line, file in files.items() if file.is_file()}


def _read_live(names: Names) -> _Rules:
    fabric, rules, in_use = read_live(names.name)
    tags = read_tags(fabric, names.directory)
    return _Rules(fabric, rules, live_multicast(fabric, names.name), tags, in_use)


def _read_dir(directory: str) -> _Rules:
    fabric, rules = read_dir(directory)
    groups, tags = read_multicast(fabric, directory), read_tags(fabric, directory)
    return _Rules(fabric, rules, groups, tags, AUTO)


def _with_outages(verdict: Verdict, read: _Rules, control: str, names: Names) -> Verdict:
    """Return the verdict with what cut links lose, and the switches that are stopped."""
    cut, links = Cables.of_running(names).cut_links()
    if links:
        effective = replace(read, rules=cut.rules_in_effect(read.fabric, read.rules))
        verdict = with_losses(verdict, verdict_of(effective.state(), control), links)
    if verdict.failed and (stopped := stopped_switches(names)):
        problems = [f"stopped: {', '.join(sorted(stopped))}", *verdict.problems]
        verdict = replace(verdict, problems=problems)
    return verdict


def _failure_table(
    read: _Rules, verdict: Verdict, failures: FailureOptions
) -> ShownFailureTable | None:
    """Return what is shown of the failures to try, or None if there are none."""
    if not failures.max_failed:
        return None
    if failures.react == "engine":
        return report_of(engine_failure_table(read.fabric, failures))
    if failures.react not in (None, "static"):
        raise KnotlessError(f"--react {failures.react}: for OpenFlow rules, static or engine")
    model = RulesModel(
        read.fabric, read.rules, verdict.flow_control, groups=read.groups, tags=read.tags
    )
    return report_of(evaluate_failures(model, failures))
