"""The row of reweighting in ``privada demo``: a district whose sales stay private."""

from __future__ import annotations

import warnings

import numpy as np

from privada._arrays import FloatArray
from privada.exceptions import PrivadaWarning
from privada.methods.example import DemoRow
from privada.methods.pictures import Curve, Line, Picture
from privada.methods.reweighting.learner.ladder import AdaptedModel, Ladder, plan
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
    owner = _office(Xt, yt, EPSILON)
    made = _plan(Xs, ys, len(Xt), EPSILON, seed)
    model = _run(made, owner)
    start = X @ made.features.weights + made.features.starts
    without, clear = _explained(start[:, 0], y), _explained(_clear(Xt, yt, X), y)
    return DemoRow(
        method="reweighting",
        title="adapt a public regression to a district whose sales stay private",
        holders=f"An office holds {len(Xt)} labelled sales; the learner holds {len(Xs)} from elsewhere.",
        guarantee=model.guarantee,
        score="R² (%) on sales of the district that neither side used",
        without=without,
        ours=_explained(model.scores(X)[:, 0], y),
        clear=clear,
        ledger=owner.ledger.export(),
        stamps=model.releases[-1].stamps,
        surprise=(
            "Without privacy, a model fits the district's rows alone; the private one starts from the public "
            "rows as well, which can be worth more than the noise costs."
        ),
        picture=_curve((Xs, ys), (Xt, yt), (X, y), seed=seed, without=without, clear=clear),
    )


def _office(Xt: FloatArray, yt: FloatArray, epsilon: float) -> Owner:
    label = Number(name="value", low=-8.0, high=8.0)
    schema = Schema.of_numbers(bounds=(-6.0, 6.0), width=Xt.shape[1], size=len(Xt), label=label)
    return Owner(Xt, y=yt, schema=schema, dataset="sales", budget=_promise(epsilon), accounting="gaussian")


def _promise(epsilon: float) -> ApproxDP:
    return ApproxDP(epsilon=epsilon, delta=DELTA, relation=Relation.REPLACE_ONE)


def _plan(Xs: FloatArray, ys: FloatArray, size: int, epsilon: float, seed: int) -> Ladder:
    bounds = (-8.0, 8.0)
    return plan(
        Xs, ys, size=size, guarantee=_promise(epsilon), label_bounds=bounds, base="linear", random_state=seed
    )


def _run(made: Ladder, owner: Owner) -> AdaptedModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivadaWarning)
        return run(made.inquiry("office"), {"office": owner})


def _curve(
    source: tuple[FloatArray, FloatArray],
    held: tuple[FloatArray, FloatArray],
    test: tuple[FloatArray, FloatArray],
    *,
    seed: int,
    without: float,
    clear: float,
) -> Picture:
    """What is left unexplained, against epsilon."""

    def error(epsilon: float) -> float:
        model = _run(_plan(*source, len(held[0]), epsilon, seed), _office(*held, epsilon))
        return 100 - _explained(model.scores(test[0])[:, 0], test[1])

    private = [[error(epsilon) for epsilon in EPSILONS] for _ in range(RUNS)]
    many = len(EPSILONS)
    lines = (
        Line.over_runs(f"private, {RUNS} runs", EPSILONS, private),
        Line(name="without the district", x=EPSILONS, y=[100 - without] * many),
        Line(name="district only, no privacy", x=EPSILONS, y=[100 - clear] * many, role="limit"),
    )
    title, ylabel = "Error against ε", "variance left unexplained (%)"
    curve = Curve(title=title, xlabel=f"ε (δ = {DELTA:g})", ylabel=ylabel, lines=lines, log=True)
    caption = (
        f"Neighbours: {Relation.REPLACE_ONE.value}. Mean, lowest and highest of several runs, each a study "
        "of its own with a budget of its own; the ledger on this page is that of the numbers above."
    )
    return Picture(caption=caption, parts=(curve,))


def _explained(found: FloatArray, y: FloatArray) -> float:
    return float(100 * (1 - np.mean((found - y) ** 2) / np.var(y)))


def _clear(Xt: FloatArray, yt: FloatArray, X: FloatArray) -> FloatArray:
    """Ordinary least squares on the private rows: what the demo compares with, on data that everyone has."""
    from sklearn.linear_model import LinearRegression

    return LinearRegression().fit(Xt, yt).predict(X)


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
