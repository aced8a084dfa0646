"""Cutting, mending and changing links of a running fabric, from any process.

After a cut with carrier loss both switches (or switch and host) see what they see when a cable is
pulled. A silent cut leaves the carrier up: the emulator drops the frames, in both directions or in
one.

At a switch, carrier loss is the operational state 'dormant' (RFC 2863; the kernel then shows
NO-CARRIER, and Open vSwitch reports LINK_DOWN). What the switch still sends there reaches the
emulator, which drops and counts it at once. If the interface were down, the kernel would drop it;
the emulator would wait for it for 200 ms, in which it would occupy an ingress buffer and pause
links. A host's interface loses its carrier because the emulator's end goes down.

What is cut is stored nowhere else: a link is cut if both its ends have no carrier. The links of a
switch that is stopped lose it at their far end only, and are cut or mended as others are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from knotless.base.errors import EmulationError
from knotless.emulation import namespaces, state, wiring
from knotless.emulation.daemon import Daemon
from knotless.emulation.names import Names
from knotless.emulation.undo import taking_back
from knotless.emulation.wiring import Cable, End
from knotless.topologies.formats import files
from knotless.topologies.link_names import LinkNames
from knotless.verification.cut_links import CutLinks

_LIVE = "mode default state up"
_DORMANT = "mode dormant state dormant"
_SHOWN = 4


@dataclass(frozen=True)
class Cut:
    """A link that is cut; ``channels`` are those that drop frames although there is carrier."""

    link: str
    carrier: bool
    channels: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.carrier:
            return f"{self.link} (no carrier)"
        return f"{self.link} (silently, {' and '.join(self.channels)})"

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Cut:
        """Return the cut of an entry that :meth:`as_json` wrote."""
        return cls(entry["link"], entry["carrier"], tuple(entry["channels"]))

    def as_json(self) -> dict[str, object]:
        """Return the entry of ``cut`` in ``knotless status --json``."""
        return {"link": self.link, "carrier": self.carrier, "channels": list(self.channels)}


class Cables:
    """The cables of a running fabric."""

    def __init__(
        self, names: Names, cables: Sequence[Cable], links: Literal["emulated", "plain"]
    ) -> None:
        self._names = names
        self._cables = cables
        self._by_name = LinkNames(
            (cable, (cable.a.owner, cable.a.port), (cable.b.owner, cable.b.port))
            for cable in cables
        )
        self._emulated = links == "emulated"
        self._daemon = Daemon(names.emulator_socket, {})

    @classmethod
    def of_running(cls, names: Names) -> Cables:
        """Return those of the fabric with these names.

        Raises :class:`EmulationError` if it is not running.
        """
        settings = state.require_running(names).settings
        fabric = files.read(names.fabric_file)
        cables = wiring.divided(wiring.wire(fabric), settings.get("switch_processes", 1))
        return cls(names, cables, settings.get("links", "emulated"))

    def find(self, text: str) -> list[Cable]:
        """Return the cables that ``text`` names: ``s1-s2``, ``s1:2-s2:3``, ``h1-s1`` or ``h1``.

        More than one only if parallel links join two switches and no ports are given. Raises
        :class:`EmulationError` if there is none, or if it names links between different switches.
        """
        if matches := self._by_name.find(text, EmulationError):
            return matches
        names = ", ".join(cable.name for cable in self._cables[:_SHOWN])
        more = ", ..." if len(self._cables) > _SHOWN else ""
        raise EmulationError(f"no link {text[:80]!r}; links are {names}{more}")

    def one(self, text: str) -> Cable:
        """Return the only cable that ``text`` names; raises :class:`EmulationError`."""
        first, *others = self.find(text)
        if others:
            names = ", ".join(cable.name for cable in (first, *others))
            raise EmulationError(f"{text!r} is {len(others) + 1} links; write one of {names}")
        return first

    def of_channel(self, text: str) -> Cable:
        """Return the cable of a channel, ``s1:2``, or the only one that ``text`` names otherwise.

        Raises :class:`EmulationError`.
        """
        for cable in self._cables:
            if text in (channel_of(cable.a), channel_of(cable.b)):
                return cable
        return self.one(text)

    def cut(self, cable: Cable, *, silent: bool = False, sender: str | None = None) -> None:
        """Cut a link; if ``silent``, frames are dropped while the carrier stays up.

        ``sender`` is the end whose frames alone are dropped; None stands for both. Raises
        :class:`EmulationError` if the emulator does not answer, or for a silent cut of a plain
        link; the link is then as it was.
        """
        if sender is not None and not silent:
            raise EmulationError("one direction can only be cut silently")
        channel = _channel_from(cable, sender)
        if silent and not self._emulated:
            raise EmulationError("plain links have no emulator that could drop frames silently")
        with self._restoring(cable):
            if self._emulated:
                # First the frames: the emulator must not send on an interface that is down.
                if sender is not None:
                    self._daemon.set_link(cable.name, up=True)
                self._daemon.set_link(cable.name, up=False, channel=channel)
            self._set_carriers({cable: not silent})

    def set_line(
        self, cable: Cable, changes: Mapping[str, float], *, sender: str | None = None
    ) -> list[dict[str, Any]]:
        """Change rate, delay, jitter and faults of a link while frames are under way.

        Frames that wait or are under way stay, in their order. The links keep the changes until
        the fabric ends.

        Parameters
        ----------
        cable : Cable
            The link.
        changes : mapping of str to float
            New values of ``rate_mbps``, ``delay_us``, ``jitter_us``, ``loss``, ``corrupt``,
            ``duplicate`` and ``reorder``, which are shares of frames, and ``line_errors``, the bit
            error rate. Without any, nothing changes.
        sender : str or None
            The end whose frames alone are concerned; None stands for both.

        Returns
        -------
        list of dict
            All these values of each channel that is concerned, which ``channel`` names.

        Raises
        ------
        EmulationError
            The link is plain, ``sender`` is none of its ends, or the emulator refuses a value.

        """
        channel = _channel_from(cable, sender)
        if not self._emulated:
            raise EmulationError("plain links have no emulator that could change them")
        return self._daemon.set_line(cable.name, changes, channel=channel)

    def mend(self, cable: Cable) -> None:
        """Restore a link, however it was cut.

        Raises :class:`EmulationError` if that cannot be done; the link is then as it was.
        """
        with self._restoring(cable):
            self._set_carriers({cable: False})
            if self._emulated:
                self._daemon.set_link(cable.name, up=True)

    @contextmanager
    def _restoring(self, cable: Cable) -> Iterator[None]:
        """Cut and mend a link as it was before, if the block fails."""
        is_unplugged = cable in self._unplugged([cable])
        dropping = self._dropping().get(cable.name, []) if self._emulated else []

        def restore_frames() -> None:
            self._daemon.set_link(cable.name, up=True)
            for channel in dropping:
                self._daemon.set_link(cable.name, up=False, channel=channel)

        with taking_back() as steps:
            if self._emulated:
                steps.append(restore_frames)
            steps.append(lambda: self._set_carriers({cable: is_unplugged}))
            yield

    def cuts(self) -> list[Cut]:
        """Return all links that are cut, in the fabric's order; raises :class:`EmulationError`."""
        unplugged = self._unplugged(self._cables)
        dropping = self._dropping() if self._emulated else {}
        cuts = []
        for cable in self._cables:
            carrier = cable not in unplugged
            if not carrier or cable.name in dropping:
                channels = tuple(dropping.get(cable.name, ())) if carrier else ()
                cuts.append(Cut(cable.name, carrier, channels))
        return cuts

    def _dropping(self) -> dict[str, list[str]]:
        """Return the channels that drop all frames, by their link."""
        dropping: dict[str, list[str]] = {}
        for channel in self._daemon.counters()["channels"]:
            if channel["cut"]:
                dropping.setdefault(channel["link"], []).append(channel["channel"])
        return dropping

    def cut_links(self) -> tuple[CutLinks, list[str]]:
        """Return the channels that carry nothing now, and the names of their links.

        Links of switches that are stopped are among them. Raises :class:`EmulationError`.
        """
        ends = {cable.name: [channel_of(end) for end in cable.ends] for cable in self._cables}
        cuts = self.cuts()
        down = {channel for cut in cuts if not cut.carrier for channel in ends[cut.link]}
        silent = {channel for cut in cuts for channel in cut.channels}
        stopped = state.stopped_switches(self._names)
        names = [str(cut) for cut in cuts]
        for cable in self._cables:
            if off := [end.owner for end in cable.ends if end.owner in stopped]:
                down |= set(ends[cable.name])
                names.append(f"{cable.name} ({off[0]} is stopped)")
        return CutLinks(frozenset(down | silent), frozenset(down)), names

    def update_carriers(self, switches: Collection[str]) -> None:
        """Take or give the links of switches that have just stopped or started their carrier.

        Those that are cut stay so. Raises :class:`EmulationError`.
        """
        theirs = [one for one in self._cables if any(end.owner in switches for end in one.ends)]
        unplugged = self._unplugged(theirs)
        self._set_carriers({cable: cable in unplugged for cable in theirs})

    def _unplugged(self, cables: Iterable[Cable]) -> set[Cable]:
        """Return the cables of these that are cut, not silently."""
        parts = {
            cable: [
                self._part(end) for end in cable.ends if self._emulated or end.host is None
            ]  # of a plain link of a host, the switch's end tells
            for cable in cables
        }
        spaces = {part.namespace for of_cable in parts.values() for part in of_cable}
        up = {space: namespaces.interfaces_up(space) for space in spaces}
        return {
            cable
            for cable, of_cable in parts.items()
            if not any(part.interface in up[part.namespace] for part in of_cable)
        }

    def _set_carriers(self, unplugged: Mapping[Cable, bool]) -> None:
        """Give and take carriers, for each cable by whether it is cut.

        One that is not, whose one end is stopped, has none at the other. If both are, each has it:
        else it would look as if it were cut.
        """
        stopped = state.stopped_switches(self._names)
        commands: dict[str, list[str]] = {}
        for cable, is_cut in unplugged.items():
            for end, far in (cable.ends, cable.ends[::-1]):
                part = self._part(end)
                down = is_cut or (far.owner in stopped and end.owner not in stopped)
                line = f"link set {part.interface} {part.down if down else part.up}"
                commands.setdefault(part.namespace, []).append(line)
        for namespace, lines in commands.items():
            namespaces.ip_batch(lines, namespace=namespace)

    def _part(self, end: End) -> Part:
        """Return the interface whose state is changed to take the carrier of an end."""
        names = self._names
        if end.host is None:
            up, down = (_LIVE, _DORMANT) if self._emulated else ("up", "down")
            return Part(names.switches_namespace(end.process), end.interface, up, down)
        if self._emulated:
            return Part(names.links_namespace, end.inner, "up", "down")
        return Part(names.host_namespace(end.owner), end.interface, _LIVE, _DORMANT)


@dataclass(frozen=True)
class Part:
    """An interface, and the arguments of ``ip link set`` that give and take its carrier."""

    namespace: str
    interface: str
    up: str
    down: str


def _channel_from(cable: Cable, sender: str | None) -> str | None:
    """Return the channel of a link that leaves ``sender``; None, for both, if that is None."""
    if sender is None:
        return None
    for end in cable.ends:
        if end.owner == sender:
            return channel_of(end)
    ends = " or ".join(end.owner for end in cable.ends)
    raise EmulationError(f"{sender[:80]!r} is not an end of {cable.name}: {ends} is")


def channel_of(end: End) -> str:
    """Return the name of the channel that leaves by this end: ``s1:2``, or ``h1`` for a host."""
    return end.owner if end.host is not None else f"{end.owner}:{end.port}"
