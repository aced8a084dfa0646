"""Changes of configurations before they are made: JSON patches, fragments, and verdicts."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import knotless as kn
from knotless.base.errors import KnotlessError, RuleError
from knotless.cli.main import main
from knotless.importers.sonic.config_change import changed_config, undecided
from knotless.importers.sonic.json_patch import merged, patched, same
from tests.support import REPOSITORY

FABRICS = REPOSITORY / "tests" / "data" / "fabrics"
ROUTERS = ("r0", "r1", "r2")


def op(name: str, path: str, *value: Any, **more: Any) -> dict[str, Any]:
    return {"op": name, "path": path, **({"value": value[0]} if value else {}), **more}


@pytest.mark.parametrize(
    ("value", "patch", "after"),
    [  # RFC 6902, Appendix A
        ({"foo": "bar"}, [op("add", "/baz", "qux")], {"baz": "qux", "foo": "bar"}),
        ({"foo": ["bar", "baz"]}, [op("add", "/foo/1", "qux")], {"foo": ["bar", "qux", "baz"]}),
        ({"baz": "qux", "foo": "bar"}, [op("remove", "/baz")], {"foo": "bar"}),
        ({"foo": ["bar", "qux", "baz"]}, [op("remove", "/foo/1")], {"foo": ["bar", "baz"]}),
        ({"baz": "qux"}, [op("replace", "/baz", "boo")], {"baz": "boo"}),
        (
            {"foo": {"bar": 1, "waldo": "fred"}, "qux": {"corge": 2}},
            [op("move", "/qux/thud", **{"from": "/foo/waldo"})],
            {"foo": {"bar": 1}, "qux": {"corge": 2, "thud": "fred"}},
        ),
        (
            {"foo": ["all", "grass", "cows", "eat"]},
            [op("move", "/foo/3", **{"from": "/foo/1"})],
            {"foo": ["all", "cows", "eat", "grass"]},
        ),
        (
            {"baz": "qux", "foo": ["a", 2, "c"]},
            [op("test", "/baz", "qux"), op("test", "/foo/1", 2)],
            {"baz": "qux", "foo": ["a", 2, "c"]},
        ),
        ({"foo": "bar"}, [op("add", "/child", {"g": {}})], {"foo": "bar", "child": {"g": {}}}),
        ({"/": 9, "~1": 10}, [op("test", "/~01", 10)], {"/": 9, "~1": 10}),
        ({"foo": ["bar"]}, [op("add", "/foo/-", ["abc"])], {"foo": ["bar", ["abc"]]}),
        ({"a": {"b": 1}}, [op("copy", "/c", **{"from": "/a"})], {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a": 1}, [op("add", "", {"b": 2})], {"b": 2}),
        ({"a": 1}, [op("replace", "/a", None)], {"a": None}),
        ({"a": None}, [op("test", "/a", None)], {"a": None}),
        ({"": 1}, [op("remove", "/")], {}),
        ({"a": [1, 2]}, [op("move", "/a/0", **{"from": "/a/0"})], {"a": [1, 2]}),
    ],
)
def test_patches_do_what_the_standard_says(value: Any, patch: Any, after: Any) -> None:
    intact = copy.deepcopy(value)
    assert same(patched(value, patch), after)
    assert value == intact


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        ({"op": "add"}, "not a JSON patch"),
        ([1], "operation 1: it is no object"),
        ([op("put", "/a", 1)], "'op' is not one of add, "),
        ([op("add", "/b")], "it has no 'value'"),
        ([op("move", "/b")], "it has no 'from'"),
        ([op("add", "b", 1)], "no JSON pointer"),
        ([op("add", "/~2", 1)], "no JSON pointer"),
        ([op("add", "/x/y", 1)], "there is no /x"),
        ([op("add", "/l/3", 1)], "there is no /l/3"),
        ([op("add", "/l/01", 1)], "there is no /l/01"),
        ([op("replace", "/l/-", 1)], "there is no /l/-"),
        ([op("remove", "/l/2")], "there is no /l/2"),
        ([op("remove", "/b")], "there is no /b"),
        ([op("replace", "/b", 1)], "there is no /b"),
        ([op("add", "/t/x", 1)], "/t is no object and no list"),
        ([op("test", "/n", True)], "the value there is another one"),
        ([op("test", "/l", [1, 2.5])], "the value there is another one"),
        ([op("move", "/o/in/x", **{"from": "/o"})], "cannot move into itself"),
        ([op("remove", "/n"), op("test", "/n", 1)], "operation 2 (test /n): there is no /n"),
    ],
)
def test_patches_that_do_not_apply_say_where(patch: Any, reason: str) -> None:
    value = {"l": [1, 2], "n": 1, "t": "text", "o": {"in": {}}}
    intact = copy.deepcopy(value)
    with pytest.raises(RuleError) as raised:
        patched(value, patch)
    assert reason in str(raised.value)
    assert value == intact


def test_fragments_delete_nothing() -> None:
    config = {"PORT": {"a": {"mtu": "1", "speed": "2"}, "b": {}}, "VLAN": {"v": {"l": ["x"]}}}
    fragment = {"PORT": {"a": {"mtu": "9"}}, "VLAN": {"v": {"l": ["y"]}}}
    expected = {"PORT": {"a": {"mtu": "9", "speed": "2"}, "b": {}}, "VLAN": {"v": {"l": ["y"]}}}
    assert merged(config, fragment) == expected


REDIS = {
    "PORT|Ethernet0": {"type": "hash", "value": {"mtu": "9100"}},
    "VLAN|Vlan10": {"type": "hash", "value": {"members@": "Ethernet0,Ethernet4"}},
    "INTERFACE|Ethernet0": {"type": "hash", "value": {"NULL": "NULL"}},
}
TABLES = {
    "PORT": {"Ethernet0": {"mtu": "9100"}},
    "VLAN": {"Vlan10": {"members": ["Ethernet0", "Ethernet4"]}},
    "INTERFACE": {"Ethernet0": {}},
}


@pytest.mark.parametrize("form", [REDIS, TABLES, {key: TABLES[key] for key in TABLES}])
def test_a_configuration_of_any_form_is_patched_as_tables(form: Any) -> None:
    change = [op("add", "/VLAN/Vlan10/members/-", "Ethernet8"), op("test", "/PORT", TABLES["PORT"])]
    data, tables = changed_config(json.dumps(form).encode(), json.dumps(change).encode())
    assert json.loads(data)["VLAN"]["Vlan10"]["members"][-1] == "Ethernet8"
    assert tables == {"VLAN"}


@pytest.mark.parametrize(
    ("config", "path"),
    [
        (TABLES, "/localhost/PORT/Ethernet0/mtu"),
        (TABLES, "/PORT/Ethernet0/mtu"),
        ({"localhost": TABLES}, "/localhost/PORT/Ethernet0/mtu"),
        ({"localhost": {}, "asic0": TABLES}, "/asic0/PORT/Ethernet0/mtu"),
    ],
)
def test_paths_may_begin_with_a_namespace(config: Any, path: str) -> None:
    change = json.dumps([op("replace", path, "1500")]).encode()
    data, tables = changed_config(json.dumps(config).encode(), change)
    assert b"1500" in data
    assert tables == {"PORT"}


@pytest.mark.parametrize(
    ("table", "is_undecided"),
    [
        *[(name, False) for name in ("BUFFER_PG", "PORT_QOS_MAP", "PFC_WD", "SYSLOG_SERVER")],
        *[(name, True) for name in ("BGP_NEIGHBOR", "INTERFACE", "VLAN", "VLAN_MEMBER", "PORT")],
        *[(name, True) for name in ("PORTCHANNEL_MEMBER", "STATIC_ROUTE", "DEVICE_METADATA")],
        *[(name, True) for name in ("ROUTE_MAP", "ACL_RULE", "A_TABLE_OF_NEXT_YEAR", "TUNNEL")],
    ],
)
def test_what_is_not_known_to_leave_routes_alone_decides_them(
    table: str, is_undecided: bool
) -> None:
    assert bool(undecided([table])) == is_undecided


PFC = "/PORT_QOS_MAP/Ethernet{}/pfc_enable"
OFF = [op("replace", PFC.format(port), "") for port in (0, 4, 8)]
ON = [op("replace", PFC.format(port), "3,4") for port in (0, 4, 8)]
LOSSY = {"DSCP_TO_TC_MAP": {"M": {"3": "0", "4": "0"}}}


@pytest.fixture(scope="module")
def fabrics(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return folders of three SONiC switches: one with a cycle, one without, one without PFC."""
    folder = tmp_path_factory.mktemp("fabrics")
    knot = kn.snapshot(FABRICS / "control-knot")
    without = knot.with_config_changes({name: json.dumps(OFF) for name in ROUTERS})
    for file in without.files:
        path = folder / "lossy" / file.source.path.relative_to(FABRICS / "control-knot")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.source.data)
    return {
        "knot": FABRICS / "control-knot",
        "safe": FABRICS / "control-safe",
        "lossy": folder / "lossy",
    }


