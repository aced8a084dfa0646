"""Routes that are computed from configurations of BGP."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.base.errors import KnotlessError
from knotless.cli.main import main
from knotless.forwarding.state import Hop
from knotless.importers.fabric import TableFabric
from knotless.importers.file_kinds import FoundFile
from knotless.importers.findings import Findings
from knotless.importers.paths import read_paths
from knotless.importers.reading import read_source
from knotless.importers.routers.bgp import computed_routes
from knotless.importers.routers.cables import cabling_of
from knotless.importers.routers.files import chosen_routes, routers_of
from knotless.importers.routers.interfaces import Interfaces
from knotless.importers.sources import sources
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from tests.support.bgp_configurations import as_numbers, write_bgp
from tests.support.router_dumps import RouterNet
from tests.support.router_nets import clos, leaf_spine

DATA = Path(__file__).parents[2] / "data" / "fabrics"
ASSUMED = "all routes are computed from the configurations of BGP: assumed, not read"


def _judged(folder: Path) -> ImportedVerdict:
    return verdict_of_imported(read_paths([folder], routes_by="bgp"))


def _paths(fabric: object) -> dict[tuple[str, str], list[Hop]]:
    assert isinstance(fabric, TableFabric)
    state = fabric.traffics[0].state
    names = [host.name for host in fabric.fabric.hosts]
    return {(a, b): sorted(state.trace(a, b).hops) for a in names for b in names if a != b}


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize(
    "net", [leaf_spine(3, 2), leaf_spine(2, 4), clos(2, 2, 2, 2), clos(3, 2, 2, 1)]
)
def test_clos_fabrics_have_their_shortest_paths(
    net: RouterNet, numbered: bool, tmp_path: Path
) -> None:
    """Those that the same fabric has when its routes are read."""
    write_bgp(net, tmp_path / "computed", numbered=numbered)
    computed = read_paths([tmp_path / "computed"], routes_by="bgp")
    read = read_paths([net.write(tmp_path / "read")])
    assert _paths(computed) == _paths(read)
    one, other = verdict_of_imported(computed), verdict_of_imported(read)
    assert (one.acyclic, one.missing, one.undelivered) == (True, [], 0)
    assert one.max_channel_load == other.max_channel_load
    assert ASSUMED in one.notes


def test_routes_are_those_that_frr_installed() -> None:
    """FRR 8.4.4 ran with these configurations in network namespaces; see the routes it shows."""
    files = [
        file
        for source in sources([DATA / "clos-frr"], [])
        if isinstance(file := read_source(source, configurations=True), FoundFile)
    ]
    findings = Findings()
    routers, cables = routers_of(files, findings)
    computed = computed_routes(
        routers,
        cabling_of(routers, {r.name: {} for r in routers}, cables, Interfaces(routers), findings),
        findings,
    )
    assert len(routers) == 6
    for router in routers:
        installed = chosen_routes(router, findings)
        assert installed is not None
        routes = computed[router.name]
        assert routes.keys() == installed.keys()
        for prefix, hops in installed.items():
            if hops[0].interface != "lo":  # which SONiC calls Loopback0
                assert set(routes[prefix]) == set(hops), (router.name, prefix)
    assert not {**findings.gaps, **findings.problems}


def test_leaves_of_one_as_need_allowas_in(tmp_path: Path) -> None:
    net = leaf_spine(3, 2)
    numbers = {
        router: 65_000 if "leaf" in router else as_numbers(net)[router] for router in net.routers
    }
    apart = _judged(write_bgp(net, tmp_path / "apart", numbers=numbers))
    assert apart.undelivered == apart.pairs == 6
    allowed = "".join(
        f" neighbor 172.31.0.{2 * number + 1} allowas-in 1\n" for number in range(len(net.cables))
    )
    joined = write_bgp(net, tmp_path / "joined", numbers=numbers)
    for leaf in ("leaf0", "leaf1", "leaf2"):
        file = joined / leaf / "frr.conf"
        text = file.read_text()
        own = [line for line in allowed.splitlines() if line.split()[1] in text]
        file.write_text(text.replace(" !\n", "\n".join(own) + "\n !\n", 1))
    assert _judged(joined).undelivered == 0


def test_a_longer_path_is_a_backup(tmp_path: Path) -> None:
    """The usual way to take a spine out of use: a route map that lengthens what it announces."""
    net = leaf_spine(3, 2)
    text = "route-map OUT permit 10\n set as-path prepend 1 1 1\n!\n"
    of_bgp = "".join(f" neighbor 172.31.0.{4 * i + 2} route-map OUT out\n" for i in range(3))
    folder = write_bgp(net, tmp_path, more={"spine1": text}, more_of_bgp={"spine1": of_bgp})
    imported = read_paths([folder], routes_by="bgp")
    assert isinstance(imported, TableFabric)
    used = {hop.channel for hops in _paths(imported).values() for hop in hops}
    names = imported.channels.names
    tails = {names[imported.channels.tail[c]] for c in used if c < len(imported.channels)}
    assert tails == {"leaf0", "leaf1", "leaf2", "spine0"}
    assert _judged(folder).undelivered == 0


@pytest.mark.parametrize(
    ("rules", "reached"),
    [
        ("ip prefix-list P seq 5 deny 10.0.0.0/24\nip prefix-list P seq 10 permit any\n", False),
        ("ip prefix-list P seq 5 permit 10.0.0.0/8 le 24\n", True),
        ("ip prefix-list P seq 5 permit 10.0.0.0/8\n", False),
        ("ip prefix-list P seq 5 permit 0.0.0.0/0 ge 25\n", False),
        ("ip prefix-list P permit 10.0.0.0/24\n", True),
    ],
)
def test_prefix_lists(rules: str, reached: bool, tmp_path: Path) -> None:
    """Leaf 0 announces its network to one spine only, by a list, or by a map with that list."""
    net = leaf_spine(2, 1)
    for kind, text in (
        ("prefix-list P", ""),
        ("route-map M", "route-map M permit 10\n match ip address prefix-list P\n"),
    ):
        folder = write_bgp(
            net,
            tmp_path / kind.split()[0],
            more={"leaf0": rules + text},
            more_of_bgp={"leaf0": f" neighbor 172.31.0.1 {kind} out\n"},
        )
        assert _judged(folder).undelivered == (0 if reached else 1)


def test_sessions_that_stay_down_are_named(tmp_path: Path) -> None:
    net = leaf_spine(2, 1)
    folder = write_bgp(net, tmp_path)
    file = folder / "leaf0" / "frr.conf"
    text = file.read_text()
    spine = as_numbers(net)["spine0"]
    file.write_text(text.replace(f"remote-as {spine}", "remote-as 7"))
    verdict = _judged(folder)
    expected = (
        f"the BGP session of leaf0 with 172.31.0.1 stays down: leaf0 expects AS 7, not {spine}"
    )
    assert expected in verdict.notes
    assert verdict.undelivered == 2
    file.write_text(text.replace("172.31.0.1 remote-as", "172.31.0.9 remote-as"))
    missing = _judged(folder).missing
    assert missing == ["the routes that BGP neighbour 172.31.0.9 announces to leaf0"]


@pytest.mark.parametrize(
    ("statement", "in_bgp"),
    [
        (" neighbor 172.31.0.1 local-as 9\n", True),
        (" aggregate-address 10.0.0.0/8 summary-only\n", True),
        (" bgp listen range 10.0.0.0/8 peer-group G\n", True),
        (" bgp shutdown\n", True),
        (" network 10.0.0.0/24 backdoor\n", True),
        (" redistribute connected metric 5 route-map M\n", True),
        (" redistribute ospf\n", True),
        (" neighbor 172.31.0.1 interface interface interface peer-group G\n", True),
        ("ip route 10.0.1.0/24 172.31.0.1 table 7\n", False),
        ("ip protocol bgp route-map M\n", False),
        ("interface Ethernet0\n ip policy M\n", False),
    ],
)
def test_what_is_not_followed_makes_the_verdict_unknown(
    statement: str, in_bgp: bool, tmp_path: Path
) -> None:
    more = {"leaf0": statement}
    folder = write_bgp(
        leaf_spine(2, 1),
        tmp_path,
        more={} if in_bgp else more,
        more_of_bgp=more if in_bgp else {},
    )
    verdict = _judged(folder)
    assert verdict.acyclic is None
    last = statement.strip().split("\n")[-1].strip()
    assert any(last in text and "leaf0" in text for text in verdict.missing)


@pytest.mark.parametrize(
    "statements",
    [
        "vrf RED\n ip route 10.0.1.0/24 Null0\nexit-vrf\n",
        "ip route 10.9.0.0/16 172.31.0.1 5\n",
        "ip route 10.0.1.0/24 172.31.0.1 250\n",
        "router bgp 4200000000\n neighbor G peer-group\n neighbor G remote-as 7\n",
        "interface Ethernet96\n ip address 172.30.0.0/31\n shutdown\n",
    ],
)
def test_statements_that_change_no_route_between_hosts(statements: str, tmp_path: Path) -> None:
    """Those of a VRF, a static route to elsewhere or behind BGP, an empty group, a closed port."""
    folder = write_bgp(leaf_spine(2, 1), tmp_path, more={"leaf0": statements})
    verdict = _judged(folder)
    assert (verdict.acyclic, verdict.missing, verdict.undelivered) == (True, [], 0)


@pytest.mark.parametrize("numbered", [True, False])
def test_over_an_interface_that_is_shut_down_there_is_no_session(
    numbered: bool, tmp_path: Path
) -> None:
    closed = "interface Ethernet0\n shutdown\n"
    folder = write_bgp(leaf_spine(2, 1), tmp_path, numbered=numbered, more={"leaf0": closed})
    verdict = _judged(folder)
    assert (verdict.acyclic, verdict.missing, verdict.undelivered) == (True, [], 2)
    assert len([note for note in verdict.notes if "stays down: Ethernet0 of leaf0" in note]) == 1


def test_addresses_are_compared_as_such(tmp_path: Path) -> None:
    """``FC00:0::1`` is ``fc00::1``."""
    net = leaf_spine(2, 1)
    folder = write_bgp(net, tmp_path)
    plain, other = ("fc00:0:0::", "FC00:0::")
    for router in net.routers:
        file = folder / router / "frr.conf"
        text = file.read_text().replace("/31\n", "/127\n").replace("ipv4 unicast", "ipv6 unicast")
        text = re.sub(r"address 172\.31\.0\.(\d)", rf"address {plain}\1", text)
        text = re.sub(r"neighbor 172\.31\.0\.(\d)", rf"neighbor {other}\1", text)
        file.write_text(text.replace(" ip address", " ipv6 address"))
    assert not [text for text in _judged(folder).missing if "BGP neighbour" in text]


def test_steps_of_a_cycle_are_shown_with_the_option(tmp_path: Path) -> None:
    folder = _default_ring(tmp_path / "ring")
    done = CliRunner().invoke(main, ["check", str(folder), "--routes", "bgp", "--json"])
    commands = [step["command"] for step in json.loads(done.stdout)["witnesses"]]
    assert commands
    for command in commands:
        assert "--routes bgp" in command
        shown = CliRunner().invoke(main, shlex.split(command)[1:])
        assert shown.exit_code == 0, shown.output


def test_route_maps_that_match_something_else_are_missing_facts(tmp_path: Path) -> None:
    text = "route-map M permit 10\n match community C\n"
    folder = write_bgp(
        leaf_spine(2, 1),
        tmp_path,
        more={"leaf0": text},
        more_of_bgp={"leaf0": " neighbor 172.31.0.1 route-map M in\n"},
    )
    missing = _judged(folder).missing
    assert missing == ["what 'match community C' in route-map M of leaf0 does to routes"]


def _default_ring(folder: Path) -> Path:
    """Write four routers, each with a static default route clockwise."""
    cables = [((f"r{i}", "Ethernet0"), (f"r{(i + 1) % 4}", "Ethernet4")) for i in range(4)]
    net = leaf_spine(2, 1)
    ring = RouterNet(
        cables,
        hosts={(f"r{i}", "Vlan10"): f"10.0.{i}.1/24" for i in range(4)},
        routes={f"r{i}": {} for i in range(4)},
        qos={f"r{i}": net.qos["leaf0"] for i in range(4)},
    )
    more = {f"r{i}": f"ip route 0.0.0.0/0 172.31.0.{2 * i + 1}\n" for i in range(4)}
    write_bgp(ring, folder, more=more)
    for router in ring.routers:
        file = folder / router / "config_db.json"
        tables = json.loads(file.read_text())
        uses = next(iter(tables["PORT_QOS_MAP"].values()))
        tables["PORT_QOS_MAP"] |= {"Ethernet0": uses, "Ethernet4": uses}
        file.write_text(json.dumps(tables))
    return folder


def test_a_ring_of_default_routes_can_deadlock(tmp_path: Path) -> None:
    """Static routes count before BGP."""
    assert _judged(_default_ring(tmp_path)).cycle == [f"r{i}:Ethernet0/3" for i in range(4)]


def test_config_db_alone(tmp_path: Path) -> None:
    """Loopback and VLAN networks are announced, as SONiC's template does."""
    net = leaf_spine(3, 2)
    numbers = as_numbers(net)
    folder = write_bgp(net, tmp_path)
    links = {end: (n, side) for n, cable in enumerate(net.cables) for side, end in enumerate(cable)}
    for router in net.routers:
        (folder / router / "frr.conf").unlink()
        file = folder / router / "config_db.json"
        tables = json.loads(file.read_text())
        tables["DEVICE_METADATA"]["localhost"]["bgp_asn"] = str(numbers[router])
        tables["BGP_NEIGHBOR"], tables["INTERFACE"] = {}, {}
        for (name, port), (peer, _) in net.peers.items():
            if name == router:
                number, side = links[name, port]
                tables["INTERFACE"][f"{port}|172.31.0.{2 * number + side}/31"] = {}
                address = f"172.31.0.{2 * number + 1 - side}"
                tables["BGP_NEIGHBOR"][address] = {"asn": str(numbers[peer]), "name": peer}
        file.write_text(json.dumps(tables))
    computed = read_paths([folder], routes_by="bgp")
    verdict = verdict_of_imported(computed)
    assert (verdict.acyclic, verdict.missing, verdict.undelivered) == (True, [], 0)
    read = read_paths([net.write(tmp_path.parent / f"{tmp_path.name}-read")])
    assert _paths(computed) == _paths(read)


