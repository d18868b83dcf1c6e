"""The row of summarization in ``privada demo``: a training set of upright digits out of many rotated ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.methods.example import DemoRow
from privada.methods.method import Public
from privada.methods.pictures import Picture, Tiles
from privada.methods.summarization.curator import Curator, OwnerNode
from privada.methods.summarization.learner.summary import herd
from privada.methods.summarization.method import Summarization
from privada.methods.summarization.questions.matching import FourierEmbedding
from privada.parties.owner import Owner
from privada.parties.permissions import Policy
from privada.parties.schema import Category, Schema
from privada.privacy.guarantee import ApproxDP
from privada.privacy.relation import Relation

SIZE, OWNERS, GAMMA = 150, 3, 0.05
SHOWN = 40  # digits in each picture
CLASSES = tuple(range(10))
BUDGET = ApproxDP(epsilon=3.0, delta=1e-4, relation=Relation.REPLACE_ONE)


def demo(seed: int) -> DemoRow:
    """Owners hold digits, most of them rotated; a consumer's private validation set is upright."""
    tables, validation, test = _digits(seed)
    parties = {"consumer": _owner(validation, None, "validation")}
    parties |= {f"owner-{k}": _owner(X, y, f"owner-{k}") for k, (X, y) in enumerate(tables)}
    schemas = {name: owner.schema for name, owner in parties.items()}
    inquiry = Summarization(size=SIZE, gamma=GAMMA).prepare(Public(), schemas, BUDGET, seed=seed)
    nodes = {name: OwnerNode(name, owner) for name, owner in parties.items()}
    summary = Curator().drive(inquiry, nodes)
    X, y = np.vstack([X for X, _ in tables]), np.concatenate([y for _, y in tables])
    embedding = FourierEmbedding.of(width=64, n_features=140, gamma=GAMMA, random_state=seed)
    rng = np.random.default_rng(seed)
    uniform = rng.choice(len(X), SIZE, replace=False)
    greedy = herd(embedding.transform(X), embedding.mean(validation), SIZE)
    return DemoRow(
        method="summarization",
        title="gather training rows that match a private validation set",
        holders=f"{OWNERS} owners hold {len(X)} digits; a consumer holds {len(validation)} of another kind.",
        guarantee=summary.allocation.releases[0].guarantee,
        score=f"accuracy of a classifier trained on {SIZE} gathered rows, in percent",
        without=_accuracy(X[uniform], y[uniform], test),
        ours=_accuracy(summary.X, summary.y, test),
        clear=_accuracy(X[greedy], y[greedy], test),
        ledger=parties["consumer"].ledger.export(),
        stamps=tuple(summary.to_dict()["stamps"]),
        surprise=(
            "The rows without privacy match the consumer's mean more closely, but the mean is not the score: "
            "neither choice looks at the labels, and which 150 rows train better is partly chance."
        ),
        picture=_gathered(X[uniform], summary.X),
    )


def _gathered(uniform: FloatArray, ours: FloatArray) -> Picture:
    def tiles(title: str, rows: FloatArray) -> Tiles:
        spread = np.linspace(0, len(rows) - 1, SHOWN).astype(int)  # from the whole choice, not its beginning
        return Tiles(title=title, images=rows[spread].reshape(-1, 8, 8))

    caption = (
        f"{SHOWN} of the {SIZE} rows of each choice. The consumer's digits are upright; most owners hold "
        "turned ones. The owners hand their chosen rows to a curator whom they trust: these are not private."
    )
    parts = tiles("Gathered at random", uniform), tiles("Gathered to match the private set", ours)
    return Picture(caption=caption, parts=parts)


def _accuracy(X: FloatArray, y: Any, test: tuple[FloatArray, npt.NDArray[Any]]) -> float:
    from sklearn.linear_model import LogisticRegression

    return 100 * float(LogisticRegression(max_iter=500).fit(X, y).score(*test))


def _owner(X: FloatArray, y: Any, name: str) -> Owner:
    label = None if y is None else Category(name="digit", values=CLASSES)
    return Owner(
        X,
        y=y,
        schema=Schema.of_numbers(bounds=(0.0, 4.0), width=64, size=len(X), label=label),
        dataset=name,
        budget=BUDGET,
        policy=Policy(curators=("curator",)),
        accounting="gaussian",
    )


def _digits(
    seed: int,
) -> tuple[list[tuple[FloatArray, Any]], FloatArray, tuple[FloatArray, npt.NDArray[Any]]]:
    """Scikit-learn's digits: 600 turned ones over all owners, 600 upright ones at the first."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    rows, labels = X[order] / 4.0, y[order]
    turned = np.rot90(rows[:600].reshape(-1, 8, 8), axes=(1, 2)).reshape(-1, 64)
    tables = list(zip(np.array_split(turned, OWNERS), np.array_split(labels[:600], OWNERS), strict=True))
    tables[0] = (np.vstack([tables[0][0], rows[600:1200]]), np.concatenate([tables[0][1], labels[600:1200]]))
    return tables, rows[1200:1400], (rows[1400:], labels[1400:])


__all__ = ["demo"]
