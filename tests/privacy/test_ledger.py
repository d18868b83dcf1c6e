"""The contract of the ledger, on SQLite and on PostgreSQL; what only one of them has is tested beside it."""

from __future__ import annotations

import json
import math
import pickle
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import dp_accounting
import pytest
import sqlalchemy
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import DBAPIError

from privada.exceptions import BudgetError, InputError, LedgerError, RelationError, TamperError
from privada.privacy import ROW, ZCDP, Approximate, Guarantee, Ledger, OwnerKey, Price, Pure, Receipt, Unit
from privada.privacy.ledger.lines import Line
from privada.privacy.ledger.schema import VERSION

QUESTION = "ab" * 32
BUDGET = ZCDP(rho=0.5, relation="add/remove")
WORKER = Path(__file__).with_name("ledger_worker.py")


def gaussian(sigma: float = 2.0, *, relation: str = "add/remove", times: int = 1, unit: Unit = ROW) -> Price:
    guarantee = ZCDP(rho=1 / (2 * sigma**2), relation=relation, unit=unit)
    return Price(event=dp_accounting.GaussianDpEvent(sigma), guarantee=guarantee, times=times)


def laplace(epsilon: float, *, relation: str = "add/remove") -> Price:
    event = dp_accounting.LaplaceDpEvent(1 / epsilon)
    return Price(event=event, guarantee=Pure(epsilon=epsilon, relation=relation), epsilon=epsilon)


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


@pytest.fixture
def opened(ledger: Ledger) -> Ledger:
    ledger.open_budget("patients", BUDGET)
    return ledger


# ---------------------------------------------------------------- charges


def test_a_charge_is_written_and_signed(opened: Ledger, key: OwnerKey) -> None:
    receipt = opened.charge("patients", gaussian(), question=QUESTION, purpose="a mean")
    receipt.verify(key.public)
    assert (receipt.dataset, receipt.index, receipt.kind, receipt.question) == (
        "patients",
        1,
        "charge",
        QUESTION,
    )
    assert receipt.price is not None
    assert Price.from_dict(dict(receipt.price)) == gaussian()
    zero, line = opened.lines("patients")
    assert (zero.kind, zero.cost, line.purpose, line.cost) == ("budget", 0, "a mean", round(0.125e15))
    assert line.previous == zero.digest
    assert line.digest == receipt.digest == receipt.head
    assert line.price == gaussian()
    assert opened.spent("patients") == BUDGET, "the sum of ρ so far is no guarantee of its own"
    assert opened.remaining("patients").share == 0.75
    with pytest.raises(FrozenInstanceError):
        line.cost = 0  # type: ignore[misc]


def test_a_budget_is_used_up_exactly(opened: Ledger) -> None:
    for _ in range(4):
        opened.charge("patients", gaussian(), question=QUESTION)
    assert opened.spent("patients") == BUDGET
    assert opened.remaining("patients").share == 0
    assert opened.remaining("patients").largest is None
    with pytest.raises(BudgetError):
        opened.charge("patients", gaussian(1e6), question=QUESTION)


def test_a_refusal_says_everything_and_writes_nothing(opened: Ledger) -> None:
    opened.charge("patients", gaussian(), question=QUESTION)
    before = opened.export()
    with pytest.raises(BudgetError) as refused:
        opened.charge("patients", gaussian(times=4), question=QUESTION)
    said = str(refused.value)
    for part in ("ρ = 0.125 (zCDP), add/remove one row, 4 times,", "100 %", "75 % is left", "'patients'"):
        assert part in said
    assert said.endswith("Nothing was charged.")
    assert opened.export() == before


def test_a_quote_charges_nothing(opened: Ledger) -> None:
    before = opened.export()
    quote = opened.price("patients", gaussian())
    assert (quote.share, quote.affordable, quote.remaining_share) == (0.25, True, 1.0)
    assert quote.after == BUDGET
    assert "would take 25 %" in str(quote)
    assert str(quote).endswith(
        f"affordable, then 75 % is left; whenever the asker stops, this holds: {BUDGET}."
    )
    assert opened.price("patients", gaussian(times=4)).after == BUDGET
    refused = opened.price("patients", gaussian(times=5))
    assert (refused.affordable, refused.after) == (False, None)
    assert str(refused).endswith("refused.")
    assert opened.export() == before


def test_k_charges_equal_one_charge_of_k(opened: Ledger) -> None:
    opened.open_budget("others", BUDGET)
    for _ in range(3):
        opened.charge("patients", gaussian(2.7), question=QUESTION)
    opened.charge("others", gaussian(2.7, times=3), question=QUESTION)
    assert grains(opened) == grains(opened, "others")


def test_data_sets_have_chains_of_their_own(opened: Ledger) -> None:
    opened.open_budget("others", Pure(epsilon=1, relation="replace-one"))
    opened.charge("others", laplace(0.25, relation="replace-one"), question=QUESTION)
    assert opened.datasets() == ("others", "patients")
    assert opened.spent("patients") is None
    assert opened.spent("others") == Pure(epsilon=0.25, relation="replace-one")
    assert opened.budget("others").name == "pure"
    assert set(opened.verify().heads) == {"others", "patients"}


def test_a_question_is_charged_once(opened: Ledger) -> None:
    first, paid = opened.charge_once("patients", gaussian(), question=QUESTION)
    before = grains(opened)
    again, same = opened.charge_once("patients", gaussian(), question=QUESTION)
    assert (grains(opened), same) == (before, paid)
    assert (first.position, first.tries, again.tries) == (again.position, 1, 2)
    opened.charge_once("patients", gaussian(), question="cd" * 32)
    assert grains(opened) == 2 * before


