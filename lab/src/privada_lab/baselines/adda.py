"""ADDA: adversarial discriminative domain adaptation of feature vectors, not private (extra ``deep``).

A source encoder and a classifier are trained on the labelled source. A target encoder starts as a copy of the
source encoder and is trained against a discriminator that tells encoded source rows from encoded target
rows; it wins when the two look alike. The *target model* that every transport baseline trains is then
fitted to the encoded source and applied to the encoded target. Nothing here protects anything.

Settings (encoder width, steps, rates) are the defaults for feature vectors, chosen on generated shifts.

Reference: E. Tzeng, J. Hoffman, K. Saenko and T. Darrell, *Adversarial discriminative domain adaptation*,
CVPR 2017.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.scaling import PublicScale
from privada_lab.baselines.transport import target_model

SOURCE_STEPS = 300
RATE = 1e-2
DECAY = 1e-3


class ADDA(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Adapt to an unlabelled target by an encoder that a discriminator cannot tell from the source's.

    Parameters
    ----------
    width : int
        Number of encoded features.
    steps : int
        Of the adversarial game.
    encoder_rate, discriminator_rate : float
        Adam's step sizes in the game.
    random_state : int
        Of the networks' start.

    Attributes
    ----------
    classes_, model_
        The target model, on encoded rows.

    Notes
    -----
    Rows are scaled by the source's mean and deviation; an encoder is one layer with hyperbolic tangents, the
    discriminator has one hidden layer. No label of the target is looked at.
    """

    def __init__(
        self,
        *,
        width: int = 32,
        steps: int = 400,
        encoder_rate: float = 3e-3,
        discriminator_rate: float = 3e-3,
        random_state: int = 0,
    ) -> None:
        self.width = width
        self.steps = steps
        self.encoder_rate = encoder_rate
        self.discriminator_rate = discriminator_rate
        self.random_state = random_state

    def fit(self, X: Any, y: Any, Xt: Any) -> Self:
        """Train on the labelled source, adapt to the target's rows, fit the target model."""
        self._check()
        source, labels = _check.matrix(X=X), np.asarray(y)
        target = _check.matrix(Xt=Xt, width=source.shape[1])
        if labels.shape != (len(source),):
            raise InputError("Expected y to be one label for each row of X.")
        names, codes = np.unique(labels, return_inverse=True)
        if len(names) < 2:
            raise InputError("Expected at least two classes in y.")
        self._scale = PublicScale.of(source)
        torch = _torch()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state)
            rows, others = self._tensor(source), self._tensor(target)
            first = self._source_encoder(rows, torch.from_numpy(codes), len(names))
            self._encoder = self._adapted(first, rows, others)
        with torch.no_grad():
            self.model_ = target_model().fit(first(rows).numpy(), labels)
        self.classes_, self.n_features_in_ = self.model_.classes_, source.shape[1]
        return self

    def _check(self) -> None:
        _check.count(width=self.width)
        _check.count(steps=self.steps)
        _check.positive(encoder_rate=self.encoder_rate)
        _check.positive(discriminator_rate=self.discriminator_rate)
        _check.count(least=0, random_state=self.random_state)

    def _tensor(self, X: FloatArray) -> Any:
        return _torch().from_numpy(self._scale.standardise(X))

    def _source_encoder(self, rows: Any, codes: Any, n_classes: int) -> Any:
        """Encoder and classifier on the labelled source; the encoder is kept."""
        torch = _torch()
        encoder = torch.nn.Sequential(torch.nn.Linear(rows.shape[1], self.width), torch.nn.Tanh()).double()
        head = torch.nn.Linear(self.width, n_classes).double()
        weights = [*encoder.parameters(), *head.parameters()]
        descent = torch.optim.AdamW(weights, lr=RATE, weight_decay=DECAY)
        for _ in range(SOURCE_STEPS):
            descent.zero_grad()
            torch.nn.functional.cross_entropy(head(encoder(rows)), codes).backward()
            descent.step()
        return encoder

    def _adapted(self, first: Any, rows: Any, others: Any) -> Any:
        """The target's encoder after the game."""
        torch = _torch()
        encoder = copy.deepcopy(first)
        judge = torch.nn.Sequential(
            torch.nn.Linear(self.width, self.width),
            torch.nn.LeakyReLU(0.2),
            torch.nn.Linear(self.width, 1),
        ).double()
        moves = torch.optim.Adam(encoder.parameters(), lr=self.encoder_rate, betas=(0.5, 0.9))
        looks = torch.optim.Adam(
            judge.parameters(), lr=self.discriminator_rate, betas=(0.5, 0.9), weight_decay=DECAY
        )
        with torch.no_grad():
            real = first(rows)
        for _ in range(self.steps):
            looks.zero_grad()
            said = _told(judge(real), 1.0) + _told(judge(encoder(others).detach()), 0.0)
            said.backward()
            looks.step()
            moves.zero_grad()
            _told(judge(encoder(others)), 1.0).backward()  # labels turned round, as the paper has it
            moves.step()
        return encoder

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of target rows."""
        check_is_fitted(self)
        rows = self._tensor(_check.matrix(X=X, width=self.n_features_in_))
        with _torch().no_grad():
            found: FloatArray = self.model_.predict_proba(self._encoder(rows).numpy())
        return found

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class of target rows."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _told(scores: Any, truth: float) -> Any:
    torch = _torch()
    return torch.nn.functional.binary_cross_entropy_with_logits(scores, torch.full_like(scores, truth))


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise InputError("ADDA needs torch: pip install 'privada-lab[deep]'.") from None
    return torch


__all__ = ["ADDA"]
