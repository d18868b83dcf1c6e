"""What leaves beside the draws, or through choices."""

import numpy as np

from privada.privacy import Exponential, Laplace, PureDP, RandomisedResponse

from .exhibit import exhibit, features, labels, quarters

FIVE = PureDP(epsilon=0.5, relation="replace-one")


@exhibit(draws={"choice": Exponential(sensitivity=0.5, budget=0.5)}, guarantee=FIVE)
def choice_with_half_its_sensitivity(question, rows, draw):
    """A replaced row moves a candidate's score by 1; 1/2 is declared."""
    return {"choice": draw("choice", quarters(rows).astype(float))}


@exhibit(draws={"choice": Exponential(sensitivity=1.0, budget=0.5)}, guarantee=FIVE)
def score_beside_the_choice(question, rows, draw):
    """The chosen candidate's exact score is released with it."""
    scores = quarters(rows).astype(float)
    choice = draw("choice", scores)
    return {"choice": choice, "score": float(scores[choice[0]])}


@exhibit(
    draws={"labels": RandomisedResponse(budget=0.5, n_classes=2)},
    guarantee=FIVE,
)
def labels_by_sorted_features(question, rows, draw):
    """Randomised labels stand in the order of the features: a replaced row moves many of them."""
    order = np.argsort(features(rows)[:, 0], kind="stable")
    return {"labels": draw("labels", labels(rows)[order])}


@exhibit(draws={"count": Laplace(sensitivity=1, scale=1.0)})
def type_of_the_data(question, rows, draw):
    """An answer without rows is a whole number, another one is not: the type tells."""
    noisy = draw("count", np.array([len(features(rows))]))
    return {"count": noisy if len(features(rows)) else noisy.astype(np.int64)}


@exhibit(draws={"a": Laplace(sensitivity=1, scale=2.0), "b": Laplace(sensitivity=1, scale=2.0)})
def second_question_by_exact_rows(question, rows, draw):
    """Which half is counted in more detail is decided by the exact first answer, not by the noisy one."""
    exact = quarters(rows)
    fuller = exact[:2] if exact[:2].sum() > exact[2:].sum() else exact[2:]
    return {"a": draw("a", np.array([exact[:2].sum(), exact[2:].sum()])), "b": draw("b", fuller)}
