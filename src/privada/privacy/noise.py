"""The only module that draws noise: from the operating system, and exactly where a lattice allows it.

::

    Noise                    the draws; everything is made of uniform 64-bit words
    ├── SecureNoise          words from the operating system; the only private one
    └── Rehearsal(seed)      the same draws from seeded words, for tests: not private

Draws of integers are *exact*: they have the stated law to the last bit, at statistical distance zero. A
parameter stands for the rational number that its float is. `privada.privacy.samplers` has the algorithms.
`Noise.uniform` and the two K-norm draws use *idealised arithmetic*: the proof is about real numbers, but the
draw is made of floats, whose low-order bits can reveal more than the proof allows (Mironov 2012). Such a draw
is never a default.

Running times depend on the noise alone; `Noise.exponential` describes one exception.

>>> import warnings
>>> with warnings.catch_warnings():
...     warnings.simplefilter("ignore")
...     rehearsal = Rehearsal(7)
>>> rehearsal.discrete_gaussian(3.5, 8)
array([ 2, -2, -1,  1,  2,  1,  8,  4])
>>> SecureNoise().discrete_laplace(2.0, (3, 2)).shape
(3, 2)

References
----------
C. Canonne, G. Kamath and T. Steinke, *The Discrete Gaussian for Differential Privacy*, NeurIPS 2020. I.
Mironov, *On significance of the least significant bits for differential privacy*, CCS 2012.
"""

from __future__ import annotations

import math
import os
import warnings
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray, WordArray
from privada.exceptions import InputError, RehearsalWarning
from privada.privacy import samplers

Size = int | tuple[int, ...]


class Noise(ABC):
    """A source of uniform words, and every draw that is made of them.

    A subclass supplies the words; the draws are the same for all.
    """

    private: ClassVar[bool]

    @abstractmethod
    def words(self, n: int) -> WordArray:
        """Return ``n`` independent uniform 64-bit words."""

    def discrete_laplace(self, scale: float, size: Size) -> IntArray:
        """Integers with ``P(x)`` proportional to ``exp(-|x|/scale)``, drawn exactly.

        ``scale`` is in grid steps, at most 2**50; ``size`` is the shape of the result.

        Privacy
        -------
        Added to an integer vector of L1 sensitivity ``Δ`` it gives pure ``Δ/scale``.
        """
        return self._draw(samplers.laplace(_check_scale(scale=scale)), size)

    def discrete_gaussian(self, sigma: float, size: Size) -> IntArray:
        """Integers with ``P(x)`` proportional to ``exp(-x²/(2 sigma²))``, drawn exactly.

        ``sigma`` is in grid steps, at most 2**50; ``size`` is the shape of the result.

        Privacy
        -------
        Added to an integer vector of L2 sensitivity ``Δ`` it gives ``Δ²/(2 sigma²)``-zCDP
        (Canonne, Kamath and Steinke 2020), the same constant as the continuous Gaussian.
        """
        return self._draw(samplers.gaussian(_check_scale(sigma=sigma)), size)

    def _draw(self, law: samplers.Law, size: Size) -> IntArray:
        shape = _check_shape(size)
        return samplers.draw(law, math.prod(shape), self.words).reshape(shape)

    def uniform(self, size: Size) -> FloatArray:
        """Odd multiples of ``2**-53`` in (0, 1), equally likely. *Idealised arithmetic* only."""
        shape = _check_shape(size)
        steps = self.words(math.prod(shape)) >> 11 | 1  # odd, so that neither 0 nor 1 is drawn
        return (steps.astype(np.float64) * 2.0**-53).reshape(shape)

    def permutation(self, n: int) -> IntArray:
        """A permutation of ``0 .. n-1``, all equally likely: the order of ``n`` distinct words."""
        n = _check.count(least=0, n=n)
        while True:  # equal words, which would favour their first order, are drawn again
            keys = self.words(n)
            order = np.argsort(keys)
            if (np.diff(keys[order]) > 0).all():
                return order.astype(np.int64)

    def below(self, bound: int) -> int:
        """A uniform whole number in ``0 .. bound-1``."""
        return int(self.integers_below(bound, 1)[0])

    def integers_below(self, bound: int, n: int) -> IntArray:
        """``n`` independent uniform whole numbers in ``0 .. bound-1``."""
        return samplers.integers_below(_check.count(bound=bound), _check.count(least=0, n=n), self.words)

    def randomised_response(self, codes: IntArray, *, n_classes: int, epsilon: float) -> IntArray:
        """Keep each code with the odds ``e**epsilon`` to each other class, drawn exactly.

        ``codes`` are private classes, each in ``0 .. n_classes - 1``; their number ``q`` is public.

        Privacy
        -------
        Every record's reply is ``epsilon``-differentially private by itself: a code is kept
        with probability ``e^ε/(e^ε + q - 1)``, else replaced by one of the others with equal
        probabilities, so any two codes give a reply with odds of at most ``e^ε``.
        """
        n_classes = _check.count(least=2, n_classes=n_classes)
        array = np.asarray(codes)
        if array.dtype.kind not in "iu" or (array.size and (array.min() < 0 or array.max() >= n_classes)):
            raise InputError(f"Expected codes to be whole numbers in 0 .. {n_classes - 1}; some are not.")
        exact = Fraction(_check.positive(epsilon=epsilon))
        return samplers.respond(array.astype(np.int64), n_classes, exact, self.words)

    def exponential(self, scores: npt.ArrayLike, *, epsilon: float, sensitivity: float) -> int:
        """Choose an index with probability proportional to ``exp(ε score / (2 sensitivity))``.

        The scores are rounded down to a public grid with steps of about ``2**-30`` times the sensitivity.
        Candidates are then picked uniformly until one is accepted. The probability of acceptance is
        ``exp(-t)`` with exactly the rational ``t = ε (best - score)/(2 Δ)``, where scores are in grid steps
        and ``Δ`` is the sensitivity in grid steps, rounded up, plus one.

        There is one score per candidate, and higher is better. ``sensitivity`` is the largest change
        of any one score between neighbours.

        Privacy
        -------
        ``epsilon``-differentially private, and of bounded range ``epsilon``, in finite arithmetic,
        even if rounding changes the score of a neighbour by up to a grid step more than the
        sensitivity. If adding a record changes all scores in one direction (*monotonic* scores),
        you may pass ``2 * epsilon`` for the same guarantee.

        The number of candidates that are tried depends on the scores: do not let an
        adversary measure the running time.
        """
        exact = Fraction(_check.positive(epsilon=epsilon))
        array = np.asarray(scores, dtype=np.float64)
        if array.ndim != 1 or not array.size or not np.isfinite(array).all():
            raise InputError(f"Expected scores to be a non-empty row of finite numbers, shape {array.shape}.")
        return samplers.choose(array, exact, _check.positive(sensitivity=sensitivity), self.words)

    def k_norm_ball(self, *, dimension: int, radius: float, epsilon: float, size: int) -> FloatArray:
        """Vectors with density proportional to ``exp(-epsilon * ||z||₂ / radius)``.

        Each of the ``size`` rows is a uniform direction times a ``Gamma(dimension, radius/epsilon)`` length.

        Privacy
        -------
        Pure ``epsilon`` for a vector of L2 sensitivity ``radius``. *Idealised arithmetic.*
        """
        dimension, size = _check.count(dimension=dimension), _check.count(least=0, size=size)
        unit = _check.positive(radius=radius) / _check.positive(epsilon=epsilon)
        return unit * self._gamma(dimension, size)[:, None] * self._directions(dimension, size)

    def k_norm_cylinder(
        self, *, dimension: int, radius: float, epsilon: float, size: int
    ) -> tuple[FloatArray, FloatArray]:
        """Noise for a count and a vector sum together: K-norm of the cylinder ``[-1, 1] x B_radius``.

        Counts have the shape (size,) and sums (size, dimension). Each is a uniform point of the
        cylinder times a ``Gamma(dimension + 2, 1/epsilon)`` length: density proportional to
        ``exp(-epsilon * max(|c|, ||s||₂/radius))``.

        Privacy
        -------
        Pure ``epsilon`` for (count, sum) when one record moves the count by at most 1 and
        the sum by at most ``radius``. *Idealised arithmetic.*
        """
        dimension, size = _check.count(dimension=dimension), _check.count(least=0, size=size)
        radius, epsilon = _check.positive(radius=radius), _check.positive(epsilon=epsilon)
        length = self._gamma(dimension + 2, size) / epsilon
        inside = radius * self.uniform(size) ** (1 / dimension)
        sums = (length * inside)[:, None] * self._directions(dimension, size)
        return length * (2 * self.uniform(size) - 1), sums

    def _gamma(self, shape: int, size: int) -> FloatArray:
        return np.asarray(-np.log(self.uniform((size, shape))).sum(axis=1))

    def _directions(self, dimension: int, size: int) -> FloatArray:
        """Uniform directions: normal vectors (Box and Muller), scaled to length one."""
        length, turn = self.uniform((2, size, dimension))
        normal = np.sqrt(-2 * np.log(length)) * np.cos(2 * np.pi * turn)
        return np.asarray(normal / np.linalg.norm(normal, axis=1, keepdims=True))


