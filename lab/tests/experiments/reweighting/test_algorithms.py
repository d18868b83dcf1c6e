"""The paper's own algorithms on a pair, through an owner and as printed."""

import numpy as np
import pytest

from privada.methods.reweighting import NonconvexAdaptation, Penalties
from privada.privacy import ApproxDP
from privada_lab.experiments.reweighting import algorithms


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    monkeypatch.setattr(algorithms, "STEPS", 20)


@pytest.mark.parametrize("alpha", [algorithms.ALPHA, 1.0])
def test_both_forms_of_the_convex_algorithm_learn_something(pair, alpha):
    constant = float(np.mean(pair.test.y**2))
    assert algorithms.sound(pair, 50.0, alpha=alpha) < 2 * constant
    printed = [algorithms.printed(pair, 50.0, alpha=alpha, seed=seed) for seed in (1, 1)]
    assert printed[0] == printed[1]
    assert np.isfinite(printed[0])


def test_with_alpha_1_the_printed_algorithm_does_not_depend_on_private_labels_but_by_the_discrepancy(pair):
    few, more = (algorithms.printed(pair, epsilon, alpha=1.0) for epsilon in (0.5, 500.0))
    assert few == more


def test_both_forms_of_the_nonconvex_algorithm_classify(two_classes):
    for wrong in (algorithms.sound(two_classes, 50.0), algorithms.printed(two_classes, 50.0)):
        assert 0 <= wrong < 0.5


def test_extensions_use_no_labels_or_few(pair):
    assert algorithms.unsupervised(pair, 4.0) < 1
    assert algorithms.weakly_supervised(pair, 4.0, labels=100) < 1


def test_unsupervised_adaptation_never_looks_at_a_private_label(pair, monkeypatch):
    from dataclasses import replace

    other = replace(pair, train=replace(pair.train, y=-pair.train.y))
    monkeypatch.setattr(algorithms, "_answer", lambda owner, question: {"discrepancy": np.array([0.3])})
    assert algorithms.unsupervised(pair, 4.0) == algorithms.unsupervised(other, 4.0)


def test_the_step_of_algorithm_2_is_one_over_the_smoothness():
    question = NonconvexAdaptation(
        size=500,
        source=np.eye(3),
        source_labels=np.array([0.0, 1.0, 1.0]),
        penalties=Penalties(alpha=0.1),
        A=5.0,
        steps=50,
        guarantee=ApproxDP(epsilon=100, delta=1e-5, relation="replace-one"),
    )
    scale = algorithms.step_for_smoothness(question)
    line_4 = question.A / np.sqrt(question.steps)  # with hardly any noise
    assert scale * line_4 == pytest.approx(4.0, rel=0.05)  # 1/β̄, β̄ about r²/4
