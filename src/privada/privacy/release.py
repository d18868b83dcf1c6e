"""What passes between a learner and an owner: a `Question` one way, a `Release` or a `Disclosure` back.

A question is public, frozen and validated, and knows its price without looking
at any row. A release is what an owner answers: a payload whose shapes follow
from public parameters, with guarantee, event, receipt and signature.
"""

from __future__ import annotations

import json
import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._notebook import describe
from privada._text import printable_line
from privada.exceptions import GuaranteeError, InputError, PrivadaError, TamperError, WireError
from privada.privacy import codec, wire
from privada.privacy.accounting.accountant import Price, keeps
from privada.privacy.bounds import Box, Classes, Grid
from privada.privacy.guarantee import Guarantee
from privada.privacy.mechanism import Gaussian, Laplace, Plan
from privada.privacy.receipt import OwnerKey, Receipt, verify_signature

METHODS = "privada.methods"
PACE = 1e9  # numbers of a question that an owner's processor applies to rows in a second, from below
NUMBER_BYTES = 8  # payloads are double precision or 64-bit integers
OVERHEAD_BYTES = 1 << 16  # of a release's file for what its question does not know: receipt, signature, names
MOST_PANELS = 6  # of a picture
MOST_POINTS = 60  # numbers in a panel whose intervals can still be distinguished
_KIND = re.compile(r"[A-Za-z0-9_-]{1,50}(\.[A-Za-z0-9_-]{1,50}){0,3}")

Arrays = dict[str, npt.NDArray[Any]]


class PublicColumn(Protocol):
    """What a question may know about a column: its name, and the names of the features that it becomes."""

    @property
    def name(self) -> str: ...
    def features(self) -> tuple[str, ...]: ...


class PublicSchema(Protocol):
    """What a question may know about an owner's data; all of it is public (`privada.parties.Schema`).

    These are the number of features of an encoded row, the declared number of rows (if it is public), the
    column of labels (a number, a category, or none) and the columns that features are made of, the public
    classes of a categorical label, and the public bounds of the features.
    """

    @property
    def width(self) -> int: ...
    @property
    def size(self) -> int | None: ...
    @property
    def label(self) -> object | None: ...
    @property
    def columns(self) -> Sequence[PublicColumn]: ...
    @property
    def classes(self) -> Classes: ...
    @property
    def box(self) -> Box: ...


