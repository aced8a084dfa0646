"""The answer of ``knotless simulate``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from knotless.base.counting import counted
from knotless.base.flow_control import FlowControl
from knotless.cli.answer import (
    Answer,
    Cycle,
    Figure,
    Group,
    Headline,
    Hint,
    Reason,
    Several,
    Table,
    Tone,
    written,
)
from knotless.cli.commands._plan_options import PLAN_OPTIONS
from knotless.cli.commands._verdict_answer import engine_name
from knotless.cli.commands.simulate.options import Output
from knotless.cli.options import given_options
from knotless.simulation import Result
from knotless.simulation.result import OPTIONAL_KEYS
from knotless.simulation.verdict import frames_lost, frames_over_limit, times_given_up

_TREE = 10
"""Lines of a tree of pauses that a terminal shows."""


def simulation_answer(spec: str, result: Result, tree: Sequence[str], output: Output) -> Answer:
    """Return what to say about a simulation; ``tree`` are the lines of its trees of pauses."""
    values = result.summary()
    return Answer(
        _headline(result, values),
        why=[*_why(result, values), Several(tree, "lines of pauses", _TREE)],
        figures=[*_figures(result, values)],
        tables=[*_completions(values, is_drawn=output.plot is not None)],
        remarks=[*written(figure=output.plot, recording=output.record, values=output.out)],
        hints=[*_hints(spec, result, values, output)],
        details=[*_details(values)],
    )


def _headline(result: Result, values: Mapping[str, Any]) -> Headline:
    condition = FlowControl(values["flow_control"]).condition
    engine = engine_name(values["engine"])
    by = f" by {', '.join(values['transport'])}" if values["transport"] else ""
    by += f" ({values['endpoints']})" if "endpoints" in values else ""
    subject = f"{values['pattern']}{by} on {values['fabric']} with {engine} {condition}"
    lost = frames_lost(result.report)[0]
    parts = [f"{counted(lost, 'frames')} lost"] if lost else []
    if given_up := times_given_up(result.report):
        parts.append(f"links gave up {counted(given_up, 'times')}")
    if not values["packets"]:
        parts.insert(0, "nothing delivered")
    if values["deadlock"]:
        since = Figure("", values["knot_since_us"], "us").text
        rest = [f"after {since}" if values["knot_since_us"] else "at once"]
        if values["knot_broken_us"] is not None:
            rest[0] += f", until {Figure('', values['knot_broken_us'], 'us').text}"
        if values["deadlocks"] > 1:
            rest.append(f"the first of {counted(values['deadlocks'], 'times')}")
        return Headline(subject, "froze", ", ".join([*rest, *parts]), Tone.BAD)
    simulated = Figure("", values["simulated_us"], "us").text
    if not values["packets"] and not lost:
        early = f"in {simulated}: give a longer --duration"
        return Headline(subject, parts[0], early, tone=Tone.BAD)
    if parts:
        return Headline(subject, ", ".join(parts), tone=Tone.BAD)
    return Headline(subject, "no deadlock, no frame lost", f"in {simulated}")


def _why(result: Result, values: Mapping[str, Any]) -> Iterator[Reason]:
    if values["knot"]:
        yield Cycle(values["knot"])
    held = values["knot_frames"].items()
    yield Several(
        [
            f"{channel} holds {', '.join(f'{n} of {flow}' for flow, n in flows.items())}"
            for channel, flows in held
        ],
        "channels",
    )
    if not values["packets"] and values["in_network"]:
        end = Figure("", values["simulated_us"], "us").text
        left = counted(values["in_network"], "packets")
        yield f"under way at the end, after {end}: {left}"
    lost, causes = frames_lost(result.report)
    if lost and causes:
        yield f"lost by: {', '.join(f'{cause} {count:,}' for cause, count in causes.items())}"
    if limited := frames_over_limit(result.report):
        yield f"broadcasts limited: {limited:,} dropped"
    yield Several(values["problems"], "problems")


def _figures(result: Result, values: Mapping[str, Any]) -> Iterator[Figure]:
    hosts = result.scenario.plan.fabric.hosts
    yield Figure("packets", values["packets"], "arrived", also=(values["in_network"], "under way"))
    if "answered" in values:
        yield Figure("answers", values["answered"], "arrived")
    lines = sum(host.rate_mbps for host in hosts)
    yield Figure("throughput", values["throughput_mbps"], "Mbit/s", whole=lines)
    slowest, fastest = values["flow_mbps_min"], values["flow_mbps_max"]
    if slowest != fastest:
        yield Figure("slowest flow", slowest, "Mbit/s", also=(fastest, "the fastest"))
    latency = values["latency_us"]
    yield Figure("latency", latency["mean"], "us", where="on average", also=(latency["p99"], "p99"))
    bound = values["collective_bound_us"]
    yield Figure("collective", values["collective_us"], "us", at_least=bound)
    if values["collective_us"] is None:
        yield Figure("program", values["program_us"], "us")
    yield Figure("storms", values["storms"]["detected"], "detected")
    if values["messages"] != values["packets"]:
        left = (values["messages_under_way"], "under way")
        yield Figure("messages", values["messages"], "complete", also=left)
    paused = f"in all, by {counted(values['pauses'], 'pauses')}"
    yield Figure("paused", values["paused_us"], "us", where=paused)
    yield Figure("marked", values["marked_frames"], "frames")
    yield Figure("sent again", values["retransmitted_frames"], "frames")
    if "retry" in values:
        mean = counted(round(values["retry"]["replay_mean_bytes"]), "bytes")
        kept = f"{mean} kept on average at most"
        yield Figure("replays", values["retry"]["llr_tx_replay"], where=f"of links, {kept}")
    yield Figure("collisions", values["collisions"])
    pools = values["pool_peaks"].items()
    for name, peak in sorted(pools, key=lambda pool: -pool[1]["peak_bytes"])[:1]:
        place = f"of {name} at {peak['switch']}"
        yield Figure("fullest pool", peak["peak_bytes"], "bytes", where=place)
    yield Figure("fullest buffer", values["account_peak_bytes"], "bytes")
    yield Figure("busiest channel", 100 * values["max_channel_load"], "% of its line")


def _completions(values: Mapping[str, Any], *, is_drawn: bool) -> Iterator[Table]:
    """Yield completion times and slowdowns of all messages, and by size."""
    how = "" if is_drawn else " (--plot F.svg draws them)"
    times, slowdowns = values["fct_us"], values["slowdown"]
    if times is None or not times["messages"]:
        return
    headings = ["bytes", "messages", "mean", "p50", "p99", "max"]
    slow: Mapping[str, Any] = _by_size(slowdowns) if slowdowns is not None else {}
    yield Table(
        f"completion times of messages, us{'; slowdown: the 99th percentile' if slow else ''}{how}",
        [*headings, *(["slowdown"] if slow else [])],
        [
            [size, *(row[key] for key in headings[1:]), *([slow[size]["p99"]] if slow else [])]
            for size, row in _by_size(times).items()
        ],
    )


def _by_size(counted: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    rows: dict[str, Mapping[str, Any]] = {"all": counted}
    for each in counted["bins"]:
        to = "" if each["to_bytes"] is None else f" to {each['to_bytes']:,}"
        rows[f"above {each['above_bytes']:,}{to}"] = each
    return rows


def _hints(spec: str, result: Result, values: Mapping[str, Any], output: Output) -> Iterator[Hint]:
    given = [spec, *given_options(*PLAN_OPTIONS)]
    if output.record is not None:
        yield Hint("watch it", ["knotless", "replay", output.record])
    if values["deadlock"]:
        yield Hint("see which packets close the cycle", ["knotless", "plan", *given])
        control = given_options("flow_control")
        yield Hint("find an engine that is safe", ["knotless", "advise", spec, *control])
    elif result.scenario.demand.workload is None and (pattern := given_options("pattern")):
        yield Hint("compare with fair rates", ["knotless", "analyse", *given, *pattern])


def _details(values: Mapping[str, Any]) -> Iterator[Group]:
    shown = {
        key: value
        for key, value in values.items()
        if (key not in OPTIONAL_KEYS or value is not None) and key not in ("fct_us", "slowdown")
    }
    yield Group("simulation", shown)
    for title, statistics in (
        ("completion times, us", values["fct_us"]),
        ("slowdown", values["slowdown"]),
    ):
        if statistics is not None and statistics["messages"]:
            rows = _by_size(statistics)
            keys = ("messages", "mean", "p50", "p95", "p99", "max")
            yield Group(
                title, {size: {key: row[key] for key in keys} for size, row in rows.items()}
            )
