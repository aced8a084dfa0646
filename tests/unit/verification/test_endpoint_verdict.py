"""Verdicts with what hosts send before they take more: cycles through hosts, and remedies."""

from __future__ import annotations

from typing import Any

import pytest

from knotless.base.errors import EndpointError
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.traffic.endpoint_presets import preset
from knotless.traffic.endpoints import EndpointModel
from knotless.verification.check import verdict_of
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.endpoint_remedies import endpoint_remedies, engine_remedies
from knotless.verification.endpoint_verdict import EndpointVerdict, verdict_with_endpoints
from knotless.verification.remedies import Remedy

TAKES_ALL = "hosts take what arrives"


def planned(spec: str, model: EndpointModel, **options: Any) -> CheckedPlan:
    plan = make_plan(load(spec), PlanRequest.from_options(**options))
    return CheckedPlan(plan, endpoints=model)


def verdict(spec: str, model: EndpointModel, **options: Any) -> EndpointVerdict:
    judged = planned(spec, model, **options).endpoint_verdict
    assert judged is not None
    return judged


def requests(priority: int = 0, **of_request: int) -> EndpointModel:
    values = {
        "request": {"sends_before_taking": ["reply"], **of_request},
        "reply": {"priority": priority},
    }
    return EndpointModel.from_values({"classes": values}, "requests")


def test_a_cycle_through_hosts_is_named_with_its_messages() -> None:
    judged = verdict("flat,2", preset("request-reply"))
    assert judged.cycle == judged.blocked == ["h1/0", "s1:2/0", "h2/0", "s1:1/0"]
    assert [witness.text for witness in judged.witnesses] == [
        "a request of h1 to h2 holds h1/0 while it waits for s1:2/0",
        "h2 must send a reply before it takes the request of h1",
        "a request of h2 to h1 holds h2/0 while it waits for s1:1/0",
        "h1 must send a reply before it takes the request of h2",
    ]
    assert judged.through_hosts
    assert judged.theorem is None
    assert TAKES_ALL not in judged.assumes
    assert any("request-reply" in line for line in judged.assumes)


@pytest.mark.parametrize("spec", ["fattree2,4", "torus,4,4", "torus,5,5", "irregular-a"])
def test_hosts_that_take_all_change_no_verdict(spec: str) -> None:
    state = planned(spec, preset("sink")).state
    for control in ("none", "host", "switch", "pause", "pfc", "credits"):
        judged, plain = (
            verdict_with_endpoints(state, preset("sink"), control),
            verdict_of(state, control),
        )
        assert (judged.safe, judged.assumes) == (plain.safe, plain.assumes)
        assert not judged.through_hosts


@pytest.mark.parametrize("name", ["rdma-read", "rdma-write"])
def test_reserves_that_suffice_leave_a_fabric_safe(name: str) -> None:
    judged = verdict("fattree2,4", preset(name))
    assert judged.safe
    assert judged.theorem == "acyclic"
    assert len(judged.reserve_lines) == 1
    assert "<=" in judged.reserve_lines[0]
    assert TAKES_ALL not in judged.assumes


def test_a_reserve_of_one_less_does_not_suffice() -> None:
    for reserve in (45, 44):
        judged = verdict("fattree2,4", requests(outstanding=3, reserve=reserve))
        assert judged.safe is (reserve == 45)
    assert judged.through_hosts
    assert judged.reserve_lines[0].startswith("15 hosts x 3 outstanding = 45 > reserve of 44")


@pytest.mark.parametrize(
    ("control", "is_safe"),
    [("pause", False), ("pfc", True), ("credits", True), ("none", True), ("switch", True)],
)
def test_replies_on_a_virtual_channel_of_their_own(control: str, is_safe: bool) -> None:
    judged = verdict("fattree2,4", requests(priority=1), flow_control=control)
    assert judged.safe is is_safe
    assert (
        "PAUSE stops all priorities: those of message classes have no effect" in judged.notes
    ) is (control == "pause")


def test_hosts_of_one_switch_wait_for_each_other_if_only_their_links_pause() -> None:
    judged = verdict("fattree2,4", requests(), flow_control="host")
    assert judged.cycle == ["h1/0", "s1:2/0", "h2/0", "s1:1/0"]
    assert verdict("mesh,4,4,hosts=1", requests(), flow_control="host").safe


def test_auto_is_pfc_if_classes_have_several_priorities() -> None:
    assert verdict("fattree2,4", requests(priority=1)).flow_control == "pfc"
    assert verdict("fattree2,4", requests()).flow_control == "pause"


def test_each_priority_has_all_virtual_channels_of_the_plan() -> None:
    model = requests(priority=1)
    judged = verdict("torus,5,5", model)
    assert judged.safe
    assert judged.flow_control == "pfc"
    assert any("virtual channels from 2P on" in line for line in judged.assumes)
    with pytest.raises(EndpointError, match="requests: reply has priority 4.*8 to 9.*have 8"):
        verdict("torus,5,5", requests(priority=4))


