from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

from privada.exceptions import SchemaError
from privada.parties import Category, Number, Rows, Schema
from privada.parties.compute import batch as batch_module
from privada.privacy import SecureNoise

FEW = Schema(columns=[Number(name="x", low=0, high=100)], person_id="who", max_rows=1)


def gathered(rows):
    batches = list(rows.batches())
    return np.vstack([b.X for b in batches]), np.concatenate([b.y for b in batches])


def makes(table, tmp_path):
    frame = pd.DataFrame(table)
    folder = tmp_path / "parts"
    folder.mkdir()
    for i in range(3):
        pq.write_table(pa.Table.from_pandas(frame.iloc[2 * i : 2 * i + 2]), folder / f"{i}.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return {
        "pandas": frame,
        "pandas categorical": frame.astype({"ward": "category"}),
        "polars": pl.DataFrame({k: list(v) for k, v in table.items()}),
        "arrow": pa.Table.from_pandas(frame),
        "batch": pa.RecordBatch.from_pandas(frame),
        "parquet directory": folder,
        "csv": tmp_path / "rows.csv",
    }


def test_every_make_gives_the_same_rows(schema, table, tmp_path, monkeypatch):
    monkeypatch.setattr(batch_module, "BATCH", 4)
    matrix = np.column_stack([table["age"].astype(object), table["ward"]])
    X, y = gathered(Rows(matrix, schema=schema, y=table["ill"]))
    assert X[:, 0].tolist() == [10, 50, 70, 120, 0, 33]
    assert y.tolist() == [0, 1, 0, 1, 0, 1]
    for name, data in makes(table, tmp_path).items():
        other_X, other_y = gathered(Rows(data, schema=schema))
        assert np.array_equal(X, other_X), name
        assert np.array_equal(y, other_y), name


def test_parquet_streams_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(batch_module, "BATCH", 100)
    pq.write_table(pa.table({"x": np.arange(1000.0)}), tmp_path / "x.parquet")
    rows = Rows(tmp_path / "x.parquet", schema=Schema(columns=[Number(name="x", low=0, high=1e4)]))
    sizes = [len(batch) for batch in rows.batches()]
    assert sizes == [100] * 10
    assert rows.check() == 1000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="age"), "lacks columns of the schema: age"),
        (lambda t: pd.concat([t, t[["age"]]], axis=1), "columns of one name"),
        (lambda t: t.assign(age=np.nan), "'age' holds a missing value"),
        (lambda t: t.assign(age=np.inf), "'age' holds an infinite value"),
        (lambda t: t.assign(age="elderly"), "'age' holds something that is not a number"),
        (lambda t: t.assign(ward="z"), "'ward' holds a value outside"),
        (lambda t: t.assign(ill="maybe"), "not among the public classes"),
        (lambda t: t.assign(ill=None), "label"),
    ],
)
def test_bad_rows_have_named_errors_that_show_no_row(schema, table, change, message):
    with pytest.raises(SchemaError, match=message) as caught:
        Rows(change(pd.DataFrame(table)), schema=schema).check()
    for value in ("elderly", "maybe", "130"):
        assert value not in str(caught.value)


def test_wrong_shapes(schema, table, tmp_path):
    matrix = np.column_stack([table["age"].astype(object), table["ward"]])
    with pytest.raises(SchemaError, match="Expected rows of 2 columns"):
        Rows(matrix[:, :1], schema=schema, y=table["ill"])
    with pytest.raises(SchemaError, match="Expected rows of 2 columns"):
        Rows(matrix.ravel(), schema=schema, y=table["ill"])
    with pytest.raises(SchemaError, match="one label for each row"):
        Rows(matrix, schema=schema, y=table["ill"][:2])
    with pytest.raises(SchemaError, match="has a label"):
        Rows(matrix, schema=schema)
    with pytest.raises(SchemaError, match="got Generator|got generator"):
        Rows((row for row in matrix), schema=schema)
    with pytest.raises(SchemaError, match="no data at"):
        Rows(tmp_path / "absent.parquet", schema=schema)
    (tmp_path / "junk.parquet").write_bytes(b"not parquet")
    with pytest.raises(SchemaError, match="cannot be read as parquet"):
        Rows(tmp_path / "junk.parquet", schema=schema)


