"""One charge on a ledger of 100,000 lines beside one on a ledger of 100 lines.

Both are SQLite files in one folder, written durably. The lines that are there
already are put in by pages of one transaction each, as a chain that `verify`
accepts. Charges then alternate between the two files, so that the noise of the
disk and of the machine falls on both, and the medians are compared. Before that
both write-ahead logs get their full size: a log that grows costs two waits for
the disk, one that is written over only one, and which of the two it is has
nothing to do with the number of lines. The quick version makes fewer charges
and verifies the short chain only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks._figures import Figure, main
from privada.privacy import ZCDP, Ledger, OwnerKey, Price, Relation
from privada.privacy.ledger.chain import CHARGE, Line, following
from privada.privacy.ledger.database import Database

LONG, SHORT = 100_000, 100
DATASET = "patients"
RHO = 1e-6
QUESTION = "ab" * 32


def measure(quick: bool) -> Iterator[Figure]:
    """Build both ledgers, then charge them in turn."""
    runs = 300 if quick else 1000
    key = OwnerKey.generate()
    with TemporaryDirectory() as folder:
        short_file, long_file = (_built(Path(folder), key, length) for length in (SHORT, LONG))
        with Ledger.open(short_file, key) as short, Ledger.open(long_file, key) as long:
            for ledger in (short,) if quick else (short, long):
                ledger.verify()
            for ledger in (short, long):
                _grow_log(ledger)
            pairs = [_pair(short, long, turn) for turn in range(runs)]
    ratio = median(b for _, b in pairs) / median(a for a, _ in pairs)
    yield Figure("charge_cost_100k_vs_100_lines", ratio, 1.2, "lower", "the same ledger at 100 lines", runs)


def _price() -> Price:
    import dp_accounting

    return Price(event=dp_accounting.ZCDpEvent(RHO), guarantee=ZCDP(rho=RHO, relation=Relation.ADD_REMOVE))


def _built(folder: Path, key: OwnerKey, length: int) -> Path:
    """A closed file whose data set has ``length`` lines, line 0 among them."""
    file = folder / f"{length}.sqlite"
    with Ledger.open(file, key) as ledger:
        ledger.open_budget(DATASET, ZCDP(rho=1, relation=Relation.ADD_REMOVE))
        (head,) = ledger.lines(DATASET)
        chain = _chain(head, key, length - 1)
        while page := list(islice(chain, 10_000)):
            with ledger._storage.writing() as tables:
                tables.append(*page)
    return file


def _chain(head: Line, key: OwnerKey, count: int) -> Iterator[Line]:
    detail, cost = _price().to_dict(), round(RHO * 1e15)
    for _ in range(count):
        head = following(head, key, kind=CHARGE, cost=cost, detail=detail, question=QUESTION)
        yield head


def _grow_log(ledger: Ledger) -> None:
    """Write more than the log ever holds, and take it back: the file of the log keeps its size."""
    storage = ledger._storage
    assert isinstance(storage, Database)
    with storage.engine.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE grown AS SELECT zeroblob(16000000)")


def _pair(short: Ledger, long: Ledger, turn: int) -> tuple[float, float]:
    """Seconds of one charge on each, the first one in turn."""
    if turn % 2:
        return _charge(short), _charge(long)
    late = _charge(long)
    return _charge(short), late


def _charge(ledger: Ledger) -> float:
    price = _price()
    start = time.perf_counter()
    ledger.charge(DATASET, price, question=QUESTION)
    return time.perf_counter() - start


if __name__ == "__main__":
    main(measure, "A charge on a long ledger beside one on a short ledger")
