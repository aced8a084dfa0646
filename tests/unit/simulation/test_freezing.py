"""Traffic that freezes a plan: found, irreducible, and the same in a simulation of its trace."""

from __future__ import annotations

import json
import random
import shutil
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.base.errors import SimulationError
from knotless.base.flow_control import FlowControl
from knotless.base.switch_settings import SwitchFile
from knotless.cli.main import main
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import FORWARD, Field, Output, Rule, SwitchRules
from knotless.forwarding.state import ForwardingState
from knotless.routing.plan import Plan, make_plan
from knotless.routing.request import PlanRequest
from knotless.simulation import Scenario, freezing, simulate
from knotless.simulation.freezing import Freeze, find_freeze
from knotless.topologies import load
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.dependencies import cycle_of
from tests.support.random_fabrics import seeded, small_fabric

PACKET = freezing.PACKET_BYTES
RING = ("ring,4", "--engine", "dor", "--vcs", "1", "--select", "low-port")


def cyclic_plan(spec: str, engine: str = "minimal", **choices: Any) -> Plan:
    return make_plan(load(spec), PlanRequest.from_options(engine=engine, vcs=1, **choices))


def freeze_of(plan: Plan) -> Freeze:
    return find_freeze(CheckedPlan(plan).state, plan.flow_control)


def replayed(plan: Plan, found: Freeze, folder: Path) -> list[str]:
    """Return the knot of the simulation of the trace."""
    trace = folder / "freeze.csv"
    trace.write_text(found.trace)
    return simulate(Scenario(plan, "trace", trace=str(trace), take_turns=True)).knot


def test_a_ring_freezes_by_the_four_flows_that_close_its_cycle(tmp_path: Path) -> None:
    plan = cyclic_plan("ring,4", "dor", select="low-port")
    found = freeze_of(plan)
    assert found.freezes
    pairs = [(flow.source, flow.destination) for flow in found.flows]
    assert pairs == [("h1", "h3"), ("h2", "h4"), ("h3", "h1"), ("h4", "h2")]
    cycle = ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    assert list(found.cycle) == cycle == replayed(plan, found, tmp_path)
    assert found.lines[0].startswith("it freezes after 108,820 us (s1:2/0 -> s2:2/0 -> ")
    assert len(found.lines) == 5


