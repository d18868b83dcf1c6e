# %% [markdown]
# # Where should new service points go, if helpers may not be named?
#
# A registry knows where 600 volunteers live and may not tell. A town knows its homes and can
# open twelve service points. Points next door to volunteers would be wasted; which homes are left?

# %%
import matplotlib.pyplot as plt
import numpy as np

from privada import SourceTargetMedoids
from privada.methods.clustering import cost, medoids

INK, SOFT, LINE, ACCENT, PLAIN, WARM = "#1f2328", "#5d6670", "#e4e1d9", "#0b6e63", "#c6ccd1", "#c2571a"

# %% [markdown]
# Twelve quarters; volunteers live in five of them. The town is public, the volunteers are not.

# %%
rng = np.random.default_rng(7)
quarters = rng.uniform(-0.32, 0.32, size=(12, 2))
homes = quarters[rng.integers(12, size=800)] + rng.normal(0, 0.02, size=(800, 2))
helpers = quarters[rng.integers(5, size=600)] + rng.normal(0, 0.02, size=(600, 2))

# %% [markdown]
# What can be expected, before anything is spent; then one question, at ε = 1 for each volunteer.

# %%
model = SourceTargetMedoids(12, norm_bound=0.5, epsilon=1.0, random_state=0)
print(model.forecast(homes))
model.fit(helpers, Xt=homes)
print(model.release_.explain())

# %% [markdown]
# Beside it: the choice that ignores the volunteers. (Only an author of an example may compare on the
# true volunteers: here everybody has them.)

# %%
ignoring = homes[medoids(homes, 12).indices]
for name, centres in (("ignoring the volunteers", ignoring), ("ours, private", model.cluster_centers_)):
    print(f"{name}: {5000 * cost(homes, helpers, centres):.0f} m to the nearest help, on average")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 5), sharex=True, sharey=True, layout="constrained")
figure.patch.set_facecolor("white")
for axes, title, centres in (
    (left, "Ignoring the volunteers", ignoring),
    (right, "Ours, ε = 1", model.cluster_centers_),
):
    axes.scatter(*homes.T, s=5, color=PLAIN, linewidths=0, label="homes (public)")
    axes.scatter(
        *centres.T, s=60, marker="^", color=ACCENT, edgecolor="white", label="service points", zorder=3
    )
    axes.set_title(title, color=INK, fontsize=11, loc="left")
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color(LINE)
left.scatter(*helpers.T, s=4, color=WARM, linewidths=0, label="volunteers (private)", alpha=0.6)
shown = model.source_[rng.permutation(len(model.source_))[:600]]
right.scatter(*shown.T, s=4, color=SOFT, linewidths=0, label="what the release makes plausible", alpha=0.6)
entries: dict[str, object] = {}
for axes in (left, right):
    handles, labels = axes.get_legend_handles_labels()
    entries |= dict(zip(labels, handles, strict=True))
figure.legend(
    list(entries.values()),
    list(entries),
    loc="outside lower center",
    ncols=4,
    frameon=False,
    fontsize=9,
    labelcolor=SOFT,
)
figure.savefig("03_choose_centres.png", dpi=150)
