"""A service beside real servers that are killed and started again: questions wait, nobody is refused."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, closing

import pytest

from benchmarks._outages import Case, DaskCluster, await_port, endure, free_port, serve_command, served
from benchmarks._postgres import NoServerError, own_server
from benchmarks.faults import question, set_up
from privada.exceptions import LedgerOutageError, ServedError
from privada.parties.owner_file import OwnerFile

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="stops by a signal")


@pytest.fixture
def new_case(tmp_path):
    """Makes an owner whose part will be away."""

    def make(owner, part, called, *, url="ledger.sqlite", change=None):
        home = tmp_path / owner
        home.mkdir()
        set_up(home, url, budget=4.0)
        if change is not None:
            text = (home / "owner.toml").read_text()
            assert change[0] in text
            (home / "owner.toml").write_text(text.replace(*change))
        return Case(owner, home, part(home) if callable(part) else part, called)

    return make


class Renamed:
    """A file that is away under another name, as on a share that was unmounted."""

    def __init__(self, path):
        self.path, self.away = path, path.with_name("away")

    def stop(self):
        self.path.rename(self.away)

    def start(self):
        self.away.rename(self.path)


class CopiedBack(Renamed):
    """A file that comes back as another one of the same content."""

    def start(self):
        self.path.write_bytes(self.away.read_bytes())


class Together:
    """A part that another case stops and starts."""

    def stop(self):
        pass

    start = stop


class Store:
    """An S3 server that forgets its objects when it ends; they are put there again."""

    def __init__(self, port):
        self._port = port

    def start(self):
        import boto3

        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self._port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await_port(self._port)
        with closing(boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT"])) as client:
            client.create_bucket(Bucket="rows")
            client.put_object(Bucket="rows", Key="rows.csv", Body=b"x\n0.1\n0.9\n")

    def stop(self):
        self._process.kill()
        self._process.wait()


def assert_waited_out(cases):
    """Nobody was refused, all were answered for one charge each, and the log says so once and in JSON."""
    service = endure(cases, question, outages=1, seconds=1.0)
    assert service.noise == []
    assert service.process.returncode == 0
    for case in cases:
        assert case.count() == {"asked": 2, "answered": 2}, case.owner
        lines = [line for line in service.log if line.get("owner") == case.owner and "part" in line]
        assert [(line["event"], line["part"]) for line in lines] == [
            ("failed", case.called),
            ("recovered", case.called),
        ]
        assert lines[1]["seconds"] >= 1


def test_files_a_cluster_and_an_object_store_that_go_away_and_come_back(new_case, monkeypatch):
    """All of one service, each of another owner."""
    cases = [
        new_case("share", lambda home: Renamed(home / "rows.csv"), "files"),
        new_case("copied", lambda home: CopiedBack(home / "rows.csv"), "files"),
        new_case("disk", lambda home: Renamed(home / "ledger.sqlite"), "ledger"),
    ]
    with ExitStack() as stack:
        if pytest.importorskip("distributed"):
            cluster = DaskCluster()
            compute = f'[compute]\nengine = "dask"\nscheduler = "{cluster.url}"\n[ledger]'
            cases.append(new_case("dask", cluster, "cluster", change=("[ledger]", compute)))
        if pytest.importorskip("moto") and pytest.importorskip("boto3"):
            port = free_port()
            for name, value in {
                "AWS_ACCESS_KEY_ID": "tests",
                "AWS_SECRET_ACCESS_KEY": "tests-secret",
                "AWS_REGION": "us-east-1",
                "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_ENDPOINT": f"http://127.0.0.1:{port}",
                "AWS_ALLOW_HTTP": "true",
            }.items():
                monkeypatch.setenv(name, value)
            bucket = ('path = "rows.csv"', 'path = "s3://rows/rows.csv"')
            cases.append(new_case("s3", Store(port), "object store", change=bucket))
        for case in cases[3:]:
            stack.callback(case.part.stop)
            case.part.start()
        assert_waited_out(cases)


@pytest.mark.postgres
def test_databases_of_rows_and_of_a_ledger_that_are_stopped_and_started(new_case):
    import psycopg

    with ExitStack() as stack:
        try:
            server = stack.enter_context(own_server())
        except NoServerError as error:
            pytest.skip(str(error))
        with closing(psycopg.connect(server.url, autocommit=True)) as connection:
            connection.execute("CREATE TABLE patients AS SELECT 0.5::float8 AS x FROM generate_series(1, 9)")
            connection.execute("CREATE DATABASE ledger")
        table = ('path = "rows.csv"', f'database = "{server.url}"\ntable = "patients"')
        ledger = server.url.replace("/postgres?", "/ledger?")
        cases = [
            new_case("rows", server, "database", change=table),
            new_case("ledger", Together(), "ledger", url=ledger),
        ]
        assert_waited_out(cases)


def test_a_second_service_says_so_and_stops(new_case):
    """A single answer beside a service works; a process that is killed leaves no lock."""
    case = new_case("clinic", lambda home: Renamed(home / "rows.csv"), "files")
    with served([case]) as service:
        second = subprocess.run(serve_command([case]), capture_output=True, text=True, check=False)
        assert second.returncode == 7
        assert "error: clinic: Another process serves 'patients' already." in second.stderr
        service.process.send_signal(signal.SIGSTOP)
        case.ask(question("beside"))
        answer = ("answer", f"{case.home}/owner.toml", "--exchange", str(case.exchange), "--name", "clinic")
        subprocess.run([sys.executable, "-m", "privada.cli", *answer], capture_output=True, check=True)
        case.await_answers(1)
        service.process.kill()
        service.process.wait()
    with OwnerFile.read(case.home / "owner.toml").open_ledger() as ledger:
        ledger.claim("patients")
    assert case.count() == {"asked": 1, "answered": 1}


@pytest.mark.postgres
def test_one_ledger_at_a_time_claims_a_data_set(tmp_path):
    """It renews a claim that its server has lost, unless another ledger was faster."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(own_server())
        except NoServerError as error:
            pytest.skip(str(error))
        for number, url in enumerate(["ledger.sqlite", server.url]):
            (tmp_path / str(number)).mkdir()
            owner = OwnerFile.read(set_up(tmp_path / str(number), url, budget=4.0) / "owner.toml")
            one, other = (stack.enter_context(owner.open_ledger()) for _ in range(2))
            one.claim("patients")
            one.claim("patients")
            with pytest.raises(ServedError, match="Another process serves 'patients' already"):
                other.claim("patients")
        server.stop()
        with pytest.raises(LedgerOutageError):
            one.check_available()
        server.start()
        one.check_available()
        with pytest.raises(ServedError):
            other.claim("patients")
        server.stop()
        server.start()
        other.claim("patients")
        with pytest.raises(ServedError):
            one.check_available()
        other.close()
        one.check_available()
