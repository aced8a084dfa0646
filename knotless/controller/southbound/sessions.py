"""The sessions of the switches of a fabric, among those of all connected switches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from knotless.controller.draining import Counters, Port
from knotless.controller.observed import Observed
from knotless.controller.southbound.session import Session, SwitchGoneError

Sessions = dict[int, Session]
"""By dpid."""


def by_name(sessions: Sessions, observed: Observed) -> Mapping[str, Session]:
    """Return the sessions of switches of the fabric, by name."""
    switches = observed.switches
    return {switches[dpid].name: of for dpid, of in sessions.items() if dpid in switches}


def installed(sessions: Sessions, observed: Observed) -> Iterator[tuple[str, Session]]:
    """Yield the switches that hold their rules, with their sessions."""
    for name, session in by_name(sessions, observed).items():
        switch = observed.by_name.get(name)
        if switch is not None and switch.installed:
            yield name, session


def port_counters(sessions: Sessions, observed: Observed) -> Counters:
    """Return the frames received and sent by each port of the connected switches."""
    found: dict[Port, tuple[int, int]] = {}
    for name, session in by_name(sessions, observed).items():
        with suppress(SwitchGoneError):
            counters = session.port_counters().items()
            found.update({(name, port): of for port, of in counters})
    return found
