"""``kn.snapshot``: what the command says of a fabric of others, what-if, and differences."""

from __future__ import annotations

import json
import random
import tarfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import knotless as kn
from knotless.base.errors import KnotlessError
from knotless.cli.main import main
from knotless.importers.changed_lines import ChangedLines, changed_lines, with_lines
from knotless.snapshots import Snapshot
from tests.support import REPOSITORY
from tests.support.fabric_edits import EDITS, Folder, nets, write_files

FABRICS = REPOSITORY / "tests" / "data" / "fabrics"


def printed(*words: str | Path) -> dict[str, Any]:
    done = CliRunner(mix_stderr=False).invoke(main, ["check", *map(str, words), "--json"])
    values: dict[str, Any] = json.loads(done.stdout)
    return values


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def changes(before: Path, after: Path) -> dict[str, bytes | None]:
    old, new = contents(before), contents(after)
    gone = dict.fromkeys(old.keys() - new.keys())
    return {**gone, **{name: data for name, data in new.items() if old.get(name) != data}}


def spread_over_lines(folder: Path) -> None:
    for file in folder.rglob("*.json"):
        file.write_text(json.dumps(json.loads(file.read_text()), indent=1))


def answer(snapshot: Snapshot) -> object:
    """Return the verdict, or why there is none."""
    try:
        return snapshot.verdict().source.as_json()
    except KnotlessError as error:
        return str(error)


@pytest.mark.parametrize("name", ["clos-frr", "ovs-normal", "two-pools", "adaptive-ring"])
def test_answers_are_those_of_the_command(name: str, tmp_path: Path) -> None:
    snapshot = kn.snapshot(FABRICS / name)
    verdict, said = snapshot.verdict(), printed(FABRICS / name)
    assert dict(verdict).items() <= said.items()
    assert verdict.safe == said["safe"]
    CliRunner().invoke(main, ["check", str(FABRICS / name), "--sarif", str(tmp_path / "f")])
    (run,) = json.loads((tmp_path / "f").read_text())["runs"]
    texts = [result["message"]["text"] for result in run["results"]]
    assert [one.text for one in snapshot.findings().source] == texts
    hosts = [host.name for host in snapshot.imported.fabric.hosts]
    pair = printed(FABRICS / name, "--pair", hosts[0], hosts[1])
    followed = snapshot.pair(hosts[0], hosts[1])
    assert followed.source.as_json() == pair
    assert len(followed.rows) == len(pair["links"])
    failures = printed(FABRICS / name, "--failures", "1")
    assert snapshot.failures().source.acyclic == failures["failures_acyclic"]
    assert snapshot.draw().svg.startswith("<svg")


def test_channels_and_routes_are_rows() -> None:
    snapshot = kn.snapshot(FABRICS / "clos-frr")
    channels = kn.frame(snapshot)
    assert set(channels.columns) == {"channel", "switch", "to", "pairs", "on_cycle"}
    assert channels.pairs.max() == snapshot.verdict()["max_channel_load"]
    routes = snapshot.routes("leaf1")
    assert {row["switch"] for row in routes} == {"leaf1"}
    assert {"switch": "leaf1", "destination": "leaf1-Vlan1000", "ports": ("attached",)} in routes
    assert len(snapshot.routes()) > len(routes)
    assert kn.frame(routes).destination.is_unique
    rules = kn.snapshot(FABRICS / "ovs-normal").routes()
    assert all("actions=" in row["rule"] for row in rules)


