"""A lower confidence bound on epsilon from outputs alone.

If a mechanism is (ε, δ)-private, then for neighbours D and D' and every event
E, ``P(M(D) in E) <= e^ε P(M(D') in E) + δ``. So for any E

    ``ε >= log((P(M(D) in E) - δ) / P(M(D') in E))``,

and with a lower confidence bound for the first probability and an upper one for
the second (Clopper and Pearson, exact for every sample size) the right side is
a lower confidence bound on ε.

Where the plan's noise is Gaussian, the same two probabilities bound μ from below
(`Curve`): a plan of Gaussian noise alone is μ-Gaussian private, so that for every event E
``Φ⁻¹(P(M(D) in E)) - Φ⁻¹(P(M(D') in E)) <= μ`` (Dong, Roth and Su 2022). A bound above the plan's μ refutes
the plan without any assumption, with far fewer trials than at δ = 1e-5. Read as an ε
(``epsilon_lower_gdp``), it assumes that the true trade-off is Gaussian; no audit fails because of it.

**What is proved.** The event, and the δ where a claim names several, are chosen
(`privada.audit.events`) on the first half of the outcomes, the counts are taken on the second half, so
that no correction for the many events tried is needed. Each of the two
directions (D over D' and D' over D) gets half of the error, each of its two
probabilities a quarter; where points and a curve are tried, each gets half of that.
Hence, whatever the mechanism, ``epsilon_lower`` exceeds the true ε(δ) of the pair with
probability at most ``1 - confidence``: a sound mechanism fails an audit at most that often. A
mechanism that passes was not caught; no number of trials shows that it is private, and no bound can exceed
about ``log(trials / 8)``.

References
----------
M. Jagielski, J. Ullman and A. Oprea, *Auditing Differentially Private Machine
Learning: How Private is Private SGD?*, NeurIPS 2020.
Z. Ding et al., *Detecting Violations of Differential Privacy*, CCS 2018.
M. Nasr et al., *Tight Auditing of Differentially Private Machine Learning*, USENIX Security 2023.
J. Dong, A. Roth and W. Su, *Gaussian Differential Privacy*, JRSS B 2022.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.audit.events import Claim, Curve, Guess, Outcomes, Point, bound_event, guess_events
from privada.audit.transcript import flat, sample_function, sample_question
from privada.exceptions import InputError
from privada.parties.rows import Rows
from privada.privacy.accounting import curves
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from privada.privacy.mechanism import Plan
from privada.privacy.noise import Noise, SecureNoise
from privada.privacy.release import Question

if TYPE_CHECKING:
    from privada.model_selection.search import PrivateSearchCV

TRIALS = 20_000
SEARCH_TRIALS = 400  # a search of some fits takes a tenth of a second
CONFIDENCE = 0.99
DIRECTIONS = ("D over D'", "D' over D")
DELTAS = (0.001, 0.01, 0.05, 0.2)
COARSE_PLD_STEP = 1e-3  # step of a privacy-loss distribution that only chooses points to try


def claims(guarantee: Guarantee, plan: Plan | None = None) -> tuple[Claim, ...]:
    """Return the points of a guarantee and its plan, and the plan's curve if its noise is Gaussian."""
    from privada.privacy.accounting import accountant

    if plan is not None and accountant.only_gaussian(plan.event):
        return (*points(guarantee, plan), Curve(mu=accountant.gaussian_mu(plan.event)))
    return points(guarantee, plan)


def points(guarantee: Guarantee, plan: Plan | None = None) -> tuple[Point, ...]:
    """Return the points of a guarantee, and of the plan that is charged for it.

    A pure claim is tried at δ = 0, an approximate one at its δ, and zCDP at a
    few δ through its conversion. A plan of Gaussian noise alone has an exact
    profile, and is tried on it at the same δ; any other plan on the profile of its
    privacy-loss distribution, and at its pure epsilon if it has one.

    >>> from privada.privacy import PureDP, ZCDP
    >>> points(PureDP(epsilon=1, relation="add/remove"))
    (Point(epsilon=1.0, delta=0.0, first=True),)
    >>> [f"{p.epsilon:.3f} at {p.delta:g}" for p in points(ZCDP(rho=0.1, relation="add/remove"))]
    ['0.979 at 0.01', '1.356 at 0.001', '0.622 at 0.05', '0.148 at 0.2']
    """
    first: tuple[Point, ...]
    if isinstance(guarantee, PureDP):
        first = (Point(epsilon=guarantee.epsilon, delta=0.0, first=True),)
    elif isinstance(guarantee, ApproxDP):
        first = (Point(epsilon=guarantee.epsilon, delta=guarantee.delta, first=True),)
    elif isinstance(guarantee, ZCDP):
        middle, *others = sorted(DELTAS, key=lambda delta: abs(delta - 0.01))
        first = (
            Point(epsilon=guarantee.epsilon_at(middle), delta=middle, first=True),
            *(Point(epsilon=guarantee.epsilon_at(delta), delta=delta) for delta in others),
        )
    else:
        raise InputError(f"A {type(guarantee).__name__} guarantee has no points to try.")
    return first if plan is None else (*first, *_points_of_plan(guarantee, plan))


