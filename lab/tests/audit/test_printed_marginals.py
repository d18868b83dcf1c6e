"""The printed oracle of learning through marginals, which claims 1/λ for each bin, is caught by the auditors.

Noise is seeded. False alarm of a black-box audit: 1e-2 over seeds.
"""

import math

import numpy as np
import pytest

from privada.audit import audit_mechanism, audit_samples
from privada.methods.cells import Bins
from privada.methods.marginals import Constant
from privada.privacy import PureDP
from privada_lab.papers.marginals import paper_error_marginals, paper_marginals, true_epsilon

ONE_BIN = (Bins(feature=0, edges=np.array([0.5])),)


def printed(**settings):
    """The printed ratio of the first bin, with another seed for each call."""
    seeds = iter(range(10**6))

    def answer(rows):
        X, y = rows
        found = paper_error_marginals(
            X, y, tables=ONE_BIN, hypothesis=Constant(code=1), insecure_seed=next(seeds), **settings
        )
        return found[:1]

    return answer


def some(errors, rows):
    """That many rows in the first bin, that many of them errors of the constant 1."""
    return np.full((rows, 1), 0.2), np.repeat([0, 1], [errors, rows - errors])


@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore:The printed EXPRIL")
def test_the_printed_oracle_is_caught_with_one_row_in_its_bin():
    """privacy.md, section 2 (b): N = 1 to 2 at λ = 66; claimed 0.0152, true 0.7007."""
    claimed = PureDP(epsilon=1 / 66, relation="add/remove")
    constant, many = Constant(code=1), ONE_BIN * 60_000  # as many independent answers for one bin

    def inside(rows, seed):  # nearly every ratio is clipped; the rest tells
        X, y = rows
        ratio = paper_error_marginals(X, y, tables=many, hypothesis=constant, scale=66.0, insecure_seed=seed)[
            ::2
        ]
        return ((ratio > 0) & (ratio < 1)).astype(float)

    result = audit_samples(inside(some(1, 1), 0), inside(some(1, 2), 1), claimed=claimed, resolution=1.0)
    assert not result.passed
    assert 1 / 66 < result.epsilon_lower < true_epsilon(66.0)


@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore:The printed EXPRIL")
@pytest.mark.parametrize("empty", [0.0, 0.5], ids=["zero", "half"])
def test_the_printed_oracle_is_caught_on_an_empty_bin(empty):
    claimed = PureDP(epsilon=1 / 66, relation="add/remove")
    answer = printed(scale=66.0, empty=empty)
    result = audit_mechanism(answer, some(0, 0), some(0, 1), claimed=claimed, trials=2000)
    assert not result.passed
    assert result.epsilon_lower > 0.5


@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore:The printed EXPRIL")
def test_discrete_noise_over_exact_denominators_shows_the_number_of_rows():
    """Answers are multiples of 1/N: whether they are multiples of 1/374 tells 373 rows from 374."""
    claimed = PureDP(epsilon=1 / 66, relation="add/remove")
    answer = printed(scale=66.0, discrete=True)

    def whole(rows):
        ratio = answer(rows)
        return np.array([float(abs(ratio[0] * 373 - round(ratio[0] * 373)) < 1e-9)])

    result = audit_mechanism(whole, some(100, 373), some(100, 374), claimed=claimed, trials=1500)
    assert not result.passed
    assert result.epsilon_lower > 0.9


def test_the_printed_lemma_is_false_by_its_own_density():
    """log f over bins of N and N + 1 rows: the largest loss is log 2 + 1/(2 λ), not 1/λ."""
    scale = 66.0

    def density(c, errors, rows):
        return rows / (2 * scale) * np.exp(-np.abs(c * rows - errors) / scale)

    c = np.linspace(0, 1, 2001)[1:-1]
    worst = max(
        np.abs(np.log(density(c, u, n + 1) / density(c, u, n))).max()
        for n in range(1, 51)
        for u in range(n + 1)
    )
    assert worst == pytest.approx(true_epsilon(scale), abs=1e-3)
    assert worst > 46 / scale
    assert true_epsilon(scale) == pytest.approx(math.log(2) + 1 / 132)


def test_printed_marginals_need_a_rehearsal_too():
    with pytest.raises(ValueError, match="insecure_seed"):
        paper_marginals(np.zeros((3, 1)), tables=ONE_BIN, scale=1.0)
