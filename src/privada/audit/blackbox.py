"""A lower confidence bound on epsilon from outputs alone.

If a mechanism is (ε, δ)-private, then for neighbours D and D' and every event
E, ``P(M(D) in E) <= e^ε P(M(D') in E) + δ``. So for any E

    ``ε >= log((P(M(D) in E) - δ) / P(M(D') in E))``,

and with a lower confidence bound for the first probability and an upper one for
the second (Clopper and Pearson, exact for every sample size) the right side is
a lower confidence bound on ε.

Where the plan's noise is Gaussian, the same two probabilities bound μ from below
(`privada.audit.claims.Curve`), and a bound above the plan's μ refutes the plan without any
assumption, far sooner than at δ = 1e-5. Read as an ε (``epsilon_lower_gdp``) it assumes that the true
trade-off is Gaussian; nothing fails because of that number.

**What is proved.** The event, and the δ where a claim names several, are chosen
(`privada.audit.selection`) on the first half of the outcomes, the counts are taken on the second half, so
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

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.audit import sampling
from privada.audit.claims import Claim, Curve, Point, claims, points
from privada.audit.selection import Guess, bound_event, guess_events
from privada.parties.rows import Rows
from privada.privacy.accounting import curves
from privada.privacy.guarantee import Guarantee
from privada.privacy.noise import Noise, SecureNoise
from privada.privacy.release import Question

TRIALS = 20_000
CONFIDENCE = 0.99
DIRECTIONS = ("D over D'", "D' over D")


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """What a black-box audit found.

    Attributes
    ----------
    epsilon_lower : float
        With probability ``confidence``, the true ε at ``delta`` is at least this.
    epsilon_claimed, delta : float
        The claim's point at which it was tried.
    claimed : Guarantee
        The claim.
    trials : int
        Outcomes of each data set.
    statistic, threshold, direction
        The event: the score is at least the threshold; which data set it favours.
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
        return (
            f"{'passed' if self.passed else 'FAILED'}: ε >= {self.epsilon_lower:.3g} at δ = {self.delta:g} "
            f"with {100 * self.confidence:.6g} % confidence, "
            f"claimed {self.epsilon_claimed:.3g} [{self.claimed}]{self._said_of_curve()}"
        )

    def _said_of_curve(self) -> str:
        if self.mu_lower is None or self.epsilon_lower_gdp is None:
            return ""
        return (
            f"; μ >= {self.mu_lower:.3g}, claimed {self.mu_claimed:.3g} "
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
    trials : int
        Answers to each.
    confidence : float
        Of the bound; a sound question fails at most ``1 - confidence`` of the time.
    noise : Noise, optional
        By default the operating system's.

    Notes
    -----
    Beside the guarantee, what the ledger is charged (the plan's event) is
    tried: a Gaussian plan by its whole curve, where errors of calibration show with
    far fewer trials than at δ = 1e-5. Outcomes of mechanisms that are flagged
    "idealised arithmetic" are rounded first (see `audit_mechanism`).
    """
    source = SecureNoise() if noise is None else noise
    outcomes = sampling.sample_question(question, rows, neighbour, trials=_trials(trials), noise=source)
    return _audit(
        outcomes,
        claimed=question.guarantee,
        tried=claims(question.guarantee, question.plan),
        confidence=confidence,
    )


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
    exact : pair of arrays, optional
        The values without noise on both data sets, if they are known; they
        sharpen the statistics and are otherwise estimated.
    resolution : float, optional
        Round outcomes to multiples of this. A proof about real numbers says
        nothing of the last bits of a float, and those of ``1 + rng.laplace()``
        give the 1 away (Mironov 2012): without rounding the auditor finds that.

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
    known = None if exact is None else (sampling.flat(exact[0]), sampling.flat(exact[1]))
    outcomes = sampling.sample_function(
        mechanism, data, neighbour, trials=_trials(trials), exact=known, resolution=resolution
    )
    return _audit(outcomes, claimed=claimed, tried=points(claimed), confidence=confidence)


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
    known = None if exact is None else (sampling.flat(exact[0]), sampling.flat(exact[1]))
    outcomes = sampling.Outcomes.of(first, second, exact=known, resolution=resolution)
    return _audit(outcomes, claimed=claimed, tried=points(claimed), confidence=confidence)


def _trials(trials: int) -> int:
    return _check.count(least=100, trials=trials)


def _audit(
    outcomes: sampling.Outcomes, *, claimed: Guarantee, tried: tuple[Claim, ...], confidence: float
) -> AuditResult:
    error = 1 - _check.probability(confidence=confidence)
    chosen, counted = outcomes.halves()
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        guesses = guess_events(chosen, tried, error)
    result = count_events(guesses, counted, claimed=claimed, confidence=confidence)
    return replace(result, trials=len(outcomes.first))


def count_events(
    guesses: list[Guess],
    outcomes: sampling.Outcomes,
    *,
    claimed: Guarantee,
    confidence: float,
    pair: str = "",
) -> AuditResult:
    """Bounds from outcomes that the events were not chosen on."""
    kinds = len({type(guess.claim) for guess in guesses})
    error = (1 - confidence) / kinds
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        found = [(guess, guess.claim, bound_event(guess, outcomes, error)) for guess in guesses]
    guess, point, bound = max(
        ((guess, claim, bound) for guess, claim, bound in found if isinstance(claim, Point)),
        key=lambda each: each[2] - each[1].epsilon,
    )
    curve = max(
        ((bound, claim.mu) for _, claim, bound in found if isinstance(claim, Curve)), default=(None, None)
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


__all__ = ["AuditResult", "audit_mechanism", "audit_question", "audit_samples", "count_events"]
