"""The papers' fabrics as files: each is the fabric of its spec."""

import pytest

from knotless.topologies import load
from knotless.topologies.formats.files import to_text
from tests.support import REPOSITORY

SPECS = {
    "koibuchi-mesh": "mesh,4,4,hosts=4",
    "koibuchi-torus": "torus,4,4,hosts=4",
    "koibuchi-irregular-a": "irregular-a",
    "koibuchi-irregular-b": "irregular-b",
    "shimizu-lsft": "lsft,3",
    "otsuka-mesh": "mesh,4,4",
    "otsuka-torus": "torus,4,4",
    "otsuka-tree": "mtree,4,4",
}
FOLDER = REPOSITORY / "topologies"


@pytest.mark.parametrize("name", SPECS)
def test_a_file_is_what_its_family_builds(name: str) -> None:
    assert (FOLDER / f"{name}.json").read_text() == to_text(load(SPECS[name]))


def test_every_file_is_listed() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(SPECS)
