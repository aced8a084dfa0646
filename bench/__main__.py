"""``python -m bench``: the benchmarks of this folder; ``python -m bench NAME [OPTIONS]`` runs one.

Each benchmark is a file, which ``python -m bench.NAME [OPTIONS]`` runs as well. With ``--json``
it prints a run to be stored in ``docs/benchmarks``, and with ``--table FILE`` the table of a stored
run; ``python -m bench.pages`` writes the tables of all stored runs into the pages.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import click


@dataclass(frozen=True)
class Benchmark:
    """A row of the list.

    Attributes
    ----------
    measures : what it measures or counts.
    duration : how long it takes on two cores, roughly.
    needs_root : whether it runs a fabric, or makes network namespaces.

    """

    measures: str
    duration: str
    needs_root: bool = False


BENCHMARKS: Mapping[str, Benchmark] = {
    "capacity": Benchmark(
        "channel-hops per second of an emulated fabric and of plain links", "minutes", True
    ),
    "controller": Benchmark(
        "a controller that installs 614 fake switches, and starts again", "a minute"
    ),
    "instructions": Benchmark(
        "instructions of the simulator for each packet-link-hop, with valgrind", "minutes"
    ),
    "plan": Benchmark(
        "planning, compiling and checking of large fabrics, with peak memory", "minutes"
    ),
    "proofs": Benchmark("the size of proofs, and the time to write and to check them", "minutes"),
    "repair": Benchmark(
        "repairs of two running fabrics when links fail", "a quarter of an hour", True
    ),
    "routing": Benchmark(
        "the routing engines, and OpenSM's if it is installed", "a quarter of an hour"
    ),
    "scale": Benchmark(
        "plan, flows and check of fabrics of up to a hundred thousand hosts", "half an hour"
    ),
    "session": Benchmark("changes of routes of 1,024 switches in memory", "minutes"),
    "simulation": Benchmark("packet-link-hops per second of the simulator", "a minute"),
    "since": Benchmark(
        "checks of 1,024 switches after a file has changed, beside full ones", "minutes"
    ),
}
"""Name, which is that of a file of this folder -> its row."""


def listing() -> str:
    """Return the list of benchmarks, a line each."""
    rows = [
        (name, "root" if one.needs_root else "", one.duration, one.measures)
        for name, one in BENCHMARKS.items()
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in rows
    )


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("name", required=False)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def main(name: str | None, options: tuple[str, ...]) -> None:
    """List the benchmarks, or run one with its options.

    ``--needs-root NAME`` tells by its exit status whether the benchmark needs root (0: it does).
    """
    if name == "--needs-root":
        sys.exit(not any(each in BENCHMARKS and BENCHMARKS[each].needs_root for each in options))
    if name in (None, "--help"):
        click.echo(f"{listing()}\n\npython -m bench NAME --help shows the options of one")
    elif name in BENCHMARKS:
        sys.argv[1:] = options
        runpy.run_module(f"bench.{name}", run_name="__main__", alter_sys=True)
    else:
        click.echo(f"bench: no benchmark {name!r}; there are {', '.join(BENCHMARKS)}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