def test_a_note_costs_nothing(opened: Ledger, key: OwnerKey) -> None:
    receipt = opened.note("patients", kind="disclosure", text="ten rows to the curator", question=QUESTION)
    receipt.verify(key.public)
    assert (receipt.kind, receipt.price) == ("disclosure", None)
    *_, line = opened.lines("patients")
    assert line.detail == {"text": "ten rows to the curator", "guarantee": "not differentially private"}
    assert opened.spent("patients") is None
    assert opened.verify([receipt]).lines == 2
    for kind in ("budget", "charge", "Two words", ""):
        with pytest.raises(InputError, match="Expected kind"):
            opened.note("patients", kind=kind, text="x")
    with pytest.raises(InputError, match="Expected text"):
        opened.note("patients", text=" ")


# ---------------------------------------------------------------- errors before a charge


def test_an_absent_budget_is_named(opened: Ledger) -> None:
    calls: list[Callable[[], object]] = [
        lambda: opened.charge("nobody", gaussian(), question=QUESTION),
        lambda: opened.price("nobody", gaussian()),
        lambda: opened.note("nobody", text="x"),
        lambda: opened.spent("nobody"),
        lambda: opened.remaining("nobody"),
        lambda: opened.budget("nobody"),
        lambda: opened.lines("nobody"),
        lambda: opened.export("nobody"),
    ]
    for call in calls:
        with pytest.raises(BudgetError, match="budget of 'nobody' is absent"):
            call()
    assert opened.datasets() == ("patients",)


def test_a_budget_is_opened_once(ledger: Ledger) -> None:
    budget = Approximate(epsilon=1, delta=1e-5, relation="add/remove")
    first = ledger.open_budget("patients", budget)
    assert ledger.open_budget("patients", budget) == first
    assert ledger.open_budget("patients", budget, accounting="renyi") == first
    for other, accounting in ((replace(budget, epsilon=2), None), (BUDGET, None), (budget, "gaussian")):
        with pytest.raises(LedgerError, match=r"budget of 'patients' is \(ε = 1, .* cannot become"):
            ledger.open_budget("patients", other, accounting=accounting)
    assert ledger.verify().lines == 1


@pytest.mark.parametrize("name", ["", "   ", "a\0b", "\ud800", "x" * 201, 3, None])
def test_a_data_set_has_a_name(ledger: Ledger, name: Any) -> None:
    with pytest.raises(InputError, match="Expected dataset"):
        ledger.open_budget(name, BUDGET)


def test_bad_input_is_named_before_a_charge(opened: Ledger) -> None:
    before = opened.export()
    for question in ("", "abc", "AB" * 32, "xy" * 32, 3):
        with pytest.raises(InputError, match="Expected question"):
            opened.charge("patients", gaussian(), question=question)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Expected purpose"):
        opened.charge("patients", gaussian(), question=QUESTION, purpose="x" * 1001)
    with pytest.raises(InputError, match="Expected budget"):
        opened.open_budget("others", 1.0)  # type: ignore[arg-type]
    endless = Price(event=dp_accounting.GaussianDpEvent(math.inf), guarantee=gaussian().guarantee)
    with pytest.raises(InputError, match="no plain JSON form"):
        opened.charge("patients", endless, question=QUESTION)
    for event in (dp_accounting.GaussianDpEvent(math.nan), dp_accounting.LaplaceDpEvent(-1.0)):
        with pytest.raises(InputError, match="Expected the numbers of an event to be >= 0"):
            opened.charge("patients", Price(event=event, guarantee=BUDGET), question=QUESTION)
    assert opened.export() == before


def test_what_a_filter_cannot_bound_is_refused(ledger: Ledger) -> None:
    ledger.open_budget("patients", Pure(epsilon=1, relation="add/remove"))
    for ask in (ledger.price, lambda *call: ledger.charge(*call, question=QUESTION)):
        with pytest.raises(BudgetError, match=r"no pure bound\. Nothing was charged to 'patients'"):
            ask("patients", gaussian())


def test_a_running_sum_is_stated_where_it_is_a_guarantee(ledger: Ledger) -> None:
    ledger.open_budget("patients", Pure(epsilon=1, relation="add/remove"))
    quote = ledger.price("patients", laplace(0.25))
    assert str(quote).endswith("affordable, then spent: ε = 0.25 (pure), add/remove one row.")
    budget = Approximate(epsilon=1, delta=1e-5, relation="add/remove")
    for accounting, stated in (("renyi", 0.523), ("gaussian", 1.0)):
        ledger.open_budget(accounting, budget, accounting)
        ledger.charge(accounting, gaussian(11.54), question=QUESTION)
        spent = ledger.spent(accounting)
        assert isinstance(spent, Approximate)
        assert spent.epsilon == pytest.approx(stated, abs=1e-3)


def test_a_question_without_noise_is_refused(ledger: Ledger) -> None:
    ledger.open_budget("patients", Approximate(epsilon=1, delta=1e-5, relation="replace-one"))
    response = dp_accounting.dp_event.RandomizedResponseDpEvent
    for event in (response(0.0, 4), response(1e-300, 4), dp_accounting.GaussianDpEvent(0.0)):
        price = Price(event=event, guarantee=Pure(epsilon=700, relation="replace-one"))
        with pytest.raises(BudgetError, match="Nothing was charged"):
            ledger.charge("patients", price, question=QUESTION)


def test_a_price_is_converted_to_the_relation_of_the_budget(ledger: Ledger) -> None:
    ledger.open_budget("patients", replace(BUDGET, relation="replace-one"))
    receipt = ledger.charge("patients", gaussian(), question=QUESTION)
    assert ledger.spent("patients") == ZCDP(rho=0.5, relation="replace-one")
    assert receipt.price is not None
    assert receipt.price["guarantee"]["relation"] == "replace-one"
    assert receipt.price["event"]["noise_multiplier"] == 1.0
    ledger.verify([receipt])


