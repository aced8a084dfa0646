"""Settings that follow from a seed."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from random import Random

from tests.seeded.world import Setting
from tests.support import REPOSITORY

FABRICS: Mapping[str, int] = {
    "ring,4": 40,
    "torus,3,3": 30,
    "mesh,3,3": 15,
    "lsft,3": 10,
    "random,8,degree=3": 5,
}
"""How often a fabric is drawn, of 100 times; a random one also gets a seed."""
_TWO_CONTROLLERS = 0.25
_EMULATOR = 0.5
_PFC = 0.3


def drawn_setting(seed: int, fabric: str | None = None) -> Setting:
    """Return the setting of a seed; all of it is drawn but for a given fabric."""
    rng = Random(seed)  # noqa: S311 - those of Draws for one seed depend on each other
    fabric = fabric or rng.choices(list(FABRICS), list(FABRICS.values()))[0]
    if fabric.startswith("random,"):
        fabric += f",seed={1 + rng.randrange(1000)}"
    controllers = 1 + (rng.random() < _TWO_CONTROLLERS)
    emulator = rng.random() < _EMULATOR
    # Without an emulator, not every wait for frames that nobody has counted is said.
    options = "flow_control: pfc" if rng.random() < _PFC and emulator else ""
    return Setting(seed, fabric, controllers, options, emulator)


def commit() -> str:
    """Return the commit of the checkout; empty outside of one."""
    command = ["git", "rev-parse", "--verify", "HEAD"]
    try:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
