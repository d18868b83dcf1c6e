"""What a ledger promises, with processes that are killed and processes that crowd.

*Kills.* Questions are written to an exchange folder. Real owner processes, one or
two at a time, answer them, and are ended by SIGKILL at a random instant, again and
again; then one process answers to its end. Every release that is there must be
paid for by a line of the ledger (`unpaid_releases`), no question may be charged
twice (`extra_charges`), and every question must have its release
(`undelivered_after_restart`).

*Crowds.* As many processes as `concurrent_askers` says ask at one instant: all of
them one common question and each one of its own, of which the budget pays for
some. `overspent` counts the charges beyond the budget, the same question charged
again, and askers of the common question who were given different releases.

*Copies.* A ledger is put back from a backup, or loses the record of its heads, and its owner is asked:
`restored_without_heads_accepted` counts the charges that it accepts.

Each of these is measured on SQLite and on PostgreSQL. The quick version kills a tenth as often.

*Damage.* Releases are cut short (`truncated_releases_waiting`) or deleted (`deleted_releases_waiting`), while
the owner runs or while it does not; counted are the learners that wait for them after the owner has looked
again. A folder and a bucket are measured; a NATS stream refuses to change or delete what it holds. An
exchange that was in use becomes a read-only mount: `charged_on_read_only_exchange` counts what is charged
although nothing can be delivered; it needs the right to mount.

*Slow clients.* 1,200 clients on each local port of a serving owner never finish a request
(`benchmarks._slow_clients`). Health, console and questions must be answered within seconds
meanwhile, and the log must stay small.

*Outages.* A process serves owners whose rows are read by a Dask cluster, are in
PostgreSQL, or whose ledger is there. The servers are killed and started again, with
questions on the way. No question may be refused (`cluster_outage_refusals`,
`database_outage_refusals`) or charged twice, and each must be answered without a
restart of the service (`..._answered_after_return` is their share). A second service
for the same owner must say so and end with its own exit code (`second_service_stopped`).
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import numpy as np

from benchmarks._figures import Figure, main
from benchmarks._outages import Case, DaskCluster, endure, serve_command, served
from benchmarks._postgres import NoServerError, database, own_server, server
from benchmarks._slow_clients import CONNECTIONS, DESCRIPTORS, LOG_BYTES, crowd_ports
from privada import AskOwner, CellStatistics, Mailbox, NearestCells, Owner
from privada.exceptions import BudgetError, CourierError, LedgerError, PrivadaError
from privada.exchange.bucket import BucketCourier
from privada.exchange.courier import Courier
from privada.exchange.folder import FolderCourier
from privada.exchange.posting import load_release
from privada.parties.owner_file import OwnerFile
from privada.privacy import Ledger, OwnerKey, PureDP, Receipt, Relation

KILLS, QUICK_KILLS, ASKERS = 300, 30, 100
DAMAGES, QUICK_DAMAGES = 60, 10
OUTAGES, QUICK_OUTAGES = 10, 2
SERVED = 7  # the exit code of a service whose owner is served already
NAME, EPSILON = "clinic", 0.25
AT_ONCE = 4  # questions that are asked before each kill
PAID = 40  # questions of a crowd that its budget pays for
TOML = """
[data]
name = "patients"
path = "rows.csv"
[privacy]
relation = "add/remove"
epsilon = {budget}
[schema]
columns = [{{ name = "x", low = 0, high = 1 }}]
[ledger]
url = "{url}"
key = "owner.key"
"""


def measure(quick: bool) -> Iterator[Figure]:
    """Slow clients first, then both databases one after the other, what carries releases, outages."""
    yield from measure_slow_clients(quick)
    with ExitStack() as stack:
        yield from _measured("SQLite", lambda: "ledger.sqlite", quick=quick)
        yield from _measured_exchanges(quick=quick)
        try:
            at = stack.enter_context(server())
        except NoServerError as error:
            sys.stderr.write(f"PostgreSQL is left out: {error}\n")
        else:
            yield from _measured("PostgreSQL", lambda: stack.enter_context(database(at)), quick=quick)
    yield from measure_outages(quick)


def _measured(label: str, place: Callable[[], str], *, quick: bool) -> Iterator[Figure]:
    kills = QUICK_KILLS if quick else KILLS
    with TemporaryDirectory() as folder:
        counts = kill_owners(set_up(Path(folder), place(), budget=9000.0), kills)
    for name in ("kills", "unpaid_releases", "extra_charges", "undelivered_after_restart"):
        goal, better = (kills, "higher") if name == "kills" else (0, "lower")
        yield Figure(name, counts[name], goal, better, label, kills)
    with TemporaryDirectory() as folder:
        overspent = crowd(set_up(Path(folder), place(), budget=PAID * EPSILON), ASKERS)
    yield Figure("concurrent_askers", ASKERS, ASKERS, "higher", label, 1)
    yield Figure("overspent", overspent, 0, "lower", label, ASKERS)
    with TemporaryDirectory() as folder:
        accepted = restore_without_heads(set_up(Path(folder), place(), budget=9000.0))
    yield Figure("restored_without_heads_accepted", accepted, 0, "lower", label, 1)


def _measured_exchanges(*, quick: bool) -> Iterator[Figure]:
    """Releases that are damaged in an exchange, and an exchange that cannot be written to."""
    runs = QUICK_DAMAGES if quick else DAMAGES
    logging.getLogger("privada.exchange").setLevel(logging.ERROR)  # it names every damaged item
    for label, open_place in (("folder", open_folder), ("bucket", open_bucket)):
        for name, how in (("truncated", truncate), ("deleted", delete)):
            with TemporaryDirectory() as folder:
                home = set_up(Path(folder), "ledger.sqlite", budget=9000.0)
                waiting = damage_releases(home, open_place(home), how, runs)
            yield Figure(f"{name}_releases_waiting", waiting, 0, "lower", label, runs)
    try:
        with TemporaryDirectory() as folder:
            charged = charge_read_only(set_up(Path(folder), "ledger.sqlite", budget=9000.0))
    except NoMountError as error:
        sys.stderr.write(f"The read-only exchange is left out: {error}\n")
        return
    yield Figure("charged_on_read_only_exchange", charged, 0, "lower", "a read-only mount", AT_ONCE)


def set_up(home: Path, url: str, *, budget: float) -> Path:
    """An owner with two rows, its key, its ledger and its budget."""
    (home / "owner.toml").write_text(TOML.format(budget=budget, url=url))
    (home / "rows.csv").write_text("x\n0.1\n0.9\n")
    key = OwnerKey.generate()
    key.save(home / "owner.key")
    Ledger.open(url if "://" in url else home / url, key).close()
    OwnerFile.read(home / "owner.toml").open_budget()
    return home


def question(salt: str, epsilon: float = EPSILON) -> CellStatistics:
    """A small question; another salt is another one."""
    cells = NearestCells(centers=np.array([[0.2], [0.8]]))
    return CellStatistics(
        tables=(cells,), guarantee=PureDP(epsilon=epsilon, relation=Relation.ADD_REMOVE), salt=salt
    )


def kill_owners(home: Path, kills: int) -> Counter[str]:
    """Kill owners at work until so many kills have hit, let one finish, and count what went wrong."""
    exchange = Mailbox.open(home / "exchange")
    _ask(exchange, "unharmed")
    started = time.monotonic()
    _answer(home)  # this warms the process from which all others are forked
    _ask(exchange, "again")
    started = time.monotonic()
    _answer(home)
    usual = time.monotonic() - started
    hits = 0
    while hits < kills:
        _ask(exchange, f"kill {hits}")
        owners = [_forked(lambda: _answer(home)) for _ in range(1 + hits % 2)]
        time.sleep(random.uniform(0, 1.2 * usual * len(owners)))
        for owner in owners:
            os.kill(owner, signal.SIGKILL)
            hits += os.waitstatus_to_exitcode(os.waitpid(owner, 0)[1]) == -signal.SIGKILL
    _answer(home)
    return _wrongs(home) + Counter(kills=hits)


def _ask(exchange: Mailbox, salt: str) -> None:
    for number in range(AT_ONCE):
        exchange.ask(AskOwner(NAME, question(f"{salt}, {number}", epsilon=0.001)))


def _answer(home: Path) -> None:
    owner = Owner.from_toml(home / "owner.toml")
    try:
        Mailbox.open(home / "exchange").answer(NAME, owner)
    finally:
        owner.ledger.close()


def _forked(work: Callable[[], None]) -> int:
    """The number of a process that does some work and ends."""
    child = os.fork()
    if child == 0:
        _work_and_end(work)
    return child


def _work_and_end(work: Callable[[], None]) -> NoReturn:
    try:
        work()
        os._exit(0)
    except PrivadaError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    finally:
        os._exit(1)


def _wrongs(home: Path) -> Counter[str]:
    """Compare releases, questions and charges; a forged or foreign release raises an error."""
    exchange = home / "exchange"
    releases = [load_release(path) for path in (exchange / "releases" / NAME).glob("*.release")]
    asked = {path.stem.split("-")[0] for path in (exchange / "questions" / NAME).glob("*.question")}
    charged = Counter(charged_questions(home, [release.receipt for release in releases]))
    given = {release.question for release in releases}
    return Counter(
        unpaid_releases=len(given - charged.keys()),
        extra_charges=charged.total() - len(charged),
        undelivered_after_restart=len(asked - given),
    )


def charged_questions(home: Path, receipts: list[Receipt]) -> list[str]:
    """The questions of all charges, in a ledger that holds all receipts."""
    with OwnerFile.read(home / "owner.toml").open_ledger() as ledger:
        ledger.verify(receipts)
        return [line.question for line in ledger.lines("patients") if line.kind == "charge"]


def crowd(home: Path, askers: int) -> int:
    """Ask from many processes at once; returns how often the budget or the once was broken."""
    gate, opener = os.pipe()
    children = [_forked(partial(_queue, home, gate, opener, number)) for number in range(askers)]
    os.close(gate)
    os.close(opener)  # the pipe's end is what all of them wait for
    for child in children:
        os.waitpid(child, 0)
    charged = Counter(charged_questions(home, []))
    given = [path.read_text() for path in home.glob("given-*")]
    if len(given) != askers:
        raise RuntimeError(f"{askers - len(given)} of {askers} askers got no answer to the common question.")
    return (
        max(0, charged.total() - PAID)
        + (charged.total() - len(charged))
        + (len(set(given)) - 1)
        + abs(min(PAID, askers + 1) - charged.total())
    )


def _queue(home: Path, gate: int, opener: int, number: int) -> None:
    """Wait for the others, then ask the common question and one's own."""
    os.close(opener)
    os.read(gate, 1)
    owner = Owner.from_toml(home / "owner.toml")
    release = owner.answer(question("common"))
    (home / f"given-{number}").write_text(sha256(release.to_bytes()).hexdigest())
    try:
        owner.answer(question(f"own {number}"))
    except BudgetError:
        return


