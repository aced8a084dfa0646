"""``knotless mn``: what it makes of Mininet's words, while nothing runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mininet.net")

from click.testing import CliRunner, Result

from knotless import mininet
from knotless.cli.main import main
from knotless.emulation.interface_names import numbered
from knotless.emulation.network import EmulatedFabric
from tests.support import REPOSITORY

RING = str(REPOSITORY / "tests" / "data" / "mininet" / "ring.py")


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[EmulatedFabric]:
    """Return the fabrics that would be started; none is."""
    fabrics: list[EmulatedFabric] = []
    monkeypatch.setattr(EmulatedFabric, "start", lambda fabric: fabrics.append(fabric))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(mininet, "_end_in_good_order", lambda: None)
    return fabrics


def mn(*words: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, ["mn", *words], prog_name="knotless")


def test_a_topology_of_a_file_has_the_links_and_addresses_of_the_options(
    begun: list[EmulatedFabric],
) -> None:
    words = ["--custom", RING, "--topo", "myring,5", "--link", "pfc,bw=50,delay=2ms", "--mac"]
    done = mn(*words, "--engine", "updown", "--test", "none", "--name", "mine", "--arp")
    assert done.exit_code == 0, done.stderr
    (fabric,) = begun
    assert [host.mac for host in fabric.fabric.hosts][-1] == "00:00:00:00:00:05"
    assert {(li.rate_mbps, li.delay_us) for li in fabric.fabric.links} == {(50.0, 2000.0)}
    assert (str(fabric.request.flow_control), fabric.request.engine) == ("pfc", "updown")
    assert (fabric.name, fabric.static_arp, fabric.controller) == ("mine", True, "ryu")


@pytest.mark.parametrize(
    ("topo", "switches", "hosts"),
    [
        ("minimal", 1, 2),
        ("tree,2,3", 4, 9),
        ("torus,3,3", 9, 9),
        ("mesh,3,2", 6, 6),
        ("Ring,4", 4, 4),
    ],
)
def test_topologies_of_mininet_and_of_ours_are_known(
    begun: list[EmulatedFabric], topo: str, switches: int, hosts: int
) -> None:
    assert mn("--topo", topo, "--test", "none").exit_code == 0
    (fabric,) = begun
    assert (len(fabric.fabric.switches), len(fabric.fabric.hosts)) == (switches, hosts)


def test_a_file_has_any_names_also_those_that_are_no_interfaces(
    begun: list[EmulatedFabric], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["0", "py", "3.5", "a_switch_with_a_long_name"]
    nodes = "".join(f'<node id="{name}"/>' for name in names)
    edges = "".join(f'<edge source="0" target="{name}"/>' for name in names[1:])
    text = f'<graphml><graph edgedefault="undirected">{nodes}{edges}</graph></graphml>'
    (tmp_path / "star.graphml").write_text(text)
    monkeypatch.chdir(tmp_path)
    done = mn("--topo", "star.graphml", "--test", "none", "--name", "Star")
    assert done.exit_code == 0, done.stderr
    (fabric,) = begun
    assert [switch.name for switch in fabric.fabric.switches] == names
    assert numbered(fabric.fabric) == {"0": "s1", "3.5": "s3", names[3]: "s4"}
    assert fabric.name == "star"


def test_our_fabrics_keep_their_rates_unless_others_are_given(begun: list[EmulatedFabric]) -> None:
    assert mn("--topo", "ring,4,rate=25", "--test", "none").exit_code == 0
    assert mn("--topo", "ring,4,rate=25", "--link", "pause,bw=7", "--test", "none").exit_code == 0
    rates = [{link.rate_mbps for link in fabric.fabric.links} for fabric in begun]
    assert rates == [{25.0}, {7.0}]
    assert all(fabric.fabric.family is not None for fabric in begun)


def test_controllers_are_those_of_mininet(begun: list[EmulatedFabric]) -> None:
    remote = "remote,ip=192.0.2.1,port=6633"
    assert mn("--controller", remote, "--controller", remote, "--test", "none").exit_code == 0
    assert mn("--controller", "none", "--test", "none").exit_code == 0
    assert list(begun[0].remotes) == [("192.0.2.1", 6633)] * 2
    assert [fabric.controller for fabric in begun] == ["remote", "none"]


def test_tests_of_a_file_run(begun: list[EmulatedFabric], tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def greet(net, word='x'): print('hello', word, len(net.hosts))\n")
    with file.open("a") as more:
        more.write("tests = {'greet': greet}\n")
    done = mn("--custom", str(file), "--test", "greet,word=you+none")
    assert (done.exit_code, done.stdout) == (0, "hello you 2\n")
    assert len(begun) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--clean"], "--clean: Mininet's clean-up ends programs of the whole machine"),
        (["--xterms"], "'knotless attach HOST'"),
        (["--nat"], "a fabric has no way out"),
        (["--topo", "tre,2"], "there is no topology 'tre'; did you mean 'tree'?"),
        (["--topo", "tree,many"], "--topo tree,many: TypeError"),
        (["--link", "pfx"], "there are no such links; did you mean 'pfc'?"),
        (["--link", "pause,loss=300"], "link: loss must be 0 to 100 percent, not 300"),
        (["--switch", "lxbr"], "switches are of the fabric's own Open vSwitch"),
        (["--host", "cfs"], "hosts are namespaces: omit it"),
        (["--controller", "ryu"], "--controller 'ryu': it is not started here"),
        (["--test", "ping"], "--test 'ping': there is no such test"),
        (["--custom", "/nowhere.py"], "/nowhere.py"),
        (["--verbosity", "loud"], "--verbosity 'loud': one of"),
        (["--engine", "none-such"], "none-such"),
    ],
)
def test_what_is_not_supported_is_one_line(
    begun: list[EmulatedFabric], words: list[str], message: str
) -> None:
    done = mn(*words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert begun == []


@pytest.mark.parametrize(
    "text", ["topos = {'t': lambda: 1 / 0}", "raise ValueError('no')", "links = {'x': 1}", "def ("]
)
def test_a_broken_file_is_one_line(begun: list[EmulatedFabric], tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text + "\n")
    done: Any = mn("--custom", str(file), "--topo", "t")
    assert (done.exit_code, done.stderr.count("\n"), begun) == (2, 1, [])
