"""The request for a plan: all options with their defaults and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    field_validator,
)

from knotless.base.complaints import complaint
from knotless.base.engine_name import AUTO_ENGINE
from knotless.base.errors import PlanError
from knotless.base.flow_control import AUTO, CHOICES, FlowControlChoice, choice_of
from knotless.routing.graphs.task import MAX_VCS, Selection
from knotless.routing.vlans.assignment import MAX_VLANS, Assignment, Tagging

Protection = Literal["none", "fast-failover"]
PROTECTIONS: tuple[Protection, ...] = get_args(Protection)
SourceCheck = Literal["mac", "arp", "ip"]
SOURCE_CHECKS: tuple[SourceCheck, ...] = get_args(SourceCheck)
Multipath = Literal["none", "ecmp", "spray", "layers"]
MAX_HASH_SEED = 2**32 - 1
MAX_LAYERS = 64
Groups = tuple[tuple[int, tuple[str, ...]], ...]
FlowControlOption = Annotated[
    FlowControlChoice,
    PlainValidator(choice_of),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "enum": list(CHOICES)}),
]


def _groups(value: object) -> object:
    """Return ``{number: members}`` as sorted pairs; in JSON the numbers are strings."""
    if not isinstance(value, Mapping):
        return value
    try:
        groups = sorted((int(number), tuple(members)) for number, members in value.items())
    except (TypeError, ValueError):
        groups = []
    if len(groups) < len(value) or any(isinstance(members, str) for members in value.values()):
        raise ValueError("must map numbers to lists of hosts, such as {1: [h1, h2]}")
    return tuple(groups)


_WORDS = ("select", "tagging", "vlans", "flow_control", "protection", "source_check", "multipath")
"""Fields that are one of some words, in upper or lower case."""


class PlanRequest(BaseModel):
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

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    engine: str = AUTO_ENGINE
    vcs: Annotated[int, Field(ge=1, le=MAX_VCS)] | None = None
    select: Selection = "spread"
    tagging: Tagging = "switch"
    vlans: Assignment = "default"
    max_vlans: Annotated[int, Field(ge=1, le=MAX_VLANS)] = MAX_VLANS
    root: str | None = None
    multicast: Annotated[Groups, BeforeValidator(_groups), PlainSerializer(dict)] = ()
    flow_control: FlowControlOption = AUTO
    protection: Protection = "none"
    source_check: SourceCheck = "mac"
    multipath: Multipath = "none"
    layers: Annotated[int, Field(ge=1, le=MAX_LAYERS)] | None = None
    hash_seed: Annotated[int, Field(ge=0, le=MAX_HASH_SEED)] = 0

    @field_validator(*_WORDS, mode="before")
    @classmethod
    def _fold_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @field_validator("engine", mode="before")
    @classmethod
    def _fold_case_of_names(cls, value: object) -> object:
        is_name = isinstance(value, str) and not value.endswith(".py")
        return cls._fold_case(value) if is_name else value

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
        try:
            return cls.model_validate(choices)
        except ValidationError as error:
            raise PlanError(complaint(error)) from None

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
        fields = PlanRequest.model_fields
        return PlanRequest.from_options(
            **{key: value for key, value in settings.items() if key in fields}
        )

    @property
    def plan_request(self) -> PlanRequest:
        """The request without the fields of subclasses."""
        return PlanRequest(**{key: getattr(self, key) for key in PlanRequest.model_fields})

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
        return PlanRequest.from_options(**{**self.plan_request.model_dump(), **choices})
