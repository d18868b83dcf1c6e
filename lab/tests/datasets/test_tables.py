"""The suite of tables: its halves, its public encoding, and errors that name a missing file."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privada.exceptions import InputError
from privada_lab.datasets.tables import table_pair, table_pairs

BUNDLED = ("cancer", "diabetes", "digits")
DATA = os.environ.get("PRIVADA_DATA")


def test_both_halves_have_both_tasks_and_all_sizes_and_no_pair_twice():
    names = [pair.name for pair in table_pairs()]
    assert len(names) == len(set(names)) >= 25
    for half in ("development", "final"):
        pairs = table_pairs(half)
        assert len(pairs) >= 12
        assert min(Counter(pair.task for pair in pairs).values()) >= 6
        sizes = sorted(pair.rows for pair in pairs)
        assert sizes[0] <= 150
        assert sizes[-1] == 5000
    with pytest.raises(InputError, match="development, final"):
        table_pairs("both")
    with pytest.raises(InputError, match="wine: white to red"):
        table_pair("wine: rose to red")


def test_both_directions_of_a_split_are_in_one_half():
    """The sides of a pair, as unordered words of its name, do not come in the other half."""
    halves = {}
    for pair in table_pairs():
        sides = frozenset(pair.name.split(": ")[1].split(" to "))
        assert halves.setdefault((pair.dataset, sides), pair.half) == pair.half


@pytest.mark.parametrize("pair", table_pairs(), ids=lambda pair: pair.name)
def test_a_missing_file_is_named(pair, tmp_path):
    for folder in (tmp_path, None):
        if pair.dataset in BUNDLED:
            assert len(pair.split(folder, 0).train)
        else:
            with pytest.raises(InputError, match="--data or PRIVADA_DATA"):
                pair.split(folder, 0)


def write(folder, parts, columns):
    path = Path(folder, *parts)
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table(columns), path)


@pytest.fixture
def bank(tmp_path):
    """A generated file in the layout of the bank's: telephone is the private side."""
    rng, n = np.random.default_rng(0), 600
    phone = rng.uniform(size=n) < 0.5
    job = np.where(rng.uniform(size=n) < 0.4, "services", "management").astype(object)
    job[phone & (rng.uniform(size=n) < 0.3)] = "astronaut"  # no public row has it
    job[rng.uniform(size=n) < 0.1] = "unknown"
    columns = {
        "age": rng.integers(18, 95, size=n),
        "job": job,
        **{name: rng.choice(["a", "b"], size=n) for name in ("marital", "education", "housing", "loan")},
        "contact": np.where(phone, "telephone", "cellular"),
        "month": rng.choice(["may", "jul"], size=n),
        "day_of_week": rng.choice(["mon", "tue"], size=n),
        "duration": np.where(phone, 5000, rng.integers(0, 900, size=n)),
        "campaign": rng.integers(1, 5, size=n),
        "pdays": np.where(rng.uniform(size=n) < 0.9, 999, 3),
        "previous": rng.integers(0, 3, size=n),
        "output": rng.choice(["no", "yes"], size=n),
    }
    write(tmp_path, ("tables", "bank.parquet"), columns)
    return tmp_path


def test_rows_are_encoded_by_public_rules(bank):
    split = table_pair("bank: cellular to telephone").split(bank, 0)
    names = list(split.schema.features)
    assert [name for name in names if name.startswith("job")] == [
        "job = management",
        "job = services",
        "job is missing",
    ]
    job, X = split.train.table["job"], split.train.X
    absent = np.array([value in (None, "astronaut") for value in job])
    assert np.array_equal(X[:, names.index("job is missing")] == 1, absent)
    assert 0.2 < absent.mean() < 0.5
    never = np.isnan(split.train.table["pdays"])
    assert np.array_equal(X[:, names.index("pdays is missing")] == 1, never)
    assert (X[never, names.index("pdays")] == 15).all()
    assert (X[:, names.index("duration")] == 1200).all()
    low, high = split.bounds
    for part in (split.source, split.train, split.test):
        assert np.array_equal(part.X, np.clip(part.X, low, high))
    assert split.schema.size == len(split.train) == 2 * (len(split.train) + len(split.test)) // 3
    assert set(split.train.y) <= set(split.classes)


def test_private_rows_change_nothing_that_is_public(bank):
    """Bounds and categories are the same whatever the private side holds."""
    before = table_pair("bank: cellular to telephone").split(bank, 0)
    path = bank / "again" / "tables" / "bank.parquet"
    table = pq.read_table(bank / "tables" / "bank.parquet").to_pydict()
    for row, contact in enumerate(table["contact"]):
        if contact == "telephone":
            table["age"][row], table["job"][row] = 98, "pilot"
    write(path.parent.parent, ("tables", "bank.parquet"), table)
    after = table_pair("bank: cellular to telephone").split(bank / "again", 0)
    assert before.schema == after.schema
    assert np.array_equal(before.source.X, after.source.X)
    assert not np.array_equal(before.train.X, after.train.X)


def test_splits_share_no_row_and_depend_on_their_seed(bank):
    pair = table_pair("bank: cellular to telephone")
    one, same, other = (pair.split(bank, seed) for seed in (0, 0, 1))
    assert np.array_equal(one.train.X, same.train.X)
    assert not np.array_equal(one.train.X, other.train.X)
    digits = table_pair("digits: light to dark").split(None, 0)
    parts = (digits.source, digits.train, digits.test)
    assert len(np.unique(np.vstack([part.X for part in parts]), axis=0)) == sum(map(len, parts))


@pytest.mark.skipif(DATA is None, reason="needs local copies of the tables in PRIVADA_DATA")
@pytest.mark.parametrize("pair", table_pairs(), ids=lambda pair: pair.name)
def test_real_tables_are_read(pair):
    split = pair.split(Path(DATA), 0)
    assert 100 <= len(split.train) <= 5000
    assert len(split.test) >= 60
    assert 5 <= split.train.X.shape[1] <= 135
    assert np.isfinite(split.train.X).all()
    assert len(split.source) >= 165
    if pair.task == "regression":
        low, high = split.label_bounds
        assert low <= split.source.y.min() <= split.source.y.max() <= high
    else:
        assert set(split.source.y) | set(split.train.y) | set(split.test.y) <= set(split.classes)
