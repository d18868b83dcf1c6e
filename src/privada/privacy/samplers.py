r"""Exact samplers: integer noise, coins, and choices among finitely many candidates.

Only `privada.privacy.noise` draws with this module.

**Lazy comparisons.** A uniform random number is an infinite sequence of bits of which a prefix has been
drawn. To learn whether it lies below a real number ``p``, enclose ``p`` between two integers over a power of
two, and draw more bits and enclose more closely until the answer is the same for whatever may follow. Two
rounds are almost always enough, and the answer is exact.

**Integer noise.** Both laws of `privada.privacy.noise` have the form :math:`P(x) \propto \exp(-r |x|^p)`
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
when, and only when, the bits so far do not decide the comparison (a few times in a million). The arrays
below hold *bounds*: they decide a comparison only if every number within the bounds decides it alike. What
is undecided goes to `resolve`, which compares in integer arithmetic with enclosures that shrink until they
decide. The output therefore has exactly the stated law, at statistical distance zero, provided that the
words are uniform and that the processor's float64 sum, product and quotient are those of IEEE 754. No
library function such as ``exp`` is trusted.

How long a draw takes depends on the noise, not on any data.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from math import ceil, frexp
from typing import TypeVar

import numpy as np

from privada._arrays import BoolArray, FloatArray, IntArray, WordArray

Source = Callable[[int], WordArray]
Enclosure = Callable[[int], tuple[int, int]]
Number = TypeVar("Number", int, FloatArray)

MARGIN = 2.0**-36  # `exp_near` is proved to 2**-39
GRID_BITS = 30  # the grid for scores is finer than their sensitivity by so many bits
LARGEST_EXPONENT = 64.0  # exp(-64) < 2**-92: only the exact comparison tells it from 0
LARGEST_SCALE = 2.0**50  # beyond 2**62, where int64 ends, lies less than exp(-4096) of the mass
STRIPS_PER_SCALE = 16
GUIDE_BITS = 13
CHUNK = 1 << 15


def product(a: tuple[int, int], b: tuple[int, int], bits: int) -> tuple[int, int]:
    """Enclosure of the product of two non-negative enclosures in units of ``2**-bits``."""
    return a[0] * b[0] >> bits, -(-a[1] * b[1] >> bits)


def _series(x: int, bits: int) -> tuple[int, int]:
    """Enclosure of ``exp(-x / 2**bits)`` for an argument of about ``2**-8`` or less."""
    term = total = 1 << bits
    n = 0
    while term:
        n += 1
        term = term * x // (n << bits)
        total += -term if n % 2 else term
    # Every term is floored from the one before, so it is short by less than 1.01 units; the series
    # alternates, so what is cut off is smaller than the last term.
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
    # exp(-t) = exp(-t / 2**halvings) squared so often; each squaring may double the error.
    halvings = ceil(t).bit_length() + 8
    work = bits + 2 * halvings + 16
    x = (t.numerator << work) // (t.denominator << halvings)
    value = _series(x + 1, work)[0], _series(x, work)[1]
    for _ in range(halvings):
        value = product(value, value, work)
    return value[0] >> (work - bits), -(-value[1] >> (work - bits))


def below(prefix: int, bits: int, enclosure: Enclosure, source: Source) -> bool:
    """Decide whether a uniform number in [0, 1) lies below an enclosed one, exactly.

    ``prefix`` has the first ``bits`` bits of the uniform number; more are drawn if they are needed.
    ``enclosure(b)`` returns two integers around ``2**b`` times the enclosed number, which become closer (in
    units of ``2**-b``) as ``b`` grows.

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


