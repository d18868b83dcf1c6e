"""Each method on one split of a table: what was forecast, and what came."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from privada._arrays import FloatArray
from privada.methods.cells.learner import forecast_counts
from privada.methods.cells.learner import learn as learn_cells
from privada.methods.cells.questions.partition import NearestCells
from privada.methods.cells.questions.statistics import CellStatistics
from privada.methods.clustering.estimator import SourceTargetMedoids
from privada.methods.clustering.learner.medoids import cost
from privada.methods.evaluation.estimator import ask_about
from privada.methods.evaluation.learner.results import Classification, forecast_interval
from privada.methods.evaluation.learner.results import learn as learn_evaluation
from privada.methods.forecast import Forecast
from privada.methods.hypotheses.forms import Network, linear
from privada.methods.scaling import PublicScale
from privada.methods.summarization.estimator import PrivateSummarizer
from privada.methods.summarization.learner.learn import Matching, forecast_summary
from privada.parties.in_memory import owner_in_memory
from privada.parties.one_process.process_ledger import public_rows
from privada.parties.running import run
from privada.parties.schema import Schema
from privada.privacy.bounds import Ball
from privada.privacy.guarantee import PureDP
from privada.privacy.relation import Relation
from privada_lab.baselines.clustering import ClusterT
from privada_lab.datasets.table_split import TableSplit
from privada_lab.experiments.forecasts.trials import Trial
from privada_lab.experiments.tables.contenders import CONTENDERS, NOTHING, Case, Contender

Found = tuple[Forecast, float]
CELLS, CENTRES, TARGETS, COMPONENTS = 12, 12, 300, 6
OWNERS, SUMMARY, RANDOM_CHOICES = 3, 60, 20
DEVIATIONS = 3.0  # beyond which standardised columns are held
MOST_ROWS = 2000  # public rows that are clustered or gathered
RADIUS = 0.5
NEVER = -50.0  # score of a class that the public rows lack


def try_method(method: str, split: TableSplit, epsilon: float) -> list[Trial]:
    """What a method forecast and what came, at an epsilon; nothing where it does not suit the label."""
    found = METHODS[method](split, epsilon)
    if found is None:
        return []
    forecast, outcome = found
    return [Trial(method=method, place=split.pair.name, epsilon=epsilon, forecast=forecast, outcome=outcome)]


def _try_cells(split: TableSplit, epsilon: float) -> Found:
    """Counts in public cells, by class where there are any: half the sum of their errors."""
    from sklearn.cluster import KMeans

    rows, schema = split.train, _schema(split)
    centers = KMeans(CELLS, n_init=1, random_state=0).fit(split.source.X[:MOST_ROWS]).cluster_centers_
    cells, n_classes = NearestCells(centers=centers), len(schema.classes) if _has_classes(split) else None
    guarantee = PureDP(epsilon=epsilon, relation=Relation.ADD_REMOVE)
    question = CellStatistics(tables=(cells,), n_classes=n_classes, guarantee=guarantee)
    owner = owner_in_memory(rows.X, [question], y=rows.y, schema=schema, budget=guarantee)
    counts = run(learn_cells("owner", question), {"owner": owner}).tables[0].counts.reshape(CELLS, -1)
    exact = np.zeros_like(counts)
    codes = schema.classes.encode(rows.y) if n_classes else np.zeros(len(rows), dtype=np.int64)
    np.add.at(exact, (cells.assign(schema.box.clip(rows.X)), codes), 1)
    wrong = float(np.abs(counts - exact).sum()) / 2
    return forecast_counts(question, size=len(rows)), wrong / len(rows)


@public_rows()
def _try_clustering(split: TableSplit, epsilon: float) -> Found:
    """Public rows beside private ones: the cost over that of choosing by the public rows alone."""
    target, source = _place_in_ball(split.source.X[:TARGETS], split.train.X)
    model = SourceTargetMedoids(
        CENTRES, norm_bound=RADIUS, epsilon=epsilon, source_size=len(source), random_state=0
    )
    model.fit(source, Xt=target)
    alone = ClusterT(CENTRES).fit(None, Xt=target).indices_
    ours, theirs = (cost(target, source, target[chosen]) for chosen in (model.indices_, alone))
    return model.forecast_, ours / theirs


def _try_evaluation(split: TableSplit, epsilon: float) -> Found:
    """A linear model of the public rows: half the width of the interval."""
    schema, rows = _schema(split), split.train
    guarantee = PureDP(epsilon=epsilon, relation=Relation.ADD_REMOVE)
    question = ask_about(_linear_model(split), schema, guarantee=guarantee)
    owner = owner_in_memory(rows.X, [question], y=rows.y, schema=schema, budget=guarantee)
    found = run(learn_evaluation("owner", question), {"owner": owner})
    forecast = forecast_interval(question, size=len(rows))
    if isinstance(found, Classification):
        return forecast, (found.accuracy.high - found.accuracy.low) / 2
    return forecast, (found.squared_error.high - found.squared_error.low) / 2 / found.question.largest


@public_rows()
def _try_summarization(split: TableSplit, epsilon: float) -> Found:
    """Rows of owners, parts of the public side, for the private one: distance over a random choice's."""
    scale, rng = PublicScale.of(split.source.X), np.random.default_rng(0)
    pool, wanted = (_standardise(scale, X) for X in (split.source.X[:MOST_ROWS], split.train.X))
    pool = pool[np.argsort(pool[:, 0], kind="stable")]
    width = pool.shape[1]
    settings = {"size": SUMMARY, "gamma": 1 / (2 * width), "bounds": (-DEVIATIONS, DEVIATIONS)}
    model = PrivateSummarizer(**settings, epsilon=epsilon, delta=_delta(split), random_state=0)
    model.fit(wanted, owners=np.array_split(pool, OWNERS))
    embedding, guarantee = model.summary_.embedding, model.guarantee_
    matching = Matching(embedding=embedding, size=SUMMARY, validation=guarantee, owners=guarantee)
    aim, features = embedding.mean(wanted), embedding.transform(pool)
    choices = [rng.choice(len(pool), SUMMARY, replace=False) for _ in range(RANDOM_CHOICES)]
    random = np.sqrt(np.mean([np.sum((features[each].mean(axis=0) - aim) ** 2) for each in choices]))
    ours = np.linalg.norm(embedding.mean(model.X_) - aim)
    return forecast_summary(matching, validation_size=len(wanted)), float(ours / random)


