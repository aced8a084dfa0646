"""The verdict of ``knotless check``, printed or drawn."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

from knotless.base.flow_control import AUTO
from knotless.cli.commands._failures import certificate_json, certificate_lines
from knotless.cli.commands._options import print_json, print_table
from knotless.cli.commands._remedies import remedy_lines
from knotless.cli.output import say
from knotless.forwarding.openflow.directory import (
    is_dir_of_rules,
    read_dir,
    read_multicast,
    read_tags,
)
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.importers.paths import read_paths
from knotless.routing.graphs.channels import Channels
from knotless.simulation.freezing import Freeze
from knotless.topologies.fabric import Fabric
from knotless.verification.check import Verdict, verdict_of
from knotless.verification.failures import Certificate
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from knotless.verification.remedies import Remedy
from knotless.verification.verdict_parts import Witness, is_pool


def draw_cycle(fabric: Fabric, channels: Channels, path: str, cycle: Sequence[str]) -> None:
    """Draw ``fabric`` with a cycle of dependencies in red."""
    from knotless.drawing import draw_fabric  # Matplotlib takes a second to load

    draw_fabric(fabric, path, {channels.end_of(name) for name in cycle if not is_pool(name)})


def verdict_on(paths: Sequence[str]) -> tuple[Fabric, dict[str, object]]:
    """Return a fabric and the values of its verdict; ``paths`` are as of ``knotless check``."""
    if len(paths) == 1 and is_dir_of_rules(paths[0]):
        fabric, rules = read_dir(paths[0])
        groups, tags = read_multicast(fabric, paths[0]), read_tags(fabric, paths[0])
        verdict: Verdict | ImportedVerdict = verdict_of(
            state_of_rules(fabric, rules, groups, tags), AUTO
        )
    else:
        imported = read_paths(paths)
        fabric, verdict = imported.fabric, verdict_of_imported(imported)
    return fabric, verdict.as_json()


def print_verdict(
    verdict: Verdict | ImportedVerdict,
    what: Sequence[str],
    figures: Mapping[str, object],
    lines: Iterable[str],
    *,
    certificate: Certificate | None = None,
    remedies: Sequence[Remedy] | None = None,
    freeze: Freeze | None = None,
    as_json: bool,
) -> NoReturn:
    """Print a verdict; exit with status 1 unless all is delivered without a cycle or loss.

    With a ``certificate``, the status is 0 only if no deadlock is possible after any failure.

    ``what`` are the arguments of ``knotless check`` that name what was checked. People are shown
    ``figures`` as a table, then ``lines``; JSON has all values of the verdict.
    """
    survives = certificate is None or (certificate.acyclic is True and certificate.whole)
    if as_json:
        steps = [
            {**witness.as_json(), "command": _command(what, witness)}
            for witness in verdict.witnesses
        ]
        more = {} if certificate is None else certificate_json(certificate)
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
        for line in certificate_lines(certificate) if certificate is not None else ():
            say(line)
        unsafe = verdict.safe is not True or not survives
        for line in remedy_lines(remedies) if remedies is not None and unsafe else ():
            say(line)
    sys.exit(0 if verdict.ok and survives else 1)


def _steps(verdict: Verdict | ImportedVerdict, what: Sequence[str]) -> Iterator[str]:
    for witness in verdict.witnesses:
        yield f"{witness.text} ({_command(what, witness)})"


def _command(what: Sequence[str], witness: Witness) -> str:
    """Return the command that shows the links of the packet."""
    return shlex.join(["knotless", "check", *what, "--pair", witness.source, witness.destination])
