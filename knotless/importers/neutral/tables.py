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

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import Content, FileKind

MAX_VCS = 16
Text = Annotated[str, Field(min_length=1, max_length=200)]
Vc = Annotated[int, Field(ge=0, lt=MAX_VCS)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)


class VcChange(_Part):
    """At a switch, packets from one port to another change their virtual channel."""

    switch: Text
    in_port: Text = Field(alias="in")
    out_port: Text = Field(alias="out")
    before: Vc = Field(alias="from")
    after: Vc = Field(alias="to")


class Path(_Part):
    """A path between two hosts: ``SWITCH:PORT/VC`` of each hop from switch to switch."""

    source: Text = Field(alias="from")
    target: Text = Field(alias="to")
    hops: list[Text]


class NeutralTables(_Part):
    """The content of a file."""

    version: Literal[1] = Field(alias="knotless-tables")
    name: Text = "fabric"
    flow_control: Literal["pfc", "credits"] = "pfc"
    switches: list[Text]
    cables: list[tuple[Text, Text]]
    hosts: dict[Text, Text]
    next_hops: dict[Text, dict[Text, list[Text]]] | None = None
    virtual_channels: list[VcChange] = []
    paths: list[Path] | None = None


def _recognises(content: Content) -> bool:
    return '"knotless-tables"' in content.head and isinstance(content.json, dict)


def _read(content: Content) -> NeutralTables:
    try:
        tables = NeutralTables.model_validate_json(content.text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])[:80]
        raise RuleError(f"{where}: {first['msg']}") from None
    if (tables.next_hops is None) == (tables.paths is None):
        raise RuleError("either next_hops or paths is needed")
    return tables


KIND = FileKind("Knotless tables (JSON)", "neutral", _recognises, _read)