def check(fabric: Path, folder: Path, patches: dict[str, Any], *options: str) -> Result:
    words = ["check", str(fabric), *options]
    for switch, patch in patches.items():
        file = folder / f"{switch}.json"
        file.write_text(json.dumps(patch))
        words += ["--patch", f"{switch}={file}"]
    return CliRunner(mix_stderr=False).invoke(main, words, prog_name="knotless")


DOWN = {"PORT": {"Ethernet0": {"admin_status": "down"}}}
RENAMED = {"DEVICE_METADATA": {"localhost": {"x": "y"}}}
BUFFERS = {"BUFFER_PROFILE": {"new": {"size": "0", "xoff": "1000", "dynamic_th": "0"}}}


@pytest.mark.parametrize(
    ("fabric", "patches", "before", "after", "ok", "table"),
    [
        # No routes.
        ("safe", {"r0": [op("add", "/SYSLOG_SERVER", {"10.0.0.9": {}})]}, True, True, True, ""),
        ("safe", {"r0": BUFFERS}, True, True, True, ""),
        ("safe", dict.fromkeys(ROUTERS, OFF), True, True, True, ""),
        ("safe", {"r0": OFF[:1]}, True, True, False, ""),
        ("knot", dict.fromkeys(ROUTERS, OFF), False, True, True, ""),
        ("knot", dict.fromkeys(ROUTERS, LOSSY), False, True, True, ""),
        # From safe to unsafe, or unknown.
        ("lossy", dict.fromkeys(ROUTERS, ON), True, False, False, ""),
        ("safe", {"r1": [op("add", "/BGP_NEIGHBOR", {})]}, True, None, False, "BGP_NEIGHBOR"),
        ("safe", {"r1": [op("remove", "/VLAN_INTERFACE")]}, True, None, False, "VLAN_INTERFACE"),
        ("safe", {"r1": DOWN}, True, None, False, "PORT"),
        ("safe", {"r2": {"STATIC_ROUTE": {"10.9.0.0/24": {}}}}, True, None, False, "STATIC_ROUTE"),
        ("safe", {"r0": OFF, "r2": RENAMED}, True, None, False, "DEVICE_METADATA"),
    ],
)
def test_verdicts_before_and_after_a_patch(
    fabrics: dict[str, Path],
    tmp_path: Path,
    fabric: str,
    patches: dict[str, Any],
    before: bool | None,
    after: bool | None,
    ok: bool,
    table: str,
) -> None:
    done = check(fabrics[fabric], tmp_path, patches, "--json")
    values = json.loads(done.stdout)
    assert (values["before"]["safe"], values["safe"]) == (before, after), values["missing"]
    assert done.exit_code == (0 if ok else 1)
    text = check(fabrics[fabric], tmp_path, patches).stdout
    assert "only before and after are judged" in text
    reason = f"after the change of {table} (--routes bgp computes them"
    assert (reason in text) == (after is None)


