"""Frames that are refused while hosts change their tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.verification.changes.admission import refused_frames


class Counted(Mapping[str, SwitchRules]):
    """Rules of switches, and how often those of each were decoded."""

    def __init__(self, rules: Mapping[str, SwitchRules]) -> None:
        self.rules, self.times = rules, Counter[str]()

    def __getitem__(self, name: str) -> SwitchRules:
        self.times[name] += 1
        return self.rules[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)


def test_the_rules_of_a_switch_are_decoded_once_for_all_its_hosts() -> None:
    fabric = load("ring,4,hosts=3")
    generations, counts = [], []
    for engine in ("updown", "lash"):
        plan = make_plan(fabric, PlanRequest.from_options(engine=engine, vcs=2, tagging="host"))
        rules = Counted(compile_rules(plan))
        counts.append(rules.times)
        generations.append(Generation(rules, plan.host_tags()))
    assert generations[0].tags != generations[1].tags
    assert refused_frames(fabric, generations, ()) > 0
    assert counts == [Counter({switch.name: 1 for switch in fabric.switches})] * 2
