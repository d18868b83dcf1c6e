"""A method and its settings: what it asks of owners, and what it makes of their answers.

`Method` is the object that every surface follows from. Its fields are the settings, each documented where it
is declared: they are the estimators' parameters, the keys of a study's ``[method]`` table, and what the
generated documentation lists. `Method.prepare` makes the `Inquiry` that is priced, asked and run.

A method is found by its entry point in the group ``privada.methods``. Its module imports little: the parts of
its package are imported when they are first needed.

>>> @dataclass(frozen=True, kw_only=True)
... class Votes(Method):
...     name: ClassVar[str] = "votes"
...     bins: int = setting(10, "Bins of the histogram.")
...     rule: str = setting("majority", "How votes are counted.", options=("majority", "mean"))
>>> Votes(bins=20)
Votes(bins=20, rule='majority')
>>> Votes(rule="loudest")
Traceback (most recent call last):
    ...
privada.exceptions.InputError: Expected rule to be one of majority, mean, got 'loudest'.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from functools import cache
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from privada import _check
from privada._deprecated import warn_of_parameter
from privada.exceptions import InputError, PrivadaWarning
from privada.methods.situation import Situation
from privada.parties.protocol import Inquiry
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import METHODS, Question

if TYPE_CHECKING:
    from privada._toml import Section
    from privada.methods.example import DemoRow, Example
    from privada.methods.templates import StudyTemplate
    from privada.parties.schema import Schema


@dataclass(frozen=True, eq=False, repr=False)
class Public:
    """The rows that a learner holds itself, encoded as the owners' are.

    Attributes
    ----------
    X : array of shape (rows, features), default=None
        None for a method that needs none.
    y : array, default=None
        Codes of classes or numbers, for a method that learns from public labels; of a target whose labels are
        known in part, codes and -1.
    """

    X: Any = None
    y: Any = None


class StudyPlace(NamedTuple):
    """Where a study's setting is read: its table, the study's folder, and the first owner's schema."""

    section: Section
    home: Path
    schema: Schema


