"""What one 802.1Q switch does with a frame, port by port."""

from __future__ import annotations

import numpy as np
import pytest

from forwarding.dot1q.model import L2Fabric, L2Port, L2Switch
from forwarding.dot1q.semantics import UNTAGGED, tables_of
from topologies import load

KNOWN, ASIDE, UNKNOWN = "02:00:00:00:00:01", "02:00:00:00:00:04", "02:00:00:00:00:99"
SWITCH = L2Switch(
    "s1",
    (
        L2Port(1, 2, (2, 3), ()),
        L2Port(2, 3, (3,), ()),
        L2Port(3, None, (), (2, 3)),
        L2Port(4, None, (), (2,)),
    ),
    {2: {KNOWN: 3}, 3: {KNOWN: 1, ASIDE: 4}},
)


def sent(port: int, tag: int, mac: str | None) -> set[tuple[int, int]]:
    """The copies (port, tag) of a frame that comes in by ``port``."""
    tables = tables_of(L2Fabric(load("flat,4"), (SWITCH,), None))
    one = np.array([port - 1, port - 1], dtype=np.int32), np.array([tag, tag], dtype=np.int32)
    out = tables.send(tables.next_ports(mac), *one)
    pairs = list(zip(out.frame.tolist(), out.port.tolist(), out.tag.tolist(), strict=True))
    of_first, of_second = ({(p + 1, t) for f, p, t in pairs if f == n} for n in (0, 1))
    assert of_first == of_second
    assert len(pairs) == 2 * len(of_first)
    return of_first


@pytest.mark.parametrize(
    ("port", "tag", "mac", "copies"),
    [
        # Untagged: the PVID's VLAN, by its table; dropped where there is no PVID.
        (1, UNTAGGED, KNOWN, {(3, 2)}),
        (2, UNTAGGED, KNOWN, {(1, UNTAGGED)}),
        (3, UNTAGGED, KNOWN, set()),
        # Tagged: where the port is a member.
        (1, 3, None, {(2, UNTAGGED), (3, 3)}),
        (2, 2, None, set()),
        (4, 3, None, set()),
        (1, 4094, None, set()),
        # Flooding, never back.
        (3, 2, UNKNOWN, {(1, UNTAGGED), (4, 2)}),
        (4, 2, None, {(1, UNTAGGED), (3, 2)}),
        # The port that it came by, and a port that is no member.
        (3, 2, KNOWN, set()),
        (3, 3, ASIDE, set()),
    ],
)
def test_one_switch(port: int, tag: int, mac: str | None, copies: set[tuple[int, int]]) -> None:
    assert sent(port, tag, mac) == copies
