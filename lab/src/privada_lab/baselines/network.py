"""A small network as target model: the three layers that the transport paper trains (extra ``deep``)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada._arrays import FloatArray
from privada._extras import require


class NetworkClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Three linear layers with rectifiers, trained by Adam on rows that may be seen.

    Rows of norm about 1 are expected: they are multiplied by the root of their width and nothing else, for
    what is trained on (mapped rows) may be spread less than what is predicted.

    Parameters
    ----------
    width : int, default=64
        Of both hidden layers.
    steps : int, default=300
        Of Adam, each on all rows.
    rate : float, default=3e-3
    decay : float, default=1e-3
        Of weights.
    random_state : int, default=0
        Of the initial weights.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 50)
    >>> X = rng.normal(0, 0.3, (100, 2)) + y[:, None]
    >>> float(NetworkClassifier(steps=100).fit(X, y).score(X, y)) > 0.9
    True
    """

    def __init__(
        self,
        *,
        width: int = 64,
        steps: int = 300,
        rate: float = 3e-3,
        decay: float = 1e-3,
        random_state: int = 0,
    ) -> None:
        self.width = width
        self.steps = steps
        self.rate = rate
        self.decay = decay
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Train on rows that may be seen."""
        require("deep", "torch", purpose="A network as target model")
        import torch

        rows = _check.matrix(X=X)
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        self.n_features_in_ = rows.shape[1]
        inputs, wanted = self._tensor(torch, rows), torch.from_numpy(codes)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state)
            self.network_ = self._layers(torch)
        loss = torch.nn.CrossEntropyLoss()
        adam = torch.optim.AdamW(self.network_.parameters(), lr=self.rate, weight_decay=self.decay)
        for _ in range(_check.count(steps=self.steps)):
            adam.zero_grad()
            loss(self.network_(inputs), wanted).backward()
            adam.step()
        return self

    def _layers(self, torch: Any) -> Any:
        nn, width = torch.nn, _check.count(width=self.width)
        return nn.Sequential(
            nn.Linear(self.n_features_in_, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, len(self.classes_)),
        )

    def _tensor(self, torch: Any, X: FloatArray) -> Any:
        return torch.from_numpy((X * X.shape[1] ** 0.5).astype(np.float32))

    def predict_proba(self, X: npt.ArrayLike) -> FloatArray:
        """Class probabilities."""
        check_is_fitted(self)
        import torch

        with torch.no_grad():
            scores = self.network_(self._tensor(torch, _check.matrix(X=X, width=self.n_features_in_)))
            return np.asarray(scores.softmax(dim=1).numpy(), dtype=np.float64)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Most likely class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


__all__ = ["NetworkClassifier"]