def _points_of_plan(guarantee: Guarantee, plan: Plan) -> tuple[Point, ...]:
    from privada.privacy.accounting import accountant

    if accountant.only_gaussian(plan.event):
        return tuple(Point(epsilon=accountant.epsilon(plan.event, delta), delta=delta) for delta in DELTAS)
    if isinstance(guarantee, PureDP):
        return ()
    pure = () if plan.epsilon is None else (Point(epsilon=plan.epsilon, delta=0.0),)
    # A zCDP event has no privacy-loss distribution
    if any(type(leaf).__name__ == "ZCDpEvent" for _, leaf, _ in accountant.leaves(plan.event)):
        return pure
    try:
        distribution = accountant.privacy_loss_distribution(plan.event, step=COARSE_PLD_STEP)
    except (InputError, ArithmeticError, ValueError):
        return pure
    epsilons = [max(float(distribution.get_epsilon_for_delta(delta)), 0.0) for delta in DELTAS]
    return (
        *pure,
        *(Point(epsilon=epsilon, delta=delta) for epsilon, delta in zip(epsilons, DELTAS, strict=True)),
    )


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """The result of a black-box audit.

    Attributes
    ----------
    epsilon_lower : float
        With probability ``confidence``, the true ε at ``delta`` is at least this.
    epsilon_claimed, delta : float
        The point of the claim that was tried.
    claimed : Guarantee
    trials : int
        Number of outcomes of each data set.
    statistic, threshold, direction
        The event, "this score is at least the threshold", and which data set it favours.
    mu_lower, mu_claimed : float or None
        Where the plan's noise is Gaussian: with the same confidence the trade-off is no better than that of
        ``mu_lower``, and the plan says ``mu_claimed``.
    epsilon_lower_gdp : float or None
        ``mu_lower`` as an ε at ``delta``, *if the true trade-off is Gaussian*; for reading only.
    pair : str
        Name of the pair of data sets, if it has one.

    >>> import numpy as np
    >>> from privada.privacy import PureDP
    >>> rng = np.random.default_rng(0)
    >>> print(audit_samples(rng.laplace(scale=0.5, size=20_000), 1 + rng.laplace(scale=0.5, size=20_000),
    ...                     claimed=PureDP(epsilon=1, relation="add/remove"), resolution=2**-10))
    FAILED: ε >= 1.88 at δ = 0 with 99 % confidence, claimed 1 [ε = 1 (pure), add/remove one row]
    """

    epsilon_lower: float
    epsilon_claimed: float
    delta: float
    claimed: Guarantee
    confidence: float
    trials: int
    statistic: str
    threshold: float
    direction: str
    mu_lower: float | None = None
    mu_claimed: float | None = None
    pair: str = ""

    @property
    def passed(self) -> bool:
        """Whether the bounds stay within the claim."""
        return self.excess <= 1e-9 * self.epsilon_claimed and not self.breaks_curve

    @property
    def breaks_curve(self) -> bool:
        """Whether the bound on μ is above the plan's."""
        if self.mu_lower is None or self.mu_claimed is None:
            return False
        return self.mu_lower > self.mu_claimed * (1 + 1e-9)

    @property
    def epsilon_lower_gdp(self) -> float | None:
        """The bound on μ as an ε, if the trade-off is Gaussian."""
        if self.mu_lower is None or not self.delta:
            return None
        return curves.gaussian_epsilon(self.delta, self.mu_lower) if self.mu_lower > 0 else 0.0

    @property
    def tightness(self) -> float:
        """The better lower bound over the claim: 1 if nothing is left to find."""
        best = max(self.epsilon_lower, self.epsilon_lower_gdp or 0.0)
        return best / self.epsilon_claimed if self.epsilon_claimed else 0.0

    @property
    def excess(self) -> float:
        """How far the bound is above the claim; negative if it is below."""
        return self.epsilon_lower - self.epsilon_claimed

    def __str__(self) -> str:
        text = (
            f"{'passed' if self.passed else 'FAILED'}: ε >= {self.epsilon_lower:.3g} at δ = {self.delta:g} "
            f"with {100 * self.confidence:.6g} % confidence, "
            f"claimed {self.epsilon_claimed:.3g} [{self.claimed}]"
        )
        if self.mu_lower is None or self.epsilon_lower_gdp is None:
            return text
        return (
            f"{text}; μ >= {self.mu_lower:.3g}, claimed {self.mu_claimed:.3g} "
            f"(ε >= {self.epsilon_lower_gdp:.3g} if the trade-off is Gaussian)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports."""
        return {
            "passed": self.passed,
            "epsilon_lower": self.epsilon_lower,
            "epsilon_claimed": self.epsilon_claimed,
            "delta": self.delta,
            "claimed": self.claimed.to_dict(),
            "confidence": self.confidence,
            "trials": self.trials,
            "statistic": self.statistic,
            "threshold": self.threshold,
            "direction": self.direction,
            "mu_lower": self.mu_lower,
            "mu_claimed": self.mu_claimed,
            "epsilon_lower_gdp": self.epsilon_lower_gdp,
            "pair": self.pair,
        }


def audit_question(
    question: Question,
    rows: Rows,
    neighbour: Rows,
    *,
    trials: int = TRIALS,
    confidence: float = CONFIDENCE,
    noise: Noise | None = None,
) -> AuditResult:
    """Audit a question's answers on two neighbouring sets of generated rows.

    Parameters
    ----------
    question : Question
    rows, neighbour : Rows
        Neighbours under the question's relation and unit.
    trials : int, default=20000
        Answers on each of the two.
    confidence : float, default=0.99
        Confidence of the bound; a sound question fails at most ``1 - confidence`` of the time.
    noise : Noise, default=None
        By default the operating system's.

    Notes
    -----
    What the ledger is charged (the plan's event) is tried in addition to the
    guarantee: a Gaussian plan by its whole curve, where errors of calibration show with
    far fewer trials than at δ = 1e-5. Outcomes of mechanisms that are flagged
    "idealised arithmetic" are rounded first (see `audit_mechanism`).
    """
    _check.count(least=100, trials=trials)
    source = SecureNoise() if noise is None else noise
    outcomes = sample_question(question, rows, neighbour, trials=trials, noise=source)
    tried = claims(question.guarantee, question.plan)
    return _audit(outcomes, tried, claimed=question.guarantee, confidence=confidence)


def audit_mechanism(
    mechanism: Callable[[Any], Any],
    data: Any,
    neighbour: Any,
    *,
    claimed: Guarantee,
    trials: int = TRIALS,
    confidence: float = CONFIDENCE,
    exact: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    resolution: float | None = None,
) -> AuditResult:
    """Audit any function of a data set that returns a number, an array or a mapping of them.

    Parameters
    ----------
    mechanism : function of a data set
    data, neighbour : data sets
    claimed : Guarantee
    trials, confidence
        As for `audit_question`.
    exact : pair of arrays, default=None
        The values without noise on both data sets, if they are known; they
        sharpen the statistics and are otherwise estimated.
    resolution : float, default=None
        Round outcomes to multiples of this. A proof about real numbers says
        nothing about the last bits of a float, and those of ``1 + rng.laplace()``
        give the 1 away (Mironov 2012): without rounding, the auditor finds that.

    Examples
    --------
    >>> import numpy as np
    >>> from privada.privacy import PureDP
    >>> rng = np.random.default_rng(0)
    >>> audit_mechanism(lambda rows: len(rows) + rng.laplace(scale=1 / 3), [1, 2], [1, 2, 3],
    ...                 claimed=PureDP(epsilon=1, relation="add/remove"), trials=4000,
    ...                 resolution=2**-10).passed
    False
    """
    _check.count(least=100, trials=trials)
    centres = None if exact is None else (flat(exact[0]), flat(exact[1]))
    outcomes = sample_function(
        mechanism, data, neighbour, trials=trials, exact=centres, resolution=resolution
    )
    return _audit(outcomes, points(claimed), claimed=claimed, confidence=confidence)


def audit_samples(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    claimed: Guarantee,
    confidence: float = CONFIDENCE,
    exact: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    resolution: float | None = None,
) -> AuditResult:
    """Audit outcomes that were drawn before: one row each, independent, as many of D as of D'.

    The other parameters are those of `audit_mechanism`.
    """
    centres = None if exact is None else (flat(exact[0]), flat(exact[1]))
    outcomes = Outcomes.of(first, second, exact=centres, resolution=resolution)
    return _audit(outcomes, points(claimed), claimed=claimed, confidence=confidence)


def _audit(
    outcomes: Outcomes, tried: tuple[Claim, ...], *, claimed: Guarantee, confidence: float
) -> AuditResult:
    # Events are chosen on one half of the outcomes and counted on the other: see "What is proved" above.
    choosing, counting = outcomes.halves()
    guesses = guess_events(choosing, tried, 1 - _check.probability(confidence=confidence))
    result = count_events(guesses, counting, claimed=claimed, confidence=confidence)
    return replace(result, trials=len(outcomes.first))


def count_events(
    guesses: list[Guess], outcomes: Outcomes, *, claimed: Guarantee, confidence: float, pair: str = ""
) -> AuditResult:
    """Bound a claim by outcomes on which the events were not chosen."""
    # Points and a curve share the error
    error = (1 - confidence) / len({type(guess.claim) for guess in guesses})
    bounds = [(guess, guess.claim, bound_event(guess, outcomes, error)) for guess in guesses]
    guess, point, bound = max(
        ((guess, claim, bound) for guess, claim, bound in bounds if isinstance(claim, Point)),
        key=lambda candidate: candidate[2] - candidate[1].epsilon,
    )
    curve = max(
        ((bound, claim.mu) for _, claim, bound in bounds if isinstance(claim, Curve)), default=(None, None)
    )
    return AuditResult(
        epsilon_lower=max(bound, 0.0),
        epsilon_claimed=point.epsilon,
        delta=point.delta,
        claimed=claimed,
        confidence=confidence,
        trials=len(outcomes.first),
        statistic=guess.score.name,
        threshold=guess.threshold,
        direction=DIRECTIONS[guess.direction],
        mu_lower=curve[0],
        mu_claimed=curve[1],
        pair=pair,
    )


def audit_search(
    search: PrivateSearchCV,
    rows: tuple[Any, Any],
    neighbour: tuple[Any, Any],
    *,
    trials: int = SEARCH_TRIALS,
    confidence: float = CONFIDENCE,
    **public: Any,
) -> AuditResult:
    """Audit a private search for settings, against the price that it states.

    The search runs as it is, ledgers and all, on both sets of rows, many times. An outcome is what
    whoever gets the fitted search can see: which candidate was chosen, and every array of its release.

    Parameters
    ----------
    search : PrivateSearchCV
        Not fitted; every trial fits a clone.
    rows, neighbour : (X, y)
        Generated rows, neighbours under the estimator's relation and unit. Try one whose odd row is held out
        and one in which it is fitted on.
    trials : int, default=400
        Searches on each of the two.
    confidence : float, default=0.99
        A sound search fails at most ``1 - confidence`` of the time.
    **public
        Further arguments of the search's ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from privada import CellClassifier
    >>> from privada.model_selection import PrivateSearchCV
    >>> model = CellClassifier(classes=(0, 1), bounds=(0, 1), epsilon=1)
    >>> search = PrivateSearchCV(model, {"centers": [[[0.5]], [[0.2], [0.8]]]}, selection_epsilon=1)
    >>> X, y = np.linspace(0, 1, 20)[:, None], np.repeat([0, 1], 10)
    >>> audit_search(search, (X, y), (X[1:], y[1:]), trials=100).passed
    True
    """
    from sklearn.base import clone

    from privada.parties.one_process.process_ledger import public_rows

    if search.public is not None:
        raise InputError("Expected a search that chooses on private rows: one on public rows loses nothing.")

    def fit(data: tuple[Any, Any]) -> FloatArray:
        fitted = clone(search)
        with public_rows(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted.fit(*data, **public)
        release = fitted.best_estimator_.release_
        numbers = [np.ravel(release[name]).astype(np.float64) for name in sorted(release.payload)]
        return np.concatenate([[float(fitted.best_index_)], *numbers])

    return audit_mechanism(fit, rows, neighbour, claimed=search.price(), trials=trials, confidence=confidence)
