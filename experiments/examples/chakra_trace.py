"""An execution trace in Chakra's format, for ``knotless simulate --chakra``.

Each rank computes a layer forward, all-reduces its activations among the tensor ranks (group "1" or
"2"), passes them on to the same tensor rank of the other group, and at the end all ranks all-reduce
their gradients. Nodes are messages of ``et_def.proto`` of MLCommons Chakra, each with its length
before it; a message is a row of fields, each with its number and wire type
(protobuf.dev/programming-guides/encoding).

Example: python chakra_trace.py trace && knotless simulate flat,4 --chakra trace \
    --chakra-groups trace/groups.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
"""Values of NodeType."""
ALL_REDUCE = 0
"""Value of CollectiveCommType."""
Attributes = dict[str, int | str]


def varint(value: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def field(number: int, value: int | bytes) -> bytes:
    """Return a field: a number, or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def node(
    number: int, kind: int, needs: list[int], attributes: Attributes | None = None, us: int = 0
) -> bytes:
    """Return a node: id 1, name 2, type 3, data_deps 5, duration_micros 7, attr 10."""
    message = field(1, number) + field(2, b"node") + field(3, kind)
    message += field(5, b"".join(map(varint, needs))) + field(7, us)
    for name, value in (attributes or {}).items():
        # AttributeProto: name 1, int64_val 9, string_val 29.
        given = field(9, value) if isinstance(value, int) else field(29, value.encode())
        message += field(10, field(1, name.encode()) + given)
    return message


def rank_trace(rank: int, hidden_bytes: int, gradient_bytes: int) -> list[bytes]:
    """Return the nodes of one of four ranks: 0 and 1 are the first stage, 2 and 3 the second."""
    stage, peer = rank // 2, rank ^ 2
    group = str(stage + 1)
    layer: Attributes = {"comm_type": ALL_REDUCE, "comm_size": hidden_bytes, "pg_name": group}
    all_ranks: Attributes = {"comm_type": ALL_REDUCE, "comm_size": gradient_bytes}
    message: Attributes = {"comm_size": hidden_bytes, "comm_tag": 1}
    if stage == 0:
        return [
            node(0, COMPUTE, [], us=200),
            node(1, COLLECTIVE, [0], layer),
            node(2, SEND, [1], {"comm_dst": peer, **message}),
            node(3, COLLECTIVE, [2], all_ranks),
        ]
    return [
        node(0, RECEIVE, [], {"comm_src": peer, **message}),
        node(1, COMPUTE, [0], us=200),
        node(2, COLLECTIVE, [1], layer),
        node(3, COLLECTIVE, [2], all_ranks),
    ]


def main() -> None:
    """Write a file for each rank, and the ranks of the groups as ASTRA-sim reads them."""
    parser = argparse.ArgumentParser(description="Write an execution trace of four ranks.")
    parser.add_argument("folder", type=Path, help="the folder that is made")
    parser.add_argument("--hidden-bytes", type=int, default=1_000_000, help="activations [1000000]")
    parser.add_argument("--gradient-bytes", type=int, default=4_000_000, help="[4000000]")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for rank in range(4):
        metadata = field(1, b"0.0.4")
        messages = [metadata, *rank_trace(rank, given.hidden_bytes, given.gradient_bytes)]
        data = b"".join(varint(len(message)) + message for message in messages)
        (given.folder / f"step.{rank}.et").write_bytes(data)
    (given.folder / "groups.json").write_text(json.dumps({"1": [0, 1], "2": [2, 3]}) + "\n")


if __name__ == "__main__":
    main()
