# %% [markdown]
# # Can two hospitals answer one question without meeting?
#
# Two hospitals hold tumours with their diagnosis. They share no network and do not trust each other.
# A researcher wants to know how the risk grows with the radius of a tumour's cell nuclei, over both.
# Somebody carries a folder from one to the other.

# %%
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from privada import (
    AskOwner,
    Bins,
    Category,
    CellStatistics,
    Ledger,
    Mailbox,
    Number,
    Owner,
    OwnerKey,
    PureDP,
    Schema,
)
from privada.exceptions import Waiting
from privada.methods.cells import estimate

INK, SOFT, LINE, ACCENT, WARM = "#1f2328", "#5d6670", "#e4e1d9", "#0b6e63", "#b3651b"
RELATION = "add/remove"
exchange = TemporaryDirectory()

# %% [markdown]
# **Both hospitals** use one public schema. Each has its own rows, key, ledger and budget. The small one
# is the more careful.

# %%
tumours = load_breast_cancer()
radius, outcome = tumours.data[:, :1], np.where(tumours.target == 0, "malignant", "benign")
large = np.random.default_rng(1).random(len(radius)) < 0.7

schema = Schema(
    columns=[Number(name="radius", low=5, high=30)],
    label=Category(name="outcome", values=("benign", "malignant")),
)


def hospital(rows, budget):
    allowed = PureDP(epsilon=budget, relation=RELATION)
    ledger = Ledger.open(":memory:", OwnerKey.generate())
    ledger.open_budget("tumours", allowed)
    return Owner(
        radius[rows],
        y=outcome[rows],
        schema=schema,
        dataset="tumours",
        budget=allowed,
        ledger=ledger,
    )


hospitals = {"north": hospital(large, 4.0), "south": hospital(~large, 1.0)}

# %% [markdown]
# **The researcher** writes a learner: a generator that asks both at once and pools the releases.
# It does no input or output of its own; the folder drives it.

# %%
edges = np.arange(10.0, 22.0, 2.0)
questions = {
    name: CellStatistics(
        tables=(Bins(feature=0, edges=edges),),
        n_classes=2,
        guarantee=PureDP(epsilon=epsilon, relation=RELATION),
    )
    for name, epsilon in {"north": 1.0, "south": 0.5}.items()
}


def pooled():
    releases = yield [AskOwner(name, question) for name, question in questions.items()]
    tables = [
        estimate(question, release).tables[0]
        for question, release in zip(questions.values(), releases, strict=True)
    ]
    return dict(zip(questions, tables, strict=True)), releases


# %% [markdown]
# Releases are accepted only if the hospitals' own keys signed them; the keys were exchanged beforehand. The
# first run writes the questions, and waits.

# %%
keys = {name: owner.public_key for name, owner in hospitals.items()}
mailbox = Mailbox.open(exchange.name, keys=keys)
try:
    mailbox.learn(pooled())
except Waiting:
    print(
        "The researcher asked, and waits for:",
        *(path.name for path in Path(exchange.name, "questions").iterdir()),
    )

# %% [markdown]
# The folder travels. Each hospital answers its own questions: check, charge, open, draw, sign.

# %%
for name, owner in hospitals.items():
    for done in mailbox.answer(name, owner):
        print(f"{name}: {done.outcome}. {owner.ledger.remaining('tumours')}")

# %% [markdown]
# The folder comes back. The same learner runs again from its beginning, and this time it finishes. Another
# run would cost nothing: a question that was answered keeps its release.

# %%
tables, releases = mailbox.learn(pooled())
for release in releases:
    print(release.explain())
for name, owner in hospitals.items():
    mine = [release.receipt for release in releases if release.receipt.public == owner.public_key]
    print(f"{name}: {owner.ledger.verify(mine)}")
exchange.cleanup()

# %% [markdown]
# The picture. Everything in it is computed from releases. Noise is independent, so pooling helps: the pooled
# risk is less noisy than either hospital's.

# %%


def risk(table):
    """Share of malignant tumours in each bin, where there are enough to tell."""
    counts = np.maximum(table, 0.0)
    size = counts.sum(axis=1)
    return np.where(size >= 8, counts[:, 1] / np.maximum(size, 1), np.nan)


places = np.append(edges, edges[-1] + 2) - 1
names = [f"< {edges[0]:g}", *(f"{a:g}–{a + 2:g}" for a in edges[:-1]), f"≥ {edges[-1]:g}"]
together = sum(table.counts for table in tables.values())

figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
for (name, table), colour, mark in zip(tables.items(), (ACCENT, WARM), ("o", "s"), strict=True):
    label = f"{name}: ε = {questions[name].guarantee.epsilon:g}, about {table.total:.0f} tumours"
    axes.scatter(
        places, risk(table.counts), s=20 + 2 * table.size, color=colour, alpha=0.75, marker=mark, label=label
    )
axes.plot(places, risk(together), color=INK, linewidth=2.2, label="both together", zorder=1)
axes.set_xticks(places, names)
axes.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
axes.set_ylim(-0.08, 1.08)
axes.set_xlabel("mean radius of cell nuclei", color=SOFT)
axes.set_ylabel("malignant", color=SOFT)
axes.set_title(
    "How does the risk grow, over two hospitals that never met?", loc="left", color=INK, fontsize=11.5
)
axes.tick_params(colors=SOFT, length=0)
axes.grid(axis="y", color=LINE)
axes.set_axisbelow(True)
axes.spines[:].set_visible(False)
axes.legend(
    frameon=False, labelcolor=INK, loc="center right", markerscale=0.6, title="size: tumours in the bin"
)
figure.savefig("02_two_institutions.png", dpi=150)
