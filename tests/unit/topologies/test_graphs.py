"""Graphs of NetworkX and topologies of TopoHub; both packages are optional."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import networkx
import pandas
import pytest
from click.testing import CliRunner

import knotless as kn
from knotless.base.errors import FabricError, KnotlessError
from knotless.cli.main import main
from knotless.routing.plan import make_plan
from knotless.topologies import Fabric, load

ABILENE: dict[str, Any] = {
    "graph": {"name": "small"},
    "nodes": [{"id": 0, "name": "ATLA"}, {"id": 1, "name": "CHIN"}, {"id": 5, "name": "DNVR"}],
    "edges": [
        {"source": 0, "target": 1, "dist": 1000.0},
        {"source": 1, "target": 5, "dist": 100.5},
        {"source": 5, "target": 0},
    ],
}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the topologies of a package topohub, which is installed for this test."""
    graphs: dict[str, Any] = {"sndlib/abilene": ABILENE}
    package = ModuleType("topohub")
    package.get = lambda key: graphs[key]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "topohub", package)
    return graphs


def test_a_topology_of_topohub_is_a_fabric(hub: dict[str, Any]) -> None:
    assert hub
    fabric = load("topohub:sndlib/abilene")
    assert [switch.name for switch in fabric.switches] == ["ATLA", "CHIN", "DNVR"]
    assert [host.switch for host in fabric.hosts] == ["ATLA", "CHIN", "DNVR"]
    assert [link.delay_us for link in fabric.links] == [4900, 493, 0]
    assert make_plan(fabric).fabric.name == "topohub:sndlib/abilene"
    done = CliRunner().invoke(main, ["topology", "topohub:sndlib/abilene", "--json"])
    assert done.exit_code == 0, done.output


def test_names_that_are_no_names_are_changed_as_far_as_they_must(hub: dict[str, Any]) -> None:
    hub["backbone/x"] = {
        "nodes": [{"id": i, "name": name} for i, name in enumerate(("a", "a", "São Paulo"))],
        "edges": [{"source": 0, "target": 1}, {"source": 1, "target": 2}],
    }
    fabric = load("topohub:backbone/x")
    assert [switch.name for switch in fabric.switches] == ["a", "a-2", "Sao_Paulo"]
    assert fabric.notes == (
        "names that had to be changed to be valid and distinct: 'a' is a-2, 'São Paulo' is"
        " Sao_Paulo",
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("topohub:sndlib/nothing", "TopoHub has no such topology"),
        ("topohub:abilene", "write a topology of TopoHub as topohub:sndlib/abilene"),
        ("topohub:../../etc/passwd", "write a topology of TopoHub as"),
        ("topohub:broken/one", "not a topology: KeyError"),
        ("topohub:broken/two", "not a topology: TypeError"),
    ],
)
def test_what_is_no_topology_is_refused_in_one_line(
    hub: dict[str, Any], spec: str, message: str
) -> None:
    hub["broken/one"] = {"nodes": [{"id": 0}], "edges": [{"source": 0, "target": 9}]}
    hub["broken/two"] = {"nodes": [{"id": 0}], "edges": ["0-1"]}
    with pytest.raises(FabricError) as refused:
        load(spec)
    assert message in str(refused.value)


@pytest.mark.parametrize("package", ["topohub", "networkx", "pandas"])
def test_a_package_that_is_missing_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    attempts: dict[str, Callable[[], object]] = {
        "topohub": lambda: load("topohub:sndlib/abilene"),
        "networkx": lambda: kn.to_networkx(load("ring,3")),
        "pandas": lambda: kn.frame("results/none"),
    }
    with pytest.raises(KnotlessError, match=f"{package} is not installed: pip install"):
        attempts[package]()


def cables(fabric: Fabric) -> set[frozenset[tuple[str, int]]]:
    return {frozenset([(li.a, li.a_port), (li.b, li.b_port)]) for li in fabric.links}


@pytest.mark.parametrize("spec", ["torus,4,4", "fattree,2,4,2", "mesh,3,2,hosts=2,rate=7,delay=3"])
def test_a_fabric_goes_to_networkx_and_back(spec: str) -> None:
    fabric = load(spec)
    back = kn.from_networkx(kn.to_networkx(fabric), fabric.name)
    assert (back.switches, back.hosts) == (fabric.switches, fabric.hosts)
    assert cables(back) == cables(fabric)
    assert {li.rate_mbps for li in back.links} == {li.rate_mbps for li in fabric.links}


def test_any_graph_of_networkx_is_a_fabric() -> None:
    fabric = kn.from_networkx(networkx.petersen_graph(), "petersen")
    assert (len(fabric.switches), len(fabric.hosts), len(fabric.links)) == (10, 10, 15)
    graph = networkx.path_graph(3)
    graph.nodes[0]["dpid"] = {"not": "a number"}
    with pytest.raises(FabricError, match="NetworkX cannot write it as GraphML"):
        kn.from_networkx(graph)


class Graph:
    """As much of networkx.MultiGraph as is used here."""

    def __init__(self, name: str) -> None:
        self.name, self.nodes, self.edges = name, dict[str, Any](), list[Any]()

    def add_node(self, name: str, **data: Any) -> None:
        self.nodes[name] = data

    def add_edge(self, a: str, b: str, **data: Any) -> None:
        self.edges.append((a, b, data))


def test_a_graph_has_every_node_and_link_with_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("networkx")
    package.MultiGraph = Graph  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "networkx", package)
    fabric = load("ring,3,hosts=2")
    graph = kn.to_networkx(fabric)
    assert set(graph.nodes) == {s.name for s in fabric.switches} | {h.name for h in fabric.hosts}
    assert graph.nodes["s2"] == {"kind": "switch", "dpid": 2}
    made = {
        frozenset([(a, d["source_port"]), (b, d.get("target_port"))]) for a, b, d in graph.edges
    }
    assert made == cables(fabric) | {
        frozenset([(h.switch, h.port), (h.name, None)]) for h in fabric.hosts
    }


def test_counters_of_channels_become_a_frame() -> None:
    class Running:
        def channels(self) -> list[dict[str, Any]]:
            return [{"channel": "s1:2", "priority": 0, "frames": n} for n in (3, 4)]

    frame = kn.frame(Running())
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == ["channel", "priority", "frames"]
    assert frame.frames.sum() == 7


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # TopoHub's
def test_a_topology_of_the_real_package_is_a_fabric() -> None:
    fabric = load("topohub:sndlib/abilene")
    assert (len(fabric.switches), len(fabric.links)) == (12, 15)


def test_knotless_fabric_is_called_whether_or_not_its_module_is_imported() -> None:
    import knotless.fabric  # noqa: F401 - from here on the package's attribute

    with pytest.raises(KnotlessError, match="did you mean 'engine'"):
        kn.fabric("ring,4", engin="updown")
