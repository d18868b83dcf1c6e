# %% [markdown]
# # Can a model be moved to another domain if its training rows may not be seen?
#
# A clinic has 600 labelled measurements and may not show them. Another device, here, gives 300 unlabelled
# ones, turned and shifted. One noisy release of class statistics is enough to label them.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from privada import TransportClassifier

INK, SOFT, LINE, PLAIN = "#1f2328", "#5d6670", "#e4e1d9", "#c6ccd1"
COLOURS = np.array(["#0b6e63", "#c2571a", "#5b4b8a"])
CLASSES = (0, 1, 2)

# %% [markdown]
# Two domains: the second device turns measurements by thirty degrees and moves them.

# %%
rng = np.random.default_rng(5)
places = np.array([[-0.9, -0.2], [0.7, -0.6], [0.3, 0.9]])
ys, yt = rng.integers(3, size=600), rng.choice(3, size=300, p=[0.5, 0.2, 0.3])
Xs = places[ys] + rng.normal(0, 0.22, size=(600, 2))
turn = np.radians(30)
rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
Xt = (places[yt] + rng.normal(0, 0.16, size=(300, 2))) @ rotation.T + [0.75, 0.35]

# %% [markdown]
# Beside it: a classifier trained on the clinic's rows in the clear, and not adapted.

# %%
# Class means and their transport can be drawn; the default for tables is a noisy logistic regression.
settings = {"epsilon": 1.0, "delta": 1e-4, "classes": CLASSES, "bounds": (-3, 3)}
model = TransportClassifier(**settings, algorithm="statistics").fit(Xs, ys, Xt)
print(model.release_.explain())
plain = LogisticRegression().fit(Xs, ys).score(Xt, yt)
print(f"not adapted, in the clear: {100 * plain:.0f} % right")
print(f"adapted, {model.guarantee_}: {100 * np.mean(model.transduction_ == yt):.0f} % right")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.6), sharex=True, sharey=True, layout="constrained")
figure.patch.set_facecolor("white")
left.scatter(*Xs.T, s=6, c=COLOURS[ys], linewidths=0, alpha=0.5)
left.scatter(*Xt.T, s=6, color=PLAIN, linewidths=0)
left.set_title("Source (private, coloured) and target", color=INK, fontsize=11, loc="left")
features = model.model_.features
prototypes = model.model_.sources @ np.linalg.pinv(features.projection) + features.centre
for c in CLASSES:
    strongest = np.argsort(model.coupling_[c])[-60:]
    for j in strongest:
        right.plot(*zip(prototypes[c], Xt[j], strict=True), color=COLOURS[c], linewidth=0.4, alpha=0.25)
right.scatter(*Xt.T, s=6, c=COLOURS[model.transduction_], linewidths=0)
right.scatter(
    *prototypes.T, s=90, marker="X", c=COLOURS, edgecolor="white", zorder=3, label="noisy prototypes"
)
right.scatter(*model.mapped_.T, s=70, marker="o", c=COLOURS, edgecolor=INK, zorder=3, label="where they go")
right.set_title("What is released, its coupling, and the labels, ε = 1", color=INK, fontsize=11, loc="left")
right.legend(frameon=False, fontsize=9, labelcolor=SOFT, loc="lower right")
for axes in (left, right):
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color(LINE)
figure.savefig("05_adapt_to_a_target.png", dpi=150)
