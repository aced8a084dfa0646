"""The answer of ``knotless check``: the verdict, failures, remedies and frozen traffic."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn

from knotless.cli.answer import (
    Answer,
    Figure,
    Group,
    Headline,
    Hint,
    Reason,
    Several,
    Tone,
    print_answer,
    written,
)
from knotless.cli.commands._verdict_answer import (
    NOTES,
    deadlock_reasons,
    endpoint_reasons,
    load_and_paths,
    not_read_lines,
    remedy_lines,
    verdict_headline,
)
from knotless.cli.commands.check.gate import gate_of
from knotless.cli.commands.check.junit import write_junit
from knotless.cli.commands.check.options import Output, Source
from knotless.cli.commands.check.sarif import write_sarif
from knotless.cli.options import given_options, print_json
from knotless.importers.causes import Place, content, places_of
from knotless.verification.check_state import ShownFailureTable
from knotless.verification.imported_verdict import ImportedVerdict
from knotless.verification.verdict_findings import findings
from knotless.verification.verdict_parts import Witness

if TYPE_CHECKING:
    from knotless.cli.commands.check.proof import WrittenProof
    from knotless.routing.graphs.channels import Channels
    from knotless.simulation.freezing import Freeze
    from knotless.topologies.fabric import Fabric
    from knotless.verification.check import Verdict
    from knotless.verification.remedies import Remedy

_FAILURES = 6
"""Lines about failures that a terminal shows."""


@dataclass(frozen=True)
class Extras:
    """The results besides a verdict; None: not asked for.

    ``before`` is the verdict before changes that are to be made, ``changes`` what these change.
    """

    failure_table: ShownFailureTable | None = None
    remedies: Sequence[Remedy] | None = None
    freeze: Freeze | None = None
    proof: WrittenProof | None = None
    before: ImportedVerdict | None = None
    changes: Sequence[str] = ()

    @property
    def survives(self) -> bool:
        """Whether no deadlock is possible after the failures that were tried."""
        return self.failure_table is None or self.failure_table.survives

    def as_json(self) -> dict[str, object]:
        """Return what JSON has of them."""
        values: dict[str, object] = (
            {} if self.failure_table is None else dict(self.failure_table.values)
        )
        if self.remedies is not None:
            values["remedies"] = [remedy.as_json() for remedy in self.remedies]
        if self.freeze is not None:
            values.update(self.freeze.as_json())
        if self.proof is not None:
            values.update(proof=self.proof.file, proof_rules=self.proof.rules)
        if self.before is not None:
            values.update(before=self.before.as_json(), changes=list(self.changes))
        return values


def print_verdict(
    verdict: Verdict | ImportedVerdict,
    what: Sequence[str],
    values: Mapping[str, object],
    notes: Sequence[Reason],
    extras: Extras,
    output: Output,
    places: Mapping[str, Sequence[Place]] = MappingProxyType({}),
) -> NoReturn:
    """Print a verdict; exit with status 1 unless all is delivered without a cycle or loss.

    With a failure table, the status is 0 only if no deadlock is possible after any failure.

    ``what`` are the arguments of ``knotless check`` that name what was checked. People are shown
    ``notes``, and ``values`` as details; JSON has all values of the verdict. ``places`` are where
    the causes of each line are.
    """
    with_place = partial(_with_place, places, what[0] if what else "")
    gate = gate_of([*findings(verdict, extras.failure_table)], output.accepted, output.ignored)
    if output.junit is not None:
        write_junit(output.junit, verdict.fabric, gate)
    packets = [(step, shlex.join(_pair_command(what, step))) for step in verdict.witnesses]
    if output.as_json:
        steps = [{**step.as_json(), "command": command} for step, command in packets]
        more = {"witnesses": steps, **extras.as_json()}
        if isinstance(verdict, ImportedVerdict):
            more["causes"] = {
                text: [one.as_json() for one in some] for text, some in places.items()
            }
        if output.has_gate:
            more["findings"] = gate.as_json()
        print_json({**verdict.as_json(), **more})
    else:
        shown = [f"{step.text} ({channel})" for step, channel in packets]
        answer = Answer(
            _headline(verdict, extras, gate.text),
            why=[*_why(verdict, extras, with_place)],
            figures=[*_delivered(verdict), *load_and_paths(verdict)],
            remarks=[*notes, *gate.remarks, *_remarks(verdict, extras), *_files(output, extras)],
            hints=[*_hints(verdict, what, extras)],
            details=[
                Group("check", values),
                Group("packets of the cycle", shown),
                Group("findings", {one.identifier: one.text for one in gate.findings}),
            ],
        )
        print_answer(answer, details=output.details)
    stops = gate.counted if gate.findings else not (verdict.ok and extras.survives)
    sys.exit(1 if stops else 0)


def _with_place(places: Mapping[str, Sequence[Place]], root: str, line: str) -> str:
    """Return a line with the place of its first cause, below the folder that was read."""
    lines = [place for place in places.get(line, ()) if place.line is not None]
    if not lines:
        return line
    more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
    return f"{line} ({lines[0].text.removeprefix(f'{root}/')}{more})"


def _why(
    verdict: Verdict | ImportedVerdict, extras: Extras, with_place: Callable[[str], str]
) -> Iterator[Reason]:
    yield from deadlock_reasons(verdict, with_place)
    yield from endpoint_reasons(verdict)
    yield from () if extras.freeze is None else extras.freeze.lines
    yield from extras.changes
    if extras.failure_table is not None:
        yield Several(extras.failure_table.lines[:-1], "lines", _FAILURES)
    losses = [line for line in verdict.losses if line not in verdict.problems]
    yield Several([*map(with_place, [*verdict.problems, *losses])], "problems")


def _remarks(verdict: Verdict | ImportedVerdict, extras: Extras) -> Iterator[Reason]:
    if verdict.assumes and (verdict.safe is True or not verdict.cycle):
        yield f"assumed: {'; '.join(verdict.assumes)}"
    if extras.remedies is not None and (verdict.safe is not True or not extras.survives):
        yield from remedy_lines(extras.remedies)


def _files(output: Output, extras: Extras) -> Iterator[str]:
    yield from written(
        drawing=output.draw, findings=output.sarif, tests=output.junit, proof=output.proof
    )
    if extras.proof is not None:
        yield from extras.proof.remarks


def _headline(verdict: Verdict | ImportedVerdict, extras: Extras, more: str) -> Headline:
    parts = []
    if verdict.failed:
        parts.append("not all is delivered")
    elif verdict.safe:
        parts.append("all is delivered")
    if verdict.losses:
        parts.append("lossless packets can be lost")
    if extras.failure_table is not None:
        parts.append(extras.failure_table.lines[-1])
    plain = verdict_headline(verdict.fabric, verdict)
    tone = plain.tone
    if tone is Tone.GOOD and not (verdict.ok and extras.survives):
        tone = Tone.BAD
    return Headline(plain.subject, plain.word, ", ".join([plain.rest, *parts]) + more, tone)


def _delivered(verdict: Verdict | ImportedVerdict) -> Iterator[Figure]:
    if isinstance(verdict, ImportedVerdict):
        yield Figure("switches", verdict.switches)
        yield Figure("hosts", verdict.hosts)
        yield _share("pairs", verdict.pairs, verdict.undelivered)
        return
    yield _share("pairs", verdict.pairs, verdict.undelivered)
    yield _share("broadcasts", verdict.broadcasts, verdict.broadcasts_undelivered)
    yield _share("multicasts", verdict.multicasts, verdict.multicasts_undelivered)
    yield Figure("cut off", verdict.unreachable, "pairs of hosts")


def _share(name: str, count: int, failed: int) -> Figure:
    """Return how many arrive as they should; of how many, unless these are all."""
    if failed >= count:
        return Figure(name, f"none of {count:,} delivered" if count else "")
    return Figure(name, count - failed, whole=count if failed else None, where="delivered")


def _pair_command(what: Sequence[str], witness: Witness) -> list[str]:
    """Return the command that shows the links of the packet."""
    return ["knotless", "check", *what, "--pair", witness.source, witness.destination]


def _hints(
    verdict: Verdict | ImportedVerdict, what: Sequence[str], extras: Extras
) -> Iterator[Hint]:
    """Yield what to run next; less if failures, remedies, freezes or a proof were asked for."""
    check = ["knotless", "check", *what, *given_options("flow_control")]
    is_imported = isinstance(verdict, ImportedVerdict)
    if verdict.witnesses:
        yield Hint("follow a packet of the cycle", _pair_command(what, verdict.witnesses[0]))
    if extras.proof is not None:
        verify = ["knotless", "verify", extras.proof.rules, extras.proof.file]
        yield Hint("have a proven program check the proof", verify)
    if extras != Extras():
        return
    if verdict.safe is False:
        if is_imported:
            yield Hint("look for remedies", [*check, "--remedies"])
        else:
            yield Hint("find traffic that freezes it", [*check, "--freeze"])
    elif verdict.safe is None:
        yield Hint("see all that is known", [*check, "--details"])
    elif verdict.ok:
        yield Hint("try every failure of a link or switch", [*check, "--failures", "1"])


def print_imported(
    verdict: ImportedVerdict, source: Source, extras: Extras, output: Output
) -> NoReturn:
    """Print a verdict on the files of a fabric; exit with status 1 unless all is well."""
    places = places_of(verdict.causes, content)
    if output.sarif is not None:
        write_sarif(output.sarif, verdict, extras.failure_table, source.paths, places)
    what = [*source.paths, *(word for name in source.hosts for word in ("--hosts", name))]
    what += [] if source.routes is None else ["--routes", source.routes]
    notes = [*_notes(verdict, partial(_with_place, places, source.paths[0]))]
    print_verdict(verdict, what, _values(verdict), notes, extras, output, places)


def _values(verdict: ImportedVerdict) -> dict[str, object]:
    values = verdict.as_json()
    for key in (
        *("fabric", "problems", "witnesses", "missing", "notes", "ignored", "vcs"),
        *("losses", "assumes", "unread", "not_read", "reserves", "through_hosts"),
    ):
        values.pop(key, None)
    for key in ("acyclic", "safe"):
        values[key] = "unknown" if values[key] is None else values[key]
    for vc, acyclic in verdict.vcs.items():
        values[f"virtual channel {vc}"] = "safe" if acyclic else "has a cycle"
    return values


def _notes(verdict: ImportedVerdict, with_place: Callable[[str], str]) -> Iterator[Reason]:
    unsafe = [vc for vc, acyclic in verdict.vcs.items() if not acyclic]
    if len(unsafe) > 1:
        yield f"each of the virtual channels {', '.join(unsafe)} has a cycle of its own"
    yield Several([f"note: {with_place(line)}" for line in verdict.notes], "notes", NOTES)
    yield Several([*not_read_lines(verdict.not_read)], "reasons why files were not read", NOTES)


def draw_cycle(fabric: Fabric, channels: Channels, path: str, cycle: Sequence[str]) -> None:
    """Draw ``fabric`` with a cycle of dependencies in red."""
    from knotless.drawing import draw_fabric  # Matplotlib takes a second to load

    leaving = {channels.name(channel, 0).rpartition("/")[0] for channel in range(len(channels))}
    between = [name for name in cycle if name.rpartition("/")[0] in leaving]
    draw_fabric(fabric, path, {channels.end_of(name) for name in between})