def restore_without_heads(home: Path) -> int:
    """Charges that a ledger accepts after its last ones were lost, or may have been."""
    owner = Owner.from_toml(home / "owner.toml")
    owner.answer(question("before"))
    owner.ledger.backup(home / "backup.sqlite")
    owner.answer(question("lost"))
    owner.ledger.close()
    file = OwnerFile.read(home / "owner.toml")
    is_file = "://" not in file.ledger
    heads = Path(f"{file.ledger}.heads") if is_file else file.key.with_name("ledger.heads")
    recorded = heads.read_bytes()
    heads.unlink()
    accepted = int(_accepts(home, "without heads"))
    if not is_file:
        return accepted
    for end in ("-wal", "-shm"):
        Path(f"{file.ledger}{end}").unlink(missing_ok=True)
    for number, text in enumerate((None, Path(home / "backup.sqlite.heads").read_bytes(), recorded)):
        shutil.copy(home / "backup.sqlite", file.ledger)
        heads.unlink(missing_ok=True)
        if text is not None:
            heads.write_bytes(text)
        accepted += _accepts(home, f"restored, {number}")
    return accepted


def _accepts(home: Path, salt: str) -> bool:
    """Whether an owner answers a new question."""
    try:
        owner = Owner.from_toml(home / "owner.toml")
    except LedgerError:
        return False
    try:
        owner.answer(question(salt))
    except LedgerError:
        return False
    finally:
        owner.ledger.close()
    return True


