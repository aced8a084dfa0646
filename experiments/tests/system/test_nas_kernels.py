"""The NAS kernels against the official verification values; processes are threads here."""

from __future__ import annotations

import math
from collections.abc import Callable
from queue import SimpleQueue

import numpy as np
import pytest
from numpy.typing import NDArray

from knotless_experiments.messages.nas_kernels import find, kernels, navier_stokes
from knotless_experiments.messages.nas_kernels.kernel import KernelError, Verification
from knotless_experiments.messages.nas_kernels.randoms import jump, uniform
from knotless_experiments.messages.nas_kernels.wavefront import LOWER, UPPER, Wavefront
from knotless_experiments.messages.programs.communicator import Communicator, CommunicatorError
from knotless_experiments.messages.programs.local import LocalCommunicator, run_local


def work_of(name: str, problem_class: str = "S") -> Callable[[Communicator], Verification]:
    def program(communicator: Communicator) -> Verification:
        work = find(name, problem_class, communicator.size).make(communicator, problem_class)
        work.run()
        return work.verification()

    return program


@pytest.mark.thin(5)
@pytest.mark.parametrize("processes", [1, 2, 4])
@pytest.mark.parametrize("name", sorted(kernels()))
def test_class_s_gives_the_official_values(name: str, processes: int) -> None:
    verifications = run_local(processes, work_of(name))
    assert all(verification.passed for verification in verifications), verifications[0]
    assert len({tuple(verification.values) for verification in verifications}) == 1


@pytest.mark.thin(1)
@pytest.mark.parametrize(("name", "processes"), [("is", 8), ("mg", 16), ("ft", 32), ("lu", 8)])
def test_more_processes_change_nothing(name: str, processes: int) -> None:
    assert all(verification.passed for verification in run_local(processes, work_of(name)))


@pytest.mark.parametrize("name", ["is"])
def test_class_w_gives_the_official_values(name: str) -> None:
    assert work_of(name, "W")(LocalCommunicator(0, [[SimpleQueue()]])).passed


@pytest.mark.parametrize("along", [1, 2, 3])
@pytest.mark.parametrize(
    ("function", "jacobian"),
    [
        (navier_stokes.flux, navier_stokes.flux_jacobian),
        (navier_stokes.viscous, navier_stokes.viscous_jacobian),
    ],
)
def test_derivatives_are_those_of_the_equations(
    function: Callable[..., NDArray[np.float64]],
    jacobian: Callable[..., NDArray[np.float64]],
    along: int,
) -> None:
    states = np.random.default_rng(1).uniform(0.5, 3.0, (20, 5))
    derivatives = jacobian(states, along)
    for part, step in enumerate(1e-5 * np.eye(5)):
        slope = (function(states + step, along) - function(states - step, along)) / 2e-5
        np.testing.assert_allclose(derivatives[:, :, part], slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("side", [LOWER, UPPER])
def test_a_wavefront_solves_the_triangular_system(size: int, side: int) -> None:
    """Substitute the solution into the system, for 3 x 4 x 4 points."""
    near = np.random.default_rng(2).normal(size=(3, 4, 4, 2, 6))
    right = np.random.default_rng(3).normal(size=(3, 4, 4, 2))

    parts = math.isqrt(size)

    def program(communicator: Communicator) -> NDArray[np.float64]:
        place = (0, *divmod(communicator.rank, parts))

        def neighbour(axis: int, step: int) -> int | None:
            position = [place[a] + step * (a == axis) for a in range(3)]
            return (
                position[1] * parts + position[2]
                if all(0 <= a < parts for a in position[1:])
                else None
            )

        mine = tuple(slice(4 // parts * p, 4 // parts * (p + 1)) for p in place[1:])
        v = right[:, *mine].copy()
        wave = Wavefront(communicator, neighbour, 4 // parts, 4 // parts)
        wave.solve(v, near[:, *mine], side)
        return v

    blocks = run_local(size, program)
    whole = np.empty_like(right)
    for rank, block in enumerate(blocks):
        y, x = (4 // parts * p for p in divmod(rank, parts))
        whole[:, y : y + 4 // parts, x : x + 4 // parts] = block
    padded = np.pad(whole, [(1, 1)] * 3 + [(0, 0)])
    again = whole.copy()
    for axis in range(3):
        shift = [slice(1, -1)] * 3
        shift[axis] = slice(1 + side, padded.shape[axis] - 1 + side)
        beside = padded[tuple(shift)]
        again += np.einsum("zyxij,zyxj->zyxi", near[..., 2 * axis : 2 * axis + 2], beside)
    np.testing.assert_allclose(again, right, rtol=1e-9)


def test_a_wrong_value_fails_verification() -> None:
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
        ("lu-hp", "S", 4, "must be one of cg, ep, ft, is, lu, mg, not 'lu-hp'"),
        ("cg", "A", 4, "class must be one of S, W, not 'A'"),
        ("cg", "S", 3, "must be a power of two"),
        ("ft", "W", 64, "at most 32 processes, not 64"),
        ("lu", "S", 32, "at most 16 processes, not 32"),
    ],
)
def test_invalid_kernels_are_refused(
    name: str, problem_class: str, processes: int, message: str
) -> None:
    with pytest.raises((KernelError, CommunicatorError), match=message):
        find(name, problem_class, processes)
