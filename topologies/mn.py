"""Mininet's entry point: ``sudo mn --custom topologies/mn.py --topo torus,4,4 ...``.

Every family is available, with the port numbers, dpids, MACs and IPs of our fabrics, so that the
controller's rules apply.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path


def _here() -> None:
    """Provide a code object: Mininet exec()s this file, so ``__file__`` is undefined."""


_REPOSITORY = str(Path(_here.__code__.co_filename).resolve().parent.parent)
if _REPOSITORY not in sys.path:
    sys.path.insert(0, _REPOSITORY)

from knotless.base.errors import KnotlessError  # noqa: E402 - needs the path set above
from knotless.emulation.fabric_topo import FabricTopo  # noqa: E402 - likewise
from knotless.topologies.registry import families  # noqa: E402 - likewise
from knotless.topologies.spec import build  # noqa: E402 - likewise


def make_topo(family: str, *sizes: object, **options: object) -> FabricTopo:
    """Return the topology of a spec that Mininet has split; exit with one line if it is invalid."""
    spec = ",".join([family, *map(str, sizes), *(f"{k}={v}" for k, v in options.items())])
    try:
        return FabricTopo(build(spec))
    except KnotlessError as error:
        sys.stderr.write(f"knotless: {error}\n")
        sys.exit(2)


topos: dict[str, Callable[..., FabricTopo]] = {
    name: partial(make_topo, name) for name in families()
}