def test_relations_and_units_are_never_mixed(opened: Ledger) -> None:
    with pytest.raises(RelationError, match="says nothing about add/remove"):
        opened.charge("patients", gaussian(relation="replace-one"), question=QUESTION)
    with pytest.raises(RelationError, match="budget protects one row"):
        opened.charge("patients", gaussian(unit=Unit(name="person", max_rows=2)), question=QUESTION)
    assert opened.spent("patients") is None


@pytest.mark.parametrize(
    ("budget", "accounting"),
    [
        (Pure(epsilon=1.7, relation="add/remove"), None),
        (ZCDP(rho=0.3, relation="add/remove"), None),
        (ZCDP(rho=31.7, relation="add/remove"), None),
        (Approximate(epsilon=1, delta=1e-5, relation="add/remove"), "renyi"),
        (Approximate(epsilon=0.1, delta=1e-9, relation="add/remove"), "renyi"),
        (Approximate(epsilon=1, delta=1e-5, relation="add/remove"), "gaussian"),
        (Approximate(epsilon=8, delta=1e-2, relation="add/remove"), "gaussian"),
    ],
)
@pytest.mark.parametrize("part", [0.0, 0.37])
def test_the_largest_question_that_is_left_fits(
    key: OwnerKey, budget: Guarantee, accounting: str | None, part: float
) -> None:
    from privada.privacy import curves

    def ask(wanted: Guarantee) -> Price:
        if isinstance(wanted, Pure):
            return laplace(wanted.epsilon)
        if isinstance(wanted, ZCDP):
            sigma = math.sqrt(1 / (2 * wanted.rho))
        else:
            assert isinstance(wanted, Approximate)
            sigma = curves.gaussian_sigma(epsilon=wanted.epsilon, delta=wanted.delta)
        return Price(event=dp_accounting.GaussianDpEvent(sigma), guarantee=wanted)

    with Ledger.open(":memory:", key) as ledger:
        ledger.open_budget("patients", budget, accounting)
        if part:
            first = ledger.remaining("patients").largest
            assert first is not None
            name = "rho" if isinstance(first, ZCDP) else "epsilon"
            half = replace(first, **{name: part * getattr(first, name)})
            ledger.charge("patients", ask(half), question=QUESTION)
        left = ledger.remaining("patients")
        assert left.largest is not None
        assert str(left.largest) in str(left)
        assert ledger.price("patients", ask(left.largest)).share == pytest.approx(left.share, rel=1e-6)
        ledger.charge("patients", ask(left.largest), question=QUESTION)
        if accounting == "gaussian" and not part:
            assert left.largest.epsilon == pytest.approx(budget.epsilon, rel=1e-12)  # type: ignore[attr-defined]


# ---------------------------------------------------------------- opening


def test_a_ledger_is_found_again(place: str, key: OwnerKey) -> None:
    with Ledger.open(place, key) as ledger:
        ledger.open_budget("patients", BUDGET)
        receipt = ledger.charge("patients", gaussian(), question=QUESTION)
        assert key.public[:12] in repr(ledger)
    with Ledger.open(place, key) as ledger:
        assert ledger.verify([receipt]).lines == 2
        assert ledger.key == key
    with pytest.raises(LedgerError, match="is closed"):
        ledger.charge("patients", gaussian(), question=QUESTION)


def test_the_order_is_fixed_when_the_budget_is_opened(
    place: str, key: OwnerKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of an optimiser must not change what earlier charges cost."""
    with Ledger.open(place, key) as ledger:
        ledger.open_budget("patients", Approximate(epsilon=1, delta=1e-5, relation="add/remove"))
        ledger.charge("patients", gaussian(9), question=QUESTION)
        order = ledger.budget("patients").order  # type: ignore[attr-defined]
    monkeypatch.setattr("privada.privacy.curves.best_order", lambda **_: order + 1)
    with Ledger.open(place, key) as ledger:
        ledger.open_budget("patients", Approximate(epsilon=1, delta=1e-5, relation="add/remove"))
        ledger.charge("patients", gaussian(9), question=QUESTION)
        assert ledger.budget("patients").order == order  # type: ignore[attr-defined]
        _, first, second = ledger.lines("patients")
        assert first.cost == second.cost
        ledger.verify()


def test_looking_at_a_ledger_does_not_import_dp_accounting(sqlite_place: str, key_file: Path) -> None:
    """It takes longer to import than a hundred charges take."""
    code = """if True:
        import sys
        from privada.privacy import Approximate, Ledger, OwnerKey
        with Ledger.open(sys.argv[1], OwnerKey.load(sys.argv[2])) as ledger:
            ledger.open_budget("patients", Approximate(epsilon=1, delta=1e-5, relation="add/remove"))
            ledger.note("patients", text="rows to a curator")
            ledger.spent("patients"), ledger.remaining("patients"), ledger.export()
        assert "dp_accounting" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code, sqlite_place, str(key_file)], check=True)


def test_the_key_must_be_the_ledgers(place: str, key: OwnerKey) -> None:
    Ledger.open(place, key).close()
    with pytest.raises(LedgerError, match="The key is not this ledger's"):
        Ledger.open(place, OwnerKey.generate())
    with pytest.raises(LedgerError, match="needs its owner's key"):
        Ledger.open(place, None)  # type: ignore[arg-type]