@pytest.mark.seeds(200, gate=20)
def test_changes_in_memory_are_those_of_files(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    before, after = (write_files(nets(seed), tmp_path / name) for name in ("before", "after"))
    original = kn.snapshot(before)
    intact = answer(original)
    edited = Folder(after, rng)
    for _ in range(rng.randint(1, 3)):
        rng.choice(EDITS)(edited)
    changed = original.with_changes(changes(before, after))
    after.rename(tmp_path / "moved")
    before.rename(after)
    (tmp_path / "moved").rename(before)
    assert answer(changed) == answer(kn.snapshot(before))
    assert answer(original) == intact


def test_an_archive_is_read_as_its_folder_is(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "fabric.tar.gz", "w:gz") as archive:
        archive.add(FABRICS / "clos-frr", "clos-frr")
    packed, folder = kn.snapshot(tmp_path / "fabric.tar.gz"), kn.snapshot(FABRICS / "clos-frr")
    ours, theirs = dict(packed.verdict()), dict(folder.verdict())
    assert ours == theirs
    without = packed.with_changes({str(packed.files[0].source.path): None})
    assert len(without.files) == len(packed.files) - 1


def turned(folder: Path, rng: random.Random) -> tuple[Path, Path]:
    """Return a fabric that cannot deadlock, and one that can, after several edits."""
    for seed in range(0, 400, 2):
        before, after = (
            write_files(nets(seed), folder / f"{seed}-{name}") for name in ("before", "after")
        )
        for _ in range(4):
            rng.choice(EDITS)(Folder(after, rng))
        for one in (before, after):
            try:
                spread_over_lines(one)
            except ValueError:
                break
        else:
            if answer_safe(before) is True and answer_safe(after) is False:
                return before, after
    raise AssertionError("no edits turned a verdict")


def answer_safe(folder: Path) -> bool | None:
    try:
        return kn.snapshot(folder).verdict().safe
    except KnotlessError:
        return None


def test_a_difference_names_the_lines_that_turn_the_verdict(tmp_path: Path) -> None:
    rng = random.Random(5)  # noqa: S311 - it only has to be repeatable
    before, after = map(kn.snapshot, turned(tmp_path, rng))
    diff = before.diff(after)
    assert diff.figures["safe"] == (True, False)
    assert diff.turning
    assert set(diff.turning) <= set(diff.lines)
    assert any(one.rule == "deadlock" for one in diff.appeared)
    alone = before.with_changes(with_lines(before._contents(), diff.turning))
    assert alone.verdict().safe is False
    for one in diff.turning:
        rest = [other for other in diff.turning if other != one]
        less = before.with_changes(with_lines(before._contents(), rest))
        assert not isinstance(answer(less), dict) or less.verdict().safe is not False
    assert f"turned by {diff.turning[0].text}" in repr(diff)
    assert before.diff(after, most_checks=0).turning == ()
    same = before.diff(before)
    assert (same.lines, same.turning, same.figures) == ((), (), {})
    assert repr(same).startswith("as before: cannot deadlock")


@pytest.mark.seeds(500, gate=100)
def test_all_changed_lines_make_the_other_files(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable

    def files() -> dict[str, bytes]:
        names = rng.sample(["a", "b", "c"], rng.randint(0, 3))
        ends = [b"\n", b"\r\n", b""]
        return {
            name: b"".join(
                rng.choice([b"x", b"y", b"z", b""]) + rng.choice(ends)
                for _ in range(rng.randint(0, 8))
            )
            for name in names
        }

    before, after = files(), files()
    found = [*changed_lines(before, after)]
    made = {**before, **with_lines(before, found)}
    assert {name: data for name, data in made.items() if data is not None} == after


def test_a_long_file_that_differs_everywhere_is_one_change() -> None:
    old = b"".join(b"%d\n" % n for n in range(10_000))
    new = b"".join(b"%d\n" % -n for n in range(10_000))
    (change,) = changed_lines({"f": old}, {"f": new})
    assert (change.line, len(change.before or ())) == (2, 9_999)
    assert ChangedLines("f", 1, None, ()).text == "f: is new"
    assert ChangedLines("f", 1, (), None).text == "f: is gone"


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: kn.snapshot(), "snapshot() needs the path of a folder"),
        (lambda: kn.snapshot("/none"), "/none"),
        (lambda: kn.snapshot(FABRICS / "clos-frr", hosts="h*"), "hosts: a list of patterns"),
        (lambda: kn.snapshot(FABRICS / "clos-frr", routes="ospf"), "routes: 'ospf' is"),
        (lambda: kn.snapshot(FABRICS / "clos-frr").routes("leaf9"), "there is no switch 'leaf9'"),
        (lambda: kn.snapshot(FABRICS / "clos-frr").pair("h1", "h2"), "has no host 'h1'"),
        (lambda: kn.snapshot(FABRICS / "clos-frr").failures(1, "magic"), "magic"),
        (lambda: kn.snapshot(FABRICS / "clos-frr").text("none"), "none: there is no such file"),
        (
            lambda: kn.snapshot(FABRICS / "clos-frr").with_changes({"none.json": None}),
            "none.json: there is no such file to remove",
        ),
    ],
    ids=range(9),
)
def test_mistakes_get_a_line(call: Any, line: str) -> None:
    with pytest.raises(KnotlessError) as raised:
        call()
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)
