"""A plan with all its paths, as JSON."""

from __future__ import annotations

from collections.abc import Mapping

from knotless.routing.plan import Plan


def plan_to_json(plan: Plan, summary: Mapping[str, object]) -> dict[str, object]:
    """Return the ``summary`` and all paths of ``plan`` as a value for :func:`json.dumps`.

    ``sources`` has one entry per set of hosts with the same paths: their names, their VLAN, and
    ``paths``, see :func:`~knotless.routing.choices.single_path.listed_sources`. With multipath,
    there is what the ``as_json`` of its kind of choice describes
    (:mod:`knotless.routing.choices`).
    """
    return {**summary, **plan.choice.as_json(plan)}
