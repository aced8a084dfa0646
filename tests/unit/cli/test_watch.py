"""``check --watch``: a verdict after each change, until Ctrl-C."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from knotless.cli.commands.check import watch as watching
from knotless.cli.main import main
from tests.support.classical_deadlocks import routing_loop
from tests.support.router_nets import leaf_spine


def follow(monkeypatch: pytest.MonkeyPatch, steps: Iterator[object], *words: object) -> Result:
    """Run the command; each time that it waits, the next step is taken, and at last Ctrl-C."""

    def wait(_seconds: float) -> None:
        if next(steps, None) is None:
            raise KeyboardInterrupt

    watch: Callable[..., object] = watching.watch
    monkeypatch.setattr(watching, "watch", lambda *of: watch(*of, wait=wait))
    return CliRunner(mix_stderr=False).invoke(main, ["check", *map(str, words), "--watch"])


def test_each_change_has_a_verdict_and_the_last_one_is_the_status(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    good = {
        file.relative_to(tmp_path / "good"): file.read_bytes()
        for file in leaf_spine(3, 2).write(tmp_path / "good").rglob("*.json")
    }
    bad = routing_loop().write(tmp_path / "bad")
    folder = tmp_path / "fabric"
    for name, data in good.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    routes = [name for name in good if name.name == "appl_db.json"]

    def steps() -> Iterator[object]:
        yield "nothing has changed"
        for name in routes:
            (folder / name).write_bytes((bad / name).read_bytes())
        yield "a cycle"
        (folder / routes[0]).write_text("{")
        yield "half a file"
        for name in routes:
            (folder / name).write_bytes(good[name])
        yield "as at first"
        (folder / "notes.txt").write_text("nothing that is read\n")
        yield "a new file"

    result = follow(monkeypatch, steps(), folder)
    words = [line.split(" under ")[0] for line in result.stdout.splitlines() if " under " in line]
    verdicts = [line.rpartition(": ")[2] for line in words if line.startswith("fabric: ")]
    assert verdicts[:2] == ["cannot deadlock", "CAN DEADLOCK"]
    assert verdicts[-2:] == ["cannot deadlock", "cannot deadlock"]
    assert len(verdicts) == 5
    assert result.exit_code == 0
    assert "notes.txt" in result.stdout


def test_files_that_cannot_be_read_are_an_error_until_they_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "fabric"
    folder.mkdir()

    def steps() -> Iterator[object]:
        routing_loop().write(folder)
        yield "files"

    result = follow(monkeypatch, steps(), folder, "--json")
    assert "no file of a known kind" in result.stderr
    assert json.loads(result.stdout)["acyclic"] is False
    assert result.exit_code == 1


@pytest.mark.parametrize(
    "words",
    [["--since", "s"], ["--write-state", "s"], ["--failures", "1"], ["--pair", "a", "b"]],
)
def test_it_follows_verdicts_alone(words: list[str]) -> None:
    result = CliRunner(mix_stderr=False).invoke(main, ["check", "x", "--watch", *words])
    assert result.exit_code == 2
    assert "--watch" in result.stderr
