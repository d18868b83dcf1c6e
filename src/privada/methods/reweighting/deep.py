"""PNCnvxAdap on torch modules, with scikit-learn's API: both sides in one process (extra ``deep``).

A module is first fitted to the public source. Then an owner in memory, which holds the private target,
trains it on by noisy, clipped gradients (`ModuleAdaptation`). Settings come from public quantities: G is the
largest gradient norm of a public row at the public fit, A is how far the public fit went from its start, the
step size is the paper's. The default α, number of steps and ``stopping`` were chosen on generated shifts.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from privada import _check
from privada._arrays import AnyArray, FloatArray
from privada._progress import track
from privada.exceptions import InputError
from privada.methods.estimating import PrivateEstimator
from privada.methods.method import Method, Public, setting
from privada.methods.reweighting.estimator import Reweighted, ReweightedClasses, ReweightedNumbers
from privada.methods.reweighting.questions import network
from privada.methods.reweighting.questions.module import STOPPING, ModuleAdaptation
from privada.methods.reweighting.questions.problem import Penalties
from privada.methods.scaling import PublicScale
from privada.parties.protocol import AskOwner, Inquiry, Learner, one_round, only_releases
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import Release

HIDDEN = 32
PUBLIC_STEPS, PUBLIC_RATE, PUBLIC_DECAY = 300, 1e-2, 1e-3
LEAST = 1e-6  # of G and A, for a public fit that stays where it starts


@dataclass(frozen=True, kw_only=True, eq=False)
class DeepModel:
    """A torch module for a private target, with the public means and scales of what it takes and gives."""

    module: Any = field(repr=False)
    scale: PublicScale = field(repr=False)
    label_mean: float
    label_scale: float
    release: Release = field(repr=False)

    @property
    def guarantee(self) -> Guarantee:
        """Of the release."""
        return self.release.guarantee

    @property
    def releases(self) -> tuple[Release, ...]:
        """What left the owner."""
        return (self.release,)

    def scores(self, X: FloatArray) -> FloatArray:
        """Scores of classes, or numbers, of public rows."""
        torch = network.torch_module()
        with torch.no_grad():
            outputs = self.module(torch.from_numpy(self.scale.standardise(X))).numpy()
        return np.asarray(outputs * self.label_scale + self.label_mean)


@dataclass(frozen=True, kw_only=True)
class DeepReweighting(Method):
    """Train a torch module on a public labelled source and a private labelled target (paper 003)."""

    name = "deep-reweighting"  # of estimators only: no study has a module
    private_side = "target"
    learns_public_labels = True

    module: Any = setting(
        None,
        "From rows of features to one score a class, or to one number; by default a network of one hidden "
        "layer. Its result for a row must depend on that row alone, as it does in evaluation mode, in which "
        "it is used.",
        kind="torch.nn.Module",
    )
    alpha: float = setting(0.1, "Weight of the public data.")
    kappa1: float | None = setting(
        None,
        "λ₁ of J: rows whose loss stays above it lose weight; by default the largest loss that counts, so "
        "that none does.",
    )
    clip: float | None = setting(
        None, "Norm G of one row's gradient; by default the largest of a public row at the public fit."
    )
    steps: int = setting(100, "Number of noisy steps.")
    stopping: str = setting(
        "average",
        "Mean of the later half of the path, or the iterate of a random step (Algorithm 2).",
        options=STOPPING,
    )
    known_as: str = setting("", "Under which name the owner knows a module that cannot be declared.")

    def prepare(
        self, public: Public, parties: Mapping[str, Schema], guarantee: Guarantee, *, seed: int = 0
    ) -> Inquiry[DeepModel]:
        """Fit the module to the source, and ask to train it on."""
        ((owner, schema),) = parties.items()
        if schema.label is None or schema.size is None:
            raise InputError("Expected the owner's schema to have a label and a declared size.")
        rows, labels = _check.matrix(Xs=public.X), np.asarray(public.y, dtype=np.float64)
        scale, label_mean, label_scale = PublicScale.of(rows), 0.0, 1.0
        if schema.label_bounds:
            # B: of a label ten standard deviations away
            loss, outputs, largest_loss = "squared", 1, 100.0
            label_mean, label_scale = float(labels.mean()), float(labels.std()) or 1.0
        else:
            # B: of ten times a guess among all classes
            loss, outputs = "cross-entropy", len(schema.classes)
            largest_loss = 10 * float(np.log(outputs))
        scaled = scale.standardise(rows), (labels - label_mean) / label_scale
        start = self._make_module(schema.width, outputs, seed)
        module = fit_to_source(start, loss, *scaled)
        weights = network.flat(module)
        clip = self.clip
        if clip is None:
            blocks = network.Gradients(module, loss, *scaled).blocks(weights)
            norms = np.linalg.norm(np.concatenate([slopes for _, _, slopes in blocks]), axis=1)
            clip = max(float(norms.max()), LEAST)
        question = ModuleAdaptation(
            size=schema.size,
            network=self._declare(module),
            start=weights,
            source=rows,
            source_labels=labels,
            mean=scale.mean,
            scale=scale.spread,
            label_mean=label_mean,
            label_scale=label_scale,
            penalties=Penalties(
                alpha=self.alpha, kappa1=largest_loss if self.kappa1 is None else self.kappa1
            ),
            loss=loss,
            clip=clip,
            largest_loss=largest_loss,
            A=max(float(np.linalg.norm(weights - network.flat(start))), LEAST),
            steps=self.steps,
            stopping=self.stopping,
            guarantee=guarantee,
        )

        @one_round
        def learn() -> Learner[DeepModel]:
            release = yield AskOwner(owner, question)
            only_releases(release)
            trained = network.with_parameters(module, release["weights"])
            return DeepModel(
                module=trained, scale=scale, label_mean=label_mean, label_scale=label_scale, release=release
            )

        return learn()

    def _make_module(self, width: int, outputs: int, seed: int) -> Any:
        """A copy of the user's module, or a network of one hidden layer, in double precision."""
        torch = network.torch_module()
        if self.module is None:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                layers = torch.nn.Linear(width, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, outputs)
                module = torch.nn.Sequential(*layers)
        elif isinstance(self.module, torch.nn.Module):
            module = copy.deepcopy(self.module)
        else:
            raise InputError(f"Expected module to be a torch module, got {type(self.module).__name__}.")
        module = module.double().eval()
        if network.n_outputs(module, width=width) != outputs:
            raise InputError(f"Expected module to have {outputs} outputs.")
        return module

    def _declare(self, module: Any) -> dict[str, Any]:
        """The module as a question has it: its layers, or, if they cannot be declared, a name."""
        try:
            return {"layers": network.declare(module)}
        except InputError:
            if not self.known_as:
                raise
            network.keep(self.known_as, module)
            return {"known": self.known_as}