@pytest.mark.parametrize(
    ("patches", "line"),
    [
        (
            {"r0": [op("remove", "/PORT/Ethernet99")]},
            "operation 1 (remove /PORT/Ethernet99): there",
        ),
        ({"r0": [op("add", "/asic0/PORT/x", {})]}, "there is no /asic0"),
        ({"r9": []}, "there is no configuration of 'r9'; known are r0, r1, r2"),
        ({"r0": 7}, "neither a JSON patch (a list) nor a fragment"),
    ],
)
def test_patches_that_do_not_apply_are_errors(
    fabrics: dict[str, Path], tmp_path: Path, patches: dict[str, Any], line: str
) -> None:
    done = check(fabrics["safe"], tmp_path, patches)
    assert (done.exit_code, done.stdout) == (2, "")
    assert line in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_patch_of_nothing_changes_nothing(fabrics: dict[str, Path]) -> None:
    before = kn.snapshot(fabrics["knot"])
    after = before.with_config_changes(dict.fromkeys(ROUTERS, "[]"))
    assert after.verdict().source.as_json() == before.verdict().source.as_json()
    with pytest.raises(KnotlessError, match="r0: not JSON"):
        before.with_config_changes({"r0": "["})


def test_options_that_a_patch_is_not_given_with(fabrics: dict[str, Path], tmp_path: Path) -> None:
    for options in (("--failures", "1"), ("--remedies",), ("--pair", "a", "b")):
        done = check(fabrics["safe"], tmp_path, {"r0": []}, *options)
        assert done.exit_code == 2
        assert "--patch compares verdicts" in done.stderr
    done = CliRunner(mix_stderr=False).invoke(main, ["check", "x", "--patch", "r0"])
    assert "is not SWITCH=FILE" in done.stderr
