"""The number of cores that a simulation uses; its result does not depend on it."""

from __future__ import annotations

import os

from knotless.topologies.fabric import Fabric

MAX_CORES = 64
LEAST_HOSTS = 1024
"""Hosts from which several cores are used by default: with fewer, a core has too little to do
between two exchanges with the others."""


def default_cores(fabric: Fabric) -> int:
    """Return the processors that may be used; 1 for fabrics below :data:`LEAST_HOSTS` hosts."""
    if len(fabric.hosts) < LEAST_HOSTS:
        return 1
    return min(len(os.sched_getaffinity(0)), MAX_CORES)
