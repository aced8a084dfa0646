"""Names of nodes from labels of other programs: valid, distinct, and as near as possible."""

from __future__ import annotations

import random

import pytest

from knotless.base.errors import FabricError
from knotless.topologies.formats.graphml import from_graphml
from knotless.topologies.formats.node_names import valid_names
from knotless.topologies.partial_fabric import PartialHost, PartialSwitch, complete
from knotless.topologies.validate import LONGEST_NAME, folded, is_name


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("London", "London"),
        ("New York", "New_York"),
        ("Zürich/ETH", "Zurich_ETH"),
        ("Łódź", "Lodz"),
        ("  (0, 1) ", "0_1"),
        ("-x-", "x"),
        ("東京", ""),
        ("?", ""),
        ("a" * 80, "a" * LONGEST_NAME),
    ],
)
def test_a_label_becomes_the_nearest_name(label: str, name: str) -> None:
    assert folded(label) == name


def test_a_name_that_is_refused_is_told_what_would_be_right() -> None:
    for name, such in (("New York", ", such as New_York"), ("東京", "")):
        with pytest.raises(FabricError, match=f"letter or digit{such}$"):
            complete("one", [PartialSwitch(name)], [PartialHost("h1", 0)], [])


def test_equal_names_are_numbered_and_those_that_need_no_change_come_first() -> None:
    labels = [["a b"], ["a_b"], ["a b"], ["?", "7"], ["?"], ["x" * 70], ["x" * 80]]
    names, notes = valid_names(labels, [f"s{i}" for i in range(1, 8)])
    assert names == ["a_b-2", "a_b", "a_b-3", "7", "s5", "x" * 63, "x" * 61 + "-2"]
    assert notes == [
        "names that had to be changed to be valid and distinct: 'a b' is a_b-2, 'a b' is a_b-3,"
        " '?' is 7 and 3 more"
    ]
    assert valid_names([["a"], ["b"]], ["s1", "s2"]) == (["a", "b"], [])


@pytest.mark.seeds(40)
def test_any_labels_give_valid_and_distinct_names(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    letters = "ab-_. é東\N{RIGHT-TO-LEFT OVERRIDE}\n'\"/0"
    labels = [["".join(rng.choices(letters, k=rng.randrange(4)))] for _ in range(200)]
    names, _ = valid_names(labels, [f"s{i}" for i in range(200)])
    assert all(map(is_name, names))
    assert len({*names}) == 200


def zoo(*labels: str) -> str:
    """Return a ring as the Topology Zoo writes it: numbers as ids, the places as labels."""
    nodes = "".join(
        f'<node id="{i}"><data key="d33">{label}</data></node>' for i, label in enumerate(labels)
    )
    edges = "".join(
        f'<edge source="{i}" target="{(i + 1) % len(labels)}"/>' for i in range(len(labels))
    )
    key = '<key attr.name="label" attr.type="string" for="node" id="d33"/>'
    return f"<graphml>{key}<graph edgedefault='undirected'>{nodes}{edges}</graph></graphml>"


def test_labels_of_the_topology_zoo_are_names() -> None:
    fabric = from_graphml(zoo("London", "New York", "Malmö"), "zoo")
    assert [switch.name for switch in fabric.switches] == ["London", "New_York", "Malmo"]
    assert fabric.notes == (
        "names that had to be changed to be valid and distinct: 'New York' is New_York, 'Malmö' is"
        " Malmo",
    )


def test_ids_are_names_where_most_labels_are_equal() -> None:
    fabric = from_graphml(zoo("router", "router", "router"), "zoo")
    assert [switch.name for switch in fabric.switches] == ["0", "1", "2"]
    assert fabric.notes == ("labels are not the names of nodes: most are equal or empty",)
