"""The verdict of ``knotless check``, printed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
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
)
from knotless.cli.commands._verdict_answer import (
    deadlock_reasons,
    load_and_paths,
    verdict_headline,
)
from knotless.cli.options import given_options, print_json
from knotless.verification.check_state import ShownCertificate
from knotless.verification.imported_verdict import ImportedVerdict
from knotless.verification.verdict_parts import Witness

if TYPE_CHECKING:
    from knotless.simulation.freezing import Freeze
    from knotless.verification.check import Verdict
    from knotless.verification.remedies import Remedy

_FAILURES = 6
"""Lines about failures that a terminal shows."""


def print_verdict(
    verdict: Verdict | ImportedVerdict,
    what: Sequence[str],
    figures: Mapping[str, object],
    notes: Sequence[Reason],
    *,
    certificate: ShownCertificate | None = None,
    remedies: Sequence[Remedy] | None = None,
    freeze: Freeze | None = None,
    details: bool,
    as_json: bool,
) -> NoReturn:
    """Print a verdict; exit with status 1 unless all is delivered without a cycle or loss.

    With a ``certificate``, the status is 0 only if no deadlock is possible after any failure.

    ``what`` are the arguments of ``knotless check`` that name what was checked. People are shown
    ``notes``, and ``figures`` as ``details``; JSON has all values of the verdict.
    """
    survives = certificate is None or certificate.survives
    if as_json:
        steps = [
            {**witness.as_json(), "command": shlex.join(_pair_command(what, witness))}
            for witness in verdict.witnesses
        ]
        more = {} if certificate is None else dict(certificate.values)
        if remedies is not None:
            more["remedies"] = [remedy.as_json() for remedy in remedies]
        if freeze is not None:
            more |= freeze.as_json()
        print_json({**verdict.as_json(), "witnesses": steps, **more})
    else:
        remarks: list[Reason] = [*notes]
        if verdict.assumes and (verdict.safe is True or not verdict.cycle):
            remarks.append(f"assumed: {'; '.join(verdict.assumes)}")
        if remedies is not None and (verdict.safe is not True or not survives):
            from knotless.cli.commands._remedies import remedy_lines  # loads all of verification

            remarks += remedy_lines(remedies)
        packets = [
            f"{step.text} ({shlex.join(_pair_command(what, step))})" for step in verdict.witnesses
        ]
        answer = Answer(
            _headline(verdict, certificate),
            why=[
                *deadlock_reasons(verdict),
                *([] if freeze is None else freeze.lines),
                Several(() if certificate is None else certificate.lines[:-1], "lines", _FAILURES),
                Several([*verdict.problems, *_settings(verdict)], "problems"),
            ],
            figures=[*_delivered(verdict), *load_and_paths(verdict)],
            remarks=remarks,
            hints=[
                *_hints(
                    verdict,
                    what,
                    has_more=certificate is not None or remedies is not None or freeze is not None,
                )
            ],
            details=[Group("check", figures), Group("packets of the cycle", packets)],
        )
        print_answer(answer, details=details)
    sys.exit(0 if verdict.ok and survives else 1)


def _headline(verdict: Verdict | ImportedVerdict, certificate: ShownCertificate | None) -> Headline:
    parts = []
    if verdict.failed:
        parts.append("not all is delivered")
    elif verdict.safe:
        parts.append("all is delivered")
    if verdict.losses:
        parts.append("lossless packets can be lost")
    if certificate is not None:
        parts.append(certificate.lines[-1])
    plain = verdict_headline(verdict.fabric, verdict)
    tone = plain.tone
    if tone is Tone.GOOD and not (verdict.ok and (certificate is None or certificate.survives)):
        tone = Tone.BAD
    return Headline(plain.subject, plain.word, ", ".join([plain.rest, *parts]), tone)


def _settings(verdict: Verdict | ImportedVerdict) -> Sequence[str]:
    """Return the losses that are not among the problems."""
    return [line for line in verdict.losses if line not in verdict.problems]


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
    return Figure(name, count - failed, of=count if failed else None, where="delivered")


def _pair_command(what: Sequence[str], witness: Witness) -> list[str]:
    """Return the command that shows the links of the packet."""
    return ["knotless", "check", *what, "--pair", witness.source, witness.destination]


def _hints(
    verdict: Verdict | ImportedVerdict, what: Sequence[str], *, has_more: bool
) -> Iterator[Hint]:
    """Yield what to run next; ``has_more``: failures, remedies or freezes were looked for."""
    check = ["knotless", "check", *what, *given_options("flow_control")]
    is_imported = isinstance(verdict, ImportedVerdict)
    if verdict.witnesses:
        yield Hint("follow a packet of the cycle", _pair_command(what, verdict.witnesses[0]))
    if has_more:
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
