"""The draws have the laws they state: exactly in the tables and the slow path, statistically as a whole.

Tests marked ``statistical`` compare p-values with `ALARM`. Where the words are seeded the
outcome is fixed, and a failure means that something changed; where they are not (SecureNoise,
OpenDP), a correct sampler fails once in a million runs of the test.
"""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from privada.exceptions import InputError, RehearsalWarning
from privada.privacy import noise, samplers
from privada.privacy.noise import Noise, Rehearsal, SecureNoise

ALARM = 1e-6
LAWS = ("laplace", "gaussian")
SCALES = (0.1, 0.3, 0.7, 1.0, 2.5, 10.0, 31.9, 32.0, 100.0, 1000.0, 12345.678, 1e6, 3e6, 1e12)
EPSILON, DIMENSION, RADIUS = 1.5, 5, 0.5


def seeded(seed: int) -> Rehearsal:
    with pytest.warns(RehearsalWarning):
        return Rehearsal(seed)


class Replay(Noise):
    """Gives the words it was told to give, then pseudo-random ones; counts what was asked."""

    private = False

    def __init__(self, *script: int) -> None:
        self.script = list(script)
        self._rest = np.random.Philox(0)

    def words(self, n: int) -> np.ndarray:
        words, self.script = self.script[:n], self.script[n:]
        return np.array(words + self._rest.random_raw(n - len(words)).tolist(), dtype=np.uint64)


def draw(source: Noise, law: str, scale: float, size):
    return getattr(source, f"discrete_{law}")(scale, size)


# --- what a law should be --------------------------------------------------------------


def tail_below(law: str, scale: float, edges: np.ndarray) -> np.ndarray:
    """P(X < edge) for integer edges, to about 1e-9."""
    if law == "laplace":
        q = np.exp(-1 / scale)
        upper = np.where(edges > 0, 1 - q ** np.abs(edges) / (1 + q), q ** (np.abs(edges) + 1) / (1 + q))
        return np.where(edges == 0, q / (1 + q), upper)
    if scale > 1e4:  # the midpoint rule is off by 1/(24 scale²)
        return stats.norm.cdf((edges - 0.5) / scale)
    reach = math.ceil(40 * scale) + 1
    x = np.arange(-reach, reach + 1)
    mass = np.exp(-(x**2) / (2 * scale**2))
    below = np.concatenate([[0.0], np.cumsum(mass)])
    return below[np.clip(edges + reach, 0, len(mass))] / mass.sum()


def bin_edges(law: str, scale: float, bins: int) -> np.ndarray:
    quantile = stats.laplace.ppf if law == "laplace" else stats.norm.ppf
    return np.unique(np.round(scale * quantile(np.linspace(0, 1, bins + 1)[1:-1])).astype(np.int64))


def goodness(x: np.ndarray, law: str, scale: float, bins: int = 400) -> float:
    """p-value of a chi-square test with at least about five expected draws a bin."""
    edges = bin_edges(law, scale, min(bins, x.size // 10))
    edges = np.unique(np.concatenate([edges, [0, 1]]))
    below = np.concatenate([[0.0], tail_below(law, scale, edges), [1.0]])
    expected = np.diff(below) * x.size
    counts = np.bincount(np.searchsorted(edges, x, side="right"), minlength=len(expected))
    rare = expected < 5
    if rare.any():
        expected = np.append(expected[~rare], max(expected[rare].sum(), 1e-9))
        counts = np.append(counts[~rare], counts[rare].sum())
        if expected[-1] < 5:  # too little for a chi-square: count it exactly, and leave it out
            assert stats.poisson.sf(counts[-1] - 1, expected[-1]) > ALARM
            expected, counts = expected[:-1], counts[:-1]
    if len(expected) < 2:
        return 1.0
    return float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(expected) - 1))


# --- the laws ----------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("law", LAWS)
def test_law(law, scale):
    x = draw(seeded(1), law, scale, 300_000)
    assert goodness(x, law, scale) > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
