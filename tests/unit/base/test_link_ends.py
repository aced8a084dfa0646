"""What the two ends of a link must agree on."""

from __future__ import annotations

from typing import Any

import pytest

from knotless.base.link_ends import LinkEnd, disagreements

SOME = frozenset({3, 4})


@pytest.mark.parametrize(
    ("a", "b", "lines"),
    [
        ({}, {}, []),
        ({"pauses": SOME, "obeys": SOME}, {"pauses": SOME, "obeys": SOME}, []),
        (
            {"pauses": SOME, "obeys": SOME},
            {"pauses": frozenset({3}), "obeys": frozenset({3})},
            ["a has priority 4 lossless, which b neither pauses nor obeys"],
        ),
        (
            {"pauses": SOME, "obeys": SOME},
            {"pauses": frozenset(), "obeys": SOME},
            ["a has priority 3 lossless, which b does not pause"],
        ),
        (
            {"pauses": SOME, "obeys": SOME},
            {"pauses": SOME, "obeys": frozenset({4})},
            ["a has priority 3 lossless, which b does not obey"],
        ),
        ({"pauses": SOME}, {}, []),
        (
            {"pauses": SOME},
            {"obeys": frozenset({3})},
            ["priority 4 lossless, which b does not obey"],
        ),
        (
            {"flow_control": "pause", "pauses": SOME},
            {"flow_control": "pfc", "pauses": frozenset()},
            ["a has PAUSE, and b PFC: neither obeys the other"],
        ),
        (
            {"flow_control": "pfc"},
            {"flow_control": "credits"},
            ["b waits for credits, which a never gives, with PFC: packets stand still"],
        ),
        ({"flow_control": "credits"}, {"flow_control": None}, []),
        (
            {"flow_control": "credits", "unit_bytes": 64},
            {"flow_control": "credits", "unit_bytes": 2048},
            ["a counts credits of 64 bytes, and b of 2048"],
        ),
        ({"flow_control": "pfc", "unit_bytes": 64}, {"flow_control": "pfc", "unit_bytes": 80}, []),
        ({"mtu_bytes": 9100}, {"mtu_bytes": 1500}, ["up to 9100 bytes (MTU), of which b takes no"]),
        ({"mtu_bytes": 9100}, {}, []),
        ({"rate_mbps": 100.0}, {"rate_mbps": 25.0}, ["a has 100 Mbit/s, and b 25: the link stays"]),
        (
            {"rate_mbps": 100.0, "autoneg": True},
            {"rate_mbps": 25.0, "autoneg": True},
            [],
        ),
        ({"fec": "rs"}, {"fec": "none"}, ["a has FEC rs, and b none: the link stays down"]),
        ({"fec": "rs"}, {"fec": "auto"}, []),
        ({"autoneg": False}, {"autoneg": True}, ["b negotiates its rate, and a does not"]),
        ({"repeats": True}, {"repeats": False}, ["a repeats damaged frames, and b does not"]),
        ({"repeats": True}, {"repeats": None}, []),
    ],
)
def test_each_rule(a: dict[str, Any], b: dict[str, Any], lines: list[str]) -> None:
    ends = LinkEnd("a", **a), LinkEnd("b", **b)
    texts = [one.text for one in disagreements(*ends)]
    assert len(texts) == len(lines) == len(disagreements(*reversed(ends)))
    assert all(line in text for line, text in zip(lines, texts, strict=True)), texts
