"""Test the noise against the plan: goodness of fit of outputs minus exact values, and independence.

Generated rows let an auditor see the exact value and the output of every draw. Each output is
turned into a number that is uniform on [0, 1] exactly if the mechanism draws its declared law (the
probability integral transform, randomised where the law is discrete). Then

* *law*: the numbers of a draw are uniform (Dvoretzky, Kiefer and Wolfowitz's inequality with Massart's
  constant, valid for every number of draws), those at an exact value of zero, such as an empty cell,
  also by themselves;
* *independence*: of two numbers that should be independent, one half of the pairs lie on the
  same side of 1/2 (an exact binomial test): in successive answers, in two draws of one answer, and side by
  side in one draw. Noise that is seeded or used twice fails.

**What is proved.** Each test's false-alarm rate is at most its error, whatever the data; the errors of all
tests of a question add up to the one that is stated (Bonferroni). A mechanism that passes may differ from
its law by less than the trials show.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, singledispatch
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.audit.transcript import Drawn, record_draws
from privada.parties.rows import Rows
from privada.privacy.mechanism import (
    Exponential,
    Gaussian,
    KNorm,
    KNormCylinder,
    Laplace,
    Lattice,
    Mechanism,
    RandomisedResponse,
)
from privada.privacy.noise import Noise
from privada.privacy.release import Question

NUMBERS = 16_000  # of each draw: a scale that is wrong by a tenth shows
LARGE_STEPS = 400.0  # from here on the discrete Gaussian's distribution function is the normal one to 1e-6
MOST_DRAWS_TESTED = 8


@dataclass(frozen=True, kw_only=True)
class LawTest:
    """One test of one draw: how unlikely the numbers are under the declared law."""

    name: str
    probability: float
    error: float
    numbers: int

    @property
    def passed(self) -> bool:
        """Whether they are not too unlikely."""
        return self.probability >= self.error

    def __str__(self) -> str:
        return f"{self.name} (probability {self.probability:.1e} in {self.numbers} numbers)"


@dataclass(frozen=True, kw_only=True)
class LawResult:
    """All tests of a question's noise."""

    tests: tuple[LawTest, ...] = ()

    @property
    def violations(self) -> tuple[str, ...]:
        """The tests that failed, in words."""
        return tuple(str(test) for test in self.tests if not test.passed)

    @property
    def passed(self) -> bool:
        """Whether none did."""
        return not self.violations

    def __str__(self) -> str:
        if self.passed:
            return f"passed: {len(self.tests)} tests"
        return f"FAILED: {'; '.join(self.violations)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports."""
        return {"passed": self.passed, "tests": len(self.tests), "violations": list(self.violations)}