def test_every_integer_near_the_centre_has_its_share(law):
    x = draw(seeded(2), law, 100.0, 1_000_000)
    values = np.arange(-300, 302)
    share = np.diff(tail_below(law, 100.0, values)) * x.size
    counts = np.array([(x == v).sum() for v in values[:-1]])
    assert stats.chi2.sf(((counts - share) ** 2 / share).sum(), len(share)) > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.5, 2.0, 1000.0, 1e8, 2.0**50])
def test_moments_and_symmetry(law, scale):
    x = draw(seeded(3), law, scale, 400_000).astype(float)
    half = np.arange(1, math.ceil(40 * max(scale, 1)) + 1) if scale < 1e4 else None
    if half is None:
        variance = scale**2 * (2 if law == "laplace" else 1)
    else:
        mass = np.exp(-half / scale) if law == "laplace" else np.exp(-(half**2) / (2 * scale**2))
        variance = 2 * (half**2 * mass).sum() / (1 + 2 * mass.sum())
    # five standard errors: a false alarm in two million
    assert abs(x.mean()) < 5 * math.sqrt(variance / x.size)
    assert x.var() == pytest.approx(variance, abs=5 * (x**2).std() / math.sqrt(x.size))
    positive, negative = (x > 0).sum(), (x < 0).sum()
    assert abs(positive - negative) < 5 * math.sqrt(positive + negative)


@pytest.mark.statistical
@pytest.mark.parametrize(("law", "share"), [("laplace", math.tanh(0.5)), ("gaussian", 0.39894228)])
def test_zero_is_not_counted_twice(law, share):
    x = draw(seeded(4), law, 1.0, 400_000)
    assert (x == 0).mean() == pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) / x.size))


def opendp_mechanism(law, scale):
    """OpenDP's exact mechanism on vectors of 64-bit integers, as an independent witness.

    Its samplers were biased before 0.14.2 (opendp issue 2638).
    """
    import opendp.domains
    import opendp.measurements
    import opendp.metrics
    import opendp.mod

    opendp.mod.enable_features("contrib")
    domain = opendp.domains.vector_domain(opendp.domains.atom_domain(T="i64"))
    if law == "laplace":
        return opendp.measurements.make_laplace(domain, opendp.metrics.l1_distance(T="i64"), scale)
    return opendp.measurements.make_gaussian(domain, opendp.metrics.l2_distance(T="i64"), scale)


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [0.7, 40.0])
@pytest.mark.parametrize("law", LAWS)
def test_secure_noise_agrees_with_opendp(law, scale):
    ours = draw(SecureNoise(), law, scale, 200_000)
    theirs = np.array(opendp_mechanism(law, scale)([0] * 20_000))
    edges = bin_edges(law, scale, 60)
    table = np.array(
        [
            np.bincount(np.searchsorted(edges, x, side="right"), minlength=len(edges) + 1)
            for x in (ours, theirs)
        ]
    )
    assert stats.chi2_contingency(table[:, table.sum(axis=0) >= 50]).pvalue > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.7, 50.0, 1e9])
def test_the_exact_path_alone_has_the_law(law, scale):
    table = samplers.make_table(getattr(samplers, law)(scale))
    source = seeded(5)
    words = source.words(20_000).tolist()
    pairs = zip(words, source.words(20_000).tolist() if table.words_per_attempt == 2 else words, strict=True)
    results = [samplers.resolve(table, first, last, source.words) for first, last in pairs]
    assert goodness(np.array([x for x in results if x is not None]), law, scale, bins=60) > ALARM


# --- exactness ---------------------------------------------------------------------------


def true_shares(law: str, scale: float, strips: int) -> list[mpmath.mpf]:
    """Share of the envelope before strip 1, 2, ..., to 200 digits."""
    plan = getattr(samplers, law)(scale)
    width, b = mpmath.mpf(1 << plan.log_width), mpmath.mpf(scale)
    if law == "laplace":
        q = mpmath.exp(-width / b)
        return [1 - q**k for k in range(1, strips + 1)]
    reach = math.ceil(31 * scale / float(width)) + 3  # exp(-31²/2) < 10**-208
    sums = list(
        itertools.accumulate(mpmath.exp(-((k * width) ** 2) / (2 * b * b)) for k in range(max(reach, strips)))
    )
    return [part / sums[-1] for part in sums[:strips]]


