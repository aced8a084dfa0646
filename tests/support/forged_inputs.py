"""Command lines that users or attackers may write, and the files that they name.

Everything is drawn from the random stream of the case. The options are read from the commands, so
new options are included. Valid requests are small, because large ones may take any time.
"""

from __future__ import annotations

import json
import os
import random
import socket
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from knotless.base.flow_control import CHOICES
from knotless.cli.main import main
from knotless.cli.numbers import Whole
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import write_dir
from knotless.results import stored
from knotless.results.tables import to_parquet
from knotless.routing.engine import engines
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.topologies.formats.files import to_text
from knotless.topologies.registry import families
from knotless.traffic.patterns import patterns
from tests.unit.topologies.test_other_files import GRAPHML, IBNETDISCOVER

HAS_EXPERIMENTS = find_spec("knotless_experiments") is not None
COMMANDS = (
    ["topology"] * 4 + ["plan"] * 5 + ["flows"] * 2 + ["check"] * 4 + ["analyse"] * 3
    + ["schedule"] * 2 + ["simulate"] * 5 + ["export"] * 2 + ["status"] + ["advise"]
    + (["sweep"] * 3 + ["report", "reproduction"] + ["run"] * 2) * HAS_EXPERIMENTS
)  # fmt: skip
"""Subcommands that need no root; some are drawn more often than others."""
WHOLE = ["0", "1", "2", "3", "7", "8", "-1", "4093", "65536", str(2**31), str(2**64), "9" * 40]
NUMBERS = ["0", "0.5", "1", "2", "10", "300", "-1", "1e-9", "1e14", "1e300", "nan", "inf", "-inf"]
USUAL = ["0", "1", "2", "3", "0.5", "10"]
JUNK = ["", " ", "x", "?", "all", "=", ",", "1=all", "h1", "s1", "\u202e", "\ud800", "é", "a/b"]
TEXTS: Mapping[str, Sequence[str]] = {
    "engine": [*engines(), "all", "updow"],
    "pattern": [*patterns(), "shift:1", "shift:99", "shift:-1", "shift:x"],
    "rate": ["10", "1000", "1e-9", "0", "-1", "nan", "1e300"],
    "watchdog": ["200", "1000", "0", "-1", "nan", "1e300"],
    "root": ["s1", "s4", "s99", "h1"],
    "select": ["spread", "low-port"],
    "tagging": ["switch", "host"],
    "vlans": ["default", "tree"],
    "flow_control": CHOICES,
    "multicast": [
        "1=all",
        "1=h1,h2",
        "2=h1,h2",
        "3=all",
        "2=h1",
        "0=h1",
        "65536=h1",
        "1=h99",
        "1=",
        "x=h1",
    ],
    "send": ["h1=1", "h2=2", "h1=x", "h99=1"],
    "cut": ["s1:2@10", "s1:2@-1", "s1:2@nan", "s9:9@1", "s1@1"],
    "repair": ["s1:2@20", "s1:2@1e300"],
    "pair": ["h1", "h2", "all", "multicast:1", "h99"],
    "lattice": ["2,2", "3,3", "0,0", "1", "x,y", "99,99"],
    "hosts": ["2", "h1,h2", "h1,h1", "0", "99", "h99"],
    "without": ["s1-s2", "s1:2-s2:3", "s1", "s9-s8"],
    "name": ["nobody", "a" * 300, "../x", ""],
}
FILES = {"out": "o.json", "draw": "d.svg", "plot": "p.svg", "traces": "t", "folder": "runs"}
FILES |= {"record": "r.channels.parquet"}


@cache
def command_named(name: str) -> click.Command:
    """Return a subcommand."""
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return command


def spec(rng: random.Random) -> str:
    """Return a spec of a small fabric, or one that is invalid or far too large."""
    family = families()[rng.choice(list(families()))]
    least, most = family.sizes
    count = rng.randint(least, min(most, least + 1)) + (
        rng.choice([-1, 1]) if rng.random() < 0.05 else 0
    )
    sizes = [
        str(rng.choice([2, 2, 3, 3, 4, 5] if count < 3 else [1, 2, 2, 3])) for _ in range(count)
    ]
    options = [f"{name}={rng.choice(WHOLE[:6])}" for name in family.options if rng.random() < 0.7]
    options += [
        f"{name}={rng.choice(values)}"
        for name, values in (("hosts", WHOLE[:4]), ("rate", NUMBERS), ("delay", NUMBERS))
        if rng.random() < 0.08
    ]
    parts = [family.name, *sizes, *options]
    if rng.random() < 0.15:
        parts[rng.randrange(len(parts))] = rng.choice([*JUNK, "99999", "999999999", "hosts=2"])
    return ",".join(parts)