def test_a_ledger_of_a_newer_version_is_refused(place: str, key: OwnerKey) -> None:
    Ledger.open(place, key).close()
    with tampering(place) as connection:
        connection.exec_driver_sql("INSERT INTO schema_version VALUES (99)")
    with pytest.raises(LedgerError, match=f"version 99; this privada knows versions up to {VERSION}"):
        Ledger.open(place, key)


def test_another_database_is_not_a_ledger(place: str, key: OwnerKey) -> None:
    if "://" not in place:
        Path(place).touch()
    with tampering(place) as connection:
        connection.exec_driver_sql("CREATE TABLE schema_version (version INTEGER)")
    with pytest.raises(LedgerError, match="a database, but not a ledger"):
        Ledger.open(place, key)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path, key: OwnerKey) -> None:
    wrong = tmp_path / "notes.txt"
    wrong.write_bytes(b"these are only my notes of the day\n" * 100)
    with pytest.raises(LedgerError, match=r"notes.txt is not a ledger"):
        Ledger.open(wrong, key)
    with pytest.raises(LedgerError, match="is not a file"):
        Ledger.open(tmp_path, key)
    with pytest.raises(LedgerError, match="cannot be made"):
        Ledger.open(tmp_path / "absent" / "ledger.sqlite", key)


def test_a_corrupt_file_is_named(sqlite_place: str, key: OwnerKey) -> None:
    with Ledger.open(sqlite_place, key) as ledger:
        ledger.open_budget("patients", BUDGET)
        for _ in range(4):
            ledger.charge("patients", gaussian(), question=QUESTION)
    content = bytearray(Path(sqlite_place).read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    Path(sqlite_place).write_bytes(content)
    with (
        pytest.raises(LedgerError, match="is corrupt; restore a backup"),
        Ledger.open(sqlite_place, key) as ledger,
    ):
        ledger.verify()


@pytest.mark.parametrize(
    "url",
    [
        "mysql://host/ledger",
        "sqlite:///ledger.sqlite?mode=ro",
        "postgresql://[",
        "nonsense://",
        "",
        "sqlite://",
    ],
)
def test_a_url_that_is_no_place_for_a_ledger_is_refused(key: OwnerKey, url: str) -> None:
    with pytest.raises(LedgerError, match="ledger"):
        Ledger.open(url, key)


def test_sqlite_is_durable_and_private_to_its_user(sqlite_place: str, key: OwnerKey) -> None:
    with Ledger.open(f"sqlite:///{sqlite_place}", key) as ledger, ledger._store.reading() as connection:
        asked = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in PRAGMAS}
    assert asked == PRAGMAS
    assert Path(sqlite_place).stat().st_mode & 0o777 == 0o600


PRAGMAS = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 120_000}


def test_a_ledger_is_not_pickled(ledger: Ledger) -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(ledger)


# ---------------------------------------------------------------- tampering


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
    from privada.privacy.ledger import schema

    connection.execute(sqlalchemy.insert(schema.lines).values(line.to_row()))


def rewritten(lines: list[Line], key: OwnerKey, change: Callable[[Line], Line]) -> list[Line]:
    """The chain computed anew after a change, signed with ``key``."""
    made: list[Line] = []
    for old in lines:
        line = change(replace(old, previous=made[-1].digest if made else old.previous))
        made.append(line.sealed(key))
    return made


@pytest.fixture
def paid(opened: Ledger) -> Iterator[tuple[Ledger, list[Receipt]]]:
    return opened, [opened.charge("patients", gaussian(4), question=QUESTION) for _ in range(5)]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lines SET cost = 0",
        "DELETE FROM lines WHERE position = 3",
        "DELETE FROM datasets",
        "UPDATE identity SET owner = 'me'",
    ],
)
def test_the_tables_are_append_only(paid: tuple[Ledger, list[Receipt]], place: str, statement: str) -> None:
    url = place if "://" in place else f"sqlite:///{place}"
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.NullPool)
    with engine.connect() as connection, pytest.raises(DBAPIError, match="the ledger is append-only"):
        connection.exec_driver_sql(statement)
    assert paid[0].verify(paid[1]).lines == 6


def test_sqlite_refuses_a_replaced_line(sqlite_place: str, key: OwnerKey) -> None:
    with Ledger.open(sqlite_place, key) as ledger:
        ledger.open_budget("patients", BUDGET)
        engine = sqlalchemy.create_engine(f"sqlite:///{sqlite_place}", poolclass=sqlalchemy.pool.NullPool)
        with engine.connect() as connection, pytest.raises(DBAPIError, match="append-only"):
            connection.exec_driver_sql("INSERT OR REPLACE INTO lines SELECT * FROM lines")


def test_verification_counts(paid: tuple[Ledger, list[Receipt]]) -> None:
    ledger, receipts = paid
    found = ledger.verify(receipts)
    assert (found.datasets, found.lines, found.receipts) == (1, 6, 5)
    assert found.heads == {"patients": receipts[-1].head}
    assert "data sets: 1, lines: 6, receipts: 5" in str(found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE lines SET cost = 0, spent = 0 WHERE position = 3", "Line 3 of 'patients' was edited"),
        ("UPDATE lines SET question = 'cd' WHERE position = 2", "Line 2 of 'patients' was edited"),
        ("UPDATE lines SET time = '2020' WHERE position = 5", "Line 5 of 'patients' was edited"),
        ("UPDATE lines SET purpose = 'other' WHERE position = 1", "Line 1 of 'patients' was edited"),
        ("UPDATE lines SET detail = 'no json' WHERE position = 4", "Line 4 of 'patients' was edited"),
        (
            "UPDATE lines SET detail = replace(detail, '0.5', '0.9') WHERE position = 0",
            "Line 0 of 'patients' was edited",
        ),
        ("UPDATE lines SET signature = '00' WHERE position = 4", "Line 4 of 'patients' was not signed"),
        ("DELETE FROM lines WHERE position = 3", "Line 3 of 'patients' is missing"),
        ("DELETE FROM lines WHERE position = 0", "Line 0 of 'patients' is missing"),
        ("DELETE FROM lines", "lines of 'patients' are gone"),
    ],
)
def test_an_edit_is_found(paid: tuple[Ledger, list[Receipt]], place: str, change: str, said: str) -> None:
    with tampering(place) as connection:
        connection.exec_driver_sql(change)
    with pytest.raises(TamperError, match=said):
        paid[0].verify()


