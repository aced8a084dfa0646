"""Flow control: which links hold senders back, and which priorities together.

What a receiver does when its buffer fills is in ``core/switch-model/src/flow_control.rs``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from typing import Literal, NamedTuple

from knotless._core import simulator
from knotless.base.errors import PlanError
from knotless.base.suggestions import is_not_one_of

SHOWN_MISSING = 3
"""Missing facts in the sentence."""
SHOWN_BLOCKED = 8
"""Channels in the sentence that block each other without a cycle of single waits."""


class LinkFlowControl(NamedTuple):
    """The flow control of one link.

    ``name`` is its name in the emulator's configuration. ``classes`` has the class of each
    priority; the priorities of a class are held back together. It is empty if the link never holds
    its sender back. Where other names say that a link pauses, credits are meant too.
    """

    name: str
    classes: tuple[int, ...]

    @property
    def pauses(self) -> bool:
        """Whether the link holds senders back, so that no frame is lost for want of room."""
        return bool(self.classes)

    @property
    def by_channel(self) -> bool:
        """Whether all priorities of a channel are paused together, by frames of IEEE 802.3x."""
        return len(set(self.classes)) == 1

    @property
    def by_priority(self) -> bool:
        """Whether priorities are held back without others: by IEEE 802.1Qbb, or for credit."""
        return len(set(self.classes)) > 1

    @property
    def by_credits(self) -> bool:
        """Whether a sender begins only what its receiver has advertised room for."""
        return self.name == "credits"


class FlowControl(StrEnum):
    """The flow control of all links of a fabric, by its name in options and stored runs.

    PAUSE on no link, on links to hosts, on links between switches, or on all links; PFC on all
    links; credits of each virtual channel on all links, also with bubbles, where a frame that
    enters a ring of virtual channels leaves room for another. Each has the description that
    messages show.

    References
    ----------
    IEEE 802.3x (PAUSE stops a whole channel); IEEE 802.1Qbb (PFC stops one priority of a channel).
    InfiniBand Architecture Specification 1.2.1, volume 1, 7.9.4 (credits of each virtual lane).
    The choices none, host and switch are from Otsuka et al., VLAN routing with switch tagging.

    """

    description: str

    def __new__(cls, name: str, description: str = "") -> FlowControl:
        """Make a member, with its name and description."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.description = description
        return member

    NONE = "none", "no flow control"
    HOST = "host", "PAUSE on host links"
    SWITCH = "switch", "PAUSE between switches"
    PAUSE = "pause", "PAUSE"
    PFC = "pfc", "PFC"
    CREDITS = "credits", "credits"
    BUBBLE = "bubble", "credits with bubbles"

    @property
    def condition(self) -> str:
        """The flow control as a condition in a sentence: ``under PFC``."""
        pauses = self.host_links.pauses or self.switch_links.pauses
        return f"under {self.description}" if pauses else "without flow control"

    @property
    def host_links(self) -> LinkFlowControl:
        """The flow control of links to hosts."""
        return _of_link(self, True)

    @property
    def switch_links(self) -> LinkFlowControl:
        """The flow control of links between switches."""
        return _of_link(self, False)

    @property
    def is_lossless(self) -> bool:
        """Whether all links pause, so that no frame is lost because a buffer is full."""
        return self.host_links.pauses and self.switch_links.pauses


@cache
def _of_link(name: str, is_host_link: bool) -> LinkFlowControl:
    link_name, classes = simulator.link_flow_control(on_links(name), is_host_link)
    return LinkFlowControl(link_name, tuple(classes))


def on_links(name: str) -> str:
    """Return the flow control that links have: bubbles are a matter of switches."""
    return FlowControl.CREDITS if name == FlowControl.BUBBLE else name


def refuse_bubbles(flow_control: str, subject: str) -> None:
    """Raise PlanError if the flow control has bubbles, of which ``subject`` knows nothing."""
    if flow_control == FlowControl.BUBBLE:
        raise PlanError(
            f"bubbles and {subject} do not go together: use --flow-control credits or pfc"
        )


