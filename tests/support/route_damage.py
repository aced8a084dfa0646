"""One change of the files of a folder of routes, by a random generator."""

from __future__ import annotations

import ipaddress
import json
import random
from collections.abc import Callable

Texts = dict[str, str]
Change = Callable[[Texts, random.Random], None]


def _lines_of(files: Texts, rng: random.Random) -> tuple[str, list[str], int]:
    names = [name for name, text in files.items() if name.endswith(".routes") and text]
    name = rng.choice(sorted(names))
    lines = files[name].splitlines()
    return name, lines, rng.randrange(len(lines))


def _put(files: Texts, name: str, lines: list[str]) -> None:
    distinct = {line.split()[0]: line for line in lines}
    files[name] = "".join(f"{line}\n" for line in distinct.values())


def _ports(files: Texts, name: str) -> list[str]:
    """Return the ports of the router of a file."""
    fabric, router = json.loads(files["fabric.json"]), name.removesuffix(".routes")
    ends = [(host["router"], host["port"]) for host in fabric["hosts"]]
    ends += [(link[side], link[f"{side}_port"]) for link in fabric["links"] for side in "ab"]
    return sorted({port for at, port in ends if at == router})


def _other_length(files: Texts, rng: random.Random) -> None:
    name, lines, place = _lines_of(files, rng)
    prefix, _, rest = lines[place].partition(" ")
    network = ipaddress.IPv4Network(prefix)
    length = min(32, max(0, network.prefixlen + rng.choice([-8, -1, 1, 1, 2, 8])))
    other = ipaddress.IPv4Network((int(network[0]), length), strict=False)
    lines[place] = f"{other} {rest}"
    _put(files, name, lines)


def _other_bit(files: Texts, rng: random.Random) -> None:
    name, lines, place = _lines_of(files, rng)
    prefix, _, rest = lines[place].partition(" ")
    network = ipaddress.IPv4Network(prefix)
    if network.prefixlen:
        bit = 1 << (31 - rng.randrange(network.prefixlen))
        other = ipaddress.IPv4Network((int(network[0]) ^ bit, network.prefixlen))
        lines[place] = f"{other} {rest}"
    _put(files, name, lines)


def _other_port(files: Texts, rng: random.Random) -> None:
    name, lines, place = _lines_of(files, rng)
    prefix, does, *ports = lines[place].split()
    if ports:
        ports[rng.randrange(len(ports))] = rng.choice(_ports(files, name))
        lines[place] = " ".join([prefix, does, *dict.fromkeys(ports)])
    _put(files, name, lines)


def _one_more_port(files: Texts, rng: random.Random) -> None:
    name, lines, place = _lines_of(files, rng)
    prefix, does, *ports = lines[place].split()
    ports.append(rng.choice(_ports(files, name)))
    lines[place] = " ".join(
        [prefix, does if does in ("via", "link") else "via", *dict.fromkeys(ports)]
    )
    _put(files, name, lines)


def _one_port_less(files: Texts, rng: random.Random) -> None:
    name, lines, place = _lines_of(files, rng)
    prefix, does, *ports = lines[place].split()
    if len(ports) > 1:
        del ports[rng.randrange(len(ports))]
        lines[place] = " ".join([prefix, does, *ports])
    _put(files, name, lines)


def _deleted(files: Texts, rng: random.Random) -> None:
    name, lines, place = _lines_of(files, rng)
    del lines[place]
    _put(files, name, lines)


def _added(files: Texts, rng: random.Random) -> None:
    """Add a route to a part of a prefix of any router, or to everything."""
    _, others, number = _lines_of(files, rng)
    name, lines, _ = _lines_of(files, rng)
    network = ipaddress.IPv4Network(others[number].split()[0])
    length = rng.choice([0, network.prefixlen, min(32, network.prefixlen + rng.randint(1, 8))])
    address = int(network[0]) | rng.randrange(network.num_addresses)
    prefix = ipaddress.IPv4Network((address, length), strict=False)
    port = rng.choice(_ports(files, name))
    _put(files, name, [*lines, f"{prefix} via {port}"])


def _ended(files: Texts, rng: random.Random) -> None:
    name, lines, place = _lines_of(files, rng)
    lines[place] = f"{lines[place].split()[0]} {rng.choice(['local', 'drop'])}"
    _put(files, name, lines)


def _of_link(files: Texts, rng: random.Random) -> None:
    name, lines, place = _lines_of(files, rng)
    prefix, does, *ports = lines[place].split()
    if ports:
        lines[place] = " ".join([prefix, "via" if does == "link" else "link", *ports])
    _put(files, name, lines)


def _exchanged(files: Texts, rng: random.Random) -> None:
    """Exchange where two routes of a router lead."""
    name, lines, place = _lines_of(files, rng)
    other = rng.randrange(len(lines))
    (a, _, to_a), (b, _, to_b) = (lines[n].partition(" ") for n in (place, other))
    lines[place], lines[other] = f"{a} {to_b}", f"{b} {to_a}"
    _put(files, name, lines)


def _reordered(files: Texts, rng: random.Random) -> None:
    name, lines, _ = _lines_of(files, rng)
    rng.shuffle(lines)
    _put(files, name, lines)


def _other_address(files: Texts, rng: random.Random) -> None:
    value = json.loads(files["fabric.json"])
    known = [host for host in value["hosts"] if "address" in host]
    if known:
        host = rng.choice(known)
        bit = 1 << rng.choice([0, 1, 7, 8, 9, 16])
        other = str(ipaddress.IPv4Address(int(ipaddress.IPv4Address(host["address"])) ^ bit))
        if other not in {one["address"] for one in known}:
            host["address"] = other
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
    *(_other_length, _other_bit, _other_port, _one_more_port, _one_port_less, _deleted, _added),
    *(_ended, _of_link, _exchanged, _reordered, _other_address, _other_cable),
)
"""The kinds of damage."""
