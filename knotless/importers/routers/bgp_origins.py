"""The routes that BGP speakers announce themselves: networks, and what they redistribute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from knotless.importers.findings import Findings
from knotless.importers.frr.configuration import family_of
from knotless.importers.routers.bgp_policies import Change, Policies, Redistributed
from knotless.importers.routers.bgp_sessions import Speaker
from knotless.importers.routers.static_next_hops import StaticTable

IGP, _INCOMPLETE = 0, 2
PREFERENCE = 100
"""The local preference of what is learned, if no policy sets it."""


class Route(NamedTuple):
    """A speaker's route to a prefix.

    ``metric`` is sent to other AS only if the route is the speaker's own. With ``keeps`` it is
    announced to no one. ``gateways`` refuse it: they are its next hop.
    """

    path: tuple[int, ...]
    origin: int
    metric: int = 0
    preference: int = PREFERENCE
    keeps: bool = False
    own: bool = False
    gateways: frozenset[str] = frozenset()


class Origins:
    """The announcements of all speakers, by their configurations, tables and policies."""

    def __init__(
        self,
        speakers: Sequence[Speaker],
        tables: Sequence[StaticTable],
        policies: Policies,
        findings: Findings,
    ) -> None:
        self._speakers, self._tables = speakers, tables
        self._policies, self._findings = policies, findings

    def of_family(self, family: str) -> dict[str, dict[int, Route]]:
        """Return the routes that speakers announce themselves, by prefix and speaker."""
        origins: dict[str, dict[int, Route]] = {}
        for number, speaker in enumerate(self._speakers):
            if speaker.configuration.asn is None:
                continue
            for prefix, route in self._originated(speaker, self._tables[number], family):
                by_speaker = origins.setdefault(prefix, {})
                by_speaker[number] = min(route, by_speaker.get(number, route), key=_preferred)
        return origins

    def _originated(
        self, speaker: Speaker, table: StaticTable, family: str
    ) -> Iterator[tuple[str, Route]]:
        configuration = speaker.configuration
        own = {**table.far, **table.near, **speaker.connected}
        for prefix, route_map in configuration.networks.items():
            if family_of(prefix) != family:
                continue
            if configuration.network_check and prefix not in own:
                self._note_absent(speaker, prefix)
                continue
            source = Redistributed("network", None)
            change = self._policies.applied(speaker, route_map, prefix, family, source)
            if change is not None:
                yield prefix, _own(change, IGP, frozenset())
        for prefix, hop in speaker.connected.items():
            if family_of(prefix) != family or prefix.startswith("fe80:"):
                continue
            source = Redistributed("connected", hop.interface)
            yield from self._redistributed(speaker, prefix, family, [source], frozenset())
        for prefix, hops in {**table.far, **table.near}.items():
            if family_of(prefix) != family or prefix in speaker.connected:
                continue
            if prefix not in table.near and (family, "static") in configuration.redistributed:
                self._findings.gap(
                    f"whether {speaker.router.name} announces its static route to {prefix}, which"
                    " counts after those of BGP",
                    speaker.router.source.cause(prefix),
                )
            sources = [
                Redistributed("static", hop.interface, tag)
                for hop in hops
                for tag in table.tags[prefix]
            ]
            yield from self._redistributed(speaker, prefix, family, sources, table.gateways(prefix))

    def _redistributed(
        self,
        speaker: Speaker,
        prefix: str,
        family: str,
        sources: Sequence[Redistributed],
        gateways: frozenset[str],
    ) -> Iterator[tuple[str, Route]]:
        key = (family, sources[0].kind)
        if key not in speaker.configuration.redistributed:
            return
        route_map = speaker.configuration.redistributed[key]
        changes = {
            self._policies.applied(speaker, route_map, prefix, family, source) for source in sources
        }
        if len(changes) > 1:
            self._findings.gap(
                f"what route-map {route_map} of {speaker.router.name} does to its static route to"
                f" {prefix}, which has several next hops",
                speaker.router.source.cause(f"route-map {route_map}"),
                speaker.router.source.cause(prefix),
            )
        for change in changes:
            if change is not None:
                yield prefix, _own(change, _INCOMPLETE, gateways)
                return

    def _note_absent(self, speaker: Speaker, prefix: str) -> None:
        name = speaker.router.name
        if any(map(speaker.is_link, speaker.interfaces)):
            self._findings.note(
                f"{name} does not announce {prefix}: it is in no table of {name}",
                speaker.router.source.cause(prefix),
            )
        else:
            self._findings.gap(
                f"whether {name} has the network {prefix}: addresses of interfaces",
                speaker.router.source.cause(prefix),
            )


def _own(change: Change, origin: int, gateways: frozenset[str]) -> Route:
    return Route(
        path=change.prepended,
        origin=origin,
        metric=change.metric or 0,
        preference=PREFERENCE if change.preference is None else change.preference,
        keeps=bool(change.keeps),
        own=True,
        gateways=gateways,
    )


def first_compared(route: Route) -> tuple[int, int, int]:
    """Return by what routes are compared first; the smallest is the best."""
    return -route.preference, len(route.path), route.origin


def _preferred(route: Route) -> tuple[tuple[int, int, int], int]:
    return first_compared(route), route.metric
