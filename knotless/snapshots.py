"""A fabric of others, read from files: what ``knotless check`` finds of it, for notebooks.

    import knotless as kn

    before = kn.snapshot("fabric")
    before.verdict()
    after = before.with_changes({"leaf0/appl.json": None})
    after.diff(before)

Files are read once; changes of a snapshot are kept in memory. Readers, verdicts and words are those
of the command.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from knotless.arguments import checked
from knotless.base.computed_routes import COMPUTED
from knotless.base.counting import counted
from knotless.base.errors import KnotlessError
from knotless.base.printable import html_text, listed, printable
from knotless.base.suggestions import is_not_one_of, suggestion
from knotless.forwarding.openflow.ofctl_writer import write as rules_text
from knotless.importers.causes import KnownPlaces, Place, places_of
from knotless.importers.changed_lines import (
    ChangedLines,
    changed_lines,
    smallest_set,
    with_lines,
)
from knotless.importers.fabric import AnyFabric, RulesFabric, TableFabric
from knotless.importers.file_kinds import FoundFile
from knotless.importers.frr.configuration import FrrConfiguration
from knotless.importers.next_hops import HERE
from knotless.importers.not_read import NotRead
from knotless.importers.openflow.flow_changes import bridge_of
from knotless.importers.paths import fabric_of, sources_of
from knotless.importers.reading import read_source
from knotless.importers.routers.vtysh_changes import changed_configuration, running_configuration
from knotless.importers.sonic.config_change import changed_config, config_of, undecided
from knotless.importers.sources import Source, source_of
from knotless.notebook import Verdict
from knotless.shown import Comparison, Drawing
from knotless.verification.failure_models import model_of_imported
from knotless.verification.failures import MAX_SETS, FailureTable
from knotless.verification.imported import verdict_of_imported
from knotless.verification.pair_paths import followed_in
from knotless.verification.verdict_findings import RULES, Finding, findings
from knotless.verification.verdict_parts import is_pool

if TYPE_CHECKING:
    from knotless.verification.imported_verdict import ImportedVerdict

__all__ = ["Snapshot", "SnapshotDiff", "snapshot"]
_NOT_FIGURES = frozenset({"fabric", "problems", "witnesses", "notes", "ignored", "vcs", "losses"})
_NOT_FIGURES |= {"assumes", "unread", "not_read"}
_MOST_SHOWN = 10


@checked
def snapshot(*paths: str | Path, hosts: Sequence[str] = (), routes: str | None = None) -> Snapshot:
    """Read a fabric of others from files, folders and archives, as ``knotless check`` does.

    Parameters
    ----------
    *paths : str or Path
        Files with the state of switches, folders and archives of these.
    hosts : sequence of str
        Patterns of the names of neighbours by LLDP that are hosts, whatever they announce.
    routes : str, optional
        ``bgp`` or ``static``: routes are computed from configurations. By default they are those
        that files list.

    Returns
    -------
    Snapshot
        What was read; a fabric is made of it when it is asked something.

    Raises
    ------
    KnotlessError
        A file cannot be read, or a named one is of no known kind.

    """
    if not paths:
        raise KnotlessError("snapshot() needs the path of a folder, a file or an archive")
    for path in paths:
        if not isinstance(path, str | Path):
            raise KnotlessError(f"paths: {str(path)[:40]!r} is no path")
    if isinstance(hosts, str):
        raise KnotlessError(f"hosts: a list of patterns, such as [{hosts[:40]!r}]")
    if routes is not None and routes not in COMPUTED:
        raise KnotlessError(f"routes: {str(routes)[:40]!r} {is_not_one_of(COMPUTED)}")
    special: list[str] = []
    files = tuple(_read(source, routes) for source in sources_of(paths, special))
    return Snapshot(tuple(map(str, paths)), files, tuple(special), tuple(hosts), routes)


def _read(source: Source, routes: str | None) -> ReadFile:
    return ReadFile(source, read_source(source, configurations=routes is not None))


@dataclass(frozen=True)
class ReadFile:
    """A file, and what its reader has found in it."""

    source: Source
    content: FoundFile | NotRead


@dataclass(frozen=True, repr=False)
class Snapshot:
    """The files of a fabric at one time, and what they mean.

    Attributes
    ----------
    paths : tuple of str
        What was read.
    files : tuple of ReadFile
        The files with their contents.
    special : tuple of str
        Members of archives that are no regular files.
    hosts, routes_by : tuple of str, str or None
        As ``hosts`` and ``routes`` of :func:`snapshot`.
    unclear : tuple of str
        Facts that the files do not tell: nothing is certain without them.

    """

    paths: tuple[str, ...]
    files: tuple[ReadFile, ...] = field(repr=False)
    special: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    routes_by: str | None = None
    unclear: tuple[str, ...] = ()

    @cached_property
    def imported(self) -> AnyFabric:
        """The fabric of the files; raises KnotlessError if they are not of one."""
        contents = [file.content for file in self.files]
        imported = fabric_of(
            self.paths[0], contents, self.special, self.hosts, routes_by=self.routes_by
        )
        for text in self.unclear:
            imported.findings.unclear(text)
        return imported

    @cached_property
    def imported_verdict(self) -> ImportedVerdict:
        """The verdict as the command has it: ``source`` of :meth:`verdict`."""
        return verdict_of_imported(self.imported)

    def verdict(self) -> Verdict:
        """Return the verdict: whether all is delivered, and whether the fabric can deadlock.

        Returns
        -------
        Verdict
            Keys of ``knotless check --json``; ``source`` is the
            :class:`knotless.verification.imported_verdict.ImportedVerdict`.

        """
        verdict = self.imported_verdict
        values = {k: value for k, value in verdict.as_json().items() if k not in _NOT_FIGURES}
        return Verdict(f"check of {verdict.fabric}", values, verdict.text, verdict)

    @cached_property
    def place_cache(self) -> KnownPlaces:
        """The places that were found in files; filled by :func:`places_of`."""
        return {}

    @cached_property
    def _places(self) -> dict[str, list[Place]]:
        def read(file: str) -> bytes | None:
            of_path = self.by_path.get(Path(file))
            return None if of_path is None else of_path.source.data

        return places_of(self.imported_verdict.causes, read, self.place_cache)

    @cached_property
    def by_path(self) -> dict[Path, ReadFile]:
        """The files by their path; those of archives have one as well."""
        return {file.source.path: file for file in self.files}

    def findings(self) -> Comparison:
        """Return what the check finds: a row for each finding, as in SARIF; ``source`` has them.

        ``places`` are those of its causes in files.
        """
        all_of_them = tuple(findings(self.imported_verdict, None))
        places = self._places
        rows = tuple(
            (
                RULES[one.rule][0],
                one.rule,
                one.text.split("\n", 1)[0],
                ", ".join(dict.fromkeys(place.text for _, place in one.places(places))),
            )
            for one in all_of_them
        )
        title = f"findings of {self.imported_verdict.fabric}"
        return Comparison(
            title,
            ("level", "rule", "text", "places"),
            rows,
            counted(len(rows), "findings"),
            all_of_them,
        )

    def channels(self) -> list[dict[str, Any]]:
        """Return a row for each channel between switches; ``kn.frame(snapshot)`` has them.

        Returns
        -------
        list of dict
            ``channel`` (``SWITCH:PORT``), its ends ``switch`` and ``to``, the number of delivered
            ``pairs`` whose packets take it, and whether it is ``on_cycle`` of the verdict.

        """
        imported, channels = self.imported, self.imported.channels
        counted_states = [one.state for one in imported.traffics if one.counted]
        pairs = np.sum([state.loads for state in counted_states], axis=0).tolist()
        names = [one.rpartition("/")[0] for one in self.imported_verdict.cycle if not is_pool(one)]
        on_cycle = {*names}
        rows = []
        for number, (tail, head) in enumerate(zip(channels.tail, channels.head, strict=True)):
            name = channels.name(number, 0).rpartition("/")[0]
            ends = {"switch": channels.names[tail], "to": channels.names[head]}
            rows.append(
                {"channel": name, **ends, "pairs": pairs[number], "on_cycle": name in on_cycle}
            )
        return rows

    def routes(self, switch: str | None = None) -> list[dict[str, Any]]:
        """Return what switches do with packets for each destination; of all, or of one.

        Parameters
        ----------
        switch : str, optional
            The name of a switch.

        Returns
        -------
        list of dict
            Of tables of next hops ``switch``, ``destination`` and the names of ``ports``, of which
            packets take any one (``attached``: the destination is there). Of OpenFlow switches
            ``switch`` and ``rule``, each rule as ovs-ofctl writes it.

        Raises
        ------
        KnotlessError
            There is no such switch.

        """
        imported = self.imported
        names = imported.channels.names
        if switch is not None and switch not in names:
            raise KnotlessError(f"there is no switch {switch[:40]!r}; {suggestion(switch, names)}")
        chosen = [number for number, name in enumerate(names) if switch in (None, name)]
        return [row for number in chosen for row in _routes_of(imported, number)]

    def pair(self, source: str, destination: str) -> Comparison:
        """Follow a packet from a host to a host or an address.

        Returns
        -------
        Comparison
            A row for each link, with the packet's label there, and how likely it is taken; its
            ``source`` is the :class:`knotless.verification.pair_paths.FollowedPair`.

        Raises
        ------
        KnotlessError
            There is no such host or destination.

        """
        pair = followed_in(self.imported, source, destination)
        rows = tuple(
            (link["link"], link[pair.label.lower()], link.get("probability", 1.0))
            for link in pair.links
        )
        text = f"delivered to {', '.join(pair.delivered)}" if pair.delivered else pair.fate
        title = f"{source} to {destination}"
        return Comparison(title, ("link", pair.label, "probability"), rows, text, pair)

    def failures(
        self, failed: int = 1, react: str | None = None, *, seed: int = 1, samples: int = MAX_SETS
    ) -> Comparison:
        """Try failures of links and switches, as ``knotless check --failures`` does.

        Parameters
        ----------
        failed : int
            How many fail at once, 1 or 2.
        react : str, optional
            How routing reacts, ``bgp`` for example; by default as it fits the fabric.
        seed, samples : int
            Of more than ``samples`` pairs of failures, some are drawn with this seed.

        Returns
        -------
        Comparison
            A row for each group of failures that are alike; ``source`` is the failure table.

        Raises
        ------
        KnotlessError
            There is no such model, or it does not fit the fabric.

        """
        table = FailureTable(model_of_imported(self.imported, react), failed, seed, samples)
        for _ in table.evaluate():
            pass
        rows = tuple(
            (group.count, " + ".join(group.first.failed), group.first.text, group.undelivered)
            for group in table.groups
        )
        word = {True: "cannot deadlock", False: "CAN DEADLOCK", None: "UNKNOWN"}[table.acyclic]
        text = f"{word} after the {counted(len(table.verdicts), 'failures')} that were tried"
        columns = ("alike", "such as", "then it", "pairs lost")
        title = f"failures of {self.imported.fabric.name} ({table.reaction})"
        return Comparison(title, columns, rows, text, table)

    def draw(self) -> Drawing:
        """Draw the fabric, the cycle of the verdict in red."""
        from knotless.drawing import fabric_svg  # Matplotlib takes a second to load

        fabric, end_of = self.imported.fabric, self.imported.channels.end_of
        cycle = {end_of(name) for name in self.imported_verdict.cycle if not is_pool(name)}
        return Drawing(fabric.name, fabric_svg(fabric, cycle))

    def take_verdict(self, verdict: ImportedVerdict, places: Mapping[str, Any]) -> None:
        """Take a verdict that is there already, and places of causes in files that it has, too."""
        vars(self)["imported_verdict"], vars(self)["place_cache"] = verdict, dict(places)

    def text(self, name: str) -> str:
        """Return the contents of a file by its path, as for :meth:`with_changes`.

        Raises KnotlessError if there is no such file.
        """
        files = {str(file.source.path): file for file in self.files}
        path = self._path_called(name, files)
        if path not in files:
            raise KnotlessError(f"{name[:200]}: there is no such file")
        return files[path].source.data.decode(errors="replace")

    def with_changes(self, changes: Mapping[str, str | bytes | None]) -> Snapshot:
        """Return a snapshot with other files; nothing is written.

        Parameters
        ----------
        changes : mapping of str to str, bytes or None
            The new contents of files by their paths, as they are called in ``files`` or below the
            folder that was read; None: there is no such file. A file that is new is added.

        Raises
        ------
        KnotlessError
            A file that is to be removed does not exist, or a new one is of no known kind.

        """
        files = {str(file.source.path): file for file in self.files}
        for name, content in changes.items():
            path = self._path_called(name, files)
            if content is None:
                if path not in files:
                    raise KnotlessError(f"{name[:200]}: there is no such file to remove")
                del files[path]
                continue
            data = content.encode() if isinstance(content, str) else content
            old = files.get(path)
            if old is not None and old.source.data == data:
                continue
            source = source_of(Path(path), False, data)
            if old is not None:
                source = replace(old.source, data=data)
            files[path] = _read(source, self.routes_by)
        return replace(self, files=tuple(files[path] for path in sorted(files)))

    def with_config_changes(self, changes: Mapping[str, str | bytes]) -> Snapshot:
        """Return a snapshot after changes of SONiC, of FRR, or of rules of Open vSwitch.

        What the tables of buffers, PFC and QoS say is done at once. Where routes are those that
        files list, what a change of other tables, or of FRR, makes of them is not known, nor is the
        verdict.
        A switch divides a change into steps of its own: what happens between them is not judged.

        Parameters
        ----------
        changes : mapping of str to str or bytes
            For switches, by name, a JSON patch as for ``config apply-patch`` (RFC 6902), or a
            fragment as for ``config load``; for FRR lines as for ``vtysh`` (``no ip route ...``);
            for Open vSwitch bridges lines as for ``ovs-ofctl add-flows`` (``delete in_port=1``), or
            commands (``ovs-ofctl del-flows br0 in_port=1``).

        Raises
        ------
        KnotlessError
            There is nothing of a switch that can be changed so, or a change cannot be applied: then
            none is.

        """
        files: dict[str, str | bytes | None] = {}
        unclear = list(self.unclear)
        contents = [one.content for one in self.files]
        for name, change in changes.items():
            data = change.encode() if isinstance(change, str) else change
            try:
                if (bridge := bridge_of(name, contents)) is not None:
                    files[str(bridge.path)] = bridge.changed(data.decode(errors="replace"))
                    continue
                if (source := self._frr_of(name, data)) is not None:
                    lines = data.decode(errors="replace")
                    before = source.data.decode(errors="replace")
                    files[str(source.path)], names = changed_configuration(before, lines)
                else:
                    file = config_of(name, contents)
                    config = next(one.source.data for one in self.files if one.content is file)
                    files[str(file.path)], tables = changed_config(config, data)
                    names = undecided(tables)
            except KnotlessError as error:
                raise error.within(name) from None
            if self.routes_by is None and names:
                unclear.append(
                    f"the routes of {name} after the change of {listed(names, 3)}"
                    " (--routes bgp computes them from configurations)"
                )
        return replace(self.with_changes(files), unclear=tuple(unclear))

    def _frr_of(self, name: str, change: bytes) -> Source | None:
        """Return the file with the configuration of FRR that is to be changed; None for JSON."""
        if change.lstrip()[:1] in (b"{", b"["):
            return None
        return running_configuration(
            name,
            [
                file.source
                for file in self.files
                if isinstance(file.content, NotRead)
                or isinstance(file.content.value, FrrConfiguration)
            ],
        )

    def _path_called(self, name: str, files: Mapping[str, ReadFile]) -> str:
        """Return the path of a file, which may be called by its path below what was read."""
        inside = [str(Path(root, name)) for root in self.paths]
        return next((path for path in [name, *inside] if path in files), inside[0])

    def diff(self, other: Snapshot, *, most_checks: int = 100) -> SnapshotDiff:
        """Return what changes from this snapshot to another one.

        If the verdicts differ, the lines are looked for that turn it: few changed lines that,
        applied alone to this snapshot, give the verdict of the other.

        Parameters
        ----------
        other : Snapshot
            The later one.
        most_checks : int
            How many checks the search may take; 0: it is left out.

        """
        before, after = self._contents(), other._contents()
        lines = tuple(changed_lines(before, after))
        turning: tuple[ChangedLines, ...] = ()
        if self.imported_verdict.safe != other.imported_verdict.safe and most_checks:

            def turns(some: Sequence[ChangedLines]) -> bool:
                try:
                    return self._with_lines(some).verdict().safe == other.imported_verdict.safe
                except KnotlessError:
                    return False  # such files are not read

            if turns(lines):
                turning = tuple(smallest_set(lines, turns, most_checks - 1))
        return SnapshotDiff(self, other, lines, turning)

    def _contents(self) -> dict[str, bytes]:
        """Return the files by their paths below what was read, so that folders can be compared."""
        contents = {}
        for file in self.files:
            path = file.source.path
            root = next((one for one in self.paths if path.is_relative_to(one)), None)
            below = path if root is None or str(path) == root else path.relative_to(root)
            contents[str(below)] = file.source.data
        return contents

    def _with_lines(self, lines: Sequence[ChangedLines]) -> Snapshot:
        return self.with_changes(with_lines(self._contents(), lines))

    def __repr__(self) -> str:
        """Return what was read."""
        return (
            f"snapshot of {printable(', '.join(self.paths))}: {counted(len(self.files), 'files')}"
        )


def _routes_of(imported: AnyFabric, switch: int) -> Iterator[dict[str, Any]]:
    """Yield what a switch (its number) does with packets for each destination."""
    channels = imported.channels
    name = channels.names[switch]
    if isinstance(imported, RulesFabric):
        flows, groups = rules_text(imported.rules[name])
        for line in [*flows.splitlines(), *groups.splitlines()]:
            yield {"switch": name, "rule": line}
        return
    yield from _next_hops_of(imported, switch, name)


def _next_hops_of(imported: TableFabric, switch: int, name: str) -> Iterator[dict[str, Any]]:
    hops, channels = imported.hops, imported.channels
    actions, classes = hops.actions.listed(), hops.classes[:, switch]
    state = imported.traffics[0].state
    for destination, number in enumerate(hops.action_of[switch][classes].tolist()):
        _, ports = actions[number]
        shown = ["attached" if port == HERE else channels.port_name(switch, port) for port in ports]
        if hops.actions.count(number):
            to = state.destination_name(destination)
            yield {"switch": name, "destination": to, "ports": tuple(shown)}


@dataclass(frozen=True, repr=False)
class SnapshotDiff:
    """The difference between the snapshots ``before`` and ``after``.

    Attributes
    ----------
    lines : tuple of ChangedLines
        All changed lines of files.
    turning : tuple of ChangedLines
        Few lines that alone turn the verdict; empty if the verdicts are the same, or none were
        looked for. They need not be the fewest.

    """

    before: Snapshot
    after: Snapshot
    lines: tuple[ChangedLines, ...]
    turning: tuple[ChangedLines, ...]

    @property
    def figures(self) -> dict[str, tuple[Any, Any]]:
        """The figures of the verdict that differ, as they were and as they are."""
        old, new = self.before.verdict(), self.after.verdict()
        return {name: (old[name], new[name]) for name in old if old[name] != new[name]}

    @property
    def appeared(self) -> list[Finding]:
        """Findings that only the later snapshot has."""
        return _only_in(self.after, self.before)

    @property
    def gone(self) -> list[Finding]:
        """Findings that only the earlier snapshot has."""
        return _only_in(self.before, self.after)

    def __repr__(self) -> str:
        """Return the difference as lines of text."""
        return "\n".join(map(printable, self._text_lines()))

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html_text(line)}</p>" for line in self._text_lines())

    def _text_lines(self) -> Iterator[str]:
        old, new = self.before.verdict().text, self.after.verdict().text
        yield f"as before: {old}" if old == new else f"was: {old}"
        if old != new:
            yield f"now: {new}"
        yield from _some([f"turned by {change.text}" for change in self.turning])
        for name, (was, now) in self.figures.items():
            if not isinstance(was, list | str):
                yield f"{name.replace('_', ' ')}: {was} -> {now}"
        for word, changed in (("new", self.appeared), ("gone", self.gone)):
            yield from _some([f"{word}: {one.text.splitlines()[0]}" for one in changed])
        others = [change for change in self.lines if change not in self.turning]
        yield from _some([f"changed: {change.text}" for change in others])


def _only_in(one: Snapshot, other: Snapshot) -> list[Finding]:
    """Return the findings of a snapshot that another one has not, with the same text."""
    others = {(each.rule, each.text) for each in other.findings().source}
    return [each for each in one.findings().source if (each.rule, each.text) not in others]


def _some(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:_MOST_SHOWN]
    if len(lines) > _MOST_SHOWN:
        yield f"and {len(lines) - _MOST_SHOWN} more"
