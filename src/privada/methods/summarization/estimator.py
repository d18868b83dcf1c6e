"""The scikit-learn estimator of summarization: consumer, owners and curator in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada.exceptions import InputError
from privada.methods.estimating import PrivateEstimator, check_owner
from privada.methods.models.model_plot import Map, Numbers
from privada.methods.summarization.curator import Consumer, Curator, OwnerNode
from privada.methods.summarization.learner.learn import InitialRows, Matching
from privada.methods.summarization.questions.matching import FourierEmbedding
from privada.parties.one_process.holding import Dataset, Holding, count_persons, hold_owner
from privada.parties.owner import Owner
from privada.parties.permissions import Policy
from privada.parties.protocol import Inquiry, Learner
from privada.parties.schema import Category, Schema
from privada.privacy.guarantee import Guarantee, make_guarantee
from privada.privacy.relation import ROW, Relation

CURATOR = "curator"
T = TypeVar("T")


class PrivateSummarizer(PrivateEstimator):
    """Gather p rows of several owners that match a private validation set.

    Parameters
    ----------
    size : int, default=100
        p, the rows of the summary.
    gamma : float
        Public parameter of the kernel ``exp(-gamma |x - y|²)``, in the units of the rows.
    bounds : pair
        Public bounds (low, high) of the rows, scalars or one for each column; rows beyond are clipped.
    epsilon, delta, rho : float
        The guarantee for the validation set; epsilon and rho exclude each other.
    owner_epsilon, owner_delta, owner_rho : float
        The guarantee for each owner's rows, from the other owners; by default that of the validation set.
    classes : sequence, optional
        Public labels; needed if owners have labels.
    n_features : int, default=140
        Random Fourier features, half of them cosines.
    denoised : bool, default=True
        Whether owners remove from the noisy validation mean what their own rows cannot express.
    embedded : bool, default=False
        Whether the curator gets embeddings instead of rows. That is not differential privacy.
    random_state : int, optional
        Of the public frequencies.
    insecure_seed : int, optional
        Seed for reproducible noise: not private.
    dataset : Dataset, default=None
        Name of the private data set and the ledger that is charged, and the bound on the rows of a person.
    schema : Schema, default=None
        Public description of a frame's columns, for text, categories, dates and missing values; its limits
        are the default of ``bounds``.

    Attributes
    ----------
    X_, y_ : arrays
        The summary: raw rows (or embeddings) and labels, for the curator and the consumer only.
    owner_ : array
        Which owner sent each row.
    summary_, allocation_, contributions_
        The whole result, how many rows each owner contributed, and what they were worth.
    release_, releases_, guarantee_
        The validation set's release, all releases, and the validation set's guarantee.
    spent_ : Guarantee
        What all uses of the validation set, and of each owner's rows, cost together: that of the party that
        lost most.
    against_ : str
        Whom the guarantees hold against: any coalition of owners.

    Privacy
    -------
    Unit: one row; relation: replace-one, all sizes are public. Owners learn of the validation set
    and of each other what `EmbeddingSum` and `NearCount` release; that holds against any coalition of
    owners. The curator sees p raw rows: no protection from it. Proof: privacy.md, section 6.6.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> wanted, other = rng.normal(1, 0.3, size=(2000, 2)), rng.normal(-1, 0.3, size=(2000, 2))
    >>> model = PrivateSummarizer(size=50, gamma=0.5, bounds=(-3, 3), epsilon=1, delta=1e-5, random_state=0)
    >>> model = model.fit(rng.normal(1, 0.3, size=(300, 2)), owners=[wanted, other])
    >>> bool((model.owner_ == "owner 0").mean() > 0.9)
    True
    """

    def __init__(
        self,
        size: int = 100,
        *,
        gamma: float | None = None,
        bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        owner_epsilon: float | None = None,
        owner_delta: float | None = None,
        owner_rho: float | None = None,
        classes: Sequence[Any] | None = None,
        n_features: int = 140,
        denoised: bool = True,
        embedded: bool = False,
        random_state: int | None = None,
        insecure_seed: int | None = None,
        dataset: Dataset | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.size = size
        self.gamma = gamma
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.owner_epsilon = owner_epsilon
        self.owner_delta = owner_delta
        self.owner_rho = owner_rho
        self.classes = classes
        self.n_features = n_features
        self.denoised = denoised
        self.embedded = embedded
        self.random_state = random_state
        self.insecure_seed = insecure_seed
        self.dataset = dataset
        self.schema = schema

    def fit(
        self,
        X: Any = None,
        y: Any = None,  # noqa: ARG002 - D_v has no labels
        *,
        owners: Any = None,
        initial_rows: Any = None,
        person: Any = None,
        owner: Any = None,
    ) -> Self:
        """Summarise.

        Parameters
        ----------
        X : array of shape (m, features)
            The consumer's validation set; private.
        y : ignored
        owners : sequence or mapping of arrays, of (array, labels, persons), or of `Owner`
            Each owner's rows; private. One without rows is not asked. Labels may be None, and persons are
            given beside a `Dataset` with ``max_rows`` only.
        initial_rows : array of shape (q, features), optional
            Rows that are in the training set already (D_init), **declared public**. Rows of people
            stay with their holder: see `InitialRows.released`.
        person : array or str, optional
            Person of each row of ``X``, or a column of that frame, beside a `Dataset` with ``max_rows``.
        owner : Owner, optional
            Of the validation set, in the place of ``X``.
        """
        check_owner(owner, X=X)
        people = self._read_person(person, X, owner)
        (X,) = self._read_frames(X=X)
        rows = np.asarray(X) if owner is None else owner
        if owner is None and rows.ndim != 2:
            raise InputError(f"Expected X to be a matrix, got shape {rows.shape}.")
        width = rows.shape[1] if owner is None else owner.schema.width
        matching = self._matching(width)
        if initial_rows is not None:
            matching = replace(matching, initial=InitialRows.public(initial_rows, matching.embedding))
        others = [
            each
            for each in _read_owners(owners, width, self._read_rows)
            if isinstance(each[1], Owner) or len(each[1])
        ]
        if not others:
            raise InputError("Expected owners: at least one array with rows.")
        validation = rows, None, people
        held = {
            "consumer": self._hold_party(
                validation, "validation", self._dataset().names(1)[0], matching.validation, 0
            )
        }
        for turn, (name, *data) in enumerate(others, start=1):
            held[f"owner {name}"] = self._hold_party(tuple(data), name, name, matching.owners, turn)
        consumer = Consumer("consumer", held["consumer"].owner)
        nodes = [OwnerNode(name, held[f"owner {name}"].owner) for name, *_ in others]
        with self._stating(held.values()):
            summary = _SaltingCurator(held["consumer"].salt).summarise(consumer, nodes, matching)
        self.summary_, self.allocation_ = summary, summary.allocation
        self.X_, self.y_, self.owner_ = summary.X, self._labels(summary.y), summary.owner
        self.contributions_ = consumer.contributions(summary)
        self.releases_ = summary.allocation.releases
        self.release_ = self.releases_[0]
        self.guarantee_ = self.release_.guarantee
        self.against_ = summary.allocation.against
        self.n_features_in_ = width
        return self

    def train(self, classifier: Any) -> Any:
        """Fit a classifier on the summary and return it; see `Summary.train` on who may have it."""
        check_is_fitted(self)
        if self.y_ is None:
            raise InputError("The owners have no labels to train on.")
        return classifier.fit(self.X_, self.y_)

    def _panels(self, rows: Any) -> list[Map | Numbers]:  # noqa: ARG002 - no row is drawn
        """How many rows each owner contributed, and how many of its rows are estimated to suit."""
        found = self.allocation_
        names = list(found.rows)
        given, suiting = (np.array([[each[name]] for name in names]) for each in (found.rows, found.suitable))
        return [
            Numbers(title="rows of each owner in the summary", names=names, values=given),
            Numbers(title="estimated share of its rows that suit", names=names, values=suiting),
        ]

    def _matching(self, width: int) -> Matching:
        if self.gamma is None or self._bounds() is None:
            raise InputError("Expected gamma and bounds, both public; none is guessed.")
        validation = self._guarantee(self.epsilon, self.delta, self.rho)
        own = (self.owner_epsilon, self.owner_delta, self.owner_rho)
        return Matching(
            embedding=FourierEmbedding.of(
                width=width, n_features=self.n_features, gamma=self.gamma, random_state=self.random_state
            ),
            size=_check.count(size=self.size),
            validation=validation,
            owners=validation if own == (None, None, None) else self._guarantee(*own),
            curator=CURATOR,
            denoised=self.denoised,
            embedded=self.embedded,
        )

    def _guarantee(self, epsilon: float | None, delta: float | None, rho: float | None) -> Guarantee:
        return make_guarantee(
            epsilon=epsilon, delta=delta, rho=rho, relation=Relation.REPLACE_ONE, unit=self._unit()
        )

    def _hold_party(
        self, data: tuple[Any, Any, Any], name: str, dataset: str | None, budget: Guarantee, turn: int
    ) -> Holding:
        """The validation set, or one owner's rows, labels and persons."""
        rows, labels, person = data
        if isinstance(rows, Owner):
            return hold_owner(rows, budget)
        if (person is None) != (budget.unit == ROW):
            raise InputError("Expected the persons of every party beside max_rows, and of none without it.")
        size = len(rows) if person is None else count_persons(person)  # each has one row or more
        label = None
        if labels is not None:
            if self.classes is None:
                raise InputError("Expected classes, the public labels, beside owners that have labels.")
            label = Category(name="label", values=tuple(self.classes))
        schema = Schema.of_numbers(
            bounds=self._bounds(), width=np.shape(rows)[1], size=max(1, size), label=label
        )
        return self._hold(
            rows,
            [],
            y=labels,
            person=person,
            schema=schema,
            name=name,
            dataset=None if self._dataset().ledger is None else dataset,
            budget=budget,
            policy=Policy(curators=(CURATOR,)),
            turn=turn,
        )

    def _labels(self, codes: Any) -> Any:
        return codes if codes is None or self.classes is None else np.asarray(self.classes)[codes]


