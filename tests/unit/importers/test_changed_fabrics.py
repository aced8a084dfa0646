"""What switches believe, buffer and are told: one changed field, and the verdict that follows."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.importers.paths import read_paths
from knotless.importers.routers import qos, tables, tunnels
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from tests.support.changed_fabrics import DATA, Config, changed, trust_pcp, watch
from tests.support.classical_deadlocks import dual_tor

RING = ["r0:Ethernet0/3", "r1:Ethernet0/3", "r2:Ethernet0/3"]
PAGE = Path(__file__).parents[3] / "docs" / "check-your-fabric.md"


def judged(folder: Path) -> ImportedVerdict:
    return verdict_of_imported(read_paths([folder]))


def status(folder: Path) -> int:
    return CliRunner().invoke(main, ["check", str(folder)]).exit_code


def test_the_fabrics_without_a_change(tmp_path: Path) -> None:
    knot, safe = (changed(tmp_path / name, name) for name in ("control-knot", "control-safe"))
    assert (judged(knot).acyclic, judged(knot).cycle) == (False, RING)
    verdict = judged(safe)
    assert (verdict.acyclic, verdict.problems, verdict.notes, verdict.losses) == (True, [], [], [])
    assert (status(knot), status(safe)) == (1, 0)


def test_ports_that_trust_the_pcp(tmp_path: Path) -> None:
    verdict = judged(changed(tmp_path, "control-knot", trust_pcp))
    assert (verdict.acyclic, verdict.cycle) == (False, RING)
    assert {(step.label, step.value) for step in verdict.witnesses} == {("PCP", 3)}
    assert verdict.notes == [
        "ports trust the PCP of VLAN tags (dot1p_to_tc_map): packets are taken to keep theirs"
    ]


@pytest.mark.seeds(60)
def test_any_map_of_the_pcp(seed: int, tmp_path: Path) -> None:
    """A class that any PCP has and that has a lossless priority group closes the cycle.

    If untagged packets, whose PCP is 0, are lossless, packets may change their priority on the way.
    """
    rng = random.Random(seed)  # noqa: S311
    classes = {str(pcp): str(rng.choice([0, 1, 2, 3, 4, 5])) for pcp in range(8)}

    def change(config: Config) -> None:
        trust_pcp(config)
        config["DOT1P_TO_TC_MAP"]["P"] = classes

    verdict = judged(changed(tmp_path / "knot", "control-knot", change))
    lossless = {"3", "4"} & {*classes.values()}
    untagged = classes["0"] in ("3", "4")
    assert verdict.acyclic is not bool(lossless)
    assert {*verdict.vcs} == lossless
    safe = judged(changed(tmp_path / "safe", "control-safe", change))
    assert safe.acyclic is (None if untagged else True)
    assert all("whether packets keep their PCP" in text for text in safe.missing)


def test_two_maps_at_one_port_are_unclear(tmp_path: Path) -> None:
    def both(config: Config) -> None:
        config["DOT1P_TO_TC_MAP"] = {"P": {"3": "3"}}
        for fields in config["PORT_QOS_MAP"].values():
            fields["dot1p_to_tc_map"] = "P"

    verdict = judged(changed(tmp_path, "control-safe", both))
    assert verdict.acyclic is None
    assert "which of dscp_to_tc_map and dot1p_to_tc_map counts at r0" in verdict.missing


def test_ports_of_both_kinds(tmp_path: Path) -> None:
    """r1 trusts the PCP, the others the DSCP."""
    verdict = judged(changed(tmp_path, "control-knot", trust_pcp, routers=("r1",)))
    assert verdict.acyclic is False
    assert {step.label for step in verdict.witnesses} == {"64*PCP+DSCP"}
    assert all(3 in (step.value // 64, step.value % 64) for step in verdict.witnesses)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"DSCP_ACTION": "3"}, "what DSCP_ACTION of ACL_RULE|T|R of r0 and 2 more does"),
        ({"SET_TC_ACTION": "3"}, "what SET_TC_ACTION of ACL_RULE|T|R"),
        ({"REDIRECT_ACTION": "Ethernet0"}, "what the redirection of ACL_RULE|T|R"),
        ({"PACKET_ACTION": "redirect:Ethernet0"}, "what the redirection of ACL_RULE|T|R"),
        ({"PACKET_ACTION": "DROP", "MIRROR_INGRESS_ACTION": "m", "DSCP": "3"}, None),
        ({"PACKET_ACTION": "FORWARD", "PRIORITY": "1"}, None),
    ],
)
def test_actions_of_acl_rules(fields: dict[str, str], named: str | None, tmp_path: Path) -> None:
    folder = changed(tmp_path, "control-safe", lambda t: t.update(ACL_RULE={"T|R": fields}))
    verdict = judged(folder)
    assert verdict.acyclic is (True if named is None else None)
    assert [text for text in verdict.missing if text.startswith(named or "?")] == verdict.missing


def _trust_an_empty_map(config: Config) -> None:
    trust_pcp(config)
    config["DOT1P_TO_TC_MAP"]["P"] = {}


PORT_CHANGES: dict[str, Callable[[Config], object]] = {
    "dscp_to_tc_map": lambda t: t["DSCP_TO_TC_MAP"].update(M={}),
    "dot1p_to_tc_map": _trust_an_empty_map,
    "tc_to_queue_map": lambda t: t["TC_TO_QUEUE_MAP"].update(M={"3": "1", "4": "1"}),
    "tc_to_pg_map": lambda t: t["TC_TO_PRIORITY_GROUP_MAP"].update(M={}),
    "pfc_to_queue_map": lambda t: (
        t.update(MAP_PFC_PRIORITY_TO_QUEUE={"X": {"3": "1", "4": "1"}}),
        [row.update(pfc_to_queue_map="X") for row in t["PORT_QOS_MAP"].values()],
    ),
    "pfc_to_pg_map": lambda t: (
        t.update(PFC_PRIORITY_TO_PRIORITY_GROUP_MAP={"X": {"3": "1", "4": "1"}}),
        [row.update(pfc_to_pg_map="X") for row in t["PORT_QOS_MAP"].values()],
    ),
    "tc_to_dscp_map": lambda t: (
        t.update(TC_TO_DSCP_MAP={"X": {str(tc): "0" for tc in range(8)}}),
        [row.update(tc_to_dscp_map="X") for row in t["PORT_QOS_MAP"].values()],
    ),
    "pfc_enable": lambda t: [row.update(pfc_enable="") for row in t["PORT_QOS_MAP"].values()],
}
"""For each field of PORT_QOS_MAP a change after which the ring cannot deadlock."""


def test_every_field_of_ports_is_interpreted_or_named(tmp_path: Path) -> None:
    assert PORT_CHANGES.keys() == qos.INTERPRETED
    for name, change in PORT_CHANGES.items():
        assert judged(changed(tmp_path / name, "control-knot", change)).acyclic is True, name
    for name in ("tc_to_dot1p_map", "dscp_to_fc_map", "mpls_tc_to_tc_map", "anything"):

        def use(config: Config, name: str = name) -> None:
            config["PORT_QOS_MAP"]["Ethernet0"][name] = "X"

        verdict = judged(changed(tmp_path / name, "control-safe", use, routers=("r1",)))
        assert verdict.missing == [f"what {name} of PORT_QOS_MAP does at r1"]


def test_fields_without_effect_are_on_the_page() -> None:
    page = PAGE.read_text()
    without = {*qos.WITHOUT_EFFECT, *tunnels.WITHOUT_EFFECT, *tables.ROUTES_WITHOUT_EFFECT}
    without |= {name for _, names in tables.FIELDS.values() for name in names}
    without -= {"NULL", ""}
    assert [name for name in sorted(without) if f"`{name}`" not in page] == []


@pytest.mark.parametrize("table", sorted(tables.FIELDS))
def test_other_fields_are_named_in_a_note(table: str, tmp_path: Path) -> None:
    def add(config: Config) -> None:
        fields = {name: "" for _, names in tables.FIELDS.values() for name in names}
        row = {**dict.fromkeys(tables.FIELDS[table][1], "1"), "novel": "1"}
        assert fields.keys() >= row.keys() - {"novel"}
        config.setdefault(table, {}).setdefault("Ethernet99", {}).update(row)

    verdict = judged(changed(tmp_path, "control-safe", add, routers=("r1",)))
    assert verdict.acyclic is True
    assert f"fields that are not interpreted: novel of {table}" in verdict.notes


TUNNEL_CHANGES: dict[str, tuple[str, str]] = {
    "tunnel_type": ("VXLAN", "what a tunnel of type VXLAN does at leaf0"),
    "dst_ip": ("10.9.0.9", ""),
    "dscp_mode": ("uniform", "the DSCP after the tunnel to leaf0"),
    "encap_tc_to_dscp_map": ("X", "TC_TO_DSCP_MAP|X of leaf0"),
    "encap_tc_color_to_dscp_map": ("X", "TC_TO_DSCP_MAP|X of leaf0"),
    "encap_tc_to_queue_map": ("X", "TC_TO_QUEUE_MAP|X of leaf0"),
    "decap_dscp_to_tc_map": ("X", "DSCP_TO_TC_MAP|X of leaf0"),
    "decap_tc_to_pg_map": ("X", "TC_TO_PRIORITY_GROUP_MAP|X of leaf0"),
}
"""For each field of TUNNEL another value at leaf0, and what is then missing."""


@pytest.mark.parametrize("field", sorted(TUNNEL_CHANGES))
def test_every_field_of_tunnels_is_interpreted(field: str, tmp_path: Path) -> None:
    assert TUNNEL_CHANGES.keys() == tunnels.INTERPRETED
    value, missing = TUNNEL_CHANGES[field]
    net = dual_tor(remapped=True)
    tunnel = net.more["leaf0"]["TUNNEL"]["MuxTunnel0"]
    tunnel[field] = value
    if field == "encap_tc_color_to_dscp_map":
        del tunnel["encap_tc_to_dscp_map"]
    if field == "dst_ip":  # the address of the peer's tunnel is then unknown
        del net.more["leaf0"]["LOOPBACK_INTERFACE"]
        missing = "the files of the peer of leaf1, 10.9.0.0"
    verdict = judged(net.write(tmp_path))
    assert verdict.acyclic is None
    assert any(text.startswith(missing) for text in verdict.missing), verdict.missing


@pytest.mark.parametrize("table", ["ROUTE_TABLE", "NEXTHOP_GROUP_TABLE"])
def test_fields_of_routes_that_are_not_interpreted_are_named(table: str, tmp_path: Path) -> None:
    key = f"{table}:10.1.0.0/24"

    def add(config: Config) -> None:
        config.setdefault(key, {"nexthop": "192.0.2.2", "ifname": "Ethernet0"})["segment"] = "s"

    verdict = judged(changed(tmp_path, "control-safe", appl=add, routers=("r0",)))
    assert verdict.missing == [f"what segment of {table} of r0 does"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t["BUFFER_PROFILE"]["lossless"].update(xoff="0"), "a headroom (xoff) of 0"),
        (lambda t: t["BUFFER_PROFILE"]["lossless"].update(xoff="9000"), "a headroom (xoff) of"),
        (lambda t: t.pop("BUFFER_PG"), "which have no lossless BUFFER_PG"),
        (lambda t: t["BUFFER_PG"].pop("Ethernet4|3-4"), "of Ethernet4, which have no lossless"),
        (
            lambda t: t["BUFFER_PG"].update({"Ethernet0|3-4": {"profile": "none"}}),
            "of Ethernet0, whose buffer profile 'none' does not exist",
        ),
        (lambda t: t["BUFFER_PROFILE"]["lossless"].pop("xoff"), "whose buffer profile has no xoff"),
    ],
)
def test_packets_that_can_be_lost(
    change: Callable[[Config], object], says: str, tmp_path: Path
) -> None:
    folder = changed(tmp_path, "control-safe", change)
    verdict = judged(folder)
    assert verdict.acyclic is True
    assert verdict.losses
    assert all(says in text and "packets can be lost" in text for text in verdict.losses)
    assert verdict.losses == verdict.problems
    assert status(folder) == 1


BUFFERS: dict[str, tuple[dict[str, str] | None, bool, bool]] = {
    "enough": ({"size": "1248", "xoff": "66560"}, False, False),
    "small": ({"size": "1248", "xoff": "15214"}, True, False),
    "zero": ({"size": "1248", "xoff": "0"}, True, False),
    "shared": ({"size": "0", "xoff": "66560"}, False, True),
    "shared-small": ({"xoff": "1"}, True, True),
    "lossy": ({"size": "1248"}, True, False),
    "absent": (None, True, False),
    "NULL": (None, False, False),
}
"""Buffer profiles of 40 m of cable at 100 Gb/s: whether packets can be lost, whether a reserve is
missing."""


@pytest.mark.seeds(60)
def test_any_buffers(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)  # noqa: S311
    chosen = {port: rng.choice([*BUFFERS, ""]) for port in ("Ethernet0", "Ethernet4")}

    def change(config: Config) -> None:
        config["BUFFER_PROFILE"] = {
            name: fields for name, (fields, _, _) in BUFFERS.items() if fields is not None
        }
        config["BUFFER_PG"] = {
            f"{port}|3-4": {"profile": name} for port, name in chosen.items() if name
        }

    folder = changed(tmp_path, "control-safe", change, routers=("r1",))
    verdict = judged(folder)
    lost = {port for port, name in chosen.items() if not name or BUFFERS[name][1]}
    unreserved = {name for name in chosen.values() if name and BUFFERS[name][2]}
    assert (status(folder) == 0) is not bool(lost or unreserved)
    if len(lost) == 1:
        assert all(lost.copy().pop() in text for text in verdict.losses)
    assert bool(verdict.losses) is bool(lost)
    assert len(verdict.missing) == len(unreserved)
    assert verdict.acyclic is (None if unreserved else True)


def test_groups_that_the_switch_computes_are_those_of_appl_db(tmp_path: Path) -> None:
    def computed(config: Config) -> None:
        config["BUFFER_PG"] = {f"Ethernet{n}|3-4": {"profile": "NULL"} for n in (0, 4)}

    def written(xoff: str) -> Callable[[Config], object]:
        rows = {f"BUFFER_PG_TABLE:Ethernet{n}:3-4": {"profile": "computed"} for n in (0, 4)}
        profile = {"size": "1248", "xoff": xoff}
        return lambda t: t.update({**rows, "BUFFER_PROFILE_TABLE:computed": profile})

    enough = changed(tmp_path / "enough", "control-safe", computed, appl=written("66560"))
    assert judged(enough).losses == []
    small = changed(tmp_path / "small", "control-safe", computed, appl=written("100"))
    assert len(judged(small).losses) == 6
    verdict = judged(changed(tmp_path / "unknown", "control-safe", computed))
    assert (verdict.acyclic, verdict.losses) == (True, [])
    assert verdict.notes[0] == (
        "r0 computes the buffers of Ethernet0 and 1 more, which are not in APPL_DB: reserves and"
        " headroom are not known"
    )


@pytest.mark.parametrize("size", ["0", "", None])
def test_a_profile_without_a_reserve(size: str | None, tmp_path: Path) -> None:
    """With a pool shared by all, acyclic dependencies are not enough."""

    def change(config: Config) -> None:
        profile = config["BUFFER_PROFILE"]["lossless"]
        profile["size"] = size
        if size is None:
            del profile["size"]
        if size == "0":
            del profile["pool"]

    verdict = judged(changed(tmp_path, "control-safe", change))
    assert verdict.acyclic is None
    assert verdict.missing[0] == (
        "a reserve (size) in BUFFER_PROFILE|lossless of r0, for Ethernet0 and 1 more: without it, a"
        " shared pool can deadlock"
    )
    assert judged(changed(tmp_path / "knot", "control-knot", change)).acyclic is False


def test_a_pool_without_reserves_closes_a_cycle(tmp_path: Path) -> None:
    """Switches wait for room that frames of others hold, who wait for room here."""

    def change(config: Config) -> None:
        config["BUFFER_PROFILE"]["lossless"]["size"] = "0"

    folder = changed(tmp_path, "control-safe", change)
    verdict = judged(folder)
    assert (verdict.acyclic, status(folder)) == (False, 1)
    assert verdict.losses == []
    pools = [name for name in verdict.cycle if name.startswith("pool in of r")]
    assert len(pools) * 2 == len(verdict.cycle)
    first = verdict.witnesses[0]
    assert first.text == f"{first.packet} waits at {verdict.cycle[0]} for room in {pools[0]}"
    assert verdict.witnesses[1].text.endswith(
        f"holds room in {pools[0]} while it waits for {verdict.cycle[2]}"
    )
    assert verdict.notes[0].startswith("no reserve (size) in BUFFER_PROFILE|lossless of r0")


def test_a_reserve_of_part_of_a_packet_settles_nothing(tmp_path: Path) -> None:
    def change(config: Config) -> None:
        config["BUFFER_PROFILE"]["lossless"]["size"] = "1000"

    verdict = judged(changed(tmp_path, "control-safe", change))
    assert verdict.acyclic is None
    assert any(name.startswith("pool ") for name in verdict.cycle)
    assert verdict.missing == [
        "a reserve (size) of 1024 bytes, the longest lossless packet, in the buffer profile of"
        " r0:Ethernet0"
    ]


def test_one_switch_without_reserves_waits_for_nobody_who_waits_for_it(tmp_path: Path) -> None:
    def change(config: Config) -> None:
        config["BUFFER_PROFILE"]["lossless"]["size"] = "0"

    folder = changed(tmp_path, "control-safe", change, routers=("r1",))
    verdict = judged(folder)
    assert (verdict.acyclic, verdict.cycle, status(folder)) == (True, [], 0)


def test_a_reserve_is_assumed_only_where_none_was_read(tmp_path: Path) -> None:
    read = judged(changed(tmp_path / "read", "control-safe")).assumes
    assert read[0] == "nobody else can take what tables of switches reserve for a priority"

    def without(config: Config) -> None:
        del config["BUFFER_PG"], config["BUFFER_PROFILE"]

    for name, routers in (("all", ("r0", "r1", "r2")), ("one", ("r1",))):
        verdict = judged(changed(tmp_path / name, "control-safe", without, routers=routers))
        assert verdict.acyclic is True
        assert verdict.assumes[0].startswith("each lossless priority of each input has room for")
        assert verdict.assumes[1:] == read[1:]


@pytest.mark.parametrize(
    ("action", "does"),
    [
        ("drop", "which ends a deadlock by dropping"),
        ("alert", "which only reports a deadlock and does not end it"),
        ("forward", "which sends what is paused all the same"),
        ("strange", "which is not known here"),
    ],
)
def test_watchdogs(action: str, does: str, tmp_path: Path) -> None:
    verdict = judged(changed(tmp_path, "control-knot", watch(action)))
    assert verdict.acyclic is False
    (note,) = verdict.notes
    assert f"3 switches have a PFC watchdog with action {action}" in note
    assert does in note


NOT_READ = "tables that are not interpreted, since they neither forward, remark, buffer nor pause: "


@pytest.mark.parametrize("table", ["AUTO_TECHSUPPORT_FEATURE", "SNMP_COMMUNITY", "VENDOR_THING"])
def test_tables_that_cannot_matter_are_a_note(table: str, tmp_path: Path) -> None:
    folder = changed(tmp_path, "control-safe", lambda t: t.update({table: {"a": {"b": "c"}}}))
    verdict = judged(folder)
    assert (verdict.acyclic, verdict.notes) == (True, [f"{NOT_READ}{table}"])
    assert status(folder) == 0


def test_all_tables_of_the_yang_models(tmp_path: Path) -> None:
    """Each is read, a note, or can move, mark or pause a packet; the verdict names it once."""
    names = (DATA.parent / "sonic_yang_tables.txt").read_text().split()
    empty: Config = {name: {"x": {}} for name in names}
    whole = changed(tmp_path, "control-safe", lambda t: t.update({**empty, **t}))
    verdict = judged(whole)
    mattering = set().union(*tables.MATTERING.values())
    assert verdict.acyclic is None
    for name in names:
        named = [text for text in verdict.missing if f"table {name} of" in text]
        assert len(named) == (name in mattering), name
    (note,) = [text for text in verdict.notes if text.startswith(NOT_READ)]
    others = {*names} - tables.READ - mattering
    assert int(note.rpartition(" and ")[2].split()[0]) + 20 == len(others) > 100
    assert len(names) == 218


def test_a_storm_is_a_note(tmp_path: Path) -> None:
    storm = {"PFC_WD_TABLE_INSTORM:Ethernet0": {"3": "storm"}}
    verdict = judged(changed(tmp_path, "control-safe", appl=lambda t: t.update(storm)))
    assert verdict.acyclic is True
    assert "r0: the PFC watchdog sees a storm (PFC_WD_TABLE_INSTORM)" in verdict.notes


@pytest.mark.parametrize("table", sorted(set().union(*tables.MATTERING.values())))
def test_tables_that_matter_make_the_verdict_unknown_once(table: str, tmp_path: Path) -> None:
    """Also where a switch with several VRFs is shown as several."""

    def change(config: Config) -> None:
        config[table] = {"a": {"b": "c"}}
        config["INTERFACE"] = {"Loopback9": {"vrf_name": "Vrf1"}}

    verdict = judged(changed(tmp_path, "control-safe", change, routers=("r1",)))
    assert verdict.acyclic is None
    assert [text for text in verdict.missing if table in text] == [
        f"what the table {table} of r1 does: it {_kind(table)}"
    ]


def test_fields_of_ports_that_are_not_interpreted_are_named_once(tmp_path: Path) -> None:
    def change(config: Config) -> None:
        config["PORT_QOS_MAP"]["global"] = {"dscp_to_fc_map": "X", "tc_to_dscp_map": "Y"}
        config["INTERFACE"] = {f"Loopback{n}": {"vrf_name": f"Vrf{n}"} for n in (1, 2)}

    verdict = judged(changed(tmp_path, "control-safe", change, routers=("r1",)))
    assert sorted(verdict.missing) == [
        "TC_TO_DSCP_MAP|Y of r1",
        "what dscp_to_fc_map of PORT_QOS_MAP does at r1",
    ]


def _kind(table: str) -> str:
    return next(what for what, names in tables.MATTERING.items() if table in names)
