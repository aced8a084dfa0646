"""Verdicts on fabrics of others whose hosts answer before they take, and what is not known."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.forwarding.from_plan import state_of_plan
from knotless.importers.paths import read_paths
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.traffic.endpoint_presets import preset
from knotless.traffic.endpoints import EndpointModel
from knotless.verification.endpoint_verdict import verdict_with_endpoints
from knotless.verification.imported_endpoints import ImportedEndpointVerdict, verdict_with_hosts
from tests.support import REPOSITORY
from tests.support.infiniband_dumps import SLS, Subnet, of_plan
from tests.support.random_fabrics import small_fabric
from tests.support.router_dumps import HOST_PORT, RouterNet
from tests.support.router_nets import leaf_spine

FABRICS = REPOSITORY / "tests" / "data" / "fabrics"
ONE_LANE, EIGHT_LANES = (0,) * 16, tuple(sl % 8 for sl in SLS)


def requests(first: int = 0, then: int = 0, **of_request: int) -> EndpointModel:
    values = {
        "request": {"sends_before_taking": ["reply"], "priority": first, **of_request},
        "reply": {"priority": then},
    }
    return EndpointModel.from_values({"classes": values}, "requests")


def judged(path: Path, model: EndpointModel) -> ImportedEndpointVerdict:
    return verdict_with_hosts(read_paths([str(path)]), model)


def subnet_of(*, by_path: bool = False) -> Subnet:
    subnet = of_plan(make_plan(load("mesh,3,3")))
    assert subnet is not None
    subnet.adapter_vls = EIGHT_LANES
    subnet.path_sls = subnet.path_sls if by_path else {}
    return subnet


@pytest.mark.seeds(30)
@pytest.mark.parametrize("by_path", [True, False])
def test_a_subnet_of_a_plan_has_the_verdict_of_the_plan(
    seed: int, by_path: bool, tmp_path: Path
) -> None:
    rng = random.Random(seed)  # noqa: S311
    fabric = small_fabric(rng, most_switches=4, most_hosts=4)
    plan = make_plan(fabric, rng.choice(["updown", "minimal"]))
    subnet = of_plan(plan)
    assert subnet is not None
    subnet.adapter_vls = EIGHT_LANES
    subnet.path_sls = subnet.path_sls if by_path else {}
    bounds = rng.choice([{}, {"outstanding": 2, "reserve": rng.randint(1, 6)}])
    model = requests(0, 0 if by_path else rng.randint(0, 1), **bounds)
    verdict = judged(subnet.write(tmp_path), model)
    assert verdict.safe is verdict_with_endpoints(state_of_plan(plan), model, "credits").safe
    assert len(verdict.witnesses) == len(verdict.cycle)


def test_priorities_are_levels_of_subnets(tmp_path: Path) -> None:
    """Two levels are apart only if adapters and switches put them into lanes of their own."""
    subnet = subnet_of()
    apart = judged(subnet.write(tmp_path / "apart"), requests(1, 2))
    assert (apart.safe, apart.through_hosts) == (True, False)
    assert "messages of priority P have SL P" in apart.assumes
    subnet.adapter_vls = ONE_LANE
    together = judged(subnet.write(tmp_path / "together"), requests(1, 2))
    assert (together.safe, together.through_hosts) == (False, True)
    subnet.adapter_vls = EIGHT_LANES
    subnet.sl2vl = dict.fromkeys(subnet.sl2vl, ONE_LANE)
    assert judged(subnet.write(tmp_path / "one"), requests(1, 2)).safe is False


def test_without_tables_of_adapters_a_subnet_with_one_level_is_unknown(tmp_path: Path) -> None:
    subnet = subnet_of()
    subnet.adapter_vls = None
    verdict = judged(subnet.write(tmp_path), requests())
    assert verdict.safe is None
    assert verdict.missing[-1].startswith("the SL to VL tables of h1, h2, h3 and 6 more")


def test_levels_of_paths_are_those_of_messages(tmp_path: Path) -> None:
    verdict = judged(subnet_of(by_path=True).write(tmp_path), requests(1, 2))
    assert verdict.safe is False
    note = "messages have the SLs of their paths: the priorities of classes are not used"
    assert note in verdict.notes


def leaves(tmp_path: Path, of_hosts: str = "3,4") -> Path:
    net: RouterNet = leaf_spine(3, 2)
    for router in net.routers:
        net.qos[router].of_hosts["pfc_enable"] = of_hosts
    return net.write(tmp_path)


def test_priorities_of_classes_are_those_of_pfc(tmp_path: Path) -> None:
    fabric = leaves(tmp_path)
    one = judged(fabric, preset("request-reply"))
    assert (one.safe, one.through_hosts) == (False, True)
    assert {name.rpartition("/")[2] for name in one.cycle} == {"3"}
    texts = [witness.text for witness in one.witnesses]
    assert "leaf1-Vlan10 must send a reply before it takes the request of leaf0-Vlan10" in texts
    assert judged(fabric, requests(3, 4)).safe is True
    assert judged(fabric, requests(4, 4)).safe is False
    lossy = judged(fabric, requests(3, 5))
    assert lossy.safe is None
    assert "leaf0:Vlan10, leaf1:Vlan10, leaf2:Vlan10 send messages of priority 5" in lossy.text


def test_the_number_of_hosts_behind_a_port_is_not_known(tmp_path: Path) -> None:
    fabric = leaves(tmp_path)
    for_all = judged(fabric, requests(3, 3, outstanding=4, reserve=1_000))
    assert for_all.safe is None
    assert "how many hosts there are" in for_all.missing[-1]
    assert for_all.reserve_lines == []
    for_each = judged(fabric, requests(3, 3, outstanding=4, reserve_per_host=4))
    assert for_each.safe is True
    assert judged(fabric, preset("rdma-read")).safe is True


def test_ports_of_hosts_that_do_not_pause_lose_messages(tmp_path: Path) -> None:
    lossy = judged(leaves(tmp_path / "lossy", ""), preset("request-reply"))
    assert lossy.safe is True
    assert any("do not pause" in note for note in lossy.notes)
    unknown = leaves(tmp_path / "unknown")
    for file in unknown.glob("*/config_db.json"):
        tables = json.loads(file.read_text())
        tables["PORT_QOS_MAP"].pop(HOST_PORT, None)
        file.write_text(json.dumps(tables))
    verdict = judged(unknown, preset("request-reply"))
    assert verdict.safe is None
    assert "PORT_QOS_MAP of the ports of hosts behind leaf0:Vlan10" in verdict.text


@pytest.mark.parametrize("name", ["clos-frr", "ovs-normal"])
def test_links_that_pause_all_priorities_do_not_tell_classes_apart(name: str) -> None:
    verdict = judged(FABRICS / name, requests(3, 4))
    assert (verdict.safe, verdict.through_hosts) == (False, True)
    assert any("priorities of classes are not used" in note for note in verdict.notes)
    assert judged(FABRICS / name, preset("rdma-read")).safe is True


def test_what_the_fabric_is_without_hosts_stays() -> None:
    verdict = judged(FABRICS / "control-knot", preset("rdma-read"))
    assert (verdict.safe, verdict.through_hosts) == (False, False)
    pools = judged(FABRICS / "two-pools", requests(3, 4))
    assert pools.missing == [
        "whether shared pools of buffers without a reserve fill while hosts wait"
    ]


def test_check_answers_with_messages(tmp_path: Path) -> None:
    def run(*words: str) -> Any:
        return CliRunner(mix_stderr=False).invoke(main, ["check", *words])

    fabric = str(FABRICS / "control-safe")
    own = tmp_path / "own.yaml"
    own.write_text(requests(3, 4).text)
    assert run(fabric, "--endpoints", str(own)).exit_code == 0
    answer = run(fabric, "--endpoints", "request-reply")
    assert answer.exit_code == 1
    assert "r1-Vlan10 must send a reply before it takes the request of r0-Vlan10" in answer.stdout
    values = json.loads(run(fabric, "--endpoints", "request-reply", "--json").stdout)
    assert (values["safe"], values["endpoints"]) == (False, "request-reply")
    assert (values["witnesses"][1]["sends"], values["witnesses"][1]["dscp"]) == ("reply", 3)
