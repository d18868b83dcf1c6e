"""The study that ``privada init --method evaluation`` writes."""

from __future__ import annotations

import json

import numpy as np

from privada.methods.hypotheses.forms import linear, to_plain
from privada.methods.templates import OwnerTemplate, StudyTemplate, Table, describe_owner

STUDY = """\
[study]
title = "How well does our model do on the clinic's patients?"
again = 0  # another number asks anew, and is paid for again

[owners.clinic]
owner = "clinic/owner.toml"  # a learner elsewhere has schema = "schema.toml" instead

[budget]
epsilon = 1.0  # what one run asks to spend, of what clinic/owner.toml allows

[method]
name = "evaluation"
model = "model.json"  # a linear model, as to_plain writes it; or the path of an ONNX file
bins = 4  # of scores between 0 and 1, for ROC and calibration; 1 asks for predictions alone, with less noise
positive = "ill"  # the class whose score is binned
confidence = 0.95  # of each interval, which includes noise and sampling
"""
STORY = (
    "`model.json` is yours: a linear model of two markers, trained on a survey. A clinic holds 1,500 "
    "patients with the same markers and an outcome, other people than the survey's. You want to know how "
    "well the model does there."
)
NAMES = ("marker_a", "marker_b")


def template() -> StudyTemplate:
    """At the clinic markers are higher, and people fall ill at lower sums than in the survey."""
    from sklearn.linear_model import LogisticRegression

    public = np.random.default_rng(0)
    survey, ill = _people(public, center=(5.0, 5.0), falls_ill_at=11.0, size=800)
    fitted = LogisticRegression().fit(survey, ill)
    model = linear(np.round(fitted.coef_.T, 4), np.round(fitted.intercept_, 4))
    patients, outcome = _people(public, center=(6.0, 5.5), falls_ill_at=9.0, size=1500)
    labels = np.where(outcome, "ill", "well")
    rows = Table(names=NAMES, rows=patients, label="outcome", labels=labels)
    clinic = describe_owner(
        rows,
        name="patients",
        method="evaluation",
        privacy='relation = "add/remove"\nepsilon = 4.0',
        bounds=(0.0, 10.0),
        label=("outcome", ("well", "ill")),
        public_size=False,
        policy="largest_share = 0.25 # of the budget, for one question\n",
    )
    return StudyTemplate(
        study=STUDY,
        story=STORY,
        owners={"clinic": OwnerTemplate(toml=clinic, table=rows)},
        files={"model.json": json.dumps(to_plain(model), indent=2) + "\n"},
    )


def _people(
    public: np.random.Generator, *, center: tuple[float, float], falls_ill_at: float, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Markers between 0 and 10, and who is ill."""
    markers = np.clip(public.normal(center, 1.7, size=(size, 2)), 0, 10)
    risk = 1 / (1 + np.exp(-1.6 * (markers.sum(axis=1) - falls_ill_at)))
    return markers, public.random(size) < risk


__all__ = ["template"]