def setting(
    default: Any,
    doc: str,
    *,
    options: Sequence[str] = (),
    kind: str = "",
    example: str = "",
    read: Callable[[StudyPlace, str], Any] | None = None,
) -> Any:
    """Declare a field of a method.

    Parameters
    ----------
    default : object
        The value where none is given; None if the setting has none.
    doc : str
        What it is, for the documentation of estimators and studies.
    options : sequence of str, default=()
        The only values it may have.
    kind : str, default=""
        Its type in words; by default that of the annotation.
    example : str, default=""
        How a study writes it, where there is no default.
    read : function, default=None
        ``(StudyPlace, key) -> value``, for settings that are more than one plain value of a TOML file.
    """
    metadata = {"doc": doc, "options": tuple(options), "kind": kind, "example": example, "read": read}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method with its settings; class attributes describe it.

    Attributes
    ----------
    name, title, paper : str
        What it is called, in words, and what it stands on.
    situation : Situation, optional
        When it is the method to take, for ``privada advise``.
    question_paths : tuple of "module:Class"
        Its questions.
    retired_paths : tuple of "module:Class"
        Kinds of questions that are read from files, and that owners answer no more.
    private_side : "target", "source" or ""
        Which side of an adaptation the owners hold; the other one is public. "" for a method without public
        rows.
    learns_public_labels : bool
        Whether the public rows have labels.
    asks_several : bool
        Whether one study can ask several owners at once.
    estimators : mapping of kind of label to "module:Class"
        Its estimators. That of a study is found by the label that it learns, "class" or "number", or is
        the one of "any".
    model_parts : tuple of "module:Class"
        The dataclasses of which its models are made: a model file holds no others.
    renamed : mapping of str to str
        Settings by the names that they had; estimators and studies take them with a warning.
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    situation: ClassVar[Situation | None] = None
    question_paths: ClassVar[tuple[str, ...]] = ()
    retired_paths: ClassVar[tuple[str, ...]] = ()
    private_side: ClassVar[str] = ""
    learns_public_labels: ClassVar[bool] = False
    asks_several: ClassVar[bool] = False
    estimators: ClassVar[Mapping[str, str]] = {}
    model_parts: ClassVar[tuple[str, ...]] = ()
    renamed: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        for declared in fields(self):
            options = declared.metadata.get("options")
            if options:
                _check.one_of(options, **{declared.name: getattr(self, declared.name)})

    def prepare(
        self, public: Public, parties: Mapping[str, Schema], guarantee: Guarantee, *, seed: int = 0
    ) -> Inquiry[Any]:
        """Prepare what is asked of the parties; nothing is asked yet.

        Parameters
        ----------
        public : Public
            The learner's own rows.
        parties : mapping of name to Schema
            The public schema of each owner that is asked.
        guarantee : Guarantee
            What all questions to one owner may cost together.
        seed : int, default=0
            Of public randomness.

        Returns
        -------
        Inquiry
            What it learns has ``releases``, ``guarantee`` and ``to_dict()``.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what it asks.")

    def forecast(self, inquiry: Inquiry[Any], parties: Mapping[str, Schema]) -> Any:  # noqa: ARG002
        """What a study tells before anything is spent: by default, what the preparation found out."""
        return inquiry.forecast

    # What a study says

    @classmethod
    def inquire(
        cls,
        section: Section,
        *,
        schemas: Mapping[str, Schema],
        guarantee: Guarantee,
        home: Path,
        seed: int = 0,
    ) -> Inquiry[Any]:
        """What a study's ``[method]`` table asks."""
        method, public, parties = cls.read_study(section, schemas=schemas, home=home)
        public_key = {"target": ("source",), "source": ("target",)}.get(cls.private_side, ())
        # A mistake that names no key is most likely one of the settings, whatever was read before them.
        own = [key for key in section.taken if key not in ("name", "owner", "owners")]
        with section.blaming(*public_key, *own, *section.taken, "name"):
            inquiry = method.prepare(public, parties, guarantee, seed=seed)
            return replace(inquiry, method=method, forecast=method.forecast(inquiry, parties))

    @classmethod
    def describe_study(cls) -> str:
        """The ``[method]`` table of a study, with every key, its default and what it is."""
        party = ("owners", '["clinic"]', "by default all") if cls.asks_several else ("owner", '"clinic"', "")
        lines = [
            ("name", f'"{cls.name}"', ""),
            (*party[:2], party[2] or "by default the study's first owner"),
        ]
        if cls.private_side:
            key = "source" if cls.private_side == "target" else "target"
            labels = " and the label" if cls.learns_public_labels else ""
            lines.append(
                (key, f'"{key}.csv"', f"Public rows: CSV or Parquet with the owner's columns{labels}.")
            )
        for declared in fields(cls):
            about, default = declared.metadata, declared.default
            kind = about["example"] or about["kind"] or str(declared.type).replace(" | None", "")
            example = kind if default is None else json.dumps(default)
            options = f" One of {', '.join(about['options'])}." if about["options"] else ""
            lines.append((declared.name, example, f"{about['doc'].replace('``', '')}{options}"))
        return "\n".join(f"{key} = {value}" + (f"  # {doc}" if doc else "") for key, value, doc in lines)

    @classmethod
    def read_study(
        cls, section: Section, *, schemas: Mapping[str, Schema], home: Path
    ) -> tuple[Self, Public, dict[str, Schema]]:
        """The method, the public rows and the owners that a study's ``[method]`` table describes."""
        from privada.methods._public_rows import labelled_rows, public_rows

        parties = cls._read_parties(section, schemas)
        schema = next(iter(parties.values()))
        public = Public()
        if cls.private_side:
            key = "source" if cls.private_side == "target" else "target"
            if cls.learns_public_labels:
                if schema.label is None:
                    section.fail("owner", "its schema needs a label.")
                public = Public(*labelled_rows(section, key, home, schema))
            else:
                public = Public(public_rows(section, key, home, schema))
            if public.X.shape[1] != schema.width:
                section.fail(key, f"expected rows of {schema.width} features, got {public.X.shape[1]}.")
        place = StudyPlace(section, home, schema)
        settings, old_names = {}, {new: old for old, new in cls.renamed.items()}
        for declared in fields(cls):
            key, read = declared.name, declared.metadata.get("read")
            if key not in section and key in old_names and old_names[key] in section:
                key = old_names[key]
                warn_of_parameter(key, declared.name)
            if key in section or read is not None:
                settings[declared.name] = (read or _read_plain(declared))(place, key)
        section.done()
        with section.blaming(*section.taken, "name"):
            return cls(**settings), public, parties

    @classmethod
    def _read_parties(cls, section: Section, schemas: Mapping[str, Schema]) -> dict[str, Schema]:
        """The owners that are asked: ``owner``, by default the first; or ``owners``, by default all."""
        key = "owners" if cls.asks_several else "owner"
        names = (
            section.array(key, list(schemas))
            if cls.asks_several
            else [section.string(key, next(iter(schemas)))]
        )
        if not names:
            section.fail(key, "expected at least one owner.")
        for name in names:
            if name not in schemas:
                section.fail(key, f"no owner named {name!r}; known: {', '.join(schemas)}.")
        # Public rows are read by the columns of the first owner: the others need the same.
        if cls.private_side and any(schemas[name].columns != schemas[names[0]].columns for name in names):
            section.fail(key, "their cards have different columns; expected the same of all.")
        return {name: schemas[name] for name in names}

    # What stands in its package

    @classmethod
    def questions(cls) -> tuple[type[Question], ...]:
        """The question classes."""
        return tuple(load(path) for path in cls.question_paths)

    @classmethod
    def retired_questions(cls) -> tuple[type[Question], ...]:
        """The question classes that are only read."""
        return tuple(load(path) for path in cls.retired_paths)

    @classmethod
    def has_part(cls, module: str) -> bool:
        """Whether the method's package has a module of this name: ``demo``, ``template``."""
        return find_spec(f"{cls.__module__.rpartition('.')[0]}.{module}") is not None

    @classmethod
    def _part(cls, module: str) -> Callable[..., Any]:
        """The function ``example`` of the package's module ``example``, and so on."""
        package = cls.__module__.rpartition(".")[0]
        if not cls.has_part(module):
            having = [name for name, method in methods().items() if method.has_part(module)]
            raise InputError(f"The method {cls.name} has no {module}; {', '.join(having)} have one.")
        part: Callable[..., Any] = getattr(import_module(f"{package}.{module}"), module)
        return part

    @classmethod
    def example(cls) -> Example:
        """A small complete case."""
        example: Example = cls._part("example")()
        return example

    @classmethod
    def demo(cls, seed: int) -> DemoRow:
        """The row of ``privada demo``; the seed is of public randomness only."""
        row: DemoRow = cls._part("demo")(seed)
        return row

    @classmethod
    def template(cls) -> StudyTemplate:
        """The example study that ``privada init --method NAME`` writes."""
        template: StudyTemplate = cls._part("template")()
        return template

    @classmethod
    def make_estimator(
        cls, inquiry: Inquiry[Any], *, schema: Schema, guarantee: Guarantee
    ) -> Callable[[Any], Any]:
        """The function that makes a fitted estimator of what an inquiry of a study has learnt."""
        estimator, method = cls.find_estimator(schema), inquiry.method
        return lambda model: estimator.of_study(model, method=method, schema=schema, guarantee=guarantee)

    @classmethod
    def find_estimator(cls, schema: Schema) -> type[Any]:
        """The estimator that learns the label of a schema.

        Raises
        ------
        InputError
            The method learns no model of it.
        """
        kind = "none" if schema.label is None else "number" if schema.label_bounds else "class"
        path = cls.estimators.get(kind, cls.estimators.get("any"))
        if path is None:
            able = ", ".join(name for name, method in methods().items() if method.estimators)
            raise InputError(f"A study of {cls.name} learns no model; studies of {able} do.")
        estimator: type[Any] = load(path)
        return estimator