def open_folder(home: Path) -> Courier:
    """An exchange in a folder."""
    return FolderCourier(home / "exchange")


def open_bucket(home: Path) -> Courier:
    """An exchange in an object store that keeps its objects in a folder."""
    from obstore.store import LocalStore

    (home / "exchange").mkdir(exist_ok=True)
    return BucketCourier(LocalStore(home / "exchange"))


def truncate(path: Path) -> None:
    """Cut a file anywhere, as a full disk or an interrupted copy does."""
    os.truncate(path, random.randrange(path.stat().st_size))


def delete(path: Path) -> None:
    """Remove a file."""
    path.unlink()


def damage_releases(home: Path, courier: Courier, damage: Callable[[Path], None], runs: int) -> int:
    """Damage releases that were delivered; how many cannot be read after their owner has looked again."""
    exchange = Mailbox(courier)
    asks = [AskOwner(NAME, question(f"damaged {number}", epsilon=0.001)) for number in range(runs)]
    for ask in asks:
        exchange.ask(ask)
    owner = Owner.from_toml(home / "owner.toml")
    exchange.answer(NAME, owner)
    paths = {path.name: path for path in (home / "exchange").rglob("*.release")}
    for number, ask in enumerate(asks):
        if number == runs // 2:  # the first half while the owner runs, the second while it does not
            exchange.answer(NAME, owner)
            owner.ledger.close()
            owner, exchange = Owner.from_toml(home / "owner.toml"), Mailbox(courier)
        damage(paths[f"{ask.question.digest}.release"])
    exchange.answer(NAME, owner)
    owner.ledger.close()
    charged = charged_questions(home, [])
    if len(charged) != len(set(charged)) or len(charged) != runs:
        raise RuntimeError(f"{runs} questions were charged {len(charged)} times.")
    return sum(not Mailbox(courier).has_reply(ask) for ask in asks)


