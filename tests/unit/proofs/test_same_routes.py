"""The verifier reads the same fabric and routes from a folder as the tests do with Python's own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.proofs import BUILT, run
from tests.support.route_damage import CHANGES
from tests.support.route_folders import RouteFolder
from tests.support.route_trials import first_with

pytestmark = BUILT


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    rng = random.Random(3)  # noqa: S311 - it only has to be repeatable
    return [first_with("safe", tmp_path_factory.mktemp("safe"), rng)[0] for _ in range(6)]


def lines_of(folder: Path) -> Iterator[str]:
    """Yield what ``knotless-verify --print`` is to print, in any order."""
    fabric = RouteFolder(folder)
    for a, b in fabric.peer.items():
        yield f"channel {':'.join(a)} to {':'.join(b)}"
    for name, end in fabric.hosts.items():
        address = fabric.addresses.get(name)
        yield f"host {name} to {':'.join(end)}" + (f" {address}" if address else "")
    for router, routes in fabric.lines.items():
        for network, does, ports in routes:
            if does == "link":
                yield from (f"route {router} {network} from {port} ends" for port in ports)
            yield from (f"route {router} {network} to {port}" for port in ports)
            if does in ("local", "drop"):
                yield f"route {router} {network} ends"


@pytest.mark.seeds(200, gate=30)
def test_both_read_the_same_of_damaged_folders(
    tmp_path: Path, folders: list[Path], seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    files = {path.name: path.read_text() for path in rng.choice(folders).iterdir()}
    for change in rng.sample(CHANGES, 4):
        change(files, rng)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    judgement = run("--print", tmp_path)
    assert judgement.status == 0
    assert sorted(judgement.text.splitlines()) == sorted(lines_of(tmp_path))