@pytest.mark.parametrize(
    "label", [Category(name="ill", values=("no", "yes")), Number(name="ill", low=0, high=1)]
)
def test_a_label_of_another_shape_is_refused_before_anything_is_charged(label):
    """It passed the check of rows, and every answer failed after its charge."""
    y = np.array(["no", "yes", "no"] if isinstance(label, Category) else [0.0, 1.0, 0.0])
    schema = Schema(columns=[Number(name="x", low=0, high=1)], label=label)
    for wrong, shape in ((y[:, None], r"\(rows, 1\)"), (np.stack([y, y], axis=1), r"\(rows, 2\)")):
        with pytest.raises(SchemaError, match=f"one label for each row, got an array of shape {shape}"):
            Rows(np.zeros((3, 1)), schema=schema, y=wrong)
    with pytest.raises(SchemaError, match=r"got an array of shape \(\)"):
        Rows(np.zeros((3, 1)), schema=schema, y=np.array("no"))


def test_a_frame_of_mixed_types_does_not_show_its_values():
    schema = Schema(columns=[Number(name="a", low=0, high=1)])
    with pytest.raises(SchemaError, match="mixed types") as caught:
        Rows(pd.DataFrame({"a": [1.0, "Mr Smith"]}), schema=schema)
    assert "Smith" not in str(caught.value)


CSV_SCHEMA = Schema(
    columns=[
        Number(name="age", low=0, high=120, missing=True),
        Category(name="ward", values=("01", "02", "10"), missing=True),
    ],
    label=Category(name="ill", values=(True, False)),
)


def test_csv_columns_have_the_schemas_types(tmp_path):
    """None is guessed from rows: codes keep their zeros, an empty cell is missing, late decimals are read."""
    lines = ["age,ward,ill", "41,01,true", ",10,false", "7,,true", *["30,02,false"] * 3000, "41.777,02,true"]
    (tmp_path / "rows.CSV").write_text("\n".join(lines) + "\n")
    X, y = gathered(Rows(tmp_path / "rows.CSV", schema=CSV_SCHEMA))
    assert X[:3].tolist() == [[41, 0, 1, 0, 0, 0], [60, 1, 0, 0, 1, 0], [7, 0, 0, 0, 0, 1]]
    assert X[-1, 0] == 41.777
    assert y[:3].tolist() == [0, 1, 0]


@pytest.mark.parametrize("text", ["", "age,age,ward,ill\n1,2,01,true\n", "age,ward,ill\n1,01\n"])
def test_broken_csv_files_say_what_may_be_wrong(tmp_path, text):
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(SchemaError, match=r"rows\.csv|one name|end"):
        Rows(tmp_path / "rows.csv", schema=CSV_SCHEMA).check()


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_damaged_parquet_is_named(compression, tmp_path):
    """Cut short, or with bytes changed anywhere: one sentence, and nothing of pyarrow's."""
    rng = np.random.default_rng(0)
    path = tmp_path / "rows.parquet"
    table = pa.table({"x": rng.uniform(size=500), "who": np.arange(500)})
    pq.write_table(table, path, compression=compression, row_group_size=100)
    good = path.read_bytes()
    said = []
    for trial in range(120):
        damaged = np.frombuffer(good, dtype=np.uint8).copy()
        if trial % 3 == 0:
            damaged = damaged[: rng.integers(len(good))]
        else:
            damaged[rng.integers(len(good), size=8)] = rng.integers(256, size=8)
        path.write_bytes(damaged.tobytes())
        try:
            Rows(path, schema=FEW, noise=SecureNoise()).check()
        except SchemaError as error:
            said.append(str(error))
    assert len(said) > 60
    assert max(map(len, said)) < 200


def test_numbers_of_thousands_of_digits_in_a_csv(tmp_path, rehearsal):
    path = tmp_path / "rows.csv"
    path.write_text(f"x,who\n{'9' * 5000},{'7' * 5000}\n1,2\n")
    with pytest.raises(SchemaError, match="'x' holds an infinite value"):
        Rows(path, schema=FEW, noise=rehearsal).check()
    path.write_text(f"x,who\n{'x' * 5000},1\n")
    with pytest.raises(SchemaError, match=r"column 1 'x': not a number at line 2\.$"):
        Rows(path, schema=FEW, noise=rehearsal).check()


WARDS = Category(name="ward", values=("a", "b", 'c"d'), missing=True)
TEXT = Schema(columns=[WARDS], label=Category(name="ill", values=("no", "yes")))
cells = st.lists(st.sampled_from(["a", "b", 'c"d', None]), min_size=1, max_size=40)


