import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from privada import Owner
from privada.exceptions import InputError, PrivadaWarning, SchemaError, SourceError, StudyError
from privada.methods.cells import Bins, CellStatistics
from privada.parties import Number, Rows, Schema
from privada.parties.csv_files import Dialect
from privada.parties.owner_file import OwnerFile
from privada.parties.sources import Database, Source, StoredRows, find_sources, open_source
from privada.privacy import PureDP
from tests.parties.test_owner_file import TOML

SCHEMA = Schema(columns=[Number(name="x", low=0, high=9)])
TABLE = pa.table({"x": [1.0, 2.0, 3.0], "more": ["a", "b", "c"]})


class Stream:
    """What any library may bring: nothing but the protocol."""

    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


def test_data_sets_readers_and_streams_are_read_again_and_again(tmp_path):
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    for data in (ds.dataset(tmp_path / "rows.parquet"), ds.dataset(TABLE), TABLE.to_reader(), Stream()):
        rows = Rows(data, schema=SCHEMA)
        for _ in range(2):
            assert rows.gathered().X.tolist() == [[1.0], [2.0], [3.0]]


def test_a_stream_that_breaks_is_named():
    def batches():
        yield TABLE.to_batches()[0]
        raise OSError("Mrs Smith hung up")

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with pytest.raises(SchemaError, match="stream cannot be read to its end") as caught:
        Rows(reader, schema=SCHEMA)
    assert "Smith" not in str(caught.value)


def test_csv_is_known_by_its_name_or_its_dialect(tmp_path):
    (tmp_path / "export").write_text("x\n1\n")
    with pytest.raises(SourceError, match="export cannot be read as parquet"):
        open_source(tmp_path / "export", SCHEMA, None, None)
    assert Rows(StoredRows(tmp_path / "export", Dialect()), schema=SCHEMA).check() == 1
    assert Rows(StoredRows(tmp_path, Dialect()), schema=SCHEMA).check() == 1


class Made(Source):
    """Rows that a program computes, in two parts."""

    def __init__(self, start=0, stop=200_000, spoil=lambda table: table):
        self.start, self.stop, self.spoil = start, stop, spoil

    def tables(self, size, names=None):
        for at in range(self.start, self.stop, size):
            yield self.spoil({"x": np.arange(at, min(at + size, self.stop)) % 10.0})

    def column(self, name):
        return np.arange(self.start, self.stop) % 10.0

    def parts(self):
        return [Made(0, 70_001, self.spoil), Made(70_001, 200_000, self.spoil)]


def test_an_owner_takes_a_source_of_ones_own():
    """It answers as for the same rows in an array, and charges once."""
    budget = PureDP(epsilon=1.0, relation="add/remove")
    question = CellStatistics(tables=(Bins(feature=0, edges=np.arange(9.0)),), guarantee=budget)
    found = []
    for data in (Made(), Made().column("x")[:, None]):
        with pytest.warns(match="not private"):
            house = Owner(data, schema=SCHEMA, dataset="rows", budget=budget, insecure_seed=1)
        found.append(house.answer(question).payload)
        assert [line.kind for line in house.ledger.lines("rows")] == ["budget", "charge"]
    assert found[0].keys() == found[1].keys()
    assert all(np.array_equal(found[0][name], found[1][name]) for name in found[0])


def test_columns_of_a_source_of_ones_own_are_looked_at_before_compiled_code_is():
    for spoil, message in (
        (lambda table: {"other": table["x"]}, "no column 'x'"),
        (lambda table: table | {"x2": np.zeros(1)}, "several lengths"),
        (lambda table: {"x": np.r_[table["x"], table["x"]]}, "more than 65536 rows"),
    ):
        with pytest.raises(SourceError, match=message):
            Rows(Made(spoil=spoil), schema=SCHEMA).check()
    with pytest.raises(SchemaError, match="among its columns"):
        Rows(Made(), y=np.zeros(3), schema=SCHEMA)


PLUGIN = """
import numpy as np
from privada.parties.sources import Source, StoredRows

class Tides(Source):
    schemes = ("tide",)

    @classmethod
    def claims(cls, data):
        return isinstance(data, StoredRows) and data.scheme == "tide"

    @classmethod
    def open(cls, data, schema):
        return cls(len(data.place))

    def __init__(self, height):
        self.height = height

    def tables(self, size, names=None):
        for start in range(0, self.height, size):
            yield {"x": np.arange(start, min(start + size, self.height)) % 10.0}

    def column(self, name):
        return np.arange(self.height) % 10.0

class Greedy(Source):
    @classmethod
    def claims(cls, data):
        return True
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Another package, whose sources privada finds by their entry points."""
    folder = tmp_path / "site/tides-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: tides\nVersion: 1.0\n")
    points = "tides = tides:Tides\ngreedy = tides:Greedy\nbroken = tides:Absent\n"
    (folder / "entry_points.txt").write_text(f"[privada.sources]\n{points}")
    (tmp_path / "site/tides.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path / "site")
    find_sources.cache_clear()
    with pytest.warns(PrivadaWarning, match="source broken cannot be loaded"):
        find_sources()
    yield
    find_sources.cache_clear()


@pytest.mark.usefixtures("plugin")
def test_a_source_of_another_package_is_opened_by_its_url(tmp_path):
    rows = Rows("tide://north", schema=SCHEMA)
    assert rows.gathered().X.ravel().tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]
    (tmp_path / "owner.toml").write_text(TOML.replace("rows.csv", "tide://north"))
    assert OwnerFile.read(tmp_path / "owner.toml").source == StoredRows("tide://north")
    with pytest.raises(InputError, match="credentials belong in the environment"):
        Rows("tide://user@north", schema=SCHEMA)


@pytest.mark.usefixtures("plugin")
def test_another_package_does_not_take_over_what_privada_reads():
    assert [source.__name__ for source in find_sources()][-2:] == ["Tides", "Greedy"]
    assert Rows(TABLE, schema=SCHEMA).check() == 3


def test_a_url_that_nothing_opens_is_refused(tmp_path):
    with pytest.raises(InputError, match="Expected a URL that begins with s3, .*, got 'tide'"):
        Rows("tide://north", schema=SCHEMA)
    (tmp_path / "owner.toml").write_text(TOML.replace("rows.csv", "tide://north"))
    with pytest.raises(StudyError, match=r"data\.path: Expected a URL that begins with s3"):
        OwnerFile.read(tmp_path / "owner.toml")


def test_no_two_sources_claim_the_same_data(tmp_path):
    """Entry points have no order that anybody promises."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    dask = pytest.importorskip("dask.dataframe")
    frame = pandas.DataFrame({"x": [1.0]})
    for data in (
        np.zeros((1, 1)),
        [[1.0]],
        frame,
        polars.DataFrame({"x": [1.0]}),
        polars.LazyFrame({"x": [1.0]}),
        dask.from_pandas(frame, npartitions=1),
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(),
        ds.dataset(TABLE),
        Stream(),
        StoredRows(tmp_path / "rows.csv"),
        StoredRows("s3://bucket/rows.csv"),
        Database(url="sqlite:///rows.sqlite", table="rows"),
    ):
        assert sum(source.claims(data) for source in find_sources()) == 1, type(data)
