"""The spread of pauses: which channel was paused first because of which other.

When the first pause of a channel takes effect, most bytes in the ingress buffer that has sent it
wait for one channel, the cause. If that is paused too, the pause has spread from it. If not, it is
congested: more was to be sent than its line carries, and a tree of pauses begins there. So each
channel has one place in one tree, and what has spread has spread forward in time. In a deadlock a
channel that was congested first is paused later: it has a place of its own then. A tree can also
begin at a channel that its host has paused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from knotless._core.simulator import Report
from knotless.simulation.channels import ChannelTable
from knotless.simulation.units import PICOSECONDS_PER_US

_Channel = tuple[int, int]


def pause_tree(report: Report, table: ChannelTable) -> list[dict[str, Any]]:
    """Return the trees of pauses, the earliest first.

    A tree has ``congested``, a channel ``SWITCH:PORT/PRIORITY`` (None if nothing waited),
    ``by_host``, whether its host had paused that channel, and ``paused``: a list of channels that
    were paused because of it. Each of these has ``channel``, ``since_us`` of its first pause, and
    ``paused`` again.
    """
    nodes: dict[_Channel, dict[str, Any]] = {}
    roots: dict[tuple[_Channel | None, bool], list[dict[str, Any]]] = {}
    for at_ps, channel, cause, cause_paused in report.first_pauses:
        node = {
            "channel": _name(table, channel),
            "since_us": at_ps / PICOSECONDS_PER_US,
            "paused": [],
        }
        nodes[channel] = node
        if cause is not None and cause_paused and cause in nodes:
            nodes[cause]["paused"].append(node)
        else:
            by_host = cause is not None and cause_paused and bool(table.enters[cause[0]] < 0)
            roots.setdefault((cause, by_host), []).append(node)
    return [
        {
            "congested": None if cause is None else _name(table, cause),
            "by_host": by_host,
            "paused": paused,
        }
        for (cause, by_host), paused in roots.items()
    ]


def _name(table: ChannelTable, channel: _Channel) -> str:
    return f"{table.names[channel[0]]}/{channel[1]}"


def tree_lines(trees: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the trees as text."""
    if not trees:
        yield "no channel was paused"
    for tree in trees:
        why = "paused by its host" if tree["by_host"] else "congested"
        yield f"{tree['congested'] or 'frames in transmission, or a slow host,'} is {why}"
        # Without recursion: a chain of pauses may be longer than Python's stack.
        waiting = [(node, 1) for node in reversed(tree["paused"])]
        while waiting:
            node, depth = waiting.pop()
            yield f"{'  ' * depth}{node['channel']} paused at {node['since_us']:g} us"
            waiting += [(child, depth + 1) for child in reversed(node["paused"])]