class SecureNoise(Noise):
    """Noise from the operating system's secure generator: the only private one.

    Every word of every draw comes from ``os.urandom``. No state is kept from one draw to the next, so
    nothing can repeat after a fork or be read from memory.
    """

    private = True

    def words(self, n: int) -> WordArray:
        """Return ``n`` words of ``os.urandom``."""
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)

    def __repr__(self) -> str:
        return "SecureNoise()"


class Rehearsal(Noise):
    """Reproducible noise for tests and demonstrations: **not private**.

    The algorithms are those of `SecureNoise`, but the words come from a seeded Philox
    generator. Anybody who knows the seed can subtract the noise.

    Parameters
    ----------
    seed : int
        Public; equal seeds give equal noise. Making a `Rehearsal` warns (`RehearsalWarning`).
    """

    private = False

    def __init__(self, seed: int) -> None:
        self.seed = _check.count(least=0, seed=seed)
        self._bits = np.random.Philox(self.seed)
        warnings.warn(
            f"Rehearsal: noise is seeded with {self.seed}; what comes out is not private.",
            RehearsalWarning,
            stacklevel=2,
        )

    def words(self, n: int) -> WordArray:
        """Return the next ``n`` words of the seeded generator."""
        return np.asarray(self._bits.random_raw(n), dtype=np.uint64)

    def __repr__(self) -> str:
        return f"Rehearsal({self.seed})"


def _check_scale(**named: float) -> float:
    ((name, _),) = named.items()
    scale = _check.positive(**named)
    if scale > samplers.LARGEST_SCALE:
        limit = f"{samplers.LARGEST_SCALE:.0f} (2**50)"
        raise InputError(f"Expected {name} <= {limit} grid steps, got {scale!r}; use a coarser grid.")
    return scale


def _check_shape(size: Size) -> tuple[int, ...]:
    return tuple(_check.count(least=0, size=n) for n in (size if isinstance(size, tuple) else (size,)))


__all__ = ["Noise", "Rehearsal", "SecureNoise"]
