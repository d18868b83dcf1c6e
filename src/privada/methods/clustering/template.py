"""The study that ``privada init --method clustering`` writes."""

from __future__ import annotations

import numpy as np

from privada.methods.templates import OwnerTemplate, StudyTemplate, Table, describe_owner

STUDY = """\
[study]
title = "Where should eight service points stand, if volunteers may not be named?"
again = 0 # another number asks anew, and is paid for again

[owners.registry]
owner = "registry/owner.toml" # a learner elsewhere has schema = "schema.toml", the registry's card, instead

[budget]
epsilon = 1.0

[method]
name = "clustering"
owner = "registry"
target = "homes.csv" # public points, of which some are chosen
n_centers = 8
norm_bound = 3.0 # radius of a public ball around 0 that holds all homes and volunteers
"""
STORY = (
    "600 homes are public (`homes.csv`). A registry knows 2,000 volunteers, who help whoever lives near "
    "them and may not be named. Eight service points shall stand where volunteers do not help."
)
NAMES = ("east", "north")


def template() -> StudyTemplate:
    """Homes around twelve places; volunteers live at half of them."""
    public = np.random.default_rng(11)
    places = public.uniform(-1.5, 1.5, size=(12, 2))
    homes = places[public.integers(12, size=600)] + public.normal(0, 0.1, size=(600, 2))
    volunteers = places[public.integers(6, size=2000)] + public.normal(0, 0.15, size=(2000, 2))
    rows = Table(names=NAMES, rows=np.clip(volunteers, -2, 2))
    registry = describe_owner(
        rows,
        name="volunteers",
        method="clustering",
        privacy='relation = "add/remove"\nepsilon = 2.0',
        bounds=(-2.0, 2.0),
        public_size=False,
    )
    owners = {"registry": OwnerTemplate(toml=registry, table=rows)}
    files = {"homes.csv": Table(names=NAMES, rows=np.clip(homes, -2, 2))}
    return StudyTemplate(study=STUDY, story=STORY, owners=owners, files=files)


__all__ = ["template"]
