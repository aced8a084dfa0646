"""Collective operations: who gets whose data, by the requirements that are declared."""

from __future__ import annotations

import numpy as np
import pytest

from knotless.traffic.collectives import CollectiveError, Transfers, collective_named, collectives

SIZES = (2, 3, 4, 5, 8, 13, 16)


def possible(name: str, ranks: int) -> bool:
    return not name.startswith("halving") or ranks & (ranks - 1) == 0


CASES = [(name, ranks) for name in collectives() for ranks in SIZES if possible(name, ranks)]
ALL = {"ring-allreduce", "halving-doubling-allreduce", "tree-allreduce"}


def known(transfers: Transfers) -> list[set[int]]:
    """Return the ranks of whose data each rank has received, through what transfers require."""
    needs: dict[int, list[int]] = {}
    for waiting, needed in zip(transfers.waiting.tolist(), transfers.needed.tolist(), strict=True):
        needs.setdefault(waiting, []).append(needed)
    carried: list[set[int]] = []
    received = [{rank} for rank in range(transfers.ranks)]
    pairs = zip(transfers.source.tolist(), transfers.destination.tolist(), strict=True)
    for number, (source, destination) in enumerate(pairs):
        carried.append({source}.union(*(carried[other] for other in needs.get(number, []))))
        received[destination] |= carried[number]
    return received


@pytest.mark.parametrize(("name", "ranks"), CASES)
def test_transfers_require_what_their_sender_has_received_before(name: str, ranks: int) -> None:
    transfers = collective_named(name).make(ranks, 1000)
    assert (transfers.source != transfers.destination).all()
    assert (transfers.source[transfers.waiting] == transfers.destination[transfers.needed]).all()
    rounds = np.searchsorted(transfers.rounds, np.arange(len(transfers.source)), side="right")
    assert (rounds[transfers.needed] < rounds[transfers.waiting]).all()


@pytest.mark.parametrize(("name", "ranks"), CASES)
def test_every_rank_gets_data_of_all_or_of_the_first(name: str, ranks: int) -> None:
    senders = known(collective_named(name).make(ranks, 1000))
    if name == "tree-broadcast":
        assert all(0 in of_rank for of_rank in senders)
    else:
        assert senders == [set(range(ranks))] * ranks


@pytest.mark.thin(20)
@pytest.mark.parametrize(("name", "ranks"), CASES)
@pytest.mark.parametrize("size", [16, 1000, 12345])
def test_the_bytes_sent_are_those_of_the_algorithm(name: str, ranks: int, size: int) -> None:
    transfers = collective_named(name).make(ranks, size)
    assert int(transfers.bytes.sum()) == (2 if name in ALL else 1) * (ranks - 1) * size
    assert int(transfers.bytes.min()) > 0


@pytest.mark.parametrize(
    ("name", "ranks", "size", "message"),
    [
        ("ring-allreduce", 1, 100, "needs two hosts or more"),
        ("ring-allreduce", 8, 7, "of 8 hosts needs 8 to 2\\*\\*40 - 1 bytes a host, not 7"),
        ("halving-doubling-allreduce", 6, 100, "needs a power of two hosts, not 6"),
        ("all-to-all", 2, 2**40, "bytes a host"),
        ("tree-allreduce", 2, 0, "bytes a host"),
    ],
)
def test_what_is_not_possible_is_refused(name: str, ranks: int, size: int, message: str) -> None:
    with pytest.raises(CollectiveError, match=message):
        collective_named(name).make(ranks, size)


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(CollectiveError, match="there is no collective 'ring'"):
        collective_named("ring")
