"""The size of proofs of verdicts, and what it takes to write and to check them.

Each program is a process of its own, and its time is that of processors, so that other load on the
machine matters little: ``knotless check`` of a folder of rules, the same with ``--proof``, and the
verifier, whose checker is proven in Coq. A proof that it does not accept ends the benchmark.
"""

from __future__ import annotations

import gzip
import os
import re
import resource
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import click

from bench.support.entry import Run, benchmark, machine_line, run_benchmark
from knotless.base.errors import KnotlessError
from knotless.base.package import python_module
from knotless.cli.commands._proven import verifier

CASES: Sequence[tuple[str, str, str]] = (
    ("ring,4", "dor", "--vcs 1 --select low-port"),
    ("ring,4", "updown", ""),
    ("torus,5,5", "dor", ""),
    ("torus,8,8", "dor", ""),
    ("lsft,3", "lsft", ""),
    ("dragonfly,a=4,h=2,p=2", "dragonfly", ""),
    ("slimfly,5", "sbp", ""),
    ("random,32,degree=4", "updown", ""),
    ("random,32,degree=4", "dl", ""),
    ("fattree3,8", "fattree", ""),
    ("torus,8,8,8", "dor", ""),
    ("torus,16,16,hosts=4", "dor", ""),
    ("fattree3,16", "fattree", ""),
    ("torus,32,32", "dor", ""),
    ("lsft,17", "lsft", ""),
    ("fattree3,32", "fattree", ""),
    ("mesh,100,100", "dor", ""),
    ("mesh,32,32,10", "dor", ""),
)
"""Fabric, engine, and other options of ``knotless flows``."""
LIMIT_S = 900
"""Seconds of processors after which the verifier is ended."""


class Used(NamedTuple):
    """What a process used: seconds of processors, and its peak memory in MB (10^6 bytes)."""

    seconds: float
    memory_mb: int


def _used(command: Sequence[str | Path], statuses: Sequence[int]) -> Used | None:
    """Return what a process used; None: it was ended."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))

    # No thread is running here that could hold a lock.
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        preexec_fn=limited,
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode < 0:
        return None
    if process.returncode not in statuses:
        raise KnotlessError(f"{' '.join(map(str, command))}: status {process.returncode}")
    return Used(round(used.ru_utime + used.ru_stime, 2), round(used.ru_maxrss * 1024 / 1e6))


def _knotless(*words: str) -> list[str]:
    return python_module("knotless", *words)


def measure(spec: str, engine: str, options: str, folder: Path) -> dict[str, Any]:
    """Return the row of a case, whose files are written to a folder."""
    rules, proof = folder / "rules", folder / "proof"
    words = ["--engine", engine, *options.split(), "--out", str(rules)]
    _used(_knotless("flows", spec, *words), [0])
    check = _knotless("check", str(rules))
    checked = _used(check, [0, 1])
    written = _used([*check, "--proof", str(proof)], [0, 1])
    if checked is None or written is None:
        raise KnotlessError(f"{spec}: the check takes longer than {LIMIT_S} s")
    text = proof.read_text()
    claim = re.findall(r"^claim (.+)", text, re.MULTILINE)[0]
    verified = _used([verifier(), rules, proof], [int(claim == "cycle")])
    return {
        "fabric": spec,
        "engine": engine,
        "options": options,
        "claim": claim,
        "flow_control": re.findall(r"^flow-control (.+)", text, re.MULTILINE)[0],
        "rules": sum(file.read_bytes().count(b"\n") for file in rules.glob("*.flows")),
        "ranks": text.count("\nrank "),
        "classes": text.count("\nclass "),
        "proof_bytes": len(text),
        "gzip_bytes": len(gzip.compress(text.encode(), mtime=0)),
        "check_s": checked.seconds,
        "check_proof_s": written.seconds,
        "verify_s": verified and verified.seconds,
        "verify_mb": verified and verified.memory_mb,
    }


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/explanation/proof.md."""
    # Runs of before it was measured have no memory.
    with_memory = all("verify_mb" in row for row in run["rows"])
    memory = " its memory, MB |" if with_memory else ""
    return [
        "| fabric, engine | rules | claim | proof, KB | with gzip | `check` s | `check --proof` s"
        f" | `verify` s |{memory}",
        "|---" * (9 if with_memory else 8) + "|",
        *(_line(row, with_memory) for row in run["rows"]),
        "",
        f"Seconds of processors of whole processes. {machine_line(run)}",
    ]


def _line(row: Mapping[str, Any], with_memory: bool) -> str:
    verify_s = f"over {LIMIT_S}" if row["verify_s"] is None else f"{row['verify_s']:.2f}"
    claim = f"{row['claim']}, {row['flow_control']}"
    sizes = f"{row['proof_bytes'] / 1000:.1f} | {row['gzip_bytes'] / 1000:.1f}"
    times = f"{row['check_s']:.2f} | {row['check_proof_s']:.2f} | {verify_s}"
    line = f"| {row['fabric']}, {row['engine']} | {row['rules']:,} | {claim} | {sizes} | {times} |"
    if not with_memory:
        return line
    return f"{line} {'-' if row['verify_mb'] is None else format(row['verify_mb'], ',')} |"


def _order(row: Mapping[str, Any]) -> tuple[int, str]:
    return row["rules"], row["claim"]


def rows(cases: Sequence[tuple[str, str, str]]) -> Iterator[dict[str, Any]]:
    """Yield the row of each case."""
    for spec, engine, options in cases:
        with TemporaryDirectory() as name:
            yield measure(spec, engine, options, Path(name))


@benchmark(table_of, keys=("fabric", "engine", "options"), order=_order)
@click.option("--only", "specs", multiple=True, help="Measure only this fabric; may be repeated.")
def main(run: Run, specs: tuple[str, ...]) -> None:
    """Write and check proofs of fabrics of up to 10,240 switches.

    Example: python -m bench.proofs --json > docs/benchmarks/proofs.json
    """
    verifier()  # before anything is measured
    for row in rows([case for case in CASES if not specs or case[0] in specs]):
        run.add(row)


if __name__ == "__main__":
    run_benchmark(main)