def fit_to_source(module: Any, loss: str, X: FloatArray, y: FloatArray) -> Any:
    """A copy of the module, fitted to public rows: full batches, Adam, a little weight decay."""
    torch = network.torch_module()
    module = copy.deepcopy(module)
    rows = torch.from_numpy(np.array(X))
    labels = torch.from_numpy(y if loss == "squared" else y.astype(np.int64))
    descent = torch.optim.AdamW(module.parameters(), lr=PUBLIC_RATE, weight_decay=PUBLIC_DECAY)
    for _ in track(range(PUBLIC_STEPS), "network of the public source"):
        descent.zero_grad()
        scores = module(rows)
        if loss == "squared":
            value = ((scores[:, 0] - labels) ** 2).mean()
        else:
            value = torch.nn.functional.cross_entropy(scores, labels)
        value.backward()
        descent.step()
    return module


class _Deep(Reweighted):
    """What both estimators share: the owner in memory knows the module by a name while a fit goes on."""

    hidden = ("known_as",)
    positional = ("module",)
    model_: DeepModel
    _known_as = ""
    _panels = PrivateEstimator._panels  # weights of networks say nothing to a reader

    def _method(self) -> DeepReweighting:
        method = super()._method()
        assert isinstance(method, DeepReweighting)
        return replace(method, known_as=self._known_as)

    def _fit(self, *args: Any, **options: Any) -> Self:
        # A name that no other fit of this process uses; it is forgotten whatever happens.
        self._known_as = f"{type(self.module).__name__}-{uuid.uuid4().hex}"
        try:
            return super()._fit(*args, **options)
        finally:
            network.forget(self._known_as)
            del self._known_as

    def _keep(self, model: DeepModel, schema: Schema) -> None:
        super()._keep(model, schema)
        self.module_ = model.module


class DeepReweightedClassifier(_Deep, ReweightedClasses):
    """Train any torch module as classifier of a private target, with a public, labelled source.

    Attributes
    ----------
    classes_, module_, release_, guarantee_, spent_

    Privacy
    -------
    Unit: one target row, replaced; the number of target rows is public. Proof: `ModuleAdaptation`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Xs, Xt = rng.normal(size=(600, 2)), rng.normal(size=(2000, 2))
    >>> ys, yt = (Xs[:, 0] > 0).astype(int), (Xt.sum(axis=1) > 0).astype(int)
    >>> model = DeepReweightedClassifier(epsilon=2, delta=1e-6, random_state=0)
    >>> model.fit(Xs, ys, Xt, yt).score(Xt, yt) > 0.85
    True
    >>> print(model.guarantee_)
    (ε = 2, δ = 1e-06), replace-one row
    """

    method_type = DeepReweighting
    shared = ReweightedClasses.shared
    docs: ClassVar[dict[str, str]] = ReweightedClasses.docs

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of rows."""
        from scipy.special import softmax

        rows = self._matrix(X)
        return np.asarray(softmax(self.model_.scores(rows), axis=1))

    def predict(self, X: Any) -> AnyArray:
        """Most likely class of rows."""
        likely = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likely]


class DeepReweightedRegressor(_Deep, ReweightedNumbers):
    """Train any torch module as regressor for a private target, with a public, labelled source.

    Attributes
    ----------
    module_, label_bounds_, release_, guarantee_, spent_

    Privacy
    -------
    Unit: one target row, replaced; the number of target rows is public. Proof: `ModuleAdaptation`.
    """

    method_type = DeepReweighting
    shared = ReweightedNumbers.shared
    docs: ClassVar[dict[str, str]] = ReweightedNumbers.docs

    def predict(self, X: Any) -> FloatArray:
        """Predictions of rows, within the label's public limits."""
        rows = self._matrix(X)
        return np.clip(self.model_.scores(rows)[:, 0], *self.label_bounds_)


__all__ = ["DeepModel", "DeepReweightedClassifier", "DeepReweightedRegressor", "DeepReweighting"]
