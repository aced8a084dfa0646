"""Hostile GraphML and ibnetdiscover output: a fabric or an error of one line."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from knotless.base.errors import FabricError
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.graphml import from_graphml
from knotless.topologies.formats.ibnetdiscover import from_ibnetdiscover
from knotless.topologies.validate import validate
from tests.unit.topologies.test_other_files import GRAPHML, IBNETDISCOVER

PIECES = st.text(max_size=12) | st.sampled_from(
    ["<node>", "</node>", '"', "<edge/>", "&lt;", "[1]", "0", "-1", "S-", "99999999999", "\n", "\t"]
)


def tolerates(reader: Callable[[str, str], Fabric], text: str) -> None:
    message = ""
    try:
        validate(reader(text, "some"))
    except FabricError as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) < 400


@given(st.text(max_size=200))
@settings(deadline=None)
def test_any_text(text: str) -> None:
    tolerates(from_graphml, text)
    tolerates(from_ibnetdiscover, text)


@given(st.integers(0, len(GRAPHML)), st.integers(0, 40), PIECES)
@settings(max_examples=600, deadline=None)
def test_damaged_graphml(offset: int, gone: int, piece: str) -> None:
    tolerates(from_graphml, GRAPHML[:offset] + piece + GRAPHML[offset + gone :])


@given(st.integers(0, len(IBNETDISCOVER)), st.integers(0, 40), PIECES)
@settings(max_examples=600, deadline=None)
def test_damaged_ibnetdiscover_output(offset: int, gone: int, piece: str) -> None:
    tolerates(from_ibnetdiscover, IBNETDISCOVER[:offset] + piece + IBNETDISCOVER[offset + gone :])


@given(st.permutations(IBNETDISCOVER.split("\n")))
@settings(deadline=None)
def test_shuffled_ibnetdiscover_output(lines: list[str]) -> None:
    tolerates(from_ibnetdiscover, "\n".join(lines))
