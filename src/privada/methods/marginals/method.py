"""Marginals: the method and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from privada import _check
from privada.exceptions import InputError
from privada.methods.method import Method, Public, StudyPlace, setting
from privada.methods.situation import Situation
from privada.parties.protocol import Inquiry
from privada.privacy.guarantee import Guarantee, PureDP

if TYPE_CHECKING:
    from privada.parties.schema import Schema

ALGORITHMS = ("auto", "descent", "cells", "marginals")


def read_algorithm(place: StudyPlace, key: str) -> Any:
    """What a study asks for: a name, and the settings of its kind."""
    from privada.methods.marginals.learner.asking import CellCounts, ErrorTables

    section = place.section
    if place.schema.label_bounds is not None:
        return "auto"  # a regressor has no tables but its cells
    name = section.string("question", None)  # its key in 0.2
    with section.blaming(key):
        name = _check.one_of(ALGORITHMS, **{key: section.string(key, name or "auto")})
    cells: dict[str, Any] = {"cells": section.whole("cells")} if "cells" in section else {}
    tables: dict[str, Any] = {}
    for setting_name, read in (
        *((name_, section.whole) for name_ in ("rounds", "bins", "features", "chosen")),
        *((name_, section.flag) for name_ in ("vary", "separate")),
        ("estimate", section.string),
        ("stop", section.number),
    ):
        if setting_name in section:
            tables[setting_name] = read(setting_name)
    shared = {"reweight": section.flag("reweight")} if "reweight" in section else {}
    if name == "auto" and (cells or tables or shared):
        name = "marginals" if tables else "cells"
    wrong = {"descent": cells | tables | shared, "cells": tables, "marginals": cells}.get(name, {})
    if wrong:
        other, value = next(iter(wrong.items()))
        section.fail(other, f'Expected {other} only for another kind, got {value!r} for algorithm="{name}".')
    if name == "cells":
        return CellCounts(**cells, **shared)
    return ErrorTables(**tables, **shared) if name == "marginals" else name


def read_cells(place: StudyPlace, key: str) -> int | None:
    """The cells of a regressor; those of a classifier belong to its algorithm."""
    cells: int | None = place.section.whole(key, None)
    return cells


def read_model(place: StudyPlace, key: str) -> Any:
    """A model of scikit-learn by the name of its class."""
    from sklearn.utils import all_estimators

    name = place.section.string(key, None)
    if name is None:
        return None
    models = dict(all_estimators(type_filter=key))
    with place.section.blaming(key):
        return models[_check.one_of(models, **{key: name})]()


@dataclass(frozen=True, kw_only=True)
class Marginals(Method):
    """Learn from a target that never leaves its owner, through noisy sums and tables."""

    name = "marginals"
    title = "Learn from a labelled target that stays at its owner, through noisy sums and tables"
    paper = "Lacombe, Jetley and Sebag 2021, EXtremely PRivate supervised Learning"
    situation = Situation(
        want="model",
        private="target",
        yours="unlabelled",
        because="the owner answers with noisy sums of labels over your own rows, which need no labels.",
    )
    question_paths = (
        "privada.methods.marginals.questions:OutcomeTables",
        "privada.methods.marginals.questions:HypothesisChoice",
        "privada.methods.linear.questions.descent:MarginalsDescent",
        "privada.methods.marginals.questions:LabelHistogram",
        "privada.methods.marginals.questions:SquaredErrors",
    )
    retired_paths = ("privada.methods.linear.questions.retired:RetiredMarginalsDescent",)
    private_side = "target"
    model_parts = (
        "privada.methods.linear.questions.features:PublicFeatures",
        "privada.methods.marginals.learner.descent:DescentModel",
        "privada.methods.marginals.learner.fitted:MarginalFit",
        "privada.methods.marginals.learner.fitted:SyntheticTarget",
        "privada.methods.marginals.learner.fitted:RegressionFit",
        "privada.methods.marginals.learner.fitted:SyntheticNumbers",
    )
    estimators: ClassVar[Mapping[str, str]] = {
        "class": "privada.methods.marginals.estimator:MarginalClassifier",
        "number": "privada.methods.marginals.estimator:MarginalRegressor",
    }

    size: int | None = setting(
        None,
        "The announced number of private rows, by which steps, cells and bins are planned; in a study "
        'by default the schema\'s. Under "replace-one" it must be the true one.',
    )
    algorithm: Any = setting(
        "auto",
        'What is asked for: "descent", a linear model by a noisy descent, which needs delta or rho; '
        '"cells", labels over cells of the source, whose noise does not grow with the features; or '
        '"marginals", the paper\'s error tables over bins of single features. "auto" is the first where '
        "the guarantee allows it, and cells under a pure one. `CellCounts` and `ErrorTables` hold the "
        "settings of their kinds; in a study they are keys of the table: cells, reweight, rounds, bins, "
        "stop, features, chosen, vary, separate, estimate.",
        kind='"auto", "descent", "cells", "marginals", CellCounts or ErrorTables',
        read=read_algorithm,
    )
    classifier: Any = setting(
        None,
        "A scikit-learn classifier with ``sample_weight``, in a study the name of its class, that is "
        "trained on the labelled source. By default a descent's own linear model is the classifier, and "
        "a small network after tables. It is tried on public rows before anything is asked; rounds "
        "after the first submit it, so it must have a wire form there (`of_classifier`).",
        kind="classifier",
        read=read_model,
    )
    cells: int | None = setting(
        None,
        "Of a regressor: ask over so many cells of the source whatever the guarantee is; under a pure "
        "one, by default chosen from public quantities.",
        read=read_cells,
    )
    regressor: Any = setting(
        None,
        "A scikit-learn regressor with ``sample_weight``, in a study the name of its class, that is "
        "trained on the labelled source. By default the descent's own linear model, and ridge "
        "regression after cells.",
        kind="regressor",
        read=read_model,
    )

    def prepare(
        self, public: Public, parties: Mapping[str, Schema], guarantee: Guarantee, *, seed: int = 0
    ) -> Inquiry[Any]:
        """Ask for a classifier or a regressor, by the label of the schema."""
        from privada.methods.marginals.learner import learn
        from privada.methods.marginals.learner.asking import forecast_error, make_inquiry
        from privada.methods.marginals.learner.descent import learn_number
        from privada.methods.marginals.learner.public import missing_marks
        from privada.methods.marginals.learner.regression import default_regression, learn_regression

        ((owner, schema),) = parties.items()
        size = schema.size if self.size is None else self.size
        if schema.label is None or size is None:
            raise InputError("Expected a schema with a label, and size, the announced number of rows.")
        bounds = schema.label_bounds  # of a number
        own = learn.Public(
            source=schema.box.clip(public.X),
            classes=schema.class_names,
            classifier=self.classifier if bounds is None else self.regressor,
            seed=seed,
            missing=missing_marks(schema),
        )
        if bounds is None:
            inquiry: Inquiry[Any] = make_inquiry(self.algorithm, owner, own, guarantee=guarantee, size=size)
        elif self.cells is None and not isinstance(guarantee, PureDP):
            inquiry = learn_number(owner, own, bounds=bounds, guarantee=guarantee, size=size)
        else:
            plan = default_regression(own.source, guarantee=guarantee, size=size, seed=seed, cells=self.cells)
            inquiry = learn_regression(owner, plan.cells, own, bounds=bounds, guarantees=plan.guarantees)
        return replace(inquiry, forecast=forecast_error(own, guarantee=guarantee, size=size))


__all__ = ["Marginals"]
