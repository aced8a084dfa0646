"""``python -m tests.prove_proofs``: thousands of trials of the program that judges proofs.

The tests run few of each. ``rules`` damages rules of small plans, ``proofs`` proof files of intact
ones; what is accepted has to be right, as others find out. ``cyclic`` judges plans that can
deadlock with ranks that others have improved: none is accepted. ``plans`` judges plans of all
engines on generated fabrics, and counts the accepted ones. ``frames`` lets switches admit tags and
sources of hosts, and follows such frames. ``routes`` does all of this for fabrics of routers,
``lids`` for InfiniBand subnets, ``bridges`` for 802.1Q switches. ``python -m tests.prove_proofs
rules 500 7`` runs 500 trials of one kind, from number 7 * 1,000,000 on.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from knotless.base.errors import KnotlessError
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import dir_files
from knotless.routing.engine import engines
from knotless.routing.plan import make_plan
from tests.property.test_every_engine import FABRICS, PROMISES, Promise
from tests.support.bridge_trials import (
    trial_of_bridges,
    trial_of_cyclic_bridges,
    trial_of_scripts,
)
from tests.support.damage import damaged_text
from tests.support.frame_trials import trial_of_frames
from tests.support.proof_trials import (
    PLANS,
    Evidence,
    cyclic_plan,
    trial_of_cyclic,
    trial_of_files,
    trial_of_proof,
    trial_of_rules,
)
from tests.support.proofs import files_of_plan, judge, proof_of_product, write_rules
from tests.support.route_trials import trial_of_cyclic_routes, trial_of_fabric, trial_of_routes
from tests.support.subnet_trials import trial_of_cyclic_subnet, trial_of_lids, trial_of_subnet

COUNTS = {
    **{"files": 100_000, "rules": 10_000, "proofs": 10_000},
    **{"cyclic": 1_000, "plans": 1_000, "frames": 1_000},
    **{"routes": 10_000, "lids": 10_000, "bridges": 10_000},
}
DAMAGED = 8
"""How often the routes or tables of one safe fabric are damaged."""
SEEDS_APART = 1_000_000


def generators(count: int, first: int) -> list[random.Random]:
    """Return one generator for each trial."""
    return [random.Random(first + number) for number in range(count)]  # noqa: S311 - repeatable


def files(count: int, first: int, scratch: Path) -> Counter[object]:
    """Damage the text of files; returns how often who has read them."""
    plans = [files_of_plan(spec, **choices) for spec, choices in PLANS]
    return Counter(
        trial_of_files(damaged_text(rng.choice(plans), rng), scratch / "rules")
        for rng in generators(count, first)
    )


def rules(count: int, first: int, scratch: Path) -> Counter[object]:
    """Damage rules; returns how often the product said what, and what was accepted."""
    plans = [files_of_plan(spec, **choices) for spec, choices in PLANS]
    return Counter(
        trial_of_rules(rng.choice(plans), scratch / "rules", rng)
        for rng in generators(count, first)
    )


def frames(count: int, first: int, scratch: Path) -> Counter[object]:
    """Open rules to what hosts may not send; returns how often which proofs were accepted."""
    plans = [files_of_plan(spec, **choices) for spec, choices in PLANS]
    return Counter(
        trial_of_frames(rng.choice(plans), scratch / "rules", rng)
        for rng in generators(count, first)
    )


def proofs(count: int, first: int, scratch: Path) -> Counter[object]:
    """Damage proofs; returns how often which change was accepted."""
    evidence = [
        Evidence(write_rules(scratch / str(number), files_of_plan(spec, **choices)))
        for number, (spec, choices) in enumerate(PLANS)
    ]
    return Counter(trial_of_proof(rng.choice(evidence), rng) for rng in generators(count, first))


def cyclic(count: int, first: int, scratch: Path) -> Counter[object]:
    """Judge plans that can deadlock; returns how many proofs were refused for how many plans."""
    table: Counter[object] = Counter()
    for number, rng in enumerate(generators(count, first)):
        folder = write_rules(scratch / str(number), cyclic_plan(rng))
        table["proofs refused"] += trial_of_cyclic(folder, rng)
        table["fabrics"] += 1
    return table


def plans(count: int, first: int, scratch: Path) -> Counter[object]:
    """Judge plans of all engines that promise to be acyclic; returns how many were accepted."""
    table: Counter[object] = Counter()
    promises = [promise for promise in PROMISES if promise.acyclic]
    for number, promise in enumerate(promises):
        wanted = count // len(promises) + (number < count % len(promises))
        for folder in _plans_of(promise, wanted, first, scratch):
            judgement = judge(folder, proof_of_product(folder))
            table["accepted" if judgement.accepted else judgement.text] += 1
            table[f"{promise.engine} {'accepted' if judgement.accepted else 'refused'}"] += 1
    return table


def _plans_of(promise: Promise, wanted: int, first: int, scratch: Path) -> list[Path]:
    """Write the rules of plans of an engine on generated fabrics; returns the folders."""
    folders: list[Path] = []

    @settings(
        max_examples=max(20, 2 * wanted),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def draw(data: st.DataObject) -> None:
        fabric = data.draw(FABRICS[promise.needs])
        select = data.draw(st.sampled_from(["spread", "low-port"]))
        root = None
        if engines()[promise.engine].has_root:
            root = data.draw(st.sampled_from([None, *(switch.name for switch in fabric.switches)]))
        if len(folders) < wanted:
            try:
                plan = make_plan(fabric, promise.engine, select=select, root=root)
            except KnotlessError:  # a fabric that the engine does not take
                return
            folder = scratch / f"{promise.engine}-{len(folders)}"
            folders.append(write_rules(folder, dir_files(fabric, compile_rules(plan))))

    number = first
    while len(folders) < wanted:
        seed(number)(draw)()
        number += 1
    return folders


@dataclass(frozen=True)
class Trials:
    """Trials of fabrics of one kind of tables: the intact ones, damaged ones, those with cycles."""

    intact: Callable[[Path, random.Random], tuple[str, Path, str]]
    damaged: Callable[[Path, str, Path, random.Random], str]
    cyclic: Callable[[Path, str, random.Random], int]

    def __call__(self, count: int, first: int, scratch: Path) -> Counter[object]:
        """Judge fabrics, most of them with damaged tables; returns how many were what."""
        table: Counter[object] = Counter()
        drawn = generators(count, first)
        while drawn:
            rng = drawn.pop(0)
            place = scratch / str(len(drawn))
            place.mkdir()
            claim, folder, proof = self.intact(place, rng)
            table[claim] += 1
            if claim == "safe":
                for other in drawn[:DAMAGED]:
                    table[self.damaged(folder, proof, place / "damaged", other)] += 1
                del drawn[:DAMAGED]
            elif claim == "cycle":
                table["proofs of cyclic fabrics refused"] += self.cyclic(folder, proof, rng)
            shutil.rmtree(place)
        return table


routes = Trials(trial_of_fabric, trial_of_routes, trial_of_cyclic_routes)
lids = Trials(trial_of_subnet, trial_of_lids, trial_of_cyclic_subnet)
bridges = Trials(trial_of_bridges, trial_of_scripts, trial_of_cyclic_bridges)

KINDS: Mapping[str, Callable[[int, int, Path], Counter[object]]] = {
    **{"files": files, "rules": rules, "proofs": proofs},
    **{"cyclic": cyclic, "plans": plans, "frames": frames},
    **{"routes": routes, "lids": lids, "bridges": bridges},
}


def main() -> None:
    """Run the kind that the first argument names, else all."""
    chosen = sys.argv[1:2] or [*KINDS]
    for kind in chosen:
        count = int(sys.argv[2]) if len(sys.argv) > 2 else COUNTS[kind]
        first = SEEDS_APART * int(sys.argv[3]) if len(sys.argv) > 3 else 0
        with TemporaryDirectory() as scratch:
            table = KINDS[kind](count, first, Path(scratch))
        print(f"{kind}: {count} trials", flush=True)  # noqa: T201 - its output
        for row, number in sorted(table.items(), key=str):
            print(f"{number:8} {row}", flush=True)  # noqa: T201 - its output


if __name__ == "__main__":
    main()
