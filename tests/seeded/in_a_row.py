"""Runs in which links fail one after the other, and packets of older rules leave slowly."""

from __future__ import annotations

from random import Random

from knotless.topologies import load
from tests.seeded.faults import Fault
from tests.seeded.world import Setting

FABRIC = "mesh,3,3"


def in_a_row(seed: int) -> tuple[Setting, list[Fault]]:
    """Return cuts: one, one when the packets of its repair have left, and one after the return."""
    names = [link.name for link in load(FABRIC).links]
    first, second, third = Random(seed).sample(names, k=3)  # noqa: S311 - repeatable
    return Setting(seed, FABRIC, emulator=True), [
        *(Fault(6.0, "slow-frames", (host,), 60.0) for host in ("h1", "h5", "h9")),
        Fault(8.0, "cut", (first,), 60.0),
        Fault(20.0, "cut", (second,), 60.0),
        Fault(50.0, "cut", (third,), 10.0),
    ]
