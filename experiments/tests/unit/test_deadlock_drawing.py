"""The picture of the knot: readable on a phone, and before the prose of the report."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

from knotless.base.flow_control import FlowControl
from knotless.cli.main import main
from knotless.results import plots
from knotless_experiments.studies.deadlock import drawing, scenario
from knotless_experiments.studies.deadlock.matrix import Case

KNOT = {"ring-4": ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"], "ring-6": ["s1:2/0"], "mesh-3x3": []}


def row(pattern: str, routes: str = "cyclic") -> dict[str, Any]:
    return {
        "pattern": pattern,
        "routes": routes,
        "flow_control": "pause",
        "protocol": "udp",
        "deadlock": bool(KNOT[pattern]),
        "cycle": KNOT[pattern],
        "flows_mbps": [0.0, 4.77],
        "lost_frames": 0,
    }


def boxes(figure: Figure) -> Iterator[tuple[str, Bbox]]:
    """Yield each text of a figure with its place on the page, in pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]  # Matplotlib is typed in part
    for text in figure.findobj(Text):
        if isinstance(text, Text) and text.get_text() and text.get_visible():
            yield text.get_text(), text.get_window_extent()


@pytest.mark.parametrize("pattern", KNOT)
@pytest.mark.parametrize("routes", ["cyclic", "acyclic"])
def test_no_text_covers_another_or_is_on_a_line(pattern: str, routes: str) -> None:
    figure = drawing.knot(row(pattern, routes))
    places = [*boxes(figure)]
    for (one, here), (other, there) in itertools.combinations(places, 2):
        assert not here.overlaps(there), (one, other)
    fabric = scenario.for_case(Case(routes, FlowControl.PAUSE, "udp", 1, pattern)).fabric
    names = {node.name for node in fabric.switches} | {host.name for host in fabric.hosts}
    others = [text for text, _ in places if text not in names]
    assert len(others) == 2  # the title, and what became of the flows
    width, height = figure.bbox.width, figure.bbox.height
    for text, place in places:
        inside = 0 <= place.x0 < place.x1 <= width and 0 <= place.y0 < place.y1 <= height
        assert inside, text


def test_the_knot_is_red_and_its_channels_are_told() -> None:
    figure = drawing.knot(row("ring-4"))
    arrows = [
        one.arrow_patch
        for one in figure.findobj(Annotation)
        if isinstance(one, Annotation) and isinstance(one.arrow_patch, FancyArrowPatch)
    ]
    red = [arrow for arrow in arrows if to_rgba(arrow.get_edgecolor()) == to_rgba(plots.RED)]
    assert (len(arrows), len(red)) == (8, 4)
    told = figure.axes[0].get_xlabel()
    assert told.splitlines()[1] == "knot: s1:2/0 s2:2/0 s3:2/0 s4:2/0"


def test_the_pictures_come_before_the_prose(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as end:
        main.main(
            ["run", "deadlock", "--on", "simulation", "--quick", "--out", str(tmp_path)],
            prog_name="knotless",
        )
    assert end.value.code in (0, None)
    (page,) = tmp_path.glob("*/report.html")
    text = page.read_text()
    body = text[text.index("<body>") :]
    places = [body.index(part) for part in ("<svg", 'aria-label="fabric"', 'class="lead"', "UDP<")]
    assert places == sorted(places)
    assert "Cyclic routes, PAUSE: frozen</text>" in body