@pytest.mark.parametrize("bits", [64, 192])
@pytest.mark.parametrize("scale", [0.1, 1.7, 31.9, 1000.0, 1e6 / 3])
@pytest.mark.parametrize("law", LAWS)
def test_thresholds_enclose_the_truth(law, scale, bits):
    lows, highs = samplers.cumulative(getattr(samplers, law)(scale), bits)
    with mpmath.workdps(200):
        for low, high, share in zip(lows, highs, true_shares(law, scale, len(lows)), strict=True):
            assert low <= share * 2**bits <= high
            assert high - low <= 2


def test_exponential_enclosures_hold_the_truth():
    rng = np.random.default_rng(0)
    with mpmath.workdps(200):
        for _ in range(400):
            t = Fraction(float(rng.exponential(10.0 ** rng.integers(-12, 4))))
            bits = int(rng.integers(4, 500))
            low, high = samplers.exp_bounds(t, bits)
            truth = mpmath.exp(-mpmath.mpf(t.numerator) / t.denominator) * 2**bits
            assert low <= truth <= high <= low + 2


def test_float_exponential_is_as_close_as_proved():
    t = np.concatenate([np.linspace(0, 64, 1500), np.geomspace(1e-12, 64, 500)])
    near = samplers.exp_near(t)
    with mpmath.workdps(40):
        errors = [abs(mpmath.exp(-mpmath.mpf(x)) - mpmath.mpf(y)) for x, y in zip(t, near, strict=True)]
    assert max(errors) < 2.0**-39 < samplers.MARGIN


@pytest.mark.parametrize("scale", [0.3, 20.0, 1000.0, 1e6, 1e10])
@pytest.mark.parametrize("law", LAWS)
def test_fast_and_exact_attempts_agree(law, scale):
    table = samplers.make_table(getattr(samplers, law)(scale))
    source = seeded(6)
    first, last = source.words(4000), source.words(4000)
    first[::4] |= np.uint64(0xFFF) << np.uint64(52)  # far strips
    first[1::4] |= np.uint64(0x3FF) << np.uint64(64 - table.strip_bits - 10)  # late accept bits
    last = last if table.words_per_attempt == 2 else first
    values, succeeded, unsettled = samplers.attempt(table, first, last)
    assert unsettled.size < 100
    for i in np.setdiff1d(np.arange(4000), unsettled):
        assert samplers.resolve(table, int(first[i]), int(last[i]), source.words) == (
            values[i] if succeeded[i] else None
        )


@pytest.mark.parametrize("scale", [0.8, 1000.0, 1e7])
@pytest.mark.parametrize("law", LAWS)
def test_a_word_on_a_threshold_is_settled_by_further_bits(law, scale):
    table = samplers.make_table(getattr(samplers, law)(scale))
    with mpmath.workdps(200):
        for k, share in enumerate(true_shares(law, scale, min(len(table.lows) - 1, 12))):
            bits = int(mpmath.floor(share * 2 ** (table.strip_bits + 128)))
            prefix, second, third = bits >> 128, (bits >> 64) % 2**64, bits % 2**64
            word = prefix << (64 - table.strip_bits)  # first place of the strip, accepted at once
            words = np.array([word], dtype=np.uint64)
            assert samplers.attempt(table, words, words * np.uint64(0))[2].tolist() == [0]
            before, after = k << table.law.log_width, (k + 1) << table.law.log_width
            for more, expected in (
                ([second - 1], before),
                ([second + 1], after),
                ([second, third - 1], before),
                ([second, third + 1], after),
            ):
                source = Replay(*more)
                assert samplers.resolve(table, word, 0, source.words) == expected
                assert source.script == []


