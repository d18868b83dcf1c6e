"""How an exhibit is made: a function that answers wrongly, the draws it plans and the guarantee it claims."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from privada.audit import audit_example, audit_row_function, audit_traffic
from privada.exceptions import InputError
from privada.methods.example import Example
from privada.parties.schema import Category, Schema
from privada.privacy import Grid, PureDP, Question
from privada.privacy.mechanism import Plan

WHOLE = Grid(0)
FINE = Grid(-10)
ONE = PureDP(epsilon=1.0, relation="add/remove")
ONE_REPLACED = PureDP(epsilon=1.0, relation="replace-one")
EXHIBITS: dict[str, "Exhibit"] = {}


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """What is wrong, in a sentence, and the audit that must find it, of a noise or None for the system's."""

    name: str
    wrong: str
    audit: Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Asked(Question):
    draws: dict = field(default_factory=dict)
    event: Any = None
    epsilon: float | None = None
    of_persons: ClassVar[bool] = False

    def validate(self):
        if (self.guarantee.unit.name == "person") != self.of_persons:
            raise InputError("This exhibit is about another unit.")

    def planned(self):
        return Plan(draws=self.draws, event=self.event, epsilon=self.epsilon)

    def parts(self):
        return {}, {}


def schema(*, bounds=(0.0, 1.0), width=1, classes=(0, 1), **more):
    label = Category(name="label", values=classes) if classes else None
    return Schema.of_numbers(bounds=bounds, width=width, label=label, **more)


def rows(n=24, *, bounds=(0.0, 1.0), width=1, classes=2):
    rng = np.random.default_rng(n)
    data = {"data": rng.uniform(*bounds, size=(n, width))}
    return data | ({"y": np.arange(n) * 7 % classes} if classes else {})


def exhibit(
    *, draws, guarantee=ONE, event=None, epsilon=None, schema=None, data=None, trials=400
) -> Callable[[Callable], Callable]:
    """Put the question that the decorated function answers into the museum."""

    def put(answer: Callable) -> Callable:
        name = answer.__name__
        of_persons = guarantee.unit.name == "person"
        made = {
            "kind": f"museum.{name}",
            "answered_by": f"{answer.__module__}:{name}",
            "of_persons": of_persons,
        }
        kind = type(name, (Asked,), made)
        question = kind(guarantee=guarantee, draws=draws, event=event, epsilon=epsilon)
        example = Example(
            schema=_SCHEMA if schema is None else schema,
            data=rows() if data is None else data,
            questions=(question,),
            inquiry=lambda owner: None,
        )

        def audit(noise):
            (found,) = audit_example(example, trials=trials, noise=noise)
            return found

        return audited_by(audit)(answer)

    return put


def audited_by(audit: Callable) -> Callable[[Callable], Callable]:
    """Put what the decorated function does wrong into the museum, with an audit of it."""

    def put(function: Callable) -> Callable:
        name, wrong = function.__name__, " ".join(function.__doc__.split())
        EXHIBITS[name] = Exhibit(name=name, wrong=wrong, audit=audit)
        return function

    return put


def row_function(rows, **options) -> Callable[[Callable], Callable]:
    """Put a function of rows into the museum."""

    def put(function: Callable) -> Callable:
        return audited_by(lambda _: audit_row_function(function, rows, **options))(function)

    return put


def protocol(world, neighbour) -> Callable[[Callable], Callable]:
    """Put a function that sends messages into the museum."""

    def put(run: Callable) -> Callable:
        return audited_by(lambda _: audit_traffic(run, world, neighbour))(run)

    return put


_SCHEMA = schema()


def features(rows):
    parts = [batch.X for batch in rows.batches()]
    return np.vstack(parts) if parts else np.zeros((0, rows.schema.width))


def labels(rows):
    parts = [batch.y for batch in rows.batches()]
    return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, dtype=np.int64)


def quarters(rows):
    """Rows in each quarter of the first feature's unit interval."""
    at = np.minimum((4 * features(rows)[:, 0]).astype(np.int64), 3)
    return np.bincount(at, minlength=4)
