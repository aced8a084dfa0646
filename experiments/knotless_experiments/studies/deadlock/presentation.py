"""The report of the deadlock experiment: sentences, table, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from knotless.base.counting import counted
from knotless_experiments.framework.excluded_runs import excluded
from knotless_experiments.framework.experiment import EMULATION, Plot, Presentation
from knotless_experiments.studies.deadlock import transfers
from knotless_experiments.studies.deadlock.columns import COLUMNS, range_of
from knotless_experiments.studies.deadlock.notes import notes

Row = Mapping[str, Any]

TITLE = "A fabric that deadlocks, and one that cannot"
CLOSE_ENOUGH = 0.01
"""Relative difference within which a flow is said to get its fair share."""
NOTHING_MBPS = 0.0005


def _times(count: int, total: int) -> str:
    if total == 1:
        return "in the one run" if count else "not"
    return f"in {count} of {total} runs"


def sentences(rows: Sequence[Row]) -> list[str]:
    """Return the findings of the valid rows."""
    valid = [row for row in rows if row["valid"]]
    groups = list(dict.fromkeys((row["pattern"], row["tagging"]) for row in valid))
    findings = []
    for pattern, tagging in groups:
        of_group = [r for r in valid if (r["pattern"], r["tagging"]) == (pattern, tagging)]
        tags = ", tagged by hosts" if tagging == "host" else ""
        head = f"{pattern}{tags}: " if len(groups) > 1 or tags else ""
        findings += [head + sentence for sentence in _of_group(of_group)]
    return [*findings, *_verdicts(valid), *excluded(rows)]


def answer(rows: Sequence[Row]) -> tuple[str, str] | None:
    """Return whether runs froze where the static check said that they can; None without any."""
    good = [row for row in rows if row["valid"]]
    if not good:
        return None
    frozen = [row for row in good if row["deadlock"]]
    foreseen = sum(row["as_predicted"] for row in frozen)
    where = "in a cycle that the static check had found"
    rest = f", {'all' if foreseen == len(frozen) else foreseen} {where}" if frozen else ""
    return f"{len(frozen)} of {counted(len(good), 'runs')} froze", rest


def _of_group(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the findings of the UDP rows of one pattern."""

    def of_kind(routes: str, flow_control: str) -> list[Row]:
        wanted = (routes, flow_control, "udp")
        return [r for r in rows if (r["routes"], r["flow_control"], r["protocol"]) == wanted]

    if cyclic := of_kind("cyclic", "pause"):
        yield _frozen(cyclic)
    if acyclic := of_kind("acyclic", "pause"):
        yield _ran("The acyclic routes", "PAUSE on every link", acyclic)
    if dateline := of_kind("dateline", "pfc"):
        yield _ran(
            "The cyclic routes on two virtual channels (dateline)", "PFC on every link", dateline
        )
    if lossy := of_kind("cyclic", "none"):
        frozen = sum(row["deadlock"] for row in lossy)
        lost = range_of([row["lost_frames"] for row in lossy], 0)
        sent = range_of([row["sent_frames"] for row in lossy], 0)
        what = "nothing froze" if not frozen else f"it froze {_times(frozen, len(lossy))}"
        yield (
            f"Without flow control {what} on the cyclic routes, "
            f"but {lost} of {sent} frames were lost."
        )


def _verdicts(rows: Sequence[Row]) -> Iterator[str]:
    frozen = [row for row in rows if row["deadlock"]]
    if len(rows) > 1:
        safe = [row for row in rows if not row["predicted_cycle"]]
        wrong = sum(row["deadlock"] for row in safe)
        unpredicted = sum(not row["as_predicted"] for row in frozen)
        yield (
            f"The static check predicted {counted(len(safe), 'runs')} to be free of deadlock: "
            f"{wrong or 'none'} deadlocked. {counted(len(frozen), 'runs')} deadlocked, "
            f"{'all' if not unpredicted else f'{len(frozen) - unpredicted}'} in a cycle of "
            "channels that the check had found."
        )


def _frozen(rows: Sequence[Row]) -> str:
    frozen = [row for row in rows if row["deadlock"]]
    if not frozen:
        return "With PAUSE on every link the cyclic routes did not freeze in these runs."
    knots = list(dict.fromkeys(" ".join(row["cycle"]) for row in frozen))
    agreed = all(row["cycle"] == row["predicted_cycle"] for row in frozen)
    foreseen = all(row["as_predicted"] for row in frozen)
    verdict = "exactly the knot" if agreed else "not always the knot"
    if foreseen and not agreed:
        verdict = "of the cycles, though not always the shortest,"
    still = [sum(mbps < NOTHING_MBPS for mbps in row["flows_mbps"]) for row in frozen]
    flows = len(frozen[0]["flows_mbps"])
    stood = f"{range_of(still, 0)} of {flows} flows stood still"
    stood = "nothing moved any more" if min(still) == flows else stood
    lost = range_of([row["lost_frames"] for row in frozen], 0)
    times = f" {_times(len(frozen), len(rows))}" if len(rows) > 1 else ""
    return (
        f"With PAUSE on every link the cyclic routes froze{times}: channels {' or '.join(knots)} "
        f"formed the knot, {verdict} that the static check had predicted from the rules; "
        f"{stood}, and {lost} frames were lost."
    )