@pytest.mark.parametrize("law", LAWS)
def test_accept_bits_on_the_threshold_are_settled_by_further_bits(law):
    table = samplers.make_table(getattr(samplers, law)(1000.0))
    offset = 17
    strip = 9
    prefix = int(table.lows[strip - 1] + table.highs[strip]) // 2
    rise = table.law.rise(strip << table.law.log_width, offset)
    with mpmath.workdps(200):
        chance = mpmath.exp(-mpmath.mpf(rise.numerator) / rise.denominator)
        bits = int(mpmath.floor(chance * 2 ** (table.accept_bits + 64)))
    field, more = bits >> 64, bits % 2**64
    word = prefix << (64 - table.strip_bits) | field << table.low_bits | offset << 1
    words = np.array([word], dtype=np.uint64)
    assert samplers.attempt(table, words, words)[2].tolist() == [0]
    value = (strip << table.law.log_width) + offset
    middle = 1 << 63  # settles the strip, which is drawn first
    assert samplers.resolve(table, word, word, Replay(middle, more - 1).words) == value
    assert samplers.resolve(table, word | 1, word | 1, Replay(middle, more - 1).words) == -value
    assert samplers.resolve(table, word, word, Replay(middle, more + 1).words) is None


@pytest.mark.parametrize("law", LAWS)
def test_the_tail_beyond_the_table_is_reached(law):
    table = samplers.make_table(getattr(samplers, law)(1000.0))
    word = (2**table.strip_bits - 1) << (64 - table.strip_bits)
    words = np.array([word], dtype=np.uint64)
    assert samplers.attempt(table, words, words)[2].tolist() == [0]
    far = samplers.resolve(table, word, 0, Replay(2**64 - 2**20).words)
    share = 1 - Fraction(2**20, 2 ** (64 + table.strip_bits))
    with mpmath.workdps(200):
        strips = true_shares(law, 1000.0, far // 2**table.law.log_width + 1)
        assert strips[-2] <= mpmath.mpf(share.numerator) / share.denominator < strips[-1]
    assert far >= len(table.lows) << table.law.log_width


def test_an_unsettled_attempt_inside_a_draw_is_resolved():
    table = samplers.make_table(samplers.gaussian(1000.0))
    word = int(table.lows[4]) << (64 - table.strip_bits)
    low, high = Replay(), Replay()
    attempts = 3 * 17 // 16 + 16
    filler = [0] * (attempts - 1)  # zeros: strip 0, place 0, accepted
    low.script, high.script = [word, *filler, 0], [word, *filler, 2**64 - 1]
    assert low.discrete_gaussian(1000.0, 3)[0] == 4 << table.law.log_width
    assert high.discrete_gaussian(1000.0, 3)[0] == 5 << table.law.log_width


def test_a_negative_zero_is_refused():
    assert Replay(1, 0).discrete_gaussian(5.0, 1)[0] == 0
    table = samplers.make_table(samplers.gaussian(5.0))
    assert samplers.resolve(table, 1, 1, Replay().words) is None
    assert samplers.resolve(table, 0, 0, Replay().words) == 0


def test_scales_are_exact_rationals():
    assert samplers.laplace(0.1).rate == 1 / Fraction(0.1) != 10
    assert samplers.gaussian(0.1).rate == 1 / (2 * Fraction(0.1) ** 2)


@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1e-3])
@pytest.mark.parametrize("law", LAWS)
def test_tiny_scales_give_zero(law, scale):
    assert not draw(seeded(7), law, scale, 5000).any()


# --- the other draws ---------------------------------------------------------------------


def test_uniform_is_open_and_symmetric():
    ends = Replay(0, 2**64 - 1).uniform(2)
    assert ends.tolist() == [2.0**-53, 1 - 2.0**-53]
    assert stats.kstest(seeded(8).uniform((100, 100)).ravel(), "uniform").pvalue > ALARM


def within(values: np.ndarray, expected: float) -> bool:
    """Whether a mean is within five standard errors (a false alarm in two million)."""
    return abs(values.mean() - expected) < 5 * values.std() / math.sqrt(len(values))


@pytest.mark.statistical
def test_cylinder_has_its_moments_and_radius():
    count, total = seeded(9).k_norm_cylinder(
        dimension=DIMENSION, radius=RADIUS, epsilon=EPSILON, size=100_000
    )
    d, square = DIMENSION, (total**2).sum(axis=1)
    assert within(count**2, (d + 2) * (d + 3) / (3 * EPSILON**2))
    assert within(square, d * (d + 3) * RADIUS**2 / EPSILON**2)
    assert within(count, 0)
    assert all(within(column, 0) for column in total.T)
    gauge = np.maximum(abs(count), np.sqrt(square) / RADIUS)
    assert stats.kstest(gauge, stats.gamma(d + 1, scale=1 / EPSILON).cdf).pvalue > ALARM


