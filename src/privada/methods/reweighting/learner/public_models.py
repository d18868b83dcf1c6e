"""Models of the public source, fitted and cross-validated on public rows alone, as numbers that travel.

A linear model always; with ``base="auto"`` also boosted trees, a kernel machine and, for numbers, a forest.
Under shift each of them can be the best or the worst, so none is trusted alone: `ladder` mixes them.

A third of the public rows is held out of a second fit. Its residuals and predictions are those of rows that
a model has not seen; units and the public second moments come from them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.methods.linear.questions import public
from privada.methods.linear.questions.features import PublicFeatures
from privada.methods.scaling import PublicScale

BASES = ("auto", "linear")
LIMIT = 4.0  # public deviations, beyond which a column is clipped for the kernel machine and for corrections
REACH = 3.0  # root mean squared differences of a model's held-out numbers from the linear model's
HELD_OUT, FEWEST = 3, 60  # one row in three is held out; fewer rows than this have linear models alone
LANDMARKS, BANDWIDTH = 300, 0.3  # of the kernel machine; γ is the bandwidth over the number of features
RIDGE = np.logspace(-6, 1, 15)  # penalties for each public row
LOGISTIC = (0.01, 0.1, 1.0, 10.0)  # inverse penalties
BOOSTED: dict[str, Any] = {"learning_rate": 0.1, "max_leaf_nodes": 15, "l2_regularization": 1.0}
ROUNDS, FEWER_ROUNDS, LEAF = 100, 50, 20  # of boosting; fewer for several classes
ABSENT = -20.0  # score of a class that no public row has
FOREST: dict[str, Any] = {"n_estimators": 40, "min_samples_leaf": 10, "max_features": 0.4}


@dataclass(frozen=True, eq=False)
class PublicSource:
    """What public rows give: features, and the same of rows that models had not seen.

    Attributes
    ----------
    features : PublicFeatures
        Fitted to all public rows.
    columns : array of shape (public rows, features.columns)
        All public rows, standardised and clipped.
    rows : array of shape (held, features.width)
        Features of held-out rows, by models that have not seen them.
    labels : array of shape (held, outputs)
        Numbers; or 1 and 0 for every class (of two classes: for the second).
    """

    features: PublicFeatures
    columns: FloatArray
    rows: FloatArray
    labels: FloatArray

    @property
    def predictions(self) -> FloatArray:
        """Of held-out rows, shape (held, models, outputs)."""
        table = self.rows[:, self.features.columns :]
        return table.reshape(len(table), self.features.models, self.features.outputs)


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores of one model as numbers: starts, and trees or bumps."""

    starts: FloatArray
    penalty: float | None = None  # of a logistic regression, as it was chosen
    trees: tuple[tuple[npt.NDArray[np.int64], FloatArray, int], ...] = ()  # splits, cuts, output
    landmarks: FloatArray | None = None
    loads: FloatArray | None = None


