"""The record of a change, what was proven for each step, and the rules of steps as folders."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from knotless.base.errors import RuleError
from knotless.base.files import write_all
from knotless.forwarding.openflow.directory import dir_files, remove_dir, write_files
from knotless.forwarding.openflow.ofctl_writer import write
from knotless.forwarding.openflow.rules import FabricRules
from knotless.verification.changes.change import Change
from knotless.verification.dependencies import longest_chain

MAX_DROPPED = 1000
"""Pairs that are listed by name."""
INSTALL_S = 0.1
"""An estimate: until all switches have confirmed a step."""
READ_S = 1.0
"""An estimate: until cached entries are removed, and counters have been read."""
WAITING_BYTES = 64 << 10
"""An estimate: of the frames that wait for a link."""


def change_record(change: Change) -> dict[str, object]:
    """Return what was proven for each step.

    ``tier``, ``proven``, ``rules_changed``, the ``fabric`` and the ``flow_control`` for which it
    is proven, the digest of the rules ``before``, what is dropped in any step (``dropped``,
    ``dropped_pairs`` and ``estimated_drop_s``, as below), how many pairs of hosts are down before
    it because failures have cut their routes (``down_pairs``), and until which step
    (``down_until_step``, 0 if there are none); and for each of ``steps``:

    step, action : its number, from 1, and what is done.
    drain : whether it awaits quiescence: all packets of older rules have left the fabric.
    dropped, dropped_pairs : (source, destination) of the frames that are dropped at admission, at
        most :data:`MAX_DROPPED`, and how many these are in all, each destination counted.
    estimated_drop_s : how long, roughly: see :func:`estimated_drop_s`.
    down_pairs : pairs of hosts that are still down after it.
    stopped, stopped_pairs : the same list, and the number of its entries.
    rules_changed : rules and groups that are added, modified or deleted.
    sha256 : of all rules after the step, see :func:`digest`.
    generations : how many generations of rules packets could meet.
    lag : by how many generations switches could lag behind: 1 if all had confirmed the step before.
    pairs, undelivered : ordered pairs of hosts, and those that the rules after it do not deliver.
    lost : receivers that no generation alone fails, but some mixture of them.
    dependencies, acyclic, cycle, witnesses : of the virtual channels, over all packets of all
        mixtures.
    longest_chain : virtual channels that wait for each other in a row, at most; null if there is
        a cycle. After as many rounds, in each of which every virtual channel sends all frames
        that it held at the beginning, no packet of older rules is left.
    problems : why packets are lost, and problems of rules.
    """
    return {**_head(change), "steps": _steps(change)}


def described(change: Change) -> dict[str, object]:
    """Return ``tier``, ``steps``, ``rules_changed`` and ``certificate``, as commands print them.

    The steps have ``step action drain stopped_pairs rules_changed``. ``dropped``, ``dropped_pairs``
    and ``estimated_drop_s`` say what the change drops: see :func:`change_record`.
    """
    keys = ("step", "action", "drain", "stopped_pairs", "dropped_pairs", "rules_changed")
    steps = _steps(change)
    return {
        "tier": change.tier,
        "steps": [{key: step[key] for key in keys} for step in steps],
        "rules_changed": change.rules_changed,
        **_drops(change),
        "certificate": {**_head(change), "steps": steps},
    }


def _head(change: Change) -> dict[str, object]:
    return {
        "fabric": change.before.fabric.name,
        "flow_control": change.before.flow_control,
        "tier": change.tier,
        "proven": change.proven,
        "rules_changed": change.rules_changed,
        "before": digest(change.before.rules),
        "down_pairs": change.down[0] if change.down else 0,
        "down_until_step": change.served_by_step,
        **_drops(change),
    }


def _drops(change: Change) -> dict[str, object]:
    return {
        "dropped": [list(pair) for pair in change.dropped[:MAX_DROPPED]],
        "dropped_pairs": change.count(change.dropped),
        "estimated_drop_s": estimated_drop_s(change),
    }


def estimated_drop_s(change: Change) -> float:
    """Return for how long a change drops frames of any pair, roughly.

    A step takes :data:`INSTALL_S`. A drain takes :data:`READ_S`, and as many rounds as the longest
    chain has virtual channels, in each of which every link sends :data:`WAITING_BYTES`.
    """
    return round(sum(_step_drop_s(change, number) for number in range(len(change.steps))), 3)


def _step_drop_s(change: Change, number: int) -> float:
    """Return the part of a step, and of the messages that end its drops."""
    step = change.steps[number]
    if not step.dropped:
        return INSTALL_S if number and change.steps[number - 1].dropped else 0.0
    if not step.await_quiescence:
        return INSTALL_S
    links = change.before.fabric.links
    per_round_s = max(
        (WAITING_BYTES * 8 / (1e6 * link.rate_mbps) + link.delay_us / 1e6 for link in links),
        default=0.0,
    )
    rounds = longest_chain(step.proof.mixed.dependencies) or 0
    return INSTALL_S + READ_S + rounds * per_round_s


def _steps(change: Change) -> list[dict[str, object]]:
    return [_of_step(change, number) for number in range(len(change.steps))]


def _of_step(change: Change, number: int) -> dict[str, object]:
    step = change.steps[number]
    proof, after = step.proof, step.proof.after.outcome
    mixed = proof.mixed.outcome
    return {
        "step": number + 1,
        "action": step.action,
        "drain": step.await_quiescence,
        "stopped": [list(pair) for pair in step.dropped[:MAX_DROPPED]],
        "stopped_pairs": len(step.dropped),
        "dropped": [list(pair) for pair in step.dropped[:MAX_DROPPED]],
        "dropped_pairs": change.count(step.dropped),
        "estimated_drop_s": round(_step_drop_s(change, number), 3),
        "down_pairs": change.down[number + 1],
        "rules_changed": step.rules_changed,
        "sha256": digest(step.rules),
        "generations": len(proof.generations),
        "lag": proof.generations[-1].lag,
        "pairs": after.pairs,
        "undelivered": after.undelivered,
        "lost": proof.lost,
        "dependencies": len(proof.mixed.dependencies),
        "longest_chain": longest_chain(proof.mixed.dependencies),
        "acyclic": proof.acyclic,
        "cycle": mixed.cycle,
        "witnesses": [witness.as_json() for witness in mixed.witnesses],
        "problems": proof.problems(),
    }


def digest(rules: FabricRules) -> str:
    """Return the SHA-256 of all rules and groups, as ``knotless flows`` writes them.

    The text consists of, for each switch in the order of names, its name on a line, its rules and
    its groups.
    """
    hashed = hashlib.sha256()
    for name in sorted(rules):
        flows, groups = write(rules[name])
        hashed.update(f"{name}\n{flows}{groups}".encode())
    return hashed.hexdigest()


RECORD_FILE = "certificate.json"


def step_files(change: Change) -> list[dict[str, str]]:
    """Return the files of the rules before the change, and of those after each step, by name."""
    before = change.before
    groups = [before.multicast, *(change.groups for _ in change.steps)]
    if change.steps:
        groups[-1] = change.multicast
    states = [(before.rules, before.tags), *((step.rules, step.tags) for step in change.steps)]
    return [
        dir_files(before.fabric, rules, of_state, tags)
        for (rules, tags), of_state in zip(states, groups, strict=True)
    ]


def write_steps(change: Change, directory: str | Path) -> None:
    """Write all rules before the change to ``directory/0``, those after step k to ``directory/k``.

    Each folder is in the format of ``knotless flows``. The record is next to them.

    Raises
    ------
    RuleError
        A folder or file cannot be written.

    """
    write_step_files(step_files(change), change_record(change), directory)


def write_step_files(
    files: Sequence[Mapping[str, str]], proof: Mapping[str, object], directory: str | Path
) -> None:
    """Write what :func:`step_files` returned, and the record; raises RuleError.

    Steps of an earlier change, which had more, are removed.
    """
    for number, of_step in enumerate(files):
        write_files(of_step, Path(directory) / str(number))
    later = len(files)
    while (folder := Path(directory) / str(later)).is_dir():
        remove_dir(folder)
        later += 1
    write_all({Path(directory) / RECORD_FILE: json.dumps(proof, indent=1) + "\n"}, RuleError)
