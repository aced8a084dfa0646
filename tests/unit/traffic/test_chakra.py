"""Execution traces in Chakra's format: what is read, in both encodings, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knotless.base.errors import KnotlessError
from knotless.traffic.chakra.nodes import ChakraError, read_nodes
from knotless.traffic.chakra.operations import JOIN, Operations, operations_of
from knotless.traffic.chakra.trace import read_groups, read_ranks
from tests.support.chakra import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BARRIER,
    BROADCAST,
    COLLECTIVE,
    COMPUTE,
    LOAD,
    METADATA,
    RECEIVE,
    REDUCE,
    REDUCE_SCATTER,
    SEND,
    encoded,
    json_of,
    node,
    part,
    varint,
    whole,
    write_trace,
)

BY_GOOGLE = bytes.fromhex(
    "150a05302e302e34120c0a06736368656d61ea01013135080712026d6d1804300538e0a71252130a0969735f63"
    "70755f6f701203646f63d8010152100a0572665f696419000000000000f83f9f01088080808080201203616c6c"
    "18072201072a02ac02420c0a055b2778275d12035b315d520d0a09636f6d6d5f74797065380052150a09636f6d"
    "6d5f73697a65a9010000000002000000520c0a08636f6d6d5f7372635805520d0a08636f6d6d5f64737488010b"
    "52100a08636f6d6d5f746167bd0107000000520e0a0770675f6e616d65ea0102c3a952150a0c696e766f6c7665"
    "645f64696de201040a020100"
)
"""A file of two nodes that Google's protobuf wrote with classes that protoc made of et_def.proto,
with one attribute of each type that can be a number."""


def made(folder: Path, ranks: Sequence[Sequence[dict[str, Any]]], **given: Any) -> Operations:
    """Return the operations of a trace of these nodes."""
    return operations_of(read_ranks(write_trace(folder, ranks), 64), **given)


def sent(operations: Operations) -> dict[tuple[int, int], int]:
    """Return the bytes from rank to rank."""
    total: dict[tuple[int, int], int] = {}
    columns = (operations.rank, operations.peer, operations.amount)
    for source, to, size in zip(*(column[operations.kind == 0] for column in columns), strict=True):
        total[int(source), int(to)] = total.get((int(source), int(to)), 0) + int(size)
    return total


def test_a_file_that_protobuf_wrote_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.0.et").write_bytes(BY_GOOGLE)
    compute, collective = read_nodes(str(tmp_path / "a.0.et"))
    assert (compute.id, compute.name, compute.type, compute.duration_us) == (7, "mm", 4, 300_000)
    assert compute.attributes == {"is_cpu_op": True}
    assert (collective.id, collective.needs, collective.type) == (1 << 40, (7, 300), 7)
    assert collective.values == "['x']"
    assert collective.attributes == {
        "comm_type": 0,
        "comm_size": 1 << 33,
        "comm_src": 5,
        "comm_dst": -6,
        "comm_tag": 7,
        "pg_name": "é",
        "involved_dim": (True, False),
    }


NODES = [
    node(0, METADATA, values="['[]']"),
    node(300, COMPUTE, 0, us=5, is_cpu_op=False),
    node(301, COLLECTIVE, 0, 300, comm_type=0, comm_size=1 << 40, pg_name="é", involved_dim=(1, 1)),
    node(302, SEND, comm_dst=1, comm_tag=-1),
]


def test_json_of_the_jsonizer_is_the_same(tmp_path: Path) -> None:
    folder = Path(write_trace(tmp_path, [NODES]))
    text = '{\n  "version": "0.0.4"\n}' + "".join(map(json_of, NODES))
    (folder / "a.0.json").write_text(text)
    assert read_nodes(str(folder / "a.0.json")) == [
        # The name of a type is a number as well.
        *read_nodes(str(folder / "step.0.et"))
    ]


def test_unknown_fields_and_attributes_change_nothing(tmp_path: Path) -> None:
    more = part(11, b"storage") + whole(6, 99) + varint(90 << 3 | 5) + bytes(4)
    other = part(10, part(1, b"rf_id") + varint(3 << 3 | 1) + bytes(8))
    data = b"".join(
        varint(len(message)) + message for message in (b"", encoded(NODES[1]) + more + other)
    )
    (tmp_path / "a.0.et").write_bytes(data)
    assert read_nodes(str(tmp_path / "a.0.et")) == [
        read_nodes(str(Path(write_trace(tmp_path / "b", [NODES])) / "step.0.et"))[1]
    ]


def refusal(call: Callable[[], object]) -> str | None:
    """Return the line with which a call refuses its file; None if it takes it."""
    try:
        call()
    except KnotlessError as error:
        return str(error)
    return None


@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 255))
def test_damaged_files_are_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, place: int, byte: int
) -> None:
    folder = tmp_path_factory.mktemp("trace")
    path = Path(write_trace(folder, [NODES])) / "step.0.et"
    data = bytearray(path.read_bytes())
    data[min(place, len(data) - 1)] = byte
    for content in (junk, bytes(data), bytes(data[:place])):
        path.write_bytes(content)
        told = refusal(lambda: operations_of(read_ranks(str(folder), 64)))
        assert told is None or ("\n" not in told and "step.0.et: " in told)
    for content in (junk, json.dumps({"id": byte, "type": place}).encode()[:place]):
        (folder / "a.json").write_bytes(content)
        told = refusal(lambda: read_nodes(str(folder / "a.json")))
        assert told is None or ("\n" not in told and "a.json: " in told)


def collective(kind: int, size: int, **given: Any) -> dict[str, Any]:
    return node(1, COLLECTIVE, comm_type=kind, comm_size=size, **given)


@pytest.mark.parametrize(
    ("kind", "size", "total"),
    [
        (ALL_REDUCE, 4000, 2 * 3 * 4000),
        (ALL_GATHER, 1000, 3 * 4000),
        (ALL_TO_ALL, 4000, 3 * 4000),
        (REDUCE_SCATTER, 4000, 3 * 4000),
        (BROADCAST, 4000, 3 * 4000),
        (BARRIER, 0, 2 * 3 * 4),
        # A part has at least one byte.
        (ALL_REDUCE, 0, 2 * 3 * 4),
    ],
)
def test_a_collective_sends_what_its_algorithm_says(
    kind: int, size: int, total: int, tmp_path: Path
) -> None:
    operations = made(tmp_path, [[collective(kind, size)]] * 4)
    assert sum(sent(operations).values()) == total
    # Each transfer has a tag of its own.
    tags = operations.tag[operations.kind == 0]
    assert len(set(tags.tolist())) == len(tags)


def test_all_reduce_may_be_another(tmp_path: Path) -> None:
    operations = made(tmp_path, [[collective(ALL_REDUCE, 400)]] * 4, all_reduce="tree-allreduce")
    assert sent(operations) == dict.fromkeys([(1, 0), (3, 2), (2, 0), (0, 2), (0, 1), (2, 3)], 400)


def test_groups_have_the_ranks_that_files_or_metadata_say(tmp_path: Path) -> None:
    listed = '[{"pg_name": "0", "ranks": []}, {"pg_name": "8", "ranks": [2, 0]}]'
    metadata = node(0, METADATA, values=f"['{listed}']")
    part_of = [metadata, collective(BROADCAST, 100, pg_name="8")]
    operations = made(tmp_path, [part_of, [metadata], part_of])
    assert sent(operations) == {(2, 0): 100}
    everyone = [collective(BROADCAST, 100, pg_name="0")]
    assert sent(made(tmp_path / "b", [everyone] * 2)) == {(0, 1): 100}
    (tmp_path / "groups.json").write_text('{"5": [1, 0]}')
    path = write_trace(tmp_path / "c", [[collective(BROADCAST, 100, pg_name="5")]] * 2)
    ranks = read_ranks(path, 2, read_groups(str(tmp_path / "groups.json")))
    assert sent(operations_of(ranks)) == {(1, 0): 100}


def test_a_group_of_one_rank_sends_nothing(tmp_path: Path) -> None:
    operations = made(tmp_path, [[collective(ALL_REDUCE, 100)]])
    assert (operations.kind == JOIN).all()


S: dict[str, Any] = {"comm_dst": 1, "comm_size": 10}
R: dict[str, Any] = {"comm_src": 0, "comm_size": 10}
BAD = [
    ([[node(1, 0)]], "step.0.et: node 1: a INVALID_NODE is not simulated"),
    ([[node(1, LOAD, tensor_size=1)]], "a MEM_LOAD_NODE is not simulated"),
    ([[node(1, 77)]], "node 1: a type 77 is not simulated"),
    ([[node(1, COMPUTE), node(1, COMPUTE)]], "node 1: another node has this id"),
    ([[node(1, COMPUTE, 2)]], "node 1: it waits for node 2, which is missing"),
    ([[node(1, COMPUTE, 2), node(2, COMPUTE, 1)]], "step.0.et: node [12]: it waits for itself"),
    ([[node(1, COMPUTE, us=10**16)]], "it computes for 10000000000000000 us, too long"),
    ([[node(1, SEND)]], "node 1: has no comm_dst, a number of 0 or more"),
    ([[node(1, SEND, comm_dst=1)], []], "has no comm_size"),
    ([[node(1, SEND, comm_dst="1")], []], "has 1 as its comm_dst"),
    ([[node(1, SEND, comm_dst=0)], []], "its comm_dst is 0, not another rank of 0 to 1"),
    ([[node(1, SEND, comm_dst=2)], []], "its comm_dst is 2, not another rank of 0 to 1"),
    ([[node(1, SEND, comm_src=1, comm_dst=1)], []], "its comm_src is not rank 0"),
    ([[node(1, SEND, comm_dst=1, comm_size=1 << 40)], []], "its comm_size is 1099511627776"),
    ([[node(1, SEND, **S)], []], "with comm_tag 0, rank 0 sends 1 messages of 10 bytes in all"),
    ([[node(1, SEND, **S)], [node(1, RECEIVE, **{**R, "comm_size": 9})]], "receives 1 of 9"),
    ([[node(1, SEND, **S)], [node(1, RECEIVE, comm_tag=3, **R)]], "receives 0 of 0"),
    ([[node(1, COLLECTIVE, comm_size=9)]], "has no comm_type"),
    ([[collective(10, 9)]], "its comm_type is 10, not 0 to 9"),
    ([[collective(REDUCE, 9)]], "a REDUCE is not simulated: the schema has no root for it"),
    ([[collective(0, 9, involved_dim=1)]], "its involved_dim is no list of flags"),
    ([[collective(0, 9, involved_dim=(1, 0))]], "its involved_dim leaves dimensions out"),
    ([[collective(0, 9, pg_name="7")]], "no ranks of group '7' are known; give --chakra-groups"),
    ([[collective(0, 9)], []], "step.0.et: node 1: rank 1 of its group takes no part"),
    ([[collective(0, 9)], [collective(0, 8)]], "step.1.et: node 1: ALL_REDUCE of 8 bytes, but"),
    ([[collective(0, 9)], [collective(2, 9)]], "ALL_GATHER of 9 bytes, but .* is ALL_REDUCE of 9"),
    ([[node(0, METADATA, values="[{pg_name}]")]], "node 0: its process groups are no JSON"),
    ([[node(0, METADATA, values='[{"pg_name": "1", "ranks": [4]}]')]], "'1' has rank 4, of 0 to 0"),
    ([[node(0, METADATA, values='[{"pg_name": "1", "ranks": [0, 0]}]')]], "has a rank twice"),
]


@pytest.mark.parametrize(("ranks", "message"), BAD)
def test_what_is_not_simulated_is_refused_with_file_and_node(
    ranks: list[list[dict[str, Any]]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ChakraError, match=message):
        made(tmp_path, ranks)


def test_what_an_algorithm_cannot_do_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ChakraError, match=r"step.0.et: node 1: .* needs a power of two hosts"):
        made(
            tmp_path,
            [[collective(ALL_REDUCE, 100)]] * 3,
            all_reduce="halving-doubling-allreduce",
        )


def test_the_files_of_a_trace_are_those_of_all_ranks(tmp_path: Path) -> None:
    path = write_trace(tmp_path, [[]] * 11)
    assert [rank.path for rank in read_ranks(path, 11)][9:] == [
        f"{tmp_path}/step.9.et",
        f"{tmp_path}/step.10.et",
    ]
    assert len(read_ranks(f"{tmp_path}/step", 11)) == 11
    with pytest.raises(ChakraError, match="11 ranks, but 4 hosts"):
        read_ranks(path, 4)
    write_trace(tmp_path, [[]], name="other")
    with pytest.raises(ChakraError, match=r"several traces, name one: other.\*.et, step.\*.et"):
        read_ranks(path, 11)
    (tmp_path / "step.3.et").unlink()
    with pytest.raises(ChakraError, match="of 10 files, none is of rank 3"):
        read_ranks(f"{tmp_path}/step", 11)
    with pytest.raises(ChakraError, match="0 files of ranks; must be a folder with NAME.0.et"):
        read_ranks(f"{tmp_path}/none", 11)
    with pytest.raises(ChakraError, match="cannot be read: No such file"):
        read_ranks(f"{tmp_path}/none/step", 11)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.0.et", b"\x1f\x8b\x08", "it is compressed: gunzip it first"),
        ("a.0.et", b"\x00\x05\x08", "message 2: it ends inside a message of 5 bytes"),
        ("a.0.et", b"\x00\xff", "message 2: it ends inside a number"),
        ("a.0.et", b"\x00" + b"\xff" * 11, "message 2: a number has more than 10 bytes"),
        ("a.0.et", b"\x00\x02\x0b\x00", "message 2: field 1 has the wire type 3"),
        ("a.0.json", b"{}[]", "it is no sequence of JSON objects"),
        ("a.0.json", b'{"workload_graph": []}', "must be JSON of chakra_jsonizer"),
        ("a.0.json", b'{"id": 1', "it is no JSON"),
        ("a.0.json", b'{"a":' * 100_000, "it is nested too deeply"),
        ("a.0.json", b'{}{"id": 1.5}', "a id is 1.5, no integer"),
        ("a.0.json", b'{}{"id": 3, "attr": 3}', "node 3: it is no node of Chakra's schema"),
    ],
)
def test_files_that_are_no_trace_are_refused(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ChakraError, match=message):
        read_ranks(str(tmp_path), 4)


@pytest.mark.parametrize("text", ["[]", "{", '{"1": []}', '{"1": ["0"]}', '{"1": 3}'])
def test_files_of_groups_that_are_none_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "groups.json").write_text(text)
    with pytest.raises(ChakraError, match="groups.json: (must be JSON|group '1' must have)"):
        read_groups(str(tmp_path / "groups.json"))
