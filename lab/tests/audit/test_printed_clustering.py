"""The printed mechanisms of source-target clustering are caught by the auditors.

Noise is seeded. False alarm of a black-box audit: 1e-2 over seeds.
"""

import numpy as np
import pytest

from privada.audit import audit_mechanism, audit_question, replay
from privada.audit.transcript import coupled
from privada.methods.clustering import NeighbourAverages
from privada.parties import Rows, Schema
from privada.privacy import ZCDP, PureDP
from privada_lab.papers.clustering import paper_nas, paper_nna

SCHEMA = Schema.of_numbers(bounds=(-0.5, 0.5), width=2, size=60)
TRANSLATED = np.array([[99.5], [100.5]])  # of diameter 1, as the paper assumes, and far from 0


def seeded(run, **settings):
    """The printed algorithm with another seed for each call."""
    seeds = iter(range(10**6))
    return lambda source: run(source, insecure_seed=next(seeds), **settings)


@pytest.mark.statistical
@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"rho": 0.5}], ids=str)
def test_the_printed_nna_is_caught_on_the_translated_domain(budget):
    """privacy.md, section 1 (b): S = {} against {100.5}; claimed ε = 1, true 50.75."""
    printed = seeded(paper_nna, target=TRANSLATED, gamma=0.05, **budget)
    claimed = (PureDP if "epsilon" in budget else ZCDP)(relation="add/remove", **budget)
    nothing, one = np.zeros((0, 1)), TRANSLATED[1:]
    result = audit_mechanism(lambda S: printed(S).sums, nothing, one, claimed=claimed, trials=1000)
    assert not result.passed
    assert result.epsilon_lower > 3


@pytest.mark.statistical
def test_the_printed_zero_padding_of_nas_is_caught():
    """A source of fewer than t rows over t: one row more moves the sum by its norm, 100 and not 1."""
    printed = seeded(paper_nas, target=TRANSLATED, t=5, short="zero", epsilon=1.0)
    nothing, one = np.zeros((0, 1)), TRANSLATED[1:]
    claimed = PureDP(epsilon=1, relation="add/remove")
    result = audit_mechanism(lambda S: printed(S).points, nothing, one, claimed=claimed, trials=1000)
    assert not result.passed
    assert result.epsilon_lower > 3


@pytest.mark.statistical
def test_the_printed_average_of_fewer_than_t_rows_is_caught():
    """privacy.md, section 1b (b): two rows for t = 150; it moves by half the diameter, not by 1/t."""
    target = np.array([[0.0, 0.0]])
    one, two = np.array([[-0.5, 0.0]]), np.array([[-0.5, 0.0], [0.5, 0.0]])
    claimed = PureDP(epsilon=1, relation="add/remove")
    printed = seeded(paper_nas, target=target, t=150, short="average", epsilon=1.0)
    result = audit_mechanism(lambda S: printed(S).points, one, two, claimed=claimed, trials=1000)
    assert not result.passed
    assert result.epsilon_lower > 3
    sound = NeighbourAverages(targets=target, t=150, radius=0.5, guarantee=claimed)
    rows = [Rows(side, schema=SCHEMA) for side in (one, two)]
    assert replay(sound, *rows).passed
    assert audit_question(sound, *rows, noise=coupled(0)).passed