def integers_below(bound: int, n: int, source: Source) -> IntArray:
    """Draw ``n`` integers in ``[0, bound)``, equally likely."""
    # Words above the largest multiple of the bound would favour small remainders: draw them again.
    last = np.uint64(2**64 // bound * bound - 1)
    words = source(n)
    while (again := np.flatnonzero(words > last)).size:
        words = words.copy()
        words[again] = source(again.size)
    return (words % np.uint64(bound)).astype(np.int64)


def respond(codes: IntArray, n_classes: int, epsilon: Fraction, source: Source) -> IntArray:
    """Keep each code with the odds ``e**epsilon`` to 1 against each other class."""

    def enclose_keep(bits: int) -> tuple[int, int]:
        """Enclose ``2**bits / (1 + (q - 1) exp(-epsilon))``."""
        one = 1 << bits
        low, high = exp_bounds(epsilon, bits)
        return one * one // (one + (n_classes - 1) * high), -(-one * one // (one + (n_classes - 1) * low))

    # Toss a coin for each code: one word decides it, but for words between the bounds.
    words = source(codes.size)
    low, high = (np.uint64(min(bound >> 32, 2**64 - 1)) for bound in enclose_keep(96))
    keep = words < low
    for i in np.flatnonzero((words >= low) & (words <= high)):
        keep[i] = below(int(words[i]), 64, enclose_keep, source)
    other = integers_below(n_classes - 1, codes.size, source).reshape(codes.shape)
    return np.where(keep.reshape(codes.shape), codes, other + (other >= codes))


def choose(scores: FloatArray, epsilon: Fraction, sensitivity: float, source: Source) -> int:
    """Choose an index with probability proportional to ``exp(epsilon * steps / (2 Δ))``.

    ``steps`` are the scores in whole grid steps and ``Δ`` the sensitivity in grid steps
    (`on_grid`). Candidates are picked uniformly until one is accepted, each with
    probability ``exp(-epsilon * (best - steps) / (2 Δ))``.
    """
    steps, most = on_grid(scores, sensitivity)
    rate, best = epsilon / (2 * most), steps.max()
    exponents = (best - steps) * min(float(rate), LARGEST_EXPONENT)
    chances = np.where(exponents < LARGEST_EXPONENT, exp_near(np.minimum(exponents, LARGEST_EXPONENT)), 0.0)
    tried = 64
    while True:
        picks, words = integers_below(len(steps), tried, source), source(tried)
        lead = chances[picks] - words * 2.0**-64
        for i in np.flatnonzero(lead > -MARGIN):
            # Floats decide the comparison unless they are within the margin; then it is made exactly.
            exponent = rate * (int(best) - int(steps[picks[i]]))
            if lead[i] > MARGIN or below(int(words[i]), 64, partial(exp_bounds, exponent), source):
                return int(picks[i])
        tried = min(2 * tried, 1 << 16)


def on_grid(scores: FloatArray, sensitivity: float) -> tuple[FloatArray, int]:
    """Put scores on a public grid: whole steps, and by how many of them one record can change a score.

    The step is the power of two between ``2**-31`` and ``2**-30`` of the sensitivity. If the scores of
    neighbours differ by at most the sensitivity and one step (a margin for rounding in the scores), their
    whole steps differ by at most the second value, because rounding down keeps the order.

    >>> on_grid(np.array([1.0, -0.25]), 1.0)
    (array([ 1.07374182e+09, -2.68435456e+08]), 1073741825)
    """
    mantissa, exponent = math.frexp(sensitivity)
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.ldexp(scores, GRID_BITS + 1 - exponent)
    lost = (scaled == 0) & (scores < 0)  # a negative number too small for a float still rounds down
    steps = np.clip(np.floor(scaled) - lost, -(2.0**1000), 2.0**1000)
    return steps, math.ceil(math.ldexp(mantissa, GRID_BITS + 1)) + 1


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


def _log_width(scale: float) -> int:
    return max(0, frexp(scale / STRIPS_PER_SCALE)[1] - 1)


@lru_cache(maxsize=64)
def cumulative(law: Law, bits: int) -> tuple[list[int], list[int]]:
    """Enclose ``2**bits`` times the share of the envelope before strip 1, 2, 3, ..."""
    work = bits + 32
    one = 1 << work
    ratio = exp_bounds(law.rate * 2 ** (law.power * law.log_width), work)
    change = product(ratio, ratio, work) if law.power == 2 else (one, one)
    # The weights follow from the first ratio by products alone: w[k+1]/w[k] is q (Laplace) or q**(2k+1).
    weight, lows, highs = (one, one), [0], [0]
    while weight[0]:
        lows.append(lows[-1] + weight[0])
        highs.append(highs[-1] + weight[1])
        weight, ratio = product(weight, ratio, work), product(ratio, change, work)
    # The sum beyond the last listed strip is at most geometric, because the ratios fall.
    tail = -(-(weight[1] << work) // (one - ratio[1]))
    least, most = lows[-1], highs[-1] + tail
    return (
        [(part << bits) // most for part in lows[1:]],
        [min(1 << bits, -(-(part << bits) // least)) for part in highs[1:]],
    )


@dataclass(frozen=True, eq=False)
class SamplingTable:
    """Everything about a law that the vectorised attempts need; bounds, never roundings.

    Strip prefixes below ``lows[k]`` lie before the end of strip ``k``, those above ``highs[k]`` beyond it; in
    between the prefix is not enough. Beyond the last entry lies the tail, which `resolve` settles.

    The first `GUIDE_BITS` bits of a word have a ``base``, the strip in place to be joined with the word's low
    bits, and a ``squeeze``, the accept bits below which no exponential is needed. Where these bits do not
    determine one strip, the squeeze is 0 and lets nothing pass.
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

    # Bounds on the ends of the strips in units of the strip bits, up to the last unit.
    lows, highs = (
        np.array([share >> (64 - strip_bits) for share in shares], dtype=np.int64)
        for shares in cumulative(law, 64)
    )
    listed = int(np.searchsorted(lows, (1 << strip_bits) - 1)) + 1
    lows, highs = lows[:listed], highs[:listed]

    # The strip at each value of the guide bits, and whether all words that begin so lie in it.
    step = 1 << (strip_bits - GUIDE_BITS)
    starts = np.arange(1 << GUIDE_BITS, dtype=np.int64) * step
    first, first_is_sure = _find_strips(lows, highs, starts)
    last, last_is_sure = _find_strips(lows, highs, starts + step - 1)
    is_pure = first_is_sure & last_is_sure & (first == last)
    strip = np.where(is_pure, first, 0)

    # Lower bounds on acceptance by strip, from exp(-t) >= 1 - t at the strip's end, as words.
    width = 1 << law.log_width
    over, under = law.rate.numerator, law.rate.denominator
    gaps = (under - over * law.span(index * width, width - 1) for index in range(listed))
    fields = (max(0, (gap << accept_bits) // under) for gap in gaps)
    words = [min(field << (64 - accept_bits), 2**64 - 1) for field in fields]
    squeeze = np.where(is_pure, np.array(words, dtype=np.uint64)[strip], np.uint64(0))
    return SamplingTable(law, strip_bits, accept_bits, lows, highs, strip << low_bits, squeeze)


def _find_strips(lows: IntArray, highs: IntArray, prefix: IntArray) -> tuple[IntArray, BoolArray]:
    """Strip of each prefix, and whether the prefix settles it."""
    strip = np.searchsorted(lows, prefix, side="right")
    sure = strip == np.searchsorted(highs, prefix, side="left")
    return strip, sure & (strip < len(lows))


def draw(law: Law, n: int, source: Source) -> IntArray:
    """Draw ``n`` independent integers with exactly the given law."""
    table = make_table(law)
    out = np.empty(n, dtype=np.int64)
    filled = 0
    while filled < n:
        attempts = min(CHUNK, (n - filled) * 17 // 16 + 16)
        words = source(attempts * table.words_per_attempt)
        first, last = np.split(words, 2) if table.words_per_attempt == 2 else (words, words)
        values, succeeded, unsettled = attempt(table, first, last)
        for i in unsettled:
            value = resolve(table, int(first[i]), int(last[i]), source)
            succeeded[i] = value is not None
            values[i] = value or 0
        # Successful attempts are used in order, so that the law does not depend on the chunk.
        values = values[succeeded][: n - filled]
        out[filled : filled + len(values)] = values
        filled += len(values)
    return out


def attempt(table: SamplingTable, first: WordArray, last: WordArray) -> tuple[IntArray, BoolArray, IntArray]:
    """Attempt one draw per word: the values, which of them stand, and the indices left to `resolve`."""
    # Guide and squeeze decide most attempts without an exponential.
    bucket = (first >> (64 - GUIDE_BITS)).view(np.int64)
    code = table.base.take(bucket)
    low = (last & ((1 << table.low_bits) - 1)).view(np.int64)
    code |= low
    succeeded = (first << table.strip_bits) < table.squeeze.take(bucket)

    # The rest is compared with bounds in float64.
    rest = np.flatnonzero(~succeeded)
    words, places = first[rest], low[rest]
    strip, sure = _find_strips(table.lows, table.highs, (words >> (64 - table.strip_bits)).view(np.int64))
    start = (strip << table.law.log_width).astype(np.float64)
    chance = exp_near(table.law.rise_near(start, (places >> 1).astype(np.float64)))
    field = (words << table.strip_bits) >> (64 - table.accept_bits)
    unit = 2.0**-table.accept_bits
    accepted = (field + 1) * unit <= chance - MARGIN
    settled = sure & (accepted | (field * unit >= chance + MARGIN))
    code[rest] = strip << table.low_bits | places
    succeeded[rest] = accepted & settled

    succeeded &= code != 1  # a negative zero
    sign = code & 1  # the code is 2 |x| + (x < 0)
    return ((code >> 1) ^ -sign) + sign, succeeded, rest[~settled]


def resolve(table: SamplingTable, first: int, last: int, source: Source) -> int | None:
    """Make one attempt from start to end in integer arithmetic; None if it is refused.

    It may be given any words, and then agrees with `attempt` wherever that is settled.
    """
    law, accept_bits = table.law, table.accept_bits
    # The strip: more bits are read, and bounds computed more closely, until they name one.
    prefix, bits = first >> (64 - table.strip_bits), table.strip_bits
    while True:
        prefix, bits = longer(prefix, bits, source)
        lows, highs = cumulative(law, bits + 32)
        strip = bisect_right(highs, prefix << 32)
        if strip == bisect_left(lows, (prefix + 1) << 32) < len(lows):
            break
    sign, offset = last & 1, (last & ((1 << table.low_bits) - 1)) >> 1
    start = strip << law.log_width
    rise = law.rise(start, offset)
    field = (first >> (64 - table.strip_bits - accept_bits)) & ((1 << accept_bits) - 1)
    if (sign and not start + offset) or not below(field, accept_bits, partial(exp_bounds, rise), source):
        return None
    return -(start + offset) if sign else start + offset
