"""The example that ``privada init`` writes: a clinic's patients in the cells of a public survey.

Everything is generated. Two markers in blood are measured in a public survey
(source, without labels) and in a clinic (target, private, with the outcome).
The survey's k-means centres are the public cells.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

STUDY = """\
[study]
title = "How ill are the clinic's patients, cell by cell?"
seed = 0  # of public randomness; another seed makes another question, paid for again

[owners.clinic]
owner = "clinic/owner.toml"  # a learner elsewhere has schema = "schema.toml" instead

[budget]
epsilon = 1.0  # what one run asks to spend, of what clinic/owner.toml allows

[method]
name = "cells"
centers = "centers.csv"
by_label = true
"""
OWNER = """\
[data]
name = "patients"
path = "patients.csv"

[privacy]
relation = "add/remove"
epsilon = 4.0

[ledger]
url = "ledger.sqlite"
key = "owner.key"

[policy]
methods = ["cells"]
largest_share = 0.25
approval = false

[[schema.columns]]
name = "marker_a"
low = 0.0
high = 10.0

[[schema.columns]]
name = "marker_b"
low = 0.0
high = 10.0

[schema.label]
name = "outcome"
values = ["well", "ill"]
"""
README = """\
# An example study

- `survey.csv` is public: two markers, no outcome. `centers.csv` are its k-means centres, the public cells.
- `clinic/` is an owner: private rows, a policy (`owner.toml`), a signing key and a ledger.
- `study.toml` says who is asked, for how much, and by which method.

Price it: `privada price study.toml`. Run it: `privada run study.toml --page result.html`.
A run takes a quarter of the clinic's budget. The same study again gets the same answer and costs nothing
more; another `seed` makes another question, and the fifth is refused, whatever the study says.
See what was paid: `privada ledger show clinic/owner.toml`. All rows are generated.
"""
CELLS = 12


def write_example(folder: Path) -> list[Path]:
    """Write the study into a new or empty folder; returns the files."""
    from privada.parties.owner_file import OwnerFile
    from privada.privacy.ledger import Ledger
    from privada.privacy.receipt import OwnerKey

    (folder / "clinic").mkdir(parents=True, exist_ok=True)
    survey, patients, outcome = generate()
    texts = {
        "README.md": README,
        "study.toml": STUDY,
        "survey.csv": _csv(["marker_a", "marker_b"], survey),
        "centers.csv": _csv(None, _centers(survey)),
        "clinic/owner.toml": OWNER,
        "clinic/patients.csv": _csv(["marker_a", "marker_b", "outcome"], patients, outcome),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    key = OwnerKey.generate()
    key.save(folder / "clinic/owner.key")
    Ledger.open(folder / "clinic/ledger.sqlite", key).close()
    OwnerFile.read(folder / "clinic/owner.toml").open_budget()
    return [folder / name for name in (*texts, "clinic/owner.key", "clinic/ledger.sqlite")]


def generate(seed: int = 0) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Survey, patients and their outcome; the clinic sees other people than the survey."""
    public = np.random.default_rng(seed)
    survey = np.clip(public.normal(5.0, 1.8, size=(800, 2)), 0, 10)
    patients = np.clip(public.normal((6.0, 5.5), 1.6, size=(1200, 2)), 0, 10)
    risk = 1 / (1 + np.exp(-1.6 * (patients.sum(axis=1) - 12.0)))
    return survey, patients, np.where(public.random(len(patients)) < risk, "ill", "well")


def _centers(survey: npt.NDArray[Any]) -> npt.NDArray[Any]:
    from sklearn.cluster import KMeans

    found: npt.NDArray[Any] = KMeans(n_clusters=CELLS, n_init=1, random_state=0).fit(survey).cluster_centers_
    return found


def _csv(names: list[str] | None, numbers: npt.NDArray[Any], label: npt.NDArray[Any] | None = None) -> str:
    rows = [",".join(f"{value:.3f}" for value in row) for row in numbers]
    if label is not None:
        rows = [f"{row},{last}" for row, last in zip(rows, label, strict=True)]
    return "\n".join([*([",".join(names)] if names else []), *rows]) + "\n"


__all__ = ["generate", "write_example"]