def _read_plain(declared: Field[Any]) -> Callable[[StudyPlace, str], Any]:
    """How a study's plain value is read, by the field's annotation."""
    annotation = str(declared.type)

    def read(place: StudyPlace, key: str) -> Any:
        if "bool" in annotation:
            return place.section.flag(key)
        if "int" in annotation:
            return place.section.whole(key)
        if "float" in annotation:
            return place.section.number(key)
        return place.section.string(key)

    return read


def load(path: str) -> Any:
    """What ``module:name`` names."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


@cache
def methods() -> dict[str, type[Method]]:
    """All installed methods, by name; one that cannot be loaded is named in a warning and left out."""
    installed = {}
    for entry in metadata.entry_points(group=METHODS):
        try:
            method = entry.load()
            method = getattr(method, "METHOD", method)  # packages of 0.2 had a card
            _ = method.question_paths
            installed[entry.name] = method
        except (ImportError, AttributeError) as error:
            warnings.warn(f"The method {entry.name} cannot be loaded: {error}.", PrivadaWarning, stacklevel=2)
    return dict(sorted(installed.items()))


def find_method(name: str) -> type[Method]:
    """One installed method, or an `InputError` that lists them."""
    if name not in methods():
        raise InputError(f"Expected method to be one of {', '.join(methods())}, got {name!r}.")
    return methods()[name]


__all__ = ["Method", "Public", "StudyPlace", "find_method", "load", "methods", "setting"]