def test_a_cut_tail_is_found_by_a_receipt(paid: tuple[Ledger, list[Receipt]], place: str) -> None:
    ledger, receipts = paid
    with tampering(place) as connection:
        connection.exec_driver_sql("DELETE FROM lines WHERE position > 3")
    assert ledger.verify(receipts[:3]).lines == 4
    with pytest.raises(TamperError, match="Line 5 of 'patients' has a receipt, but the chain ends at line 3"):
        ledger.verify(receipts)


def test_a_vanished_data_set_is_found_by_a_receipt(paid: tuple[Ledger, list[Receipt]], place: str) -> None:
    ledger, receipts = paid
    with tampering(place) as connection:
        connection.exec_driver_sql("DELETE FROM lines")
        connection.exec_driver_sql("DELETE FROM datasets")
    assert ledger.verify().datasets == 0
    with pytest.raises(TamperError, match="'patients', of which the ledger knows nothing"):
        ledger.verify(receipts)


def cheaper(line: Line) -> Line:
    """Every charge for half the grains."""
    return replace(line, cost=line.cost // 2, spent=line.spent // 2)


def swapped(line: Line) -> Line:
    """Charges that are consistent, but not the ones that were made."""
    return replace(line, question="cd" * 32) if line.index else line


@pytest.mark.parametrize(
    ("own", "change", "said"),
    [
        (False, swapped, "Line 0 of 'patients' was not signed by the owner: the chain was written anew"),
        (True, swapped, "Line 1 of 'patients' is not the one that its receipt was given for"),
        (True, cheaper, r"Line 1 of 'patients' cost \d+ grains; its price comes to \d+"),
        (
            True,
            lambda line: replace(line, spent=line.spent + line.index),
            "Line 1 of 'patients' has a wrong sum",
        ),
        (
            True,
            lambda line: replace(line, kind="budget"),
            "Line 1 of 'patients' opens the budget a second time",
        ),
        (True, lambda line: replace(line, kind="charge"), "Line 0 of 'patients' does not open a budget"),
        (True, lambda line: replace(line, detail={}), "Line 0 of 'patients' holds no budget"),
        (
            True,
            lambda line: replace(line, detail=line.detail if line.index == 0 else {"event": {"type": "os"}}),
            "Line 1 of 'patients' holds no price",
        ),
        (
            True,
            lambda line: (
                replace(line, detail=line.detail | {"capacity": 10**18}) if line.index == 0 else line
            ),
            "Line 0 of 'patients' states a capacity",
        ),
        (
            True,
            lambda line: (
                replace(
                    line,
                    detail=line.detail | {"budget": replace(BUDGET, rho=0.1).to_dict(), "capacity": 10**14},
                )
                if line.index == 0
                else line
            ),
            "Line 4 of 'patients' passes the budget",
        ),
    ],
)
def test_a_chain_that_was_written_anew_is_found(
    paid: tuple[Ledger, list[Receipt]],
    place: str,
    key: OwnerKey,
    own: bool,
    change: Callable[[Line], Line],
    said: str,
) -> None:
    ledger, receipts = paid
    chain = rewritten(list(ledger.lines("patients")), key if own else OwnerKey.generate(), change)
    with tampering(place) as connection:
        connection.exec_driver_sql("DELETE FROM lines")
        for line in chain:
            insert(connection, line)
    with pytest.raises(TamperError, match=said):
        ledger.verify(receipts if change is swapped else ())


def test_a_forged_or_foreign_receipt_is_found(paid: tuple[Ledger, list[Receipt]]) -> None:
    ledger, receipts = paid
    with pytest.raises(TamperError, match="was changed"):
        ledger.verify([replace(receipts[0], index=2)])
    with Ledger.open(":memory:", OwnerKey.generate()) as other:
        foreign = other.open_budget("patients", BUDGET)
    with pytest.raises(TamperError, match="another owner"):
        ledger.verify([foreign])


def test_a_broken_link_is_found(paid: tuple[Ledger, list[Receipt]], place: str, key: OwnerKey) -> None:
    ledger, _ = paid
    lines = list(ledger.lines("patients"))
    with tampering(place) as connection:
        connection.exec_driver_sql("DELETE FROM lines WHERE position = 5")
        insert(connection, replace(lines[5], previous=lines[3].digest).sealed(key))
    with pytest.raises(TamperError, match="Line 5 of 'patients' does not follow from the line before it"):
        ledger.verify()


def test_nothing_is_charged_after_an_edited_line(paid: tuple[Ledger, list[Receipt]], place: str) -> None:
    ledger, _ = paid
    with tampering(place) as connection:
        connection.exec_driver_sql("UPDATE lines SET cost = 0, spent = 0 WHERE position = 5")
    with pytest.raises(TamperError, match="Line 5 of 'patients' was edited"):
        ledger.charge("patients", gaussian(), question=QUESTION)
    assert len(list(ledger.lines("patients"))) == 6


# ---------------------------------------------------------------- many at once


def test_a_hundred_processes_never_overspend(place: str, key: OwnerKey, key_file: Path) -> None:
    with Ledger.open(place, key) as ledger:
        ledger.open_budget("patients", ZCDP(rho=0.15, relation="add/remove"))
        said = worker("askers", place, key_file, 100)
        receipts = receipts_of(said)
        assert (len(said), len(receipts)) == (300, 150)
        assert len({receipt.index for receipt in receipts}) == 150
        assert ledger.verify(receipts).lines == 151
        assert ledger.remaining("patients").share == 0


def test_many_processes_may_make_the_ledger(place: str, key: OwnerKey, key_file: Path) -> None:
    receipts = receipts_of(worker("founders", place, key_file, 10))
    assert len(set(receipts)) == 1
    with Ledger.open(place, key) as ledger:
        assert ledger.verify(receipts).lines == 1


def test_threads_share_a_ledger(opened: Ledger) -> None:
    granted: list[Receipt] = []
    refused: list[BudgetError] = []

    def ask() -> None:
        for _ in range(10):
            try:
                granted.append(opened.charge("patients", gaussian(5), question=QUESTION))
            except BudgetError as error:
                refused.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(granted), len(refused)) == (25, 55)
    assert opened.verify(granted).lines == 26


