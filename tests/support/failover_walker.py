"""Rule files as switches apply them while links are down, without the project's own reading.

Fast-failover groups become groups of type all with one bucket: the first whose port is up.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

End = tuple[str, int]
"""A switch and a port."""


def links_of(folder: Path) -> list[tuple[End, End]]:
    """Return the ends of the links between switches."""
    fabric = json.loads((folder / "fabric.json").read_text())
    return [((link["a"], link["a_port"]), (link["b"], link["b_port"])) for link in fabric["links"]]


def rules_during(folder: Path, down: Iterable[End], to: Path) -> Path:
    """Copy a folder of rules to ``to``, as they act while the ports ``down`` are down."""
    shutil.copytree(folder, to)
    dead = set(down)
    for file in to.glob("*.groups"):
        lines = [_during(line, file.stem, dead) for line in file.read_text().splitlines()]
        file.write_text("".join(f"{line}\n" for line in lines))
    return to


def without_links(folder: Path, dead: Iterable[tuple[End, End]]) -> Path:
    """Remove links from the fabric of a folder of rules."""
    file = folder / "fabric.json"
    fabric, gone = json.loads(file.read_text()), {end for link in dead for end in link}
    fabric["links"] = [
        entry for entry in fabric["links"] if (entry["a"], entry["a_port"]) not in gone
    ]
    file.write_text(json.dumps(fabric))
    return folder


def _during(line: str, switch: str, down: set[End]) -> str:
    head, kind, rest = re.fullmatch(r"(group_id=\d+,type=)(all|ff)(.*)", line).groups()  # type: ignore[union-attr]
    if kind == "all":
        return line
    for port, actions in re.findall(r",bucket=watch_port:(\d+),actions=((?:(?!,bucket=).)*)", rest):
        if (switch, int(port)) not in down:
            return f"{head}all,bucket=actions={actions}"
    return f"{head}all"
