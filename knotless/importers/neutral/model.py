"""The values in a file of :mod:`.tables`, validated."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from knotless.base.errors import RuleError

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


def validated(text: str) -> NeutralTables:
    """Return the content of a file; raises RuleError."""
    try:
        tables = NeutralTables.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])[:80]
        raise RuleError(f"{where}: {first['msg']}") from None
    if (tables.next_hops is None) == (tables.paths is None):
        raise RuleError("either next_hops or paths is needed")
    return tables
