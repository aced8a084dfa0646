"""The equations of LU: compressible Navier-Stokes flow (NAS report RNR-94-007, section 4.3).

The last axis of a state holds its components: density, momentum along x, y and z, and energy. A
direction is the index of its momentum: 1, 2 or 3. The last two axes of a Jacobian are the
component that is differentiated and the component with respect to which it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

State = NDArray[np.float64]
Jacobian = NDArray[np.float64]

DENSITY, ENERGY = 0, 4
MOMENTA = slice(1, 4)
COMPONENTS = 5
PRESSURE = 0.4
"""c2 of the report: the ratio of pressure to internal energy."""
VISCOSITY = 0.1
"""c3 c4 of the report."""
CONDUCTION = 1.4 * 1.4
"""c1 c5 of the report."""

EXACT = np.array(
    [
        [2.0, 0.0, 0.0, 4.0, 5.0, 3.0, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3],
        [1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5],
        [2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4],
        [2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3],
        [5.0, 4.0, 3.0, 2.0, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2],
    ]
)
"""For each component: the constant, then coefficients of x, y, z, of their squares, and so on."""


def exact(z: State, y: State, x: State) -> State:
    """Return the exact solution at points of the unit cube; the coordinates are broadcast."""
    total = EXACT[:, 0]
    for power in range(1, 5):
        first = 3 * power - 2
        for offset, coordinate in enumerate((x, y, z)):
            total = total + EXACT[:, first + offset] * coordinate[..., np.newaxis] ** power
    return total


def initial(z: State, y: State, x: State) -> State:
    """Return the initial state at the inner points, interpolated between the six faces."""
    low, high = np.zeros(1), np.ones(1)
    a, b, c = (
        (1.0 - coordinate[..., np.newaxis]) * from_low + coordinate[..., np.newaxis] * from_high
        for coordinate, from_low, from_high in (
            (z, exact(low, y, x), exact(high, y, x)),
            (y, exact(z, low, x), exact(z, high, x)),
            (x, exact(z, y, low), exact(z, y, high)),
        )
    )
    return a + b + c - a * b - b * c - c * a + a * b * c


def pressure(u: State) -> State:
    """Return the pressure."""
    kinetic = 0.5 * (u[..., MOMENTA] ** 2).sum(-1) / u[..., DENSITY]
    result: State = PRESSURE * (u[..., ENERGY] - kinetic)
    return result


def flux(u: State, along: int) -> State:
    """Return the inviscid flux along a direction."""
    speed = u[..., along] / u[..., DENSITY]
    result = u * speed[..., np.newaxis]
    p = pressure(u)
    result[..., along] += p
    result[..., ENERGY] += p * speed
    return result


def flux_jacobian(u: State, along: int) -> Jacobian:
    """Return the derivatives of :func:`flux`."""
    w = u / u[..., :1]
    speed = w[..., along]
    jacobian = np.zeros((*u.shape, COMPONENTS))
    jacobian[..., DENSITY, along] = 1.0
    of_pressure = np.concatenate((_half_square(w), -w[..., MOMENTA], np.ones_like(w[..., :1])), -1)
    of_pressure *= PRESSURE
    enthalpy = w[..., ENERGY] + pressure(u) / u[..., DENSITY]
    for part in (1, 2, 3):
        jacobian[..., part, DENSITY] = -w[..., part] * speed
        jacobian[..., part, part] += speed
        jacobian[..., part, along] += w[..., part]
    jacobian[..., along, :] += of_pressure
    jacobian[..., ENERGY, :] = of_pressure * speed[..., np.newaxis]
    jacobian[..., ENERGY, DENSITY] -= enthalpy * speed
    jacobian[..., ENERGY, along] += enthalpy
    jacobian[..., ENERGY, ENERGY] += speed
    return jacobian


def viscous(u: State, along: int) -> State:
    """Return the viscous terms, whose second derivative along the direction is in the equations."""
    w = u / u[..., :1]
    w[..., DENSITY] = 0.0
    heat = CONDUCTION * w[..., ENERGY] + (1.0 - CONDUCTION) * _half_square(w)[..., 0]
    w[..., ENERGY] = heat + w[..., along] ** 2 / 6.0
    w[..., along] *= 4.0 / 3.0
    return VISCOSITY * w


def viscous_jacobian(u: State, along: int) -> Jacobian:
    """Return the derivatives of :func:`viscous`."""
    w = u / u[..., :1]
    jacobian = np.zeros((*u.shape, COMPONENTS))
    square = CONDUCTION * w[..., ENERGY] + 2.0 * (1.0 - CONDUCTION) * _half_square(w)[..., 0]
    jacobian[..., ENERGY, DENSITY] = -square - w[..., along] ** 2 / 3.0
    jacobian[..., ENERGY, ENERGY] = CONDUCTION
    for part in (1, 2, 3):
        factor = 4.0 / 3.0 if part == along else 1.0
        jacobian[..., part, DENSITY] = -factor * w[..., part]
        jacobian[..., part, part] = factor
        jacobian[..., ENERGY, part] = (factor - CONDUCTION) * w[..., part]
    return jacobian * (VISCOSITY / u[..., :1, np.newaxis])


def _half_square(w: State) -> State:
    """Return half the square of the speed, with a last axis of length 1."""
    half: State = 0.5 * (w[..., MOMENTA] ** 2).sum(-1, keepdims=True)
    return half
