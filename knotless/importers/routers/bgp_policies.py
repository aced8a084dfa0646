"""Effects of route maps and prefix lists on announcements: refusals and changes."""

from __future__ import annotations

from dataclasses import dataclass

from knotless.importers.findings import Findings
from knotless.importers.frr.configuration import IPV6, FrrConfiguration, MapEntry, NeighbourSettings
from knotless.importers.prefixes import prefix_of
from knotless.importers.routers.bgp_sessions import Session, Speaker

_NO_ZEBRA_MATCHES_BEFORE = (9,)
"""The version before which bgpd does not know what zebra matches; later ones may."""


@dataclass(frozen=True)
class Change:
    """The changes of an announcement by a policy; None: it stays as it is.

    ``prepended`` are put in front of the AS path. With ``keeps`` the receiver announces it no
    further.
    """

    prepended: tuple[int, ...] = ()
    metric: int | None = None
    preference: int | None = None
    keeps: bool | None = None


@dataclass(frozen=True)
class Redistributed:
    """The source of a route that its router itself announces."""

    kind: str
    interface: str | None
    tag: int = 0


class Policies:
    """The policies of speakers. What is not followed becomes a missing fact when it is met."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def sent(self, session: Session, sender: Speaker, prefix: str, family: str) -> Change | None:
        """Return what the policy of the sender does; None if it announces nothing.

        Without a policy where RFC 8212 requires one, nothing is announced.
        """
        return self._of_session(sender, session.sends, "out", prefix, family)

    def taken(self, session: Session, receiver: Speaker, prefix: str, family: str) -> Change | None:
        """Return what the policy of the receiver does; None if it refuses."""
        return self._of_session(receiver, session.takes, "in", prefix, family)

    def _of_session(
        self,
        speaker: Speaker,
        settings: NeighbourSettings,
        direction: str,
        prefix: str,
        family: str,
    ) -> Change | None:
        route_map = settings.maps.get((family, direction))
        prefix_list = settings.lists.get((family, direction))
        if route_map is None and prefix_list is None and speaker.configuration.policy_required:
            return None
        if prefix_list is not None and not self._in_list(speaker, family, prefix_list, prefix):
            return None
        return self.applied(speaker, route_map, prefix, family)

    def applied(
        self,
        speaker: Speaker,
        name: str | None,
        prefix: str,
        family: str,
        source: Redistributed | None = None,
    ) -> Change | None:
        """Return what a route map does; None if it refuses. ``source`` is that of an own route."""
        if name is None:
            return Change()
        configuration, router = speaker.configuration, speaker.router.name
        entries = configuration.route_maps.get(name)
        if entries is None:
            self._findings.gap(
                f"route-map {name} of {router}", speaker.router.source.cause(f"route-map {name}")
            )
            return Change()
        change, accepted, least = Change(), False, 0
        for number in sorted(entries):
            entry = entries[number]
            if number < least or not self._matches(speaker, name, entry, prefix, family, source):
                continue
            if entry.unclear:
                what = f"what {entry.unclear[0]!r} in route-map {name} of"
                self._findings.gap(
                    f"{what} {router} does to routes",
                    speaker.router.source.cause(f"route-map {name}", entry.unclear[0]),
                )
            if not entry.permit:
                return None
            accepted, change = True, _then(change, entry)
            if entry.goto is None:
                break
            least = max(entry.goto, number + 1)
        return change if accepted else None

    def _matches(
        self,
        speaker: Speaker,
        name: str,
        entry: MapEntry,
        prefix: str,
        family: str,
        source: Redistributed | None,
    ) -> bool:
        if not all(
            kind == family and self._in_list(speaker, kind, listed, prefix)
            for kind, listed in entry.lists
        ):
            return False
        if entry.interfaces or entry.tags:
            if source is None:
                what = f"match interface or tag in route-map {name} of {speaker.router.name}"
                self._findings.gap(
                    f"what '{what}' does to routes that it has learned",
                    speaker.router.source.cause(f"route-map {name}"),
                )
                return True
            if any(interface != source.interface for interface in entry.interfaces):
                return False
            if any(tag != source.tag for tag in entry.tags):
                return False
        for what, value in entry.of_zebra:
            if not _matches_in_zebra(what, value, prefix, source) and not _ignores_zebra(
                speaker.configuration
            ):
                self._findings.gap(
                    f"whether bgpd of {speaker.router.name} knows the match by {what} in route-map"
                    f" {name}: its version (frr version)",
                    speaker.router.source.cause(f"route-map {name}"),
                )
        return True

    def _in_list(self, speaker: Speaker, family: str, name: str, text: str) -> bool:
        rules = speaker.configuration.prefix_lists.get((family, name))
        if rules is None:
            self._findings.gap(
                f"prefix-list {name} of {speaker.router.name}",
                speaker.router.source.cause(f"prefix-list {name}"),
            )
            return True
        wanted = prefix_of(text)
        longest = 128 if family == IPV6 else 32
        length = longest - (wanted.size.bit_length() - 1)
        for _, rule in sorted(rules, key=lambda numbered: numbered[0]):
            inside = rule.prefix.has(wanted)
            if inside and rule.least <= length <= rule.most:
                return rule.permit
        return False


def _ignores_zebra(configuration: FrrConfiguration) -> bool:
    """Tell whether bgpd does without the matches that only zebra knows, as FRR 8.4 was seen to."""
    return bool(configuration.version) and configuration.version < _NO_ZEBRA_MATCHES_BEFORE


def _matches_in_zebra(what: str, value: str, prefix: str, source: Redistributed | None) -> bool:
    if what == "protocol":
        return value == ("bgp" if source is None else source.kind)
    return value == prefix.partition("/")[2]


def _then(change: Change, entry: MapEntry) -> Change:
    """Return a change with what an entry of a route map sets as well."""
    return Change(
        (*entry.prepend, *change.prepended),
        change.metric if entry.metric is None else entry.metric,
        change.preference if entry.preference is None else entry.preference,
        change.keeps if entry.keeps is None else entry.keeps,
    )
