"""The scikit-learn estimator of summarization: consumer, owners and curator in one process."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada.exceptions import InputError
from privada.methods.estimating import check_owner
from privada.methods.method import Public
from privada.methods.method_estimator import MethodEstimator
from privada.methods.models.model_plot import Map, Numbers
from privada.methods.summarization.curator import Curator, OwnerNode
from privada.methods.summarization.method import Summarization
from privada.parties.one_process.holding import count_persons, hold_owner
from privada.parties.owner import Owner
from privada.parties.permissions import Policy
from privada.parties.schema import Category, Schema
from privada.privacy.relation import ROW


class Party(NamedTuple):
    """Rows of one party, or its `Owner`; their labels, and the person of each row."""

    rows: Any
    labels: Any = None
    person: Any = None


class PrivateSummarizer(MethodEstimator):
    """Gather p rows of several owners that match a private validation set.

    Attributes
    ----------
    X_, y_ : arrays
        The summary: raw rows (or embeddings) and labels, for the curator and the consumer only.
    owner_ : array
        Which owner sent each row.
    summary_, allocation_, contributions_
        The whole result, how many rows each owner contributed, and what they were worth.
    forecast_ : Forecast
        The distance of mean features from the validation set, over that of a random choice, that was expected
        before anything was spent.
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

    method_type = Summarization
    shared = (
        *("epsilon", "delta", "rho", "classes", "bounds"),
        *("random_state", "insecure_seed", "dataset", "schema"),
    )
    docs: ClassVar[dict[str, str]] = {
        "epsilon": "The guarantee for the rows of each owner, and for the validation set unless you give "
        "``validation_epsilon``; with delta if you give one.",
        "classes": "The public list of the labels; needed if owners have labels.",
    }
    positional = ("size",)

    @classmethod
    def _accept_old(cls, options: dict[str, Any]) -> dict[str, Any]:
        owners = {name: options.pop(f"owner_{name}", None) for name in ("epsilon", "delta", "rho")}
        if all(value is None for value in owners.values()):
            return options
        warnings.warn(
            "owner_epsilon=, owner_delta= and owner_rho= are now epsilon=, delta= and rho=, and the "
            "guarantee for the validation set beside them is validation_epsilon=, validation_delta= and "
            "validation_rho=; the old names go in 0.4.",
            DeprecationWarning,
            stacklevel=3,
        )
        return options | {f"validation_{name}": options.get(name) for name in owners} | owners

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
        validation = Party(np.asarray(X) if owner is None else owner, None, people)
        if owner is None and validation.rows.ndim != 2:
            raise InputError(f"Expected X to be a matrix, got shape {validation.rows.shape}.")
        width = validation.rows.shape[1] if owner is None else owner.schema.width
        if self.gamma is None or self._bounds() is None:
            raise InputError("Expected gamma and bounds, both public; none is guessed.")
        others = _read_owners(owners, width, self._read_rows)
        if not others:
            raise InputError("Expected owners: at least one array with rows.")
        if self.consumer in others:
            raise InputError("Expected every party to have a name of its own.")
        parties = {self.consumer: validation} | others
        schemas = {name: self._party_schema(party) for name, party in parties.items()}
        method, guarantee = self._method(), self._guarantee()
        assert isinstance(method, Summarization)
        seed = 0 if self.random_state is None else _check.count(least=0, random_state=self.random_state)
        inquiry = method.prepare(Public(initial_rows), schemas, guarantee, seed=seed)
        self.forecast_ = inquiry.forecast
        holdings = {}
        for turn, (name, party) in enumerate(parties.items()):
            mine = name == self.consumer
            budget = method.validation_guarantee(guarantee) if mine else guarantee
            if isinstance(party.rows, Owner):
                holdings[name] = hold_owner(party.rows, budget)
                continue
            dataset = self._dataset().names(1)[0] if mine else name
            holdings[name] = self._hold(
                party.rows,
                [],
                y=party.labels,
                person=party.person,
                schema=schemas[name],
                name="validation" if mine else name,
                dataset=None if self._dataset().ledger is None else dataset,
                budget=budget,
                policy=Policy(curators=(self.curator,)),
                turn=turn,
            )
        nodes = {name: OwnerNode(name, holding.owner) for name, holding in holdings.items()}
        with self._stating(holdings.values()):
            # A salt makes the questions those of this fit alone, also where not all parties are on a ledger.
            salt = next((holding.salt for holding in holdings.values() if holding.salt), "")
            self.summary_ = Curator(self.curator).drive(inquiry.again(salt), nodes)
        codes = self.summary_.y
        classes = self._class_names()
        self.y_ = codes if codes is None or classes is None else np.asarray(classes)[codes]
        self.X_, self.owner_ = self.summary_.X, self.summary_.owner
        self.allocation_, self.contributions_ = self.summary_.allocation, self.summary_.contributions()
        self.releases_, self.against_ = self.allocation_.releases, self.allocation_.against
        self.release_ = self.releases_[0]
        self.guarantee_ = self.release_.guarantee
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
        allocation = self.allocation_
        names = list(allocation.rows)
        panels: list[Map | Numbers] = [
            Numbers(
                title="rows of each owner in the summary",
                names=names,
                values=np.array([[allocation.rows[name]] for name in names]),
            )
        ]
        if allocation.suitable:  # rounds estimate none
            shares = np.array([[allocation.suitable[name]] for name in names])
            panels.append(Numbers(title="estimated share of its rows that suit", names=names, values=shares))
        return panels

    def _party_schema(self, party: Party) -> Schema:
        """What is public of one party's rows: everybody announces its size."""
        rows, labels, person = party
        if isinstance(rows, Owner):
            return rows.schema
        if (person is None) != (self._unit() == ROW):
            raise InputError("Expected the persons of every party beside max_rows, and of none without it.")
        label = None
        if labels is not None:
            classes = self._class_names()
            if classes is None:
                raise InputError("Expected classes, the public labels, beside owners that have labels.")
            label = Category(name="label", values=tuple(classes))
        size = len(rows) if person is None else count_persons(person)  # each person has one row or more
        return Schema.of_numbers(
            bounds=self._bounds(), width=np.shape(rows)[1], size=max(1, size), label=label
        )


def _read_owners(owners: Any, width: int, read: Callable[..., Any]) -> dict[str, Party]:
    """The owners that have rows, by name."""
    if owners is None or isinstance(owners, np.ndarray):
        raise InputError("Expected owners: a sequence or mapping with the rows of each.")
    if not isinstance(owners, Mapping):
        owners = {f"owner {place}": data for place, data in enumerate(owners)}
    parties = {}
    for name, data in owners.items():
        party = Party(*data[:3]) if isinstance(data, tuple) else Party(data)
        if isinstance(party.rows, Owner):
            parties[str(name)] = Party(party.rows)
            continue
        rows = read(party.rows, name=f"rows of {name}")
        if np.ndim(rows) != 2 or np.shape(rows)[1] != width:
            raise InputError(
                f"Expected the rows of {name} to be a matrix of {width} columns, got shape {np.shape(rows)}."
            )
        if len(rows):
            parties[str(name)] = party._replace(rows=rows)
    return parties


__all__ = ["PrivateSummarizer"]
