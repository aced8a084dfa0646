"""One change of the files of a folder of an InfiniBand subnet, by a random generator."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

Texts = dict[str, str]
Change = Callable[[Texts, random.Random], None]


def _lines_of(files: Texts, rng: random.Random, first: str) -> tuple[str, list[str], int] | None:
    """Return a file, its lines, and the place of one that begins so; None: there is none."""
    names = sorted(name for name in files if f"\n{first}" in f"\n{files[name]}" and "." in name)
    names = [name for name in names if name.endswith(".lft")]
    if not names:
        return None
    name = rng.choice(names)
    lines = files[name].splitlines()
    return name, lines, rng.choice([n for n, line in enumerate(lines) if line.startswith(first)])


def _put(files: Texts, name: str, lines: list[str]) -> None:
    """Write lines, of which those of one LID or of one pair of ports are the first."""
    kept: dict[str, str] = {}
    for line in lines:
        words = line.split()
        key = {"sl2vl": 3, "from": 9_999}.get(words[0], 1)
        kept.setdefault(" ".join(words[:key]), line)
    files[name] = "".join(f"{line}\n" for line in kept.values())


def _ports(files: Texts, name: str) -> list[int]:
    """Return the ports of the switch of a file, and one that has no cable."""
    fabric, switch = json.loads(files["fabric.json"]), name.removesuffix(".lft")
    ends = [(host["switch"], host["port"]) for host in fabric["hosts"]]
    ends += [(link[side], link[f"{side}_port"]) for link in fabric["links"] for side in "ab"]
    return [*sorted({port for at, port in ends if at == switch}), 99]


def _entry(change: Callable[[list[str], random.Random, list[int]], list[str]]) -> Change:
    """Return a change of the words of an entry; no words: the entry goes."""

    def changed(files: Texts, rng: random.Random) -> None:
        if there := _lines_of(files, rng, "0x"):
            name, lines, place = there
            words = change(lines[place].split(), rng, _ports(files, name))
            lines[place : place + 1] = [" ".join(words)] if words else []
            _put(files, name, lines)

    changed.__name__ = change.__name__
    return changed


def _other_port(words: list[str], rng: random.Random, ports: list[int]) -> list[str]:
    words[rng.randrange(2, len(words))] = str(rng.choice(ports))
    return [*words[:2], *dict.fromkeys(words[2:])]


def _one_more_port(words: list[str], rng: random.Random, ports: list[int]) -> list[str]:
    return [*words[:2], *dict.fromkeys([*words[2:], str(rng.choice(ports))])]


def _one_port_less(words: list[str], rng: random.Random, _ports: list[int]) -> list[str]:
    if len(words) > 3:
        del words[rng.randrange(2, len(words))]
    return words


def _deleted(_words: list[str], _rng: random.Random, _ports: list[int]) -> list[str]:
    return []


def _for_itself(words: list[str], _rng: random.Random, _ports: list[int]) -> list[str]:
    return [*words[:2], "0"]


def _other_lid(words: list[str], rng: random.Random, _ports: list[int]) -> list[str]:
    lid = int(words[0], 16) ^ 1 << rng.choice([0, 1, 2, 3, 8, 14])
    return [f"0x{lid:04x}" if 0 < lid < 0xC000 else words[0], *words[1:]]


def _added(files: Texts, rng: random.Random) -> None:
    """Add an entry for a LID of another switch's table."""
    if (there := _lines_of(files, rng, "0x")) and (other := _lines_of(files, rng, "0x")):
        name, lines, _ = there
        lid = other[1][other[2]].split()[0]
        _put(files, name, [f"{lid} port {rng.choice(_ports(files, name))}", *lines])


def _exchanged(files: Texts, rng: random.Random) -> None:
    """Exchange where a switch sends two LIDs."""
    if there := _lines_of(files, rng, "0x"):
        name, lines, place = there
        entries = [n for n, line in enumerate(lines) if line.startswith("0x")]
        other = rng.choice(entries)
        (a, _, to_a), (b, _, to_b) = (lines[n].partition(" ") for n in (place, other))
        lines[place] = f"{a} {to_b}"
        lines[other] = f"{b} {to_a}" if other != place else lines[place]
        _put(files, name, lines)


def _reordered(files: Texts, rng: random.Random) -> None:
    if there := _lines_of(files, rng, "0x"):
        name, lines, _ = there
        rng.shuffle(lines)
        _put(files, name, lines)


def _other_lane(files: Texts, rng: random.Random) -> None:
    if there := _lines_of(files, rng, "sl2vl"):
        name, lines, place = there
        words = lines[place].split()
        words[rng.choice([4, 4, 5, rng.randrange(4, 20)])] = str(rng.choice([0, 1, 2, 7, 14, 15]))
        lines[place] = " ".join(words)
        _put(files, name, lines)


def _other_lanes(files: Texts, rng: random.Random) -> None:
    """Give all SLs between two ports one lane."""
    if there := _lines_of(files, rng, "sl2vl"):
        name, lines, place = there
        lane = str(rng.choice([0, 0, 1, 15]))
        lines[place] = " ".join([*lines[place].split()[:4], *[lane] * 16])
        _put(files, name, lines)


def _other_level(files: Texts, rng: random.Random) -> None:
    if there := _lines_of(files, rng, "from"):
        name, lines, place = there
        words = lines[place].split()
        words[3] = str(rng.choice([0, 1, 2, 3, 15]))
        lines[place] = " ".join(words)
        _put(files, name, lines)


def _no_level(files: Texts, rng: random.Random) -> None:
    """Forget the SL of a path."""
    if there := _lines_of(files, rng, "from"):
        name, lines, place = there
        words = lines[place].split()
        del words[rng.randrange(5, len(words))]
        lines[place : place + 1] = [" ".join(words)] if len(words) > 5 else []
        _put(files, name, lines)


def _other_host(files: Texts, rng: random.Random) -> None:
    """Give a host another LID."""
    value = json.loads(files["fabric.json"])
    if not value["hosts"]:
        return
    host = rng.choice(value["hosts"])
    before = host["lid"]
    host["lid"] = before ^ 1 << rng.choice([0, 1, 2, 8, 14])
    lids = [lid for h in value["hosts"] for lid in range(h["lid"], h["lid"] + (1 << h["lmc"]))]
    if len({*lids}) == len(lids) and min(lids) > 0 and max(lids) < 0xC000:
        files["fabric.json"] = json.dumps(value)


def _other_cable(files: Texts, rng: random.Random) -> None:
    """Exchange the far ends of two cables."""
    value = json.loads(files["fabric.json"])
    if len(value["links"]) > 1:
        one, other = rng.sample(value["links"], 2)
        for key in ("b", "b_port"):
            one[key], other[key] = other[key], one[key]
    files["fabric.json"] = json.dumps(value)


CHANGES: tuple[Change, ...] = (
    *map(
        _entry,
        (_other_port, _one_more_port, _one_port_less, _deleted, _for_itself, _other_lid),
    ),
    *(_added, _exchanged, _reordered, _other_lane, _other_lanes, _other_level, _no_level),
    *(_other_host, _other_cable),
)
"""The kinds of damage."""
