"""The options of a check, by group, and which of them exclude each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from knotless.base.computed_routes import COMPUTED
from knotless.base.errors import KnotlessError
from knotless.base.flow_control import AUTO
from knotless.cli import complete
from knotless.cli.commands._verdict_options import (
    FreezeOptions,
    SwitchOptions,
    flow_control_option,
    refuse_with_endpoints,
)
from knotless.cli.numbers import Whole
from knotless.cli.options import details_option, grouped, json_option, observed_name_option

if TYPE_CHECKING:
    from knotless.traffic.endpoints import EndpointModel

REACTIONS = ("bgp", "bgp-valley-free", "static", "local", "engine")


@dataclass(frozen=True)
class Source:
    """The source of a check: ``paths``, or the running fabric ``name`` if ``live``; and how.

    ``hosts`` are patterns of names; ``routes`` says who computes the routes, None: nobody.
    ``patches`` are changes that are to be made, ``SWITCH=FILE``.
    """

    paths: tuple[str, ...]
    live: bool
    name: str | None
    hosts: tuple[str, ...]
    routes: str | None
    patches: tuple[str, ...]
    flow_control: str


source_options = grouped(
    "source",
    Source,
    click.argument("paths", nargs=-1, metavar="[PATH]..."),
    click.option(
        "--live", is_flag=True, help="Check the rules in the switches of a running fabric."
    ),
    observed_name_option,
    click.option(
        "--hosts",
        multiple=True,
        metavar="PATTERN",
        help="Neighbours by LLDP with such names, for example 'gpu-*', are hosts; may be repeated.",
    ),
    click.option(
        "--routes",
        type=click.Choice(COMPUTED, case_sensitive=False),
        help="Take routes from the configurations of routers, not from lists of routes: as BGP"
        " computes them, or only static ones.",
    ),
    click.option(
        "--patch",
        "patches",
        multiple=True,
        metavar="SWITCH=F",
        help="Also judge what a change would make of it: a JSON patch of a SONiC configuration,"
        " or a fragment to load; lines for vtysh, or ovs-ofctl add-flows. May be repeated.",
    ),
    flow_control_option,
)


@dataclass(frozen=True)
class Query:
    """A question instead of a verdict: the links of the packet ``pair``, or about a port."""

    pair: tuple[str, str] | None
    explain: str | None


query_options = grouped(
    "query",
    Query,
    click.option(
        "--pair",
        type=(str, str),
        metavar="FROM TO",
        help="Trace one packet instead, link by link; TO is a host, 'all' or multicast:N.",
    ),
    click.option(
        "--explain",
        metavar="SWITCH:PORT",
        help="Print instead what a port of a router leads to, and which file says so.",
    ),
)


@dataclass(frozen=True)
class FailureOptions:
    """The failures to try, sets of at most ``max_failed``; routing's reaction (None: default)."""

    max_failed: int
    react: str | None
    engine: str
    seed: int
    samples: int
    remedies: bool
    export: str | None


failure_options = grouped(
    "failures",
    FailureOptions,
    click.option(
        "--failures",
        "max_failed",
        type=Whole(),
        default=0,
        metavar="K",
        help="Also try every failure of a link or switch (1), or every two of them (2).",
    ),
    click.option(
        "--react",
        type=click.Choice(REACTIONS, case_sensitive=False),
        help="How routing reacts to a failure. Default: bgp for routers, else static.",
    ),
    click.option(
        "--engine",
        default="auto",
        show_default=True,
        shell_complete=complete.engines,
        help="The engine of --react engine.",
    ),
    click.option("--seed", type=Whole(), default=1, show_default=True, help="Seed of samples."),
    click.option(
        "--samples",
        type=Whole(),
        default=20_000,
        show_default=True,
        help="Pairs of failures to try; of more, this many are drawn.",
    ),
    click.option("--remedies", is_flag=True, help="Propose changes, each proven safe."),
    click.option(
        "--export",
        metavar="DIR",
        help="Write the remedies as files for SONiC, FRR, OpenSM or Open vSwitch.",
    ),
)