def _try_adaptation(method: str, split: TableSplit, epsilon: float) -> Found | None:
    """The default of a method that adapts a model: its error over that of doing nothing."""
    for ours in CONTENDERS:
        if ours.figure.startswith(method) and ours.suits(split.pair):
            case = Case.flipped(split) if ours.view == "transport" else Case.of(split)
            outcome = ours.run(case, case.budget(epsilon))
            error = case.errors(outcome.predicted)["error"]
            nothing = case.errors(_nothing(ours).run(case, case.budget(epsilon)).predicted)["error"]
            if outcome.forecast is not None and nothing > 0:
                return outcome.forecast, error / nothing
    return None


def _nothing(ours: Contender) -> Contender:
    return next(each for each in CONTENDERS if each.name == NOTHING[ours.figure])


def _has_classes(split: TableSplit) -> bool:
    return split.pair.task == "classification"


def _schema(split: TableSplit) -> Schema:
    """Of the encoded rows."""
    return Schema.of_numbers(bounds=split.bounds, label=split.schema.label)


def _delta(split: TableSplit) -> float:
    return 1 / (10 * len(split.train))


def _linear_model(split: TableSplit) -> Network:
    """A regression of the public rows, in their own units."""
    from sklearn.linear_model import LogisticRegression, Ridge

    scale, X, y = PublicScale.of(split.source.X), split.source.X, split.source.y
    rows = scale.standardise(X)
    if not _has_classes(split):
        found = Ridge().fit(rows, y)
        return _unscaled(scale, found.coef_[None], np.array([found.intercept_]))
    model = LogisticRegression(max_iter=300).fit(rows, y)
    return _unscaled(scale, *_all_classes(split.classes, model))


def _all_classes(classes: tuple[Any, ...], model: Any) -> tuple[FloatArray, FloatArray]:
    """Scores of all public classes in their order; one that the public rows lack is never predicted."""
    coef, bias = model.coef_, model.intercept_
    if len(model.classes_) == 2:
        coef, bias = np.vstack([0 * coef, coef]), np.array([0.0, bias[0]])
    known = {str(name): place for place, name in enumerate(model.classes_)}
    places = [known.get(str(name)) for name in classes]
    weights = [np.zeros(coef.shape[1]) if at is None else coef[at] for at in places]
    return np.array(weights), np.array([NEVER if at is None else bias[at] for at in places])


def _unscaled(scale: PublicScale, coef: FloatArray, bias: FloatArray) -> Network:
    """The same scores of rows that are not standardised."""
    base = scale.standardise(np.zeros((1, coef.shape[1])))[0]
    slope = scale.standardise(np.ones((1, coef.shape[1])))[0] - base
    return linear((coef * slope).T, bias + coef @ base)


def _standardise(scale: PublicScale, X: FloatArray) -> FloatArray:
    return np.clip(scale.standardise(X), -DEVIATIONS, DEVIATIONS)


def _place_in_ball(public: FloatArray, private: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both sides along the first principal directions of the public one, within the ball."""
    scale = PublicScale.of(public)
    here, there = (_standardise(scale, X) for X in (public, private))
    middle = here.mean(axis=0)
    directions = np.linalg.svd(here - middle, full_matrices=False)[2][:COMPONENTS]
    reach = np.abs((here - middle) @ directions.T).max() * np.sqrt(len(directions)) / RADIUS
    ball = Ball(radius=RADIUS)
    near, far = (ball.clip((X - middle) @ directions.T / reach) for X in (here, there))
    return near, far


METHODS: dict[str, Callable[[TableSplit, float], Found | None]] = {
    "cells": _try_cells,
    "clustering": _try_clustering,
    "evaluation": _try_evaluation,
    "marginals": partial(_try_adaptation, "marginals"),
    "reweighting": partial(_try_adaptation, "reweighting"),
    "summarization": _try_summarization,
    "transport": partial(_try_adaptation, "transport"),
}


__all__ = ["METHODS", "try_method"]
