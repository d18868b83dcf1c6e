import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privada.exceptions import SchemaError
from privada.parties import Category, Number, Rows, Schema
from privada.parties import rows as rows_module
from privada.privacy import SecureNoise


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
    monkeypatch.setattr(rows_module, "BATCH", 4)
    matrix = np.column_stack([table["age"].astype(object), table["ward"]])
    X, y = gathered(Rows(matrix, schema=schema, y=table["ill"]))
    assert X[:, 0].tolist() == [10, 50, 70, 120, 0, 33]
    assert y.tolist() == [0, 1, 0, 1, 0, 1]
    for name, data in makes(table, tmp_path).items():
        other_X, other_y = gathered(Rows(data, schema=schema))
        assert np.array_equal(X, other_X), name
        assert np.array_equal(y, other_y), name


def test_parquet_streams_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(rows_module, "BATCH", 100)
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


def test_a_batch_has_parts_that_fit_whatever_is_made_of_a_row(monkeypatch):
    monkeypatch.setattr(rows_module, "AT_ONCE", 100)
    batch = rows_module.Batch(np.arange(7.0)[:, None], np.arange(7))
    for numbers, sizes in ((30, [3, 3, 1]), (10_000, [1] * 7), (0, [7])):
        parts = list(batch.parts(numbers))
        assert [len(part) for part in parts] == sizes
        assert np.concatenate([part.y for part in parts]).tolist() == list(range(7))


def test_no_person_has_more_rows_than_the_bound(rehearsal):
    people = np.repeat([7, 8, 9], [1, 5, 40])
    X = np.arange(46.0)[:, None]
    schema = Schema(columns=[Number(name="x", low=0, high=100)], person_id="who", max_rows=3)
    rows = Rows(X, schema=schema, person=people, noise=rehearsal)
    kept = np.concatenate([b.X[:, 0] for b in rows.batches()]).astype(int)
    counts = np.bincount(people[kept], minlength=10)
    assert counts[7:].tolist() == [1, 3, 3]
    again = np.concatenate([b.X[:, 0] for b in rows.batches()]).astype(int)
    assert np.array_equal(kept, again), "the choice is made once"
    with pytest.raises(SchemaError, match="noise source"):
        Rows(X, schema=schema, person=people)


@pytest.mark.statistical
def test_dropped_rows_are_chosen_at_random(rehearsal):
    """Each of 10 rows of one person is kept with probability 3/10; 6 standard errors on 2,000 runs."""
    schema = Schema(columns=[Number(name="x", low=0, high=100)], person_id="who", max_rows=3)
    X, hits = np.arange(10.0)[:, None], np.zeros(10)
    for _ in range(2000):
        rows = Rows(X, schema=schema, person=np.zeros(10), noise=rehearsal)
        hits[next(rows.batches()).X[:, 0].astype(int)] += 1
    assert np.all(np.abs(hits / 2000 - 0.3) < 6 * np.sqrt(0.21 / 2000))


def test_reprs_show_nothing(schema, table):
    rows = Rows(pd.DataFrame(table), schema=schema)
    assert repr(rows) == "<Rows>"
    assert repr(next(rows.batches())) == "<Batch>"


@pytest.mark.parametrize(
    "people",
    [
        np.array([np.nan, np.nan, 1.0]),
        np.array([None, "a", "b"], dtype=object),
        np.array(["NaT", "NaT", "2020-01-01"], dtype="datetime64[D]"),
    ],
)
def test_a_missing_person_is_refused_whatever_the_column_type(people, rehearsal):
    """Two rows without a person are not one person: adding one could drop the other."""
    schema = Schema(columns=[Number(name="x", low=0, high=1)], person_id="who", max_rows=1)
    with pytest.raises(SchemaError, match="missing person"):
        Rows(np.zeros((3, 1)), schema=schema, person=people, noise=rehearsal)


