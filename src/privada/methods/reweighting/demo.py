"""The row of reweighting in ``privada demo``: a district whose sales stay private."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.linear_model import LinearRegression

from privada._arrays import FloatArray
from privada.exceptions import PrivadaWarning
from privada.methods.example import DemoRow
from privada.methods.method import Public
from privada.methods.pictures import Curve, Line, Picture
from privada.methods.reweighting.learner.ladder import AdaptedModel
from privada.methods.reweighting.method import Reweighting
from privada.parties.owner import Owner
from privada.parties.running import run
from privada.parties.schema import Number, Schema
from privada.privacy.guarantee import ApproxDP
from privada.privacy.relation import Relation

EPSILON, DELTA = 2.0, 1e-5
EPSILONS, RUNS = (0.1, 0.3, 1.0, 2.0, 5.0), 5  # of the curve


def demo(seed: int) -> DemoRow:
    """Predict house values in one part of a region from public sales elsewhere and private ones there."""
    (Xs, ys), (Xt, yt), (X, y) = _domains(seed)
    model, owner = _adapt((Xs, ys), (Xt, yt), EPSILON, seed)
    # The first public model is the linear one: what the learner has without asking.
    without = _explain_variance((X @ model.features.weights + model.features.starts)[:, 0], y)
    # Least squares on the private rows is compared with, on data that everyone has.
    clear = _explain_variance(LinearRegression().fit(Xt, yt).predict(X), y)

    def measure_error(epsilon: float) -> float:
        private, _ = _adapt((Xs, ys), (Xt, yt), epsilon, seed)
        return 100 - _explain_variance(private.scores(X)[:, 0], y)

    errors = [[measure_error(epsilon) for epsilon in EPSILONS] for _ in range(RUNS)]
    curve = Curve(
        title="Error against ε",
        xlabel=f"ε (δ = {DELTA:g})",
        ylabel="variance left unexplained (%)",
        lines=(
            Line.over_runs(f"private, {RUNS} runs", EPSILONS, errors),
            Line(name="without the district", x=EPSILONS, y=[100 - without] * len(EPSILONS)),
            Line(
                name="district only, no privacy",
                x=EPSILONS,
                y=[100 - clear] * len(EPSILONS),
                role="limit",
            ),
        ),
        log=True,
    )
    caption = (
        f"Neighbours: {Relation.REPLACE_ONE.value}. Mean, lowest and highest of several runs, each a study "
        "of its own with a budget of its own; the ledger on this page is that of the numbers above."
    )
    return DemoRow(
        method="reweighting",
        title="adapt a public regression to a district whose sales stay private",
        holders=f"An office holds {len(Xt)} labelled sales; the learner holds {len(Xs)} from elsewhere.",
        guarantee=model.guarantee,
        score="R² (%) on sales of the district that neither side used",
        without=without,
        ours=_explain_variance(model.scores(X)[:, 0], y),
        clear=clear,
        ledger=owner.ledger.export(),
        stamps=model.releases[-1].stamps,
        surprise=(
            "Without privacy, a model fits the district's rows alone; the private one starts from the public "
            "rows as well, which can be worth more than the noise costs."
        ),
        picture=Picture(caption=caption, parts=(curve,)),
    )


def _adapt(
    source: tuple[FloatArray, FloatArray], sales: tuple[FloatArray, FloatArray], epsilon: float, seed: int
) -> tuple[AdaptedModel, Owner]:
    """The model that an office with a budget of its own answers for."""
    guarantee = ApproxDP(epsilon=epsilon, delta=DELTA, relation=Relation.REPLACE_ONE)
    rows, values = sales
    label = Number(name="value", low=-8.0, high=8.0)
    schema = Schema.of_numbers(bounds=(-6.0, 6.0), width=rows.shape[1], size=len(rows), label=label)
    owner = Owner(rows, y=values, schema=schema, dataset="sales", budget=guarantee, accounting="gaussian")
    inquiry = Reweighting(base="linear").prepare(Public(*source), {"office": schema}, guarantee, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivadaWarning)
        return run(inquiry, {"office": owner}), owner


def _explain_variance(predictions: FloatArray, y: FloatArray) -> float:
    return float(100 * (1 - np.mean((predictions - y) ** 2) / np.var(y)))


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
