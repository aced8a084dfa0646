"""FT: a partial differential equation solved by three-dimensional FFTs; all-to-all transposes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knotless_experiments.messages.nas_kernels.kernel import Kernel, Verification
from knotless_experiments.messages.nas_kernels.randoms import SEED, jump, uniform
from knotless_experiments.messages.programs.communicator import Communicator

ALPHA = 1e-6
SAMPLES = 1024
Field = NDArray[np.complex128]


@dataclass(frozen=True)
class Size:
    """A class: points along x, y and z, and the expected checksum after each iteration."""

    x: int
    y: int
    z: int
    checksums: tuple[complex, ...]


SIZES = {
    "S": Size(
        *(64, 64, 64),
        checksums=(
            5.546087004964e02 + 4.845363331978e02j,
            5.546385409189e02 + 4.865304269511e02j,
            5.546148406171e02 + 4.883910722336e02j,
            5.545423607415e02 + 4.901273169046e02j,
            5.544255039624e02 + 4.917475857993e02j,
            5.542683411902e02 + 4.932597244941e02j,
        ),
    ),
    "W": Size(
        *(128, 128, 32),
        checksums=(
            5.673612178944e02 + 5.293246849175e02j,
            5.631436885271e02 + 5.282149986629e02j,
            5.594024089970e02 + 5.270996558037e02j,
            5.560698047020e02 + 5.260027904925e02j,
            5.530898991250e02 + 5.249400845633e02j,
            5.504159734538e02 + 5.239212247086e02j,
        ),
    ),
}


def frequencies(points: int) -> NDArray[np.int64]:
    """Return the squares of the wave numbers 0, 1, ..., -2, -1."""
    return ((np.arange(points) + points // 2) % points - points // 2) ** 2


class FourierTransform:
    """One process's planes: z planes while x and y are transformed, y planes while z is."""

    def __init__(self, communicator: Communicator, problem_class: str) -> None:
        self._communicator = communicator
        self._size = size = SIZES[problem_class]
        self._z_planes = size.z // communicator.size
        self._y_planes = size.y // communicator.size
        first = communicator.rank * self._z_planes
        count = 2 * size.x * size.y * self._z_planes
        numbers = uniform(jump(SEED, 2 * size.x * size.y * first), count)
        shape = (self._z_planes, size.y, size.x)
        self._start: Field = numbers.view(np.complex128).reshape(shape)
        mine = slice(communicator.rank * self._y_planes, (communicator.rank + 1) * self._y_planes)
        squares = (
            frequencies(size.z)[:, np.newaxis, np.newaxis]
            + frequencies(size.y)[np.newaxis, mine, np.newaxis]
            + frequencies(size.x)[np.newaxis, np.newaxis, :]
        )
        self._decay = np.exp(-4 * ALPHA * np.pi**2 * squares)
        self.checksums: list[complex] = []

    def run(self) -> None:
        """Transform once; then, in each of six time steps, evolve and transform back."""
        waves = np.fft.fft(self._to_y_planes(np.fft.fft2(self._start, axes=(1, 2))), axis=0)
        for _ in self._size.checksums:
            waves *= self._decay
            field = np.fft.ifft2(self._to_z_planes(np.fft.ifft(waves, axis=0)), axes=(1, 2))
            self.checksums.append(self._checksum(field))

    def _to_y_planes(self, field: Field) -> Field:
        """Transpose (own z, all y, x) to (all z, own y, x)."""
        size = self._communicator.size
        shape = (self._z_planes, self._y_planes, self._size.x)
        parts = np.split(field, size, axis=1)
        return np.concatenate(self._communicator.alltoall(parts, [shape] * size), axis=0)

    def _to_z_planes(self, field: Field) -> Field:
        """Transpose (all z, own y, x) to (own z, all y, x)."""
        size = self._communicator.size
        shape = (self._z_planes, self._y_planes, self._size.x)
        parts = np.split(field, size, axis=0)
        return np.concatenate(self._communicator.alltoall(parts, [shape] * size), axis=1)

    def _checksum(self, field: Field) -> complex:
        """Return the sum of 1,024 points on a diagonal that wraps around the field."""
        j = np.arange(1, SAMPLES + 1)
        x, y, z = j % self._size.x, 3 * j % self._size.y, 5 * j % self._size.z
        z = z - self._communicator.rank * self._z_planes
        mine = (z >= 0) & (z < self._z_planes)
        own = field[z[mine], y[mine], x[mine]].sum()
        return complex(self._communicator.allreduce(np.array([own]))[0])

    def verification(self) -> Verification:
        """Compare the real and imaginary part of every checksum, with tolerance 1e-12."""
        values = [part for value in self.checksums for part in (value.real, value.imag)]
        expected = [part for value in self._size.checksums for part in (value.real, value.imag)]
        return Verification(values, expected, 1e-12)


KERNEL = Kernel("ft", "Fourier transform", {"S": 64, "W": 32}, FourierTransform)
