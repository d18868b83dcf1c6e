"""Who is compared: our default, private baselines, and CnvxAdap in the clear."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.exceptions import InputError, PrivadaWarning
from privada.methods.reweighting.estimator import ReweightedClassifier, ReweightedRegressor
from privada.methods.reweighting.questions.problem import Penalties
from privada.methods.reweighting.questions.supremum import labelled
from privada.parties.one_process.process_ledger import public_rows
from privada_lab.baselines.adaptation import PENALTIES, ridge
from privada_lab.baselines.cnvx_adap import cnvx_adap
from privada_lab.baselines.private.dpsgd import DPSGDClassifier, DPSGDRegressor
from privada_lab.baselines.private.linear import DPLinearRegression, NoisySGDRegressor, PrivateDM
from privada_lab.baselines.private.logistic import DPLogisticRegression
from privada_lab.baselines.private.perturbation import PerturbedClassifier, PerturbedRegressor
from privada_lab.datasets import domain_pairs
from privada_lab.datasets.domain_pairs import DomainPair, Part
from privada_lab.experiments.rivals import Sides, predictions

DELTA, EPSILONS = 1e-5, (1.0, 4.0)
CONSTANT = 0.5  # appended to rows of norm 1 at most
NORM = float(np.hypot(1.0, CONSTANT))
RADII, ALPHAS, KAPPAS = (5.0, 20.0, 80.0), (0.02, 0.1, 0.3, 0.7), (1.0, 0.01)


def with_constant(X: FloatArray) -> FloatArray:
    """Rows with a constant feature."""
    return np.column_stack([X, np.full(len(X), CONSTANT)])


def squared(coef: FloatArray, part: Part) -> float:
    """Mean squared error of a linear model on rows with a constant."""
    return float(np.mean((with_constant(part.X) @ coef - part.y) ** 2))


def error(pair: DomainPair, predicted: npt.NDArray[Any]) -> float:
    """Error on the test rows: share of wrong classes, or mean squared, within the public labels' range.

    Whose predictions they are does not matter: the range is public, so every private method is held to it.
    """
    if pair.classes:
        return float(np.mean(predicted != pair.test.y))
    return float(np.mean((np.clip(predicted, *label_range(pair)) - pair.test.y) ** 2))


def label_range(pair: DomainPair) -> tuple[float, float]:
    """Least and largest label of the public source."""
    return float(pair.source.y.min()), float(pair.source.y.max())


@public_rows()
def ours(pair: DomainPair, epsilon: float, train: Part | None = None) -> float:
    """Test error of ours: of numbers with linear public models alone, held to the public range."""
    private = pair.train if train is None else train
    settings: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "random_state": 0}
    model = (
        ReweightedClassifier(**settings)
        if pair.classes
        else ReweightedRegressor(**settings, base="linear", label_bounds=label_range(pair))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivadaWarning)
        model.fit(pair.source.X, pair.source.y, private.X, private.y)
    return error(pair, model.predict(pair.test.X))


def private_baselines(
    pair: DomainPair, epsilon: float, train: Part | None = None, *, deep: bool = True
) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Predictions of every private baseline on the test rows; those of Opacus only if ``deep``."""
    private = pair.train if train is None else train
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "norm_bound": NORM}
    X, y, test = with_constant(private.X), private.y, with_constant(pair.test.X)
    if deep and find_spec("opacus") is not None:
        yield from noisy_sgd(pair, private, epsilon)
    if pair.classes:
        classes = tuple(range(pair.classes))
        logistic = DPLogisticRegression(**budget, classes=classes, relation="replace-one", size=len(X))
        yield "noisy gradients", logistic.fit(X, y).predict(test)
        tilted = PerturbedClassifier(epsilon=epsilon, classes=classes, norm_bound=NORM)
        yield "objective perturbation", tilted.fit(X, y).predict(test)
        return
    yield "sufficient statistics", DPLinearRegression(**budget).fit(X, y).predict(test)
    yield "minibatch SGD", NoisySGDRegressor(**budget).fit(X, y).predict(test)
    yield (
        "objective perturbation",
        PerturbedRegressor(epsilon=epsilon, norm_bound=NORM).fit(X, y).predict(test),
    )
    S = with_constant(pair.source.X)
    weights = PrivateDM(**budget).fit(S, pair.source.y, X).sample_weight_
    for penalty in (1e-5, 1e-3):  # post-processing of one release
        yield f"private DM {penalty:g}", test @ ridge(S, pair.source.y, penalty, weights)


