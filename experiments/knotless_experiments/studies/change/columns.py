"""The columns of the change experiment."""

from __future__ import annotations

from dataclasses import replace

from knotless_experiments.framework.columns import ON, REPEAT, Column, Role, Row, columns, validity


def _deadlock(row: Row) -> str:
    return f"after {row['deadlock_after_s']:.2f} s" if row["deadlock"] else "no"


def _words(names: list[str]) -> str:
    return " ".join(names) or "-"


COLUMNS = columns(
    ON,
    Column.case("fabric", "string"),
    Column("flow_control", "string", heading="control", role=Role.CASE, brief=True),
    Column("way", "string", heading="change", role=Role.CASE, brief=True),
    replace(REPEAT, brief=True),
    Column("seed", "int64"),
    Column(
        *("tier", "int32", "", "tier"),
        brief=True,
        meaning="of the proven change; None for a naive one",
    ),
    Column("steps", "int32", heading="steps", meaning="of the proven change; 1 for a naive one"),
    Column(
        *("change_s", "double", "s", "took", Role.RESULT, "{:.2f} s"),
        brief=True,
        meaning="from the first to the last switch that took rules, waiting for older packets "
        "included",
    ),
    Column("deadlock", "bool", "", "deadlock", Role.MEASURE, cell=_deadlock, brief=True),
    Column(
        *("deadlock_after_s", "double", "s"),
        meaning="from the first switch that took rules to the beginning of the deadlock",
    ),
    Column("cycle", "list<string>", heading="cycle", form=_words, meaning="of the deadlock"),
    Column(
        *("stopped_frames", "int64", "frames", "dropped", Role.MEASURE, "{:,}"),
        brief=True,
        meaning="dropped at admission by steps that say so",
    ),
    Column(
        *("lost_frames", "int64", "frames", "lost", Role.MEASURE, "{:,}"),
        brief=True,
        meaning="all others that did not arrive",
    ),
    Column(
        *("dropped_pairs", "int32", "pairs", "pairs dropped"),
        meaning="of hosts, whose frames the steps say that they drop at admission",
    ),
    Column(
        *("estimated_drop_s", "double", "s"),
        form="{:.2f} s",
        heading="said to drop for",
        meaning="for how long the steps say that they drop frames, roughly",
    ),
    Column(
        *("dropped_s", "double", "s"),
        form="{:.2f} s",
        heading="dropped for",
        meaning="for how long they did: until all switches had rules that drop nothing; as the "
        "controller measured it, in real time",
    ),
    Column("delivered_frames", "int64", "frames", "delivered", form="{:,}"),
    Column(
        *("order", "list<string>", "", "order of switches", Role.RESULT, _words),
        meaning="in which they took rules, over all steps",
    ),
    Column(
        *("predicted_cycle", "list<string>"),
        meaning="a cycle that the static check finds in the mixtures of rules that can occur, "
        "empty if there is none",
    ),
    *validity(stretch=False, brief=False),
    measures=("deadlock", "lost_frames", "stopped_frames"),
)
