# %% [markdown]
# # Which rows of three hospitals look like a fourth one's patients?
#
# A consumer holds a few unlabelled rows and may not show them. Three owners hold labelled rows, most of
# them of another kind, and may not show them to each other. A trusted curator may gather 150 of them.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from privada import PrivateSummarizer
from privada.methods.summarization import mmd2

INK, SOFT, LINE, ACCENT, PLAIN, WARM = "#1f2328", "#5d6670", "#e4e1d9", "#0b6e63", "#c6ccd1", "#c2571a"

# %% [markdown]
# Two measurements of each patient. The consumer's patients lie on a crescent; one owner has many like them,
# the others nearly none. The label depends on both measurements.

# %%
rng = np.random.default_rng(4)


def crescent(n):
    angle = rng.uniform(0.1 * np.pi, 0.9 * np.pi, size=n)
    return np.column_stack([2 * np.cos(angle), 2 * np.sin(angle) - 0.5]) + rng.normal(0, 0.15, size=(n, 2))


def cloud(n, middle):
    return rng.normal(middle, 0.7, size=(n, 2))


def ill(X):
    return (np.sin(2 * X[:, 0]) + X[:, 1] > 0.6).astype(int)


validation = crescent(300)
rows = [np.vstack([crescent(1500), cloud(500, (0, -1.5))]), cloud(1500, (1, -1.5)), cloud(1500, (-1, -1.5))]
owners = [(X, ill(X)) for X in rows]

# %% [markdown]
# What owners learn of each other and of the consumer is (1, 1e-5)-differentially private. The curator
# sees 150 raw rows: every owner's policy must allow that, and every ledger says so.

# %%
model = PrivateSummarizer(
    150, gamma=0.5, bounds=(-4, 4), epsilon=1.0, delta=1e-5, classes=(0, 1), random_state=0
)
model.fit(validation, owners=owners)
print(model.guarantee_)
for name, count in model.allocation_.rows.items():
    print(f"{name}: {count} rows, worth {model.contributions_[name]:.2f} to the consumer")

# %% [markdown]
# Beside it: as many rows drawn alike from all. Test rows are fresh ones of the consumer's kind.

# %%
test = crescent(1000)
picked = [X[rng.choice(len(X), 50, replace=False)] for X, _ in owners]
uniform = np.vstack(picked)
scores = {}
for name, X, y in (("Drawn alike from all", uniform, ill(uniform)), ("Ours, ε = 1", model.X_, model.y_)):
    accuracy = KNeighborsClassifier(5).fit(X, y).score(test, ill(test))
    scores[name] = f"{name}: MMD² {mmd2(X, test, gamma=0.5):.3f}, accuracy {accuracy:.0%}"
    print(scores[name])

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), sharex=True, sharey=True, layout="constrained")
figure.patch.set_facecolor("white")
for axis, title, X in zip(axes, scores.values(), (uniform, model.X_), strict=True):
    for held in rows:
        axis.scatter(*held.T, s=3, color=PLAIN, linewidths=0, label="owners' rows (private)")
    axis.scatter(*validation.T, s=8, color=WARM, linewidths=0, alpha=0.5, label="validation set (private)")
    axis.scatter(*X.T, s=18, color=ACCENT, edgecolor="white", linewidths=0.4, label="gathered", zorder=3)
    axis.set_title(title, color=INK, fontsize=10, loc="left")
    axis.set_aspect("equal")
    axis.set_xticks([])
    axis.set_yticks([])
    for side in axis.spines.values():
        side.set_color(LINE)
handles, labels = axes[0].get_legend_handles_labels()
figure.legend(
    handles[2:], labels[2:], loc="outside lower center", ncols=3, frameon=False, fontsize=9, labelcolor=SOFT
)
figure.savefig("07_gather_training_rows.png", dpi=150)
