"""Distributions of flow sizes: published ones, files, and their exact means."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from knotless.simulation.traffic import line_bytes
from knotless.traffic.sizes import PUBLISHED, SizeDistribution, SizesError, parse, sizes_named

HEAD = "bytes,probability\n"


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_distributions_name_their_source(name: str) -> None:
    sizes = sizes_named(name)
    assert sizes.points[0] == (0, 0)
    assert sizes.points[-1][1] == 1
    text = (Path(__file__).parents[3] / f"knotless/traffic/sizes/{name}.csv").read_text()
    assert "SIGCOMM" in text
    assert "github.com" in text


def test_published_means_are_those_of_the_points() -> None:
    # Between two points sizes are uniform: the mean is that of the middles, and half a byte more.
    for name in PUBLISHED:
        points = sizes_named(name).points
        middles = sum((p1 - p0) * (b0 + b1 + 1) / 2 for (b0, p0), (b1, p1) in pairwise(points))
        assert sizes_named(name).mean_bytes == pytest.approx(middles)


@pytest.mark.parametrize(
    "points",
    [
        ((1, 1.0),),
        ((5, 0.5), (9, 1.0)),
        ((0, 0.0), (10, 0.25), (10, 0.75), (31, 1.0)),
        ((7, 0.1), (7, 0.2), (64, 1.0)),
    ],
)
@pytest.mark.parametrize("packet_bytes", [1, 4, 10, 1500])
def test_means_are_those_of_all_sizes(
    points: tuple[tuple[int, float], ...], packet_bytes: int
) -> None:
    share = {max(1, points[0][0]): points[0][1]}
    for (below, lower), (above, upper) in pairwise(points):
        sizes = range(below + 1, above + 1) if above > below else [max(1, above)]
        for size in sizes:
            share[size] = share.get(size, 0) + (upper - lower) / len(sizes)
    distribution = SizeDistribution("test", points)
    assert distribution.mean_bytes == pytest.approx(sum(b * p for b, p in share.items()))
    on_line = sum(line_bytes(size, packet_bytes) * p for size, p in share.items())
    assert distribution.mean_line_bytes(packet_bytes) == pytest.approx(on_line)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the last line must have a probability of 1"),
        ("1,1\n", "line 1 must be bytes,probability"),
        (HEAD + "1;1\n", "line 2: '1;1' is not bytes,probability"),
        (HEAD + "-1,1\n", "line 2: '-1,1' is not"),
        (HEAD + "1,nan\n", "line 2: 'nan' is not a probability"),
        (HEAD + "1,15\n", "line 2: '15' is not a probability"),
        (HEAD + f"{2**41},1\n", "more than"),
        (HEAD + "2,0.5\n1,1\n", "line 3: bytes and probabilities must not decrease"),
        (HEAD + "2,0.5\n3,0.4\n", "line 3: bytes and probabilities must not decrease"),
        (HEAD + "2,0.5\n", "the last line must have a probability of 1"),
        (HEAD + "0,1\n", "the last line must have"),
    ],
)
def test_files_that_make_no_sense_are_refused(text: str, message: str) -> None:
    with pytest.raises(SizesError) as refused:
        parse("file.csv", text)
    assert message in str(refused.value)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SizesError, match="must be websearch, hadoop or the name of a .csv file"):
        sizes_named("webserach")
