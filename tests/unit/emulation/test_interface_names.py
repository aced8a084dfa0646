"""Names of interfaces: those of nodes where they fit, numbers elsewhere."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
import topohub

from knotless.base.errors import EmulationError
from knotless.emulation import interface_names as naming
from knotless.emulation import wiring
from knotless.emulation.interface_names import LONGEST, host_interface, interface_names, numbered
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.node_names import valid_names
from knotless.topologies.partial_fabric import PartialHost, PartialLink, PartialSwitch, complete

AWKWARD = (
    *("lo", "all", "default", "ovs-system", "ovs-netdev", "net", "py", "exit", "h1-1", "None"),
    *("0", "1", "2.5", "a.b", "a_very_long_name_of_a_city", "s1", "s2", "h1", "s1-eth1", "h2-eth0"),
    *("x" * 63, "abcdefghij", "abcdefghijk", "S1", "k0", "-", "New_York", "class"),
)


def fabric(switches: list[str], hosts: list[str]) -> Fabric:
    """Return a ring of these switches, with these hosts on them in turn."""
    count = len(switches)
    return complete(
        "named",
        [PartialSwitch(name) for name in switches],
        [PartialHost(name, i % count) for i, name in enumerate(hosts)],
        [PartialLink(i, (i + 1) % count) for i in range(count if count > 2 else count - 1)],
    )


def test_names_that_fit_are_kept() -> None:
    torus = load("torus,4,4")
    names = interface_names(torus)
    nodes = [switch.name for switch in torus.switches] + [host.name for host in torus.hosts]
    assert list(names) == nodes
    assert all(node == name for node, name in names.items())
    assert numbered(torus) == {}


def test_names_that_do_not_fit_are_numbered() -> None:
    one = fabric(["London", "0", "s2", "New.York"], ["h1", "class", "2", "h4"])
    # s2 is the name of another switch, so the second one gets a number that is nobody's.
    assert numbered(one) == {"0": "s9", "New.York": "s4", "2": "h3"}
    assert host_interface(one, "2") == "h3-eth0"
    assert host_interface(one, "class") == "class-eth0"


def test_an_interface_with_the_name_of_a_bridge_is_avoided() -> None:
    names = interface_names(fabric(["a", "a-eth1", "b"], ["h1"]))
    assert names == {"a": "a", "a-eth1": "s2", "b": "b", "h1": "h1"}


def test_a_port_with_too_many_digits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = fabric(["a.b", "c"], ["h1"])
    wide = replace(wide, links=(replace(wide.links[0], a_port=65279),))
    assert interface_names(wide)["a.b"] == "s1"
    monkeypatch.setattr(naming, "LONGEST", 10)
    with pytest.raises(EmulationError, match="s1-eth65279: it may have 10 characters"):
        interface_names(wide)


@pytest.mark.seeds(60)
def test_every_fabric_has_distinct_interfaces_that_linux_takes(seed: int) -> None:
    """Names as in the Topology Zoo and of NetworkX, and all that clash with something."""
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    wanted = rng.choices([*AWKWARD, "São Paulo", "東京", "?", "", "Frankfurt am Main"], k=24)
    numbers = [f"s{i}" for i in range(1, 13)] + [f"h{i}" for i in range(1, 13)]
    names, _ = valid_names([[name] for name in wanted], numbers)
    one = fabric(names[:12], names[12:])
    cables = wiring.wire(one)
    bridges = [interface_names(one)[switch.name] for switch in one.switches]
    ends = [end for cable in cables for end in cable.ends]
    every = bridges + [end.interface for end in ends]
    assert len({*every}) == len(every)
    for name in every:
        assert len(name) <= LONGEST
        assert name.isascii()
        assert name[0].isalpha()
        assert name not in ("lo", "all", "default", "ovs-system", "ovs-netdev")
        assert not {*name} & {*". /:%"}
    assert {end.owner for end in ends} == {*names}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # TopoHub's
def test_every_graph_of_the_topology_zoo_can_run() -> None:
    """All graphs of the Zoo that TopoHub has."""
    files = sorted((Path(topohub.__file__).parent / "data" / "topozoo").glob("*.json"))
    assert len(files) > 150
    for file in files:
        one = load(f"topohub:topozoo/{file.stem}")
        cables = wiring.wire(one)
        bridges = [interface_names(one)[switch.name] for switch in one.switches]
        every = bridges + [end.interface for cable in cables for end in cable.ends]
        assert len({*every}) == len(every), file.stem
        assert max(map(len, every)) <= LONGEST, file.stem