@dataclass(frozen=True)
class StateOptions:
    """The files of states to write and to go on from, and whether all files are compared.

    ``state_key`` is the file with their key. With ``watch`` nothing is kept in files, and the
    verdict follows changes until Ctrl-C.
    """

    write_state: str | None
    since: str | None
    rehash: bool
    state_key: str | None
    watch: bool

    @property
    def key(self) -> bytes:
        """The key of the states, empty without one; raises StateError."""
        if self.state_key is None:
            return b""
        from knotless.base.sections import read_key  # most checks do without

        return read_key(self.state_key)

    @property
    def name(self) -> str | None:
        """The option that is given; None if none is."""
        if self.watch:
            return "--watch"
        if self.since is not None:
            return "--since"
        return None if self.write_state is None else "--write-state"


state_options = grouped(
    "states",
    StateOptions,
    click.option(
        "--write-state",
        metavar="F",
        help="Keep what this check reads and finds in a file, for --since.",
    ),
    click.option(
        "--since",
        metavar="F",
        help="Go on from the check that wrote this file: only what changed is read again.",
    ),
    click.option(
        "--rehash",
        is_flag=True,
        help="With --since, compare the content of all files, whatever their times say.",
    ),
    click.option(
        "--state-key",
        metavar="F",
        help="A file with 16 bytes or more: states count only if they were written with this key.",
    ),
    click.option(
        "--watch",
        is_flag=True,
        help="Print the verdict again whenever files change, until Ctrl-C.",
    ),
)


@dataclass(frozen=True)
class Output:
    """Files to write besides what is printed, and how that is printed."""

    draw: str | None
    write_switch: str | None
    sarif: str | None
    junit: str | None
    accepted: str | None
    ignored: str | None
    proof: str | None
    details: bool
    as_json: bool

    @property
    def has_gate(self) -> bool:
        """Whether it is asked which findings count."""
        return any(value is not None for value in (self.junit, self.accepted, self.ignored))


output_options = grouped(
    "output",
    Output,
    click.option("--draw", metavar="F.svg", help="Draw the fabric, a cycle in red, to this file."),
    click.option(
        "--write-switch",
        metavar="F.yaml",
        help="Write the settings that SONiC switches have to this file, for --switch.",
    ),
    click.option(
        "--sarif", metavar="F.sarif", help="Write the findings to this file, for code review."
    ),
    click.option(
        "--junit", metavar="F.xml", help="Write the findings to this file, as results of tests."
    ),
    click.option(
        "--accept",
        "accepted",
        metavar="F.yaml",
        help="Findings that do not count for the exit status: a list of finding, reason, until.",
    ),
    click.option(
        "--ignore",
        "ignored",
        metavar="KINDS",
        help="Kinds of findings that do not count for the exit status: unknown, loss, delivery,"
        " failures, with commas between them.",
    ),
    click.option(
        "--proof",
        metavar="F",
        help="Write what another program needs to check the verdict, for knotless verify.",
    ),
    details_option,
    json_option,
)


