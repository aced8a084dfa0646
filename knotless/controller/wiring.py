"""Which cables are where the fabric declares them, as probes show. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from knotless.controller.draining import Port, channels_between
from knotless.topologies.fabric import Fabric


def port_text(port: Port) -> str:
    """Return ``s1:2``."""
    return f"{port[0]}:{port[1]}"


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
        """Whether a cable is at a port of a link, and not that link."""
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
        found = []
        for cable in sorted(sorted(cable) for cable in self._wrong):
            a, b = cable[0], cable[-1]
            other = "" if a == b else f" ({port_text(b)}: {self._declared(b)})"
            found.append(
                f"{port_text(a)} is connected to {port_text(b)},"
                f" declared: {self._declared(a)}{other}"
            )
        return found

    def _declared(self, port: Port) -> str:
        far = self.declared.get(port)
        return port_text(far) if far else "no switch"
