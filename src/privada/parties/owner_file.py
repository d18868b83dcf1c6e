"""``owner.toml``: the owner's settings, read without opening a row, a key or a ledger.

::

    [data]
    name = "patients"                # identity of the data set: budgets follow it, not the file
    path = "patients.parquet"        # relative to this file, or s3://bucket/patients.parquet; or
    # database = "postgresql://reader@db/clinic" and table = "patients" or query = "SELECT ..."

    [data.csv]                       # optional: how a CSV file is written, see `Dialect`

    [data.vintage]                   # optional: only the rows of a period, which have a budget of their own
    name = "2026"                    # the budget is that of "patients-2026"
    column = "admitted"              # dates; the same column for all vintages of a data set
    since = 2026-01-01               # the first day
    until = 2027-01-01               # the day after the last

    [privacy]
    relation = "add/remove"
    epsilon = 4.0                    # or rho; with delta for (epsilon, delta)

    [ledger]
    url = "ledger.sqlite"            # or postgresql://...
    key = "owner.key"

    [compute]                        # optional
    threads = 8                      # by default the processors that the process may use
    # engine = "dask"                # or a cluster of the owner's own, with ca, certificate and key
    # scheduler = "tls://10.0.0.1:8786"

    [policy]                         # optional
    [[learners]]                     # optional: who may ask, see `privada.parties.permissions`
    [schema]                         # columns, label, size, person_id, max_rows

Its public part, which learners need, is the owner card, a `Card`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from privada._text import escape_in_json
from privada._toml import Section
from privada.parties.checks import CheckMemory
from privada.parties.compute import Engine, read_engine
from privada.parties.compute.threads import Threads
from privada.parties.csv_files import Dialect
from privada.parties.permissions import (
    Admission,
    KnownLearner,
    KnownLearners,
    Policy,
    check_terms,
    is_paid,
    price_all,
    read_learners,
)
from privada.parties.schema import Schema
from privada.parties.sources import Database, StoredRows, check_place
from privada.parties.sources.source import with_dates
from privada.privacy.accounting.filters import Vintage
from privada.privacy.asker import Asker
from privada.privacy.guarantee import Guarantee, make_guarantee
from privada.privacy.ledger import Ledger, Quote
from privada.privacy.ledger.recovery import heads_of
from privada.privacy.receipt import OwnerKey, Receipt
from privada.privacy.relation import Relation
from privada.privacy.release import Question


@dataclass(frozen=True, kw_only=True)
class OwnerFile:
    """The content of an ``owner.toml``, with absolute paths."""

    dataset: str
    source: StoredRows | Database
    allow_empty: bool
    schema: Schema
    budget: Guarantee
    accounting: str | None
    policy: Policy
    ledger: str
    key: Path
    compute: Engine = field(default_factory=Threads)
    learners: tuple[KnownLearner, ...] | None = None
    vintage: Vintage | None = None

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read the file; errors name the line and the key."""
        top = Section.read(path)
        home = Path(path).resolve().parent
        data, privacy, ledger = top.section("data"), top.section("privacy"), top.section("ledger")
        schema = Schema.from_section(top.section("schema"))
        url, budget = ledger.string("url"), _budget(privacy, schema)
        listed = top.sections("learners") if "learners" in top else None
        name = data.string("name")
        vintage = _vintage(data.section("vintage"), name, schema) if "vintage" in data else None
        file = cls(
            dataset=name if vintage is None else vintage.dataset,
            vintage=vintage,
            source=_source(data, home),
            allow_empty=data.flag("allow_empty", False),
            schema=schema,
            budget=budget,
            accounting=privacy.string("accounting", None),
            policy=Policy.from_section(top.section("policy")),
            ledger=url if "://" in url else str(home / url),
            key=home / ledger.string("key"),
            compute=read_engine(top.section("compute"), home),
            learners=None if listed is None else read_learners(listed, home=home, budget=budget),
        )
        for section in (data, privacy, ledger, top):
            section.done()
        return file

    @property
    def relation(self) -> Relation:
        """The relation of the budget."""
        return self.budget.relation

    @property
    def _kept_by(self) -> dict[str, Any]:
        """How the budget is kept, and for which rows."""
        return {"accounting": self.accounting, "vintage": self.vintage}

    def open_ledger(self) -> Ledger:
        """Open the ledger with the owner's key; a missing ledger is an error, never a new budget."""
        return Ledger.open(
            self.ledger, OwnerKey.load(self.key), create=False, heads=heads_of(self.ledger, self.key)
        )

    @property
    def memory(self) -> CheckMemory:
        """What remembers that the rows were checked, beside the ledger."""
        folder = self.key.parent if "://" in self.ledger else Path(self.ledger).parent
        return CheckMemory(folder / "rows.checked", repr(self.source))

    def open_budget(self) -> Receipt:
        """Open the budget that the file names, once and for all; again, it returns the same receipt."""
        with self.open_ledger() as ledger:
            return ledger.open_budget(self.dataset, self.budget, **self._kept_by)

    def price(self, question: Question, *, asker: Asker | None = None) -> Quote:
        """What a question would take now, also of the asker's allowance; nothing is written or opened."""
        check_terms(question, schema=self.schema, budget=self.budget)
        question.fits(self.schema)
        with self._as_it_stands() as ledger:
            paid = is_paid(question, ledger, self.dataset)
            quote = ledger.price_all(self.dataset, [] if paid else [question.price])
            return self._admission(ledger).price(quote, [question], asker, self.policy)

    def share(self, question: Question) -> float:
        """The share of the budget that a question would take; no part of the question is tried out."""
        check_terms(question, schema=self.schema, budget=self.budget)
        with self._as_it_stands() as ledger:
            return ledger.price(self.dataset, question.price).share

    def has_paid(self, question: Question) -> bool:
        """Whether a question was charged before: asked again, it gets the same release."""
        with self._as_it_stands() as ledger:
            return is_paid(question, ledger, self.dataset)

    def price_all(self, questions: Sequence[Question], *, asker: Asker | None = None) -> Quote:
        """What questions one after another would take now; disclosures cost nothing."""
        with self._as_it_stands() as ledger:
            quote = price_all(
                questions, schema=self.schema, policy=self.policy, ledger=ledger, dataset=self.dataset
            )
            return self._admission(ledger).price(quote, questions, asker, self.policy)

    def _admission(self, ledger: Ledger) -> Admission:
        learners = None
        if self.learners is not None:
            learners = KnownLearners(self.learners, budget=ledger.budget(self.dataset))
        return Admission(ledger, self.dataset, learners)

    @contextmanager
    def _as_it_stands(self) -> Iterator[Ledger]:
        """The ledger to read from; a stand-in if no budget was opened yet, so that nothing is fixed.

        A ledger that has budgets, but none of this name, is an error: renaming a data set opens no budget.
        """
        with self.open_ledger() as ledger:
            if ledger.datasets():
                ledger.check_budget(self.dataset, self.budget, **self._kept_by)
                yield ledger
                return
        with Ledger.open(":memory:", OwnerKey.generate()) as unspent:
            unspent.open_budget(self.dataset, self.budget, **self._kept_by)
            yield unspent

    def card(self) -> Card:
        """The public part, with the public half of the owner's key."""
        return Card(schema=self.schema, relation=self.relation, public_key=OwnerKey.load(self.key).public)


