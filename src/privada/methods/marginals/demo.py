"""The row of marginals in ``privada demo``: tumours whose diagnoses stay at their clinic."""

from __future__ import annotations

from typing import Any

import numpy as np

from privada._arrays import FloatArray
from privada.methods.example import DemoRow
from privada.methods.marginals.learner.fitted import MarginalFit
from privada.methods.marginals.learner.learn import Public, default_cells, learn_cells
from privada.methods.pictures import Curve, Line, Picture
from privada.methods.scaling import PublicScale
from privada.parties.owner import Owner
from privada.parties.running import run
from privada.parties.schema import Category, Schema
from privada.privacy.guarantee import PureDP
from privada.privacy.relation import Relation

EPSILON = 1.0
BUDGET = 4.0
LIMIT = 6.0
SIZES, RUNS = (25, 50, 100, 150), 5  # of the learning curve


def demo(seed: int) -> DemoRow:
    """Tell benign from malignant by private labels in the cells of unlabelled public rows.

    Only public randomness is seeded (split, cells, classifier); the noise is drawn
    from the operating system, so the private score differs from run to run.
    """
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression

    X, y = load_breast_cancer(return_X_y=True)
    part = np.searchsorted([0.4, 0.8], np.random.default_rng(seed).permutation(len(X)) / len(X), side="right")
    X = np.clip(PublicScale.of(X[part == 0]).standardise(X), -LIMIT, LIMIT)
    public = Public(source=X[part == 0], classes=(0, 1), classifier=LogisticRegression(), seed=seed)
    owner = _clinic(X[part == 1], y[part == 1])
    fit = _fit(owner, public)
    clear = LogisticRegression().fit(X[part == 1], y[part == 1])
    test, truth = X[part == 2], y[part == 2]
    guessed, learnt = float(100 * max(truth.mean(), 1 - truth.mean())), float(100 * clear.score(test, truth))
    return DemoRow(
        method="marginals",
        title="tell tumours apart without a single diagnosis leaving the clinic",
        holders=(
            "A clinic holds tumours with their diagnoses; "
            f"the learner holds {int((part == 0).sum())} others without."
        ),
        guarantee=fit.releases[0].guarantee,
        score="accuracy (%) on tumours that neither side used",
        without=guessed,
        clear=learnt,
        ours=float(100 * (fit.codes(test) == truth).mean()),
        ledger=owner.ledger.export(),
        stamps=fit.releases[0].stamps,
        surprise=(
            f"One of the {len(truth)} test tumours is {100 / len(truth):.1f} points. Without privacy, a "
            "model fits the clinic's rows alone; the private one also uses the learner's unlabelled rows."
        ),
        picture=_curve(public, (X[part == 1], y[part == 1]), (test, truth), without=guessed, clear=learnt),
    )


def _clinic(X: FloatArray, y: Any) -> Owner:
    label = Category(name="diagnosis", values=(0, 1))
    schema = Schema.of_numbers(bounds=(-LIMIT, LIMIT), width=X.shape[1], size=len(X), label=label)
    budget = PureDP(epsilon=BUDGET, relation=Relation.ADD_REMOVE)
    return Owner(X, y=y, schema=schema, dataset="tumours", budget=budget)


def _fit(owner: Owner, public: Public) -> MarginalFit:
    guarantee = PureDP(epsilon=EPSILON, relation=Relation.ADD_REMOVE)
    size = owner.schema.size or 0
    question = default_cells(public.source, guarantee=guarantee, size=size, n_classes=2, seed=public.seed)
    return run(learn_cells("clinic", question, public), {"clinic": owner})


def _curve(
    public: Public,
    held: tuple[FloatArray, Any],
    test: tuple[FloatArray, Any],
    *,
    without: float,
    clear: float,
) -> Picture:
    """Accuracy against how many tumours the clinic holds."""

    def accuracy(size: int) -> float:
        fit = _fit(_clinic(held[0][:size], held[1][:size]), public)
        return float(100 * (fit.codes(test[0]) == test[1]).mean())

    sizes = [*SIZES, len(held[1])]
    private = [[accuracy(size) for size in sizes] for _ in range(RUNS)]
    lines = (
        Line.over_runs(f"private, {RUNS} runs", sizes, private),
        Line(name="without the clinic", x=sizes, y=[without] * len(sizes)),
        Line(name="all rows, no privacy", x=sizes, y=[clear] * len(sizes), role="limit"),
    )
    title = f"What more patients teach, at ε = {EPSILON:g}"
    curve = Curve(title=title, xlabel="tumours at the clinic", ylabel="accuracy (%)", lines=lines)
    caption = (
        "Mean, lowest and highest of several runs. Each is a study of its own at a clinic of its own; "
        "the ledger on this page is that of the numbers above."
    )
    return Picture(caption=caption, parts=(curve,))


__all__ = ["demo"]
