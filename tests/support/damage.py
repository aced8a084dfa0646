"""One change of the files of a folder of rules, or of a proof file, by a random generator."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping

from knotless.topologies.numbering import mac_text, mac_value

PRIORITIES = (0, 50, 100, 101, 102, 150, 200, 300, 600)
_PORTS = 6


class NotApplicableError(Exception):
    """The files have nothing that this change is about."""


Files = dict[str, str]
Change = Callable[[Files, random.Random], None]


def _replaced(pattern: str, new: Callable[[random.Random, re.Match[str]], str]) -> Change:
    """Return a change of one occurrence of a pattern in the rules of some switch."""

    def change(files: Files, rng: random.Random) -> None:
        _edit_line(files, rng, ".flows", pattern, lambda found: new(rng, found))

    return change


def _edit_line(
    files: Files,
    rng: random.Random,
    suffix: str,
    pattern: str,
    new: Callable[[re.Match[str]], str],
) -> None:
    places = [
        (name, number)
        for name in sorted(files)
        if name.endswith(suffix)
        for number, line in enumerate(files[name].splitlines())
        if re.search(pattern, line)
    ]
    if not places:
        raise NotApplicableError
    name, number = rng.choice(places)
    lines = files[name].splitlines()
    found = rng.choice([*re.finditer(pattern, lines[number])])
    before, after = lines[number][: found.start()], lines[number][found.end() :]
    lines[number : number + 1] = (before + new(found) + after).splitlines()
    files[name] = "".join(f"{line}\n" for line in lines)


def _masked(rng: random.Random, found: re.Match[str]) -> str:
    """Return a match of destinations with one bit of its mask the other way round."""
    bit = 1 << rng.choice([*range(24), 40])
    mask = (mac_value(found[2]) if found[2] else (1 << 48) - 1) ^ bit
    return f"eth_dst={mac_text(mac_value(found[1]) & mask)}/{mac_text(mask)}"


def _another_port(rng: random.Random) -> str:
    return f"output:{rng.randint(1, _PORTS)}"


def _deleted(files: Files, rng: random.Random) -> None:
    _edit_line(files, rng, ".flows", r"^.*$", lambda _found: "")


def _twin(files: Files, rng: random.Random) -> None:
    def new(found: re.Match[str]) -> str:
        return f"{found[0]}\n{found[1]}{_another_port(rng)}{found[2]}"

    _edit_line(files, rng, ".flows", r"^(.*)output:\d+(.*)$", new)


def _moved(files: Files, rng: random.Random) -> None:
    """Move a rule to another switch."""
    names = sorted(name for name in files if name.endswith(".flows"))
    source, target = rng.choice(names), rng.choice(names)
    lines = files[source].splitlines()
    line = lines.pop(rng.randrange(len(lines)))
    files[source] = "".join(f"{one}\n" for one in lines)
    files[target] = f"{line}\n{files[target]}"


def _swapped(files: Files, rng: random.Random) -> None:
    """Exchange the actions of two rules of one table of a switch."""
    name = rng.choice(sorted(name for name in files if name.endswith(".flows")))
    lines = files[name].splitlines()
    first = rng.randrange(len(lines))
    table = re.findall(r"table=\d+", lines[first])[0]
    second = rng.choice([i for i, line in enumerate(lines) if f",{table}," in line])
    a, b = lines[first].split(" "), lines[second].split(" ")
    lines[first], lines[second] = f"{a[0]} {b[1]}", f"{b[0]} {a[1]}"
    files[name] = "".join(f"{line}\n" for line in lines)


def _bucket(files: Files, rng: random.Random) -> None:
    new = rng.choice(
        [_another_port(rng), _another_port(rng), f"{_another_port(rng)},{_another_port(rng)}"]
    )
    _edit_line(files, rng, ".groups", r"output:\d+", lambda _found: new)


def _no_bucket(files: Files, rng: random.Random) -> None:
    _edit_line(files, rng, ".groups", r",bucket=(?:(?!,bucket).)*", lambda _found: "")


def _recabled(files: Files, rng: random.Random) -> None:
    """Exchange the ends of two cables."""
    fabric = json.loads(files["fabric.json"])
    if len(fabric["links"]) < 2:
        raise NotApplicableError
    one, other = rng.sample(fabric["links"], 2)
    for key in ("b", "b_port"):
        one[key], other[key] = other[key], one[key]
    files["fabric.json"] = json.dumps(fabric)


CHANGES: Mapping[str, Change] = {
    "output port": _replaced(r"output:\d+", lambda rng, _found: _another_port(rng)),
    "one more output": _replaced(r"output:\d+", lambda rng, f: f"{f[0]},{_another_port(rng)}"),
    "priority": _replaced(r"priority=\d+", lambda rng, _f: f"priority={rng.choice(PRIORITIES)}"),
    "mask": _replaced(r"eth_dst=([0-9a-f:]+)(?:/([0-9a-f:]+))?", _masked),
    "VLAN that is set": _replaced(
        r"set_field:\d+->vlan_vid",
        lambda rng, _f: f"set_field:{4096 + rng.randint(1, 4)}->vlan_vid",
    ),
    "VLAN that is matched": _replaced(
        r"vlan_vid=0x1\w{3}\b(?!/)", lambda rng, _f: f"vlan_vid={0x1000 + rng.randint(1, 4):#x}"
    ),
    "priority of VLANs": _replaced(
        r"set_field:\d->vlan_pcp", lambda rng, _f: f"set_field:{rng.randint(0, 2)}->vlan_pcp"
    ),
    "input port": _replaced(r"in_port=\d+", lambda rng, _f: f"in_port={rng.randint(1, _PORTS)}"),
    "goto": _replaced(r"goto_table:\d+", lambda rng, _f: f"goto_table:{rng.randint(0, 3)}"),
    "metadata": _replaced(
        r"write_metadata:0x\w+", lambda rng, _f: f"write_metadata:{rng.randint(0, 6):#x}"
    ),
    "no tag removed": _replaced(r"pop_vlan,", lambda _rng, _found: ""),
    "deleted": _deleted,
    "twin": _twin,
    "moved": _moved,
    "swapped": _swapped,
    "bucket": _bucket,
    "no bucket": _no_bucket,
    "cables": _recabled,
}
"""Changes of rules and of the fabric."""


def damaged(files: Mapping[str, str], rng: random.Random) -> tuple[str, Files]:
    """Return the name of a change, and the files with it: they differ."""
    while True:
        kind = rng.choice(sorted(CHANGES))
        changed = dict(files)
        try:
            CHANGES[kind](changed, rng)
        except NotApplicableError:
            continue
        if changed != files:
            return kind, changed


Lines = list[str]
ProofChange = Callable[[Lines, random.Random], Lines]


def _lines_of(lines: Lines, word: str) -> list[int]:
    numbers = [number for number, line in enumerate(lines) if line.startswith(f"{word} ")]
    if not numbers:
        raise NotApplicableError
    return numbers


def _new_line(word: str, new: Callable[[list[str], random.Random], list[str]]) -> ProofChange:
    """Return a change of the fields of a line that begins with a word."""

    def change(lines: Lines, rng: random.Random) -> Lines:
        number = rng.choice(_lines_of(lines, word))
        fields = new(lines[number].split(" "), rng)
        return [*lines[:number], " ".join(fields), *lines[number + 1 :]]

    return change


def _without(word: str) -> ProofChange:
    def change(lines: Lines, rng: random.Random) -> Lines:
        number = rng.choice(_lines_of(lines, word))
        return lines[:number] + lines[number + 1 :]

    return change


def _added(lines: Lines, rng: random.Random) -> Lines:
    new = rng.choice(
        [
            *("group 0-1", "group 1-2", "lossless 0", "lossless 0-3", "bound 9", "class"),
            *("rank s1:1 3", "tags any", "sources any", "tags none"),
        ]
    )
    number = rng.randrange(1, len(lines) + 1)
    return [*lines[:number], new, *lines[number:]]


def _exchanged_ranks(lines: Lines, rng: random.Random) -> Lines:
    numbers = _lines_of(lines, "rank")
    one, other = rng.choice(numbers), rng.choice(numbers)
    a, b = lines[one].split(" "), lines[other].split(" ")
    lines = list(lines)
    lines[one], lines[other] = f"rank {a[1]} {b[2]}", f"rank {b[1]} {a[2]}"
    return lines


def _random_ranks(lines: Lines, rng: random.Random) -> Lines:
    numbers = set(_lines_of(lines, "rank"))
    return [
        f"{line.rpartition(' ')[0]} {rng.randint(1, 60)}" if number in numbers else line
        for number, line in enumerate(lines)
    ]


def _with_another_bit(cube: str, rng: random.Random) -> str:
    """Return a cube with one bit of its mask or its value the other way round."""
    value, mask = map(mac_value, cube.split("/"))
    bit = 1 << rng.randrange(48)
    if rng.random() < 0.5:
        mask ^= bit
        return f"{mac_text(value & mask)}/{mac_text(mask)}"
    return f"{mac_text(value ^ bit)}/{mac_text(mask)}"


def _without_exceptions(lines: Lines, rng: random.Random) -> Lines:
    number = rng.choice([n for n in _lines_of(lines, "class") if " but " in lines[n]])
    return [*lines[:number], lines[number].partition(" but ")[0], *lines[number + 1 :]]


def _another_byte(lines: Lines, rng: random.Random) -> Lines:
    text = "\n".join(lines)
    at = rng.randrange(len(text))
    return (text[:at] + chr(rng.randrange(1, 127)) + text[at + 1 :]).split("\n")


def _ended_early(lines: Lines, rng: random.Random) -> Lines:
    return lines[: rng.randrange(1, len(lines))]


def _shuffled_lines(lines: Lines, rng: random.Random) -> Lines:
    one, other = sorted(rng.sample(range(1, len(lines)), 2))
    lines = list(lines)
    lines[one], lines[other] = lines[other], lines[one]
    return lines


PROOF_CHANGES: Mapping[str, ProofChange] = {
    "rank": _new_line("rank", lambda f, rng: [*f[:2], str(rng.randint(0, 20))]),
    "huge rank": _new_line("rank", lambda f, rng: [*f[:2], str(10 ** rng.randint(3, 30))]),
    "rank of another": _exchanged_ranks,
    "no rank": _without("rank"),
    "random ranks": _random_ranks,
    "bound": _new_line("bound", lambda f, rng: [f[0], str(rng.randint(0, 25))]),
    "class": _new_line("class", lambda f, rng: [f[0], _with_another_bit(f[1], rng), *f[2:]]),
    "no class": _without("class"),
    "no exception": _without_exceptions,
    "hash": _new_line("file", lambda f, rng: [*f[:2], f"{rng.getrandbits(256):064x}"]),
    "no file": _without("file"),
    "flow control": _new_line(
        "flow-control",
        lambda f, rng: [f[0], rng.choice(["pause", "pfc", "credits", "none", "switch", "auto"])],
    ),
    "claim": _new_line("claim", lambda f, rng: [f[0], rng.choice(["cycle", "Safe", "freezes"])]),
    "added": _added,
    "byte": _another_byte,
    "ended early": _ended_early,
    "order": _shuffled_lines,
}
"""Changes of a proof file."""


def damaged_proof(proof: str, rng: random.Random) -> tuple[str, str]:
    """Return the name of a change, and the proof with it: they differ."""
    lines = proof.splitlines()
    while True:
        kind = rng.choice(sorted(PROOF_CHANGES))
        try:
            changed = PROOF_CHANGES[kind](lines, rng)
        except NotApplicableError:
            continue
        if changed != lines:
            return kind, "\n".join(changed) + "\n"


_TEXTS = ["", "0", "9", "0x", "00", " ", "\n", "\n\n", "\r\n", "\t", ",", ",,", "=", "/", "-", "+"]
_TEXTS += [":", "->", '"', "\\", "\\u0031", "{", "}", "[", "]", "null", "true", "1e0", "1.0"]
_TEXTS += ["\x00", "\x7f", "\u00e9", "\u0661", "\ufeff", "#", "A", "f", "_", "9" * 30, "drop"]
_TEXTS += ["in_port=1", "table=1", "priority=1", "metadata=0x1/0x1", "vlan_vid=0x1000/0x1000"]
_TEXTS += ["output:1", "goto_table:2", "write_metadata:0x1", "actions=", ",bucket=actions="]
_TEXTS += [
    "pop_vlan",
    "group:1",
    '"name": "s1"',
    '"dpid": 1',
    '"port": 1',
    '"links": []',
    "all",
    "select",
]
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_NUMBER = re.compile(r"\b(?:0x[0-9a-f]+|[0-9]+)\b")
_FIELD = re.compile(r"[^\s,{}]+")
_LINE = re.compile(r".*\n?")


def damaged_text(files: Mapping[str, str], rng: random.Random) -> Files:
    """Return files of which one to three places read otherwise, whatever that means: they differ.

    Places are characters, words, numbers, fields and lines: replaced, removed, said twice, moved,
    or written in another way (case, leading zeros, another base).
    """
    while True:
        changed = dict(files)
        name = rng.choice(sorted(name for name, text in files.items() if text))
        for _ in range(rng.choice([1, 1, 2, 3])):
            part = rng.choice([_WORD, _NUMBER, _NUMBER, _NUMBER, _FIELD, _FIELD, _LINE, None])
            change = _other_character if part is None else _other_part
            changed[name] = change(part or _WORD, changed[name], rng)
        if changed != files:
            return changed


def _other_character(_part: re.Pattern[str], text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(_TEXTS) + text[at + rng.randint(0, 2) :]


def _other_part(part: re.Pattern[str], text: str, rng: random.Random) -> str:
    """Return a text with one occurrence of a pattern changed."""
    places = [place for place in part.finditer(text) if place[0]]
    if not places:
        return text
    place, other = rng.choice(places), rng.choice(places)[0]
    old = place[0]
    new = [other, other, other, "", old + old, f"{old},{other}", rng.choice(_TEXTS)]
    if _NUMBER.fullmatch(old):
        value = int(old, 0) if old.startswith("0x") else int(old)
        new += [f"{value:#x}", str(value), f"0{old}", str(value ^ 1 << rng.randrange(8))]
    else:
        new += [old.upper(), old.swapcase(), old[::-1]]
    return text[: place.start()] + rng.choice(new) + text[place.end() :]
