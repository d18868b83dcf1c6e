"""What the ledger's tests share: prices, other processes, and someone who writes the database."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dp_accounting
import sqlalchemy

from privada.privacy import ROW, ZCDP, Ledger, OwnerKey, Price, PureDP, Receipt, Unit
from privada.privacy.ledger.chain import Line

QUESTION = "ab" * 32
BUDGET = ZCDP(rho=0.5, relation="add/remove")
WORKER = Path(__file__).with_name("ledger_worker.py")


def gaussian(sigma: float = 2.0, *, relation: str = "add/remove", times: int = 1, unit: Unit = ROW) -> Price:
    guarantee = ZCDP(rho=1 / (2 * sigma**2), relation=relation, unit=unit)
    return Price(event=dp_accounting.GaussianDpEvent(sigma), guarantee=guarantee, times=times)


def laplace(epsilon: float, *, relation: str = "add/remove") -> Price:
    event = dp_accounting.LaplaceDpEvent(1 / epsilon)
    return Price(event=event, guarantee=PureDP(epsilon=epsilon, relation=relation), epsilon=epsilon)


def grains(ledger: Ledger, dataset: str = "patients") -> int:
    return max(line.spent for line in ledger.lines(dataset))


def worker(verb: str, place: str, key_file: Path, number: int) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(WORKER), verb, place, str(key_file), str(number)],
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def receipts_of(said: list[dict[str, Any]]) -> list[Receipt]:
    return [Receipt.from_dict(line["receipt"]) for line in said if "receipt" in line]


def tampering(place: str) -> Any:
    """A connection of someone who can write the database, with the triggers out of the way."""
    url = place if "://" in place else f"sqlite:///{place}"
    return _Tampering(sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.NullPool))


class _Tampering:
    def __init__(self, engine: sqlalchemy.Engine) -> None:
        self.engine = engine

    def __enter__(self) -> sqlalchemy.Connection:
        self.connection = self.engine.connect()
        names = sqlalchemy.inspect(self.connection).get_table_names()
        if self.engine.dialect.name == "postgresql":
            for name in names:
                self.connection.exec_driver_sql(f"ALTER TABLE {name} DISABLE TRIGGER ALL")
        else:
            find = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            for name in self.connection.exec_driver_sql(find).scalars().all():
                self.connection.exec_driver_sql(f"DROP TRIGGER {name}")
        return self.connection

    def __exit__(self, *_: object) -> None:
        self.connection.commit()
        self.connection.close()


def insert(connection: sqlalchemy.Connection, line: Line) -> None:
    from privada.privacy.ledger import tables

    connection.execute(sqlalchemy.insert(tables.lines).values(line.to_row()))


def rewritten(lines: list[Line], key: OwnerKey, change: Callable[[Line], Line]) -> list[Line]:
    """The chain computed anew after a change, signed with ``key``."""
    made: list[Line] = []
    for old in lines:
        line = change(replace(old, previous=made[-1].digest if made else old.previous))
        made.append(line.sealed(key))
    return made
