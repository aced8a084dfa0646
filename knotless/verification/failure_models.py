"""Models of what becomes of a fabric if parts of it fail, each with a verdict for every failure.

The rules of OpenFlow switches stay as they are (:class:`RulesModel`), one of our engines plans
again (:class:`EngineModel`), or the routing of an imported fabric reacts by itself
(:class:`TablesModel`). Each is a :class:`knotless.verification.failures.FailureModel`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from knotless._core import forwarding as core
from knotless.base.errors import PlanError, RuleError
from knotless.base.flow_control import FlowControl
from knotless.base.suggestions import is_not_one_of
from knotless.forwarding.openflow.reader import (
    Generation,
    state_of_generations,
    state_of_rules,
)
from knotless.forwarding.openflow.rules import FabricRules
from knotless.forwarding.state import ForwardingState
from knotless.importers.fabric import AnyFabric, RulesFabric, TableFabric
from knotless.importers.findings import Findings
from knotless.importers.reactions import REACTIONS, default_reaction, first_labels, what_if
from knotless.routing.graphs.channels import Channels, channels_of
from knotless.routing.graphs.dependencies import cycle_names
from knotless.routing.multicast import MulticastGroup
from knotless.routing.plan import Plan, make_plan
from knotless.routing.plan_of_parts import new_plan
from knotless.routing.request import PlanRequest
from knotless.routing.vlans.host_tags import HostTags
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import host_parts, usable
from knotless.verification.check import verdict_of
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.failover import after_failover
from knotless.verification.failures import Failure, FailureModel, FailureVerdict
from knotless.verification.imported_verdict import SentWitness


class RulesModel:
    """A fabric of OpenFlow switches whose rules stay as they are.

    What is sent to a dead link or switch is lost, unless a fast-failover group has a backup. What
    is not known of the fabric (``findings``) makes the verdicts unknown.
    """

    name, differences = "static", 0

    def __init__(
        self,
        fabric: Fabric,
        rules: FabricRules,
        flow_control: FlowControl,
        *,
        groups: Sequence[MulticastGroup] = (),
        tags: HostTags | None = None,
        findings: Findings | None = None,
    ) -> None:
        self.fabric, self.channels = fabric, channels_of(fabric)
        self._rules, self._flow_control = rules, flow_control
        self._groups, self._tags, self._findings = groups, tags, findings or Findings()

    @classmethod
    def of_imported(cls, imported: RulesFabric) -> RulesModel:
        """Return the model of a fabric with the rules of others."""
        return cls(
            imported.fabric, imported.rules, imported.flow_control, findings=imported.findings
        )

    def intact(self) -> FailureVerdict:
        """Return the verdict without failures; raises RuleError for rules that are wrong."""
        state = state_of_rules(self.fabric, self._rules, self._groups, self._tags)
        return self._verdict((), state, 0)

    def evaluate(self, failure: Failure) -> FailureVerdict:
        """Return the verdict on a failure."""
        fabric, failures = self.fabric, failure.parts_of(self.fabric)
        diverted = after_failover(fabric, self._rules, failures)
        working_rules = {
            name: rules for name, rules in diverted.items() if name not in failures.switches
        }
        generation = Generation(working_rules, self._tags)
        state = state_of_generations(usable(fabric, failures), [generation], self._groups)
        hosts = len(fabric.hosts)
        working = sum(host.switch not in failures.switches for host in fabric.hosts)
        of_dead_switches = hosts * (hosts - 1) - working * (working - 1)
        return self._verdict(failure.names, state, of_dead_switches)

    def _verdict(
        self, failed: tuple[str, ...], state: ForwardingState, of_dead_switches: int
    ) -> FailureVerdict:
        """Return the verdict on a state; pairs with hosts of dead switches do not count."""
        verdict = verdict_of(state, self._flow_control)
        missing = self._findings.doubts if verdict.blocked else self._findings.gaps
        return FailureVerdict(
            failed,
            None if missing else verdict.safe,
            verdict.blocked,
            verdict.undelivered - of_dead_switches,
            verdict.witnesses,
        )


class EngineModel:
    """A fabric whose routes one of our engines computes again after each failure.

    The routes of the parts that are left are planned as the controller does: by the same engine,
    or by ``updown`` where it cannot route them.
    """

    differences = 0

    def __init__(self, fabric: Fabric, request: PlanRequest) -> None:
        """Plan the intact fabric.

        Raises
        ------
        PlanError
            The engine does not exist, or cannot route the intact fabric.

        """
        self.plan = make_plan(fabric, request)
        self.fabric, self.channels = fabric, channels_of(fabric)
        self.name = f"engine {self.plan.engine}"

    def intact(self) -> FailureVerdict:
        """Return the verdict on the plan of the intact fabric."""
        return self._verdict(self.plan, ())

    def evaluate(self, failure: Failure) -> FailureVerdict:
        """Return the verdict on the plan after a failure; unknown if there is none."""
        plan = self.plan
        try:
            _, repaired = new_plan(plan, failure.parts_of(plan.fabric), plan.flow_control)
            return self._verdict(repaired, failure.names)
        except PlanError:
            return FailureVerdict(failure.names, None, [], 0)

    @staticmethod
    def _verdict(plan: Plan, failed: tuple[str, ...]) -> FailureVerdict:
        verdict = CheckedPlan(plan).verdict
        dead = set(plan.failures.switches)
        parts = [
            part
            for part, host in zip(
                host_parts(plan.fabric, plan.failures), plan.fabric.hosts, strict=True
            )
            if host.switch not in dead
        ]
        separated = len(parts) ** 2 - sum(count**2 for count in Counter(parts).values())
        undelivered = verdict.undelivered + separated
        return FailureVerdict(failed, verdict.safe, verdict.blocked, undelivered, verdict.witnesses)


class TablesModel:
    """An imported fabric of next-hop tables, and a model of how its routing reacts.

    ``name`` is one of :data:`knotless.importers.reactions.REACTIONS`.
    """

    def __init__(self, imported: TableFabric, name: str) -> None:
        """Follow everything without failures. Raises RuleError if the model does not fit."""
        self.imported, self.name = imported, name
        self._core = what_if(imported, name)

    @property
    def fabric(self) -> Fabric:
        """The fabric that was read."""
        return self.imported.fabric

    @property
    def channels(self) -> Channels:
        """The channels of the fabric."""
        return self.imported.channels

    @property
    def differences(self) -> int:
        """The number of next-hop sets in which the model differs from those read."""
        return len(self._core.differences())

    def intact(self) -> FailureVerdict:
        """Return the verdict of the model without failures."""
        return self._verdict((), self._core.intact())

    def evaluate(self, failure: Failure) -> FailureVerdict:
        """Return the verdict on a failure."""
        answer = self._core.evaluate(failure.channels, failure.switches)
        return self._verdict(failure.names, answer)

    def _verdict(self, failed: tuple[str, ...], answer: core.FailureAnswer) -> FailureVerdict:
        nodes, packets, undelivered, unknown = answer
        findings = self.imported.findings
        missing = bool(findings.doubts) if nodes else bool(findings.gaps) or unknown
        names = cycle_names(self.imported.channels, nodes)
        state, traffics = self.imported.traffics[0].state, self.imported.traffics
        starts = first_labels(traffics)
        witnesses = [
            SentWitness(
                holds,
                requests,
                state.destination_name(source),
                state.destination_name(destination),
                self.imported.label,
                traffics[bisect_right(starts, label) - 1].sent_as(source, destination),
            )
            for holds, requests, (source, destination, label) in zip(
                names, [*names[1:], *names[:1]], packets, strict=True
            )
        ]
        return FailureVerdict(
            failed, None if missing else not nodes, names, undelivered, tuple(witnesses)
        )


def model_of_imported(imported: AnyFabric, react: str | None = None) -> FailureModel:
    """Return the model of a fabric that was read from files; None: the one that fits it.

    Raises
    ------
    RuleError
        There is no such model, or it does not fit the fabric.

    """
    react = react or default_reaction(imported)
    if isinstance(imported, RulesFabric):
        if react != "static":
            raise RuleError(f"--react {react}: for OpenFlow rules, static or engine")
        return RulesModel.of_imported(imported)
    if react not in REACTIONS:
        raise RuleError(f"--react {react[:40]}: {is_not_one_of(REACTIONS)}")
    return TablesModel(imported, react)
