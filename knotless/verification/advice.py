"""Advice: which engine to choose for a fabric, compared with the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from knotless.base.flow_control import FlowControl
from knotless.routing.engine import default_engine, engine_named
from knotless.topologies.fabric import Fabric
from knotless.verification.comparison import Compared

_ORDER = ("max_channel_load", "mean_switches", "vcs", "vlans", "rules")
"""Figures by which safe engines are ranked, the first one first; less is better."""
_REASONS = {
    "max_channel_load": "its most loaded channel carries {mine} paths instead of {best}",
    "mean_switches": "its paths pass {mine:.2f} switches on average instead of {best:.2f}",
    "vcs": "it needs {mine} virtual channels instead of {best}",
    "vlans": "it needs {mine} VLANs instead of {best}",
    "rules": "it needs {mine} rules instead of {best}",
}


@dataclass(frozen=True)
class Advice:
    """The engine advised, None if no plan is free of deadlock, and what was compared.

    ``reasons`` says for each engine why it is or is not advised. ``cheaper`` are engines with fewer
    virtual channels than the one advised: for each number, the best. ``ranking`` has the engines
    that can be chosen, the best first.
    """

    engine: str | None
    reason: str
    reasons: dict[str, str]
    cheaper: tuple[str, ...]
    rows: tuple[Compared, ...]
    ranking: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return the advice as plain values; the rows as in ``knotless plan --compare --json``."""
        return {
            "engine": self.engine,
            "reason": self.reason,
            "cheaper": list(self.cheaper),
            "engines": [
                {**row.as_json(), "verdict": self.reasons[row.engine]} for row in self.rows
            ],
        }


def advise(fabric: Fabric, rows: Sequence[Compared]) -> Advice:
    """Return which engine of a comparison on ``fabric`` to choose.

    Among the plans that have rules and cannot deadlock, it is the one with the lowest load of the
    most loaded channel; if equal, with the shortest paths, then with the fewest virtual channels,
    VLANs and rules; if all are equal, the default engine of the fabric, or the first name.
    """
    default = default_engine(fabric)

    def rank(row: Compared) -> tuple[Any, ...]:
        summary = row.summary or {}
        return (*(summary[key] for key in _ORDER), row.engine != default, row.engine)

    safe = sorted((row for row in rows if _is_choice(row)), key=rank)
    if not safe:
        reasons = {row.engine: _unsafe(row) for row in rows}
        return Advice(None, "no engine has a plan that cannot deadlock", reasons, (), tuple(rows))
    best = safe[0]
    metrics = best.summary or {}
    reasons = {row.engine: _compared(row, best) for row in rows}
    second = f" {safe[1].engine} is next: {reasons[safe[1].engine]}." if len(safe) > 1 else ""
    reason = (
        f"{best.engine}: of {len(safe)} engines whose plans cannot deadlock, its most loaded"
        f" channel carries the fewest paths: {metrics['max_channel_load']}; no engine gets below"
        f" {metrics['load_bound']:.2f}. Equal ones are ranked by length of paths,"
        f" virtual channels, VLANs and rules.{second} {engine_named(best.engine).rule}"
    )
    ranking = tuple(row.engine for row in safe)
    return Advice(best.engine, reason, reasons, _cheaper(safe), tuple(rows), ranking)


def _is_choice(row: Compared) -> bool:
    """Return whether an engine has a plan that cannot deadlock, with rules for switches."""
    return row.summary is not None and bool(row.summary["safe"]) and "rules" in row.summary


def _unsafe(row: Compared) -> str:
    """Return why an engine's plan is not safe, or why it has none."""
    if row.summary is None:
        return row.reason
    if row.summary["safe"]:
        return "no OpenFlow rules exist for it: it can be simulated"
    return f"can deadlock under {FlowControl(str(row.summary['flow_control'])).description}"


def _compared(row: Compared, best: Compared) -> str:
    """Return why an engine is not advised, in comparison with the best."""
    if row is best:
        return "advised"
    if row.summary is None or not _is_choice(row):
        return _unsafe(row)
    metrics, other = row.summary, best.summary or {}
    for key in _ORDER:
        if metrics[key] != other[key]:
            return _REASONS[key].format(mine=metrics[key], best=other[key])
    return "equal in all figures"


def _cheaper(safe: Sequence[Compared]) -> tuple[str, ...]:
    """Return the best engine for each smaller number of virtual channels, the largest first."""
    cheaper: list[str] = []
    vcs: Any = (safe[0].summary or {})["vcs"]
    for row in safe[1:]:
        summary: Any = row.summary or {}
        if summary["vcs"] < vcs:
            vcs = summary["vcs"]
            cheaper.append(
                f"{row.engine} needs only {vcs} ({summary['flow_control']}) and carries"
                f" {summary['max_channel_load']} paths on its most loaded channel"
            )
    return tuple(cheaper)
