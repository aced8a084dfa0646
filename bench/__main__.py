"""``python -m bench``: channel-hops per second over emulated and plain links, in one run."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click
from rich.console import Console
from rich.table import Table

from bench.emulation import (
    CLOSE_ENOUGH,
    DELAY_US,
    Measurement,
    fair_share_mbps,
    measure,
    running,
    torus,
)
from bench.entry import run_benchmark
from knotless.base.errors import EmulationError
from knotless.emulation.runtime import require_root
from knotless.results import machine

RATES_MBPS = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0)
PLAIN_STEPS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
"""The rates offered to plain links, as multiples of the best rate of the emulated fabric."""


def emulated(hosts_per_switch: int, delay_us: float, console: Console) -> Iterator[Measurement]:
    """Raise the link rate until the fabric does not keep up in two measurements."""
    failures = 0
    with running(hosts_per_switch, "emulated", delay_us) as lab:
        for rate_mbps in RATES_MBPS:
            try:
                found = measure(lab, rate_mbps, None)
            except EmulationError as error:  # too busy with frames to answer
                console.print(f"emulated, {rate_mbps:g} Mbit/s links: {error}", highlight=False)
                return
            _tell(console, found)
            yield found
            failures += not found.full
            if failures == 2:
                return


def plain(
    hosts_per_switch: int, delay_us: float, best_mbps: float, console: Console
) -> Iterator[Measurement]:
    """Offer plain links the best rate of the emulated fabric, then more until they lose frames."""
    share = fair_share_mbps(torus(hosts_per_switch), best_mbps)
    with running(hosts_per_switch, "plain", delay_us) as lab:
        for step in PLAIN_STEPS:
            found = measure(lab, 0.0, share * step)
            _tell(console, found)
            yield found
            if not found.good:
                return


def _tell(console: Console, found: Measurement) -> None:
    stretch = "" if found.stretch is None else f", stretch {found.stretch:.2f}"
    at = f"{found.rate_mbps:g} Mbit/s links" if found.rate_mbps else "unlimited rate"
    console.print(
        f"{found.links}, {found.hosts} hosts, {at}: {found.hops_per_s:,.0f} channel-hops/s, "
        f"{found.delivered_mbps:.3f} of {found.offered_mbps:.3f} Mbit/s per host delivered"
        f"{stretch}",
        highlight=False,
    )


def table(found: list[Measurement]) -> Table:
    """Return all measurements as a table."""
    shown = Table(title="4x4 torus, all hosts send", title_justify="left")
    for column in (
        "links",
        "hosts",
        "link rate",
        "hops/s",
        "of theory",
        "stretch",
        "lost",
        "cores",
    ):
        shown.add_column(column)
    for one in found:
        shown.add_row(
            one.links,
            str(one.hosts),
            f"{one.rate_mbps:g}" if one.rate_mbps else "-",
            f"{one.hops_per_s:,.0f}",
            f"{one.of_theory:.3f}",
            "-" if one.stretch is None else f"{one.stretch:.2f}",
            f"{one.lost_frames:,}",
            " ".join(f"{name} {cores:.2f}" for name, cores in sorted(one.cpu.items())),
        )
    return shown


def summary(found: list[Measurement]) -> dict[str, object]:
    """Return, for each number of hosts, the best valid measurement of both kinds of links."""
    best: dict[str, object] = {}
    for hosts in sorted({one.hosts for one in found}):
        for links in ("emulated", "plain"):
            every = [one for one in found if (one.hosts, one.links) == (hosts, links)]
            good = [one for one in every if one.good]
            if good:
                top = max(good, key=lambda one: one.hops_per_s)
                best[f"{links}_{hosts}_hops_per_s"] = top.hops_per_s
                if links == "emulated":
                    best[f"emulated_{hosts}_highest_rate_mbps"] = max(o.rate_mbps for o in good)
            if every:
                most = max(one.hops_per_s for one in every)
                best[f"{links}_{hosts}_most_hops_per_s"] = most
        ours, theirs = (best.get(f"{links}_{hosts}_hops_per_s") for links in ("emulated", "plain"))
        if isinstance(ours, int) and isinstance(theirs, int):
            best[f"emulated_to_plain_{hosts}"] = round(ours / theirs, 3)
    return best


@click.command(epilog="Example: sudo .venv/bin/python -m bench --hosts 16")
@click.option("--hosts", type=click.Choice(["16", "64", "both"]), default="both", show_default=True)
@click.option(
    "--delay-us",
    type=click.FloatRange(0, 100_000),
    default=DELAY_US,
    show_default=True,
    help="One-way delay of every emulated link, which covers the time in Open vSwitch.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def main(hosts: str, delay_us: float, as_json: bool) -> None:
    """Compare the emulated fabric with plain links on the same Open vSwitch.

    Both carry the same traffic. The rate of emulated links is raised until the goodput differs
    from theory by more than 1 %. A rate is good if virtual time also kept up with real time.
    Plain links have no rate limit; they are offered the best rate of the emulated links, then more.
    """
    require_root()
    console = Console(stderr=True)
    found: list[Measurement] = []
    for each in (1, 4) if hosts == "both" else (int(hosts) // 16,):
        of_emulated = list(emulated(each, delay_us, console))
        good = [one.rate_mbps for one in of_emulated if one.good]
        found += of_emulated
        found += plain(each, delay_us, max(good, default=RATES_MBPS[0]), console)
    if as_json:
        head = {"delay_us": delay_us, "machine": machine.machine(), "versions": machine.versions()}
        rows = [one.as_json() for one in found]
        click.echo(json.dumps({**head, "summary": summary(found), "measurements": rows}))
        return
    out = Console()
    out.print(table(found))
    out.print(
        f"good: within {CLOSE_ENOUGH:.0%} of theory (plain: of the offered load), in real time"
    )
    for name, value in summary(found).items():
        out.print(f"{name.replace('_', ' ')}: {value:,}", highlight=False)


if __name__ == "__main__":
    run_benchmark(main)
