"""The study that ``privada init --method marginals`` writes."""

from __future__ import annotations

import numpy as np

from privada.methods.templates import OwnerTemplate, StudyTemplate, Table, describe_owner

STUDY = """\
[study]
title = "Who is ill, learnt from labels that stay at the clinic?"
again = 0 # another number asks anew, and is paid for again

[owners.clinic]
owner = "clinic/owner.toml" # a learner elsewhere has schema = "schema.toml", the clinic's card, instead

[budget]
epsilon = 1.0
delta = 1e-5

[method]
name = "marginals"
owner = "clinic"
source = "source.csv" # your rows, without labels
question = "auto" # or "descent", "cells", "marginals"
"""
STORY = (
    "You hold 800 patients without labels (`source.csv`). A clinic holds 1,000 labelled patients whom "
    "nobody else may see. You want a classifier for *the clinic's* patients."
)
NAMES = ("age", "pressure", "marker_a", "marker_b", "marker_c")


def template() -> StudyTemplate:
    """A linear risk in five features."""
    public = np.random.default_rng(7)
    source = np.clip(public.normal(0, 1.2, size=(800, 5)), -4, 4)
    target = np.clip(public.normal(0.2, 1, size=(1000, 5)), -4, 4)
    risk = 1 / (1 + np.exp(-2 * target @ [1.0, -0.7, 0.5, 0.0, 0.3]))
    ill = np.where(public.random(1000) < risk, "ill", "well")
    rows = Table(names=NAMES, rows=target, label="outcome", labels=ill)
    clinic = describe_owner(
        rows,
        name="patients",
        method="marginals",
        privacy='relation = "replace-one"\nepsilon = 2.0\ndelta = 1e-5',
        bounds=(-4.0, 4.0),
        label=("outcome", ("well", "ill")),
    )
    owners = {"clinic": OwnerTemplate(toml=clinic, table=rows)}
    files = {"source.csv": Table(names=NAMES, rows=source)}
    return StudyTemplate(study=STUDY, story=STORY, owners=owners, files=files)


__all__ = ["template"]