class _SaltingCurator(Curator):
    """A curator whose questions are of one fit alone."""

    def __init__(self, salt: str) -> None:
        super().__init__(CURATOR)
        self._salt = salt

    def drive(self, learner: Inquiry[T] | Learner[T], nodes: Mapping[str, OwnerNode]) -> T:
        assert isinstance(learner, Inquiry)
        return super().drive(learner.again(self._salt), nodes)


def _read_owners(owners: Any, width: int, read: Callable[..., Any]) -> list[tuple[str, Any, Any, Any]]:
    """Name, rows, labels and persons of each owner."""
    if owners is None or isinstance(owners, np.ndarray):
        raise InputError("Expected owners: a sequence or mapping with the rows of each.")
    pairs = (
        owners.items() if isinstance(owners, Mapping) else ((f"owner {i}", o) for i, o in enumerate(owners))
    )
    made = []
    for name, held in pairs:
        rows, labels, person = (*held, None, None)[:3] if isinstance(held, tuple) else (held, None, None)
        if isinstance(rows, Owner):
            made.append((str(name), rows, None, None))
            continue
        rows = read(rows, name=f"rows of {name}")
        if np.ndim(rows) != 2 or np.shape(rows)[1] != width:
            raise InputError(
                f"Expected the rows of {name} to be a matrix of {width} columns, got shape {np.shape(rows)}."
            )
        made.append((str(name), rows, labels, person))
    return made


__all__ = ["PrivateSummarizer"]
