"""The row of evaluation in ``privada demo``: how well a model does at a clinic that shares no row."""

from __future__ import annotations

import numpy as np

from privada.methods.evaluation.learner.results import Classification
from privada.methods.evaluation.method import Evaluation
from privada.methods.example import DemoRow
from privada.methods.hypotheses.forms import linear
from privada.methods.method import Public
from privada.parties.owner import Owner
from privada.parties.running import run
from privada.parties.schema import Category, Schema
from privada.privacy.guarantee import PureDP
from privada.privacy.relation import Relation

EPSILON = 1.0
BUDGET = 4.0


def demo(seed: int) -> DemoRow:
    """Tell the accuracy of a digit reader on digits of which some are darker than those it was trained on.

    Only public randomness is seeded (split and shift); the noise is drawn from the operating system.
    """
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    X, y = load_digits(return_X_y=True)
    X = X / 16
    order = np.random.default_rng(seed).permutation(len(X))
    X, y, half = X[order], (y[order] >= 5).astype(int), len(X) // 2
    model = LogisticRegression(max_iter=200).fit(X[:half], y[:half])
    elsewhere = np.clip(1.8 * X[half:], 0, 1)
    owner = Owner(
        elsewhere,
        y=y[half:],
        schema=Schema.of_numbers(bounds=(0, 1), width=64, label=Category(name="large", values=(0, 1))),
        dataset="digits",
        budget=PureDP(epsilon=BUDGET, relation=Relation.ADD_REMOVE),
    )
    method = Evaluation(model=linear(model.coef_.T, model.intercept_), bins=1)
    guarantee = PureDP(epsilon=EPSILON, relation=Relation.ADD_REMOVE)
    result = run(method.prepare(Public(), {"archive": owner.schema}, guarantee), {"archive": owner})
    assert isinstance(result, Classification)
    true = 100 * model.score(elsewhere, y[half:])
    return DemoRow(
        method="evaluation",
        title="tell how well a reader of digits does on digits that nobody may see",
        holders="An archive holds labelled digits of another scanner; the learner holds a model.",
        guarantee=result.release.guarantee,
        score="100 less the error (points) of the stated accuracy",
        without=float(100 - abs(100 * model.score(X[:half], y[:half]) - true)),
        ours=float(100 - abs(100 * result.accuracy.value - true)),
        clear=100.0,
        ledger=owner.ledger.export(),
        stamps=result.release.stamps,
    )


__all__ = ["demo"]
