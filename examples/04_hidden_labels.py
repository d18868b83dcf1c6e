# %% [markdown]
# # How well can a model learn from labels that nobody may see?
#
# A clinic holds 1,000 labelled patients. You hold 800 others, without labels. The clinic runs your
# hypotheses and answers with noisy tables of their errors; no patient leaves it.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from privada import Category, MarginalLearner, Owner, Pure, Schema, run
from privada.lab.datasets.hidden_target import hidden_target
from privada.methods.marginals import Public, default_rounds, learn_rounds

INK, SOFT, LINE, ACCENT, WARM = "#1f2328", "#5d6670", "#e4e1d9", "#0b6e63", "#c2571a"
data = hidden_target("C", seed=3, source_size=800, target_size=2000)
shape = LogisticRegression(max_iter=200)

# %% [markdown]
# Labels over cells of your own rows: one question, whose noise does not grow with the features.

# %%
common = {"classes": (0, 1), "bounds": (-10.0, 10.0), "size": len(data.X), "classifier": shape}
model = MarginalLearner(epsilon=1.0, **common).fit(data.X, data.y, source=data.source)
print(model.forecast_)
print(model.release_.explain())
print(f"cells, ε = 1: {model.score(data.X_test, data.y_test):.1%}")

# %% [markdown]
# Error tables of single features, round by round: a learning curve. Each round is a share of the
# budget, planned in advance. (Only an author of an example may score on the hidden test rows.)

# %%
schema = Schema.of_numbers(
    bounds=(-10.0, 10.0), width=10, size=len(data.X), label=Category(name="ill", values=(0, 1))
)
public = Public(source=data.source, classes=(0, 1), classifier=shape)
BUDGETS, ROUNDS = (1.0, 4.0), 3
curves = {}
for epsilon in BUDGETS:
    budget = Pure(epsilon=epsilon, relation="add/remove")
    curves[epsilon] = []
    for rounds in range(1, ROUNDS + 1):
        clinic = Owner(data.X, y=data.y, schema=schema, dataset="patients", budget=budget)
        plan = default_rounds(data.source, guarantee=budget, size=len(data.X), rounds=rounds, bins=5)
        fit = run(learn_rounds("clinic", plan, public), {"clinic": clinic})
        curves[epsilon].append((fit.codes(data.X_test) == data.y_test).mean())
clear = shape.fit(data.X, data.y).score(data.X_test, data.y_test)
for epsilon, curve in curves.items():
    print(f"marginals, ε = {epsilon}: " + ", ".join(f"{value:.1%}" for value in curve))

# %%
figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
figure.patch.set_facecolor("white")
turns = np.arange(1, ROUNDS + 1)
for (epsilon, curve), shade in zip(curves.items(), (0.5, 1.0), strict=True):
    axes.plot(
        turns, 100 * np.array(curve), "o-", color=ACCENT, alpha=shade, label=f"marginals, ε = {epsilon}"
    )
axes.axhline(100 * clear, color=WARM, label="trained on the patients, in the clear")
axes.axhline(100 * model.score(data.X_test, data.y_test), color=INK, ls="--", label="cells, ε = 1, one round")
axes.axhline(100 * max(data.y.mean(), 1 - data.y.mean()), color=SOFT, ls=":", label="majority class")
axes.set_xticks(turns, [str(turn) for turn in turns])
axes.set_xlabel("rounds planned, each with its share of ε", color=SOFT)
axes.set_ylabel("accuracy on other patients (%)", color=SOFT)
for side in axes.spines.values():
    side.set_color(LINE)
axes.legend(frameon=False, fontsize=9, loc="center right")
figure.suptitle("Labels that nobody may see still teach", color=INK, x=0.02, ha="left")
figure.savefig("04_hidden_labels.png", dpi=150)
