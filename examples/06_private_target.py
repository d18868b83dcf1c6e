# %% [markdown]
# # How much of a private target does a public source save?
#
# An office holds labelled rows of its own district and may not show them. You hold rows of five other
# districts, each a little different. How large must ε, or the number of private rows, be?
#
# The data and the rival that has no source come from privada-lab, which `pip install ./lab` adds.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np

from privada import ReweightedRegressor
from privada.exceptions import PrivadaWarning
from privada_lab.baselines import DPLinearRegression
from privada_lab.datasets.domain_pairs import drifting

warnings.simplefilter("ignore", PrivadaWarning)
INK, SOFT, ACCENT, PLAIN, WARM = "#1f2328", "#5d6670", "#0b6e63", "#9aa3ab", "#c2571a"

# %% [markdown]
# One adaptation, said in words.

# %%
pair = drifting(0, rows=120, n=500)
model = ReweightedRegressor(epsilon=1.0, delta=1e-5, base="linear", random_state=0)
model.fit(pair.source.X, pair.source.y, pair.train.X, pair.train.y)
print(model.guarantee_)
print(f"expected before anything was asked: {model.forecast_}")

# %% [markdown]
# Mean squared error in the private district, against ε and against the number of private rows: ours, noisy
# sufficient statistics of the private rows alone, and the public model. Three fresh sets of districts each.


# %%
def errors(epsilon, n, seed):
    pair = drifting(seed, rows=120, n=n)
    ours = ReweightedRegressor(epsilon=epsilon, delta=1e-5, base="linear", random_state=0)
    ours.fit(pair.source.X, pair.source.y, pair.train.X, pair.train.y)
    alone = DPLinearRegression(epsilon=epsilon, delta=1e-5, norm_bound=1.0).fit(pair.train.X, pair.train.y)
    features = ours.model_.features
    public = pair.test.X @ features.weights[:, 0] + features.starts[0]
    found = (ours.predict(pair.test.X), alone.predict(pair.test.X), public)
    return [np.mean((each - pair.test.y) ** 2) for each in found]


EPSILONS, SIZES = (0.5, 1.0, 4.0), (250, 1000, 4000)
by_epsilon = np.array([[errors(epsilon, 500, seed) for seed in range(3)] for epsilon in EPSILONS])
by_size = np.array([[errors(1.0, n, 10 + seed) for seed in range(3)] for n in SIZES])

# %%
figure, panels = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
names = (("ours", ACCENT), ("private rows alone", WARM), ("public rows alone", PLAIN))
for axes, places, table, label in (
    (panels[0], EPSILONS, by_epsilon, "ε, with 500 private rows"),
    (panels[1], SIZES, by_size, "private rows, at ε = 1"),
):
    for at, (name, colour) in enumerate(names):
        mean, error = table[:, :, at].mean(axis=1), table[:, :, at].std(axis=1, ddof=1) / np.sqrt(3)
        axes.errorbar(places, mean, yerr=error, color=colour, marker="o", capsize=3, label=name)
    axes.set(xscale="log", yscale="log", xlabel=label)
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
panels[0].set_ylabel("mean squared error")
panels[0].legend(frameon=False)
figure.suptitle("How much of a private target does a public source save?", color=INK)
figure.savefig("06_private_target.png", dpi=150)
