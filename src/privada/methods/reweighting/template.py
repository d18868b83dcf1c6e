"""The study that ``privada init --method reweighting`` writes."""

from __future__ import annotations

import numpy as np

from privada.methods.templates import OwnerTemplate, StudyTemplate, Table, describe_owner

STUDY = """\
[study]
title = "How long do the clinic's patients stay?"
again = 0 # another number asks anew, and is paid for again

[owners.clinic]
owner = "clinic/owner.toml" # a learner elsewhere has schema = "schema.toml", the clinic's card, instead

[budget]
epsilon = 1.0
delta = 1e-5

[method]
name = "reweighting"
owner = "clinic"
source = "source.csv" # your rows, with labels: the public source
base = "auto" # or "linear": keep to linear public models
"""
STORY = (
    "You hold 600 labelled patients of your own hospital (`source.csv`). A clinic holds 400 labelled "
    "patients whom nobody else may see. You want a model of the length of stay for *the clinic's* "
    "patients."
)
NAMES = ("age", "pressure", "marker_a", "marker_b")


def template() -> StudyTemplate:
    """A clinic whose patients are older, and stay longer, than the public ones."""
    public = np.random.default_rng(3)
    source, target = public.normal(0, 1, size=(600, 4)), public.normal(0.4, 1, size=(400, 4))
    weights = np.array([1.2, -0.6, 0.8, 0.0])
    days = [
        np.clip(8 + rows @ weights + public.normal(0, 0.5, len(rows)), 0, 20) for rows in (source, target)
    ]
    days[1] = np.clip(days[1] + 2.5 + 0.8 * target[:, 3], 0, 20)
    tables = [
        Table(names=NAMES, rows=np.clip(rows, -4, 4), label="days", labels=labels)
        for rows, labels in zip((source, target), days, strict=True)
    ]
    clinic = describe_owner(
        tables[1],
        name="patients",
        method="reweighting",
        privacy='relation = "replace-one"\nepsilon = 2.0\ndelta = 1e-5',
        bounds=(-4.0, 4.0),
        label=("days", (0.0, 20.0)),
    )
    owners = {"clinic": OwnerTemplate(toml=clinic, table=tables[1])}
    return StudyTemplate(study=STUDY, story=STORY, owners=owners, files={"source.csv": tables[0]})


__all__ = ["template"]
