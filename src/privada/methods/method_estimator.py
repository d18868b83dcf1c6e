"""Estimators that follow from a method: its settings are their parameters, and `fit` is written once.

An estimator names its method and which of the shared parameters it has. Everything else follows: the
constructor's signature, the documentation of its parameters, the separation of sides, the schemas, the
inquiry, and who is charged.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from privada import _check
from privada._deprecated import PARAMETERS, warn_of_parameter
from privada.exceptions import InputError, PrivadaWarning
from privada.methods.estimating import PrivateEstimator, check_owner
from privada.methods.method import Method, Public
from privada.methods.sides import PrivateRows, separate_sides
from privada.parties.schema import Category, Number, Schema
from privada.privacy.guarantee import Guarantee, make_guarantee
from privada.privacy.relation import Relation


class Parameter(NamedTuple):
    """A parameter that estimators share."""

    kind: str
    default: Any
    doc: str


SHARED = {
    "epsilon": Parameter("float", None, "The guarantee: epsilon, with delta if you give one."),
    "delta": Parameter("float", None, "The probability beside epsilon, at most one in ten times the rows."),
    "rho": Parameter("float", None, "The guarantee in zCDP, in the place of epsilon and delta."),
    "classes": Parameter("sequence", None, "The public list of the labels; none is taken from private rows."),
    "bounds": Parameter("(low, high)", None, "Public limits of the features; rows beyond them are clipped."),
    "label_bounds": Parameter(
        "(low, high)", None, "Public limits of the label; private labels and predictions are clipped to them."
    ),
    "relation": Parameter(
        "str", "add/remove", 'The neighbouring relation; under "replace-one" the number of rows is public.'
    ),
    "size": Parameter(
        "int", None, 'The announced number of private rows; under "replace-one" it must be the true one.'
    ),
    "random_state": Parameter("int", None, "For public randomness only."),
    "insecure_seed": Parameter("int", None, "Seed for reproducible noise: not private."),
    "dataset": Parameter(
        "Dataset",
        None,
        "Name of the private data set, the ledger that is charged, and the bound on the rows of a person.",
    ),
    "schema": Parameter(
        "Schema",
        None,
        "Public description of a frame's columns, for text, categories, dates and missing values; its limits "
        "are the default of ``bounds``, and its label's values or limits that of ``classes`` or "
        "``label_bounds``.",
    ),
}


class MethodEstimator(PrivateEstimator):
    """An estimator that asks what its method asks.

    A subclass sets the class attributes below, and has a ``fit`` that calls `_fit`, and ``_keep``.

    Attributes
    ----------
    method_type : type of Method
    shared : tuple of str
        Names of its parameters in `SHARED`.
    defaults : mapping
        Defaults that differ from those in `SHARED` or of the method's fields.
    docs : mapping
        Words that differ from theirs.
    hidden : tuple of str
        Fields of the method that are another estimator's.
    positional : tuple of str
        Parameters that may be given without their name.
    party : str
        What the private rows are called where no ledger names them.
    """

    question_: Any
    method_type: ClassVar[type[Method]]
    shared: ClassVar[tuple[str, ...]] = ()
    defaults: ClassVar[Mapping[str, Any]] = {}
    docs: ClassVar[Mapping[str, str]] = {}
    positional: ClassVar[tuple[str, ...]] = ()
    hidden: ClassVar[tuple[str, ...]] = ()
    party: ClassVar[str] = "fit"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "method_type" not in vars(cls):
            return
        parameters = {name: SHARED[name] for name in cls.shared}
        for declared in fields(cls.method_type):
            if declared.name in cls.hidden:
                continue
            default = None if declared.default is MISSING else declared.default
            kind = declared.metadata["kind"] or _say_kind(declared)
            parameters[declared.name] = Parameter(kind, default, declared.metadata["doc"])
        for name, parameter in parameters.items():
            parameters[name] = parameter._replace(
                default=cls.defaults.get(name, parameter.default), doc=cls.docs.get(name, parameter.doc)
            )
        cls.__init__ = _make_init(parameters, cls.positional, {**PARAMETERS, **cls.method_type.renamed})  # type: ignore[method-assign]
        cls.__doc__ = _insert_parameters(cls.__doc__ or "", parameters)

    def _fit(
        self,
        X: Any,
        y: Any,
        *,
        Xt: Any = None,
        yt: Any = None,
        Xs: Any = None,
        ys: Any = None,
        sample_domain: Any = None,
        person: Any = None,
        owner: Any = None,
    ) -> Self:
        """Separate the sides, hold the private one, prepare, run, and keep what was learnt."""
        method = self._method()
        held_array = X if method.private_side != "target" or Xt is None else Xt
        people = self._read_person(person, held_array, owner)
        if method.private_side == "source":  # public columns first: the others are matched to them
            Xt, X = self._read_frames(Xt=Xt, X=X)
        else:
            Xs, X, Xt = self._read_frames(Xs=Xs, X=X, Xt=Xt)
        public = Public()
        if owner is None:
            if method.private_side:
                parts, public = separate_sides(
                    X,
                    y,
                    private_side=method.private_side,
                    Xt=Xt,
                    yt=yt,
                    Xs=Xs,
                    ys=ys,
                    sample_domain=sample_domain,
                    person=people,
                    several=method.asks_several,
                )
            else:
                rows = np.asarray(X)
                if rows.ndim != 2:
                    raise InputError(f"Expected X to be a matrix, got {rows.ndim} axes.")
                parts = (PrivateRows(rows, None if y is None else np.asarray(y), people),)
            public = self._read_public(public)
            schemas = self._schemas(parts, public)
            owners: dict[str, Any] = {}
        else:
            public = self._read_public(self._public_beside_owner(X, y, Xt, yt, Xs, ys, sample_domain, owner))
            if isinstance(owner, Mapping) and not method.asks_several:
                raise InputError("Expected owner to be one Owner: this method asks a single one.")
            owners = dict(owner) if isinstance(owner, Mapping) else {next(iter(self._names(1))): owner}
            schemas = {name: party.schema for name, party in owners.items()}
            parts = ()
        guarantee = self._guarantee()
        seed = getattr(self, "random_state", None)
        inquiry = method.prepare(
            self._encode_public(public, next(iter(schemas.values()))),
            schemas,
            guarantee,
            seed=0 if seed is None else _check.count(least=0, random_state=seed),
        )
        if inquiry.forecast is not None and not inquiry.forecast.worthwhile and self._can_advise(public):
            warnings.warn(
                f"No gain is expected at this guarantee and size: {inquiry.forecast}. "
                "Ask for a larger epsilon, or keep the budget.",
                PrivadaWarning,
                stacklevel=3,
            )
        holdings = {}
        datasets = self._dataset().names(len(schemas))
        for turn, (name, schema) in enumerate(schemas.items()):
            rows, labels, people = parts[turn] if parts else PrivateRows(None)  # type: ignore[arg-type]
            holdings[name] = self._hold(
                rows,
                [ask.question for ask in inquiry.asks if ask.owner == name],
                y=labels,
                person=people,
                schema=schema,
                budget=guarantee,
                name=self.party if len(schemas) == 1 else name,
                owner=owners.get(name),
                dataset=datasets[turn],
                turn=turn,
            )
        model = self._ask(inquiry, holdings)
        self.forecast_, self.question_ = inquiry.forecast, inquiry.asks[0].question
        schema = next(iter(schemas.values()))
        self.n_features_in_ = schema.width
        self._keep(model, schema)
        return self

    def _can_advise(self, public: Public) -> bool:  # noqa: ARG002 - most forecasts can
        """Whether the forecast knows enough to say that the budget is better kept."""
        return True

    @classmethod
    def _accept_old(cls, options: dict[str, Any]) -> dict[str, Any]:
        """The constructor's parameters, where 0.2 called several of them otherwise."""
        return options

    def _method(self) -> Method:
        """The method with this estimator's settings."""
        names = [declared.name for declared in fields(self.method_type) if declared.name not in self.hidden]
        return self.method_type(**{name: getattr(self, name) for name in names})

    def _guarantee(self) -> Guarantee:
        return make_guarantee(
            epsilon=self.epsilon,
            delta=self.delta,
            rho=self.rho,
            relation=getattr(self, "relation", Relation.REPLACE_ONE),
            unit=self._unit(),
        )

    def _names(self, parties: int) -> list[str]:
        """What the owners are called in an inquiry."""
        return ["owner"] if parties == 1 else [f"source {place}" for place in range(1, parties + 1)]

    def _schemas(self, parts: tuple[PrivateRows, ...], public: Public) -> dict[str, Schema]:
        """What is public of each party's rows."""
        label, bounds = self._label(public), self._limits(public)
        if label is not None and any(part.y is None for part in parts):
            raise InputError("Expected y to have one label for each private row (labels of Xt are yt).")
        if bounds is None:
            raise InputError("Expected bounds=(low, high), public limits of the features; none are guessed.")
        return {
            name: Schema.of_numbers(
                bounds=bounds, width=rows.X.shape[1], size=self._announced_size(rows), label=label
            )
            for name, rows in zip(self._names(len(parts)), parts, strict=True)
        }

    def _announced_size(self, rows: PrivateRows) -> int | None:
        """The number of rows, which the caller of ``fit`` declares by passing them; persons' at most."""
        if self._guarantee().relation == Relation.ADD_REMOVE:
            return None
        return self._public_size(rows.X, rows.person)

    def _limits(self, public: Public) -> Any:  # noqa: ARG002 - some take the public rows' range
        """The public limits of the features."""
        return self._bounds()

    def _label(self, public: Public) -> Category | Number | None:
        """The label's column, from public settings and public rows."""
        raise NotImplementedError

    def _read_public(self, public: Public) -> Public:
        """The public rows, checked, before anything is made of them."""
        return public

    def _encode_public(self, public: Public, schema: Schema) -> Public:  # noqa: ARG002 - most need none
        """The public rows as the method takes them: classes as the codes of a schema."""
        return public

    def _public_beside_owner(
        self, X: Any, y: Any, Xt: Any, yt: Any, Xs: Any, ys: Any, sample_domain: Any, owner: Any
    ) -> Public:
        """The public rows of a fit whose private side is an `Owner`."""
        if self.method_type.private_side == "target":
            check_owner(owner, Xt=Xt, yt=yt, sample_domain=sample_domain)
            if Xs is not None:
                check_owner(owner, X=X, y=y)
            rows, labels = (X, y) if Xs is None else (Xs, ys)
            if not self.method_type.learns_public_labels:
                return Public(_check.matrix(source=rows))
            rows, labels = _check.matrix(Xs=rows), np.asarray(labels)
            if labels.shape != rows.shape[:1]:
                raise InputError("Expected ys to have one label for each row of Xs.")
            return Public(rows, labels)
        check_owner(owner, X=X, y=y, sample_domain=sample_domain)
        if not self.method_type.private_side:
            return Public()
        target = _check.matrix(target=Xt)
        labels = None if yt is None else np.asarray(yt)
        if labels is not None and labels.shape != target.shape[:1]:
            raise InputError("Expected yt to have one label for each row of Xt.")
        return Public(target, labels)

    def _keep(self, model: Any, schema: Schema) -> None:  # noqa: ARG002 - most keep no column
        """Keep what was learnt, here or in a study: ``model_``, ``releases_``, ``guarantee_``."""
        self.model_, self.guarantee_ = model, model.guarantee
        self.releases_, self.release_ = tuple(model.releases), model.releases[-1]

    @classmethod
    def of_study(cls, model: Any, *, method: Method, schema: Schema, guarantee: Guarantee) -> Self:
        """A fitted estimator of what a study has learnt."""
        columns = replace(schema, label=None, size=None, person_id=None, max_rows=None)
        values: dict[str, Any] = {
            "schema": columns,
            "relation": guarantee.relation.value,
            "size": schema.size,
            "classes": schema.class_names or None,
            "label_bounds": schema.label_bounds,
        }
        values |= {name: getattr(guarantee, name, None) for name in ("epsilon", "delta", "rho")}
        values |= {declared.name: getattr(method, declared.name) for declared in fields(method)}
        names = inspect.signature(cls.__init__).parameters
        estimator = cls(**{name: value for name, value in values.items() if name in names})
        estimator.n_features_in_ = schema.width
        estimator.feature_names_in_ = np.array([column.name for column in schema.columns], dtype=object)
        estimator._keep(model, schema)
        return estimator