class NoMountError(RuntimeError):
    """Nothing can be mounted here; the message says why."""


@contextmanager
def mounted(folder: Path) -> Iterator[Callable[[], None]]:
    """A file system in memory at a folder; yields what makes it read-only."""
    folder.mkdir()
    _mount("mount", "-t", "tmpfs", "tmpfs", str(folder))
    try:
        yield lambda: _mount("mount", "-o", "remount,ro", str(folder))
    finally:
        _mount("umount", "-l", str(folder))


def _mount(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise NoMountError(f"there is no program {command[0]}") from None
    except subprocess.CalledProcessError as error:
        raise NoMountError(error.stderr.strip()) from None


def charge_read_only(home: Path) -> int:
    """Charges of questions that cannot be answered, in an exchange that was in use and is read-only now."""
    with mounted(home / "exchange") as make_read_only:
        exchange = Mailbox.open(home / "exchange")
        _ask(exchange, "writable")
        _answer(home)
        _ask(exchange, "read-only")
        make_read_only()
        for _ in range(2):  # once more, as a service does
            try:
                _answer(home)
            except CourierError:
                continue
    return len(charged_questions(home, [])) - AT_ONCE


def measure_slow_clients(quick: bool) -> Iterator[Figure]:
    """An owner that serves, with both local ports crowded."""
    with TemporaryDirectory() as folder:
        counts = crowd_serving_owner(Path(folder), seconds=10.0 if quick else 60.0)
    yield Figure("slow_connections", counts["connections"] // 2, CONNECTIONS, "higher", "each port", 1)
    for name in ("health_unanswered", "pages_unanswered", "questions_unanswered"):
        yield Figure(name, counts[name], 0, "lower", "slow clients", counts["tries"])
    yield Figure("log_bytes", counts["log_bytes"], LOG_BYTES, "lower", "slow clients", 1)
    yield Figure("descriptors", counts["descriptors"], DESCRIPTORS // 4, "lower", "slow clients", 1)


def crowd_serving_owner(folder: Path, *, seconds: float) -> Counter[str]:
    """Set up an owner, crowd its ports, and ask it one question after another."""
    home = set_up(folder, "ledger.sqlite", budget=1.0)
    exchange = Mailbox.open(home / "exchange")

    def ask(number: int) -> Callable[[], bool]:
        asked = AskOwner(NAME, question(f"crowded {number}", epsilon=0.001))
        exchange.ask(asked)
        return lambda: exchange.has_reply(asked)

    return crowd_ports(home, seconds=seconds, ask=ask)


def measure_outages(quick: bool) -> Iterator[Figure]:
    """Outages of a cluster and of databases beside a service, and a second service."""
    outages = QUICK_OUTAGES if quick else OUTAGES
    with TemporaryDirectory() as folder, ExitStack() as stack:
        cases = {"cluster": [_cluster_case(Path(folder, "cluster"), stack)]}
        try:
            cases["database"] = [
                _rows_case(Path(folder, "rows"), stack),
                _ledger_case(Path(folder, "ledger"), stack),
            ]
        except NoServerError as error:
            sys.stderr.write(f"PostgreSQL is left out: {error}\n")
        endure([case for group in cases.values() for case in group], question, outages=outages, seconds=1.0)
        for name, group in cases.items():
            counts = sum((case.count() for case in group), Counter[str]())
            answered, label = counts["answered"] / counts["asked"], "+".join(case.owner for case in group)
            yield Figure(f"{name}_outage_refusals", counts["refusals"], 0, "lower", label, outages)
            yield Figure(f"{name}_outage_extra_charges", counts["extra_charges"], 0, "lower", label, outages)
            yield Figure(f"{name}_outage_answered_after_return", answered, 1, "higher", label, outages)
        stopped = [_stops_a_second(group) for group in cases.values()]
    yield Figure(
        "second_service_stopped", float(all(stopped)), 1, "higher", "SQLite, PostgreSQL", len(stopped)
    )


def _stops_a_second(cases: list[Case]) -> bool:
    """Whether a service that starts beside one says so and ends, and the first one goes on."""
    with served(cases[-1:]) as first:
        second = subprocess.run(serve_command(cases[-1:]), capture_output=True, text=True, check=False)
        first.await_health()
    return second.returncode == SERVED and "Another process serves" in second.stderr


def _cluster_case(home: Path, stack: ExitStack) -> Case:
    """An owner that computes on a Dask cluster."""
    cluster = DaskCluster()
    stack.callback(cluster.stop)
    cluster.start()
    home.mkdir()
    set_up(home, "ledger.sqlite", budget=9000.0)
    with (home / "owner.toml").open("a") as file:
        file.write(f'[compute]\nengine = "dask"\nscheduler = "{cluster.url}"\n')
    return Case("dask", home, cluster, "cluster")


def _rows_case(home: Path, stack: ExitStack) -> Case:
    """An owner whose rows are in PostgreSQL."""
    import psycopg

    own = stack.enter_context(own_server())
    with closing(psycopg.connect(own.url, autocommit=True)) as connection:
        connection.execute("CREATE TABLE patients AS SELECT 0.5::float8 AS x FROM generate_series(1, 9)")
    home.mkdir()
    set_up(home, "ledger.sqlite", budget=9000.0)
    text = (home / "owner.toml").read_text()
    table = f'database = "{own.url}"\ntable = "patients"'
    (home / "owner.toml").write_text(text.replace('path = "rows.csv"', table))
    return Case("rows", home, own, "database")


def _ledger_case(home: Path, stack: ExitStack) -> Case:
    """An owner whose ledger is in PostgreSQL."""
    own = stack.enter_context(own_server())
    home.mkdir()
    return Case("ledger", set_up(home, own.url, budget=9000.0), own, "ledger")


if __name__ == "__main__":
    main(measure, "Kills and crowds: what a ledger promises")
