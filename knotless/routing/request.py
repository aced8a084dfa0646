"""The request for a plan: all options with their defaults and limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args, get_type_hints

from knotless.base.complaints import one_line
from knotless.base.engine_name import AUTO_ENGINE
from knotless.base.errors import PlanError
from knotless.base.flow_control import AUTO, CHOICES, FlowControlChoice, choice_of
from knotless.base.suggestions import is_not_one_of
from knotless.routing.graphs.task import MAX_VCS, SELECTIONS, Selection
from knotless.routing.vlans.assignment import (
    ASSIGNMENTS,
    MAX_VLANS,
    TAGGINGS,
    Assignment,
    Tagging,
)

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

Protection = Literal["none", "fast-failover"]
PROTECTIONS: tuple[Protection, ...] = get_args(Protection)
SourceCheck = Literal["mac", "arp", "ip"]
SOURCE_CHECKS: tuple[SourceCheck, ...] = get_args(SourceCheck)
Multipath = Literal["none", "ecmp", "spray", "layers"]
MAX_HASH_SEED = 2**32 - 1
MAX_LAYERS = 64
Groups = tuple[tuple[int, tuple[str, ...]], ...]


@dataclass(frozen=True, eq=False)
class Checked:
    """A check of the value of an option, in requests and in pydantic's models of files.

    ``check`` returns the value as it is kept, or raises ValueError; ``schema`` describes in JSON
    Schema what it takes.
    """

    check: Callable[[object], object]
    schema: Mapping[str, object]

    def __get_pydantic_core_schema__(self, _source: object, _handler: object) -> CoreSchema:
        """Return the check for pydantic, which takes longer to import than most plans to make."""
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, _schema: object, _handler: object) -> dict[str, object]:
        """Return the schema for pydantic."""
        return dict(self.schema)


def _whole(least: int, most: int) -> Checked:
    def check(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError("is no whole number")
        if value < least:
            raise ValueError(f"is not at least {least:,}")
        if value > most:
            raise ValueError(f"is not at most {most:,}")
        return value

    return Checked(check, {"type": "integer", "minimum": least, "maximum": most})


def _word(words: tuple[str, ...]) -> Checked:
    def check(value: object) -> str:
        word = value.lower() if isinstance(value, str) else value
        if word not in words:
            raise ValueError(is_not_one_of(words))
        return str(word)

    return Checked(check, {"type": "string", "enum": list(words)})


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("is no text")
    return value


def _engine(value: object) -> str:
    name = _text(value)
    return name if name.endswith(".py") else name.lower()


def _flow_control(value: object) -> FlowControlChoice:
    return choice_of(value.lower() if isinstance(value, str) else value)


def _groups(value: Any) -> Groups:
    """Return ``{number: members}`` as sorted pairs; in JSON the numbers are strings."""
    pairs = value.items() if isinstance(value, Mapping) else value
    try:
        groups = [(int(number), members) for number, members in pairs]
        if any(isinstance(members, str) for _, members in groups):
            raise TypeError
        kept = tuple(sorted((number, tuple(map(_text, members))) for number, members in groups))
    except (TypeError, ValueError):
        raise ValueError("must map numbers to lists of hosts, such as {1: [h1, h2]}") from None
    return kept


@dataclass(frozen=True)
class PlanRequest:
    """The options of a plan.

    Attributes
    ----------
    engine : a routing engine's name, or ``auto``: the default engine of the fabric's family.
    vcs : number of virtual channels allowed; None: as many as the engine needs.
    select : choice among equal paths: ``spread`` over the hosts of a switch, or ``low-port``.
    tagging : who adds the VLAN tag to a frame: the first ``switch`` or the ``host``.
    vlans : when sources share a VLAN; see :data:`knotless.routing.vlans.assignment.ASSIGNMENTS`.
    max_vlans : number of VLANs allowed.
    root : name of the root switch, for engines that have one; None: the first switch.
    multicast : (number, members) of each group; see :mod:`knotless.routing.multicast`.
    flow_control : the flow control for which the plan is checked.
    protection : ``fast-failover``: switches have proven backup paths.
    source_check : which source addresses switches check of what hosts send: ``mac``, the address of
        the frame; ``arp``, also the addresses of the sender in ARP frames; ``ip``, also the source
        of IPv4 packets. IP addresses are checked of hosts that have one in the fabric.
    multipath : ``none``: each pair of hosts has one path. ``ecmp``: a hash of source and
        destination chooses one of all equal next hops. ``spray``, of which there are plans and
        simulations but no rules: each frame takes any one. ``layers``, likewise: the first switch
        chooses one of several complete routings by the hash.
    layers : with ``layers``, how many; None: 4.
    hash_seed : with ``ecmp`` and ``layers``, distinguishes the hashes of this fabric from those of
        others.

    """

    engine: Annotated[str, Checked(_engine, {"type": "string"})] = AUTO_ENGINE
    vcs: Annotated[int, _whole(1, MAX_VCS)] | None = None
    select: Annotated[Selection, _word(SELECTIONS)] = "spread"
    tagging: Annotated[Tagging, _word(TAGGINGS)] = "switch"
    vlans: Annotated[Assignment, _word(ASSIGNMENTS)] = "default"
    max_vlans: Annotated[int, _whole(1, MAX_VLANS)] = MAX_VLANS
    root: Annotated[str, Checked(_text, {"type": "string"})] | None = None
    multicast: Annotated[Groups, Checked(_groups, {"type": "object"})] = ()
    flow_control: Annotated[
        FlowControlChoice,
        Checked(_flow_control, {"type": "string", "enum": list(CHOICES)}),
    ] = AUTO
    protection: Annotated[Protection, _word(PROTECTIONS)] = "none"
    source_check: Annotated[SourceCheck, _word(SOURCE_CHECKS)] = "mac"
    multipath: Annotated[Multipath, _word(get_args(Multipath))] = "none"
    layers: Annotated[int, _whole(1, MAX_LAYERS)] | None = None
    hash_seed: Annotated[int, _whole(0, MAX_HASH_SEED)] = 0

    def __post_init__(self) -> None:
        """Check all values; raises PlanError."""
        for name, (check, may_be_none) in _checks().items():
            value = getattr(self, name)
            if value is None and may_be_none:
                continue
            try:
                kept = check(value)
            except ValueError as error:
                raise PlanError(one_line(name, value, str(error))) from None
            object.__setattr__(self, name, kept)

    @classmethod
    def from_options(cls, **choices: Any) -> Self:
        """Return a request with these options.

        Raises
        ------
        PlanError
            An option is unknown or its value is invalid.

        Examples
        --------
        >>> PlanRequest.from_options(engine="updown", vcs=2).vcs
        2
        >>> PlanRequest.from_options(vcs=99)
        Traceback (most recent call last):
            ...
        knotless.base.errors.PlanError: vcs: 99 is not at most 8

        """
        for name in choices:
            if name not in OPTIONS:
                raise PlanError(f"unknown key {name[:80]!r}")
        return cls(**choices)

    @classmethod
    def from_name(cls, name: str, **choices: Any) -> Self:
        """Return the request for ``updown`` or, with virtual channels, ``updown:2``.

        Raises
        ------
        PlanError
            The number of virtual channels, the name, or one of the other options is invalid.

        """
        engine, colon, count = name.partition(":")
        if not colon:
            return cls.from_options(engine=engine, **choices)
        if not (count.isascii() and count.isdigit() and 1 <= int(count[:3]) <= MAX_VCS):
            raise PlanError(
                f"engine {name[:40]!r}: N virtual channels, 1 to {MAX_VCS}, are written NAME:N, "
                "such as dl:2"
            )
        return cls.from_options(engine=engine, vcs=int(count), **choices)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> PlanRequest:
        """Return the request in the stored settings of a running fabric; raises PlanError."""
        return PlanRequest.from_options(
            **{key: value for key, value in settings.items() if key in OPTIONS}
        )

    @property
    def plan_request(self) -> PlanRequest:
        """The request without the fields of subclasses."""
        return PlanRequest(**{name: getattr(self, name) for name in OPTIONS})

    def as_settings(self) -> dict[str, Any]:
        """Return all options by name, as JSON has them, without the fields of subclasses."""
        values = {name: getattr(self, name) for name in OPTIONS}
        groups = {str(number): list(members) for number, members in self.multicast}
        return {**values, "multicast": groups, "flow_control": str(self.flow_control)}

    def refuse_single_path_options(self, subject: str) -> None:
        """Raise PlanError if it has an option that needs one path for each pair of hosts."""
        for option, value, only in (
            ("tagging", self.tagging, "switch"),
            ("vlans", self.vlans, "default"),
            ("protection", self.protection, "none"),
        ):
            if value != only:
                raise PlanError(f"{subject}: {option} {value} needs one path for each pair")

    def but(self, **choices: Any) -> PlanRequest:
        """Return a copy with other values of some options, without the fields of subclasses.

        Raises
        ------
        PlanError
            An option is unknown or its value is invalid.

        Examples
        --------
        >>> PlanRequest.from_options(engine="updown").but(vcs=2).engine
        'updown'

        """
        return PlanRequest.from_options(**{**self.as_settings(), **choices})


OPTIONS: Mapping[str, Any] = {field.name: field.default for field in fields(PlanRequest)}
"""The names of all options with their defaults."""


@cache
def _checks() -> Mapping[str, tuple[Callable[[object], object], bool]]:
    """Return the check of each option, and whether it may be None."""
    checks = {}
    for name, hint in get_type_hints(PlanRequest, include_extras=True).items():
        optional = not hasattr(hint, "__metadata__")
        annotated = get_args(hint)[0] if optional else hint
        checks[name] = (annotated.__metadata__[0].check, optional)
    return checks
