"""Plots and drawings: equal figures give equal files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from knotless.drawing import draw_fabric
from knotless.topologies import load


@pytest.mark.parametrize("suffix", ["svg", "SVG", "png", "pdf"])
def test_one_fabric_drawn_twice_gives_the_same_bytes(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / f"{number}.{suffix}" for number in (1, 2)]
    for second, file in enumerate(files):
        # Matplotlib takes the time of a file from there.
        monkeypatch.setenv("SOURCE_DATE_EPOCH", str(1_000_000 * second))
        draw_fabric(load("ring,4"), str(file))
    first, again = (file.read_bytes() for file in files)
    assert first == again
    assert len(first) > 1000


def test_ports_are_drawn_on_request_and_text_stays_text(tmp_path: Path) -> None:
    plain, ports = tmp_path / "plain.svg", tmp_path / "ports.svg"
    draw_fabric(load("ring,4"), str(plain))
    draw_fabric(load("ring,4"), str(ports), ports=True)
    texts = [re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text()) for path in (plain, ports)]
    names = [f"{kind}{number}" for kind in "hs" for number in range(1, 5)]
    assert sorted(texts[0]) == sorted([*names, "ring,4"])
    assert sorted(texts[1]) == sorted([*texts[0], *["2"] * 4, *["3"] * 4])
