"""An owner's folder: complete with answers, and never over what is there."""

import sqlite3
import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privada.exceptions import InputError
from privada.parties.owner_file import OwnerFile
from privada.parties.sources.databases import Database
from privada.service.answers import Answers, ColumnAnswer
from privada.service.new_owner import (
    FILL_IN,
    ColumnHeader,
    NewOwner,
    read_header,
    read_table_header,
    write_owner_toml,
)

ODD = 'a "quoted" \\ name [x]'
ANSWERS = Answers(
    columns=(
        ColumnAnswer(name=ODD, kind="number", low="0", high="1.5", missing=True),
        ColumnAnswer(name="born", kind="date", low="1900-01-01", high="2020-12-31"),
        ColumnAnswer(name="ill", kind="category", values="no; yes"),
        ColumnAnswer(name="note", kind="left out"),
    ),
    relation="replace-one",
    epsilon="2",
    delta="1e-6",
    label="ill",
    size="100",
)


def new_owner(folder, data):
    columns = tuple(ColumnHeader(column.name) for column in ANSWERS.columns)
    return NewOwner(folder=folder, data=data, columns=columns, methods=("cells",))


def test_answers_make_a_file_that_loads(tmp_path):
    owner = new_owner(tmp_path / "clinic", tmp_path / "rows.csv")
    paths, _ = owner.create(owner.text(answers=ANSWERS))
    file = OwnerFile.read(paths[0])
    assert file.budget == ANSWERS.check()
    assert file.schema.features[0] == ODD
    assert file.schema.size == 100
    assert file.dataset == "rows"
    assert Path(file.source.place).resolve() == (tmp_path / "rows.csv").resolve()
    file.open_budget()


def test_a_database_is_seen_from_the_folder(tmp_path):
    database = Database(url=f"sqlite:///{tmp_path / 'rows.sqlite'}", table="registry.patients")
    owner = new_owner(tmp_path / "clinic", database)
    paths, _ = owner.create(owner.text(answers=ANSWERS))
    file = OwnerFile.read(paths[0])
    assert file.dataset == "patients"
    assert file.source.file.resolve() == (tmp_path / "rows.sqlite").resolve()
    assert str(tmp_path) not in paths[0].read_text()


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "owner.key").write_text("precious")
    owner = new_owner(tmp_path, None)
    with pytest.raises(InputError, match="exists and is not overwritten"):
        owner.create(owner.text())
    assert [path.name for path in tmp_path.iterdir()] == ["owner.key"]


TABLE = pa.table(
    {
        "age": pa.array([1], pa.int32()),
        "weight": pa.array([1.5]),
        "born": pa.array([0], pa.date32()),
        "ill": pa.array([True]),
        "city": pa.array(["x"]),
    }
)
KINDS = {"age": "integer", "weight": "number", "born": "date", "ill": "boolean", "city": "category"}


def test_parquet_declares_kinds(tmp_path):
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    assert {each.name: each.kind for each in read_header(tmp_path / "rows.parquet")} == KINDS


def test_kinds_do_not_depend_on_values(tmp_path):
    pq.write_table(TABLE, tmp_path / "some.parquet")
    pq.write_table(TABLE.slice(0, 0), tmp_path / "none.parquet")
    assert read_header(tmp_path / "some.parquet") == read_header(tmp_path / "none.parquet")


def test_csv_declares_names_only(tmp_path):
    (tmp_path / "rows.csv").write_text("age,city\n1,x\n")
    assert read_header(tmp_path / "rows.csv") == [ColumnHeader("age"), ColumnHeader("city")]


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nothing at .*rows\.csv"):
        read_header(tmp_path / "rows.csv")


def test_a_table_of_duckdb_declares_kinds(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE patients (age INTEGER, weight DOUBLE, born DATE, ill BOOLEAN, city TEXT)"
        )
    database = Database(url=f"duckdb:///{tmp_path / 'rows.duckdb'}", table="patients")
    assert {each.name: each.kind for each in read_table_header(database)} == KINDS


def test_a_table_of_sqlite_declares_names_only(tmp_path):
    with sqlite3.connect(tmp_path / "rows.sqlite") as connection:
        connection.execute("CREATE TABLE patients (age INTEGER, city TEXT)")
    connection.close()
    database = Database(url=f"sqlite:///{tmp_path / 'rows.sqlite'}", table="patients")
    assert read_table_header(database) == [ColumnHeader("age"), ColumnHeader("city")]


ODD_NAME = 'a "quoted" \\ name\n\t[x]'


def made(*columns, label=None, name="patients", path="rows.csv"):
    return write_owner_toml(
        name=name,
        source=path,
        ledger="ledger.sqlite",
        key="owner.key",
        methods=("cells",),
        columns=columns,
        label=label,
    )


def test_budget_relation_and_bounds_are_left_to_the_owner():
    read = tomllib.loads(made(ColumnHeader("age", "number"), ColumnHeader("sex", "category")))
    assert {read["privacy"][key] for key in ("relation", "epsilon")} == {FILL_IN}
    age, sex = read["schema"]["columns"]
    assert age == {"name": "age", "low": FILL_IN, "high": FILL_IN}
    assert sex == {"name": "sex", "values": FILL_IN}
    assert "label" not in read["schema"]


def test_questions_wait_for_a_person_and_nobody_is_a_curator():
    policy = tomllib.loads(made())["policy"]
    assert policy["approval"] is True
    assert policy["curators"] == []
    assert policy["methods"] == ["cells"]


def test_the_label_is_no_column():
    read = tomllib.loads(made(ColumnHeader("age"), ColumnHeader("ill", "category"), label="ill"))
    assert [column["name"] for column in read["schema"]["columns"]] == ["age"]
    assert read["schema"]["label"]["name"] == "ill"


def test_a_column_of_no_declared_type_may_be_a_category():
    assert "instead of low and high, if it is a category" in made(ColumnHeader("age"))
    assert "instead of low and high" not in made(ColumnHeader("age", "number"))


@pytest.mark.parametrize("odd", [ODD_NAME, "Größe", "'''"])
def test_names_are_quoted(odd):
    read = tomllib.loads(made(ColumnHeader(odd), name=odd, path=odd))
    assert read["data"] == {"name": odd, "path": odd}
    assert read["schema"]["columns"][0]["name"] == odd
