"""The gallery: pictures from all parts of the site, each with the command that draws it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from docs.generator import drawings as draw
from docs.generator.families import EXAMPLES
from knotless.topologies.registry import families

HEAD = """# Gallery

## Deadlocks

![A ring of four switches that has frozen](images/replay-1400-light.png)

*A recorded run of an emulated fabric: four switches, four flows, PAUSE on every link.* [Play
it](replays/ring-deadlock.html), or [run your first deadlock](start/first-deadlock.md)

![A cycle on a torus](images/cycle-torus.svg)

*Dimension order on a torus with a single virtual channel: the channels that can wait for each
other.* `knotless check rules --draw cycle.svg`

![A cycle on an irregular fabric](images/cycle-irregular.svg)

*Shortest paths on an irregular fabric.*

## Paths

Every engine has a picture on [its page](explanation/engines.md). Two of them on the same mesh:

| up\\*/down\\* | structured buffer pool |
|---|---|
| ![Paths of updown](explanation/images/updown.svg) | ![Paths of sbp](explanation/images/sbp.svg) |

## Measurements

![Bandwidth of 16 hosts](reproduction/images/004-figure-10.svg)

*From [the reproduction of paper 004](reproduction/004.md): the paper's figure and ours.*

## Fabrics

`knotless topology SPEC --draw F.svg` draws each of these; [all
families](reference/fabric-specs.md).
"""
_ONE_WAY = {"engine": "dor", "vcs": 1, "select": "low-port"}
DRAWINGS: Mapping[str, Callable[[], str]] = {
    "images/cycle-ring.svg": partial(draw.cycle, "ring,4", **_ONE_WAY),
    "images/cycle-torus.svg": partial(draw.cycle, "torus,5,5", **_ONE_WAY),
    "images/cycle-irregular.svg": partial(draw.cycle, "irregular-b", engine="minimal"),
}


def page() -> str:
    """Return the page."""
    pictures = [
        f"![{name}](reference/images/{name}.svg)\n\n*`{EXAMPLES[name]}`*\n" for name in families()
    ]
    return "\n".join([HEAD, *pictures])