def test_a_forked_process_goes_on_with_the_ledger(place: str, key: OwnerKey, key_file: Path) -> None:
    with Ledger.open(place, key) as ledger:
        ledger.open_budget("patients", BUDGET)
        receipts = receipts_of(worker("heirs", place, key_file, 5))
        assert len(receipts) == 8
        assert ledger.verify(receipts).lines == 9


def test_a_ledger_in_memory_stays_in_its_process(key_file: Path) -> None:
    said = worker("memory", "", key_file, 0)
    assert [list(line) for line in said] == [["error"], ["receipt"]]
    assert "memory of another process" in said[0]["error"]


def test_kill_loses_nothing_that_was_promised(sqlite_place: str, key: OwnerKey, key_file: Path) -> None:
    with Ledger.open(sqlite_place, key) as ledger:
        ledger.open_budget("patients", ZCDP(rho=1000, relation="add/remove"))
    receipts = receipts_of(worker("killed", sqlite_place, key_file, 200))
    with Ledger.open(sqlite_place, key) as ledger:
        found = ledger.verify(receipts)
        assert len(receipts) > 200
        assert (
            len(receipts) <= found.lines - 1 <= len(receipts) + 200
        )  # each kill may leave one paid line untold
        ledger.charge("patients", gaussian(), question=QUESTION)


# ---------------------------------------------------------------- export, with dp-accounting alone


def rebuilt(form: dict[str, Any]) -> dp_accounting.DpEvent:
    """An event from its JSON form, by class name."""
    fields = {name: value for name, value in form.items() if name != "type"}
    for name, value in fields.items():
        if isinstance(value, dict):
            fields[name] = rebuilt(value)
        elif isinstance(value, list):
            fields[name] = [rebuilt(part) for part in value]
    return getattr(dp_accounting.dp_event, form["type"])(**fields)


def divergence(line: dict[str, Any], recompute: dict[str, Any], orders: list[float]) -> float:
    relation = dp_accounting.NeighboringRelation[recompute["neighboring_relation"]]
    accountant = dp_accounting.rdp.RdpAccountant(orders, relation)
    accountant.compose(rebuilt(line["event"]), line["times"])
    return float(accountant._rdp[0])


def recomputed(form: dict[str, Any]) -> float:
    """What a data set has spent, from its export and dp-accounting."""
    recompute = form["recompute"]
    charges = [line for line in form["lines"] if line["kind"] == "charge"]
    if form["filter"] == "renyi":
        return math.fsum(divergence(line, recompute, recompute["orders"]) for line in charges)
    if form["filter"] == "zcdp":  # Gaussian, ZCDp and their compositions: divergence is order times rho
        return math.fsum(divergence(line, recompute, [2.0]) / 2 for line in charges)
    if form["filter"] == "gaussian":  # mu squared is twice rho
        return math.fsum(divergence(line, recompute, [2.0]) for line in charges)
    return math.fsum(
        line["times"] * line["epsilon"] if line["epsilon"] else divergence(line, recompute, [math.inf])
        for line in charges
    )


GAUSS = dp_accounting.GaussianDpEvent(3.3)
LAPLACE = dp_accounting.LaplaceDpEvent(7.1)
RHO = dp_accounting.ZCDpEvent(0.0123)
RESPONSE = dp_accounting.dp_event.RandomizedResponseDpEvent(0.8, 5)
NESTED = dp_accounting.ComposedDpEvent(
    [GAUSS, dp_accounting.SelfComposedDpEvent(dp_accounting.ComposedDpEvent([GAUSS, RHO]), 3)]
)
MIXED = dp_accounting.ComposedDpEvent([NESTED, RESPONSE, dp_accounting.SelfComposedDpEvent(LAPLACE, 4)])