def test_cycles_between_switches_stay() -> None:
    judged = verdict("ring,4", preset("rdma-read"), engine="minimal", vcs=1, select="low-port")
    assert judged.safe is False
    assert not judged.through_hosts
    assert all("must send" not in witness.text for witness in judged.witnesses)


def test_adaptive_routes_are_judged_as_such() -> None:
    options = {"engine": "adaptive", "flow_control": "pfc"}
    judged = verdict("torus,4,4", preset("rdma-read"), **options)
    assert judged.safe
    assert not judged.acyclic
    assert judged.theorem == "escape (first free of)"
    assert verdict("torus,4,4", preset("request-reply"), **options).through_hosts


def remedies(checked: CheckedPlan, *, replanned: bool = True) -> dict[str, Remedy]:
    judged, model = checked.endpoint_verdict, checked.endpoints
    assert judged is not None
    assert model is not None
    proven = endpoint_remedies(checked.state, model, judged, replanned=replanned)
    return {remedy.kind: remedy for remedy in proven}


def test_remedies_are_proven_and_fit_the_flow_control() -> None:
    checked = planned("fattree2,4", requests(outstanding=8, reserve=50), flow_control="pfc")
    proposed = remedies(checked)
    assert {kind: remedy.changes for kind, remedy in proposed.items()} == {
        "virtual-channel": ("reply: priority 1",),
        "bound": ("request: outstanding 3",),
        "reserve": ("request: reserve 120",),
    }
    for remedy in proposed.values():
        (text,) = remedy.files.values()
        changed = EndpointModel.from_values(yaml_of(text), "changed")
        assert verdict_with_endpoints(checked.state, changed, "pfc").safe
    under_pause = planned("fattree2,4", requests(outstanding=8, reserve=50))
    assert {*remedies(under_pause)} == {"bound", "reserve"}
    assert {*remedies(checked, replanned=False)} == {"bound", "reserve"}
    assert {*remedies(planned("fattree2,4", requests()))} == {"reserve"}


def yaml_of(text: str) -> object:
    from knotless.base.yaml_file import parse

    return parse(text, EndpointError)


def test_a_message_that_is_sent_for_itself_has_no_remedy_of_end_points() -> None:
    values = {"data": {"sends_before_taking": ["data"], "reserve": 1000}}
    relay = EndpointModel.from_values({"classes": values}, "relay")
    assert remedies(planned("flat,3", relay, flow_control="pfc")) == {}


def test_another_engine_is_a_remedy_where_it_is_safe() -> None:
    options = {"engine": "minimal", "vcs": 1, "select": "low-port", "flow_control": "pfc"}
    checked = planned("ring,4", requests(priority=1), **options)
    assert checked.verdict.safe is False
    assert [remedy.changes for remedy in engine_remedies(checked)][:1] == [
        ("route with --engine updown",)
    ]
    together = planned("ring,4", requests(), **options)
    assert remedies(together) == {}
    assert [remedy.changes for remedy in engine_remedies(together)][:1] == [
        ("route with --engine updown", "reply: priority 1")
    ]


def with_roles(clients: list[str], servers: list[str], **of_request: int) -> EndpointModel:
    values = {
        "classes": {"request": {"sends_before_taking": ["reply"], **of_request}, "reply": {}},
        "roles": {"clients": clients, "servers": servers},
    }
    return EndpointModel.from_values(values, "roles")


@pytest.mark.parametrize(
    ("clients", "servers", "is_safe"),
    [
        (["h1", "h2", "h3"], ["h8", "h15"], True),
        (["h1", "h2", "h3", "h8"], ["h8", "h15"], False),
        (["h1", "h8"], ["h1", "h8"], False),
        ([f"h{n}" for n in range(1, 17)], ["h16"], True),
    ],
)
def test_waits_are_those_of_messages_of_roles(
    clients: list[str], servers: list[str], is_safe: bool
) -> None:
    """Clients take replies at once: a cycle leads through a host that is both."""
    judged = verdict("fattree2,4", with_roles(clients, servers))
    assert judged.safe is is_safe
    assert any("nothing else" in line for line in judged.assumes)
    for witness in judged.witnesses:
        pair = {witness.source, witness.destination}
        assert pair & {*clients}
        assert pair & {*servers}


def test_reserves_are_compared_with_the_number_of_clients() -> None:
    both = [f"h{n}" for n in range(1, 5)]
    for reserve in (6, 5):
        judged = verdict("fattree2,4", with_roles(both, both, outstanding=2, reserve=reserve))
        assert judged.safe is (reserve == 6)
    assert judged.reserve_lines[0].startswith("3 hosts x 2 outstanding = 6 > reserve of 5")


def test_roles_do_not_excuse_a_fabric_that_can_deadlock_without_hosts() -> None:
    options = {"engine": "minimal", "vcs": 1, "select": "low-port"}
    assert verdict("ring,4", with_roles(["h1"], ["h2"]), **options).safe is False


def test_a_role_of_a_host_that_does_not_exist_is_named() -> None:
    with pytest.raises(EndpointError, match=r"roles: roles.servers: no host 'h99'"):
        verdict("fattree2,4", with_roles(["h1"], ["h99"]))
