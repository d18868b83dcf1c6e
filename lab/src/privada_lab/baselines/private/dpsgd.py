"""DP-SGD by Opacus: noisy minibatch gradients of torch models, as people run them (extra ``deep``).

Opacus clips the gradient of each row to norm C, sums over a Poisson sample of the rows, and adds Gaussian
noise; its own accountant (PRV) chooses the noise for (ε, δ).

*What this baseline does not keep.* Its noise is torch's floating-point noise from torch's generator, not
drawn on the integers by the one noise module, and it never passes an owner's ledger. So it is a rival that
experiments measure: it runs only with ``insecure_seed=``, on rows that may be shown, and everything it fits
is stamped. Opacus's secure mode would change the generator, needs a library that is not maintained for
present versions of torch, and leaves the floating-point arithmetic as it is.

*What its ε means.* One row more or less (add/remove): a Poisson sample has no public size. Beside a
replace-one guarantee of equal ε it is the weaker promise. ``privada reproduce reweighting`` compares equal
promises: half of ε, for a replacement is a row that leaves and one that comes.

Settings are public: rows are scaled by ``norm_bound`` and labels by ``label_bound``; the defaults of rate,
epochs and sampling were chosen on generated regressions and classifications.

References: M. Abadi et al., *Deep learning with differential privacy*, CCS 2016; A. Yousefpour et al.,
*Opacus: user-friendly differential privacy library in PyTorch*, 2021.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.privacy.bounds import Ball, Classes
from privada.privacy.guarantee import ApproxDP, make_guarantee
from privada_lab.baselines.private._asking import class_list

MODELS = ("linear", "mlp")
STAMPS = ("noise of torch, not of the noise module", "rehearsal: not private")
PUBLIC_STEPS, PUBLIC_RATE = 300, 1e-2


def opacus_module() -> Any:
    """Opacus, or an error that names the extra."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import opacus
    except ImportError:
        raise InputError("DP-SGD needs torch and Opacus: pip install 'privada-lab[deep]'.") from None
    return opacus


@lru_cache(maxsize=256)
def noise_multiplier(*, epsilon: float, delta: float, sample_rate: float, steps: int) -> float:
    """σ/C that Opacus's PRV accountant asks for, for one row more or less."""
    opacus_module()
    from opacus.accountants.utils import get_noise_multiplier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = get_noise_multiplier(
            target_epsilon=_check.positive(epsilon=epsilon),
            target_delta=_check.probability(delta=delta),
            sample_rate=_check.share(sample_rate=sample_rate),
            steps=_check.count(steps=steps),
            accountant="prv",
            epsilon_tolerance=1e-3 * epsilon,
        )
    return float(found)