def check_laws(
    question: Question,
    data_sets: Sequence[Rows],
    *,
    answers: int = 240,
    numbers: int = NUMBERS,
    error: float = 0.005,
    noise: Noise,
) -> LawResult:
    """Test the noise of a question's real answers.

    Parameters
    ----------
    question : Question
    data_sets : sequence of Rows
        Answered in turn, each twice in succession.
    answers : int, default=240
        Number of answers in all.
    numbers : int, default=16000
        If the answers contain fewer numbers of a draw, its mechanism is applied again.
    error : float, default=0.005
        A sound question fails with at most this probability.
    noise : Noise
    """
    tapes: list[list[Drawn]] = []
    for turn in range(answers):
        try:
            tapes.append(record_draws(question, data_sets[turn // 2 % len(data_sets)], noise)[0])
        except Exception:  # a replay reports answers that fail
            break
    rng = np.random.default_rng(len(tapes))  # public: splits the atoms of discrete laws
    draws: dict[str, _Draw] = {}
    for tape in tapes:
        for drawn in tape[:MOST_DRAWS_TESTED]:
            call = drawn.call
            uniforms = uniform(call.mechanism, call.exact, drawn.output, rng)
            if uniforms is not None:
                draw = draws.setdefault(call.name, _Draw(call.name, call.mechanism, [], []))
                draw.exact.append(call.exact)
                draw.uniform.append(uniforms)
    tests = [test for draw in draws.values() for test in _test_law(draw, numbers, noise, rng)]
    for draw in draws.values():
        successive = zip(draw.uniform[::2], draw.uniform[1::2], strict=False)
        tests += _test_pairs(f"{draw.name}: the noise of successive answers is related", successive)
        adjacent = ((part[: len(part) - 1 : 2], part[1::2]) for part in draw.uniform)
        tests += _test_pairs(f"{draw.name}: the noise of numbers side by side is related", adjacent)
    for first, second in combinations(draws.values(), 2):
        pairs = zip(first.uniform, second.uniform, strict=False)
        tests += _test_pairs(f"{first.name} and {second.name}: their noise is related", pairs)
    # All tests of a question share its error
    share = error / max(1, len(tests))
    return LawResult(
        tests=tuple(
            LawTest(name=name, probability=probability, error=share, numbers=count)
            for name, probability, count in tests
        )
    )


@dataclass(frozen=True, eq=False)
class _Draw:
    """All uniform numbers of one draw, one array for each answer, with the exact values."""

    name: str
    mechanism: Mechanism
    exact: list[npt.NDArray[Any]]
    uniform: list[FloatArray]


def _test_law(
    draw: _Draw, numbers: int, noise: Noise, rng: np.random.Generator
) -> Iterator[tuple[str, float, int]]:
    """Test whether the numbers of a draw are uniform, at exact values of zero and elsewhere."""
    pairs = list(zip(draw.exact, draw.uniform, strict=True))
    missing = numbers - sum(len(uniforms) for uniforms in draw.uniform)
    if missing > 0 and isinstance(draw.mechanism, (Lattice, RandomisedResponse)):
        # Apply the mechanism itself again, on the same exact values, until there are enough numbers
        distinct = {exact.tobytes(): exact for exact in draw.exact if exact.size}
        for exact in distinct.values():
            times = math.ceil(missing / len(distinct) / exact.size)
            copies = np.tile(exact.ravel(), (times, 1))
            more = uniform(draw.mechanism, copies, draw.mechanism.draw(copies, noise), rng)
            assert more is not None
            pairs.append((copies, more))
    pools: dict[bool, list[FloatArray]] = defaultdict(list)
    for exact, uniforms in pairs:
        zero = np.zeros(uniforms.size, dtype=np.bool_)
        if exact.size == uniforms.size:
            zero = exact.ravel() == 0
        pools[True].append(uniforms[zero])
        pools[False].append(uniforms[~zero])
    for is_zero, parts in pools.items():
        pool = np.sort(np.concatenate(parts))
        n = len(pool)
        if n:
            # Bounds the probability of so large a gap to the uniform law (Dvoretzky-Kiefer-Wolfowitz)
            ranks = np.arange(n + 1) / n
            gap = float(max((ranks[1:] - pool).max(), (pool - ranks[:-1]).max()))
            where = " at an exact value of zero" if is_zero else ""
            name = f"{draw.name}: the noise{where} is not {draw.mechanism.family} as declared"
            yield name, min(1.0, 2 * math.exp(-2 * n * gap**2)), n


def _test_pairs(
    name: str, pairs: Iterable[tuple[FloatArray, FloatArray]]
) -> Iterator[tuple[str, float, int]]:
    """Compute how unlikely it is that so many, or so few, pairs lie on one side of 1/2."""
    from scipy.stats import binomtest

    sides = []
    for a, b in pairs:
        shared = min(len(a), len(b))
        sides.append((a[:shared] > 0.5) == (b[:shared] > 0.5))
    agreements = np.concatenate(sides) if sides else np.zeros(0, dtype=np.bool_)
    if len(agreements):
        yield name, float(binomtest(int(agreements.sum()), len(agreements), 0.5).pvalue), len(agreements)


@singledispatch
def uniform(
    mechanism: Mechanism,  # noqa: ARG001
    exact: npt.NDArray[Any],  # noqa: ARG001
    output: npt.NDArray[Any],  # noqa: ARG001
    rng: np.random.Generator,  # noqa: ARG001
) -> FloatArray | None:
    """Compute numbers that are independent and uniform if the mechanism draws its law; None if unknown.

    A mechanism of your own registers its rule: ``@uniform.register``.
    """
    return None


@uniform.register
def _(
    mechanism: Lattice, exact: npt.NDArray[Any], output: npt.NDArray[Any], rng: np.random.Generator
) -> FloatArray:
    steps = np.rint(output / mechanism.grid.step - exact).ravel()
    # Randomised within the atom of each step
    below, upto = (_cumulate_noise(mechanism, steps - 1), _cumulate_noise(mechanism, steps))
    return below + (upto - below) * rng.random(len(steps))


@uniform.register
def _(
    mechanism: RandomisedResponse, exact: npt.NDArray[Any], output: npt.NDArray[Any], rng: np.random.Generator
) -> FloatArray:
    truth = mechanism.channel()[0, 0]
    turn = (output.ravel() - exact.ravel()) % mechanism.n_classes  # 0: the truth; else which other class
    other = (1 - truth) / (mechanism.n_classes - 1)
    start = np.where(turn == 0, 0.0, truth + (turn - 1) * other)
    return np.asarray(start + np.where(turn == 0, truth, other) * rng.random(len(turn)))


@uniform.register
def _(
    mechanism: Exponential, exact: npt.NDArray[Any], output: npt.NDArray[Any], rng: np.random.Generator
) -> FloatArray:
    scores = mechanism.budget * np.asarray(exact, dtype=np.float64) / (2 * mechanism.sensitivity)
    chances = np.exp(scores - scores.max())
    edges = np.concatenate([[0.0], np.cumsum(chances / chances.sum())])
    at = int(output.ravel()[0])
    return np.array([edges[at] + (edges[at + 1] - edges[at]) * rng.random()])


@uniform.register
def _(
    mechanism: KNorm,
    exact: npt.NDArray[Any],
    output: npt.NDArray[Any],
    rng: np.random.Generator,  # noqa: ARG001
) -> FloatArray:
    from scipy.special import gammainc

    length = float(np.linalg.norm((output - exact).ravel())) * mechanism.budget / mechanism.sensitivity
    return np.array([gammainc(exact.size, length)])


@uniform.register
def _(
    mechanism: KNormCylinder,
    exact: npt.NDArray[Any],
    output: npt.NDArray[Any],
    rng: np.random.Generator,  # noqa: ARG001
) -> FloatArray:
    from scipy.special import gammainc

    moved = output - exact
    sums = np.linalg.norm(moved[:, 1:], axis=1) / mechanism.sensitivity
    return np.asarray(gammainc(moved.shape[1], mechanism.budget * np.maximum(np.abs(moved[:, 0]), sums)))


def _cumulate_noise(mechanism: Lattice, steps: FloatArray) -> FloatArray:
    """Compute P(noise <= steps), the noise in whole grid steps."""
    from scipy.special import ndtr

    scale = mechanism.steps
    if isinstance(mechanism, Laplace):
        decay = math.exp(-1 / scale)
        tail = np.exp(-np.abs(np.where(steps < 0, steps, steps + 1)) / scale) / (1 + decay)
        return np.asarray(np.where(steps < 0, tail, 1 - tail))
    assert isinstance(mechanism, Gaussian)
    if scale >= LARGE_STEPS:
        return np.asarray(ndtr((steps + 0.5) / scale))
    table, most = _gaussian_table(scale)
    return table[np.clip(steps, -most - 1, most).astype(np.int64) + most + 1]


@lru_cache(maxsize=32)
def _gaussian_table(scale: float) -> tuple[FloatArray, int]:
    """Tabulate the discrete Gaussian's distribution function from -most - 1, where it is 0, to most."""
    most = math.ceil(40 * scale)
    weights = np.exp(-np.square(np.arange(-most, most + 1) / scale) / 2)
    return np.concatenate([[0.0], np.cumsum(weights) / weights.sum()]), most
