"""The row of reweighting in ``privada demo``: a district whose sales stay private."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from privada.exceptions import PrivadaWarning
from privada.methods.registry import DemoRow
from privada.methods.reweighting.learner.ladder import plan
from privada.parties.owner import Owner
from privada.parties.running import run
from privada.parties.schema import Number, Schema
from privada.privacy.guarantee import Approximate
from privada.privacy.relation import Relation

FloatArray = npt.NDArray[np.float64]
EPSILON, DELTA = 2.0, 1e-5


def demo(seed: int) -> DemoRow:
    """Predict house values in one part of a region from public sales elsewhere and private ones there."""
    (Xs, ys), (Xt, yt), (X, y) = _domains(seed)
    guarantee = Approximate(epsilon=EPSILON, delta=DELTA, relation=Relation.REPLACE_ONE)
    schema = Schema.of_numbers(
        bounds=(-6.0, 6.0), width=X.shape[1], size=len(Xt), label=Number(name="value", low=-8.0, high=8.0)
    )
    owner = Owner(Xt, y=yt, schema=schema, dataset="sales", budget=guarantee, accounting="gaussian")
    made = plan(
        Xs, ys, size=len(Xt), guarantee=guarantee, label_bounds=(-8.0, 8.0), base="linear", random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivadaWarning)
        model = run(made.learner("office"), {"office": owner})
    start = X @ made.features.weights + made.features.starts
    return DemoRow(
        method="reweighting",
        title="adapt a public regression to a district whose sales stay private",
        holders=f"An office holds {len(Xt)} labelled sales; the learner holds {len(Xs)} from elsewhere.",
        guarantee=model.guarantee,
        score="R² (%) on sales of the district that neither side used",
        without=_explained(start[:, 0], y),
        ours=_explained(model.scores(X)[:, 0], y),
        clear=_explained(_clear(Xt, yt, X), y),
        ledger=owner.ledger.export(),
        stamps=model.releases[-1].stamps,
    )


def _explained(found: FloatArray, y: FloatArray) -> float:
    return float(100 * (1 - np.mean((found - y) ** 2) / np.var(y)))


def _clear(Xt: FloatArray, yt: FloatArray, X: FloatArray) -> FloatArray:
    """Ordinary least squares on the private rows: what the demo compares with, on data that everyone has."""
    from sklearn.linear_model import LinearRegression

    found: FloatArray = LinearRegression().fit(Xt, yt).predict(X)
    return found


def _domains(seed: int) -> tuple[tuple[FloatArray, FloatArray], ...]:
    """Public sales in five districts, private and test sales in a sixth with prices of its own; generated."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=8) / np.sqrt(8)

    def district(rows: int, drift: FloatArray) -> tuple[FloatArray, FloatArray]:
        X = rng.normal(size=(rows, 8))
        return X, X @ (common + drift) + 0.2 * rng.normal(size=rows)

    public = [district(400, 0.15 * rng.normal(size=8)) for _ in range(5)]
    here = 0.15 * rng.normal(size=8)
    source = np.vstack([X for X, _ in public]), np.concatenate([y for _, y in public])
    return source, district(1200, here), district(1000, here)


__all__ = ["demo"]
