r"""Exact draws on the integers, a word at a time: strips, squeezes and lazy comparisons.

Both laws of `privada.privacy.noise` have the form :math:`P(x) \propto \exp(-r |x|^p)`
with an exact rational rate ``r`` (Laplace: ``p = 1``, ``r = 1/b``; Gaussian: ``p = 2``,
``r = 1/(2σ²)``). The non-negative integers are cut into strips of ``m`` numbers, ``m``
a power of two near σ/24. One attempt reads one 64-bit word (two when ``m`` is large):

::

    | strip: 24 to 32 bits | accept: 24 to 32 bits | place in the strip: log2 m bits | sign |

1. The strip bits are the beginning of a uniform number; strip ``k`` is where it falls
   among the sums of the envelope weights :math:`w_k = \exp(-r (k m)^p)`.
2. The place bits choose ``j`` in ``[0, m)``; ``x = k m + j``.
3. The accept bits are the beginning of a second uniform number; the attempt succeeds if
   that number is below :math:`\exp(-r (x^p - (k m)^p))`. About 98 % do.
4. A negative zero is refused, so that zero is not counted twice.

**No step rounds.** A uniform number is only ever compared, and its unread bits are drawn
when, and only when, the bits so far do not settle the comparison (a few times in a
million). The arrays below hold *bounds*: a comparison is settled by them only if every
number within the bounds settles it alike. What is left goes to `resolve`, which compares
in integer arithmetic with enclosures that shrink until it is settled. The output
therefore has exactly the stated law, at statistical distance zero, provided that the
words are uniform and that the processor's float64 sum, product and quotient are those of
IEEE 754. No library function such as ``exp`` is trusted.

How long a draw takes depends on the noise, not on any data.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from math import frexp
from typing import TypeVar

import numpy as np

from privada._arrays import BoolArray, FloatArray, IntArray, WordArray
from privada.privacy.samplers.exact import (
    MARGIN,
    Source,
    below,
    exp_bounds,
    exp_near,
    longer,
    product,
)

Number = TypeVar("Number", int, FloatArray)

LARGEST_SCALE = 2.0**50  # beyond 2**62, where int64 ends, lies less than exp(-4096) of the mass
STRIPS_PER_SCALE = 16
GUIDE_BITS = 13
CHUNK = 1 << 15


@dataclass(frozen=True)
class Law:
    """``P(x)`` proportional to ``exp(-rate * |x|**power)``, cut into strips of ``2**log_width``."""

    rate: Fraction
    power: int
    log_width: int

    def span(self, start: Number, offset: Number) -> Number:
        """Return ``(start + offset)**power - start**power``."""
        return offset * (2 * start + offset) if self.power == 2 else offset

    def rise(self, start: int, offset: int) -> Fraction:
        """Exponent gained between the start of a strip and a place in it."""
        return self.rate * self.span(start, offset)

    def rise_near(self, start: FloatArray, offset: FloatArray) -> FloatArray:
        """Do the same in float64, with a relative error below ``2**-50``."""
        if self.log_width == 0:
            return np.zeros_like(offset)
        return float(self.rate) * self.span(start, offset)


def laplace(scale: float) -> Law:
    """Return the discrete Laplace law of a scale, the float taken as the rational number it is."""
    return Law(1 / Fraction(scale), 1, _log_width(scale))


def gaussian(sigma: float) -> Law:
    """Return the discrete Gaussian law of a sigma, the float taken as the rational number it is."""
    return Law(1 / (2 * Fraction(sigma) ** 2), 2, _log_width(sigma))


LAWS: dict[str, Callable[[float], Law]] = {"laplace": laplace, "gaussian": gaussian}


def _log_width(scale: float) -> int:
    return max(0, frexp(scale / STRIPS_PER_SCALE)[1] - 1)


@lru_cache(maxsize=64)
def cumulative(law: Law, bits: int) -> tuple[list[int], list[int]]:
    """Enclose ``2**bits`` times the share of the envelope before strip 1, 2, 3, ...

    The weights follow from the first ratio by products alone, since
    ``w[k+1]/w[k]`` is ``q`` (Laplace) or ``q**(2k+1)`` (Gaussian). The sum beyond the
    last listed strip is at most geometric, since the ratios fall.
    """
    work = bits + 32
    one = 1 << work
    ratio = exp_bounds(law.rate * 2 ** (law.power * law.log_width), work)
    change = product(ratio, ratio, work) if law.power == 2 else (one, one)
    weight, lows, highs = (one, one), [0], [0]
    while weight[0]:
        lows.append(lows[-1] + weight[0])
        highs.append(highs[-1] + weight[1])
        weight, ratio = product(weight, ratio, work), product(ratio, change, work)
    tail = -(-(weight[1] << work) // (one - ratio[1]))
    least, most = lows[-1], highs[-1] + tail
    return (
        [(part << bits) // most for part in lows[1:]],
        [min(1 << bits, -(-(part << bits) // least)) for part in highs[1:]],
    )


@dataclass(frozen=True, eq=False)
class SamplingTable:
    """Everything about a law that the vectorised attempts need; bounds, never roundings.

    Attributes
    ----------
    lows, highs
        Strip prefixes below ``lows[k]`` lie before the end of strip ``k``, those above
        ``highs[k]`` beyond it; in between the prefix is not enough. Beyond the last
        entry lies the tail, which `resolve` settles.
    base, squeeze
        By the first `GUIDE_BITS` bits of a word: the strip, in place to be joined with
        the word's low bits, and the accept bits below which no exponential is needed.
        Where the bits do not name one strip, the squeeze is 0 and lets nothing pass.
    """

    law: Law
    strip_bits: int
    accept_bits: int
    lows: IntArray
    highs: IntArray
    base: IntArray
    squeeze: WordArray

    @property
    def low_bits(self) -> int:
        """Bits for the sign and the place in the strip."""
        return self.law.log_width + 1

    @property
    def words_per_attempt(self) -> int:
        """Two when strip, accept and low bits do not fit into one word."""
        return 1 if self.strip_bits + self.accept_bits + self.low_bits <= 64 else 2


@lru_cache(maxsize=64)
def make_table(law: Law) -> SamplingTable:
    """Lay out the word and compute the tables of a law, once."""
    low_bits = law.log_width + 1
    strip_bits = 32 if low_bits > 16 else (65 - low_bits) // 2
    accept_bits = 32 if low_bits > 16 else 64 - low_bits - strip_bits
    lows, highs = _thresholds(law, strip_bits)
    strip, pure = _guide(lows, highs, strip_bits)
    squeeze = np.where(pure, _squeezes(law, len(lows), accept_bits)[strip], np.uint64(0))
    return SamplingTable(law, strip_bits, accept_bits, lows, highs, strip << low_bits, squeeze)


def _thresholds(law: Law, strip_bits: int) -> tuple[IntArray, IntArray]:
    """Bounds on the ends of the strips in units of the strip bits, up to the last unit."""
    lows, highs = (
        np.array([share >> (64 - strip_bits) for share in shares], dtype=np.int64)
        for shares in cumulative(law, 64)
    )
    listed = int(np.searchsorted(lows, (1 << strip_bits) - 1)) + 1
    return lows[:listed], highs[:listed]


def _strips(lows: IntArray, highs: IntArray, prefix: IntArray) -> tuple[IntArray, BoolArray]:
    """Strip of each prefix, and whether the prefix settles it."""
    strip = np.searchsorted(lows, prefix, side="right")
    sure = strip == np.searchsorted(highs, prefix, side="left")
    return strip, sure & (strip < len(lows))


def _guide(lows: IntArray, highs: IntArray, strip_bits: int) -> tuple[IntArray, BoolArray]:
    """Strip at each value of the first bits, and whether all words that begin so lie in it."""
    step = 1 << (strip_bits - GUIDE_BITS)
    starts = np.arange(1 << GUIDE_BITS, dtype=np.int64) * step
    first, sure = _strips(lows, highs, starts)
    last, sure_too = _strips(lows, highs, starts + step - 1)
    pure = sure & sure_too & (first == last)
    return np.where(pure, first, 0), pure


def _squeezes(law: Law, strips: int, accept_bits: int) -> WordArray:
    """Lower bounds on acceptance by strip, from ``exp(-t) >= 1 - t`` at the strip's end, as words."""
    width = 1 << law.log_width
    over, under = law.rate.numerator, law.rate.denominator
    gaps = (under - over * law.span(strip * width, width - 1) for strip in range(strips))
    fields = (max(0, (gap << accept_bits) // under) for gap in gaps)
    return np.array([min(field << (64 - accept_bits), 2**64 - 1) for field in fields], dtype=np.uint64)


def draw(law: Law, n: int, source: Source) -> IntArray:
    """Draw ``n`` independent integers with exactly the given law."""
    table = make_table(law)
    out = np.empty(n, dtype=np.int64)
    filled = 0
    while filled < n:
        attempts = min(CHUNK, (n - filled) * 17 // 16 + 16)
        values = _chunk(table, source(attempts * table.words_per_attempt), source)[: n - filled]
        out[filled : filled + len(values)] = values
        filled += len(values)
    return out


def _chunk(table: SamplingTable, words: WordArray, source: Source) -> IntArray:
    """All successful attempts of these words, in order."""
    first, last = np.split(words, 2) if table.words_per_attempt == 2 else (words, words)
    values, kept, unsettled = attempt(table, first, last)
    for i in unsettled:
        value = resolve(table, int(first[i]), int(last[i]), source)
        kept[i] = value is not None
        values[i] = value or 0
    return values[kept]


def attempt(table: SamplingTable, first: WordArray, last: WordArray) -> tuple[IntArray, BoolArray, IntArray]:
    """Attempt one draw per word: the values, which of them stand, and the indices left to `resolve`."""
    bucket = (first >> (64 - GUIDE_BITS)).view(np.int64)
    code = table.base.take(bucket)
    low = (last & ((1 << table.low_bits) - 1)).view(np.int64)
    code |= low
    kept = (first << table.strip_bits) < table.squeeze.take(bucket)
    rest = np.flatnonzero(~kept)
    strip, accepted, settled = _compare(table, first[rest], low[rest])
    code[rest] = strip << table.low_bits | low[rest]
    kept[rest] = accepted & settled
    kept &= code != 1
    return _signed(code), kept, rest[~settled]


def _compare(table: SamplingTable, first: WordArray, low: IntArray) -> tuple[IntArray, BoolArray, BoolArray]:
    """Strips, acceptances, and whether both are settled, where guide and squeeze were not enough."""
    strip, sure = _strips(table.lows, table.highs, (first >> (64 - table.strip_bits)).view(np.int64))
    start = (strip << table.law.log_width).astype(np.float64)
    chance = exp_near(table.law.rise_near(start, (low >> 1).astype(np.float64)))
    field = (first << table.strip_bits) >> (64 - table.accept_bits)
    unit = 2.0**-table.accept_bits
    accepted = (field + 1) * unit <= chance - MARGIN
    return strip, accepted, sure & (accepted | (field * unit >= chance + MARGIN))


def _signed(code: IntArray) -> IntArray:
    """Read ``2 |x| + (x < 0)`` as ``x``."""
    sign = code & 1
    return ((code >> 1) ^ -sign) + sign


def resolve(table: SamplingTable, first: int, last: int, source: Source) -> int | None:
    """Make one attempt from start to end in integer arithmetic; None if it is refused.

    It may be given any words, and then agrees with `attempt` wherever that is settled.
    """
    law, accept_bits = table.law, table.accept_bits
    strip = _exact_strip(law, first >> (64 - table.strip_bits), table.strip_bits, source)
    sign, offset = last & 1, (last & ((1 << table.low_bits) - 1)) >> 1
    start = strip << law.log_width
    rise = law.rise(start, offset)
    field = (first >> (64 - table.strip_bits - accept_bits)) & ((1 << accept_bits) - 1)
    if (sign and not start + offset) or not below(field, accept_bits, partial(exp_bounds, rise), source):
        return None
    return -(start + offset) if sign else start + offset


def _exact_strip(law: Law, prefix: int, bits: int, source: Source) -> int:
    """Strip in which a uniform number falls that begins with these bits."""
    while True:
        prefix, bits = longer(prefix, bits, source)
        lows, highs = cumulative(law, bits + 32)
        strip = bisect_right(highs, prefix << 32)
        if strip == bisect_left(lows, (prefix + 1) << 32) < len(lows):
            return strip


__all__ = [
    "LARGEST_SCALE",
    "LAWS",
    "Law",
    "SamplingTable",
    "attempt",
    "cumulative",
    "draw",
    "gaussian",
    "laplace",
    "make_table",
    "resolve",
]
