"""Trials of proofs about all frames that hosts can send: with tags, and from other addresses."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from knotless.base.errors import KnotlessError
from knotless.topologies.numbering import mac_text, mac_value
from tests.support.damage import damaged
from tests.support.proof_trials import (
    AnyOfOnePriority,
    addresses,
    flow_control_of,
    undelivered,
    with_files_of,
)
from tests.support.proofs import judge, proof_of, proof_of_product, write_rules
from tests.support.reference import LOOP
from tests.support.reference_rules import BROADCAST, Files, RuleReference

TAGS, SOURCES = "tags any", "sources any"
"""Lines of proofs that are also about such frames."""
ADMISSION = re.compile(
    r"^(.*)(eth_src=\S+?,)(in_port=\d+,)(vlan_vid=0x0/0xfff)( actions=)"
    r"(push_vlan:0x8100,)(set_field:\d+->vlan_vid,)(set_field:\d+->vlan_pcp,)(.*)$",
    re.MULTILINE,
)
"""How rules of plans admit the frames of a host."""


class WithTags(AnyOfOnePriority):
    """Rules of files, for frames with any number of tags."""

    several_tags = True


def with_frames(proof: str, *lines: str) -> str:
    """Return a proof that is about the frames of these lines, whatever it was about."""
    first, *others = [line for line in proof.splitlines() if line not in (TAGS, SOURCES)]
    return "".join(f"{line}\n" for line in [first, *lines, *others])


def unsafe_frames(
    files: Files, destinations: Sequence[int], proof: str, rng: random.Random, most: int = 300
) -> str:
    """Follow frames with tags and from other addresses, as the proof is about them.

    Returns whether some of at most so many loop or can deadlock; else nothing.
    """
    walker = RuleReference(WithTags(files))
    tested = {
        field: sorted(
            {
                flow_field[1]
                for flows in walker.rules[0].flows.values()
                for flow in flows
                for flow_field in flow.match
                if flow_field[0] == field
            }
        )
        for field in ("vlan_vid", "eth_src")
    }
    vids = [0, *(vid & 0xFFF for vid in tested["vlan_vid"]), rng.randrange(4096)]
    macs = [mac_value(host["mac"]) for host in walker.hosts.values()]
    to = [mac_text(address) for address in [*macs, mac_value(BROADCAST), *destinations]]
    lines = proof.splitlines()
    frames = []
    for name, host in walker.hosts.items():
        sources = [mac_value(host["mac"])]
        if SOURCES in lines:
            sources += [*tested["eth_src"], rng.getrandbits(48)]
        stacks: list[tuple[tuple[int, int], ...]] = [()]
        if TAGS in lines:
            below = [(rng.choice(vids), rng.randrange(8))] * rng.randrange(3)
            stacks += [((vid, rng.choice([0, 1, 7])), *below) for vid in vids]
        frames += [(name, d, s, ts) for d in to for s in sources for ts in stacks]
    for name, d, s, ts in rng.sample(frames, min(most, len(frames))):
        [frame] = walker.frames(name, d, mac_text(s))
        frame = frame._replace(eth_type=rng.choice([0x0800, 0x0806, 0x88B5]))
        for (vlan, priority), *below in [ts] * bool(ts):
            frame = frame._replace(vlan=vlan, priority=priority, below=tuple(below))
        place = (walker.hosts[name]["switch"], walker.hosts[name]["port"])
        if any(LOOP in outcome for outcome in walker.outcomes(place, frame)):
            return f"a loop of {frame}"
    return "a cycle" if walker.has_cycle(flow_control_of(proof)) else ""


def opened(files: Mapping[str, str], rng: random.Random) -> tuple[str, dict[str, str]]:
    """Let some switches admit frames with tags, or from other addresses; returns what changed."""
    changed = dict(files)
    kind = rng.choice(["sources", "priorities", "tags pushed", "tags trusted", "tags kept"])
    names = sorted(name for name in files if name.endswith(".flows"))
    for name in rng.sample(names, rng.choice([1, len(names)])):
        changed[name] = ADMISSION.sub(lambda found: _opened(kind, found, rng), files[name])
    return kind, changed


def typed(files: Mapping[str, str], rng: random.Random) -> dict[str, str]:
    """Let some rules test the EtherType as well."""
    changed = dict(files)
    for name in sorted(name for name in files if name.endswith(".flows")):
        lines = files[name].splitlines()
        for number in rng.sample(range(len(lines)), min(len(lines), rng.randrange(3))):
            test = f",eth_type={rng.choice(['0x800', '0x806'])} actions="
            lines[number] = lines[number].replace(" actions=", test)
        changed[name] = "".join(f"{line}\n" for line in lines)
    return changed


def _opened(kind: str, found: re.Match[str], rng: random.Random) -> str:
    head, source, port, vid, actions, push, set_vid, set_pcp, rest = found.groups()
    if kind == "sources":
        return f"{head}{port}{vid}{actions}{push}{set_vid}{set_pcp}{rest}"
    if kind == "priorities":
        return f"{head}{source}{port}{vid}{actions}{push}{set_vid}{rest}"
    admits = rng.choice(["vlan_vid=0x1000/0x1000", f"vlan_vid={0x1000 + rng.randint(1, 4):#x}"])
    new = {
        "tags pushed": f"{push}{set_vid}{set_pcp}",
        "tags trusted": set_pcp,
        "tags kept": "",
    }[kind]
    return f"{found[0]}\n{head}{source}{port}{admits}{actions}{new}{rest}"


def trial_of_frames(files: Mapping[str, str], folder: Path, rng: random.Random) -> tuple[str, str]:
    """Judge rules that may admit what hosts should not send, some of them damaged as well.

    Returns what was changed, and which frames the accepted proofs are about. Asserts that these
    are safe, as frames say that are followed one by one.
    """
    shutil.rmtree(folder, ignore_errors=True)
    intact = proof_of(write_rules(folder, files))
    kind, changed = opened(files, rng) if rng.random() < 0.8 else ("nothing", dict(files))
    if rng.random() < 0.3:
        _, changed = damaged(changed, rng)
        kind = f"{kind}, damaged"
    if rng.random() < 0.3:
        changed = typed(changed, rng)
        kind = f"{kind}, typed"
    write_rules(folder, changed)
    proofs = [with_files_of(intact, folder)]
    with suppress(KnotlessError):
        proofs.append(proof_of_product(folder, flow_control_of(intact)))
    kinds = [(), (TAGS,), (SOURCES,), (TAGS, SOURCES)]
    accepted = set()
    for proof in [*proofs, *(with_frames(proofs[0], *lines) for lines in kinds)]:
        for text in (proof, proof.replace("claim safe", "claim deadlock-free")):
            if "claim cycle" in text or not judge(folder, text).accepted:
                continue
            about = [line for line in text.splitlines() if line in (TAGS, SOURCES)]
            wrong = unsafe_frames(folder, [*addresses(folder, rng, 4)], text, rng)
            assert not wrong, (kind, about, wrong)
            if "claim safe" in text:
                assert not undelivered(RuleReference(AnyOfOnePriority(folder))), (kind, about)
            accepted.add(" and ".join(about) or "own")
    return kind, ", ".join(sorted(accepted))
