"""The text of a new ``owner.toml``: every key with its meaning, and nothing guessed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from privada._text import escape_in_json
from privada.parties.sources.databases import Database
from privada.service.setup.answers import Answers, read_number
from privada.service.setup.headers import ColumnHeader

FILL_IN = "FILL IN"

_TOP = """\
# What this owner holds and allows. Replace every "{fill}"; until then it cannot be loaded.
# Bounds, classes and budget are public: use what you knew before you looked at the rows.

[data]
name = "{name}"  # identity of the data set: its budget follows it, not the file
{source}
{csv}
# [data.vintage]  # only the rows of a period; those of the next one can have a budget of their own
# name = "2026"  # the budget is that of "{name}-2026"
# column = "date"  # dates; the same column for all vintages
# since = 2026-01-01  # the first day
# until = 2027-01-01  # the day after the last

[privacy]
relation = {relation}  # "add/remove", "replace-one" (makes the number of rows public) or "attribute"
epsilon = {epsilon}  # all that may ever be spent; with delta for (epsilon, delta), or use rho instead
{delta}
# rho = 0.5
# accounting = "renyi"  # how it adds up: pure, zcdp, renyi or gaussian; by default what fits the budget

[ledger]
url = "{ledger}"  # a SQLite file, or postgresql://...
key = "{key}"  # signs every line and release; never give it away

# [compute]
# threads = 8  # by default the processors that the process may use
# engine = "dask"  # or a cluster of your own, reached by TLS
# scheduler = "tls://10.0.0.1:8786"
# ca = "ca.pem"
# certificate = "owner.pem"
# key = "owner-tls.key"

[policy]
methods = [{methods}]  # who may ask; without this key every installed method
largest_share = 0.25  # of the whole budget, for one question
lowest_share = 0.0001  # what costs less is refused: a budget pays for 10,000 questions at most
longest_answer = 600  # seconds that one answer may take, reckoned for the declared size of the schema
# assumed_size = 1000000  # the number of rows to reckon with if the schema declares none
approval = true  # whether each question waits for a person: privada answer --approve
idealised = false  # whether mechanisms without an exact sampler may run
curators = []  # who may receive raw rows; nobody, unless a method needs a trusted curator

# Who may ask, if not everybody whom the policy allows; get their cards: privada learner init.
# [[learners]]
# name = "alice"
# key = "alice.toml"  # the learner's card, or its public key
# methods = ["cells"]  # by default what the policy allows
# allowance = {{ epsilon = 1.0 }}  # of the budget, in its terms; allowances may add up to more
# expires = 2027-06-30  # the last day on which the learner may ask
# approval = false  # by default as the policy says

[schema]
{schema}

"""
_FILE = "# CSV, Parquet or a folder of either, relative to this file; or s3://bucket/rows.parquet"
_DATABASE = """
# database = "postgresql://reader@host/clinic"  # instead of path; the password is in PGPASSWORD or ~/.pgpass
# table = "patients"  # of the database; or query = "SELECT ..."
"""
_SCHEMA = {
    "size": ("1000", 'a public number of rows: needed, and true, under "replace-one" and "attribute"'),
    "person_id": ('"person"', "column that names the person; makes the unit a person ..."),
    "max_rows": ("1", "... of whose rows at most this many are used"),
}
_LABEL = """\
# What is to be predicted, if anything: move one column here.
# [schema.label]
# name = "outcome"
# values = ["no", "yes"]  # all classes, or low and high
"""


def owner_toml(
    *,
    name: str,
    source: str | Database,
    ledger: str,
    key: str,
    methods: Iterable[str],
    columns: Iterable[ColumnHeader],
    label: str | None = None,
    dialect: Mapping[str, Any] | None = None,
    answers: Answers | None = None,
) -> str:
    """The whole text; complete if there are answers, else with places to fill in."""
    fields = {
        "name": _inside(name),
        "source": _source(source),
        "csv": _csv(dialect or {}) if isinstance(source, str) else "",
        "ledger": ledger,
        "key": key,
        "relation": _json(answers.relation if answers else FILL_IN),
        "epsilon": _json(read_number("epsilon", answers.epsilon) if answers else FILL_IN),
        "delta": f"delta = {read_number('delta', answers.delta)}"
        if answers and answers.delta
        else "# delta = 1e-6",
        "methods": ", ".join(f'"{method}"' for method in methods),
        "schema": _schema(answers.schema_pairs if answers else {}),
    }
    return _TOP.format(fill=FILL_IN, **fields) + (_answered(answers) if answers else _open(columns, label))


def _open(columns: Iterable[ColumnHeader], label: str | None) -> str:
    """Tables of columns whose bounds and values are left to the owner."""
    found = list(columns)
    text = "".join(f"[[schema.columns]]\n{_column(column)}\n" for column in found if column.name != label)
    labels = [column for column in found if column.name == label]
    return text + (f"[schema.label]\n{_column(labels[0])}" if labels else _LABEL)


def _answered(answers: Answers) -> str:
    """Tables of columns as a person declared them."""
    text = "".join(f"[[schema.columns]]\n{_table(table)}\n" for table in answers.column_tables)
    label = answers.label_table
    return text + (_LABEL if label is None else f"[schema.label]\n{_table(label)}")


def _table(pairs: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {_json(value)}\n" for key, value in pairs.items())


def _schema(pairs: Mapping[str, Any]) -> str:
    lines = []
    for key, (example, meaning) in _SCHEMA.items():
        said = f"{key} = {_json(pairs[key])}" if key in pairs else f"# {key} = {example}"
        lines.append(f"{said}  # {meaning}")
    return "\n".join(lines)


def _source(source: str | Database) -> str:
    """Where the rows are."""
    if isinstance(source, str):
        return f"path = {_json(source)}  {_FILE}" + _DATABASE.rstrip()
    what = {"table": source.table, "query": source.query}
    pairs = {"database": source.url} | {key: value for key, value in what.items() if value is not None}
    return _table(pairs).rstrip()


def _csv(dialect: Mapping[str, Any]) -> str:
    """How CSV is written, as it was declared."""
    if not dialect:
        return '# csv = { delimiter = ";", decimal = ",", encoding = "cp1252" }  # how CSV is written'
    pairs = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in dialect.items()]
    return "\n".join(["", "[data.csv]", *pairs, ""])


def _column(column: ColumnHeader) -> str:
    category = f'values = "{FILL_IN}"  # all categories, as a list; others are an error\n'
    number = f'low = "{FILL_IN}"  # values beyond the bounds are clipped\nhigh = "{FILL_IN}"\n'
    other = '# values = ["a", "b"]  # instead of low and high, if it is a category\n'
    other += '# kind = "integer"  # or "date" with low = 1990-01-31, "boolean", "ordered" with values\n'
    date = number.replace("\nhigh", "; a date, as 2024-01-31\nhigh")
    bodies = {"boolean": "", "date": date, "category": category, None: number + other}
    body = f'kind = "{column.kind}"\n' if column.kind in ("integer", "date", "boolean") else ""
    body += bodies.get(column.kind, number)
    return f'name = "{_inside(column.name)}"\n{body}# missing = true  # if values may be missing\n'


def _inside(text: str) -> str:
    """Text inside a TOML string."""
    return _json(text)[1:-1]


def _json(value: Any) -> str:
    """JSON's strings, numbers, truths and lists are TOML's, too."""
    return escape_in_json(json.dumps(value, ensure_ascii=False))


__all__ = ["FILL_IN", "owner_toml"]
