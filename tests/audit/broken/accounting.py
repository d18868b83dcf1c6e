"""Plans that count too little."""

import numpy as np
from dp_accounting import GaussianDpEvent, SampledWithoutReplacementDpEvent

from privada.privacy import ApproxDP, Gaussian, Laplace, PureDP, RandomisedResponse
from privada.privacy.accounting import accountant
from privada.privacy.accounting.events import VisiblySampledDpEvent
from privada.privacy.mechanism import pure_event

from .exhibit import FINE, ONE_REPLACED, exhibit, features, labels, quarters, schema

ROUNDS = 4
SIZE, WIDTH, MU = 8, 9, 2.0
SAMPLED = SampledWithoutReplacementDpEvent(SIZE, 1, GaussianDpEvent(1 / MU))
SHOWN = VisiblySampledDpEvent(SIZE, 1, GaussianDpEvent(1 / MU))


@exhibit(
    draws={f"counts_{turn}": Laplace(sensitivity=1, scale=1.0) for turn in range(ROUNDS)},
    event=pure_event(1.0),
    epsilon=1.0,
)
def forgotten_repetition(question, rows, draw):
    """Four histograms are drawn and one is paid for."""
    return {name: draw(name, quarters(rows)) for name in question.draws}


@exhibit(
    draws={f"bit_{owner}": RandomisedResponse(budget=1.0, n_classes=2) for owner in range(6)},
    guarantee=ONE_REPLACED,
    event=pure_event(1.0),
    epsilon=1.0,
)
def bits_of_a_coalition(question, rows, draw):
    """Each of six owners sees one randomised bit of the same rank; together they see six."""
    above = np.array([int(features(rows)[:, 0].sum() > len(features(rows)) / 2)])
    return {name: draw(name, above) for name in question.draws}


@exhibit(
    draws={"rows": Gaussian.calibrated(sensitivity=1 + 0.01, mu=MU, grid=FINE)},
    guarantee=ApproxDP(epsilon=1.0, delta=0.0280948, relation="attribute"),  # by the false theorem
    event=SAMPLED,
    schema=schema(width=WIDTH, size=SIZE, classes=None),
    data={"data": np.random.default_rng(1).uniform(size=(SIZE, WIDTH))},
)
def sampling_that_hides_no_attribute(question, rows, draw):
    """A secret sample is said to amplify at attribute level; the row's other attributes show membership."""
    X = features(rows)
    picked = draw.noise.permutation(SIZE)[:1]
    return {"rows": draw("rows", FINE.truncate(X[picked]))}


@exhibit(
    draws={"rows": Gaussian.calibrated(sensitivity=1 + 0.01, mu=MU, grid=FINE)},
    guarantee=ApproxDP(epsilon=1.0, delta=accountant.delta(SHOWN, 1.0), relation="attribute"),
    event=SHOWN,
    schema=schema(width=WIDTH, size=SIZE, classes=None),
    data={"data": np.random.default_rng(1).uniform(size=(SIZE, WIDTH))},
    trials=24_000,
)
def sample_that_is_not_uniform(question, rows, draw):
    """The first rows of the file are picked more often than the price says."""
    X = features(rows)
    picked = [draw.noise.permutation(SIZE)[:3].min()]
    return {"rows": draw("rows", FINE.truncate(X[picked]))}


@exhibit(
    draws={"a": Laplace(sensitivity=1, scale=2.0), "b": Laplace(sensitivity=1, scale=2.0)},
    guarantee=PureDP(epsilon=1.0, relation="replace-one"),
)
def parallel_that_is_not(question, rows, draw):
    """Two tables of one class each are priced as if a replaced row touched one cell of them."""
    first = labels(rows) == 0
    counts = [np.bincount(labels(rows)[side], minlength=2) for side in (first, ~first)]
    return {"a": draw("a", counts[0]), "b": draw("b", 2 * counts[1])}


@exhibit(draws={name: Laplace(sensitivity=1, scale=3.0) for name in "abc"})
def order_of_draws(question, rows, draw):
    """The order of the draws depends on the rows."""
    names = "abc" if len(features(rows)) % 2 else "bac"
    return {name: draw(name, quarters(rows)) for name in names}
