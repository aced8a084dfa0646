"""A remedy that replaces all routes: those of one of our engines, in k priorities."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from knotless.base.errors import PlanError
from knotless.base.flow_control import FlowControl
from knotless.importers.fabric import TableFabric
from knotless.importers.reactions import levels
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies.fabric import Fabric
from knotless.verification.check import verdict_of
from knotless.verification.checked_plan import CheckedPlan

ROOTS = "/etc/opensm/root_guids"
"""The file from which OpenSM reads the roots of up*/down* routing."""
ENGINES = ("updown", "dfsssp", "lash")
"""Engines that route any fabric; OpenSM has them as updn, dfsssp and lash."""
OPENSM = {"updown": "updn", "dfsssp": "dfsssp", "lash": "lash"}
MAX_HOSTS = 2_000
"""Larger fabrics are not planned for a remedy."""


def other_engines(fabric: Fabric, flow_control: FlowControl) -> Iterator[CheckedPlan]:
    """Yield the plans of engines whose routes are proven safe under a flow control."""
    if len(fabric.hosts) > MAX_HOSTS:
        return
    for engine in ENGINES:
        try:
            checked = CheckedPlan(make_plan(fabric, PlanRequest.from_options(engine=engine)))
            verdict = verdict_of(checked.state, flow_control)
        except PlanError:
            continue
        if verdict.ok:
            yield checked


def opensm_files(imported: TableFabric, engine: str) -> dict[str, str]:
    """Return options with which OpenSM routes by the same algorithm, and the files that they name.

    OpenSM finds the roots of regular trees only, and falls back to minhop without them. The lanes
    that LASH and DFSSSP need are those of OpenSM's own routes.
    """
    lines = [f"routing_engine {OPENSM[engine]}", "no_fallback TRUE"]
    files = {}
    if engine == "updown":
        lines.append(f"root_guid_file {ROOTS}")
        guids = [f"0x{imported.fabric.switches[switch].dpid:016x}\n" for switch in _roots(imported)]
        files[Path(ROOTS).name] = "".join(guids)
    else:
        lines += ["qos TRUE", "lash_start_vl 0"] if engine == "lash" else ["qos TRUE"]
    return {"opensm.conf": "\n".join(lines) + "\n", **files}


def _roots(imported: TableFabric) -> list[int]:
    """Return the highest switches of a tree; of another fabric the first switch."""
    level, channels = levels(imported), imported.channels
    top = level == level.max()
    if level.max() == 0 or (top[channels.tail] & top[channels.head]).any():
        return [0]
    return [int(switch) for switch in np.flatnonzero(top)]