class _DPSGD(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: the engine and its settings."""

    stamps_: ClassVar[tuple[str, ...]] = STAMPS

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        norm_bound: float | None = None,
        model: str = "linear",
        hidden: int = 32,
        clip: float = 1.0,
        epochs: int = 20,
        sample_rate: float = 0.2,
        rate: float = 0.5,
        insecure_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.norm_bound = norm_bound
        self.model = model
        self.hidden = hidden
        self.clip = clip
        self.epochs = epochs
        self.sample_rate = sample_rate
        self.rate = rate
        self.insecure_seed = insecure_seed

    def _check(self) -> ApproxDP:
        """Every setting by name, and the guarantee."""
        if self.insecure_seed is None:
            raise InputError(
                "DP-SGD by Opacus draws torch's noise: it runs only with insecure_seed=, a seed, "
                "on data to be shown."
            )
        _check.one_of(MODELS, model=self.model)
        _check.count(hidden=self.hidden)
        _check.count(epochs=self.epochs)
        for name in ("clip", "rate", "norm_bound"):
            _check.positive(**{name: getattr(self, name)})
        if not _check.share(sample_rate=self.sample_rate) > 0:
            raise InputError(f"Expected sample_rate > 0, got {self.sample_rate!r}.")
        guarantee = make_guarantee(epsilon=self.epsilon, delta=self.delta, rho=None, relation="add/remove")
        if not isinstance(guarantee, ApproxDP):
            raise InputError("Expected delta: Gaussian noise keeps no pure guarantee.")
        return guarantee

    @property
    def _seed(self) -> int:
        return _check.count(least=0, insecure_seed=self.insecure_seed)

    def _train(self, X: Any, y: Any, Xs: Any, ys: Any, *, outputs: int, loss: Any) -> None:
        """The public fit, if there are public rows, then Opacus's engine on the private ones."""
        guarantee, rows = self._check(), self._rows(X)
        with _seeded(self._seed) as torch:
            module = self._network(torch, rows.shape[1], outputs)
            if Xs is not None:
                _fit_public(torch, module, loss, self._rows(Xs, rows.shape[1]), ys)
            self._descend(torch, module, loss, rows, y, guarantee)
        self.guarantee_, self.n_features_in_ = guarantee, rows.shape[1]

    def _network(self, torch: Any, width: int, outputs: int) -> Any:
        if self.model == "linear":
            module = torch.nn.Linear(width, outputs)
            torch.nn.init.zeros_(module.weight)
            torch.nn.init.zeros_(module.bias)
            return module
        first, last = torch.nn.Linear(width, self.hidden), torch.nn.Linear(self.hidden, outputs)
        return torch.nn.Sequential(first, torch.nn.Tanh(), last)

    def _descend(
        self, torch: Any, module: Any, loss: Any, rows: FloatArray, y: Any, guarantee: ApproxDP
    ) -> None:
        opacus = opacus_module()
        pairs = torch.utils.data.TensorDataset(torch.from_numpy(rows).float(), torch.from_numpy(y))
        source, drawn = (torch.Generator().manual_seed(self._seed + more) for more in (1, 2))
        size = math.ceil(len(rows) * self.sample_rate)
        loader = torch.utils.data.DataLoader(pairs, batch_size=size, generator=source)
        self.noise_multiplier_ = noise_multiplier(
            epsilon=guarantee.epsilon,
            delta=guarantee.delta,
            sample_rate=1 / len(loader),  # as Opacus samples
            steps=self.epochs * len(loader),
        )
        descent = torch.optim.SGD(module.parameters(), lr=self.rate)
        engine = opacus.PrivacyEngine(accountant="prv")
        private, descent, loader = engine.make_private(
            module=module.train(),
            optimizer=descent,
            data_loader=loader,
            noise_multiplier=self.noise_multiplier_,
            max_grad_norm=self.clip,
            poisson_sampling=True,
            noise_generator=drawn,
        )
        for _ in range(self.epochs):
            for part, labels in loader:
                descent.zero_grad()
                loss(private(part), labels).backward()
                descent.step()
        self.epsilon_spent_ = float(engine.get_epsilon(guarantee.delta))
        self.module_ = module.eval()

    def _rows(self, X: Any, width: int | None = None) -> FloatArray:
        radius = _check.positive(norm_bound=self.norm_bound)
        return np.asarray(Ball(radius=1.0).clip(_check.matrix(X=X, width=width) / radius))

    def _scores(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        import torch

        rows = torch.from_numpy(self._rows(X, self.n_features_in_)).float()
        with torch.no_grad():
            found: FloatArray = self.module_(rows).double().numpy()
        return found


class DPSGDRegressor(RegressorMixin, _DPSGD):  # type: ignore[misc]
    """Linear or small-network regression by Opacus's DP-SGD: a measured rival, never an owner's answer.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee for one row more or less.
    norm_bound, label_bound : float
        Public bounds of rows and labels; what is beyond is clipped.
    model : "linear" or "mlp"
    hidden : int
        Units of the network's one hidden layer.
    clip, epochs, sample_rate, rate
        Norm C of a row's gradient, passes over the rows, share of rows in a batch, step size.
    insecure_seed : int
        Seed of torch's noise. Needed: see the module's docstring.

    Attributes
    ----------
    module_, noise_multiplier_, epsilon_spent_, guarantee_
    stamps_
        That the noise is torch's.
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        norm_bound: float | None = None,
        label_bound: float = 1.0,
        model: str = "linear",
        hidden: int = 32,
        clip: float = 1.0,
        epochs: int = 20,
        sample_rate: float = 0.2,
        rate: float = 0.5,
        insecure_seed: int | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            norm_bound=norm_bound,
            model=model,
            hidden=hidden,
            clip=clip,
            epochs=epochs,
            sample_rate=sample_rate,
            rate=rate,
            insecure_seed=insecure_seed,
        )
        self.label_bound = label_bound

    def fit(self, X: Any, y: Any, *, Xs: Any = None, ys: Any = None) -> Self:
        """Train; public labelled rows ``Xs, ys``, if given, are fitted first."""
        self._check()
        self._train(X, self._labels(y), Xs, None if ys is None else self._labels(ys), outputs=1, loss=_halved)
        return self

    def _labels(self, y: Any) -> Any:
        bound = _check.positive(label_bound=self.label_bound)
        return np.clip(_finite(y) / bound, -1, 1).astype(np.float32)

    def predict(self, X: Any) -> FloatArray:
        """Predictions of rows."""
        return np.asarray(self._scores(X)[:, 0] * self.label_bound)


class DPSGDClassifier(ClassifierMixin, _DPSGD):  # type: ignore[misc]
    """Softmax or small-network classification by Opacus's DP-SGD: a measured rival, never an owner's answer.

    Parameters
    ----------
    classes : sequence
        Public list of the labels.
    epsilon, delta, norm_bound, model, hidden, clip, epochs, sample_rate, rate, insecure_seed
        As in `DPSGDRegressor`.

    Attributes
    ----------
    classes_, module_, noise_multiplier_, epsilon_spent_, guarantee_, stamps_
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        classes: Any = None,
        norm_bound: float | None = None,
        model: str = "linear",
        hidden: int = 32,
        clip: float = 1.0,
        epochs: int = 20,
        sample_rate: float = 0.2,
        rate: float = 2.0,
        insecure_seed: int | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            norm_bound=norm_bound,
            model=model,
            hidden=hidden,
            clip=clip,
            epochs=epochs,
            sample_rate=sample_rate,
            rate=rate,
            insecure_seed=insecure_seed,
        )
        self.classes = classes

    def fit(self, X: Any, y: Any, *, Xs: Any = None, ys: Any = None) -> Self:
        """Train; public labelled rows ``Xs, ys``, if given, are fitted first."""
        self._check()
        names = Classes(class_list(self.classes))
        public = None if ys is None else names.encode(np.asarray(ys))
        loss = _cross_entropy
        self._train(X, names.encode(np.asarray(y)), Xs, public, outputs=len(names), loss=loss)
        self.classes_ = np.asarray(names.names)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of rows."""
        from scipy.special import softmax

        return np.asarray(softmax(self._scores(X), axis=1))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class of rows."""
        return self.classes_[self._scores(X).argmax(axis=1)]


def _finite(y: Any) -> FloatArray:
    values = np.asarray(y, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise InputError("Expected y to be one finite number for each row.")
    return values


def _halved(scores: Any, labels: Any) -> Any:
    return ((scores[:, 0] - labels) ** 2).mean() / 2


def _cross_entropy(scores: Any, labels: Any) -> Any:
    import torch

    return torch.nn.functional.cross_entropy(scores, labels)


def _fit_public(torch: Any, module: Any, loss: Any, rows: FloatArray, y: Any) -> None:
    """Fit public rows: full batches, Adam."""
    part, labels = torch.from_numpy(rows).float(), torch.from_numpy(y)
    descent = torch.optim.Adam(module.parameters(), lr=PUBLIC_RATE)
    for _ in range(PUBLIC_STEPS):
        descent.zero_grad()
        loss(module(part), labels).backward()
        descent.step()


@contextmanager
def _seeded(seed: int) -> Iterator[Any]:
    """Torch with its generator seeded, quiet; the generator is put back."""
    opacus_module()
    import torch

    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        yield torch


__all__ = ["STAMPS", "DPSGDClassifier", "DPSGDRegressor", "noise_multiplier"]