def trivial_rivals(pair: DomainPair, epsilon: float) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Predictions of every trivial rival on the test rows, columns standardised by the source."""
    sides = Sides(
        pair.source,
        pair.train,
        pair.test,
        (-1.0, 1.0),
        classes=tuple(range(pair.classes)),
        label_bounds=(0.0, 1.0) if pair.classes else label_range(pair),
    )
    for name, predicted in predictions(sides, {"epsilon": epsilon, "delta": DELTA}, labelled=True):
        yield f"trivial: {name}", predicted


def noisy_sgd(pair: DomainPair, private: Part, epsilon: float) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """DP-SGD by Opacus, from nothing and from a public start.

    Its promise is for one row more or less. Half of ε, twice (a row leaves, another comes), gives replace-one
    at (ε, (1 + e^(ε/2)) δ'): so it gets ε/2 and that δ'.
    """
    delta = DELTA / (1 + math.exp(epsilon / 2))
    settings: dict[str, Any] = {
        "epsilon": epsilon / 2,
        "delta": delta,
        "norm_bound": NORM,
        "insecure_seed": 0,
    }
    if pair.classes:
        settings["classes"] = tuple(range(pair.classes))
    X, test = with_constant(private.X), with_constant(pair.test.X)
    public = {"Xs": with_constant(pair.source.X), "ys": pair.source.y}
    for name, start in (("DP-SGD (Opacus)", {}), ("DP-SGD (Opacus), public start", public)):
        model = (DPSGDClassifier if pair.classes else DPSGDRegressor)(**settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield name, model.fit(X, private.y, **start).predict(test)


def public_ridge(source: Part) -> FloatArray:
    """Ridge on the source alone; the penalty is by generalised cross-validation."""
    from sklearn.linear_model import RidgeCV

    grid = len(source) * np.array(PENALTIES)
    return RidgeCV(grid, fit_intercept=False).fit(with_constant(source.X), source.y).coef_


def cnvx(source: Part, target: Part, radius: float, alpha: float, kappa1: float) -> FloatArray:
    """Exact CnvxAdap in the clear; without weight on the source its discrepancy does not matter."""
    X, T = with_constant(source.X), with_constant(target.X)
    gap = labelled(X, source.y, T, target.y, radius=radius).value if alpha else 0.0
    penalties = Penalties(alpha=alpha, kappa1=kappa1, discrepancy=gap)
    return cnvx_adap(X, source.y, T, target.y, radius=radius, penalties=penalties, tolerance=1e-8).coef


@cache
def gas_settings(data: Path) -> tuple[float, float, float]:
    """CnvxAdap's on gas, whose source is the same in every split."""
    return public_settings(domain_pairs.gas(data, 0))


def public_settings(pair: DomainPair) -> tuple[float, float, float]:
    """Radius, alpha and κ₁ of CnvxAdap from leaving out each large public domain; parts count by rows."""
    grid = list(product(RADII, ALPHAS, KAPPAS))
    total = np.zeros(len(grid))
    if pair.groups is None:
        raise InputError("Expected the source to have domains.")
    names, counts = np.unique(pair.groups, return_counts=True)
    for name, count in zip(names, counts, strict=True):
        out = pair.groups == name
        if count < 400:
            continue
        order = np.random.default_rng(0).permutation(np.flatnonzero(out))
        train, test = order[: count // 2], order[count // 2 :]
        rest = Part(pair.source.X[~out], pair.source.y[~out])
        held, checked = (Part(pair.source.X[at], pair.source.y[at]) for at in (train, test))
        for index, (radius, alpha, kappa) in enumerate(grid):
            total[index] += count * np.log(squared(cnvx(rest, held, radius, alpha, kappa), checked))
    return grid[int(total.argmin())]


__all__ = [
    "CONSTANT",
    "DELTA",
    "EPSILONS",
    "cnvx",
    "error",
    "gas_settings",
    "label_range",
    "noisy_sgd",
    "ours",
    "private_baselines",
    "public_ridge",
    "public_settings",
    "squared",
    "trivial_rivals",
    "with_constant",
]
