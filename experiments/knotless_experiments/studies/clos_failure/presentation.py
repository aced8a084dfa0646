"""The report of the clos-failure experiment: sentences, a table, a plot, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from knotless.base.counting import counted
from knotless.results import plots
from knotless_experiments.framework.excluded_runs import excluded
from knotless_experiments.framework.experiment import Plot, Presentation
from knotless_experiments.studies.clos_failure.bounces import BOUNCED, REPAIRED, TAGGED
from knotless_experiments.studies.clos_failure.columns import COLUMNS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]

WORDS = {
    REPAIRED: "repaired routes",
    BOUNCED: "bounces on one priority",
    TAGGED: "bounces to a priority of their own",
}

COLOURS = (plots.RED, plots.BLUE, plots.GREEN, plots.AMBER, plots.INK, plots.MUTED)


def sentences(rows: Sequence[Row]) -> Iterator[str]:
    """Say what was found in the valid rows."""
    valid = [row for row in rows if row["valid"]]
    for row in valid:
        yield (
            f"{row['fabric']} without {row['without']}, {WORDS[row['routes']]}, {row['traffic']}:"
            f" {_finding(row)}"
        )
    safe = [row for row in valid if not row["predicted_cycle"]]
    if safe:
        runs, frozen = sum(row["seeds"] for row in safe), sum(row["frozen"] for row in safe)
        yield (
            f"The static check found no cycle behind {counted(runs, 'runs')}:"
            f" {f'{frozen:,} of them FROZE' if frozen else 'none of them froze'}."
        )
    yield from excluded(rows)


def _finding(row: Row) -> str:
    cycle, frozen = row["predicted_cycle"], row["frozen"]
    check = f"the check finds the cycle {' '.join(cycle)}" if cycle else "the check finds no cycle"
    if not frozen:
        return f"{check}; none of {counted(row['seeds'], 'seeds')} froze."
    share = f"{frozen:,} of {counted(row['seeds'], 'seeds')} ({frozen / row['seeds']:.1%}) froze"
    as_predicted = row["as_predicted"]
    cycles = len(row["knots"])
    kinds = "all in one cycle" if cycles == 1 else f"in {cycles} cycles"
    where = (
        "of the check's graph"
        if as_predicted == frozen
        else f"of which {as_predicted:,} runs' are the check's"
    )
    return (
        f"{check}; {share}, {kinds} {where}, half of them within {row['frozen_after_us']:.0f} us."
    )


def _figure(rows: Sequence[Row]) -> Figure:
    figure = plots.new_figure(8.4, 1.0 + 0.4 * len(rows))
    axes = figure.subplots()
    for place, row in enumerate(rows):
        share = 100 * row["frozen"] / row["seeds"]
        axes.barh(place, 100, color=plots.GRID)
        axes.barh(place, share, color=plots.RED)
        axes.text(101, place, f"{share:.1f} %", va="center", fontsize=8)
    axes.set_yticks(
        range(len(rows)),
        [f"{WORDS[r['routes']]}, without {r['without']}, {r['traffic']}" for r in rows],
    )
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.set(xlabel="seeds that froze, %", xlim=(0, 112))
    return figure


def _times(rows: Sequence[Row], samples: Sequence[Row]) -> Figure | None:
    """Draw the times to deadlock of the seeds of each case; None if none froze."""
    keys = ("fabric", "without", "routes", "traffic", "repeat")
    figure = plots.new_figure(8.4, 3.4)
    axes = figure.subplots()
    drawn = 0
    for row in rows:
        own = [one for one in samples if all(one[key] == row[key] for key in keys)]
        times = sorted(one["since_us"] for one in own if one["deadlock"])
        if not times:
            continue
        shares = [100 * (place + 1) / row["seeds"] for place in range(len(times))]
        label = f"{WORDS[row['routes']]}, without {row['without']}, {row['traffic']}"
        axes.step(
            times,
            shares,
            where="post",
            color=COLOURS[drawn % len(COLOURS)],
            label=label,
            marker=".",
        )
        drawn += 1
    axes.set(xlabel="time to deadlock, us", ylabel="seeds that froze by then, %")
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    if not drawn:
        return None
    figure.legend(loc="outside lower left", fontsize=8)
    return figure


def _plots(rows: Sequence[Row], samples: Sequence[Row]) -> Iterator[Plot]:
    if rows:
        yield Plot("frozen", "Runs that deadlocked, of all seeds of a case.", _figure(rows))
        if (times := _times(rows, samples)) is not None:
            yield Plot("time-to-deadlock", "When the last channel of the deadlock stopped.", times)


def notes(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Explain the figures."""
    about = run["parameters"]
    return [
        (
            "Routes",
            "Before the failures, all paths go up and then down (d-mod-k). `repaired`: paths of"
            " failed links move so that no cycle of channel dependencies closes. `bounced`: a"
            " switch without its link down sends frames to another switch below, which sends them"
            " up again; all have one priority. `tagged`: the same paths; a frame that goes up"
            " again changes to the next priority, as in Tagger.",
        ),
        (
            "Runs",
            f"Each seed runs for {1000 * about['duration_s']:g} ms with PFC. Each host sends all it"
            " can to one host that is drawn (`permutation`), or to three (`3-permutations`).",
        ),
        (
            "As predicted",
            "The knot of a run is a shortest cycle of channels that wait for each other for ever."
            " It is as predicted if each of its steps is a channel dependency that the static check"
            " found.",
        ),
    ]


def present(
    run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], with_plots: bool
) -> Presentation:
    """Return the presentation of a run; with plots only if ``with_plots``."""
    rows = run["rows"]
    valid = [row for row in rows if row["valid"]]
    return Presentation(
        title="Links of a fat-tree fail, and frames bounce",
        lead="A fat-tree whose paths go up and then down cannot deadlock. After links fail, frames"
        " may have to go up again, and then the priority decides.",
        sentences=list(sentences(rows)),
        columns=COLUMNS,
        rows=rows,
        notes=notes(run),
        plots=tuple(_plots(valid, samples)) if with_plots else (),
    )
