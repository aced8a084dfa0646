"""The equations of LU: compressible Navier-Stokes flow (NAS report RNR-94-007, section 4.3).

A state is an array whose last axis holds density, momentum along x, y and z, and energy. A
direction is named by the place of its momentum in it: 1, 2 or 3. Jacobians have two axes at
the end: what changes, and with which part of the state.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

State = NDArray[np.float64]
Jacobian = NDArray[np.float64]

DENSITY, ENERGY = 0, 4
MOMENTA = slice(1, 4)
PARTS = 5
PRESSURE = 0.4
"""c2 of the report: pressure over internal energy."""
VISCOSITY = 0.1
"""c3 c4."""
CONDUCTION = 1.4 * 1.4
"""c1 c5."""

EXACT = np.array(
    [
        [2.0, 0.0, 0.0, 4.0, 5.0, 3.0, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3],
        [1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5],
        [2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4],
        [2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3],
        [5.0, 4.0, 3.0, 2.0, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2],
    ]
)
"""Of each part: the constant, then the coefficients of x, y, z, of their squares, and so on."""


def exact(z: State, y: State, x: State) -> State:
    """Return the state that solves the equations at points of the unit cube (these broadcast)."""
    total = EXACT[:, 0]
    for power in range(1, 5):
        first = 3 * power - 2
        for offset, place in enumerate((x, y, z)):
            total = total + EXACT[:, first + offset] * place[..., np.newaxis] ** power
    return total


def guess(z: State, y: State, x: State) -> State:
    """Return the state to begin with at the inner points: interpolated between six faces."""
    near, far = np.zeros(1), np.ones(1)
    a, b, c = (
        (1.0 - place[..., np.newaxis]) * from_near + place[..., np.newaxis] * from_far
        for place, from_near, from_far in (
            (z, exact(near, y, x), exact(far, y, x)),
            (y, exact(z, near, x), exact(z, far, x)),
            (x, exact(z, y, near), exact(z, y, far)),
        )
    )
    return a + b + c - a * b - b * c - c * a + a * b * c


def pressure(u: State) -> State:
    """Return the pressure."""
    moving = 0.5 * (u[..., MOMENTA] ** 2).sum(-1) / u[..., DENSITY]
    pushed: State = PRESSURE * (u[..., ENERGY] - moving)
    return pushed


def flux(u: State, along: int) -> State:
    """Return what flows along a direction, without viscosity."""
    speed = u[..., along] / u[..., DENSITY]
    found = u * speed[..., np.newaxis]
    pushed = pressure(u)
    found[..., along] += pushed
    found[..., ENERGY] += pushed * speed
    return found


def flux_jacobian(u: State, along: int) -> Jacobian:
    """Return the derivatives of :func:`flux`."""
    w = u / u[..., :1]
    speed = w[..., along]
    found = np.zeros((*u.shape, PARTS))
    found[..., DENSITY, along] = 1.0
    of_pressure = np.concatenate((_half_square(w), -w[..., MOMENTA], np.ones_like(w[..., :1])), -1)
    of_pressure *= PRESSURE
    enthalpy = w[..., ENERGY] + pressure(u) / u[..., DENSITY]
    for part in (1, 2, 3):
        found[..., part, DENSITY] = -w[..., part] * speed
        found[..., part, part] += speed
        found[..., part, along] += w[..., part]
    found[..., along, :] += of_pressure
    found[..., ENERGY, :] = of_pressure * speed[..., np.newaxis]
    found[..., ENERGY, DENSITY] -= enthalpy * speed
    found[..., ENERGY, along] += enthalpy
    found[..., ENERGY, ENERGY] += speed
    return found


def viscous(u: State, along: int) -> State:
    """Return that of which viscosity and conduction add the second derivative along a direction."""
    w = u / u[..., :1]
    w[..., DENSITY] = 0.0
    heat = CONDUCTION * w[..., ENERGY] + (1.0 - CONDUCTION) * _half_square(w)[..., 0]
    w[..., ENERGY] = heat + w[..., along] ** 2 / 6.0
    w[..., along] *= 4.0 / 3.0
    return VISCOSITY * w


def viscous_jacobian(u: State, along: int) -> Jacobian:
    """Return the derivatives of :func:`viscous`."""
    w = u / u[..., :1]
    found = np.zeros((*u.shape, PARTS))
    square = CONDUCTION * w[..., ENERGY] + 2.0 * (1.0 - CONDUCTION) * _half_square(w)[..., 0]
    found[..., ENERGY, DENSITY] = -square - w[..., along] ** 2 / 3.0
    found[..., ENERGY, ENERGY] = CONDUCTION
    for part in (1, 2, 3):
        factor = 4.0 / 3.0 if part == along else 1.0
        found[..., part, DENSITY] = -factor * w[..., part]
        found[..., part, part] = factor
        found[..., ENERGY, part] = (factor - CONDUCTION) * w[..., part]
    return found * (VISCOSITY / u[..., :1, np.newaxis])


def _half_square(w: State) -> State:
    """Return half the square of the speed, with an axis of length 1 at the end."""
    half: State = 0.5 * (w[..., MOMENTA] ** 2).sum(-1, keepdims=True)
    return half
