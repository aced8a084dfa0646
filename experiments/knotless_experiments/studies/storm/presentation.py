"""The report of the storm experiment: sentences, a table, plots, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from knotless.base.counting import counted
from knotless.results import plots
from knotless.simulation.pause_tree_plot import pause_tree_figure
from knotless_experiments.framework.columns import Column, Role
from knotless_experiments.framework.excluded_runs import excluded
from knotless_experiments.framework.experiment import Plot, Presentation
from knotless_experiments.studies.storm.cases import protection_named
from knotless_experiments.studies.storm.columns import COLUMNS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
Group = tuple[str, str]

TABLE = tuple(
    column
    for column in COLUMNS.shown
    if column.role in (Role.CASE, Role.MEASURE) or column.name == "spread_ms"
)
"""The columns of the table on pages."""
COLOURS = (plots.RED, plots.BLUE, plots.GREEN, plots.AMBER, plots.INK, plots.MUTED)


def groups_of(rows: Sequence[Row]) -> dict[Group, dict[str, list[Row]]]:
    """Return the rows by (fabric, traffic), and then by protection."""
    groups: dict[Group, dict[str, list[Row]]] = {}
    for row in rows:
        of_group = groups.setdefault((row["fabric"], row["traffic"]), {})
        of_group.setdefault(row["protection"], []).append(row)
    return groups


def range_of(column: Column, runs: Sequence[Row]) -> str:
    """Return the least and the greatest text of a column; a storm without an end is the longest."""

    def rank(row: Row) -> tuple[bool, Any]:
        return row[column.name] is None, row[column.name] or 0

    low, high = column.text(min(runs, key=rank)), column.text(max(runs, key=rank))
    least, _, rest = low.partition(" ")
    if low == high:
        return low
    return f"{least if high.endswith(f' {rest}') else low} to {high}"


def sentences(rows: Sequence[Row]) -> Iterator[str]:
    """Say what was found in the valid rows."""
    for (fabric, traffic), by_protection in groups_of([r for r in rows if r["valid"]]).items():
        for name, runs in by_protection.items():
            yield f"{fabric}, {traffic}, {protection_named(name).words}: {_finding(runs)}"
    yield from excluded(rows)


def _finding(runs: Sequence[Row]) -> str:
    worst = max(runs, key=lambda row: (row["stopped_channels"], row["stopped_flows"]))
    stood = (
        f"{worst['stopped_channels']} of {worst['channels']} channels and"
        f" {worst['stopped_flows']} of {worst['flows']} flows between other hosts stood still"
        if worst["stopped_channels"] or worst["stopped_flows"]
        else "nothing stood still"
    )
    times = [row["well_again_ms"] for row in runs]
    ends = [time for time in times if time is not None]
    if len(ends) < len(times):
        again = "and they did not move again"
    elif max(ends) == 0:
        again = "at any look"
    else:
        again = f"and all was well again after {max(ends):.0f} ms"
    lost = max(row["lost_others"] for row in runs)
    frames = (
        f"these flows lost up to {counted(lost, 'frames')}" if lost else "none of them lost frames"
    )
    share = fmean(row["delivered_share"] for row in runs)
    return f"{stood}, {again}; {frames}; {100 * share:.0f} % of what they sent arrived."


def draw(rows: Sequence[Row], samples: Sequence[Mapping[str, Any]]) -> Iterator[Plot]:
    """Yield the plots for which there are samples: of the first run of each case."""
    first = [sample for sample in samples if sample["repeat"] == 1]
    if rows and first:
        yield Plot(
            "storm",
            "Flows between other hosts that stand still, in percent, from the beginning of the"
            " storm. A host pauses its link at time 0 and never resumes.",
            _figure(rows, first, "silent", "flows"),
        )
        yield Plot(
            "channels",
            "Channels that stand still behind that host, in percent.",
            _figure(rows, first, "standing", "channels"),
        )
    # Rows of older runs have no tree. One drawing says how a storm spreads.
    spread = next((row for row in rows if row.get("first_pauses")), None)
    if spread is not None:
        case = f"{spread['fabric']}, {spread['traffic']}, {spread['protection']}"
        yield Plot(
            "pause-tree",
            "How the storm spreads: when each channel was paused first, from the beginning of the"
            " storm, below the channel because of which.",
            pause_tree_figure(case, trees_of(spread["first_pauses"])),
        )


def trees_of(first_pauses: Sequence[str]) -> list[dict[str, Any]]:
    """Return the trees of a row, as :mod:`knotless.simulation.pause_tree` does; times in us."""
    paused: dict[str, list[dict[str, Any]]] = {}
    trees = []
    for line in first_pauses:
        since_ms, cause, channel = line.split()
        if cause not in paused:
            paused[cause] = []
            trees.append({"congested": cause, "by_host": True, "paused": paused[cause]})
        paused[channel] = []
        since_us = 1000 * float(since_ms)
        paused[cause].append({"channel": channel, "since_us": since_us, "paused": paused[channel]})
    return trees


def _figure(
    rows: Sequence[Row], samples: Sequence[Mapping[str, Any]], value: str, total: str
) -> Figure:
    groups = groups_of(rows)
    figure = plots.new_figure(8.4, 0.6 + 2.0 * len(groups))
    every = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
    names = list(dict.fromkeys(row["protection"] for row in rows))
    for axes, ((fabric, traffic), by_protection) in zip(every, groups.items(), strict=True):
        for name, runs in by_protection.items():
            case = (fabric, traffic, name)
            line = [s for s in samples if (s["fabric"], s["traffic"], s["protection"]) == case]
            axes.plot(
                [sample["t_ms"] for sample in line],
                [100 * sample[value] / runs[0][total] for sample in line],
                color=COLOURS[names.index(name) % len(COLOURS)],
                linestyle="-" if names.index(name) < len(COLOURS) else "--",
                label=name,
                linewidth=1.4,
            )
        axes.set_title(f"{fabric}, {traffic}")
        axes.set(ylabel=f"{total}, %", ylim=(-3, 103))
        axes.set_xlim(left=0)
    figure.legend(*every[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    every[-1].set(xlabel="ms after the beginning of the storm")
    return figure


def notes(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Explain the figures."""
    about = run["parameters"]
    return [
        (
            "The storm",
            f"The first host asks its switch, {1000 * about['begins_s']:g} ms after traffic began,"
            " to send nothing to it, and never resumes. Each host sends, at random (Poisson) times,"
            f" {100 * about['load']:g} % of what its line carries, also while the storm lasts.",
        ),
        (
            "Stopped channels",
            "A channel stands still if it is paused and the ingress buffer at its end holds more"
            " than XON of frames that wait for the host that pauses, or for another channel that"
            " stands still. The switch model computes this exactly.",
        ),
        (
            "Stopped flows",
            "A flow stands still if none of its frames has arrived since the look before, in a time"
            " in which about 20 would on average. Flows to and from the host that pauses do not"
            " count: their frames are lost where a watchdog drops.",
        ),
        (
            "Protection",
            "`drop:MS`, `drop-egress:MS` and `forward:MS` are watchdogs of all switches, as the PFC"
            " watchdog of SONiC: after the detection time they drop all frames of a paused queue"
            " and what arrives from its port, or only the frames of the queue, or ignore its pause."
            " The restoration time is twice the detection time. `limit:MS`: switches obey a"
            " host that pauses for at most 60 % of the time and this long at once, and ignore what"
            " is beyond.",
        ),
    ]


def present(
    run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], with_plots: bool
) -> Presentation:
    """Return the presentation of a run; with plots only if ``with_plots``."""
    rows = run["rows"]
    valid = [row for row in rows if row["valid"]]
    return Presentation(
        title="How far a pause storm reaches",
        lead="One host pauses its link for ever. Frames for it fill buffers, which pause further"
        " channels, and flows that have nothing to do with it stand still.",
        sentences=list(sentences(rows)),
        columns=COLUMNS,
        rows=rows,
        notes=notes(run),
        plots=tuple(draw(valid, samples)) if with_plots else (),
    )
