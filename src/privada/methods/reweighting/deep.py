"""The scikit-learn faces of PNCnvxAdap on torch modules: both sides in one process (extra ``deep``).

A module is first fitted to the public source. Then an owner in memory, which holds the private target,
trains it on by noisy, clipped gradients (`ModuleAdaptation`). Settings come from public quantities: G is the
largest gradient norm of a public row at the public fit, A is how far the public fit went from its start, the
step size is the paper's. The default α, number of steps and ``stopping`` were chosen on generated shifts.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from privada._arrays import FloatArray
from privada._progress import track
from privada.exceptions import InputError
from privada.methods.domains import private_persons
from privada.methods.estimating import PrivateEstimator
from privada.methods.reweighting.domains import Domains, label_number, split
from privada.methods.reweighting.questions import network
from privada.methods.reweighting.questions.module import ModuleAdaptation
from privada.methods.reweighting.questions.problem import Penalties
from privada.methods.scaling import PublicScale
from privada.parties.one_process.holding import Dataset
from privada.parties.owner import Owner
from privada.parties.protocol import ask_one
from privada.parties.schema import Category, Number, Schema
from privada.privacy.guarantee import Guarantee, make_guarantee

HIDDEN = 32
PUBLIC_STEPS, PUBLIC_RATE, PUBLIC_DECAY = 300, 1e-2, 1e-3
LEAST = 1e-6  # of G and A, for a public fit that stays where it starts


@dataclass(frozen=True, kw_only=True)
class _Task:
    """What both estimators hand to the fit."""

    loss: str
    label: Number | Category
    codes: FloatArray  # labels of the source, as the loss takes them
    outputs: int


class _DeepReweighted(PrivateEstimator):
    """What both estimators share: the public fit, the question, the owner in memory."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}
    predicts_target_labels = True  # skada leaves the labels of the target to those who learn from them

    def _guarantee(self) -> Guarantee:
        return make_guarantee(
            epsilon=self.epsilon, delta=self.delta, rho=self.rho, relation="replace-one", unit=self._unit()
        )

    def _with_persons(self, domains: Domains, person: Any) -> Domains:
        """The domains, with the persons of the target and the number of rows that is public then."""
        if person is None:
            return domains
        return domains._replace(person=person, public_size=self._public_size(domains.Xt, person))

    def _schema(self, domains: Domains, label: Number | Category) -> Schema:
        if domains.owner is not None:
            return _known_size(domains.owner)
        bounds = self._bounds()
        if bounds is None:  # of the public source, and its width more on both sides
            low, high = domains.Xs.min(axis=0), domains.Xs.max(axis=0)
            room = np.where(high > low, high - low, 1.0)
            bounds = (low - room, high + room)
        width = domains.Xs.shape[1]
        return Schema.of_numbers(bounds=bounds, width=width, label=label, size=domains.size)

    def _train(self, domains: Domains, task: _Task) -> None:
        guarantee, schema = self._guarantee(), self._schema(domains, task.label)
        scaling = _Scaling.of(domains.Xs, task)
        module = self._module(schema.width, task.outputs)
        start = network.flat(module)
        rows, labels = scaling.rows(domains.Xs), scaling.labels(task.codes)
        module = fitted(module, task.loss, rows, labels)
        with _named(module) as declared:
            question = self._question(module, declared, start, domains.Xs, task, scaling, schema, guarantee)
            self._ask_once(question, domains, schema)
        self.module_ = _with(module, self.release_["weights"])
        self._scaling, self._task = scaling, task
        self.n_features_in_ = schema.width

    def _module(self, width: int, outputs: int) -> Any:
        """A copy of the user's module, or a network of one hidden layer, in double precision."""
        torch = network.torch_module()
        if self.module is not None:
            if not isinstance(self.module, torch.nn.Module):
                raise InputError(f"Expected module to be a torch module, got {type(self.module).__name__}.")
            made = copy.deepcopy(self.module)
        else:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0 if self.random_state is None else self.random_state)
                layers = torch.nn.Linear(width, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, outputs)
                made = torch.nn.Sequential(*layers)
        made = made.double().eval()
        if network.n_outputs(made, width=width) != outputs:
            raise InputError(f"Expected module to have {outputs} outputs.")
        return made

    def _question(
        self,
        module: Any,
        declared: dict[str, Any],
        start: FloatArray,
        source: FloatArray,
        task: _Task,
        scaling: _Scaling,
        schema: Schema,
        guarantee: Guarantee,
    ) -> ModuleAdaptation:
        from privada.methods.reweighting.questions.network import Gradients

        warm = network.flat(module)
        public = Gradients(module, task.loss, scaling.rows(source), scaling.labels(task.codes))
        found = list(public.blocks(warm))
        norms = np.linalg.norm(np.concatenate([slopes for _, _, slopes in found]), axis=1)
        clip = max(float(norms.max()), LEAST) if self.clip is None else self.clip
        worst = _largest_loss(task)
        return ModuleAdaptation(
            size=int(schema.size or 0),
            network=declared,
            start=warm,
            source=source,
            source_labels=task.codes,
            mean=scaling.mean,
            scale=scaling.scale,
            label_mean=scaling.label_mean,
            label_scale=scaling.label_scale,
            penalties=Penalties(alpha=self.alpha, kappa1=worst if self.kappa1 is None else self.kappa1),
            loss=task.loss,
            clip=clip,
            largest_loss=worst,
            A=max(float(np.linalg.norm(warm - start)), LEAST),
            steps=self.steps,
            stopping=self.stopping,
            guarantee=guarantee,
        )

    def _ask_once(self, question: ModuleAdaptation, domains: Domains, schema: Schema) -> None:
        held = self._hold(
            domains.Xt,
            [question],
            y=domains.yt,
            person=domains.person,
            schema=schema,
            name="target",
            budget=question.guarantee,
            owner=domains.owner,
        )
        self.release_ = self._ask(ask_one("owner", question), {"owner": held})
        self.guarantee_ = self.release_.guarantee

    def _scores(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        torch = network.torch_module()
        rows = self._scaling.rows(self._matrix(X))
        with torch.no_grad():
            found: FloatArray = self.module_(torch.from_numpy(rows)).numpy()
        return found


class DeepReweightedClassifier(ClassifierMixin, _DeepReweighted):  # type: ignore[misc]
    """Train any torch module as classifier of a private target, with a public, labelled source.

    Parameters
    ----------
    module : torch.nn.Module, optional
        From rows of features to one score a class; by default a network of one hidden layer. Its result
        for a row must depend on that row alone, as it does in evaluation mode, in which it is used.
    epsilon, delta, rho : float
        The guarantee for the target; epsilon and rho exclude each other, and epsilon needs a delta.
    classes : sequence, optional
        Public list of the labels; by default those of the public source.
    bounds : (low, high), optional
        Public limits of the features; by default the public source's range, and its width more on both sides.
    alpha : float
        Weight of the public data.
    kappa1 : float, optional
        λ₁ of J: rows whose loss stays above it lose weight; by default the largest loss that counts, so
        that none does.
    clip : float, optional
        Norm G of one row's gradient; by default the largest of a public row at the public fit.
    steps : int
    stopping : "average" or "random"
        Mean of the later half of the path, or the iterate of a random step (Algorithm 2).
    random_state : int, optional
        For public randomness only: the start of the default module.
    insecure_seed : int, optional
        Seed for reproducible noise: not private.
    dataset : Dataset, default=None
        Name of the private data set and the ledger that is charged, and the bound on the rows of a person.
    schema : Schema, default=None
        Public description of a frame's columns, for text, categories, dates and missing values; its limits
        are the default of ``bounds``.

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

    def __init__(
        self,
        module: Any = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        classes: Any = None,
        bounds: Any = None,
        alpha: float = 0.1,
        kappa1: float | None = None,
        clip: float | None = None,
        steps: int = 100,
        stopping: str = "average",
        random_state: int | None = None,
        insecure_seed: int | None = None,
        dataset: Dataset | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.module = module
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.classes = classes
        self.bounds = bounds
        self.alpha = alpha
        self.kappa1 = kappa1
        self.clip = clip
        self.steps = steps
        self.stopping = stopping
        self.random_state = random_state
        self.insecure_seed = insecure_seed
        self.dataset = dataset
        self.schema = schema

    def fit(
        self,
        X: Any = None,
        y: Any = None,
        Xt: Any = None,
        yt: Any = None,
        *,
        Xs: Any = None,
        ys: Any = None,
        sample_domain: Any = None,
        person: Any = None,
        owner: Any = None,
    ) -> Self:
        """Adapt; the forms are those of `ReweightedRegressor.fit`."""
        people = self._read_person(person, X if Xt is None else Xt, owner)
        Xs, X, Xt = self._read_frames(Xs=Xs, X=X, Xt=Xt)
        domains = split(X, y, Xt, yt, Xs, ys, sample_domain, None, owner)
        domains = self._with_persons(domains, private_persons(people, sample_domain, sign=-1))
        names = np.unique(domains.ys).tolist() if self.classes is None else list(self.classes)
        label = Category(name="label", values=tuple(names))
        codes = self._schema(domains, label).classes.encode(domains.ys).astype(np.float64)
        self._train(domains, _Task(loss="cross-entropy", label=label, codes=codes, outputs=len(names)))
        self.classes_ = np.asarray(names)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of rows."""
        from scipy.special import softmax

        return np.asarray(softmax(self._scores(X), axis=1))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class of rows."""
        likely = self._scores(X).argmax(axis=1)
        return self.classes_[likely]


class DeepReweightedRegressor(RegressorMixin, _DeepReweighted):  # type: ignore[misc]
    """Train any torch module as regressor for a private target, with a public, labelled source.

    Parameters
    ----------
    module : torch.nn.Module, optional
        From rows of features to one number each.
    label_bounds : (low, high), optional
        Public limits of the label, and of predictions; by default the public source's range, widened by its
        width.
    epsilon, delta, rho, bounds, alpha, kappa1, clip, steps, stopping, random_state, insecure_seed,
    dataset, schema
        As in `DeepReweightedClassifier`.

    Attributes
    ----------
    module_, label_bounds_, release_, guarantee_, spent_

    Privacy
    -------
    Unit: one target row, replaced; the number of target rows is public. Proof: `ModuleAdaptation`.
    """

    def __init__(
        self,
        module: Any = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        bounds: Any = None,
        label_bounds: Any = None,
        alpha: float = 0.1,
        kappa1: float | None = None,
        clip: float | None = None,
        steps: int = 100,
        stopping: str = "average",
        random_state: int | None = None,
        insecure_seed: int | None = None,
        dataset: Dataset | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.module = module
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.label_bounds = label_bounds
        self.alpha = alpha
        self.kappa1 = kappa1
        self.clip = clip
        self.steps = steps
        self.stopping = stopping
        self.random_state = random_state
        self.insecure_seed = insecure_seed
        self.dataset = dataset
        self.schema = schema

    def fit(
        self,
        X: Any = None,
        y: Any = None,
        Xt: Any = None,
        yt: Any = None,
        *,
        Xs: Any = None,
        ys: Any = None,
        sample_domain: Any = None,
        person: Any = None,
        owner: Any = None,
    ) -> Self:
        """Adapt; the forms are those of `ReweightedRegressor.fit`."""
        people = self._read_person(person, X if Xt is None else Xt, owner)
        Xs, X, Xt = self._read_frames(Xs=Xs, X=X, Xt=Xt)
        domains = split(X, y, Xt, yt, Xs, ys, sample_domain, None, owner)
        domains = self._with_persons(domains, private_persons(people, sample_domain, sign=-1))
        label, codes = label_number(self.label_bounds, domains.ys), np.asarray(domains.ys, dtype=np.float64)
        self._train(domains, _Task(loss="squared", label=label, codes=codes, outputs=1))
        self.label_bounds_ = (label.low, label.high)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predictions of rows, within the label's public limits."""
        found = self._scores(X)[:, 0] * self._scaling.label_scale + self._scaling.label_mean
        return np.asarray(np.clip(found, *self.label_bounds_))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Scaling:
    """Public means and scales, of the source."""

    mean: FloatArray
    scale: FloatArray
    label_mean: float = 0.0
    label_scale: float = 1.0

    @classmethod
    def of(cls, X: FloatArray, task: _Task) -> _Scaling:
        scale = PublicScale.of(X)
        label: dict[str, float] = {}
        if task.loss == "squared":
            label = {
                "label_mean": float(task.codes.mean()),
                "label_scale": float(task.codes.std()) or 1.0,
            }
        return cls(mean=scale.mean, scale=scale.spread, **label)

    def rows(self, X: FloatArray) -> FloatArray:
        return np.asarray((X - self.mean) / self.scale)

    def labels(self, y: FloatArray) -> FloatArray:
        return np.asarray((y - self.label_mean) / self.label_scale)


def _largest_loss(task: _Task) -> float:
    """B: of ten times a guess among all classes, or of a label ten standard deviations away."""
    return 100.0 if task.loss == "squared" else 10 * float(np.log(task.outputs))


def fitted(module: Any, loss: str, X: FloatArray, y: FloatArray) -> Any:
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


def _known_size(owner: Owner) -> Schema:
    if owner.schema.size is None:
        raise InputError("Expected the owner's schema to announce its size, which is public here.")
    return owner.schema


@contextmanager
def _named(module: Any) -> Iterator[dict[str, Any]]:
    """The module as a question has it: its layers, or, if they cannot be declared, a name for this fit."""
    try:
        layers = network.declare(module)
    except InputError:
        name = f"{type(module).__name__}-{uuid.uuid4().hex}"
        network.keep(name, module)
        try:
            yield {"known": name}
        finally:
            network.forget(name)
    else:
        yield {"layers": layers}


def _with(module: Any, weights: FloatArray) -> Any:
    """A copy of the module with these parameters."""
    torch = network.torch_module()
    module = copy.deepcopy(module)
    values = network.shaped(module, weights)
    with torch.no_grad():
        for name, part in module.named_parameters():
            part.copy_(values[name])
    return module


__all__ = ["DeepReweightedClassifier", "DeepReweightedRegressor", "fitted"]
