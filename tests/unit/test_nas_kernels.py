"""The NAS kernels, by the official verification values, on processes that are threads here."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue

import numpy as np
import pytest

from experiments.nas.communicator import Communicator, CommunicatorError
from experiments.nas.kernels import KERNELS, find
from experiments.nas.kernels.kernel import KernelError, Verification
from experiments.nas.kernels.randoms import jump, uniform
from experiments.nas.local import LocalCommunicator, run_local


def work_of(name: str, problem_class: str = "S") -> Callable[[Communicator], Verification]:
    def program(communicator: Communicator) -> Verification:
        work = find(name, problem_class, communicator.size).make(communicator, problem_class)
        work.run()
        return work.verification()

    return program


@pytest.mark.parametrize("processes", [1, 2, 4])
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_class_s_gives_the_official_values(name: str, processes: int) -> None:
    verifications = run_local(processes, work_of(name))
    assert all(found.passed for found in verifications), verifications[0]
    assert len({tuple(found.values) for found in verifications}) == 1


@pytest.mark.parametrize(("name", "processes"), [("is", 8), ("mg", 16), ("ft", 32)])
def test_more_processes_change_nothing(name: str, processes: int) -> None:
    assert all(found.passed for found in run_local(processes, work_of(name)))


@pytest.mark.parametrize("name", ["is"])
def test_class_w_gives_the_official_values(name: str) -> None:
    assert work_of(name, "W")(LocalCommunicator(0, [[SimpleQueue()]])).passed


def test_a_wrong_value_does_not_pass() -> None:
    assert not Verification([1.0 + 1e-7], [1.0], 1e-8).passed
    assert Verification([1.0 + 1e-9], [1.0], 1e-8).passed
    assert not Verification([1.0], [0.0], 0.0).passed


def test_random_numbers_are_those_of_the_definition() -> None:
    state, expected = 314159265, []
    for _ in range(1000):
        state = state * 5**13 % 2**46
        expected.append(state / 2**46)
    np.testing.assert_array_equal(uniform(314159265, 1000), expected)
    np.testing.assert_array_equal(uniform(jump(314159265, 700), 300), expected[700:])
    assert uniform(1, 0).size == 0


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_collectives(size: int) -> None:
    def program(communicator: Communicator) -> None:
        rank = communicator.rank
        communicator.barrier()
        total = communicator.allreduce(np.array([rank, 1]))
        assert total.tolist() == [size * (size - 1) // 2, size]
        assert communicator.allreduce(np.array([rank]), np.maximum).tolist() == [size - 1]
        gathered = communicator.allgather(np.array([[rank, rank * rank]]))
        assert [block.tolist() for block in gathered] == [[[r, r * r]] for r in range(size)]
        parts = [np.full(rank + to, 10 * rank + to) for to in range(size)]
        got = communicator.alltoall(parts, [(source + rank,) for source in range(size)])
        assert [block.tolist() for block in got] == [
            [10 * source + rank] * (source + rank) for source in range(size)
        ]

    run_local(size, program)


def test_a_failure_ends_all_the_others() -> None:
    def program(communicator: Communicator) -> None:
        if communicator.rank == 2:
            raise ZeroDivisionError
        communicator.receive(2, np.empty(1))

    with pytest.raises(ZeroDivisionError):
        run_local(4, program)


def test_messages_of_another_size_are_refused() -> None:
    def program(communicator: Communicator) -> None:
        peer = 1 - communicator.rank
        communicator.exchange(peer, np.zeros(2 + communicator.rank), peer, np.zeros(2))

    with pytest.raises(CommunicatorError, match="24 bytes from 1, not 16"):
        run_local(2, program)


@pytest.mark.parametrize(
    ("name", "problem_class", "processes", "message"),
    [
        ("lu-hp", "S", 4, "there is is, cg, ep, ft, mg"),
        ("cg", "A", 4, "there is S, W"),
        ("cg", "S", 3, "runs on 1, 2, 4"),
        ("ft", "W", 64, "it has work for 32"),
    ],
)
def test_what_cannot_run_is_refused(
    name: str, problem_class: str, processes: int, message: str
) -> None:
    with pytest.raises((KernelError, CommunicatorError), match=message):
        find(name, problem_class, processes)
