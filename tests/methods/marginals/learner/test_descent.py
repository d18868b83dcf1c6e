"""The default descent: sized by public facts, the same on the wire, refused before anything is asked."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.marginals import Public, ask_descent, learn_number
from privada.methods.marginals.learner.classifiers import of_classifier
from privada.methods.marginals.learner.descent import DescentModel
from privada.privacy import ApproxDP, PureDP

LOOSE = ApproxDP(epsilon=1, delta=1e-5, relation="replace-one")
SOURCE = np.random.default_rng(0).normal(size=(300, 4)) * [1.0, 1e3, 1e-3, 0.0]
PUBLIC = Public(source=SOURCE, classes=(0, 1, 2))


def test_more_rows_for_the_noise_take_longer_steps_up_to_the_curvature():
    steps = [ask_descent(PUBLIC, guarantee=LOOSE, size=size).step_size for size in (10, 100, 10**6, 10**7)]
    assert steps[0] < steps[1] < steps[2] == steps[3]


def test_it_does_not_depend_on_units_or_a_constant_column():
    other = Public(source=SOURCE * 7.0, classes=PUBLIC.classes)
    one, two = (ask_descent(public, guarantee=LOOSE, size=300) for public in (PUBLIC, other))
    assert one.step_size == pytest.approx(two.step_size)
    assert one.limit == pytest.approx(two.limit)
    assert one.spread[3] * one.limit == pytest.approx(3.0)


def test_the_model_says_the_same_on_the_wire():
    weights = np.random.default_rng(1).normal(size=(5, 3))
    model = DescentModel(weights, 2.0)
    rows = 4 * SOURCE  # beyond the limit, too
    made = of_classifier(model, mean=PUBLIC.mean, scale=PUBLIC.scale, n_classes=3, rows=SOURCE)
    assert np.array_equal(made.codes(rows), model.predict((rows - PUBLIC.mean) / PUBLIC.scale))


def test_both_questions_of_a_number_cost_the_guarantee_together():
    public = Public(source=SOURCE, classes=())
    asks = learn_number("o", public, bounds=(0.0, 9.0), guarantee=LOOSE, size=300).asks
    spent = np.hypot(*(ask.question.guarantee.gaussian_mu() for ask in asks))
    assert spent <= LOOSE.gaussian_mu()
    assert spent == pytest.approx(LOOSE.gaussian_mu(), rel=1e-6)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"guarantee": PureDP(epsilon=1, relation="add/remove")}, r"\(epsilon, delta\) or rho"),
        ({"bounds": (1.0, 1.0)}, "Expected bounds"),
        ({"size": 0}, "Expected size"),
    ],
    ids=["pure", "bounds", "size"],
)
def test_what_cannot_be_is_refused_before_anything_is_asked(more, message):
    with pytest.raises(InputError, match=message):
        learn_number("o", PUBLIC, **{"bounds": (0.0, 9.0), "guarantee": LOOSE, "size": 300} | more)
