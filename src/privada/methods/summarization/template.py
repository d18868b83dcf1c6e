"""The study that ``privada init --method summarization`` writes."""

from __future__ import annotations

import numpy as np

from privada.methods.templates import OwnerTemplate, StudyTemplate, Table, describe_owner

STUDY = """\
[study]
title = "Which rows of two hospitals look like a third one's patients?"
again = 0 # another number asks anew, and is paid for again

[owners.north]
owner = "north/owner.toml" # a learner elsewhere has schema = "schema.toml", an owner's card, instead

[owners.south]
owner = "south/owner.toml"

[owners.hospital]
owner = "hospital/owner.toml"

[budget]
epsilon = 2.0
delta = 1e-4

[method]
name = "summarization"
consumer = "hospital" # holds the validation set; all others contribute rows
curator = "curator" # who may receive rows: owners' policies name the same
size = 60 # rows of the summary
gamma = 0.5 # kernel exp(-gamma |x - y|²)
summary = "summary.npz" # a new file, for the curator
"""
STORY = (
    "Two hospitals hold rows that a curator may receive. A third one has a small validation set that "
    "nobody may see. You want 60 rows that look like the third hospital's patients. Rows that are "
    "gathered are *disclosed* to the curator, which is no differential privacy, and logged as such."
)
NAMES = ("age", "pressure", "marker")
MIDDLES = {"north": -0.8, "south": 0.8, "hospital": 0.7}


def template() -> StudyTemplate:
    """Three hospitals; the validation set looks like one of the two others."""
    public = np.random.default_rng(13)
    owners = {}
    for name, middle in MIDDLES.items():
        size = 150 if name == "hospital" else 300
        X = np.clip(public.normal(middle, 0.6, size=(size, 3)), -3, 3)
        ill = np.where(public.random(size) < 1 / (1 + np.exp(-X.sum(axis=1))), "ill", "well")
        rows = Table(names=NAMES, rows=X, label="outcome", labels=ill)
        toml = describe_owner(
            rows,
            name=f"patients of {name}",
            method="summarization",
            privacy='relation = "replace-one"\nepsilon = 4.0\ndelta = 3e-4',
            bounds=(-3.0, 3.0),
            label=("outcome", ("well", "ill")),
            policy='curators = ["curator"] # who may receive rows\n',
        )
        owners[name] = OwnerTemplate(toml=toml, table=rows)
    return StudyTemplate(study=STUDY, story=STORY, owners=owners)


__all__ = ["template"]
