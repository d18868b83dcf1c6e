"""``privada reproduce core``: the numbers of privacy.md, section 0, computed anew.

The table of σ per unit sensitivity is compared, at the four decimals that it
prints, with what the core calibrates, and the core's σ with dp-accounting's;
the counterexample is evaluated with the formulas of its paragraph.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from privada.privacy.accounting import curves
from privada.report.exhibit import Curves, Exhibit, Figure, Series
from privada_lab.experiments.registry import Track, untracked

EPSILONS = (0.5, 1, 2, 3, 4, 8, 10)
PRINTED = {
    1e-5: (7.0318, 3.7306, 1.9938, 1.3906, 1.0812, 0.6002, 0.4999),
    1e-6: (8.0576, 4.2247, 2.2305, 1.5439, 1.1935, 0.6529, 0.5411),
    1e-8: (9.8635, 5.1003, 2.6529, 1.8186, 1.3956, 0.7484, 0.6158),
}
SPECIFIED = "privacy.md, section 0"


def run(*, runs: int = 1, data: Path | None = None, track: Track = untracked) -> Iterator[Figure | Exhibit]:  # noqa: ARG001
    """Yield the figures; nothing here is random, so one run is all."""
    cells = [
        (epsilon, delta, sigma)
        for delta, row in PRINTED.items()
        for epsilon, sigma in zip(EPSILONS, row, strict=True)
    ]
    errors = [
        abs(round(curves.gaussian_sigma(epsilon=epsilon, delta=delta), 4) - sigma) / sigma
        for epsilon, delta, sigma in track(cells, "calibrations")
    ]
    yield Figure("sigma_table_worst_relative_error", max(errors), 5e-5, "lower", f"{SPECIFIED}, 21 cells", 1)
    yield _beside_dp_accounting(cells)
    rho = curves.zcdp_rho(epsilon=1, delta=1e-5)
    yield Figure("zcdp_rho_eps1_delta1e-5", rho, None, "higher", "the textbook bound: 0.02082", 1)
    yield Figure("max_norm_true_epsilon", max_norm_epsilon(), None, "lower", "claimed by the paper: 1", 1)
    yield _curves()


def _curves() -> Curves:
    """The noise that an epsilon needs, as printed and as calibrated."""
    lines = []
    for delta, row in PRINTED.items():
        sigmas = [curves.gaussian_sigma(epsilon=epsilon, delta=delta) for epsilon in EPSILONS]
        none = [0.0] * len(sigmas)
        lines.append(
            Series(name=f"calibrated, delta {delta:g}", x=EPSILONS, mean=sigmas, error=none, role="ours")
        )
        lines.append(Series(name=f"printed, delta {delta:g}", x=EPSILONS, mean=row, error=none, role="bound"))
    return Curves(
        title="Gaussian noise per unit of sensitivity",
        xlabel="epsilon",
        ylabel="standard deviation",
        series=tuple(lines),
        logx=True,
        logy=True,
    )


def _beside_dp_accounting(cells: list[tuple[float, float, float]]) -> Figure:
    from importlib.metadata import version

    from dp_accounting.pld.common import DifferentialPrivacyParameters
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    errors = []
    for epsilon, delta, _ in cells:
        theirs = GaussianPrivacyLoss.from_privacy_guarantee(DifferentialPrivacyParameters(epsilon, delta))
        ours = curves.gaussian_sigma(epsilon=epsilon, delta=delta)
        errors.append(abs(ours / theirs.standard_deviation - 1))
    beside = f"dp-accounting {version('dp-accounting')}"
    return Figure("sigma_vs_dp_accounting_worst_relative_error", max(errors), None, "lower", beside, 1)


def max_norm_epsilon(
    *, rows: int = 200, norm: float = 0.5, outlier: float = 50.0, claimed: float = 1.0
) -> float:
    """True ε of a noisy sum that is scaled by the largest norm found (privacy.md, section 0, hazard 1).

    ``rows`` points at ``norm`` and one more of norm ``outlier``, scaled to norm
    1/2: the sum and the count, noised for a claim of ε, one coordinate.
    """
    before = rows * norm * 0.5 / norm
    after = rows * norm * 0.5 / outlier + 0.5
    scale = 2 / claimed  # (sqrt(d) + 1) / ε at d = 1
    return (abs(before - after) + 1) / scale


__all__ = ["max_norm_epsilon", "run"]