@pytest.mark.statistical
def test_cylinder_loss_is_at_most_epsilon():
    source = seeded(10)
    count, total = source.k_norm_cylinder(dimension=DIMENSION, radius=RADIUS, epsilon=EPSILON, size=100_000)
    move = RADIUS * source._directions(DIMENSION, 100_000)
    gauge = np.maximum(abs(count), np.linalg.norm(total, axis=1) / RADIUS)
    moved = np.maximum(abs(count + 1), np.linalg.norm(total + move, axis=1) / RADIUS)
    loss = EPSILON * (moved - gauge)
    assert 0.99 * EPSILON < abs(loss).max() <= EPSILON * (1 + 1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize("dimension", [1, 7])
def test_ball_has_its_law(dimension):
    z = seeded(11).k_norm_ball(dimension=dimension, radius=2.0, epsilon=EPSILON, size=60_000)
    assert z.shape == (60_000, dimension)
    law = stats.gamma(dimension, scale=2.0 / EPSILON)
    assert stats.kstest(np.linalg.norm(z, axis=1), law.cdf).pvalue > ALARM
    assert all(within(column, 0) for column in z.T)
    assert within(z[:, 0] ** 2, law.moment(2) / dimension)


@pytest.mark.statistical
def test_randomised_response_confuses_as_it_says():
    q, n = 4, 400_000
    true = np.arange(n) % q
    replies = seeded(12).randomised_response(true, n_classes=q, epsilon=EPSILON)
    share = np.array([np.bincount(replies[true == c], minlength=q) for c in range(q)]) / (n / q)
    keep = math.exp(EPSILON) / (math.exp(EPSILON) + q - 1)
    expected = np.where(np.eye(q, dtype=bool), keep, (1 - keep) / (q - 1))
    assert (abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / (n / q))).all()
    assert keep / expected[0, 1] == pytest.approx(math.exp(EPSILON))


def test_randomised_response_is_settled_by_further_bits():
    q = 3
    with mpmath.workdps(100):
        keep = 1 / (1 + (q - 1) * mpmath.exp(-mpmath.mpf(EPSILON)))
        word, more = divmod(int(mpmath.floor(keep * 2**128)), 2**64)
    for low_bits, is_kept in ((more - 1, True), (more + 1, False)):
        reply = Replay(word, low_bits, 1).randomised_response(np.array([2]), n_classes=q, epsilon=EPSILON)
        assert reply.tolist() == ([2] if is_kept else [1])


def test_randomised_response_keeps_shape_and_bounds():
    codes = np.array([[0, 1], [1, 0]])
    assert SecureNoise().randomised_response(codes, n_classes=2, epsilon=700.0).tolist() == codes.tolist()
    assert SecureNoise().randomised_response(np.empty(0, dtype=int), n_classes=2, epsilon=1.0).shape == (0,)


@pytest.mark.parametrize("codes", [[0, 3], [-1, 0], [0.0, 1.0], [True, False]])
def test_randomised_response_never_shows_a_code(codes):
    with pytest.raises(InputError, match=r"whole numbers in 0 \.\. 2; some are not") as caught:
        SecureNoise().randomised_response(np.array(codes), n_classes=3, epsilon=1.0)
    assert "-1" not in str(caught.value)


@pytest.mark.statistical
def test_exponential_has_its_probabilities():
    scores = np.array([3.0, 1.0, 2.5, -40.0, 3.0])
    source, n = seeded(13), 6000
    counts = np.bincount(
        [source.exponential(scores, epsilon=EPSILON, sensitivity=0.7) for _ in range(n)], minlength=5
    )
    weight = np.exp(EPSILON * scores / (2 * 0.7))
    expected = n * weight / weight.sum()
    assert counts[3] == 0
    common = expected > 5
    assert stats.chisquare(counts[common], expected[common] * n / expected[common].sum()).pvalue > ALARM