@pytest.mark.parametrize(
    ("budget", "accounting", "events"),
    [
        (
            Approximate(epsilon=30, delta=1e-6, relation="replace-one"),
            "renyi",
            [GAUSS, LAPLACE, RHO, RESPONSE, MIXED],
        ),
        (ZCDP(rho=2, relation="replace-one"), "zcdp", [GAUSS, RHO, NESTED]),
        (
            Approximate(epsilon=30, delta=1e-6, relation="replace-one"),
            "gaussian",
            [
                GAUSS,
                dp_accounting.SelfComposedDpEvent(GAUSS, 3),
                dp_accounting.ComposedDpEvent([GAUSS, GAUSS]),
            ],
        ),
        (Pure(epsilon=8, relation="replace-one"), "pure", [LAPLACE, RESPONSE]),
    ],
)
def test_an_outsider_recomputes_the_export(
    ledger: Ledger, budget: Guarantee, accounting: str, events: list[dp_accounting.DpEvent]
) -> None:
    ledger.open_budget("patients", budget, accounting)
    for times, event in enumerate(events, start=1):
        epsilon = 1 / event.noise_multiplier if event is LAPLACE else None
        price = Price(event=event, guarantee=budget, epsilon=epsilon, times=times)
        ledger.charge("patients", price, question=QUESTION)
    ledger.charge("patients", gaussian(9), question=QUESTION) if accounting != "pure" else None
    ledger.note("patients", text="rows to a curator")
    form = json.loads(json.dumps(ledger.export()))["datasets"]["patients"]
    assert recomputed(form) == pytest.approx(form["spent"] * form["grain"], rel=1e-9)
    assert form["spent"] == sum(line["cost"] for line in form["lines"])


def test_the_export_is_complete(opened: Ledger, key: OwnerKey) -> None:
    receipt = opened.charge("patients", gaussian(), question=QUESTION, purpose="a mean")
    opened.open_budget("others", Approximate(epsilon=1, delta=1e-5, relation="add/remove"))
    form = json.loads(json.dumps(opened.export()))
    assert (form["format"], form["owner"]) == ("privada-ledger/1", key.public)
    assert set(form["datasets"]) == {"others", "patients"}
    assert form["datasets"]["others"]["order"] == opened.budget("others").order  # type: ignore[attr-defined]
    patients = opened.export("patients")["datasets"]["patients"]
    assert patients == form["datasets"]["patients"]
    assert (patients["filter"], patients["order"], patients["capacity"]) == ("zcdp", None, 5 * 10**14)
    line = patients["lines"][1]
    assert line["event"] == {"type": "GaussianDpEvent", "noise_multiplier": 2.0}
    assert (line["times"], line["epsilon"], line["cost"]) == (1, None, 125 * 10**12)
    assert (line["hash"], line["signature"]) == (receipt.digest, receipt.signature)
    assert (line["question"], line["purpose"], line["index"]) == (QUESTION, "a mean", 1)
    assert "1 / (2 noise_multiplier**2)" in patients["recompute"]["sentence"]


# ---------------------------------------------------------------- backups and versions


def test_a_backup_verifies_equally(paid: tuple[Ledger, list[Receipt]], key: OwnerKey, tmp_path: Path) -> None:
    ledger, receipts = paid
    ledger.open_budget("empty", BUDGET)
    ledger.backup(tmp_path / "copy.sqlite")
    with Ledger.open(tmp_path / "copy.sqlite", key) as copy:
        assert copy.verify(receipts) == ledger.verify(receipts)
        assert copy.export() == ledger.export()
        copy.charge("patients", gaussian(), question=QUESTION)
    assert not list(tmp_path.glob("*.partial*"))
    with pytest.raises(LedgerError, match="exists; a backup never overwrites"):
        ledger.backup(tmp_path / "copy.sqlite")
    with pytest.raises(LedgerError, match="cannot be made"):
        ledger.backup(tmp_path / "absent" / "copy.sqlite")


def test_a_restored_backup_lacks_later_receipts(opened: Ledger, key: OwnerKey, tmp_path: Path) -> None:
    opened.backup(tmp_path / "copy.sqlite")
    later = opened.charge("patients", gaussian(), question=QUESTION)
    with (
        Ledger.open(tmp_path / "copy.sqlite", key) as copy,
        pytest.raises(TamperError, match="tail was cut off"),
    ):
        copy.verify([later])


def test_a_failed_backup_leaves_no_file(sqlite_place: str, key: OwnerKey, tmp_path: Path) -> None:
    ledger = Ledger.open(sqlite_place, key)
    ledger.close()
    with pytest.raises(LedgerError, match="is closed"):
        ledger.backup(tmp_path / "copy.sqlite")
    assert not list(tmp_path.glob("copy*"))


