"""Numbers that are never rounded, and float64 with a proved error.

A uniform random number is an infinite sequence of bits of which a prefix has been drawn. To
learn whether it lies below a real number ``p``, enclose ``p`` between two integers over a
power of two, and draw more bits and enclose more closely until the answer is the same for
whatever may follow. Two rounds are almost always enough, and the answer is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil

import numpy as np

from privada._arrays import FloatArray, WordArray

Source = Callable[[int], WordArray]
Enclosure = Callable[[int], tuple[int, int]]

MARGIN = 2.0**-36  # `exp_near` is proved to 2**-39


def product(a: tuple[int, int], b: tuple[int, int], bits: int) -> tuple[int, int]:
    """Enclosure of the product of two non-negative enclosures in units of ``2**-bits``."""
    return a[0] * b[0] >> bits, -(-a[1] * b[1] >> bits)


def _series(x: int, bits: int) -> tuple[int, int]:
    """Enclosure of ``exp(-x / 2**bits)`` for an argument of about ``2**-8`` or less.

    Every term is floored from the one before, so it is short by less than 1.01 units;
    the series alternates, so what is cut off is smaller than the last term.
    """
    term = total = 1 << bits
    n = 0
    while term:
        n += 1
        term = term * x // (n << bits)
        total += -term if n % 2 else term
    return total - 2 * n, total + 2 * n


def exp_bounds(t: Fraction, bits: int) -> tuple[int, int]:
    """Enclose ``2**bits * exp(-t)`` between two integers, for a rational ``t >= 0``.

    >>> exp_bounds(Fraction(0), 8), exp_bounds(Fraction(1), 8)  # 256/e = 94.2
    ((256, 256), (94, 95))
    """
    if t == 0:
        return 1 << bits, 1 << bits
    if t > bits:
        return 0, 1
    halvings = ceil(t).bit_length() + 8
    work = bits + 2 * halvings + 16
    x = (t.numerator << work) // (t.denominator << halvings)
    value = _series(x + 1, work)[0], _series(x, work)[1]
    for _ in range(halvings):
        value = product(value, value, work)
    return value[0] >> (work - bits), -(-value[1] >> (work - bits))


def below(prefix: int, bits: int, enclosure: Enclosure, source: Source) -> bool:
    """Decide whether a uniform number in [0, 1) lies below an enclosed one, exactly.

    Parameters
    ----------
    prefix, bits
        The first ``bits`` bits of the uniform number. More are drawn if they are needed.
    enclosure
        ``enclosure(b)`` returns two integers around ``2**b`` times the enclosed number,
        closer and closer (in units of ``2**-b``) as ``b`` grows.
    source
        Draws uniform 64-bit words.

    Examples
    --------
    >>> def one_over_e(bits):
    ...     return exp_bounds(Fraction(1), bits)
    >>> below(4, 4, one_over_e, source=None)  # at most 5/16 = 0.31: below, whatever follows
    True
    >>> below(6, 4, one_over_e, source=None)  # at least 6/16 = 0.38: not below
    False
    """
    while True:
        low, high = enclosure(bits + 32)
        if (prefix + 1) << 32 <= low:
            return True
        if prefix << 32 >= high:
            return False
        prefix, bits = longer(prefix, bits, source)


def longer(prefix: int, bits: int, source: Source) -> tuple[int, int]:
    """Read 64 more bits of a uniform number."""
    return prefix << 64 | int(source(1)[0]), bits + 64


def exp_near(t: FloatArray) -> FloatArray:
    """Return ``exp(-t)`` to within ``2**-39`` for ``0 <= t <= 64``, by float64 arithmetic alone.

    With ``x = t/256 <= 1/4`` the Taylor polynomial of degree 12 is off by less than
    ``x**13/13! < 2**-58``, its Horner evaluation by less than ``2**-49``, relatively less
    than ``2**-48``; eight squarings multiply that by 256 and add less than ``2**-44``.
    """
    x = t / 256
    y = np.ones_like(x)
    for n in range(12, 0, -1):
        y = 1 - x * y / n
    for _ in range(8):
        y = y * y
    return y


__all__ = ["MARGIN", "below", "exp_bounds", "exp_near", "longer", "product"]
