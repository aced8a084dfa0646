"""The cables that probes have crossed: where nothing is declared, and where they are. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from knotless.controller.observed import Port, channels_between, port_text
from knotless.topologies.fabric import Fabric

CONFIRMED = 2
"""So many probes must arrive in each direction."""
_MAX_RECEIVERS = 3
"""So many ports at which probes of one port arrive are remembered: two are too many already."""

PortId = tuple[int, int]
"""A dpid and a port."""


@dataclass
class Cables:
    """The ports at which probes of each port have arrived."""

    _arrived: dict[PortId, dict[PortId, int]] = field(default_factory=dict)
    """By sender: the receivers, and how many probes they got."""
    _heard: dict[PortId, set[PortId]] = field(default_factory=dict)
    """By receiver: the senders."""

    def see(self, sender: PortId, receiver: PortId) -> None:
        """Take a probe that has arrived."""
        receivers = self._arrived.setdefault(sender, {})
        if receiver in receivers or len(receivers) < _MAX_RECEIVERS:
            receivers[receiver] = min(receivers.get(receiver, 0) + 1, CONFIRMED)
            self._heard.setdefault(receiver, set()).add(sender)

    def forget(self, port: PortId) -> None:
        """Forget the cable at a port."""
        for receiver in self._arrived.pop(port, {}):
            self._heard[receiver].discard(port)
        for sender in self._heard.pop(port, set()):
            self._arrived[sender].pop(port)

    def is_at(self, port: PortId) -> bool:
        """Return whether probes of a port arrive somewhere, or it gets probes."""
        return bool(self._arrived.get(port) or self._heard.get(port))

    def links(self) -> Iterator[tuple[PortId, PortId]]:
        """Yield the cables between two switches that work in both directions, each once."""
        for sender, receivers in sorted(self._arrived.items()):
            if len(receivers) != 1:
                continue
            ((receiver, count),) = receivers.items()
            back = self._arrived.get(receiver, {})
            both = count >= CONFIRMED and back == {sender: CONFIRMED}
            if both and sender < receiver and sender[0] != receiver[0]:
                yield sender, receiver

    def lines(self, text: Callable[[PortId], str]) -> Iterator[str]:
        """Yield one line for each cable that is no link; ``text`` describes a port."""
        for sender, receivers in sorted(self._arrived.items()):
            if len(receivers) > 1:
                ports = " and ".join(map(text, sorted(receivers)))
                yield (
                    f"probes of {text(sender)} arrive at {ports}: it is no cable between two"
                    " switches"
                )
            for receiver in list(receivers)[: len(receivers) == 1]:
                if line := self._odd(sender, receiver, text):
                    yield line

    def _odd(self, sender: PortId, receiver: PortId, text: Callable[[PortId], str]) -> str | None:
        if receiver[0] == sender[0]:
            return f"{text(sender)} is connected to {text(receiver)} of the same switch"
        back = self._arrived.get(receiver)
        if not back:
            return f"probes of {text(sender)} arrive at {text(receiver)}, but none come back"
        if sender not in back:
            return (
                f"probes of {text(sender)} arrive at {text(receiver)}, whose own arrive elsewhere"
            )
        return None


# --- where cables are declared ----------------------------------------------------------------


class Wiring:
    """The wrong cables between switches; a port has one cable.

    ``declared`` is the port at the other end, for each port of a link between switches.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._wrong: set[frozenset[Port]] = set()
        self.fit(fabric)

    def fit(self, fabric: Fabric) -> None:
        """Go on with the links of another fabric."""
        self.declared: Mapping[Port, Port] = dict(channels_between(fabric.links))
        self._links = {
            end: link.name
            for link in fabric.links
            for end in ((link.a, link.a_port), (link.b, link.b_port))
        }
        self._wrong = {cable for cable in self._wrong if self._is_wrong(cable)}

    def _is_wrong(self, cable: frozenset[Port]) -> bool:
        """Return whether a cable is at a port of a link, and not that link."""
        return any(
            port in self.declared and cable != frozenset((port, self.declared[port]))
            for port in cable
        )

    def see(self, sender: Port, receiver: Port) -> bool:
        """Take note that a frame of ``sender`` has arrived at ``receiver``.

        Returns whether that is what the fabric declares.
        """
        cable = frozenset((sender, receiver))
        is_right = self.declared.get(sender) == receiver
        if is_right or cable not in self._wrong:
            self.unplug(sender)
            self.unplug(receiver)
            if not is_right:
                self._wrong.add(cable)
        return is_right

    def unplug(self, port: Port) -> None:
        """Forget the cable at a port, which has lost its carrier or has another cable."""
        self._wrong = {cable for cable in self._wrong if port not in cable}

    def link_at(self, port: Port) -> str:
        """Return the name of the declared link at a port of a link."""
        return self._links[port]

    @property
    def wrong_ports(self) -> frozenset[Port]:
        """The ports whose cable leads elsewhere."""
        return frozenset[Port]().union(*self._wrong)

    @property
    def links(self) -> frozenset[str]:
        """The names of the declared links that do not exist because of wrong cables."""
        return frozenset(self._links[port] for port in self.wrong_ports if port in self._links)

    def lines(self) -> list[str]:
        """Return one line for each wrong cable."""
        lines = []
        for cable in sorted(sorted(cable) for cable in self._wrong):
            a, b = cable[0], cable[-1]
            other = "" if a == b else f" ({port_text(b)}: {self._declared(b)})"
            lines.append(
                f"{port_text(a)} is connected to {port_text(b)},"
                f" declared: {self._declared(a)}{other}"
            )
        return lines

    def _declared(self, port: Port) -> str:
        peer = self.declared.get(port)
        return port_text(peer) if peer else "no switch"