@cache
def originals() -> Mapping[str, bytes]:
    """Return a valid file of each kind, by name."""
    return {
        "fabric.json": to_text(load("torus,3,2,hosts=2")).encode(),
        "small.json": to_text(load("ring,3")).encode(),
        "graph.graphml": GRAPHML.encode(),
        "fabric.ibnetdiscover": IBNETDISCOVER.encode(),
        "messages.csv": b"time_us,source,destination,bytes\n0,h1,h2,1500\n1.5,h2,h3,64\n",
        "program.csv": b"process,kind,peer,bytes,seconds\n0,send,1,100,0\n1,recv,0,100,0\n"
        b"0,compute,-1,0,0.001\n",
        "sweep.yaml": b"do: simulate\ngrid:\n  fabric: [ring\\,3]\n  pattern: shift\n"
        b"  load: [0.1]\n  duration_us: 50\n".replace(b"[ring\\,3]", b'"ring,3"'),
        "analyse.yaml": b'do: analyse\ngrid: {fabric: ["ring,3", small.json], pattern: shift}\n',
    }


@cache
def stored_run(number: int) -> tuple[str, bytes]:
    """Return one of the small stored runs of the repository: its name and text."""
    small = sorted(stored.files(), key=lambda path: (path.stat().st_size, path.name))
    path = small[number % min(60, len(small))]
    return path.name, path.read_bytes()


@cache
def rules() -> Mapping[str, bytes]:
    """Return the files of a fabric's rules."""
    import tempfile

    plan = make_plan(load("ring,3"), "dor", tagging="host", multicast={1: ["h1", "h2"]})
    with tempfile.TemporaryDirectory() as folder:
        write_dir(plan.fabric, compile_rules(plan), folder, plan.multicast, plan.host_tags())
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def _other_value(rng: random.Random) -> Any:
    deep: Any = []
    for _ in range(rng.choice([1, 3, 50])):
        deep = [deep]
    values = [
        None,
        True,
        -1,
        0,
        2**70,
        1e300,
        "",
        "s1",
        "\u0000",
        "x" * 300,
        [],
        {},
        deep,
        {"a": 1},
    ]
    return rng.choice(values)


def _other_json(rng: random.Random, data: bytes) -> bytes:
    """Return JSON with a value replaced, removed or duplicated."""
    node = top = json.loads(data)
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return json.dumps(_other_value(rng)).encode()
        key = rng.choice(keys)
        if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.7:
            node = node[key]
            continue
        if rng.random() < 0.3:
            del node[key]
        else:
            node[key] = _other_value(rng)
        return json.dumps(top).encode()


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Return a file's content, damaged or unchanged."""
    how = rng.random()
    if how < 0.1:
        return data
    if how < 0.55 and data[:1] == b"{":
        return _other_json(rng, data)
    held = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        begin = rng.randrange(len(held) + 1)
        end = min(len(held), begin + rng.choice([1, 1, 4, 40]))
        tokens = [
            b"",
            b"\0",
            b"\xff",
            b"9" * 30,
            b"-1",
            b"nan",
            b"\n",
            b'"',
            b"{",
            b"]",
            b"&a [*a]",
        ]
        held[begin:end] = rng.choice([*tokens, bytes(held[begin:end]) * 3, rng.randbytes(3)])
    return bytes(held[: rng.randrange(len(held) + 1)] if how > 0.95 else held)


def _odd_file(rng: random.Random, path: Path) -> None:
    """Make something that is not a regular file."""
    kind = rng.randrange(7)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.mkdir()
    elif kind == 2:
        path.symlink_to(path.name)
    elif kind == 3:
        path.symlink_to(rng.choice(["/dev/zero", "/dev/full", "/dev/null", "/proc/self/mem"]))
    elif kind == 4:
        with path.open("wb") as file:
            file.truncate(3 << 30)
    elif kind == 5:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(path.name)
    else:
        path.write_bytes(b"")


def _file(rng: random.Random, name: str) -> str:
    """Make an input file in the current folder; return its name as an argument."""
    path = Path(name)
    if rng.random() < 0.08:
        _odd_file(rng, path)
    elif rng.random() < 0.97:
        path.write_bytes(damaged(rng, originals()[name]))
    return f"./{name}"