AUTO: Literal["auto"] = "auto"
"""The choice of PFC if a plan uses more than one virtual channel, otherwise PAUSE."""
FlowControlChoice = FlowControl | Literal["auto"]
FLOW_CONTROLS: tuple[FlowControl, ...] = tuple(FlowControl)
CHOICES: tuple[str, ...] = (AUTO, *(choice.value for choice in FlowControl))
"""The values of options."""


def choice_of(value: object) -> FlowControlChoice:
    """Return the choice for the value of an option.

    Raises
    ------
    ValueError
        It is not one of :data:`CHOICES`.

    """
    if isinstance(value, str) and value in CHOICES:
        return AUTO if value == AUTO else FlowControl(value)
    raise ValueError(is_not_one_of(CHOICES))


def resolved(choice: str, vcs: int) -> FlowControl:
    """Resolve a choice of flow control, which may be ``auto``, for a plan.

    Parameters
    ----------
    choice : str
        One of :data:`knotless.base.flow_control.CHOICES`.
    vcs : int
        The number of virtual channels that the plan uses.

    Returns
    -------
    FlowControl
        The flow control of all links.

    Raises
    ------
    PlanError
        ``choice`` is not a flow control.

    Examples
    --------
    >>> [resolved("auto", vcs).value for vcs in (1, 2)]
    ['pause', 'pfc']

    """
    if choice == AUTO:
        return FlowControl.PFC if vcs > 1 else FlowControl.PAUSE
    if choice not in FLOW_CONTROLS:
        raise PlanError(f"flow control {choice[:40]!r} {is_not_one_of(CHOICES)}")
    return FlowControl(choice)


def verdict_words(
    flow_control: FlowControl, *, safe: bool | None, assumed_routes: bool = False
) -> tuple[str, str]:
    """Return the words of an answer, and what they apply to; ``safe`` None is unknown."""
    under = flow_control.condition + (", with assumed routes" if assumed_routes else "")
    if safe is None:
        return "UNKNOWN", f"whether it can deadlock {under}"
    return "cannot deadlock" if safe else "CAN DEADLOCK", under


def verdict_text(
    flow_control: FlowControl,
    cycle: Sequence[str],
    missing: Sequence[str] = (),
    blocked: Sequence[str] = (),
    *,
    assumed_routes: bool = False,
) -> str:
    """Return the verdict as text.

    ``cycle`` is a cycle of dependencies, or empty. ``missing`` are facts without which the verdict
    is unknown; the cycle is only possible then. ``blocked``, if there is no cycle, are channels
    whose frames wait for the first free of several, all of which can be blocked. With
    ``assumed_routes`` the routes are computed from configurations, not read.
    """
    safe = None if missing else not (cycle or blocked)
    words = " ".join(verdict_words(flow_control, safe=safe, assumed_routes=assumed_routes))
    ring = " -> ".join([*cycle, *cycle[:1]])
    if missing:
        more = len(missing) - SHOWN_MISSING
        shown = "; ".join(missing[:SHOWN_MISSING]) + (f"; {more} more" * (more > 0))
        possible = f"; possible: {ring}" if cycle else ""
        return f"{words}: missing {shown}{possible}"
    if blocked and not cycle:
        more = len(blocked) - SHOWN_BLOCKED
        shown = ", ".join(blocked[:SHOWN_BLOCKED]) + (f" and {more} more" * (more > 0))
        return f"{words}: frames on {shown} can all wait for each other"
    return f"{words}: {ring}" if cycle else words


def assumptions(flow_control: FlowControl) -> list[str]:
    """Return what a verdict under this flow control takes for granted.

    Without the reserve, a shared pool of buffers can freeze although dependencies are acyclic: a
    priority of an input that holds nothing waits for room that others hold, which is no dependency
    between channels.
    """
    if not flow_control.switch_links.pauses:
        return []
    return [
        "each lossless priority of each input has room for a longest frame that nobody else can"
        " take",
        "hosts take what arrives",
    ]
