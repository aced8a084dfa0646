"""Routing: engines, plans, VLANs, rules, and the check of the rules."""

from __future__ import annotations

from routing.compile import compile_rules
from routing.plan import Hop, Plan, make_plan, refuse_deadlock
from routing.request import PlanRequest
from routing.rules import FabricRules, SwitchRules
from routing.verdict import Verdict, check

__all__ = [
    "FabricRules",
    "Hop",
    "Plan",
    "PlanRequest",
    "SwitchRules",
    "Verdict",
    "check",
    "compile_rules",
    "make_plan",
    "refuse_deadlock",
]
