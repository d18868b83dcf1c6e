# %% [markdown]
# # How noisy is a private histogram?
#
# A referral clinic holds measurements of tumours (the radius of their cell nuclei) that must not leave
# it. A screening study has published its own. Are the clinic's larger? One question, one release, one
# picture.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from privada import Bins, CellStatistics, Number, Owner, PureDP, Schema

INK, SOFT, LINE, ACCENT, PLAIN = "#1f2328", "#5d6670", "#e4e1d9", "#0b6e63", "#c6ccd1"

# %% [markdown]
# Real data, made into two places: the clinic sees most of the malignant tumours. Only the split is
# random here, and public; nothing below seeds any noise.

# %%
tumours = load_breast_cancer()
radius, malignant = tumours.data[:, 0], tumours.target == 0
at_clinic = np.random.default_rng(0).random(len(radius)) < np.where(malignant, 0.8, 0.3)
clinic_rows, study_rows = radius[at_clinic], radius[~at_clinic]

# %% [markdown]
# **The clinic** declares what anybody may know (the radius is on a scale from 5 to 30) and the most that can
# ever be spent: ε = 1. It opens a budget on a ledger, here one in memory.

# %%
RELATION = "add/remove"
clinic = Owner(
    clinic_rows[:, None],
    schema=Schema(columns=[Number(name="radius", low=5, high=30)]),
    dataset="tumours",
    budget=PureDP(epsilon=1, relation=RELATION),
)

# %% [markdown]
# **The learner** chooses bins without looking, and asks for half of the budget. The price is known
# before any row is opened.

# %%
edges = np.arange(8.0, 26.0, 2.0)
question = CellStatistics(
    tables=(Bins(feature=0, edges=edges),), guarantee=PureDP(epsilon=0.5, relation=RELATION)
)
print(clinic.price(question))

# %% [markdown]
# The answer is charged, noisy and signed. It states how noisy each of its numbers is.

# %%
release = clinic.answer(question)
low, high = release.interval(0.95)["counts"]
print(release.explain())
print(clinic.ledger.remaining("tumours"))

# %% [markdown]
# The picture. Grey is public and exact. The dots are private, with the intervals that the release
# states. The small ticks are the truth: only the clinic could draw them, but this data set is
# public, so here we can. About one interval in twenty misses its tick.

# %%
places = np.append(edges, edges[-1] + 2) - 1
public, exact = (
    np.bincount(np.searchsorted(edges, rows, side="right"), minlength=len(places))
    for rows in (study_rows, clinic_rows)
)
names = [f"< {edges[0]:g}", *(f"{a:g}–{a + 2:g}" for a in edges[:-1]), f"≥ {edges[-1]:g}"]

figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
axes.bar(places, public, width=1.7, color=PLAIN, label="screening study: public, exact")
axes.hlines(
    exact,
    places - 0.62,
    places + 0.62,
    color=INK,
    linewidth=1.4,
    label="clinic: the truth, which stays there",
)
axes.errorbar(
    places,
    release["counts"],
    yerr=[release["counts"] - low, high - release["counts"]],
    fmt="o",
    color=ACCENT,
    markersize=7,
    elinewidth=2.2,
    capsize=4,
    capthick=2.2,
    label="clinic: released, with 95 % intervals",
)
axes.axhline(0, color=SOFT, linewidth=0.8)
axes.set_xticks(places, names)
axes.set_xlabel("mean radius of cell nuclei", color=SOFT)
axes.set_ylabel("tumours", color=SOFT)
axes.set_title(
    f"How noisy is a private histogram?  {release.guarantee}", loc="left", color=INK, fontsize=11.5
)
axes.tick_params(colors=SOFT, length=0)
axes.grid(axis="y", color=LINE)
axes.set_axisbelow(True)
axes.spines[:].set_visible(False)
handles, labels = axes.get_legend_handles_labels()
axes.legend(handles[::-1], labels[::-1], frameon=False, labelcolor=INK)
figure.savefig("01_one_question.png", dpi=150)