@dataclass(frozen=True)
class CheckOptions:
    """All that a check is asked."""

    source: Source
    query: Query
    switches: SwitchOptions
    endpoints: EndpointModel | None
    freeze: FreezeOptions
    failures: FailureOptions
    states: StateOptions
    output: Output

    @property
    def one_priority(self) -> EndpointModel | None:
        """The end points with one priority, which rules give to all messages."""
        return None if self.endpoints is None else self.endpoints.on_one_priority()

    def refuse_contradictions(self) -> None:
        """Raise KnotlessError for options that no check takes together."""
        if self.source.live == bool(self.source.paths):
            raise KnotlessError("check needs either a directory of rules or other files, or --live")
        if self.states.rehash and self.states.since is None:
            raise KnotlessError("--rehash says how --since compares files: give both")
        if self.states.watch:
            self._refuse_with_watch()
        if self.states.write_state is not None and self.states.since is not None:
            raise KnotlessError("--write-state keeps a full check, --since avoids one: give either")
        if self.states.write_state is not None:
            from knotless.base.sections import refuse_to_replace  # most checks do without

            refuse_to_replace(self.states.write_state)
        need_more_than_a_verdict = {
            "--live": self.source.live,
            "--pair": self.query.pair,
            "--explain": self.query.explain,
            "--draw": self.output.draw,
            "--switch": self.switches.switch_settings,
            "--endpoints": self.endpoints,
            "--write-switch": self.output.write_switch,
            "--freeze": self.freeze.freezing,
            "--remedies": self.failures.remedies,
            "--export": self.failures.export,
            "--proof": self.output.proof,
        }
        given = [option for option, value in need_more_than_a_verdict.items() if value]
        if given and self.states.name is not None:
            raise KnotlessError(f"{self.states.name} is for verdicts, not with {given[0]}")
        self._refuse_with_patches([*given, *filter(None, [self.states.name])])
        self._refuse_with_proof()
        refuse_with_endpoints(
            self.endpoints,
            {
                "--switch": self.switches.switch_settings,
                "--failures": self.failures.max_failed,
            },
        )
        if self.states.state_key is not None and self.states.name in (None, "--watch"):
            raise KnotlessError("--state-key is for --write-state and --since")

    def _refuse_with_watch(self) -> None:
        """Raise KnotlessError for options that ask for more than a verdict that follows files."""
        given = {
            "--write-state": self.states.write_state,
            "--since": self.states.since,
            "--failures": self.failures.max_failed,
            "--flow-control": self.source.flow_control != AUTO,
        }
        for option, value in given.items():
            if value:
                raise KnotlessError(f"--watch follows verdicts, and is not given with {option}")

    def _refuse_with_patches(self, given: Sequence[str]) -> None:
        """Raise KnotlessError for options that ask for more than verdicts before and after."""
        if not self.source.patches:
            return
        if self.failures.max_failed:
            given = ["--failures", *given]
        if given:
            raise KnotlessError(f"--patch compares verdicts, and is not given with {given[0]}")
        for text in self.source.patches:
            if not all(text.partition("=")):
                raise KnotlessError(f"--patch {text[:40]}: is not SWITCH=FILE")

    def _refuse_with_proof(self) -> None:
        """Raise KnotlessError for options that ask for what no proof covers."""
        not_covered = {
            "--pair": self.query.pair,
            "--explain": self.query.explain,
            "--switch": self.switches.switch_settings,
            "--endpoints": self.endpoints,
            "--failures": self.failures.max_failed,
        }
        given = [option for option, value in not_covered.items() if value]
        if given and self.output.proof is not None:
            raise KnotlessError(
                f"--proof is of a verdict on rules or routes alone, not with {given[0]}"
            )

    @property
    def _wants_remedies(self) -> bool:
        return self.failures.remedies or self.failures.export is not None

    def refuse_for_files(self) -> None:
        """Raise KnotlessError for options that the files of real fabrics do not take."""
        path = self.source.paths[0]
        if path.endswith((".clab.yml", ".clab.yaml")):
            raise KnotlessError(
                f"{path}: a containerlab file has cables, and no routes to judge: 'knotless plan"
                f" {path}' computes some; for those of its nodes give the files that they hold"
            )
        if "://" in path:
            raise KnotlessError(f"{path} is an address: give files or folders of this machine")
        for below in sorted(Path(path).glob("*/*.flows")):
            if (below.parent / "fabric.json").is_file():
                raise KnotlessError(f"{path} holds folders of rules: give one, {below.parent}")
        folder = Path(path).parent
        if path.endswith((".flows", ".groups")) and (folder / "fabric.json").is_file():
            raise KnotlessError(f"{path} is one file of a folder: give the folder, {folder}")
        if self.switches.switch_settings is not None:
            raise KnotlessError(f"--switch: {path} has the settings of its switches itself")
        refuse_with_endpoints(
            self.endpoints,
            {"--freeze": self.freeze.freezing, "--remedies": self._wants_remedies},
        )
        if self.freeze.write_trace is not None:
            raise KnotlessError("--write-trace is for fabrics of ours, which can send a trace")

    def refuse_for_rules(self) -> None:
        """Raise KnotlessError for options that our own directories of rules do not take."""
        for option, value, why in (
            (self.states.name, self.states.name, "ours are read at once"),
            ("--explain", self.query.explain, "ours says where links lead"),
            ("--hosts", self.source.hosts, "ours names its hosts"),
            ("--routes", self.source.routes, "ours have rules"),
            ("--patch", self.source.patches, "'knotless change' judges those of ours"),
            ("--write-switch", self.output.write_switch, "ours have none"),
        ):
            if value not in (None, ()):
                raise KnotlessError(f"{option} is for the files of real fabrics; {why}")
        if self._wants_remedies:
            raise KnotlessError("--remedies are for the files of real fabrics; plan again for ours")
