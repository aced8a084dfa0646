"""Fabrics and engines compared in the papers, used by several experiments."""

from __future__ import annotations

IRREGULAR = ("irregular-a", "irregular-b")
GRIDS = ("mesh,4,4,hosts=4", "torus,4,4,hosts=4")
TABLE_1 = (
    "mesh,4,2,hosts=2",
    "torus,4,2,hosts=2",
    "clos,4,hosts=2",
    "mtree,4,4",
    "mesh,4,4",
    "torus,4,4",
    "fattree,2,4,2",
    "flat,16",
)
"""Paper 004's seven topologies with 16 hosts, and the single switch as a reference."""
ENGINES = (
    *("updown", "updown:2", "updown:4", "prefix", "lturn", "rturn"),
    *("sbp", "sbp-reduced", "lash", "dl:2", "dfsssp"),
)
