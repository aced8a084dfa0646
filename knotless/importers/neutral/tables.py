"""Fabrics in a format of our own: switches, cables, and next hops or paths, as JSON.

::

    {"knotless-tables": 1, "name": "ring", "flow_control": "pfc",
     "switches": ["s1", "s2"],
     "cables": [["s1:east", "s2:west"]],
     "hosts": {"h1": "s1:p1", "h2": "s2:p1"},
     "next_hops": {"s1": {"h2": ["east"]}, "s2": {"h1": ["west"]}},
     "virtual_channels": [{"switch": "s2", "in": "west", "out": "east", "from": 0, "to": 1}]}

Instead of ``next_hops`` (the switch takes any one of the ports) and ``virtual_channels`` (packets
begin with 0, and keep theirs where no entry says otherwise), ``paths`` lists every path with the
virtual channel of each hop::

    "paths": [{"from": "h1", "to": "h2", "hops": ["s1:east/0"]}]
"""

from __future__ import annotations

from knotless.importers.file_kinds import Content, FileKind, json_mark


def _fits(content: Content) -> bool:
    return isinstance(content.json, dict)


def _read(content: Content) -> object:
    from knotless.importers.neutral.model import validated  # loads pydantic

    return validated(content.text)


KIND = FileKind(
    "Knotless tables (JSON)", "neutral", json_mark("{", "knotless-tables"), _read, _fits
)
