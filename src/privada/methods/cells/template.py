"""The study that ``privada init --method cells`` writes."""

from __future__ import annotations

import numpy as np

from privada.methods.templates import OwnerTemplate, StudyTemplate, Table, describe_owner

STUDY = """\
[study]
title = "How ill are the clinic's patients, cell by cell?"
again = 0  # another number asks anew, and is paid for again

[owners.clinic]
owner = "clinic/owner.toml"  # a learner elsewhere has schema = "schema.toml" instead

[budget]
epsilon = 1.0  # what one run asks to spend, of what clinic/owner.toml allows

[method]
name = "cells"
centers = "centers.csv"
by_label = true
"""
STORY = (
    "`centers.csv` are public: twelve k-means centres of a survey of two markers. A clinic holds 1,200 "
    "patients with the same markers and an outcome. You want to know how many are ill around each centre."
)
NAMES = ("marker_a", "marker_b")
CELLS = 12


def template() -> StudyTemplate:
    """The clinic sees other people than the survey."""
    from sklearn.cluster import KMeans

    public = np.random.default_rng(0)
    survey = np.clip(public.normal(5.0, 1.8, size=(800, 2)), 0, 10)
    patients = np.clip(public.normal((6.0, 5.5), 1.6, size=(1200, 2)), 0, 10)
    risk = 1 / (1 + np.exp(-1.6 * (patients.sum(axis=1) - 12.0)))
    ill = np.where(public.random(len(patients)) < risk, "ill", "well")
    centers = KMeans(n_clusters=CELLS, n_init=1, random_state=0).fit(survey).cluster_centers_
    rows = Table(names=NAMES, rows=patients, label="outcome", labels=ill)
    clinic = describe_owner(
        rows,
        name="patients",
        method="cells",
        privacy='relation = "add/remove"\nepsilon = 4.0',
        bounds=(0.0, 10.0),
        label=("outcome", ("well", "ill")),
        public_size=False,
        policy="largest_share = 0.25 # of the budget, for one question\n",
    )
    owners = {"clinic": OwnerTemplate(toml=clinic, table=rows)}
    return StudyTemplate(
        study=STUDY, story=STORY, owners=owners, files={"centers.csv": Table(names=NAMES, rows=centers)}
    )


__all__ = ["template"]