@pytest.mark.parametrize("spec", ["torus,5,5", "mesh,3,3", "random,10,degree=4,hosts=2"])
def test_what_is_found_is_irreducible(spec: str, tmp_path: Path) -> None:
    plan = cyclic_plan(spec)
    found = freeze_of(plan)
    assert found.freezes
    assert replayed(plan, found, tmp_path) == list(found.cycle)
    assert found.after_us is not None
    index = plan.fabric.host_index
    simulated = freezing.Switches(CheckedPlan(plan).state, plan.flow_control, None, 1)
    flows = [
        freezing.Sends(index[flow.source], index[flow.destination], flow.size_bytes)
        for flow in found.flows
    ]
    assert simulated.freeze(flows)
    for place, flow in enumerate(flows):
        rest = [*flows[:place], *flows[place + 1 :]]
        assert not simulated.freeze(rest)
        halved = flow._replace(size_bytes=flow.size_bytes // 2)
        assert not simulated.freeze([*rest[:place], halved, *rest[place:]])


def test_a_safe_plan_cannot_freeze() -> None:
    found = freeze_of(make_plan(load("torus,4,4"), PlanRequest.from_options(engine="updown")))
    assert (found.freezes, found.tried) == (False, 0)
    assert found.lines == ["it cannot freeze: no channels can wait for each other in a cycle"]


def test_without_flow_control_nothing_waits() -> None:
    plan = cyclic_plan("ring,4", "dor", select="low-port")
    assert find_freeze(CheckedPlan(plan).state, FlowControl.NONE).freezes is False


def test_a_cycle_that_only_broadcasts_close_is_undecided() -> None:
    found = freeze_of(cyclic_plan("ring,4"))
    assert (found.freezes, found.tried) == (None, 0)
    assert "broadcasts" in found.lines[0]


RULE = Rule(FORWARD, 50, (Field("eth_dst", 0x0200_0000_0901),), (Output(2),))
"""Sends packets to an address that no host has to the next switch of a ring."""


def with_a_stale_rule(plan: Plan) -> ForwardingState:
    rules = {
        name: SwitchRules(
            tuple(sorted((*given.rules, RULE), key=lambda rule: rule.order)), given.groups
        )
        for name, given in compile_rules(plan).items()
    }
    return state_of_rules(plan.fabric, rules)


def test_a_cycle_of_packets_that_no_host_gets_is_bounded_by_what_hosts_send() -> None:
    plan = make_plan(load("ring,4"), PlanRequest.from_options(engine="updown", vcs=1))
    state = with_a_stale_rule(plan)
    assert cycle_of(state, FlowControl.PFC)
    found = find_freeze(state, FlowControl.PFC)
    assert (found.freezes, found.tried, found.assumes) == (False, 0, freezing.ASSUMES_OF_BOUND)
    assert "what hosts send to each other, to all and to groups closes no cycle" in found.lines[0]
    assert "only hosts send" in found.lines[1]
    # It holds under 40 overloads of these switches: every host sends to all others at once.
    switches = freezing.Switches(state, FlowControl.PFC, None, 1)
    rng = random.Random(1)  # noqa: S311 - repeatable
    for _ in range(40):
        flows = [
            freezing.Sends(*pair, rng.randrange(PACKET, switches.longest_bytes))
            for pair in permutations(range(4), 2)
        ]
        assert switches.deadlock(flows, [rng.randrange(8) for _ in flows]) is None


def test_no_bound_is_claimed_where_hosts_close_the_cycle_too() -> None:
    plan = cyclic_plan("ring,4", "dor", select="low-port")
    assert find_freeze(with_a_stale_rule(plan), FlowControl.PFC).freezes


def test_cycles_through_pools_are_undecided() -> None:
    pool = {"p": {"side": "ingress", "bytes": 60_000}}
    group = {"priorities": list(range(8)), "pool": "p", "alpha": 1}
    plan = make_plan(load("ring,4"), PlanRequest.from_options(engine="updown", vcs=1))
    state = CheckedPlan(plan).state
    for reserved, freezes in ((0, None), (1522, False)):
        own = {**group, "reserved_bytes": reserved}
        file = SwitchFile.model_validate({"pools": pool, "ingress": [own]})
        assert find_freeze(state, FlowControl.PFC, switches=file).freezes is freezes


@pytest.mark.parametrize("spec", ["mesh,3,3", "torus,4,4", "ring,6,hosts=2"])
@pytest.mark.parametrize("hash_seed", [0, 7])
def test_flows_that_have_a_choice_of_paths_take_those_of_the_hash(
    spec: str, hash_seed: int, tmp_path: Path
) -> None:
    """The simulation of the trace, with the same hash, has the same knot, over the paths named."""
    plan = cyclic_plan(spec, multipath="ecmp", hash_seed=hash_seed)
    found = find_freeze(CheckedPlan(plan).state, plan.flow_control, hash_seed=hash_seed)
    assert found.freezes
    assert replayed(plan, found, tmp_path) == list(found.cycle)
    chosen = [flow for flow in found.flows if flow.path]
    assert (freezing.ASSUMES_OF_CHOICES in found.assumes) == bool(chosen)
    assert plan.next_hops is not None
    for flow in chosen:
        hosts, index = plan.fabric.hosts, plan.fabric.switch_index
        to = hosts[plan.fabric.host_index[flow.destination]]
        for name in flow.path[:-1]:
            switch = name.partition(":")[0]
            sets = plan.next_hops.choices(index[switch], index[to.switch])
            assert name in [plan.channels.name(c, 0).rpartition("/")[0] for c in sets]
        assert flow.path[-1] == f"{to.switch}:{to.port}"
        assert flow.text.endswith(f" by {', '.join(flow.path)}")


def test_choices_that_depend_on_time_are_refused() -> None:
    for words in (["--engine", "adaptive"], ["--multipath", "spray", "--engine", "minimal"]):
        done = CliRunner().invoke(main, ["plan", "ring,6", *words, "--freeze"])
        assert done.exit_code == 2
        assert "depends on time" in done.output


def test_a_search_that_ends_too_early_is_undecided() -> None:
    plan = cyclic_plan("torus,4,4", "dor", select="low-port")
    state = CheckedPlan(plan).state
    assert find_freeze(state, plan.flow_control, searches=1).lines == [
        "undecided whether it freezes: no traffic was found that does (sets of flows tried: 1)"
    ]


def test_settings_of_switches_count() -> None:
    plan = cyclic_plan("ring,4", "dor", select="low-port")
    file = SwitchFile.model_validate({"ingress": [{"priorities": [0], "limit_bytes": 200_000}]})
    state = CheckedPlan(plan).state
    found = find_freeze(state, FlowControl.PFC, switches=file)
    usual = find_freeze(state, FlowControl.PFC)
    assert found.freezes
    assert found.after_us is not None
    assert usual.after_us is not None
    assert found.after_us > usual.after_us


def test_settings_that_do_not_fit_are_one_line() -> None:
    plan = cyclic_plan("ring,4", "dor", select="low-port")
    file = SwitchFile.model_validate({"switches": {"s9": {}}})
    with pytest.raises(SimulationError, match="s9"):
        find_freeze(CheckedPlan(plan).state, FlowControl.PFC, switches=file)


def test_traces_of_random_plans_freeze_in_the_knot_that_was_found(tmp_path: Path) -> None:
    frozen = 0
    for _, rng in seeded(range(60)):
        fabric = small_fabric(rng, most_switches=10, most_hosts=20)
        plan = make_plan(fabric, PlanRequest.from_options(engine="minimal", vcs=1))
        checked = CheckedPlan(plan)
        found = find_freeze(checked.state, plan.flow_control, searches=20)
        assert (found.freezes is False) == (not checked.cycle)
        if found.freezes:
            frozen += 1
            assert replayed(plan, found, tmp_path) == list(found.cycle)
    assert frozen >= 3


def said(*words: str) -> tuple[int, str, str]:
    done = CliRunner(mix_stderr=False).invoke(main, list(words))
    return done.exit_code, done.stdout, done.stderr


def test_commands_find_and_write_the_traffic(tmp_path: Path) -> None:
    first, second = tmp_path / "plan.csv", tmp_path / "check.csv"
    status, shown, _ = said("plan", *RING, "--freeze", "--write-trace", str(first), "--json")
    values = json.loads(shown)
    assert (status, values["freezes"], len(values["freeze"]["flows"])) == (1, True, 4)
    assert values["freeze"]["assumes"]
    status, _, _ = said("flows", *RING, "--out", str(tmp_path / "rules"))
    status, shown, _ = said(
        "check", str(tmp_path / "rules"), "--freeze", "--write-trace", str(second)
    )
    assert status == 1
    assert "h1 sends 122,880 bytes to h3" in shown
    assert first.read_text() == second.read_text()
    status, shown, _ = said("simulate", *RING, "--trace", str(first))
    assert ": froze after 108.8 ms\n" in shown


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("plan", *RING, "--write-trace", "f.csv"), "give both"),
        (("check", "rules", "--write-trace", "f.csv"), "give both"),
        (("plan", "ring,4", "--compare", "--freeze"), "one plan"),
        (("traffic", "start"), "either a pattern"),
        (("traffic", "start", "shift:1", "--trace", "f.csv"), "either a pattern"),
        (("traffic", "start", "--trace", "f.csv", "--rate", "5"), "--rate is for patterns"),
    ],
)
def test_options_that_make_no_sense_together_are_refused(
    words: tuple[str, ...], wrong: str
) -> None:
    status, shown, errors = said(*words)
    assert (status, shown) == (2, "")
    assert wrong in errors


