"""The row of marginals in ``privada demo``: tumours whose diagnoses stay at their clinic."""

from __future__ import annotations

import numpy as np

from privada.methods.marginals.learner.default import default_cells
from privada.methods.marginals.learner.learn import Public, learn_cells
from privada.methods.registry import DemoRow
from privada.methods.scaling import PublicScale
from privada.parties.owner import Owner
from privada.parties.running import run
from privada.parties.schema import Category, Schema
from privada.privacy.guarantee import Pure
from privada.privacy.relation import Relation

EPSILON = 1.0
BUDGET = 4.0
LIMIT = 6.0


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
    size = int((part == 1).sum())
    schema = Schema.of_numbers(
        bounds=(-LIMIT, LIMIT),
        width=X.shape[1],
        size=size,
        label=Category(name="diagnosis", values=(0, 1)),
    )
    owner = Owner(
        X[part == 1],
        y=y[part == 1],
        schema=schema,
        dataset="tumours",
        budget=Pure(epsilon=BUDGET, relation=Relation.ADD_REMOVE),
    )
    public = Public(source=X[part == 0], classes=(0, 1), classifier=LogisticRegression(), seed=seed)
    guarantee = Pure(epsilon=EPSILON, relation=Relation.ADD_REMOVE)
    question = default_cells(public.source, guarantee=guarantee, size=size, n_classes=2, seed=seed)
    fit = run(learn_cells("clinic", question, public), {"clinic": owner})
    clear = LogisticRegression().fit(X[part == 1], y[part == 1])
    test, truth = X[part == 2], y[part == 2]
    return DemoRow(
        method="marginals",
        title="tell tumours apart without a single diagnosis leaving the clinic",
        holders=(
            "A clinic holds tumours with their diagnoses; "
            f"the learner holds {int((part == 0).sum())} others without."
        ),
        guarantee=fit.releases[0].guarantee,
        score="accuracy (%) on tumours that neither side used",
        without=float(100 * max(truth.mean(), 1 - truth.mean())),
        ours=float(100 * (fit.codes(test) == truth).mean()),
        clear=float(100 * clear.score(test, truth)),
        ledger=owner.ledger.export(),
        stamps=fit.releases[0].stamps,
    )


__all__ = ["demo"]