def _say_kind(declared: Any) -> str:
    """A field's type in the words of docstrings."""
    options = declared.metadata["options"]
    if options:
        return " or ".join(f'"{option}"' for option in options)
    return str(declared.type).replace(" | None", "")


def _make_init(
    parameters: Mapping[str, Parameter], positional: tuple[str, ...], renamed: Mapping[str, str]
) -> Any:
    """A constructor that only stores its parameters, with the signature that scikit-learn reads."""
    ordered = [*positional, *(name for name in parameters if name not in positional)]
    signature = inspect.Signature(
        [
            inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY),
            *(
                inspect.Parameter(
                    name,
                    inspect.Parameter.POSITIONAL_OR_KEYWORD
                    if name in positional
                    else inspect.Parameter.KEYWORD_ONLY,
                    default=parameters[name].default,
                )
                for name in ordered
            ),
        ]
    )

    def __init__(self: Any, *args: Any, **options: Any) -> None:  # noqa: N807 - becomes the class's own
        for old, new in renamed.items():
            if old in options and old not in parameters and new in parameters:
                warn_of_parameter(old, new)
                options[new] = options.pop(old)
        try:
            bound = signature.bind(self, *args, **self._accept_old(options))
        except TypeError as error:  # without the name of a function, of which Python's own message has one
            raise TypeError(f"{type(self).__name__}: {error}") from None
        bound.apply_defaults()
        for name in ordered:
            setattr(self, name, bound.arguments[name])

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


def _insert_parameters(doc: str, parameters: Mapping[str, Parameter]) -> str:
    """The docstring with a section of its parameters before that of its attributes."""
    lines = ["    Parameters", "    ----------"]
    for name, parameter in parameters.items():
        default = f'"{parameter.default}"' if isinstance(parameter.default, str) else parameter.default
        lines += [f"    {name} : {parameter.kind}, default={default}", f"        {parameter.doc}"]
    section = "\n".join(lines) + "\n\n"
    heading = "    Attributes\n    ----------"
    return doc.replace(heading, section + heading, 1) if heading in doc else f"{doc}\n\n{section}"


__all__ = ["MethodEstimator", "Parameter"]
