"""Public files beside a study: by name, by the card, in every room that reads one."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privada._toml import Section
from privada.exceptions import StudyError
from privada.methods import _public_rows
from privada.methods._public_rows import labelled_rows, public_rows
from privada.methods.method import methods
from privada.parties import Category, Date, Number, Rows, Schema

CARD = Schema(
    columns=[
        Number(name="age", low=0, high=120, missing=True),
        Category(name="ward", values=("a", "b"), missing=True),
        Date(name="seen", first="2020-01-01", last="2025-01-01"),
    ],
    label=Category(name="ill", values=("no", "yes")),
)
FRAME = pd.DataFrame(
    {
        "ward": ["b", None, "a"],
        "seen": pd.to_datetime(["2021-01-01", "2020-01-02", "2030-01-01"]),
        "age": [30.0, None, 150.0],
        "ill": ["yes", "no", "no"],
    }
)


def read(home, name, *, labelled, card=CARD, more=""):
    section = Section.parse(f'rows = "{name}"\n{more}', name="study.toml")
    return (labelled_rows if labelled else public_rows)(section, "rows", home, card)


@pytest.fixture
def home(tmp_path):
    FRAME.to_csv(tmp_path / "labelled.csv", index=False)
    FRAME.drop(columns="ill").to_csv(tmp_path / "rows.CSV", index=False)
    FRAME.drop(columns="ill").to_parquet(tmp_path / "rows.parquet", index=False)
    german = FRAME.drop(columns="ill").assign(seen=FRAME.seen.dt.strftime("%d.%m.%Y"))
    german.to_csv(tmp_path / "german.csv", index=False, sep=";", decimal=",", encoding="cp1252")
    encoded = pd.DataFrame(CARD.encode(FRAME), columns=CARD.features)
    encoded.iloc[:, ::-1].to_csv(tmp_path / "features.csv", index=False)
    encoded.to_csv(tmp_path / "unnamed.csv", index=False, header=False)
    return tmp_path


def test_files_are_encoded_as_the_owner_encodes_its_rows(home):
    """By name, whatever the order: categories, dates, clipping and missing values included."""
    batch = Rows(pa.Table.from_pandas(FRAME), schema=CARD).gathered()
    for name in ("rows.CSV", "rows.parquet", "features.csv", "unnamed.csv"):
        assert np.array_equal(read(home, name, labelled=False), batch.X), name
    dialect = 'csv = { delimiter = ";", decimal = ",", encoding = "cp1252", date_format = "%d.%m.%Y" }'
    assert np.array_equal(read(home, "german.csv", labelled=False, more=dialect), batch.X)
    X, y = read(home, "labelled.csv", labelled=True)
    assert np.array_equal(X, batch.X)
    assert np.array_equal(y, batch.y)


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("change", "labelled", "message"),
    [
        (lambda f: f.drop(columns="age"), True, "has and the file lacks: 'age'"),
        (lambda f: f.rename(columns={"age": "Age"}), True, "lacks: 'age'; .* does not ask for: 'Age'"),
        (lambda f: f.assign(more=1), True, "does not ask for: 'more'"),
        (lambda f: f, False, "does not ask for: 'ill'"),
        (lambda f: f.drop(columns="ill"), True, "lacks: 'ill'"),
        (lambda f: f.assign(ward="z"), True, "'ward' holds a value outside"),
        (lambda f: f.assign(age="old"), True, "'age'.* not a number"),
        (lambda f: f.assign(ill=None), True, "'ill' holds a missing label|not a"),
        (lambda f: f.assign(seen=None), True, "'seen' holds a missing value|not a date"),
        (lambda f: f.iloc[:0], True, "there are no rows"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, form, change, labelled, message):
    frame = change(FRAME)
    path = tmp_path / f"rows.{form}"
    frame.to_csv(path, index=False) if form == "csv" else frame.to_parquet(path, index=False)
    with pytest.raises(StudyError, match=rf"study\.toml, line 1, rows: .*({message})"):
        read(tmp_path, path.name, labelled=labelled)


def test_parquet_that_is_none_or_unfolds_is_refused(tmp_path, monkeypatch):
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(StudyError, match=r"cannot read rows\.parquet as Parquet"):
        read(tmp_path, "rows.parquet", labelled=False)
    monkeypatch.setattr(_public_rows, "MOST_VALUES", 5)
    pq.write_table(pa.Table.from_pandas(FRAME), tmp_path / "rows.parquet")
    with pytest.raises(StudyError, match="more than 5 values"):
        read(tmp_path, "rows.parquet", labelled=True)


KEYS = {"cells": "centers", "clustering": "target", "transport": "target", "marginals": "source"}


@pytest.mark.parametrize("name", [*KEYS, "reweighting"])
def test_every_room_names_a_wrong_column(name, tmp_path):
    example = methods()[name].example()
    names = [column.name for column in example.schema.columns[1:]]
    (tmp_path / "rows.csv").write_text(",".join([*names, "strange"]) + "\n")
    key = KEYS.get(name, "source")
    section = Section.parse(f'[method]\n{key} = "rows.csv"\n', name="study.toml").section("method")
    first = example.schema.columns[0].name
    with pytest.raises(StudyError, match=rf"line 2, method\.{key}: .*lacks: '{first}'.*'strange'"):
        methods()[name].inquire(
            section,
            schemas={"clinic": example.schema},
            guarantee=example.questions[0].guarantee,
            home=tmp_path,
            seed=0,
        )
