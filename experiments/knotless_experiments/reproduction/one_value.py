"""Verdicts that rest on one value, and why.

Where nothing is random, one value is all that there is. Runs of this kind were made again with
another seed: ``experiments/own/other-seeds.json`` has a hash of their rows, which are those of the
stored runs. ``python -m knotless_experiments.reproduction.one_value RUN...`` adds more of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import click

from knotless.base.errors import KnotlessError
from knotless.base.files import read_text, write_whole
from knotless.results import results
from knotless.results.stored import FOLDER, OWN, Stored, read
from knotless_experiments.framework.experiment import ANALYSIS, EMULATION, SIMULATION
from knotless_experiments.reproduction.claim import Claim
from knotless_experiments.reproduction.claims import claims
from knotless_experiments.reproduction.headlines import judged, measured
from knotless_experiments.reproduction.rows import COMPARED, is_random, rows
from knotless_experiments.reproduction.verdicts import REPRODUCED, VERDICTS, verdict

AGAIN = f"{OWN}/other-seeds.json"
"""The file of runs that were made again, below the folder of all stored runs."""
COUNTED = "path analysis: nothing is random"
SAME = "simulated: nothing is random, all seeds give this value"
ONCE = "simulated once, with the time for which this machine computed"
BESIDE = "emulated once; a simulation of the same is beside it"
ALONE = "emulated once, and not simulated"
REASONS = (COUNTED, SAME, ONCE, BESIDE, ALONE)

Run = Mapping[str, Any]


def reason(stored: Stored, claim: Claim) -> str | None:
    """Return why the figure by which a claim is judged is one value; None if it is of several."""
    spreads = measured(stored, claim)
    on, spread = next(((on, each) for on, each in spreads.items() if each), ("", None))
    if on == SIMULATION:
        fixed = [row for row in rows(stored, claim.experiment, on) if not is_random(row)]
        if claim.compute(fixed) == spread:
            return SAME
    if on == ANALYSIS:
        return COUNTED
    if spread is None or spread.half_width is not None:
        return None
    if on == EMULATION:
        return BESIDE if spreads.get(SIMULATION) else ALONE
    return ONCE


def lines(stored: Stored, evidence: Path = FOLDER) -> Iterator[str]:
    """Yield the section of verdicts that rest on one value, line by line."""
    every = [
        (verdict(claim, judged(measured(stored, claim))), reason(stored, claim))
        for claim in claims()
    ]
    counted = [(says, why) for says, why in every if says in VERDICTS]
    by_reason = Counter(why for _, why in counted)
    reproduced = Counter(why for says, why in counted if says == REPRODUCED)
    ones = len(counted) - by_reason[None]
    yield "## Verdicts that rest on one value"
    yield ""
    yield (
        f"{ones} of {len(counted)} verdicts rest on one value, however often it was measured; "
        "`figures.csv` has the reason of each (`one_value`)."
    )
    yield ""
    yield "| why it is one value | verdicts | of them *reproduced* |"
    yield "|---|---|---|"
    for why in REASONS:
        yield f"| {why} | {by_reason[why]} | {reproduced[why]} |"
    yield ""
    fixed = [run for run in stored.runs if nothing_is_random(run)]
    hashes = {each["sha256"] for each in again(evidence)}
    same = [run for run in fixed if hash_of(run) in hashes]
    yield (
        f"{len(same)} of the {len(fixed)} stored simulations in which nothing is random were made "
        f"again with another seed: all {sum(len(run['rows']) for run in same):,} rows are equal. "
        "The others were not made again."
    )


def nothing_is_random(run: Run) -> bool:
    """Tell whether a run is a simulation whose rows depend on neither seed nor machine."""
    if run["experiment"] not in COMPARED or run["parameters"].get("on") != SIMULATION:
        return False
    common = {
        "experiment": run["experiment"],
        "computing": run["parameters"].get("computing") or None,
    }
    return not any(is_random({**common, **row}) for row in run["rows"])


def hash_of(run: Run) -> str:
    """Return the SHA-256 of the rows of a run, in any order."""
    rows_as_text = sorted(json.dumps(row, sort_keys=True) for row in run["rows"])
    return sha256("\n".join(rows_as_text).encode()).hexdigest()


def again(evidence: Path = FOLDER) -> Sequence[Mapping[str, Any]]:
    """Return the runs that were made again. Raises KnotlessError if they cannot be read."""
    held: Sequence[Mapping[str, Any]] = json.loads(read_text(evidence / AGAIN, KnotlessError))
    return held


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="RUN...")
def main(folders: Sequence[str]) -> None:
    """Compare runs, made again with another seed, with the stored ones, and keep their hashes.

    Example: python -m knotless_experiments.reproduction.one_value results/hops-*
    """
    by_hash = {hash_of(run): run for run in read().runs}
    kept = {each["sha256"]: each for each in again()}
    for folder in folders:
        run, _ = results.read(Path(folder))
        like = by_hash.get(hash_of(run))
        if like is None or like["seed"] == run["seed"]:
            raise KnotlessError(f"{folder}: no stored run with another seed has these rows")
        kept[hash_of(run)] = {
            **{key: run[key] for key in ("experiment", "id", "seed")},
            **{"commit": run["versions"]["commit"], "like": like["id"], "sha256": hash_of(run)},
        }
    every = sorted(kept.values(), key=lambda each: str(each["id"]))
    write_whole(FOLDER / AGAIN, json.dumps(every, indent=0) + "\n", KnotlessError)
    click.echo(f"{AGAIN}: {len(every)} runs")


if __name__ == "__main__":
    main()
