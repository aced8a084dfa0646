"""A recording as one HTML file: complete by itself, and names in it are never markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.base.errors import KnotlessError
from knotless.cli.commands.replay import command
from knotless.results import recording
from knotless.results.recording import Recording
from knotless.topologies import load
from knotless.topologies.formats import files
from knotless.web.page_file import page_file
from knotless.web.picture import Picture

CYCLE = ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
KNOT = {"since_us": 150, "cycle": CYCLE, "members": CYCLE, "waiting": {}}
FRAMES: list[dict[str, Any]] = [
    {"at_us": 100, "rows": [(1, 0, 500, 0, 10, 20)], "drops": [], "down": [], "knot": None},
    {"at_us": 200, "rows": [], "drops": [(1, 2, 2)], "down": [0], "knot": KNOT},
]


@pytest.fixture
def recorded() -> Recording:
    fabric = load("ring,4")
    names = sorted(Picture(fabric).index)
    return Recording("simulation of shift:2", files.to_json(fabric), names, FRAMES)


def content(page: str) -> dict[str, Any]:
    script = re.search(r'<script type="application/json" id="recording">(.*?)</script>', page)
    assert script is not None
    found: dict[str, Any] = json.loads(script[1])
    return found


def test_the_file_needs_nothing_else(recorded: Recording) -> None:
    page = page_file(recorded)
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    assert "{{" not in page.split('id="recording"')[0]
    assert '<ul class="legend"' in page
    shown = content(page)
    names = [channel["name"] for channel in shown["picture"]["channels"]]
    first, last = shown["frames"]
    assert names[first["rows"][0][0]] == recorded.channels[1]
    assert names[last["down"][0]] == recorded.channels[0]
    assert last["knot"]["cycle"] == CYCLE


def test_a_still_end_is_shortened(recorded: Recording) -> None:
    still = [{**FRAMES[1], "at_us": 200 + i, "drops": [(0, i, 1)]} for i in range(100)]
    frames = content(page_file(replace(recorded, frames=[FRAMES[0], *still])))["frames"]
    assert [frame["knot"] is not None for frame in frames] == [False] + [True] * 20
    moving = [{**FRAMES[0], "at_us": i} for i in range(100)]
    assert len(content(page_file(replace(recorded, frames=moving)))["frames"]) == 100


def test_names_are_no_markup(recorded: Recording) -> None:
    bad = "</script><script>alert(1)</script>"
    named = replace(recorded, title=bad, fabric={**recorded.fabric, "name": bad})
    page = page_file(named)
    assert "<script>alert" not in page
    assert content(page)["picture"]["fabric"] == bad


def test_what_is_too_large_is_refused(recorded: Recording) -> None:
    with pytest.raises(KnotlessError, match="1 to 2000 frames, this recording has 0"):
        page_file(replace(recorded, frames=[]))
    fabric = load("mesh,12,12")
    large = Recording("large", files.to_json(fabric), [], FRAMES)
    with pytest.raises(KnotlessError, match="at most 400 channels"):
        page_file(large)


def test_the_command_writes_it(recorded: Recording, tmp_path: Path) -> None:
    path, out = tmp_path / f"ring{recording.SUFFIX}", tmp_path / "ring.html"
    recording.write(path, recorded)
    done = CliRunner().invoke(command, [str(path), "--html", str(out)])
    assert done.exit_code == 0, done.output
    assert out.read_text() == page_file(recording.read(path))
    other = CliRunner().invoke(command, [str(tmp_path / "rules"), "--html", str(out)])
    assert isinstance(other.exception, KnotlessError) or other.exit_code != 0