def judged(folder: str, *more: str) -> dict[str, Any]:
    done = CliRunner().invoke(main, ["check", folder, "--freeze", "--json", *more])
    assert done.exit_code in (0, 1), done.output
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_files_of_routers_with_a_cycle_freeze() -> None:
    """Three SONiC switches whose routes lead round a ring, in one lossless priority."""
    answer = judged("tests/data/fabrics/control-knot")
    assert answer["freezes"] is True
    assert sorted(answer["freeze"]["cycle"]) == [f"r{i}:Ethernet0/3" for i in range(3)]
    assert set(answer["freeze"]["cycle"]) == set(answer["cycle"])
    pairs = {(flow["source"], flow["destination"]) for flow in answer["freeze"]["flows"]}
    assert pairs == {(f"r{i}-Vlan10", f"r{(i + 2) % 3}-Vlan10") for i in range(3)}
    assert answer["safe"] is False


def test_files_without_a_cycle_cannot_freeze() -> None:
    answer = judged("tests/data/fabrics/control-safe")
    assert (answer["freezes"], answer["freeze"]["assumes"]) == (False, [])


def copied(folder: Path, change: dict[str, dict[str, dict[str, str]]]) -> str:
    """Copy the ring with other fields in the tables of r1."""
    shutil.copytree("tests/data/fabrics/control-knot", folder / "net")
    file = folder / "net" / "r1" / "config_db.json"
    config = json.loads(file.read_text())
    for table, rows in change.items():
        for key, fields in rows.items():
            config.setdefault(table, {}).setdefault(key, {}).update(fields)
    file.write_text(json.dumps(config))
    return str(folder / "net")


def test_another_queue_than_priority_group_is_undecided(tmp_path: Path) -> None:
    """One kind of packets that can be followed is enough for an answer, none is not."""
    ports = {f"Ethernet{4 * port}": {"pfc_to_queue_map": "P"} for port in range(3)}
    for queues, freezes in (({"3": "5"}, True), ({"3": "5", "4": "6"}, None)):
        change = {
            "TC_TO_QUEUE_MAP": {"M": queues},
            "MAP_PFC_PRIORITY_TO_QUEUE": {"P": queues},
            "PORT_QOS_MAP": ports,
        }
        answer = judged(copied(tmp_path / str(len(queues)), change))
        assert (answer["safe"], answer["freezes"]) == (False, freezes)
        if not freezes:
            assert "another queue" in answer["freeze"]["reason"]


def test_missing_facts_leave_it_undecided(tmp_path: Path) -> None:
    folder = copied(tmp_path, {})
    for file in Path(folder, "r1").iterdir():
        if "config" not in file.name:
            file.unlink()
    answer = judged(folder)
    assert (answer["safe"], answer["freezes"]) == (None, None)
    assert answer["freeze"]["reason"].startswith("facts are missing: ")
