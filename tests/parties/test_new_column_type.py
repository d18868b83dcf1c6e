"""A new type of columns is one class and its registration: everything else works with it as it is."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privada
from privada import Bins, CellStatistics, Owner, PureDP
from privada._toml import Section
from privada.audit import Sample, neighbours, replay
from privada.audit.rows import records
from privada.exceptions import SchemaError, StudyError
from privada.methods.models.model_file import list_parts
from privada.parties import Category, Number, Rows, Schema, make_dummy_rows
from privada.parties.checks import check_source
from privada.parties.columns import KINDS, Column, Kind, register_column
from privada.parties.csv_files import Dialect, parse_distinct
from privada.parties.owner_file import Card
from privada.parties.sources import StoredRows, open_source
from privada.privacy import Relation
from privada.service.answers import ColumnAnswer, list_kinds
from privada.studies.naming import names_of

BUDGET = PureDP(epsilon=1, relation="add/remove")


def minutes(text):
    """Minutes of a text such as 1h30m; NaN if it is missing."""
    if text is None or text != text:
        return np.nan
    match = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?", str(text))
    if match is None or not match[0]:
        raise ValueError
    return 60.0 * int(match[1] or 0) + int(match[2] or 0)


@dataclass(frozen=True, kw_only=True)
class Duration(Column):
    """Hours and minutes between two public bounds; becomes minutes."""

    name: str
    shortest: str
    longest: str
    missing: bool = False

    label_role = "number"
    expected = "a time span"

    @property
    def low(self):
        return minutes(self.shortest)

    @property
    def high(self):
        return minutes(self.longest)

    @classmethod
    def read_fields(cls, section):
        return {"shortest": section.string("low"), "longest": section.string("high")}

    def to_dict(self):
        bounds = {"low": self.shortest, "high": self.longest}
        return {"name": self.name, "kind": "duration", **bounds, "missing": self.missing}

    def read_numbers(self, values):
        try:
            return np.array([minutes(value) for value in values], dtype=np.float64)
        except ValueError:
            raise SchemaError(f"Column {self.name!r} holds something that is no time span.") from None

    def at(self, number):
        hours, rest = divmod(max(0, round(number)), 60)
        return f"{hours}h{rest}m"

    def decode(self, features):
        values = np.array([self.at(number) for number in features[:, 0]], dtype=object)
        values[self.is_marked(features)] = None
        return values

    def arrow_type(self):
        return pa.string()

    def parse_words(self, words, dialect):
        def parse(text):
            try:
                minutes(text)
            except ValueError:
                return None
            return text

        return parse_distinct(words, parse, pa.string())

    def needs_parser(self, dialect):
        return True


@pytest.fixture(autouse=True)
def duration():
    """The new type, registered."""
    kind = Kind(word="duration", meaning="a time span, as 1h30m", asks="bounds", hint="as 1h30m")
    yield register_column(kind)(Duration)
    del KINDS["duration"]


@pytest.fixture
def schema(duration):
    return Schema(
        columns=[
            duration(name="stay", shortest="30m", longest="4h", missing=True),
            Category(name="ward", values=("a", "b")),
        ],
        label=duration(name="wait", shortest="0m", longest="2h"),
    )


STAYS = ["1h30m", None, "9h", "5m"]
FEATURES = [[90.0, 0.0, 1.0, 0.0], [135.0, 1.0, 0.0, 1.0], [240.0, 0.0, 1.0, 0.0], [30.0, 0.0, 0.0, 1.0]]
TABLE = pa.table({"stay": STAYS, "ward": ["a", "b", "a", "b"], "wait": ["1h", "10m", "3h", "0m"]})
TEXT = "stay,ward,wait\n1h30m,a,1h\n,b,10m\n9h,a,3h\n5m,b,0m\n"


def test_it_is_encoded_decoded_and_described(schema):
    assert schema.features == ("stay", "stay is missing", "ward = a", "ward = b")
    assert schema.encode(TABLE).tolist() == FEATURES
    assert schema.encode_label(TABLE).tolist() == [60.0, 10.0, 120.0, 0.0]
    assert schema.decode(FEATURES)["stay"].to_pylist() == ["1h30m", None, "4h0m", "0h30m"]
    assert schema.label_bounds == (0.0, 120.0)
    assert names_of(schema) == {"features": list(schema.features), "label": "wait", "classes": []}
    with pytest.raises(SchemaError, match="'stay' holds something that is no time span") as caught:
        schema.encode({"stay": ["soon"], "ward": ["a"]})
    assert "soon" not in str(caught.value)


def test_it_is_read_from_csv_parquet_and_frames(schema, tmp_path):
    (tmp_path / "rows.csv").write_text(TEXT)
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    for data in (tmp_path / "rows.csv", tmp_path / "rows.parquet", TABLE, TABLE.to_pandas()):
        batch = Rows(data, schema=schema).gathered()
        assert batch.X.tolist() == FEATURES
        assert batch.y.tolist() == [60.0, 10.0, 120.0, 0.0]


def test_it_is_checked_and_faults_are_counted(schema, tmp_path):
    (tmp_path / "rows.csv").write_text(TEXT.replace("5m,b", "soon,b"))
    with pytest.raises(SchemaError, match="column 1 'stay': not a time span at line 5"):
        Rows(tmp_path / "rows.csv", schema=schema).check()
    source = open_source(StoredRows(tmp_path / "rows.csv", Dialect()), schema, None, None)
    stay, ward, wait = check_source(source, schema).to_dict()["columns"]
    assert stay == {
        "name": "stay", "above": 1, "missing": 1, "unparsable": 1, "first_line": 5, "fits": False,
    }  # fmt: skip
    assert ward == {"name": "ward", "fits": True}
    assert wait == {"name": "wait", "above": 1, "fits": True}
    mixed = np.array(["1h", "soon", None], dtype=object)
    assert schema.columns[0].count_faults(mixed)["unparsable"] == 1


def test_files_declare_it_and_owner_cards_publish_it(schema, tmp_path):
    card = Card(schema=schema, relation=Relation.ADD_REMOVE)
    (tmp_path / "schema.toml").write_text(card.to_toml())
    assert Card.read(tmp_path / "schema.toml").schema == schema
    text = '[schema]\ncolumns = [{ name = "stay", kind = "duration", low = 3, high = "1h" }]'
    with pytest.raises(StudyError, match="low: expected a string, got 3"):
        Schema.from_section(Section.parse(text, name="owner.toml").section("schema"))


def test_whoever_sets_up_an_owner_can_choose_it():
    assert list_kinds()["duration"] == "a time span, as 1h30m"
    answer = ColumnAnswer(name="stay", kind="duration", low="30m", high=" 4h ", missing=True)
    answer.check()
    assert answer.pairs()["high"] == "4h"


def test_generated_rows_and_saved_models_have_it(schema, duration):
    rows = make_dummy_rows(schema, rows=50)
    assert Rows(rows, schema=schema).check() == 50
    assert rows["stay"].null_count > 0
    assert list_parts()["Duration"] == f"{duration.__module__}:Duration"


def test_audits_try_its_corners_and_replay_its_questions(schema):
    sample = Sample.of(
        schema.decode(FEATURES).to_pandas().to_numpy(), schema=schema, y=["1h", "10m", "2h", "0m"]
    )
    rng = np.random.default_rng(0)
    corners = {name: record.X[0, 0] for name, record in records(sample, rng, None)}
    assert corners["the low corner"] == "0h30m"
    assert corners["the high corner"] == "4h0m"
    assert corners["a far outlier"] == "4000000h0m"
    assert corners["a missing value"] is None
    question = CellStatistics(tables=(Bins(feature=0, edges=np.array([60.0, 100.0])),), guarantee=BUDGET)
    for pair in neighbours(sample, relation=BUDGET.relation, rng=rng):
        assert replay(question, pair.sample.rows(), pair.neighbour.rows(), pair=pair.name).passed


def test_an_owner_answers_questions_about_it(schema):
    question = CellStatistics(tables=(Bins(feature=0, edges=np.array([60.0, 100.0])),), guarantee=BUDGET)
    owner = Owner(TABLE, schema=schema, dataset="stays", budget=BUDGET)
    assert owner.answer(question)["counts"].shape == (3,)


def test_no_module_asks_which_type_a_column_is():
    """Beside `privada.parties.columns` itself; 17 modules did, before columns had their own behaviour."""
    package = Path(privada.__file__).parent
    types = rf"\b({'|'.join(sorted({column.__name__ for _, column in KINDS.values()} | {'Number'}))})\b"
    asks = re.compile(rf"isinstance\([^()]*{types}|type\([^()]*\) (is|==|in) [^:\n]*{types}|{{{types}:")
    ladders = [
        str(module.relative_to(package))
        for module in sorted(package.rglob("*.py"))
        if module.name != "columns.py" and asks.search(module.read_text(encoding="utf-8"))
    ]
    assert ladders == []
    # The words of `kind` stand with the types, too.
    words = re.compile(r'^(?! *>>>).*"(integer|boolean|ordered)"', re.MULTILINE)
    named = [
        str(module.relative_to(package))
        for module in sorted(package.rglob("*.py"))
        if module.name != "columns.py" and words.search(module.read_text(encoding="utf-8"))
    ]
    assert [name for name in named if name.startswith(("parties", "service", "cli", "audit"))] == []
    assert isinstance(Number(name="x", low=0, high=1), Column)
