"""The files that experiments read: listed once, with a layout that the readers accept."""

import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privada.exceptions import InputError
from privada_lab.datasets import files, table_readers
from privada_lab.datasets.adaptation import BENCHMARKS
from privada_lab.datasets.files import FILES, find

DATA = os.environ.get("PRIVADA_DATA")
READERS = {
    "tables/wine.parquet": table_readers.wine,
    "tables/bike_hours.parquet": table_readers.bike,
    "tables/bank.parquet": table_readers.bank,
    "tables/heart.parquet": table_readers.heart,
    "adult/adult.parquet": table_readers.adult,
    "news_partial/news_partial.parquet": table_readers.news,
    "wind/wind.parquet": table_readers.wind,
    "gas_drift/gas_drift.parquet": table_readers.gas,
    "nycflights13/flights.parquet": table_readers.flights,
    "ctg/ctg.parquet": table_readers.ctg,
    "accent/accent.parquet": table_readers.accent,
    "superconductivity/superconductivity.parquet": table_readers.superconductivity,
}


def test_every_file_that_a_reader_names_is_listed():
    sources = [path.read_text() for path in Path(files.__file__).parent.glob("*.py") if path.stem != "files"]
    named = set(re.findall(r'"([\w]+/[\w]+\.(?:npz|parquet|csv|asc))"', "".join(sources)))
    assert named == set(FILES)
    assert {each.file for each in BENCHMARKS.values()} <= named


def test_a_missing_file_is_named_with_its_set(tmp_path):
    for folder in (tmp_path, None):
        with pytest.raises(InputError, match=r"no ctg/ctg\.parquet.*Cardiotocography"):
            find(folder, "ctg/ctg.parquet")


@pytest.mark.parametrize("path", READERS)
def test_the_listed_columns_are_what_a_reader_needs(path, tmp_path):
    """A file with these columns and no others is read."""
    for name in {path, "nycflights13/weather.parquet"}:
        _generate(tmp_path, name)
    table = READERS[path](tmp_path)
    assert {*FILES[path].numbers, *FILES[path].texts} <= set(table.columns)


def _generate(folder, path):
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(1, 4, size=30) for name in FILES[path].numbers}
    columns |= {name: rng.choice(["a", "b"], size=30) for name in FILES[path].texts}
    (folder / path).parent.mkdir(exist_ok=True, parents=True)
    pq.write_table(pa.table(columns), folder / path)


@pytest.mark.skipif(DATA is None, reason="needs local copies in PRIVADA_DATA")
@pytest.mark.parametrize("path", [path for path, each in FILES.items() if each.numbers])
def test_local_copies_have_the_listed_columns(path):
    schema = pq.read_schema(Path(DATA) / path)
    assert {*FILES[path].numbers, *FILES[path].texts} <= set(schema.names)


def test_the_page_lists_them():
    page = Path(__file__).parents[3] / "docs/how-to/reproduce-the-papers.md"
    assert files.page_table() in page.read_text(encoding="utf-8")
