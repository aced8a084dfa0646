"""Fabrics and engines compared in the papers, used by several experiments."""

from __future__ import annotations

from collections.abc import Mapping

from knotless.routing.request import PlanRequest

IRREGULAR = ("irregular-a", "irregular-b")
GRIDS = ("mesh,4,4,hosts=4", "torus,4,4,hosts=4")
DOR = PlanRequest(engine="dor", vlans="tree")
ONE_WAY = DOR.but(vcs=1, select="low-port")
"""All ties in a torus take the positive direction, without virtual channels, as in paper 004."""
TABLE_1: Mapping[str, PlanRequest] = {
    "mesh,2,4,hosts=2": DOR,
    "torus,2,4,hosts=2": ONE_WAY,
    "clos,4,hosts=2": PlanRequest(engine="smodk", select="low-port", vlans="tree"),
    "mtree,4,4": PlanRequest(engine="updown", vlans="tree"),
    "mesh,4,4": DOR,
    "torus,4,4": ONE_WAY,
    "fattree,2,4,2": PlanRequest(engine="smodk", vlans="tree"),
}
"""Paper 004's seven topologies with 16 hosts, and their routes.

VLANs are those that its ordinary switches need.
"""
FLAT = "flat,16"
"""Its reference: a single switch."""
ENGINES = (
    *("updown", "updown:2", "updown:4", "prefix", "lturn", "rturn"),
    *("sbp", "sbp-reduced", "lash", "dl:2", "dfsssp"),
)