def test_exponential_is_settled_by_further_bits():
    scores, epsilon, sensitivity = np.array([1.0, 0.0]), 1.0, 0.5
    _, most = samplers.on_grid(scores, sensitivity)
    with mpmath.workdps(100):
        chance = mpmath.exp(-mpmath.mpf(epsilon) * 2**31 / (2 * most))
        word, more = divmod(int(mpmath.floor(chance * 2**128)), 2**64)
    picks, coins = [1] + [0] * 63, [word] + [0] * 63  # the worse candidate first, then the better
    for low_bits, chosen in ((more - 1, 1), (more + 1, 0)):
        source = Replay(*picks, *coins, low_bits)
        assert source.exponential(scores, epsilon=epsilon, sensitivity=sensitivity) == chosen


def test_exponential_tells_near_scores_apart_at_any_height():
    source = seeded(14)
    for offset in (0.0, 1e12, -1e15):
        scores = offset + np.array([0.0, 100.0, 0.0])
        assert all(source.exponential(scores, epsilon=2.0, sensitivity=1.0) == 1 for _ in range(50))


def test_exponential_finds_a_needle_and_extreme_parameters():
    scores = np.zeros(50_000)
    scores[12_345] = 1000.0
    assert SecureNoise().exponential(scores, epsilon=1.0, sensitivity=1.0) == 12_345
    assert SecureNoise().exponential([0.0, 1.0], epsilon=1e308, sensitivity=1e-300) == 1
    assert SecureNoise().exponential([0.0, 1e308], epsilon=1.0, sensitivity=1e-300) == 1
    assert SecureNoise().exponential([5.0], epsilon=1e-9, sensitivity=1e300) == 0


def test_scores_on_the_grid_keep_their_sensitivity():
    rng = np.random.default_rng(15)
    for sensitivity in (1.0, 0.7, 3e-290, 1e200):
        step = Fraction(2) ** (math.frexp(sensitivity)[1] - 31)
        a = rng.normal(size=2000) * sensitivity * 10.0 ** rng.integers(-8, 4, size=2000)
        b = a + sensitivity * rng.choice([-1, 1, 0.5], size=2000)
        a, b = (np.append(x, [-5e-324, sensitivity]) for x in (a, b))
        allowed = Fraction(sensitivity) + step
        (first, most), (right, _) = (samplers.on_grid(x, sensitivity) for x in (a, b))
        for x, y, i, j in zip(a, b, first, right, strict=True):
            assert int(i) == math.floor(Fraction(x) / step)
            if abs(Fraction(x) - Fraction(y)) <= allowed:
                assert abs(int(i) - int(j)) <= most
        assert most * step <= Fraction(sensitivity) + 2 * step


@pytest.mark.parametrize("scores", [[], [[1.0]], [1.0, float("nan")], [float("inf"), 2.0]])
def test_exponential_refuses_unusable_scores(scores):
    with pytest.raises(InputError, match="scores to be a non-empty row of finite numbers"):
        SecureNoise().exponential(scores, epsilon=1.0, sensitivity=1.0)


@pytest.mark.statistical
def test_permutations_are_equally_likely():
    source = seeded(16)
    counts = np.zeros(24)
    index = {p: i for i, p in enumerate(itertools.permutations(range(4)))}
    for _ in range(4800):
        counts[index[tuple(source.permutation(4).tolist())]] += 1
    assert stats.chisquare(counts).pvalue > ALARM


def test_permutation_redraws_ties_and_takes_nothing():
    source = Replay(5, 5, 7, 9, 1, 4)
    assert source.permutation(3).tolist() == [1, 2, 0]
    assert source.script == []
    assert SecureNoise().permutation(0).tolist() == []
    assert sorted(SecureNoise().permutation(1000).tolist()) == list(range(1000))


def test_integers_below_redraws_the_uneven_rest():
    assert samplers.integers_below(3, 2, Replay(2**64 - 1, 4, 2**64 - 1, 5).words).tolist() == [2, 1]
    assert samplers.integers_below(1, 2, Replay(2**64 - 1, 4).words).tolist() == [0, 0]
    assert samplers.integers_below(2**63, 1, Replay(2**63 + 6).words).tolist() == [6]


# --- sources -----------------------------------------------------------------------------


