"""Small finite fields, as tables for the construction of projective planes.

The elements of GF(p^k) are 0 .. p^k - 1. Element e represents the polynomial whose coefficients
are the digits of e in base p, lowest first. Sums and products are taken modulo p and modulo the
monic irreducible polynomial of degree k with the lowest number. For k = 1 this is arithmetic
modulo p.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

Polynomial = tuple[int, ...]
"""Coefficients modulo p, lowest first."""


@dataclass(frozen=True)
class Field:
    """Tables of GF(order): ``plus[a][b]``, ``times[a][b]`` and ``negative[a]``."""

    order: int
    plus: tuple[tuple[int, ...], ...]
    times: tuple[tuple[int, ...], ...]
    negative: tuple[int, ...]


def prime_power(number: int) -> tuple[int, int] | None:
    """Return (p, k) with p prime and p^k = ``number``, or None if there is no such pair."""
    if number < 2:
        return None
    prime = next((d for d in range(2, int(number**0.5) + 1) if number % d == 0), number)
    exponent = 0
    while number % prime == 0:
        number //= prime
        exponent += 1
    return (prime, exponent) if number == 1 else None


@cache
def field(order: int) -> Field:
    """Return GF(``order``).

    Raises
    ------
    ValueError
        ``order`` is not a prime power; callers check this first.

    """
    power = prime_power(order)
    if power is None:
        raise ValueError(f"there is no field of order {order}")
    prime, degree = power
    digits = [_digits(element, prime, degree) for element in range(order)]
    modulus = _irreducible(prime, degree)
    plus = tuple(
        tuple(_number([(x + y) % prime for x, y in zip(a, b, strict=True)], prime) for b in digits)
        for a in digits
    )
    times = tuple(
        tuple(_number(_remainder(_product(a, b, prime), modulus, prime), prime) for b in digits)
        for a in digits
    )
    negative = tuple(row.index(0) for row in plus)
    return Field(order, plus, times, negative)


@cache
def powers(order: int) -> tuple[int, ...]:
    """Return the powers r^0 .. r^(order - 2) of the lowest primitive element r.

    Raises
    ------
    ValueError
        ``order`` is not a prime power.

    Examples
    --------
    >>> powers(5)
    (1, 2, 4, 3)

    """
    times = field(order).times
    for element in range(1, order):
        reached = [1]
        while (following := times[reached[-1]][element]) != 1:
            reached.append(following)
        if len(reached) == order - 1:
            return tuple(reached)
    raise AssertionError("the elements of a finite field other than 0 are a cyclic group")


def _digits(number: int, prime: int, count: int) -> Polynomial:
    return tuple(number // prime**i % prime for i in range(count))


def _number(digits: list[int], prime: int) -> int:
    return sum(digit * prime**i for i, digit in enumerate(digits))


def _product(a: Polynomial, b: Polynomial, prime: int) -> list[int]:
    product = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product[i + j] = (product[i + j] + x * y) % prime
    return product


def _remainder(number: list[int], modulus: Polynomial, prime: int) -> list[int]:
    """Return ``number`` modulo a monic polynomial."""
    left = list(number)
    degree = len(modulus) - 1
    for i in range(len(left) - 1, degree - 1, -1):
        factor = left[i]
        for j, coefficient in enumerate(modulus):
            left[i - degree + j] = (left[i - degree + j] - factor * coefficient) % prime
    return left[:degree]


def _irreducible(prime: int, degree: int) -> Polynomial:
    """Return the first monic polynomial of ``degree`` that is irreducible."""
    for number in range(prime**degree):
        candidate = (*_digits(number, prime, degree), 1)
        if not any(
            not any(_remainder(list(candidate), (*_digits(n, prime, low), 1), prime))
            for low in range(1, degree // 2 + 1)
            for n in range(prime**low)
        ):
            return candidate
    raise AssertionError("every finite field has an irreducible polynomial of every degree")