@dataclass(frozen=True, kw_only=True)
class Card:
    """The owner card, which learners get: schema, relation, and the key that signs its releases."""

    schema: Schema
    relation: Relation
    public_key: str | None = None

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read ``schema.toml``."""
        top = Section.read(path)
        owner = top.section("owner")
        with owner.blaming("relation"):
            relation = Relation.parse(owner.string("relation"))
        card = cls(
            schema=Schema.from_section(top.section("schema")),
            relation=relation,
            public_key=owner.string("public_key", None),
        )
        for section in (owner, top):
            section.done()
        return card

    def to_toml(self) -> str:
        """The text of ``schema.toml``."""
        plain = self.schema.to_dict()
        columns, label = plain.pop("columns"), plain.pop("label")
        owner = {"relation": self.relation.value, "public_key": self.public_key}
        lines = ["[owner]", *_pairs(owner), "", "[schema]", *_pairs(plain)]
        for column in columns:
            lines += ["", "[[schema.columns]]", *_pairs(column)]
        if label is not None:
            lines += ["", "[schema.label]", *_pairs(label)]
        return "\n".join(lines) + "\n"


def _pairs(plain: Mapping[str, Any]) -> Iterator[str]:
    """TOML lines of plain values; JSON's strings, numbers and lists are TOML's too."""
    for key, value in plain.items():
        if value is not None:
            text = escape_in_json(json.dumps(value, ensure_ascii=False))
            yield f"{key} = {text}"


def _source(section: Section, home: Path) -> StoredRows | Database:
    """Where the rows are: a path, a URL or a database."""
    dialect = Dialect.from_section(section.section("csv")) if "csv" in section else None
    if "database" in section:
        if dialect is not None or "path" in section:
            section.fail("database", "expected neither path nor csv beside a database.")
        names = ("database", "table", "query")
        url, table, query = (section.string(name, None) for name in names)
        with section.blaming(*names):
            return Database(url=url, table=table, query=query).relative_to(home)
    place = section.string("path")
    with section.blaming("path"):
        check_place(place)
    return StoredRows(place if "://" in place else home / place, dialect)


def _vintage(section: Section, of: str, schema: Schema) -> Vintage:
    """The rows of a period, of a data set that is divided by a date."""
    days = {name: section.day(name) for name in ("since", "until")}
    with section.blaming("name", "column", *days):
        vintage = Vintage(of=of, name=section.string("name"), column=section.string("column"), **days)
    with section.blaming("column"):
        with_dates(schema, vintage)
    section.done()
    return vintage


def _budget(section: Section, schema: Schema) -> Guarantee:
    numbers = {name: section.number(name, None) for name in ("epsilon", "delta", "rho")}
    with section.blaming("relation"):
        relation = Relation.parse(section.string("relation"))
    with section.blaming("epsilon", "delta", "rho"):
        return make_guarantee(**numbers, relation=relation, unit=schema.unit)


__all__ = ["Card", "OwnerFile"]