def test_an_interface_without_a_name_has_no_address(tmp_path: Path) -> None:
    """A damaged key, found by damaging files."""
    folder = write_bgp(leaf_spine(2, 1), tmp_path)
    file = folder / "leaf0" / "config_db.json"
    tables = json.loads(file.read_text())
    tables["VLAN_INTERFACE"]["10.9.0.1/24"] = {}
    tables["DEVICE_METADATA"]["localhost"]["bgp_asn"] = "65000"
    file.write_text(json.dumps(tables))
    assert _judged(folder).undelivered == 0
    (folder / "leaf0" / "frr.conf").unlink()
    assert _judged(folder).undelivered == 2


def test_the_command(tmp_path: Path) -> None:
    folder = write_bgp(leaf_spine(2, 2), tmp_path / "fabric")
    done = CliRunner().invoke(main, ["check", str(folder), "--routes", "bgp"])
    assert done.exit_code == 0, done.output
    assert f"note: {ASSUMED}" in done.output
    without = CliRunner().invoke(main, ["check", str(folder)])
    assert without.exit_code == 1
    assert "the routes of leaf0" in without.output
    for router in folder.iterdir():
        (router / "frr.conf").unlink()
    with pytest.raises(KnotlessError, match="no router has a configuration of BGP"):
        read_paths([folder], routes_by="bgp")


