"""The study that ``privada init --method transport`` writes."""

from __future__ import annotations

import numpy as np

from privada.methods.templates import OwnerTemplate, StudyTemplate, Table, describe_owner

STUDY = """\
[study]
title = "Which of our scans show a lesion, if only the clinic has labels?"
again = 0 # another number asks anew, and is paid for again

[owners.clinic]
owner = "clinic/owner.toml" # a learner elsewhere has schema = "schema.toml", the clinic's card, instead

[budget]
epsilon = 1.0
delta = 1e-5

[method]
name = "transport"
owners = ["clinic"] # one or several
target = "target.csv" # your rows, without labels
"""
STORY = (
    "You hold 300 scans without labels (`target.csv`). A clinic holds 900 labelled scans of another "
    "scanner, which it may not show. You want labels for *your* scans."
)
NAMES = ("contrast", "edges", "texture", "mean")


def template() -> StudyTemplate:
    """Two classes; the target's scanner shifts every feature."""
    public = np.random.default_rng(5)
    ill, hidden = public.integers(2, size=900), public.integers(2, size=300)
    middle = np.array([[-0.8, 0.5, -0.3, 0.2], [0.8, -0.5, 0.3, -0.2]])
    source = np.clip(middle[ill] + public.normal(0, 0.7, size=(900, 4)), -4, 4)
    target = np.clip(middle[hidden] + public.normal(0.3, 0.7, size=(300, 4)), -4, 4)
    rows = Table(names=NAMES, rows=source, label="finding", labels=np.array(["none", "lesion"])[ill])
    clinic = describe_owner(
        rows,
        name="scans",
        method="transport",
        privacy='relation = "replace-one"\nepsilon = 2.0\ndelta = 1e-5',
        bounds=(-4.0, 4.0),
        label=("finding", ("none", "lesion")),
    )
    owners = {"clinic": OwnerTemplate(toml=clinic, table=rows)}
    files = {"target.csv": Table(names=NAMES, rows=target)}
    return StudyTemplate(study=STUDY, story=STORY, owners=owners, files=files)


__all__ = ["template"]
