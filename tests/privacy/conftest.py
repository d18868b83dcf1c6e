"""Places in which a ledger is tested: memory, a SQLite file, and a PostgreSQL server that the tests start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks._postgres import NoServerError, database, server
from privada.privacy import Ledger, OwnerKey


@pytest.fixture(scope="session")
def key() -> OwnerKey:
    return OwnerKey.generate()


@pytest.fixture
def key_file(key: OwnerKey, tmp_path: Path) -> Path:
    key.save(tmp_path / "owner.key")
    return tmp_path / "owner.key"


@pytest.fixture
def sqlite_place(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.sqlite")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest) -> str:
    """Where a ledger stays when it is closed: both databases."""
    return str(request.getfixturevalue(f"{request.param}_place"))


@pytest.fixture
def durable(place: str, key: OwnerKey) -> Iterator[Ledger]:
    """A ledger that can be opened again, or written behind its back, at ``place``."""
    with Ledger.open(place, key) as opened:
        yield opened


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def ledger(request: pytest.FixtureRequest, key: OwnerKey) -> Iterator[Ledger]:
    """The same contract on every storage."""
    place = ":memory:"
    if request.param != "memory":
        place = str(request.getfixturevalue(f"{request.param}_place"))
    with Ledger.open(place, key) as opened:
        yield opened


@pytest.fixture
def postgres_place(postgres_server: str) -> Iterator[str]:
    """A database of its own on the server."""
    with database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server: the one that the environment names, or one in a temporary folder."""
    with ExitStack() as stack:
        try:
            url = stack.enter_context(server())
        except NoServerError as error:
            pytest.skip(str(error))
        yield url
