"""Running fabrics whose nodes have names that are no names of interfaces or are commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from knotless.base.flow_control import FlowControl
from knotless.emulation.daemon import Daemon
from knotless.emulation.names import Names
from knotless.emulation.priority import NICE
from knotless.simulation.channels import channel_table
from knotless.simulation.settings import Switching
from knotless.topologies import load
from tests.support import REPOSITORY
from tests.support.fabric_fixtures import Knotless, Start
from tests.support.waiting import HANG_S

ZOO = """<graphml><key attr.name="label" for="node" id="l"/><graph edgedefault="undirected">
<node id="0"><data key="l">New York City</data></node>
<node id="1"><data key="l">S\u00e3o Paulo</data></node>
<node id="2"><data key="l">net</data></node>
<node id="3"><data key="l">Frankfurt (Oder)</data></node>
<edge source="0" target="1"/><edge source="1" target="2"/><edge source="2" target="3"/>
<edge source="3" target="0"/></graph></graphml>
"""
"""As in the Topology Zoo: numbers as ids, places as labels."""

HOSTS = ("exit", "h1-1", "2", "a-host-with-a-long-name.example.org")


def graph_of_numbers() -> str:
    """Return a ring as NetworkX writes it, with hosts of names that need quotes."""
    nodes = "".join(f'<node id="{i}"/>' for i in ("0", "1", "py", "3.5"))
    nodes += "".join(f'<node id="{name}"><data key="k">host</data></node>' for name in HOSTS)
    ends = [("0", "1"), ("1", "py"), ("py", "3.5"), ("3.5", "0")]
    ends += list(zip(HOSTS, ("0", "1", "py", "3.5"), strict=True))
    edges = "".join(f'<edge source="{a}" target="{b}"/>' for a, b in ends)
    key = '<key attr.name="kind" for="node" id="k"/>'
    return f'<graphml>{key}<graph edgedefault="undirected">{nodes}{edges}</graph></graphml>'


def test_places_of_a_graph_are_the_names_everywhere(
    names: Names, knotless: Knotless, tmp_path: Path
) -> None:
    file = tmp_path / "zoo.graphml"
    file.write_text(ZOO)
    own = ("--name", names.name)
    done = knotless("up", str(file), *own, "--rest-port", "0")
    assert done.returncode == 0, done.stderr
    try:
        (status,) = json.loads(knotless("status", *own, "--json").stdout)["fabrics"]
        switches = ["New_York_City", "Sao_Paulo", "net", "Frankfurt_Oder"]
        assert sorted(status["controller"]["switches"]) == sorted(switches)
        # As in the simulator, though their names are in another order.
        channels = channel_table(load(str(file)), Switching(FlowControl.PFC)).names
        counted = Daemon(names.emulator_socket, {}).counters()["channels"]
        assert tuple(one["channel"] for one in counted) == channels
        assert status["interfaces"] == {"New_York_City": "s1", "Frankfurt_Oder": "s4"}
        assert "interfaces are numbered" in knotless("status", *own).stdout
        assert knotless("check", "--live", *own).returncode == 0
        assert knotless("cut", *own, "New_York_City-Sao_Paulo").returncode == 0
        assert knotless("mend", *own, "New_York_City-Sao_Paulo").returncode == 0
        assert knotless("switch", "restart", "Frankfurt_Oder", *own).returncode == 0
        done = knotless("attach", *own, input="'net' ovs-ofctl --version\npingall\nnet\nexit\n")
        told = done.stdout + done.stderr
        assert "0% dropped (12/12 received)" in told
        assert "ovs-ofctl (Open vSwitch)" in told
        assert "nodes with names of commands: net" in told
        assert "New_York_City lo: s1-eth1:h1-eth0" in " ".join(told.split())
    finally:
        knotless("down", *own)


def test_the_prompt_takes_every_name(names: Names, knotless: Knotless, tmp_path: Path) -> None:
    file = tmp_path / "numbers.graphml"
    file.write_text(graph_of_numbers())
    own = ("--name", names.name.upper())
    lines = (
        "h1-1 ping -c 2 exit\n"
        "'exit' ping -c 2 '2'\n"
        "2 ping -c 2 a-host-with-a-long-name.example.org\n"
        "'py' echo a switch\n"
        "dpctl dump-ports-desc\n"
        "py net['h1-1'].IP()\n"
        "counters 3.5\n"
        "h1-2 ping h1-1\n"
        "exit\n"
    )
    done = knotless("lab", str(file), *own, "--rest-port", "0", input=lines)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    assert text.count("2 packets transmitted, 2 received") == 3
    assert "a switch\n" in text
    assert text.count("OFPST_PORT_DESC") == 4
    assert "(s1-eth1)" in text
    assert "10.0.2.1\n" in text
    assert "3.5:1" in text
    assert "there is no command or node 'h1-2': did you mean 'h1-1'?" in text


def test_programs_of_hosts_are_as_nice_as_their_fabric(start: Start, knotless: Knotless) -> None:
    fabric = start("ring,3")
    own = ("--name", fabric.names.name)
    show = ("cat", "/proc/self/stat")

    def niceness(stat: str) -> int:
        return int(stat.rpartition(")")[2].split()[16])

    expected = max(NICE, os.getpriority(os.PRIO_PROCESS, 0))
    running = fabric.net.running
    prompt = knotless("attach", *own, input="h1 cat /proc/self/stat\nexit\n")
    told = {
        "exec": knotless("exec", *own, "h1", *show).stdout,
        "script": running.run("h1", *show).stdout,
        "shell of a host": fabric.host("h1").cmd(*show),
        "popen": fabric.host("h1").popen([*show]).communicate()[0].decode(),
        "prompt": prompt.stdout + prompt.stderr,
    }
    lines = {how: text[text.index("(cat)") :].splitlines()[0] for how, text in told.items()}
    assert {how: niceness(line) for how, line in lines.items()} == dict.fromkeys(told, expected)


SCRIPT = """
from knotless.mininet import Knotless

net = Knotless(name={name!r})
switches = [net.addSwitch("a.b", dpid="1"), net.addSwitch("0", dpid="2")]
hosts = [net.addHost("class", ip="10.0.0.1/8"), net.addHost("1.x", ip="10.0.0.2/8")]
link = net.addLink(*switches)
for host, switch in zip(hosts, switches):
    net.addLink(host, switch)
net.start()
print("lost", net.pingAll())
print("interfaces", link.intf1.name, link.intf2.name, *(host.defaultIntf() for host in hosts))
net.configLinkStatus("a.b", "0", "down")
print("lost", net.pingAll(timeout=1))
net.stop()
"""


def test_a_script_of_mininet_may_use_any_names(names: Names, tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT.format(name=names.name))
    done = subprocess.run(
        [sys.executable, str(file)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "lost 0.0",
        "interfaces s1-eth1 s2-eth1 class-eth0 h2-eth0",
        "lost 100.0",
    ]