VERSION_1 = """
CREATE TABLE schema_version (version INTEGER NOT NULL PRIMARY KEY);
CREATE TABLE identity (id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1), owner TEXT NOT NULL);
CREATE TABLE datasets (dataset TEXT NOT NULL PRIMARY KEY);
CREATE TABLE lines (
    dataset TEXT NOT NULL REFERENCES datasets (dataset),
    position BIGINT NOT NULL CHECK (position >= 0),
    kind TEXT NOT NULL,
    time TEXT NOT NULL,
    question TEXT NOT NULL,
    detail TEXT NOT NULL,
    cost BIGINT NOT NULL CHECK (cost >= 0),
    spent BIGINT NOT NULL CHECK (spent >= cost),
    previous TEXT NOT NULL,
    digest TEXT NOT NULL,
    signature TEXT NOT NULL,
    PRIMARY KEY (dataset, position)
);
INSERT INTO schema_version VALUES (1);
INSERT INTO identity VALUES (1, '03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8');
INSERT INTO datasets VALUES ('patients');
INSERT INTO lines VALUES ('patients', 0, 'budget', '2026-01-01T00:00:00.000000+00:00', '',
    '{"budget":{"kind":"zcdp","relation":"add/remove","rho":0.5,"unit":{"max_rows":1,"name":"row"}},"capacity":500000000000000,"filter":"zcdp"}',
    0, 0, '0000000000000000000000000000000000000000000000000000000000000000',
    '9158a3eaf10c58c5ba80c2b9c43ef653b14dadee3087ee1c0175cd641c74995c',
    '4bbd33d8be25bb8eb7c96c3d14a5621dac7dbdea580ba1e1b46e6b08ef45b4e50f6de702c6dc6369cc904eddc8627634962ebfc4f41641c7f68be3f189991905');
INSERT INTO lines VALUES ('patients', 1, 'charge', '2026-01-02T00:00:00.000000+00:00',
    'abababababababababababababababababababababababababababababababab',
    '{"epsilon":null,"event":{"noise_multiplier":2.0,"type":"GaussianDpEvent"},"guarantee":{"kind":"zcdp","relation":"add/remove","rho":0.125,"unit":{"max_rows":1,"name":"row"}},"times":1}',
    125000000000000, 125000000000000, '9158a3eaf10c58c5ba80c2b9c43ef653b14dadee3087ee1c0175cd641c74995c',
    '21d7ee37a47ff6b09ece5fe896afc59558f7f141188d74f8d289906030a917ed',
    'bb8a0ae2b84643e26faf4706fa5543e8c20734da0bc4c81829d09c90861acd4acd8648094921003dd82a8e2d34f8bed3a7e71caee6dea52014d6c836fb1ed505');
INSERT INTO lines VALUES ('patients', 2, 'disclosure', '2026-01-03T00:00:00.000000+00:00',
    'cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd', '{"text":"ten rows to the curator"}',
    0, 125000000000000, '21d7ee37a47ff6b09ece5fe896afc59558f7f141188d74f8d289906030a917ed',
    '3730c8cfa6f333fd8424e5828816381d2b2000d64ef0e869f54148980b0b4d84',
    '9133285024fa0907814eea761ba10ad34a411a477d56c758f063929329c98dc1960fcda6b363a08782e0364c57906054c3ca156b26c4fa9463bfa27a34656002');
"""


def test_version_1_is_upgraded_and_still_verifies(place: str) -> None:
    """The digests above were computed once and for all: what is hashed must never change."""
    old_key = OwnerKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
    if "://" not in place:
        Path(place).touch()
    with tampering(place) as connection:
        for statement in VERSION_1.split(";\n"):
            if statement.strip():
                connection.exec_driver_sql(statement)
    for _ in range(2):
        with Ledger.open(place, old_key) as ledger:
            found = ledger.verify()
            assert (
                found.heads["patients"] == "3730c8cfa6f333fd8424e5828816381d2b2000d64ef0e869f54148980b0b4d84"
            )
    with Ledger.open(place, old_key) as ledger:
        receipt = ledger.charge("patients", gaussian(), question=QUESTION, purpose="a mean")
        assert ledger.verify([receipt]).lines == 4
    with tampering(place) as connection:
        names = {column["name"] for column in sqlalchemy.inspect(connection).get_columns("lines")}
        versions = connection.exec_driver_sql("SELECT version FROM schema_version ORDER BY 1").scalars().all()
    assert "purpose" in names
    assert versions == list(range(1, VERSION + 1))


def test_a_migrated_and_a_new_ledger_have_the_same_columns(tmp_path: Path, key: OwnerKey) -> None:
    old_key = OwnerKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
    old, new = tmp_path / "old.sqlite", tmp_path / "new.sqlite"
    connection = sqlite3.connect(old)
    connection.executescript(VERSION_1)
    connection.close()
    Ledger.open(old, old_key).close()
    Ledger.open(new, key).close()
    with tampering(str(old)) as one, tampering(str(new)) as two:
        columns = [
            {
                (c["name"], str(c["type"]), c["nullable"])
                for c in sqlalchemy.inspect(each).get_columns("lines")
            }
            for each in (one, two)
        ]
    assert columns[0] == columns[1]


# ---------------------------------------------------------------- laws

STEP = st.tuples(
    st.sampled_from(["charge", "price", "note"]),
    st.sampled_from([1.0, 2.0, 3.3, 7.7, 20.0]),
    st.integers(min_value=1, max_value=4),
)
BUDGETS = st.sampled_from(
    [
        (ZCDP(rho=0.7, relation="add/remove"), "zcdp"),
        (Approximate(epsilon=3, delta=1e-6, relation="add/remove"), "renyi"),
        (Approximate(epsilon=3, delta=1e-6, relation="add/remove"), "gaussian"),
    ]
)


@settings(max_examples=60, deadline=None)
@given(kept=BUDGETS, steps=st.lists(STEP, max_size=12))
def test_the_laws_of_a_ledger(
    key: OwnerKey, kept: tuple[Guarantee, str], steps: list[tuple[str, float, int]]
) -> None:
    """Sums never fall, quotes and refusals change nothing, replaying and splitting give the same sum."""
    with Ledger.open(":memory:", key) as ledger, Ledger.open(":memory:", key) as replay:
        ledger.open_budget("patients", *kept)
        for what, sigma, times in steps:
            before, head = grains(ledger), ledger.verify().heads
            quote = ledger.price("patients", gaussian(sigma, times=times))
            assert ledger.verify().heads == head
            if what == "charge":
                try:
                    ledger.charge("patients", gaussian(sigma, times=times), question=QUESTION)
                    assert quote.affordable
                    assert ledger.spent("patients") == quote.after
                    assert grains(ledger) > before
                except BudgetError:
                    assert not quote.affordable
                    assert ledger.verify().heads == head
            elif what == "note":
                ledger.note("patients", text="rows to a curator")
                assert grains(ledger) == before
        assert grains(ledger) <= ledger.budget("patients").capacity
        replay.open_budget("patients", *kept)
        for line in ledger.lines("patients"):
            if line.price:
                for _ in range(line.price.times):
                    replay.charge("patients", replace(line.price, times=1), question=QUESTION)
        assert replay.spent("patients") == ledger.spent("patients")
        assert grains(replay) == grains(ledger)
