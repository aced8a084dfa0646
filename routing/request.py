"""What a plan is asked for: every choice, its default and its limits, in one place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
)

from common.errors import PlanError
from common.flow_control import AUTO, FlowControlChoice, accepted, normalised
from common.yaml_file import complaint
from routing.default_engine import NATIVE
from routing.graphs.task import MAX_VCS, Selection
from routing.vlans.assignment import MOST_VLANS, Assignment, Tagging

Groups = tuple[tuple[int, tuple[str, ...]], ...]


def _groups(value: object) -> object:
    """Return ``{number: members}`` as pairs, sorted; JSON has the numbers as texts."""
    if not isinstance(value, Mapping):
        return value
    try:
        groups = sorted((int(number), tuple(of)) for number, of in value.items())
    except (TypeError, ValueError):
        groups = []
    if len(groups) < len(value) or any(isinstance(of, str) for of in value.values()):
        raise ValueError("wanted numbers with lists of hosts, such as {1: [h1, h2]}")
    return tuple(groups)


class PlanRequest(BaseModel):
    """A plan as a user asks for it.

    Attributes
    ----------
    engine : a routing engine's name, or ``native``: the one made for the fabric's family.
    vcs : virtual channels that the plan may use; None: as many as the engine needs.
    select : among equal paths, ``spread`` the hosts of a switch or take the low port first.
    tagging : who puts the VLAN tag on a frame: the first ``switch`` or the ``host``.
    vlans : where sources share a VLAN; see :data:`routing.vlans.assignment.ASSIGNMENTS`.
    max_vlans : VLANs that the plan may use.
    root : name of the root switch, for engines that have one; None: the first switch.
    multicast : (number, members) of each group; see :mod:`routing.multicast`.
    flow_control : what the verdict is about; see :mod:`routing.flow_control`.

    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    engine: str = NATIVE
    vcs: Annotated[int, Field(ge=1, le=MAX_VCS)] | None = None
    select: Selection = "spread"
    tagging: Tagging = "switch"
    vlans: Assignment = "default"
    max_vlans: Annotated[int, Field(ge=1, le=MOST_VLANS)] = MOST_VLANS
    root: str | None = None
    multicast: Annotated[Groups, BeforeValidator(_groups), PlainSerializer(dict)] = ()
    flow_control: Annotated[FlowControlChoice, BeforeValidator(accepted)] = AUTO

    @classmethod
    def of(cls, **choices: Any) -> Self:
        """Return the request with these choices.

        Raises
        ------
        PlanError
            A choice that does not exist or is out of its limits.

        """
        try:
            return cls.model_validate(choices)
        except ValidationError as error:
            raise PlanError(complaint(error)) from None

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> PlanRequest:
        """Return the request among the stored settings of a running fabric; raises PlanError."""
        known = PlanRequest.model_fields
        choices = {key: value for key, value in settings.items() if key in known}
        choices["flow_control"] = normalised(choices.get("flow_control", AUTO))
        return PlanRequest.of(**choices)

    @property
    def plan_request(self) -> PlanRequest:
        """The request alone, where this is more than one."""
        return PlanRequest(**{key: getattr(self, key) for key in PlanRequest.model_fields})

    def but(self, **choices: Any) -> PlanRequest:
        """Return the request with other choices; raises PlanError."""
        return PlanRequest.of(**{**self.plan_request.model_dump(), **choices})
