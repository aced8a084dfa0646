"""Settings that follow from a seed."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from random import Random

from tests.seeded.world import Setting
from tests.support import REPOSITORY

_GRAPHML = "tests/seeded/eight.graphml"
FABRICS: Mapping[str, int] = {
    "ring,4": 36,
    "torus,3,3": 24,
    "mesh,3,3": 12,
    "lsft,3": 4,
    "random,8,degree=3": 6,
    "hyperx,S=3x3,hosts=1": 6,
    "dragonfly,a=2,h=1,p=1": 6,
    _GRAPHML: 6,
}
"""How often a fabric is drawn, of 100 times; a random one also gets a seed."""
_CONTROLLERS = (70, 24, 6)
"""How often there are one, two and three, of 100 times."""
_EMULATOR = 0.5
OPTIONS: Mapping[str, int] = {
    "": 52,
    "flow_control: pfc": 14,
    "protection: fast-failover": 8,
    "engine: updown\nmultipath: ecmp": 8,
    "source_check: ip": 6,
    "tagging: host": 6,
    "multicast: {1: [h1, h2, h3]}": 6,
}


def drawn_setting(seed: int, fabric: str | None = None) -> Setting:
    """Return the setting of a seed; all of it is drawn but for a given fabric."""
    rng = Random(seed)  # noqa: S311 - those of Draws for one seed depend on each other
    fabric = fabric or rng.choices(list(FABRICS), list(FABRICS.values()))[0]
    if fabric.startswith("random,"):
        fabric += f",seed={1 + rng.randrange(1000)}"
    (controllers,) = rng.choices((1, 2, 3), _CONTROLLERS)
    emulator = rng.random() < _EMULATOR
    (options,) = rng.choices(list(OPTIONS), list(OPTIONS.values()))
    # Without an emulator, not every wait for frames that nobody has counted is said; and files
    # declare no long lines.
    emulator = emulator or "pfc" in options or fabric == _GRAPHML
    return Setting(seed, fabric, controllers, options, emulator)


def commit() -> str:
    """Return the commit of the checkout; empty outside of one."""
    command = ["git", "rev-parse", "--verify", "HEAD"]
    try:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