def test_rehearsal_repeats_itself_and_seeds_differ():
    first, again, other = seeded(1), seeded(1), seeded(2)
    for law, size in itertools.product(LAWS, (5, 5000)):
        x = draw(first, law, 30.0, size)
        assert (x == draw(again, law, 30.0, size)).all()
        assert (x != draw(other, law, 30.0, size)).any()
    assert (first.words(4) == again.words(4)).all()
    assert repr(first) == "Rehearsal(1)"
    assert not first.private


def test_rehearsal_warns_where_it_is_made():
    with pytest.warns(RehearsalWarning, match="seeded with 3; what comes out is not private") as caught:
        Rehearsal(3)
    assert [w.filename for w in caught] == [__file__]


def test_secure_noise_never_repeats():
    source = SecureNoise()
    assert source.private
    words = np.concatenate([source.words(1000) for _ in range(20)])
    assert len(np.unique(words)) == len(words)
    for size in (50, 5000):
        assert (source.discrete_gaussian(1e9, size) != source.discrete_gaussian(1e9, size)).all()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("size", [1, 3, 1000, 5000])
def test_every_secure_draw_is_made_of_the_operating_systems_words(law, size, monkeypatch):
    """Small draws came from OpenDP's own generator (OpenSSL's), against what the module says."""
    requests = []
    truly = noise.os.urandom
    monkeypatch.setattr(noise.os, "urandom", lambda n: requests.append(n) or truly(n))
    draw(SecureNoise(), law, 2.5, size)
    assert sum(requests) >= 8 * size
    monkeypatch.setattr(noise.os, "urandom", lambda n: np.random.Philox(5).random_raw(n // 8).tobytes())
    one, two = (draw(SecureNoise(), law, 2.5, size).tolist() for _ in range(2))
    assert one == two, "nothing but these words decides the noise"


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("size", [0, 3, (2, 0), (4, 5), (), np.int64(3), 2000])
def test_shapes(law, size):
    x = draw(SecureNoise(), law, 3.0, size)
    assert x.dtype == np.int64
    assert x.shape == (size if isinstance(size, tuple) else (size,))


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, "2", True, None])
def test_unusable_scales_are_named(scale):
    with pytest.raises(InputError, match=r"Expected sigma > 0 and finite, got "):
        SecureNoise().discrete_gaussian(scale, 1)
    with pytest.raises(InputError, match=r"Expected scale > 0 and finite, got "):
        SecureNoise().discrete_laplace(scale, 1)


@pytest.mark.parametrize("law", LAWS)
def test_the_largest_scale_is_named(law):
    with pytest.raises(
        InputError, match=r"<= 1125899906842624 \(2\*\*50\) grid steps, got 2000000000000000\.0"
    ):
        draw(SecureNoise(), law, 2e15, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.discrete_laplace(1.0, -1),
        lambda s: s.discrete_laplace(1.0, (2, 1.5)),
        lambda s: s.permutation(-1),
        lambda s: s.k_norm_ball(dimension=0, radius=1.0, epsilon=1.0, size=1),
        lambda s: s.k_norm_ball(dimension=1, radius=-1.0, epsilon=1.0, size=1),
        lambda s: s.k_norm_cylinder(dimension=1, radius=1.0, epsilon=0.0, size=1),
        lambda s: s.randomised_response(np.array([0]), n_classes=1, epsilon=1.0),
        lambda s: s.randomised_response(np.array([0]), n_classes=2, epsilon=0.0),
        lambda s: s.exponential([1.0], epsilon=-1.0, sensitivity=1.0),
        lambda s: s.exponential([1.0], epsilon=1.0, sensitivity=0.0),
        lambda _: Rehearsal(-1),
    ],
)
def test_unusable_parameters_are_refused(call):
    with pytest.raises(InputError):
        call(SecureNoise())


def test_import_is_light():
    code = (
        "import sys, privada.privacy.noise as n;"
        "heavy = {'numba', 'opendp', 'scipy', 'mpmath', 'pandas'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_drawing_needs_no_other_sampler():
    code = (
        "import sys; from privada.privacy.noise import SecureNoise;"
        "SecureNoise().discrete_laplace(1.0, 3);"
        "assert not {'opendp', 'numba', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
