"""A new owner: what its data declares of the columns, its ``owner.toml``, and the folder that is made.

Nothing is guessed. The header of a file or a table gives names and declared types; no value is read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privada._text import escape_in_json
from privada.exceptions import InputError, SchemaError
from privada.parties.columns import KINDS, suggest_kind
from privada.parties.sources.databases import Database
from privada.privacy.asker import check_name
from privada.privacy.ledger import Ledger
from privada.privacy.receipt import OwnerKey
from privada.service.answers import Answers, read_number
from privada.service.ports import listen, require_pages

if TYPE_CHECKING:
    from privada.parties.csv_files import Dialect
    from privada.service.set_up_page import SetUp

TOML, KEY, LEDGER = "owner.toml", "owner.key", "ledger.sqlite"
FILL_IN = "FILL IN"
KNOWN_BY_KEYS = ("number", "category")  # kinds that low and high, or values, declare

_TEMPLATE = Path(__file__).parent / "pages/owner.toml"
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


@dataclass(frozen=True)
class ColumnHeader:
    """A column's name, and the kind that its declared type suggests (None: no type is declared)."""

    name: str
    kind: str | None = None


def read_header(path: Path, dialect: Dialect | None = None) -> list[ColumnHeader]:
    """Return the columns of a file or a folder. No value is read."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    from privada.parties.csv_files import CsvFile, Dialect, is_csv
    from privada.parties.sources.files import data_files

    if not (path.is_file() or path.is_dir()):
        raise InputError(f"--data: there is nothing at {path}, or it is neither a file nor a folder.")
    files = data_files(path)
    if dialect is not None or (files and all(is_csv(file.name) for file in files)):
        first = files[0] if files else path
        csv = CsvFile(first.name, lambda: pa.OSFile(str(first)), dialect or Dialect(), ())
        try:
            return [ColumnHeader(name) for name in csv.names()]
        except SchemaError as error:
            raise InputError(f"--data: {error} Say how it is written: --encoding, --delimiter.") from None
    try:
        fields: Any = ds.dataset(path, format="parquet").schema
    except (pa.ArrowInvalid, OSError) as error:
        kind = type(error).__name__
        raise InputError(f"--data: {path.name} is neither CSV nor Parquet ({kind}).") from None
    return [ColumnHeader(field.name, suggest_kind(field.type)) for field in fields]


def read_table_header(database: Database) -> list[ColumnHeader]:
    """Return the columns of a table or a query. No row is read."""
    from privada.parties.sources.databases import ENGINES

    with ENGINES[database.engine](database) as session:
        declared = session.declared(database.select(()))
    return [
        ColumnHeader(name, None if kind is None else suggest_kind(kind)) for name, kind in declared.items()
    ]


@dataclass(frozen=True, kw_only=True)
class NewOwner:
    """An owner that is to be made: where its rows are and what their columns are called.

    ``name`` is the identity of the data set, by default that of the file, the table or the folder;
    ``dialect`` says how CSV is written.
    """

    folder: Path
    data: Path | Database | None
    columns: tuple[ColumnHeader, ...]
    methods: tuple[str, ...]
    name: str | None = None
    dialect: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dataset(self) -> str:
        """The identity of the data set."""
        if self.name:
            return self.name
        if isinstance(self.data, Database):
            return (self.data.table or self.folder.resolve().name).rpartition(".")[2]
        return self.data.stem if self.data else self.folder.resolve().name

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    def text(self, *, label: str | None = None, answers: Answers | None = None) -> str:
        """Return the text of owner.toml; with answers it is complete."""
        home = self.folder.resolve()
        if isinstance(self.data, Database):
            source: str | Database = self.data.seen_from(home)
        else:
            source = "data.parquet" if self.data is None else os.path.relpath(self.data.resolve(), home)
        return write_owner_toml(
            name=self.dataset,
            source=source,
            ledger=LEDGER,
            key=KEY,
            methods=self.methods,
            columns=self.columns,
            label=label,
            dialect=self.dialect,
            answers=answers,
        )

    def create(self, text: str, *, passphrase: str | None = None) -> tuple[tuple[Path, ...], OwnerKey]:
        """Write owner.toml, a signing key and an empty ledger; nothing, if one of them exists already."""
        check_name(name=self.dataset, longest=200)
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = tuple(self.folder / part for part in (TOML, KEY, LEDGER))
        for path in paths:
            # A key or a ledger that was overwritten would be lost, and with it what was spent.
            if path.exists():
                raise InputError(f"DIR: {path} exists and is not overwritten.")
        key = OwnerKey.generate()
        key.save(paths[1], passphrase=passphrase)
        Ledger.open(paths[2], key).close()
        # Last: an owner.toml without its key or ledger would look complete.
        paths[0].write_text(text, encoding="utf-8")
        return paths, key


@contextmanager
def serve_set_up(
    owner: NewOwner, *, port: int = 0, passphrase: str | None = None
) -> Iterator[tuple[str, SetUp]]:
    """Serve the page of an owner that is to be made; yield its address, which contains a secret."""
    require_pages("The page")
    from privada.service.set_up_page import SetUp, make_application
    from privada.service.web import local_origins, run_pages

    listening = listen("--page", port)
    origins = local_origins(listening.getsockname()[1])
    page = SetUp(owner=owner, origins=origins, passphrase=passphrase)
    with run_pages(make_application(page), listening):
        yield origins[0] + page.path, page


def write_owner_toml(
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
    """Return the whole text; complete if there are answers, else with places to fill in."""
    csv = ""
    if isinstance(source, str):
        place = f"path = {_write_value(source)}  {_FILE}" + _DATABASE.rstrip()
        csv = '# csv = { delimiter = ";", decimal = ",", encoding = "cp1252" }  # how CSV is written'
        if dialect:
            csv = "\n[data.csv]\n" + _write_table(dialect)
    else:
        pairs = {"database": source.url, "table": source.table, "query": source.query}
        place = _write_table({key: value for key, value in pairs.items() if value is not None}).rstrip()
    declared = answers.schema_pairs if answers else {}
    schema = [
        (f"{key} = {_write_value(declared[key])}" if key in declared else f"# {key} = {example}")
        + f"  # {meaning}"
        for key, (example, meaning) in _SCHEMA.items()
    ]
    delta = answers.delta if answers else ""
    text = _TEMPLATE.read_text(encoding="utf-8").format(
        fill=FILL_IN,
        name=_write_value(name)[1:-1],
        source=place,
        csv=csv,
        ledger=ledger,
        key=key,
        relation=_write_value(answers.relation if answers else FILL_IN),
        epsilon=_write_value(read_number("epsilon", answers.epsilon) if answers else FILL_IN),
        delta=f"delta = {read_number('delta', delta)}" if delta else "# delta = 1e-6",
        methods=", ".join(f'"{method}"' for method in methods),
        schema="\n".join(schema),
    )
    if answers:
        tables = [_write_table(table) for table in answers.column_tables]
        labels = [] if answers.label_table is None else [_write_table(answers.label_table)]
    else:
        # Bounds and values are left to the owner.
        all_columns = list(columns)
        tables = [_write_open_column(column) for column in all_columns if column.name != label]
        labels = [_write_open_column(column) for column in all_columns if column.name == label]
    text += "".join(f"[[schema.columns]]\n{table}\n" for table in tables)
    return text + (f"[schema.label]\n{labels[0]}" if labels else _LABEL)


def _write_open_column(column: ColumnHeader) -> str:
    """The table of a column whose bounds or values have to be filled in."""
    category = f'values = "{FILL_IN}"  # all categories, as a list; others are an error\n'
    number = f'low = "{FILL_IN}"  # values beyond the bounds are clipped\nhigh = "{FILL_IN}"\n'
    other = '# values = ["a", "b"]  # instead of low and high, if it is a category\n'
    hints = {word: f" ({kind.hint})" if kind.hint else "" for word, (kind, _) in KINDS.items()}
    first, *others = (f'"{word}"{hint}' for word, hint in hints.items() if word not in KNOWN_BY_KEYS)
    other += f"# kind = {first}  # or {', '.join(others)}\n"
    if column.kind is None:
        body = number + other
    else:
        kind, _ = KINDS[column.kind]
        hint = f"; {kind.hint}" if kind.hint else ""
        bodies = {"bounds": number.replace("\nhigh", f"{hint}\nhigh"), "values": category, "": ""}
        stated = column.kind not in KNOWN_BY_KEYS
        body = (f'kind = "{column.kind}"\n' if stated else "") + bodies[kind.asks]
    return f"name = {_write_value(column.name)}\n{body}# missing = true  # if values may be missing\n"


def _write_table(pairs: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {_write_value(value)}\n" for key, value in pairs.items())


def _write_value(value: Any) -> str:
    """A value in TOML, which writes strings, numbers, truths and lists as JSON does."""
    return escape_in_json(json.dumps(value, ensure_ascii=False))


__all__ = ["FILL_IN", "ColumnHeader", "NewOwner", "read_header", "read_table_header", "serve_set_up"]
