"""The sets of the experiment: data, network, whether domains agree, goals and what the paper prints."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from privada_lab.datasets.hidden_target import HiddenTarget, cardiotocography, hidden_target
from privada_lab.toml_tables import read_tables


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One set.

    Attributes
    ----------
    shape : tuple of int
        Hidden layers of the paper's network.
    reweight : bool
        Whether the paper makes its importance step: not where the learner knows that domains agree.
    goal, marginal_goal : float or None
        Accuracy (for cardiotocograms: points over the majority) by any question, and by single features.
    paper : tuple of float
        Means of the paper's Table 2, in the order of `PRINTED`.
    deviations : tuple of float
        Their deviations over runs.
    ratio : float
        The paper's ratio indicator of C-EXPRIL without privacy.
    shift : str or None
        Of cardiotocograms.
    least_runs : int
        Of any but a quick look: a set of few test rows takes more runs than were asked for.
    """

    name: str
    shape: tuple[int, ...]
    reweight: bool
    paper: tuple[float, ...]
    deviations: tuple[float, ...]
    ratio: float
    goal: float | None = None
    marginal_goal: float | None = None
    shift: str | None = None
    least_runs: int = 1

    def load(self, seed: int, folder: Path | None = None) -> HiddenTarget:
        """Fresh rows, or a fresh split."""
        if self.shift is None:
            return hidden_target(self.name, seed=seed)
        assert folder is not None
        return cardiotocography(folder, shift=self.shift, seed=seed)


_TABLES = read_tables(Path(__file__).with_name("sets.toml"))
PRINTED: tuple[str, ...] = _TABLES["printed"]
GENERATED = tuple(Setting(**row) for row in _TABLES["generated"])
CARDIOTOCOGRAMS = tuple(Setting(**row) for row in _TABLES["cardiotocograms"])

__all__ = ["CARDIOTOCOGRAMS", "GENERATED", "PRINTED", "Setting"]