def test_static_routes_of_sonic_count_too(tmp_path: Path) -> None:
    """STATIC_ROUTE has lists of next hops and interfaces; next hops in other VRFs are unclear."""
    net = {
        "s1": {
            "10.0.2.0/24": {"nexthop": "100.64.0.1,100.64.0.3", "ifname": "Ethernet0,Ethernet4"}
        },
        "s2": {"10.0.1.0/24": {"nexthop": "100.64.0.0", "distance": "0"}},
    }
    edges = []
    for number, (name, routes) in enumerate(net.items()):
        tables = {
            "DEVICE_METADATA": {"localhost": {"hostname": name}},
            "PORT": {f"Ethernet{4 * link}": {"admin_status": "up"} for link in range(2)},
            "INTERFACE": {
                f"Ethernet{4 * link}|100.64.0.{2 * link + number}/31": {} for link in range(2)
            },
            "VLAN_INTERFACE": {f"Vlan10|10.0.{number + 1}.254/24": {}},
            "STATIC_ROUTE": {f"default|{prefix}": fields for prefix, fields in routes.items()},
        }
        (tmp_path / name).mkdir()
        (tmp_path / name / "config_db.json").write_text(json.dumps(tables))
    for link in range(2):
        port = f"Ethernet{4 * link}"
        ends = {f"node{n}": {"hostname": f"s{n}", "interfaceName": port} for n in (1, 2)}
        edges.append(ends)
    (tmp_path / "layer1_topology.json").write_text(json.dumps({"edges": edges}))
    read = read_paths([tmp_path], routes_by="static")
    state = read.traffics[0].state
    hops = [hop for hop in state.trace("s1-Vlan10", "s2-Vlan10").hops if hop.channel < 4]
    assert len(hops) == 2
    back = [hop for hop in state.trace("s2-Vlan10", "s1-Vlan10").hops if hop.channel < 4]
    assert len(back) == 1
    assert verdict_of_imported(read).undelivered == 0
    config = tmp_path / "s2" / "config_db.json"
    config.write_text(config.read_text().replace('"distance": "0"', '"nexthop-vrf": "Vrf1"'))
    missing = verdict_of_imported(read_paths([tmp_path], routes_by="static")).missing
    assert any("STATIC_ROUTE" in text for text in missing)
