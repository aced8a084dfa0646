"""The verdict of ``knotless check``, printed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from knotless.cli.options import print_json, print_table
from knotless.cli.output import say
from knotless.verification.check_state import ShownCertificate
from knotless.verification.imported_verdict import ImportedVerdict
from knotless.verification.verdict_parts import Witness

if TYPE_CHECKING:
    from knotless.simulation.freezing import Freeze
    from knotless.verification.check import Verdict
    from knotless.verification.remedies import Remedy


def print_verdict(
    verdict: Verdict | ImportedVerdict,
    what: Sequence[str],
    figures: Mapping[str, object],
    lines: Iterable[str],
    *,
    certificate: ShownCertificate | None = None,
    remedies: Sequence[Remedy] | None = None,
    freeze: Freeze | None = None,
    as_json: bool,
) -> NoReturn:
    """Print a verdict; exit with status 1 unless all is delivered without a cycle or loss.

    With a ``certificate``, the status is 0 only if no deadlock is possible after any failure.

    ``what`` are the arguments of ``knotless check`` that name what was checked. People are shown
    ``figures`` as a table, then ``lines``; JSON has all values of the verdict.
    """
    survives = certificate is None or certificate.survives
    if as_json:
        steps = [
            {**witness.as_json(), "command": _command(what, witness)}
            for witness in verdict.witnesses
        ]
        more = {} if certificate is None else dict(certificate.values)
        if remedies is not None:
            more["remedies"] = [remedy.as_json() for remedy in remedies]
        if freeze is not None:
            more |= freeze.as_json()
        print_json({**verdict.as_json(), "witnesses": steps, **more})
    else:
        print_table(f"check of {verdict.fabric}", figures)
        for line in [*lines, *_steps(verdict, what)]:
            say(line)
        say("not all is delivered" if verdict.failed else "all is delivered")
        if verdict.losses:
            count = len(verdict.losses)
            say(f"packets of lossless priorities can be lost: {count} of the problems above")
        if verdict.assumes and (verdict.safe is True or not verdict.cycle):
            say(f"assumed: {'; '.join(verdict.assumes)}")
        say(verdict.text)
        for line in freeze.lines if freeze is not None else ():
            say(line)
        for line in certificate.lines if certificate is not None else ():
            say(line)
        if remedies is not None and (verdict.safe is not True or not survives):
            from knotless.cli.commands._remedies import remedy_lines  # loads all of verification

            for line in remedy_lines(remedies):
                say(line)
    sys.exit(0 if verdict.ok and survives else 1)


def _steps(verdict: Verdict | ImportedVerdict, what: Sequence[str]) -> Iterator[str]:
    for witness in verdict.witnesses:
        yield f"{witness.text} ({_command(what, witness)})"


def _command(what: Sequence[str], witness: Witness) -> str:
    """Return the command that shows the links of the packet."""
    return shlex.join(["knotless", "check", *what, "--pair", witness.source, witness.destination])