def _output(rng: random.Random, name: str) -> str:
    """Return an output path, at which something may exist already."""
    path = Path(name)
    chance = rng.random()
    if chance < 0.2:
        _odd_file(rng, path)
    elif chance < 0.3:
        return rng.choice(
            ["/dev/full", "/dev/null", "/proc/nowhere/x.svg", "a\udcff.svg", "x" * 300, ""]
        )
    return name


def _folder(rng: random.Random, name: str, files: Mapping[str, bytes]) -> str:
    """Make a folder of files, one of them damaged; return its name."""
    folder = Path(name)
    if rng.random() < 0.05:
        _odd_file(rng, folder)
        return name
    folder.mkdir()
    hurt = rng.choice(list(files))
    for file, data in files.items():
        if file != hurt:
            (folder / file).write_bytes(data)
        elif rng.random() < 0.1:
            _odd_file(rng, folder / file)
        elif rng.random() < 0.9:
            (folder / file).write_bytes(damaged(rng, data))
    return name


def _run_folder(rng: random.Random, name: str) -> str:
    _, text = stored_run(rng.randrange(60))
    samples = to_parquet([{"time_s": 1.0}], {"time_s": "float64"})
    return _folder(rng, name, {"run.json": text, "samples.parquet": samples})


@cache
def experiments() -> Mapping[str, click.Command]:
    """Return the command of each experiment."""
    group = command_named("run")
    assert isinstance(group, click.Group)
    context = click.Context(group)
    commands = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: command for name, command in commands.items() if command is not None}


def _value(rng: random.Random, option: click.Parameter) -> str:
    name = (option.name or "").removesuffix("_name")
    if name in FILES:
        return _output(rng, FILES[name])
    if name == "trace":
        return _file(rng, rng.choice(["messages.csv", "program.csv"]))
    if rng.random() < 0.03:
        return rng.choice(JUNK)
    if isinstance(option.type, click.Choice):
        return rng.choice([str(choice) for choice in option.type.choices])
    if name in TEXTS:
        return rng.choice(TEXTS[name])
    whole = isinstance(option.type, click.IntRange | Whole) or option.type is click.INT
    number = isinstance(option.type, click.FloatRange) or option.type is click.FLOAT
    if rng.random() < 0.7 and (whole or number):
        return rng.choice(USUAL[: 4 if whole else None])
    return rng.choice(WHOLE if whole else NUMBERS if number else [*WHOLE, *NUMBERS, *JUNK])


def _options(rng: random.Random, command: click.Command, often: float) -> list[str]:
    words: list[str] = []
    for option in command.params:
        if not isinstance(option, click.Option) or rng.random() > (
            0.9 if option.required else often
        ):
            continue
        words.append(rng.choice(option.opts))
        if not option.is_flag:
            words += [_value(rng, option) for _ in range(option.nargs)]
    return words


def command_line(rng: random.Random) -> list[str]:
    """Return a command line, after making the files that it names in the current folder."""
    name = rng.choice(COMMANDS)
    command = command_named(name)
    options = _options(rng, command, rng.choice([0.02, 0.05, 0.15, 0.3]))
    if name == "check":
        target = [_folder(rng, "rules", rules())]
    elif name == "sweep":
        target = [_file(rng, rng.choice(["sweep.yaml", "analyse.yaml"]))]
        if "small.json" not in os.listdir():  # noqa: PTH208
            Path("small.json").write_bytes(originals()["small.json"])
        options = ["--out", _output(rng, "swept"), *(["--json"] if rng.random() < 0.5 else [])]
    elif name == "report":
        target = [_run_folder(rng, f"run{i}") for i in range(rng.choice([1, 1, 1, 2]))]
    elif name == "reproduction":
        target, options = [], ["--stored", "kept", "--out", "page.md"]
        _folder(rng, "kept", dict(stored_run(rng.randrange(60)) for _ in range(3)))
    elif name == "run":
        experiment = rng.choice(list(experiments()))
        target, options = [experiment], _options(rng, experiments()[experiment], 0.3)
    elif name == "status":
        target = []
    elif rng.random() < 0.3:
        names = [file for file in originals() if not file.endswith((".csv", ".yaml"))]
        target = [_file(rng, rng.choice(names))]
    else:
        target = [spec(rng)]
    return [name, *target, *options] if rng.random() < 0.98 else [name, *options]