def fit_source(
    X: FloatArray,
    y: npt.NDArray[Any],
    *,
    n_classes: int,
    limits: tuple[float, float] | None,
    base: str = "auto",
    standardize: bool = True,
    seed: int = 0,
) -> PublicSource:
    """Fit everything to public rows; class labels are codes, and ``n_classes`` is 0 for numbers."""
    kinds: tuple[str, ...] = ("linear",)
    if base != "linear" and len(X) >= FEWEST:
        kinds += ("boosted", "kernel") if n_classes else ("boosted", "forest", "kernel")
    scale = _Scale(PublicScale.of(X, each=standardize), public.LARGEST if base == "linear" else LIMIT)
    held_out = np.random.default_rng(seed).permutation(len(X))[: max(1, len(X) // HELD_OUT)]
    rest = np.setdiff1d(np.arange(len(X)), held_out) if len(X) >= FEWEST else np.arange(len(X))
    all_rows = _fit(kinds, X, y, scale, n_classes, seed)
    chosen = tuple(
        part.penalty for part in all_rows[1]
    )  # by all public rows: a second search would say as much
    fitted = (_fit(kinds, X[rest], y[rest], scale, n_classes, seed, chosen), all_rows)
    bounded = (None if base == "linear" else limits) or (-public.LARGEST, public.LARGEST)
    tried = _assemble(fitted[0], scale, n_classes, bounded, None)
    # root mean squared differences of all models from the linear one, which reaches anywhere itself
    predictions = tried.predict(X[held_out]).reshape(len(held_out), tried.models, tried.outputs)
    apart = np.sqrt(((predictions - predictions[:, :1]) ** 2).sum(axis=2).mean(axis=0))
    near = np.where(np.arange(tried.models) == 0, public.LARGEST, REACH * apart)
    features = [_assemble(part, scale, n_classes, bounded, near) for part in fitted]
    return PublicSource(
        features[1], scale.clipped(X), features[0].extend(X[held_out]), indicate(y[held_out], n_classes)
    )


def indicate(y: npt.NDArray[Any], n_classes: int) -> FloatArray:
    """Labels as outputs.

    >>> indicate(np.array([0, 1]), 2).tolist(), indicate(np.array([2]), 3).tolist()
    ([[0.0], [1.0]], [[0.0, 0.0, 1.0]])
    """
    if n_classes == 0:
        return np.asarray(y, dtype=np.float64)[:, None]
    table = np.eye(n_classes)[np.asarray(y, dtype=np.int64)]
    return table[:, 1:] if n_classes == 2 else table


@dataclass(frozen=True, eq=False)
class _Scale:
    public: PublicScale
    limit: float

    @property
    def mean(self) -> FloatArray:
        return self.public.mean

    @property
    def spread(self) -> FloatArray:
        return self.public.spread

    def plain(self, X: FloatArray) -> FloatArray:
        return self.public.standardise(X)

    def clipped(self, X: FloatArray) -> FloatArray:
        return np.clip(self.plain(X), -self.limit, self.limit)


@dataclass(frozen=True, eq=False)
class _How:
    """What every fit is told beside its rows."""

    scale: _Scale
    n_classes: int
    seed: int
    penalty: float | None


def _fit(
    kinds: tuple[str, ...],
    X: FloatArray,
    y: npt.NDArray[Any],
    scale: _Scale,
    n_classes: int,
    seed: int,
    chosen: tuple[float | None, ...] | None = None,
) -> tuple[FloatArray, list[_Scores]]:
    """Weights of the linear model, and the scores of all models; penalties may have been chosen before."""
    from sklearn.linear_model import RidgeCV

    penalties = chosen or (None,) * len(kinds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence: these are public models among others
        Z, penalty = scale.plain(X), penalties[0]
        if n_classes:
            weights, start, penalty = _logistic(Z, y, n_classes, penalty)
        else:
            ridge = RidgeCV(len(Z) * RIDGE).fit(Z, y)
            weights, start = np.asarray(ridge.coef_)[:, None], np.atleast_1d(ridge.intercept_)
        models = [_Scores(start - scale.mean / scale.spread @ weights, penalty)]
        for kind, given_penalty in zip(kinds[1:], penalties[1:], strict=True):
            models.append(_FITS[kind](X, y, _How(scale, n_classes, seed, given_penalty)))
    return weights / scale.spread[:, None], models


def _logistic(
    Z: FloatArray, y: npt.NDArray[Any], n_classes: int, penalty: float | None
) -> tuple[FloatArray, FloatArray, float | None]:
    """Logistic regression, its penalty given or cross-validated where the rows allow it."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    counts = np.bincount(y, minlength=n_classes)
    present = counts[counts > 0]
    if len(present) < 2:
        return *_spread_classes(None, y, n_classes, Z.shape[1]), penalty
    model = LogisticRegression(C=1.0 if penalty is None else penalty, max_iter=300)
    if penalty is None and present.min() >= 3:
        search = GridSearchCV(model, {"C": LOGISTIC}, cv=3, scoring="neg_log_loss")
        model = search.fit(Z, y).best_estimator_
    else:
        model.fit(Z, y)
    return *_spread_classes((model.coef_.T, model.intercept_), y, n_classes, Z.shape[1]), float(model.C)


def _spread_classes(
    fitted: tuple[FloatArray, FloatArray] | None, y: npt.NDArray[Any], n_classes: int, width: int
) -> tuple[FloatArray, FloatArray]:
    """Weights for all public classes; those that no public row has keep the score of half a row."""
    counts = np.bincount(y, minlength=n_classes)
    present = np.flatnonzero(counts)
    table, level = np.zeros((width, n_classes)), np.log((counts + 0.5) / (counts + 0.5).sum())
    if fitted is not None:
        coef, start = fitted
        if len(present) == 2:  # scikit-learn scores the second of two classes only
            coef, start = np.hstack([-coef, coef]) / 2, np.r_[-start, start] / 2
        table[:, present], level[present] = coef, start
        level[counts == 0] = np.log(0.5 / len(y))
    if n_classes == 2:
        return table[:, 1:] - table[:, :1], level[1:] - level[:1]
    return table, level


def _boosted(X: FloatArray, y: npt.NDArray[Any], how: _How) -> _Scores:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    present = np.unique(y)
    if how.n_classes and len(present) < 2:
        return _Scores(_spread_classes(None, y, how.n_classes, X.shape[1])[1])
    kind = HistGradientBoostingClassifier if how.n_classes else HistGradientBoostingRegressor
    rounds = FEWER_ROUNDS if how.n_classes > 2 else ROUNDS
    fewest = max(1, min(LEAF, len(X) // 20))
    booster = kind(
        max_iter=rounds, min_samples_leaf=fewest, early_stopping=False, random_state=how.seed, **BOOSTED
    )
    booster.fit(X, y)
    starts, targets = _boosted_outputs(np.ravel(booster._baseline_prediction), present, how.n_classes)
    trees = []
    for stage in booster._predictors:
        for tree, outputs_of_tree in zip(stage, targets, strict=True):
            nodes = tree.nodes
            leaf = nodes["is_leaf"].astype(bool)
            columns = np.where(leaf, -1, nodes["feature_idx"].astype(np.int64))
            splits = np.column_stack([columns, nodes["left"], nodes["right"]]).astype(np.int64)
            for output, sign in outputs_of_tree:
                # The values of leaves stand where inner nodes have their cuts.
                cuts = np.where(leaf, sign * nodes["value"], nodes["num_threshold"])
                trees.append((splits, cuts, output))
    return _Scores(starts, trees=tuple(trees))


def _boosted_outputs(
    base: FloatArray, present: npt.NDArray[Any], n_classes: int
) -> tuple[FloatArray, list[list[tuple[int, float]]]]:
    """Starts of all outputs; and for each tree of a stage, to which outputs it adds, with which sign."""
    if n_classes in (0, 2):
        return base, [[(0, 1.0)]]
    starts = np.full(n_classes, ABSENT)
    if len(present) == 2:  # one tree a stage: the second class against the first
        starts[present] = [-base[0] / 2, base[0] / 2]
        return starts, [[(int(present[0]), -0.5), (int(present[1]), 0.5)]]
    starts[present] = base
    return starts, [[(int(code), 1.0)] for code in present]


def _forest(X: FloatArray, y: npt.NDArray[Any], how: _How) -> _Scores:
    """Extremely randomised trees, for numbers."""
    from sklearn.ensemble import ExtraTreesRegressor

    forest = ExtraTreesRegressor(random_state=how.seed, **FOREST).fit(X, y)
    trees = []
    for estimator in forest.estimators_:
        tree = estimator.tree_
        leaf = tree.children_left < 0
        columns = np.where(leaf, -1, tree.feature)
        splits = np.column_stack([columns, tree.children_left, tree.children_right]).astype(np.int64)
        trees.append(
            (splits, np.where(leaf, tree.value[:, 0, 0] / len(forest.estimators_), tree.threshold), 0)
        )
    return _Scores(np.zeros(1), trees=tuple(trees))


def _kernel(X: FloatArray, y: npt.NDArray[Any], how: _How) -> _Scores:
    """Ridge or logistic regression on Gaussian bumps (Nyström)."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import RidgeCV

    Z = how.scale.clipped(X)
    count = min(LANDMARKS, len(X) // 3)
    bumps = Nystroem(gamma=BANDWIDTH / X.shape[1], n_components=count, random_state=how.seed).fit(Z)
    values, penalty = bumps.transform(Z), None
    if how.n_classes:
        weights, start, penalty = _logistic(values, y, how.n_classes, how.penalty)
    else:
        ridge = RidgeCV(np.logspace(-4, 1, 6)).fit(values, y)
        weights, start = np.asarray(ridge.coef_)[:, None], np.atleast_1d(ridge.intercept_)
    return _Scores(start, penalty, (), bumps.components_, bumps.normalization_.T @ weights)


_FITS = {"boosted": _boosted, "forest": _forest, "kernel": _kernel}


def _assemble(
    fitted: tuple[FloatArray, list[_Scores]],
    scale: _Scale,
    n_classes: int,
    limits: tuple[float, float],
    reach: FloatArray | None,
) -> PublicFeatures:
    """All models in one table of trees, starts and bumps."""
    weights, models = fitted
    outputs, splits, cuts, trees, size = weights.shape[1], [], [], [], 0
    for index, model in enumerate(models):
        for own, values, output in model.trees:
            below = np.where(own[:, :1] >= 0, own[:, 1:] + size, -1)
            splits.append(np.hstack([own[:, :1], below]))
            cuts.append(values)
            trees.append((size, index * outputs + output))
            size += len(own)
    last = models[-1]
    return PublicFeatures(
        mean=scale.mean,
        spread=scale.spread,
        limit=scale.limit,
        weights=weights,
        starts=np.concatenate([model.starts for model in models]),
        splits=np.vstack(splits) if splits else np.zeros((0, 3), dtype=np.int64),
        cuts=np.concatenate(cuts) if cuts else np.zeros(0),
        trees=np.array(trees, dtype=np.int64).reshape(-1, 2),
        landmarks=np.zeros((0, len(weights))) if last.landmarks is None else last.landmarks,
        loads=np.zeros((0, outputs)) if last.loads is None else last.loads,
        bandwidth=BANDWIDTH / len(weights),
        reach=np.full(len(models), public.LARGEST) if reach is None else reach,
        link="probability" if n_classes else "identity",
        low=limits[0],
        high=limits[1],
    )


__all__ = ["BASES", "PublicSource", "fit_source", "indicate"]