def test_a_file_whose_persons_changed_is_not_read_with_the_old_choice(tmp_path):
    """One person must not get more rows than allowed because the file was refreshed meanwhile."""
    path = tmp_path / "rows.parquet"
    schema = Schema(columns=[Number(name="a", low=0, high=1)], person_id="who", max_rows=1)
    pq.write_table(pa.table({"a": [0.1] * 10, "who": list(range(10))}), path)
    rows = Rows(path, schema=schema, noise=SecureNoise())
    assert rows.check() == 10
    pq.write_table(pa.table({"a": [0.1] * 10, "who": [0] * 10}), path)
    with pytest.raises(SchemaError, match="load the owner anew"):
        rows.check()
    person = np.arange(5)
    rows = Rows(np.zeros((5, 1)), person=person, y=None, schema=schema, noise=SecureNoise())
    person[:] = 0
    with pytest.raises(SchemaError, match="load the owner anew"):
        rows.check()


def test_a_frame_of_mixed_types_does_not_show_its_values():
    schema = Schema(columns=[Number(name="a", low=0, high=1)])
    with pytest.raises(SchemaError, match="mixed types") as caught:
        Rows(pd.DataFrame({"a": [1.0, "Mr Smith"]}), schema=schema)
    assert "Smith" not in str(caught.value)


FEW = Schema(columns=[Number(name="x", low=0, high=100)], person_id="who", max_rows=1)


@pytest.mark.parametrize(
    ("people", "word"),
    [
        (np.array([16_777_216, 16_777_217, 3], dtype=np.float32), r"float32 too .* 2\*\*24"),
        (np.array([2048, 2049, 3], dtype=np.float16), r"float16 too .* 2\*\*11"),
        (np.array([2.0**53, 1.0, 2.0]), r"float64 too .* 2\*\*53"),
        (np.array([np.inf, 1.0, 2.0]), "float64"),
        (np.array([0.1, 0.2, 0.3], dtype=np.float32), "fractions"),
        ([2**53 + 1, 2**53, 1.0], "several types"),
        ([np.float32(2**24), np.float32(1), np.float32(2)], r"float32 too .* 2\*\*24"),
        ([1, "1", "2"], "several types"),
        ([True, 1, 2], "several types"),
        (np.array([1, "1", 2], dtype=object), "several types"),
        (np.array([1j, 2j, 3j]), "complex"),
    ],
)
def test_persons_who_may_have_become_one_are_refused(people, word, rehearsal):
    """Merged persons share their rows: whether one is there would decide which rows of the other count."""
    with pytest.raises(SchemaError, match=word):
        Rows(np.zeros((3, 1)), schema=FEW, person=people, noise=rehearsal)


def test_float_persons_of_a_table_are_refused_alike(tmp_path, rehearsal):
    table = pa.table({"x": [0.0, 0.0], "who": pa.array([16_777_216.0, 16_777_216.0], pa.float32())})
    pq.write_table(table, tmp_path / "rows.parquet")
    for data in (table, tmp_path / "rows.parquet", table.to_pandas(), pl.from_arrow(table)):
        with pytest.raises(SchemaError, match="float32"):
            Rows(data, schema=FEW, noise=rehearsal)


@pytest.mark.parametrize(
    "people",
    [
        [2**63, 2**63 + 1, -1],
        [2**70, 2**70 + 1, 1],
        ["a", "a\0", "b"],
        np.array([2**53, 2**53 + 1, 5]),
        np.array([1, 2, 3], dtype=np.float32),
        np.array([1.0, 2.0, 3.0], dtype=object),
        (b"a", b"a\0", b""),
    ],
)
def test_persons_are_told_apart_exactly(people, rehearsal):
    assert Rows(np.zeros((3, 1)), schema=FEW, person=people, noise=rehearsal).check() == 3


def test_persons_that_floats_cannot_tell_apart_are_refused(rehearsal):
    schema = Schema(columns=[Number(name="x", low=0, high=100)], person_id="who", max_rows=1)
    with pytest.raises(SchemaError, match="too large to tell apart"):
        Rows(np.zeros((2, 1)), schema=schema, person=np.array([2.0**53, 2.0**53 + 1]), noise=rehearsal)


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
    with pytest.raises(SchemaError, match="cannot be read"):
        Rows(path, schema=FEW, noise=rehearsal).check()
