"""Findings name the file and the line of what they rest on, in each form that is read."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import knotless as kn
from knotless.cli.main import main
from knotless.importers.causes import Cause, Place, places_of
from tests.support.readable_fabrics import WRITERS
from tests.support.router_nets import leaf_spine


def the_place(text: str, *ways: tuple[str, ...]) -> Place:
    cause = Cause(("file",), ways)
    return places_of({"finding": [cause]}, {"file": text.encode()}.get)["finding"][0]


def at(value: Any, pointer: str) -> Any:
    """Return what a JSON pointer leads to (RFC 6901)."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


@pytest.mark.parametrize("name", WRITERS)
def test_each_step_of_a_cycle_has_the_line_that_sends_the_packet_on(
    name: str, tmp_path: Path
) -> None:
    snapshot = kn.snapshot(WRITERS[name](tmp_path / "fabric"))
    verdict = snapshot.verdict().source
    contents = {str(file.source.path): file.source.data for file in snapshot.files}
    places = places_of(verdict.causes, contents.get)
    assert verdict.witnesses
    for step in verdict.witnesses:
        assert places[step.text], step.text
        for place in places[step.text]:
            assert place.line is not None, step.text
            text = contents[place.file].decode()
            line = text.split("\n")[place.line - 1]
            if place.pointer:
                assert place.column is not None
                at(json.loads(text), place.pointer)
                assert line[place.column - 1] == '"'
            else:
                assert line.strip()


@pytest.mark.parametrize("indent", [None, 1])
def test_the_line_is_that_of_the_route(indent: int | None, tmp_path: Path) -> None:
    net = leaf_spine(2, 2)
    net.write(tmp_path)
    for file in tmp_path.rglob("*.json"):
        file.write_text(json.dumps(json.loads(file.read_text()), indent=indent))
    before = kn.snapshot(tmp_path)
    assert before.verdict()["undelivered"] == 0
    routes = json.loads(before.text("leaf0/appl_db.json"))
    key = next(key for key in routes if "," in routes[key].get("ifname", ""))
    routes[key] = {"blackhole": "true"}
    after = before.with_changes({"leaf0/appl_db.json": json.dumps(routes, indent=indent)})
    lost = [row for row in after.findings().rows if row[1] == "not-delivered"]
    assert lost
    for *_, place in lost:
        if indent is None:
            assert place == f"{tmp_path}/leaf0/appl_db.json#/{key.replace('/', '~1')}"
        else:
            line = int(place.removeprefix(f"{tmp_path}/leaf0/appl_db.json:"))
            text = after.text("leaf0/appl_db.json").split("\n")[line - 1]
            assert text.strip().startswith(json.dumps(key))


def test_pointers_of_random_values_lead_to_their_keys() -> None:
    rng = random.Random(1)  # noqa: S311
    names = ["PORT", "a/b", "c~d", 'quo"te', "back\\slash", "\u00e9", "1", "x|y"]

    def value(depth: int) -> Any:
        match rng.randrange(4 if depth else 2):
            case 0:
                return rng.choice([None, True, 17, 1.5, ""])
            case 1:
                return f"text {rng.randrange(100)}"
            case 2:
                return [value(depth - 1) for _ in range(rng.randrange(4))]
            case _:
                return {name: value(depth - 1) for name in rng.sample(names, rng.randrange(5))}

    for indent in (None, 2):
        for _ in range(200):
            tables = {"first": value(3), "PORTS": {"the key": value(2)}, "last": value(2)}
            text = json.dumps(tables, indent=indent)
            place = the_place(text, ("PORTS", "the key"))
            assert place.pointer == "/PORTS/the key"
            assert place.line is not None
            assert place.column is not None
            line = text.split("\n")[place.line - 1]
            assert line[place.column - 1 :].startswith('"the key"')


@pytest.mark.parametrize(
    ("text", "ways", "line"),
    [
        ('{"PORT|Ethernet0": {},\n"PORT|Ethernet4": {}}', [("PORT", "Ethernet4")], 2),
        ('{"PORT_QOS_MAP": {\n"Ethernet0,Ethernet4": {}}}', [("PORT_QOS_MAP", "Ethernet4")], 2),
        ('{"A": {"x": 1},\n"B": {"x": 1}}', [("B", "x")], 2),
        ('{"A": {"x": 1},\n"B": {"y": 1}}', [("B", "x")], 2),  # the table alone
        ('{"A": {"B": {}},\n"x": 1}', [("B", "x"), ("A", "B")], 1),
        ('[{"dst": "10.0.0.0/8"},\n{"dst": "10.0.0.1"}]', [("10.0.0.1/32",)], 2),
        ("router bgp 1\n neighbor 10.0.0.11\n neighbor 10.0.0.1\n", [("10.0.0.1",)], 3),
        ("Switch a\n 0x1 : 2\nSwitch b\n 0x1 : 3\n", [("b", "0x1")], 4),
        ("Switch a\n 0x2 : 2\nSwitch b\n 0x1 : 3\n", [("a", "0x1")], 1),
        ("route 110.0.0.0/24\nroute 10.0.0.0/24\n", [("10.0.0.0/24",)], 2),
    ],
)
def test_keys_lead_to_the_line(text: str, ways: list[tuple[str, ...]], line: int) -> None:
    assert the_place(text, *ways).line == line


@pytest.mark.parametrize("text", ["", "{", '{"a": [}]}', "[[", '{"PORT', "}{", '"\\'])
def test_damaged_files_have_no_place_or_one_inside(text: str) -> None:
    place = the_place(text, ("PORT", "Ethernet0"))
    assert place.line is None or place.line <= text.count("\n") + 1


def test_a_file_that_is_gone_is_named_without_a_line() -> None:
    causes = {"finding": [Cause(("gone",), (("PORT",),))]}
    assert places_of(causes, lambda _: None) == {"finding": [Place("gone")]}


def test_text_json_and_sarif_name_the_same_place(tmp_path: Path) -> None:
    folder = WRITERS["text"](tmp_path / "fabric")
    sarif = tmp_path / "f.sarif"

    def answer(*words: str) -> str:
        return CliRunner().invoke(main, ["check", str(folder), *words]).stdout

    assert "while it waits for spine0:Ethernet4/3 (spine0/routes.txt:5)" in answer()
    causes = json.loads(answer("--json", "--sarif", str(sarif)))["causes"]
    (place,) = next(places for text, places in causes.items() if "waits for spine0" in text)
    assert place == {"file": f"{folder}/spine0/routes.txt", "line": 5, "column": 1}
    found = json.loads(sarif.read_text())["runs"][0]["results"][0]
    related = found["relatedLocations"]
    at_spine = next(one for one in related if "waits for spine0" in one["message"]["text"])
    assert at_spine["physicalLocation"] == {
        "artifactLocation": {"uri": f"{folder}/spine0/routes.txt"},
        "region": {"startLine": 5, "startColumn": 1},
    }
