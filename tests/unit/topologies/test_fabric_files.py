"""Fabric JSON: written fabrics are read back equal, and errors are named."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knotless.topologies import FabricError, load
from knotless.topologies.fabric import FamilyMember, known_ips, with_lines
from knotless.topologies.formats.files import from_json, from_text, to_json, to_text

Obj = dict[str, Any]


@pytest.mark.parametrize("spec", ["torus,3,3,hosts=2,rate=7", "mtree,3,2", "flat,3"])
def test_round_trip(spec: str, tmp_path: Path) -> None:
    fabric = load(spec)
    file = tmp_path / "fabric.json"
    file.write_text(to_text(fabric))
    assert load(str(file)) == fabric


def test_faults_of_lines_are_kept_and_left_out_where_there_are_none() -> None:
    ring = load("ring,3")
    assert not any("loss" in line for line in [*to_json(ring)["links"], *to_json(ring)["hosts"]])  # type: ignore[misc]
    lossy = replace(
        ring,
        hosts=(replace(ring.hosts[0], loss=0.5, jitter_us=3.0), *ring.hosts[1:]),
        links=(replace(ring.links[0], loss=0.01), *ring.links[1:]),
    )
    assert from_text(to_text(lossy)) == lossy
    assert to_json(lossy)["links"][0]["loss"] == 0.01  # type: ignore[index]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("loss", 1.5, "loss must be a share of frames from 0 to 1, such as 0.01, not 1.5"),
        ("loss", -0.1, "loss must be a share of frames from 0 to 1, such as 0.01, not -0.1"),
        ("loss", "1%", "loss must be a number, not '1%'"),
        ("jitter_us", -1, "jitter_us must be 0 to 10000000, not -1"),
        ("los", 0.1, "unknown key 'los'"),
    ],
)
def test_impossible_faults_are_named(key: str, value: object, message: str) -> None:
    for part in ("links", "hosts"):
        obj: Obj = to_json(load("ring,3"))
        obj[part][0][key] = value
        with pytest.raises(FabricError) as refused:
            from_json(obj)
        assert message in str(refused.value)


def test_invented_addresses_stay_invented(tmp_path: Path) -> None:
    ring = load("ring,4")
    assert not any(host.ip_invented for host in ring.hosts)
    assert not any("ip_invented" in host for host in to_json(ring)["hosts"])  # type: ignore[attr-defined]
    graph = tmp_path / "fabric.graphml"
    graph.write_text(
        '<graphml><key id="k" for="node" attr.name="kind"/><key id="i" for="node" attr.name="ip"/>'
        '<graph edgedefault="undirected"><node id="s1"/>'
        '<node id="a"><data key="k">host</data><data key="i">10.9.9.9</data></node>'
        '<node id="b"><data key="k">host</data></node>'
        '<edge source="a" target="s1"/><edge source="b" target="s1"/></graph></graphml>'
    )
    fabric = load(str(graph))
    assert known_ips(fabric) == [0x0A090909, None]
    again = from_text(to_text(fabric))
    assert again == fabric
    written = replace(fabric.hosts[1], ip_invented=False)
    assert replace(again, hosts=(again.hosts[0], written)) != fabric
    obj: Obj = to_json(fabric)
    obj["hosts"][1]["ip_invented"] = "yes"
    with pytest.raises(FabricError, match=r"hosts\[1\]: ip_invented must be true or false"):
        from_json(obj)


def test_a_fabric_keeps_its_family_until_its_parts_change() -> None:
    fabric = load("lsft,2,sides=2,hosts=1,rate=7")
    family = FamilyMember("lsft", (2,), 1, {"sides": 2})
    assert fabric.family == family
    assert with_lines(fabric, 40.0, None).family == family
    assert pickle.loads(pickle.dumps(fabric)).family == family  # noqa: S301 - our own
    assert from_json(to_json(fabric)).family == family
    without_a_link = replace(fabric, links=fabric.links[1:])
    assert without_a_link.family is None
    assert from_json(to_json(without_a_link)).family is None
    assert from_json({**to_json(fabric), "name": "my fabric"}).family is None


def test_rates_and_grid_may_be_left_out() -> None:
    obj: Obj = to_json(load("mesh,2,2"))
    del obj["grid"]
    for part in (*obj["hosts"], *obj["links"]):
        del part["rate_mbps"], part["delay_us"]
    fabric = from_json(obj)
    assert fabric.grid is None
    assert {link.rate_mbps for link in fabric.links} == {10.0}


def _set(*path: Any) -> Callable[[Obj], None]:
    *keys, last, value = path

    def change(obj: Obj) -> None:
        part: Any = obj
        for key in keys:
            part = part[key]
        part[last] = value

    return change


def _drop(*path: Any) -> Callable[[Obj], None]:
    *keys, last = path

    def change(obj: Obj) -> None:
        part: Any = obj
        for key in keys:
            part = part[key]
        del part[last]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("links", 0, "b", "s9"), "there is no switch 's9'"),
        (_set("hosts", 0, "switch", "s9"), "host h1: there is no switch 's9'"),
        (_set("links", 0, "b", "s1"), "connects a switch to itself"),
        (_set("hosts", 1, "port", 2), "already used by host h2"),
        (_set("links", 0, "a_port", 3), "port 3 of s1 is already used"),
        (_set("links", 0, "a_port", 0), "a port must be 1 to 65279, not 0"),
        (_set("hosts", 0, "port", 70000), "a port must be 1 to 65279, not 70000"),
        (_set("hosts", 1, "mac", "02:00:00:00:01:01"), "already used by h1"),
        (_set("hosts", 0, "mac", "02:00:00:00:01"), "is not a MAC"),
        (_set("hosts", 0, "mac", "03:00:00:00:01:01"), "must not be zero or a multicast address"),
        (_set("hosts", 0, "mac", "00:00:00:00:00:00"), "must not be zero or a multicast address"),
        (_set("hosts", 1, "ip", "10.0.1.1"), "already used by h1"),
        (_set("hosts", 0, "ip", "10.0.1"), "is not an IPv4 address"),
        *(
            (_set("hosts", 0, "ip", ip), f"host h1: {ip} is not the address of a host")
            for ip in (
                *("224.0.0.1", "239.255.255.250", "127.0.0.1"),
                *("255.255.255.255", "10.255.255.255", "192.255.255.255"),
            )
        ),
        (_set("switches", 1, "dpid", 1), "already used by s1"),
        (_set("switches", 1, "dpid", 0), "dpid must be 1 to"),
        (_set("switches", 1, "dpid", 2**64), "dpid must be 1 to"),
        (_set("switches", 1, "dpid", True), "must be a whole number"),
        (_set("switches", 1, "name", "s1"), "used twice"),
        (_set("hosts", 0, "name", "s1"), "used twice"),
        (_set("switches", 0, "name", "../s1"), "must be 1 to 63 letters"),
        (_set("links", 0, "rate_mbps", 0), "rate_mbps must be above 0"),
        (_set("links", 0, "rate_mbps", -1), "rate_mbps must be above 0"),
        (_set("links", 0, "rate_mbps", float("nan")), "rate_mbps must be above 0"),
        (_set("links", 0, "delay_us", float("inf")), "delay_us must be 0 to"),
        (_set("links", 0, "rate_mbps", "10"), "must be a number"),
        (_set("links", 0, "rate_mbps", 10**400), "far too large"),
        (_set("hosts", []), "at least one host"),
        (_set("switches", []), "at least one switch"),
        (_set("hosts", 5), "must be a list"),
        (_set("hosts", [5]), "hosts[0]: must be an object"),
        (_set("links", 0, "rate_mpbs", 5), "did you mean 'rate_mbps'?"),
        (_drop("hosts", 0, "mac"), "hosts[0]: mac is missing"),
        (_drop("links"), "links is missing"),
        (_set("links", []), "cannot be reached from s1"),
        (_set("grid", "dims", [2, 3]), "grid 2x3 does not match"),
        (_set("grid", "dims", [2, "a"]), "list of whole numbers"),
        (_set("grid", "wrap", 1), "must be true or false"),
        (_set("name", ""), "1 to 200 printable"),
    ],
)
def test_an_inconsistent_fabric_is_refused(change: Callable[[Obj], None], message: str) -> None:
    obj = copy.deepcopy(to_json(load("mesh,2,2")))
    change(obj)
    with pytest.raises(FabricError) as caught:
        from_json(obj)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "must be an object, not []"),
        ('{"name": NaN}', "NaN is not a number"),
        ('{"name": "a", "name": "b"}', "occurs twice"),
        ("9" * 10_000, "not JSON"),
    ],
)
def test_invalid_fabric_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(FabricError) as caught:
        from_text(text)
    assert message in str(caught.value)


def test_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FabricError, match="No such file"):
        load(str(tmp_path / "none.json"))
    (tmp_path / "bad.json").write_bytes(b"\xff")
    with pytest.raises(FabricError, match="not UTF-8"):
        load(str(tmp_path / "bad.json"))
    (tmp_path / "odd.json").write_text(json.dumps({"name": "x"}))
    with pytest.raises(FabricError, match="odd.json: fabric: switches is missing"):
        load(str(tmp_path / "odd.json"))