def _ran(who: str, how: str, rows: Sequence[Row]) -> str:
    frozen = sum(row["deadlock"] for row in rows)
    lost = sum(row["lost_frames"] for row in rows)
    flows = [mbps for row in rows for mbps in row["flows_mbps"]]
    off = max(
        abs(mbps / share - 1)
        for row in rows
        for mbps, share in zip(row["flows_mbps"], row["theory_flows_mbps"], strict=True)
    )
    froze = "did not freeze" if not frozen else f"FROZE {_times(frozen, len(rows))}"
    nothing = "lost no frame" if not lost else f"LOST {counted(lost, 'frames')}"
    near = f"within {100 * off:.1f} % of" if off <= CLOSE_ENOUGH else f"up to {100 * off:.1f} % off"
    return (
        f"{who}, with {how}, {froze} and {nothing}: each flow got {range_of(flows)} Mbit/s, "
        f"{near} its fair share ({range_of(rows[0]['theory_flows_mbps'], 3)})."
    )


def pick(rows: Sequence[Row], routes: str, flow_control: str) -> Row | None:
    """Return the first UDP row of that kind, preferably a valid one."""
    wanted = (routes, flow_control, "udp")
    chosen = [r for r in rows if (r["routes"], r["flow_control"], r["protocol"]) == wanted]
    return next((row for row in chosen if row["valid"]), chosen[0] if chosen else None)


def draw_plots(run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]]) -> list[Plot]:
    """Return the plots for which there are rows."""
    rows: list[Row] = [{**row, "index": index} for index, row in enumerate(run["rows"])]
    groups = list(dict.fromkeys((row["pattern"], row["tagging"]) for row in rows))
    shown: list[Plot] = []
    if len(groups) > 1:
        shown = [_table(rows, tagging) for tagging in dict.fromkeys(tag for _, tag in groups)]
    for pattern, tagging in groups:
        of_group = [r for r in rows if (r["pattern"], r["tagging"]) == (pattern, tagging)]
        suffix = "" if len(groups) == 1 else f"-{pattern}-{tagging}"
        shown += _of_pattern(of_group, samples, suffix)
    return shown


def _table(rows: Sequence[Row], tagging: str) -> Plot:
    from knotless_experiments.studies.deadlock import figures

    return Plot(
        f"table-{tagging}",
        "Mean Mbit/s of a flow and lost frames, as in tables 3 and 4 of the paper, tagged by the "
        f"{'hosts' if tagging == 'host' else 'switches'}. Red: frozen; blue: the darker, the "
        "nearer to the fair shares.",
        figures.table([row for row in rows if row["tagging"] == tagging]),
    )


def _of_pattern(
    rows: Sequence[Row], samples: Sequence[Mapping[str, Any]], suffix: str
) -> Iterator[Plot]:
    """Draw the fabric, and the goodput over time and in the window, for the runs of a pattern."""
    from knotless_experiments.studies.deadlock import drawing, figures

    where = transfers.named(rows[0]["pattern"]).words
    if rows[0]["tagging"] == "host":
        where += ", tagged by hosts"
    kinds = (("cyclic", "pause"), ("acyclic", "pause"), ("dateline", "pfc"), ("cyclic", "none"))
    by_kind = {kind: row for kind in kinds if (row := pick(rows, *kind)) is not None}
    pair = [by_kind[kind] for kind in kinds[:2] if kind in by_kind]
    if pair:
        for number, row in enumerate(pair):
            yield Plot(
                f"{'fabric' if number else 'knot'}{suffix}",
                f"{row['routes'].capitalize()} routes: {where}. Arrows are channels, the wider the"
                " more flows they have. Red: the knot that the detector reported; blue: other"
                " channels with flows.",
                drawing.knot(row),
                half=True,
            )
    sampled = {sample["row"] for sample in samples}
    lines = [row for row in by_kind.values() if row["index"] in sampled]
    if lines:
        yield Plot(
            f"timeline{suffix}",
            f"Total goodput of all flows, in steps of a tenth of a second, until the "
            f"end of the measuring window (grey): {where}. Dashed: the sum of the fair shares. In "
            "a deadlock the line falls to zero and stays there.",
            figures.timeline(lines, samples),
        )
    yield Plot(
        f"goodput{suffix}",
        f"Each dot is one flow of one run, in its measuring window: {where}. Dashed: the "
        "smallest fair share of a flow. Crosses: runs that are not valid.",
        figures.goodput(rows),
    )


def present(
    run: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], draw: bool
) -> Presentation:
    """Return the presentation of a run; with plots only if ``draw``."""
    rows = run["rows"]
    names = list(dict.fromkeys(row["pattern"] for row in rows)) or [transfers.RING_4.name]
    on = run["parameters"].get("on", EMULATION)
    sends = (
        "with iperf3 as fast as it can, over Open vSwitch switches"
        if on == EMULATION
        else "as fast as it can, in the simulator"
    )
    fabrics = "; ".join(transfers.named(name).words for name in names)
    return Presentation(
        title=TITLE,
        lead=f"{fabrics[0].upper()}{fabrics[1:]}, {sends}. The same flows on the same switches; "
        "only the routes and the flow control differ. No channel carries more than two flows.",
        sentences=sentences(rows),
        columns=COLUMNS if len(names) > 1 else COLUMNS.less_brief("pattern"),
        rows=rows,
        notes=notes(run),
        plots=draw_plots(run, samples) if draw else (),
        answer=answer(rows),
    )