@settings(max_examples=30)
@given(cells, st.sampled_from([1, 3, 100]), st.randoms())
def test_text_has_the_same_codes_from_every_source(wards, size, random):
    """Arrow, its dictionaries with values that no row has, Parquet, CSV and objects, in any batches."""
    ill = [random.choice(["no", "yes"]) for _ in wards]
    expected = np.array([[ward == value for value in (*WARDS.values, None)] for ward in wards], dtype=float)
    plain = pa.table({"ward": pa.array(wards, pa.string()), "ill": ill})
    unused = pa.DictionaryArray.from_arrays(
        pa.array([None if ward is None else WARDS.values.index(ward) + 1 for ward in wards], pa.uint8()),
        pa.array(["nobody's", *WARDS.values, None]),
    )
    kinds = [plain, plain.set_column(0, "ward", unused), pl.from_arrow(plain)]
    kinds += [plain.set_column(0, "ward", plain["ward"].cast(pa.large_string()))]
    kinds += [plain.to_pandas(), plain.to_pandas().astype({"ward": "category"})]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_module, "BATCH", size)
        pq.write_table(plain, Path(folder) / "rows.parquet", row_group_size=7)
        csv.write_csv(plain, Path(folder) / "rows.csv")
        for data in (*kinds, Path(folder) / "rows.parquet", Path(folder) / "rows.csv"):
            X, y = gathered(Rows(data, schema=TEXT))
            assert np.array_equal(X, expected), type(data)
            assert y.tolist() == [["no", "yes"].index(each) for each in ill]
        objects = Rows(np.array(wards, dtype=object)[:, None], schema=TEXT, y=np.array(ill))
        assert np.array_equal(gathered(objects)[0], expected)


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ((0, 1), pa.array([1, 0, None], pa.int8())),
        ((0, 1), pa.array([1.0, -0.0, float("nan")])),
        ((False, True), pa.array([True, False, None])),
        ((0.5, 2), pa.array([2.0, 0.5, None], pa.float32())),
        ((2**53, 2**53 + 1), pa.array([2**53 + 1, 2**53, None])),
        (("x", "y"), pa.array(["y", "x", None]).dictionary_encode()),
    ],
)
def test_values_of_every_type_are_found_and_missing_ones_marked(values, column):
    schema = Schema(columns=[Category(name="c", values=values, missing=True)])
    (batch,) = Rows(pa.table({"c": column}), schema=schema).batches()
    assert batch.X.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", "secret"]),
        pa.array(["a", "secret"]).dictionary_encode(),
        pa.array([1, 2]),
        pa.array([["a"], ["b"]]),
        pa.array([b"a", b"b"]),
        pa.array([0, 1], pa.timestamp("ns")),
    ],
)
def test_values_outside_are_refused_whatever_their_type(column):
    schema = Schema(columns=[Category(name="c", values=("a", "b"))])
    with pytest.raises(SchemaError, match="'c' holds a value outside") as caught:
        Rows(pa.table({"c": column}), schema=schema).check()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("place", [-3, 2, 100])
def test_a_dictionary_whose_places_lead_nowhere_is_damaged(place):
    """Read as they are, such places would be a wrong category or the end of the process."""
    wrong = pa.DictionaryArray.from_arrays(pa.array([0, 1, place]), pa.array(["a", "b"]), safe=False)
    schema = Schema(columns=[Category(name="c", values=("a", "b"))])
    with pytest.raises(SchemaError, match="'c' cannot be read, it may be damaged"):
        Rows(pa.table({"c": wrong}), schema=schema).check()


@pytest.mark.parametrize("label", [pa.array(["no", None]), pa.array(["no", None]).dictionary_encode()])
def test_a_missing_label_is_refused(label):
    schema = Schema(
        columns=[Number(name="x", low=0, high=1)], label=Category(name="ill", values=("no", "yes"))
    )
    table = pa.table({"x": [0.0, 1.0], "ill": label})
    for data in (table, table.to_pandas()):
        with pytest.raises(SchemaError, match="'ill' holds a missing label"):
            Rows(data, schema=schema).check()


def test_files_of_one_folder_may_write_text_in_different_ways(tmp_path):
    schema = Schema(columns=[Category(name="c", values=("a", "b"))])
    for name, column in (("0", pa.array(["a", "b"])), ("1", pa.array(["b", "b"]).dictionary_encode())):
        pq.write_table(pa.table({"c": column}), tmp_path / f"{name}.parquet", use_dictionary=name == "1")
    X = np.vstack([batch.X for batch in Rows(tmp_path, schema=schema).batches()])
    assert X.tolist() == [[1, 0], [0, 1], [0, 1], [0, 1]]