@dataclass(frozen=True, kw_only=True)
class QuestionHeader:
    """The header of a question's file: enough to refuse the question, or to let it wait, before it is made.

    The method that the question is for has not checked anything here. A question that is made of the same
    bytes must have the same digest; compare both.
    """

    kind: str
    guarantee: Guarantee
    digest: str  # that the question will have, if the file turns out to be a valid one
    size: int  # bytes of the file
    salt: str = ""
    turn: tuple[int, int] | None = None  # number of a round and of all rounds, if it is part of a plan

    @property
    def method(self) -> str:
        """The method that the question belongs to."""
        return self.kind.split(".")[0]

    @classmethod
    def of(cls, question: Question) -> Self:
        """The header of an existing question."""
        plain, arrays = question.header(), question.parts()[1]
        size = len(wire.canonical(plain)) + sum(array.nbytes for array in arrays.values())
        return cls._read(plain, digest=question.digest, size=size)

    @classmethod
    def _read(cls, header: Mapping[str, Any], *, digest: str, size: int) -> Self:
        kind, salt, parameters = header["question"], header["salt"], header["parameters"]
        if not isinstance(kind, str) or not _KIND.fullmatch(kind):
            raise InputError("Expected the kind of a question to be a dotted name.")
        turn = parameters.get("round"), parameters.get("rounds")
        return cls(
            kind=kind,
            guarantee=Guarantee.from_dict(header["guarantee"]),
            digest=digest,
            size=size,
            salt=_check.text(salt=salt, longest=200),
            turn=turn if type(turn[0]) is int and type(turn[1]) is int else None,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Question(ABC):
    """What a learner asks. Each method has subclasses in its package ``questions``.

    Parameters
    ----------
    guarantee : Guarantee
        What the answer may cost; it names the relation and the unit.
    salt : str, default=""
        Makes two questions of one that is asked twice. An owner charges each question
        once, by its digest: asked again, it gives the same release.

    Attributes
    ----------
    discloses : bool, default=False
        Whether it asks for rows, which are encrypted for the curator who asks.
    sealed : bool, default=False
        Whether its content follows from its addressee's own rows, so that nobody else may read it. An
        exchange then encrypts it for the owner, under a digest that nobody can guess. The lengths of its
        arrays must follow from public parameters.

    Privacy
    -------
    Every field is public, unless the question is sealed. Two questions are equal if their digests are.
    """

    guarantee: Guarantee
    salt: str = ""
    kind: ClassVar[str]
    answered_by: ClassVar[str]  # "module:function" on the owner's side, imported there only
    discloses: ClassVar[bool] = False
    sealed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.guarantee, Guarantee):
            raise InputError(f"Expected guarantee to be a Guarantee, got {type(self.guarantee).__name__}.")
        _check.text(salt=self.salt, longest=200)
        with _refusing_overflow():
            self.validate()

    def validate(self) -> None:  # noqa: B027 - a question without more to check needs none
        """Check every public parameter by name."""

    def fits(self, schema: PublicSchema) -> None:  # noqa: B027 - a question that fits every schema needs none
        """Raise `InputError` if an owner's public schema lacks what the question asks for."""

    def seconds(self, schema: PublicSchema, *, rows: int) -> float:
        """An upper bound on the processor seconds of an answer on this many rows: a public number.

        A policy limits it before anything is charged. By default each row meets every number of the
        question once; a question that does more work overrides this.
        """
        numbers = sum(array.size for array in self.parts()[1].values())
        return rows * (schema.width + numbers) / PACE

    @property
    def needs_label(self) -> bool:
        """Whether the answer looks at labels; if not, an owner does not read them."""
        return True

    @property
    def needed_features(self) -> frozenset[int] | None:
        """Places of the features that the answer looks at, after encoding; None means all of them.

        An owner reads no other columns. Their features are at their lower bounds then.
        """
        return None

    @property
    def kept_bytes(self) -> int:
        """Bytes that an answer keeps of all rows together while it works; 0 if rows stream through.

        An owner whose machine has less memory refuses the question before it is charged.
        """
        return 0

    @cached_property
    def plan(self) -> Plan:
        """All draws, fixed by public parameters."""
        with _refusing_overflow():
            return self.planned()

    @abstractmethod
    def planned(self) -> Plan:
        """Compute the plan (called once)."""

    def answer_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shape of every array of the answer's payload, by name; a plain value has the shape ``()``."""
        return {}

    def disclosed_shapes(self, schema: PublicSchema) -> Mapping[str, tuple[int, ...]]:  # noqa: ARG002
        """Largest shape of every array of a disclosure, by the question and the public schema alone.

        What is sent has the length of arrays of these shapes, however few rows are in it.
        """
        return {}

    def answer_axes(
        self,
        schema: Any,  # noqa: ARG002 - a question without named axes needs none
    ) -> Mapping[str, tuple[Sequence[str] | None, ...]]:
        """Names along the axes of each array of the answer, by a public schema; None for an unnamed axis."""
        return {}

    @property
    def answer_bytes(self) -> int:
        """Most bytes that the file form of the release can have; no row is needed to know it."""
        return self._header_bytes() + NUMBER_BYTES * _count_numbers(self.answer_shapes())

    def _header_bytes(self) -> int:
        """Most bytes of the release's header: guarantee, price, a note and an entry for each array."""
        shapes = self.answer_shapes()
        header = {
            "guarantee": self.guarantee.to_dict(),
            "price": self.price.to_dict(),
            "noise": {name: draw.note() for name, draw in self.plan.draws.items() if name in shapes},
        }
        try:
            text = wire.canonical(header).decode()
        except ValueError:  # a number that is not finite
            raise InputError("The answer to this question has a price that no file can hold.") from None
        last = wire.LARGEST_FILE
        entries = {
            name: {"dtype": "F64", "shape": shape, "data_offsets": [last, last]}
            for name, shape in shapes.items()
        }
        return len(json.dumps({"__metadata__": {"privada": text}} | entries)) + OVERHEAD_BYTES

    def check_answer_size(self) -> None:
        """Raise `InputError` if nobody could load the release: an owner asks before it charges."""
        if self._header_bytes() > wire.LARGEST_HEADER:
            raise InputError(
                f"Expected an answer of fewer arrays, got {len(self.answer_shapes()):,}: nobody could load "
                "its file."
            )
        if (size := self.answer_bytes) > wire.LARGEST_FILE:
            raise InputError(
                f"Expected an answer of at most {wire.LARGEST_FILE:,} bytes, got up to {size:,}: "
                "nobody could load its file."
            )

    def disclosed_bytes(self, schema: PublicSchema) -> int:
        """Most bytes of the rows of a disclosure; raises `InputError` if nobody could load so many."""
        size = NUMBER_BYTES * _count_numbers(self.disclosed_shapes(schema))
        if size > wire.LARGEST_FILE:
            raise InputError(
                f"Expected a question for at most {wire.LARGEST_FILE:,} bytes of rows, got one for {size:,}; "
                "ask for fewer rows."
            )
        return size

    def parts(self) -> tuple[dict[str, Any], Arrays]:
        """The question's own fields as plain values and arrays.

        A field that is neither declares how it is written (`privada.privacy.codec`).
        """
        return codec.write_fields(self, but=("guarantee", "salt"))

    @classmethod
    def from_parts(cls, plain: dict[str, Any], arrays: Arrays, *, guarantee: Guarantee, salt: str) -> Self:
        """Make the question from its parts; everything is validated again."""
        make = partial(cls, guarantee=guarantee, salt=salt)
        return codec.read_fields(cls, make, plain, arrays, but=("guarantee", "salt"))

    @property
    def price(self) -> Price:
        """What the question costs; no row is needed to know it."""
        return Price(event=self.plan.event, epsilon=self.plan.epsilon, guarantee=self.guarantee)

    def check_guarantee(self) -> None:
        """Raise `GuaranteeError` unless the plan keeps the guarantee that the question states.

        An owner asks before it charges. The check looks at public parameters only, and its result is cached.
        """
        if not self._keeps_guarantee:
            raise GuaranteeError(
                f"The plan of {self.kind} does not keep {self.guarantee}, which the question states: its "
                "noise is too small. Nothing was charged; ask with a guarantee that the plan keeps."
            )

    @cached_property
    def _keeps_guarantee(self) -> bool:
        return keeps(self.plan, self.guarantee)

    @property
    def turn(self) -> str:
        """Which part of a plan of several rounds this is, in words."""
        return ""

    @property
    def purpose(self) -> str:
        """What an owner's ledger records about the question."""
        return f"{self.kind}: {self.turn}" if self.turn else self.kind

    @property
    def method(self) -> str:
        """The method that the question belongs to."""
        return self.kind.split(".")[0]

    def header(self) -> dict[str, Any]:
        """Everything but the arrays."""
        plain, _ = self.parts()
        return {
            "question": self.kind,
            "guarantee": self.guarantee.to_dict(),
            "salt": self.salt,
            "parameters": plain,
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the whole question."""
        return wire.digest(self.header(), self.parts()[1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Question) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.digest[:12]}: {self.guarantee}>"

    def _repr_html_(self) -> str:
        shapes = ", ".join(f"{name} {list(shape)}" for name, shape in self.answer_shapes().items())
        facts = [("asks for", self.purpose), ("guarantee", str(self.guarantee)), ("comes back", shapes)]
        return describe(type(self).__name__, [*facts, ("digest", self.digest)])

    def to_bytes(self) -> bytes:
        """The file form."""
        return wire.pack("question", self.header(), self.parts()[1])

    @staticmethod
    def peek(source: bytes | str | os.PathLike[str], *, largest: int = wire.LARGEST_FILE) -> QuestionHeader:
        """Read the header of a file, given as bytes or by its path; no method's code is run.

        An owner decides by it whether to refuse a file or let it wait, before `from_bytes`.
        """
        peeked = wire.peek(source, kind="question", largest=largest)
        with _reading("question"):
            return QuestionHeader._read(peeked.header, digest=peeked.digest, size=peeked.size)

    @staticmethod
    def from_bytes(blob: bytes, *, largest: int = wire.LARGEST_FILE) -> Question:
        """Read the file form; only questions of installed methods are made."""
        header, arrays = wire.unpack(blob, kind="question", largest=largest)
        with _reading("question"):
            question = find_question(str(header["question"])).from_parts(
                dict(header["parameters"]),
                arrays,
                guarantee=Guarantee.from_dict(header["guarantee"]),
                salt=header["salt"],
            )
            is_same = question.digest == wire.digest(header, arrays)
        # Otherwise two files with different digests could be the same question, and be charged twice.
        if not is_same:
            raise WireError("The file is not a valid question: it holds more than the question says.")
        return question

    def save(self, path: str | os.PathLike[str], *, root: str | os.PathLike[str] | None = None) -> Path:
        """Write the file form completely or not at all; below ``root``, if given, through no link."""
        return wire.write(path, self.to_bytes(), root=root)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Question:
        """Read a question file."""
        return Question.from_bytes(wire.read(path))


@contextmanager
def _refusing_overflow() -> Iterator[None]:
    """Refuse public numbers that floating-point arithmetic cannot hold, before anything is charged."""
    try:
        yield
    except PrivadaError:
        raise
    except (ArithmeticError, ValueError) as error:
        raise InputError(
            f"Expected numbers of moderate size: the question's arithmetic fails ({type(error).__name__})."
        ) from None


@contextmanager
def _reading(kind: str) -> Iterator[None]:
    """Turn whatever a malformed header raises into one `WireError`."""
    try:
        yield
    except PrivadaError as error:
        raise WireError(f"The file is not a valid {kind}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError):
        raise WireError(f"The file is not a valid {kind}: a field is missing or of the wrong type.") from None


def _count_numbers(shapes: Mapping[str, tuple[int, ...]]) -> int:
    return sum(math.prod(shape) for shape in shapes.values())


def find_question(kind: str) -> type[Question]:
    """The question class of a kind, from the installed methods (entry points ``privada.methods``)."""
    name = kind.split(".", maxsplit=1)[0]
    for entry in metadata.entry_points(group=METHODS, name=name):
        method = entry.load()
        method = getattr(method, "METHOD", method)  # packages of 0.2 had a card
        for question in (*method.questions(), *method.retired_questions()):
            if question.kind == kind:
                return question
    raise InputError(f"No installed method answers questions of kind {kind!r}.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """What an owner answered, and the only type that a learner accepts.

    Attributes
    ----------
    payload : mapping of name to array or plain value
        Shapes follow from public parameters.
    guarantee : Guarantee
        What the answer cost, with relation and unit.
    price : dict
        The accounting event in plain form; dp-accounting can recompute it.
    question : str
        Digest of the question that was answered.
    receipt : Receipt
        The ledger line that paid for it.
    noise : mapping of payload name to note
        Family and scale of the noise on each array.
    rehearsal : bool, default=False
        True if the noise was seeded: not private.
    """

    payload: Mapping[str, Any]
    guarantee: Guarantee
    price: Mapping[str, Any]
    kind: str
    question: str
    receipt: Receipt
    noise: Mapping[str, Mapping[str, Any]]
    rehearsal: bool = False
    signature: str = ""

    def __getitem__(self, name: str) -> Any:
        try:
            return self.payload[name]
        except KeyError:
            raise InputError(f"This release holds {', '.join(sorted(self.payload))}, not {name!r}.") from None

    @property
    def stamps(self) -> tuple[str, ...]:
        """Warnings that belong to the guarantee."""
        idealised = any(note.get("idealised") for note in self.noise.values())
        stamps = {"rehearsal: not private": self.rehearsal, "idealised arithmetic": idealised}
        return tuple(text for text, holds in stamps.items() if holds)

    def interval(self, confidence: float = 0.95) -> dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """Low and high end for every noisy number: the exact value lies between, each with this confidence.

        Exact values are those after clipping to the public bounds.
        """
        widths = self.half_widths(confidence)
        return {name: (self.payload[name] - half, self.payload[name] + half) for name, half in widths.items()}

    def half_widths(self, confidence: float = 0.95) -> dict[str, float]:
        """How far the numbers of each noisy array may be from the exact ones, each with this confidence.

        Arrays whose noise has no interval per number are left out.
        """
        families = {Laplace.family: Laplace, Gaussian.family: Gaussian}
        widths = {}
        for name, note in self.noise.items():
            if (family := families.get(str(note["family"]))) is not None:
                grid = Grid.finer_than(float(note["step"]))
                draw = family(sensitivity=1.0, scale=float(note["scale"]), grid=grid)
                widths[name] = draw.half_width(confidence)
        return widths

    def explain(self, confidence: float = 0.95) -> str:
        """Describe in words what was released, at what cost, and how noisy each number is."""
        lines = [f"{self.kind} of {self.receipt.dataset}: {self.guarantee}"]
        lines += [f"NOTE {stamp}" for stamp in self.stamps]
        widths = self.half_widths(confidence)
        for name, note in sorted(self.noise.items()):
            shape = "x".join(map(str, np.shape(self.payload[name]))) or "one number"
            interval = "no interval"
            if name in widths:
                interval = f"each within ±{widths[name]:g} with {confidence:.0%} confidence"
            lines.append(f"  {name} ({shape}): {note['family']} noise, {interval}")
        return "\n".join(map(printable_line, lines))

    def plot(self, confidence: float = 0.95) -> Any:
        """A matplotlib figure: a panel for each noisy array; short ones with intervals for the noise.

        Needs ``pip install 'privada[plot]'``. Values are as released, so counts may be negative.
        """
        from privada import _plot

        ends = self.interval(confidence)
        names = [name for name in sorted(self.noise) if np.size(self.payload[name])][:MOST_PANELS]
        if not names:
            raise InputError("This release has no noisy array to draw.")
        figure, panels = _plot.new_figure(len(names))
        for axes, name in zip(panels, names, strict=True):
            array = np.asarray(self.payload[name], dtype=np.float64)
            if array.ndim > 1 and min(array.shape[0], array.size // array.shape[0]) > 1:
                _plot.draw_table(axes, array.reshape(array.shape[0], -1))
                _plot.name_axes(axes, title=name, x="place", y="place")
                continue
            values, places = array.reshape(-1), np.arange(array.size)
            if name in ends and array.size <= MOST_POINTS:
                _plot.draw_intervals(axes, places, values, *(np.reshape(end, -1) for end in ends[name]))
            else:
                axes.plot(places, values, color=_plot.ACCENT, linewidth=1)
            axes.axhline(0, color=_plot.LINE, linewidth=1, zorder=0)
            note = f" ({confidence:.0%} intervals of the noise)" if name in ends else ""
            _plot.name_axes(axes, title=f"{name}{note}", x="place")
        stamps = "".join(f"  [{stamp}]" for stamp in self.stamps)
        title = f"{self.kind} of {self.receipt.dataset}: {self.guarantee}{stamps}"
        figure.suptitle(title, color=_plot.INK, fontsize=11, x=0.02, ha="left", parse_math=False)
        return figure

    def __repr__(self) -> str:
        names = ", ".join(f"{name}{list(np.shape(value))}" for name, value in sorted(self.payload.items()))
        stamps = "".join(f" [{stamp}]" for stamp in self.stamps)
        return f"<Release {self.kind} {names}; {self.guarantee}{stamps}>"

    def _repr_html_(self) -> str:
        title, *lines = self.explain().splitlines()
        facts = [("", line.strip()) for line in lines]
        return describe(title, [*facts, ("question", self.question), ("line", str(self.receipt.index))])

    def _split(self) -> tuple[dict[str, Any], Arrays]:
        arrays = {name: value for name, value in self.payload.items() if isinstance(value, np.ndarray)}
        values = {name: value for name, value in self.payload.items() if name not in arrays}
        header = {
            "release": self.kind,
            "guarantee": self.guarantee.to_dict(),
            "price": dict(self.price),
            "question": self.question,
            "receipt": self.receipt.to_dict(),
            "noise": {name: dict(note) for name, note in self.noise.items()},
            "rehearsal": self.rehearsal,
            "values": values,
        }
        return header, arrays

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything but the signature."""
        return wire.digest(*self._split())

    def signed(self, key: OwnerKey) -> Self:
        """The same release with the owner's signature."""
        return replace(self, signature=key.sign(self.digest.encode()))

    def verify(self, *, public: str | None = None, question: Question | None = None) -> None:
        """Check signature, receipt and, if given, the owner's key and the question; raise `TamperError`."""
        owner = self.receipt.public
        if public is not None and public != owner:
            raise TamperError("The release was signed by another owner's key.")
        verify_signature(owner, self.signature, self.digest.encode())
        self.receipt.verify(public=owner)
        if self.receipt.question != self.question:
            raise TamperError("The release's receipt paid for another question.")
        if question is not None and question.digest != self.question:
            raise TamperError("The release answers another question.")

    def to_bytes(self) -> bytes:
        """The file form."""
        header, arrays = self._split()
        return wire.pack("release", header | {"signature": self.signature}, arrays)

    @classmethod
    def from_bytes(cls, blob: bytes, *, largest: int = wire.LARGEST_FILE) -> Self:
        """Read the file form and check its signature."""
        header, arrays = wire.unpack(blob, kind="release", largest=largest)
        with _reading("release"):
            release = cls(
                payload={**header["values"], **arrays},
                guarantee=Guarantee.from_dict(header["guarantee"]),
                price=header["price"],
                kind=str(header["release"]),
                question=str(header["question"]),
                receipt=Receipt.from_dict(header["receipt"]),
                noise=header["noise"],
                rehearsal=bool(header["rehearsal"]),
                signature=str(header["signature"]),
            )
            release.verify()
        return release

    def save(self, path: str | os.PathLike[str], *, root: str | os.PathLike[str] | None = None) -> Path:
        """Write the file form completely or not at all; below ``root``, if given, through no link."""
        return wire.write(path, self.to_bytes(), root=root)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a release file and check its signature."""
        return cls.from_bytes(wire.read(path))


@dataclass(frozen=True, kw_only=True, eq=False)
class Disclosure:
    """Raw rows for one named curator. Not a Release: it carries no guarantee.

    It exists only where a method needs rows at a trusted curator, must be
    allowed by the owner's policy, and is logged as "not differentially private".
    """

    rows: Mapping[str, npt.NDArray[Any]]
    curator: str
    question: str
    receipt: Receipt
    most_bytes: int = 0  # that the rows could have, by the question and the public schema

    def __repr__(self) -> str:
        return f"<Disclosure to {self.curator}: not differentially private>"

    def __reduce__(self) -> Any:
        raise InputError("A Disclosure cannot be pickled; it goes to its curator only.")


__all__ = ["PACE", "Disclosure", "Question", "QuestionHeader", "Release", "find_question"]
