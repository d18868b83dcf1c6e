"""What an owner wrote down: read without opening a row, errors by line and key, no budget invented."""

import sqlite3
import stat
from contextlib import closing

import numpy as np
import pytest

from privada import CellStatistics, NearestCells, Owner
from privada.exceptions import AnswerError, BudgetError, LedgerError, SchemaError, SourceError, StudyError
from privada.parties import owner as owner_module
from privada.parties.checks import check_file
from privada.parties.compute.threads import Threads
from privada.parties.owner_file import Card, OwnerFile
from privada.parties.sources import Database, StoredRows
from privada.privacy import Asker, Ledger, OwnerKey, PureDP

AR = "add/remove"

CENTERS = np.array([[0.2], [0.8]])


def ask(epsilon=0.5, relation=AR, salt="", **more):
    return CellStatistics(
        tables=(NearestCells(centers=CENTERS),),
        guarantee=PureDP(epsilon=epsilon, relation=relation),
        salt=salt,
        **more,
    )


TOML = """
[data]
name = "patients"
path = "rows.csv"

[privacy]
relation = "add/remove"
epsilon = 2.0

[policy]
methods = ["cells"]
largest_share = 0.5

[schema]
columns = [{ name = "x", low = 0, high = 1 }]
[schema.label]
name = "y"
values = [0, 1]

[ledger]
url = "ledger.sqlite"
key = "owner.key"
"""


@pytest.fixture
def home(tmp_path):
    (tmp_path / "owner.toml").write_text(TOML)
    (tmp_path / "rows.csv").write_text("x,y\n0.1,0\n0.9,1\n")
    key = OwnerKey.generate()
    key.save(tmp_path / "owner.key")
    Ledger.open(tmp_path / "ledger.sqlite", key).close()
    OwnerFile.read(tmp_path / "owner.toml").open_budget()
    return tmp_path


def test_an_owner_from_its_file(home):
    house = Owner.from_toml(home / "owner.toml")
    assert house.dataset == "patients"
    assert house.answer(ask(n_classes=2))["counts"].shape == (2, 2)
    again = Owner.from_toml(home / "owner.toml")
    assert again.ledger.spent("patients").epsilon == pytest.approx(0.5)
    assert stat.S_IMODE((home / "owner.key").stat().st_mode) == 0o600


def test_a_lost_ledger_is_an_error_never_a_new_budget(home):
    (home / "ledger.sqlite").unlink()
    with pytest.raises(LedgerError, match=r"no ledger at ledger\.sqlite.*lost budget"):
        Owner.from_toml(home / "owner.toml")
    assert not (home / "ledger.sqlite").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("epsilon = 2.0", "epsilon = -1"), r"line 8, privacy\.epsilon: Expected epsilon > 0"),
        (("epsilon = 2.0", ""), r"privacy\.epsilon: Expected exactly one of epsilon and rho"),
        (("add/remove", "neighbours"), r"line 7, privacy\.relation: Expected relation"),
        (("largest_share = 0.5", "largest_share = 7"), r"line 12, policy\.largest_share"),
        (('methods = ["cells"]', 'method = "cells"'), r"line 11, policy\.method: nobody knows"),
        (('name = "patients"', ""), r"data\.name: expected a string, but it is missing"),
    ],
)
def test_a_bad_file_names_line_and_key(home, change, message):
    (home / "owner.toml").write_text(TOML.replace(*change))
    with pytest.raises(StudyError, match=message):
        Owner.from_toml(home / "owner.toml")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("threads = 0", r"compute\.threads: Expected threads"),
        ('threads = "all"', r"compute\.threads: expected a whole number"),
        ('engine = "spark"', r"compute\.engine: Expected engine"),
        ('engine = "dask"', r"compute\.scheduler: expected a string, but it is missing"),
        (
            'engine = "dask"\nscheduler = "tcp://10.0.0.1:1"',
            r"compute\.scheduler: Expected a scheduler by tls",
        ),
        ('engine = "dask"\nscheduler = "tls://10.0.0.1:1"', r"compute\.\w+: .*needs the files ca"),
        ('engine = "dask"\nscheduler = "tcp://localhost:1"\nthreads = 2', r"compute\.threads: nobody knows"),
    ],
)
def test_where_answers_are_computed_is_checked_by_name(home, lines, message):
    (home / "owner.toml").write_text(f"{TOML}\n[compute]\n{lines}\n")
    with pytest.raises(StudyError, match=message):
        OwnerFile.read(home / "owner.toml")


def test_threads_are_those_of_the_file(home):
    (home / "owner.toml").write_text(f"{TOML}\n[compute]\nthreads = 3\n")
    assert OwnerFile.read(home / "owner.toml").compute == Threads(3)
    assert Owner.from_toml(home / "owner.toml").answer(ask(n_classes=2))["counts"].shape == (2, 2)


def test_pricing_writes_nothing_and_what_was_paid_costs_nothing_more(home):
    file, question = OwnerFile.read(home / "owner.toml"), ask(n_classes=2)
    before = (home / "ledger.sqlite").read_bytes()
    assert file.price(question).share == pytest.approx(0.25)
    assert file.share(question) == pytest.approx(0.25)
    assert file.price_all([question, ask(n_classes=2, salt="b")]).share == pytest.approx(0.5)
    assert not file.has_paid(question)
    assert (home / "ledger.sqlite").read_bytes() == before
    Owner.from_file(file).answer(question)
    assert file.has_paid(question)
    assert file.price(question).share == 0


def test_a_budget_that_is_not_opened_is_priced_without_opening_it(home):
    for file in home.glob("ledger.*"):
        file.unlink()
    Ledger.open(home / "ledger.sqlite", OwnerKey.load(home / "owner.key")).close()
    file = OwnerFile.read(home / "owner.toml")
    assert file.price(ask(n_classes=2)).share == pytest.approx(0.25)
    with file.open_ledger() as ledger:
        assert list(ledger.datasets()) == []


@pytest.mark.parametrize("name", ["others", "Patients", "patients 2"])
def test_a_changed_name_is_an_error_and_never_a_new_budget(home, name):
    (home / "owner.toml").write_text(TOML.replace('name = "patients"', f'name = "{name}"'))
    file, question = OwnerFile.read(home / "owner.toml"), ask(n_classes=2)
    wants = (
        lambda: Owner.from_file(file),
        lambda: file.price(question),
        lambda: file.price_all([question]),
        lambda: file.share(question),
        lambda: file.has_paid(question),
    )
    for want in wants:
        with pytest.raises(BudgetError, match=f"budget of '{name}' is absent.*it knows 'patients'"):
            want()
    with file.open_ledger() as ledger:
        assert list(ledger.datasets()) == ["patients"]


def test_a_name_that_only_looks_different_is_the_same_budget(home):
    (home / "owner.toml").write_text(TOML.replace('name = "patients"', 'name = " patients\u00a0"'))
    file = OwnerFile.read(home / "owner.toml")
    Owner.from_file(file).answer(ask(n_classes=2))
    assert file.has_paid(ask(n_classes=2))
    with file.open_ledger() as ledger:
        assert list(ledger.datasets()) == ["patients"]


def test_opening_a_budget_again_is_the_same_line(home):
    file = OwnerFile.read(home / "owner.toml")
    assert file.open_budget() == file.open_budget()


def test_paths_are_relative_to_the_file_and_addresses_are_not(home, monkeypatch):
    monkeypatch.chdir("/")
    file = OwnerFile.read(home / "owner.toml")
    assert (file.source, file.key) == (StoredRows(home.resolve() / "rows.csv"), home.resolve() / "owner.key")
    address = TOML.replace('"ledger.sqlite"', '"postgresql://here/db"')
    (home / "owner.toml").write_text(address)
    assert OwnerFile.read(home / "owner.toml").ledger == "postgresql://here/db"


def test_a_card_is_public_and_reads_back(home):
    card = OwnerFile.read(home / "owner.toml").card()
    (home / "schema.toml").write_text(card.to_toml())
    assert Card.read(home / "schema.toml") == card
    assert "rows.csv" not in card.to_toml()
    assert "epsilon" not in card.to_toml()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('relation = "add/remove"', 'relation = "both"'), r"line 2, owner\.relation: Expected relation"),
        (("[owner]", "[owner]\nbudget = 1"), r"owner\.budget: nobody knows"),
    ],
)
def test_a_bad_card_names_line_and_key(home, change, message):
    text = OwnerFile.read(home / "owner.toml").card().to_toml()
    assert change[0] in text
    (home / "schema.toml").write_text(text.replace(*change))
    with pytest.raises(StudyError, match=message):
        Card.read(home / "schema.toml")


def with_data(home, text):
    (home / "owner.toml").write_text(TOML.replace('path = "rows.csv"', text))
    return home / "owner.toml"


def test_rows_may_be_in_a_store_or_a_database(home):
    stored = OwnerFile.read(with_data(home, 'path = "s3://bucket/rows.parquet"'))
    assert stored.source == StoredRows("s3://bucket/rows.parquet")
    server = OwnerFile.read(with_data(home, 'database = "postgresql://reader@db/clinic"\ntable = "rows"'))
    assert server.source == Database(url="postgresql://reader@db/clinic", table="rows")
    local = OwnerFile.read(with_data(home, 'database = "sqlite:///rows.db"\nquery = "SELECT * FROM rows"'))
    assert local.source.file == home.resolve() / "rows.db"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('database = "postgresql://u:secret@db/x"\ntable = "t"', r"line 4, data\.database: .*password"),
        ('database = "postgresql://db/x"', r"data\.database: Expected either table or query"),
        ('database = "mysql://db/x"\ntable = "t"', r"data\.database: Expected a URL that begins with"),
        ('path = "a.csv"\ndatabase = "sqlite:///x"', r"data\.database: expected neither path nor csv"),
        ('path = "s3://key:secret@bucket/rows"', r"data\.path: .*credentials belong in the environment"),
        ('path = "ftp://bucket/rows"', r"data\.path: Expected a URL that begins with s3"),
        ('path = "a.csv"\ncsv = { delimiter = ";;" }', r"data\.csv\.delimiter"),
        ('path = "a.csv"\ntable = "t"', r"data\.table: nobody knows this key"),
    ],
)
def test_places_that_are_none_are_named_and_no_secret_is_shown(home, text, message):
    with pytest.raises(StudyError, match=message) as caught:
        OwnerFile.read(with_data(home, text))
    assert "secret" not in str(caught.value).replace("a secret belongs", "")


def test_an_owner_of_a_database_answers_from_its_file(home):
    with closing(sqlite3.connect(home / "rows.db")) as connection:
        connection.execute("CREATE TABLE rows (x REAL, y INTEGER)")
        connection.executemany("INSERT INTO rows VALUES (?, ?)", [(0.1, 0), (0.9, 1)])
        connection.commit()
    owner = Owner.from_toml(with_data(home, 'database = "sqlite:///rows.db"\ntable = "rows"'))
    owner.answer(ask())
    assert owner.ledger.spent("patients").epsilon == pytest.approx(0.5)


def test_a_file_that_changed_since_it_was_loaded_costs_nothing(home):
    owner = Owner.from_toml(home / "owner.toml")
    (home / "rows.csv").write_text("x,y\n0.1,0\n0.9,1\n0.9,1\n")
    with pytest.raises(SourceError, match="have changed since they were loaded; load the owner again"):
        owner.answer(ask())
    assert owner.ledger.spent("patients") is None


def test_a_file_that_changes_during_an_answer_is_paid_for_and_says_nothing(home, monkeypatch):
    owner = Owner.from_toml(home / "owner.toml")
    answer = owner_module.answer_rows

    def and_change(*words, **names):
        (home / "rows.csv").write_text("x,y\n0.1,0\n")
        return answer(*words, **names)

    monkeypatch.setattr(owner_module, "answer_rows", and_change)
    with pytest.raises(AnswerError, match="The charge stands") as caught:
        owner.answer(ask())
    assert "changed" not in str(caught.value)
    assert owner.ledger.spent("patients").epsilon == pytest.approx(0.5)


def test_a_price_for_a_learner_reads_its_allowance_and_writes_nothing(home):
    listed = f'\n[[learners]]\nname = "alice"\nkey = "{"ab" * 32}"\nallowance = {{ epsilon = 0.75 }}\n'
    (home / "owner.toml").write_text(TOML + listed)
    file, alice = OwnerFile.read(home / "owner.toml"), Asker("alice", "ab" * 32)
    before = (home / "ledger.sqlite").read_bytes()
    assert file.price(ask(0.5, n_classes=2)).allowance is None
    assert file.price(ask(0.75, n_classes=2), asker=alice).allowance.share == 1.0
    assert not file.price(ask(1.0, n_classes=2), asker=alice).affordable
    assert (home / "ledger.sqlite").read_bytes() == before
    Owner.from_toml(home / "owner.toml").answer(ask(0.375, n_classes=2), asker=alice)
    found = file.price_all([ask(0.375, salt=salt, n_classes=2) for salt in ("", "a")], asker=alice)
    assert (found.affordable, found.allowance.share, found.allowance.remaining_share) == (True, 0.5, 0.5)


PERIOD = """[data.vintage]
name = "2026"
column = "day"
since = 2026-01-01
until = 2027-01-01
"""


@pytest.fixture
def divided(home):
    """Two owners' files over one table and one ledger: a vintage each."""
    (home / "rows.csv").write_text("x,y,day\n0.1,0,2026-05-01\n0.9,1,2027-05-01\n0.9,1,2027-06-01\n")
    text = (home / "owner.toml").read_text().replace('"patients"', '"visits"')
    text = text.replace("[privacy]", PERIOD + "\n[privacy]")
    (home / "owner.toml").write_text(text)
    later = text.replace("2027-01-01", "2028-01-01").replace("2026", "2027")
    (home / "later.toml").write_text(later)
    return home


def test_two_vintages_of_one_table_have_a_budget_each_and_read_their_own_rows(divided):
    files = [OwnerFile.read(divided / name) for name in ("owner.toml", "later.toml")]
    assert [file.dataset for file in files] == ["visits-2026", "visits-2027"]
    for file in files:
        file.open_budget()
    owners = [Owner.from_file(file) for file in files]
    assert [owner_module.open_private(owner._rows).check() for owner in owners] == [1, 2]
    owners[0].answer(ask())
    assert [file.price(ask(salt="2")).remaining_share for file in files] == [0.75, 1.0]
    assert [Owner.from_file(file).dataset for file in files] == ["visits-2026", "visits-2027"]  # remembered


def test_a_period_that_is_moved_or_overlaps_is_refused(divided):
    OwnerFile.read(divided / "owner.toml").open_budget()
    text = (divided / "owner.toml").read_text()
    (divided / "owner.toml").write_text(text.replace("2027-01-01", "2027-02-01"))
    with pytest.raises(LedgerError, match="it cannot become one for"):
        Owner.from_toml(divided / "owner.toml")
    with pytest.raises(LedgerError, match="it cannot become one for"):
        OwnerFile.read(divided / "owner.toml").price(ask())
    (divided / "owner.toml").write_text(text.replace(PERIOD, ""))
    with pytest.raises(LedgerError, match="has vintages"):
        OwnerFile.read(divided / "owner.toml").open_budget()
    (divided / "later.toml").write_text(
        text.replace('"2026"', '"second"').replace("2027-01-01", "2026-02-01")
    )
    with pytest.raises(LedgerError, match="a second budget for some of them"):
        OwnerFile.read(divided / "later.toml").open_budget()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("since = 2026", "since = 2028", r"data.vintage.since: Expected since before until"),
        ("since = 2026-01-01", 'since = "soon"', r"data.vintage.since: expected a day"),
        ('column = "day"', 'column = "x"', r"data.vintage.column: .*to be of kind date"),
        ("until", "before", r"data.vintage.until: expected a day such as 2027-01-31, but it is missing"),
    ],
)
def test_mistakes_in_a_vintage_are_named(divided, old, new, said):
    path = divided / "owner.toml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises((StudyError, SchemaError), match=said):
        OwnerFile.read(path)


def test_a_check_counts_the_rows_of_the_vintage(divided):
    (divided / "rows.csv").write_text("x,y,day\n0.1,0,2026-05-01\n,1,2027-05-01\n0.9,1,2027-06-01\n")
    found = [check_file(OwnerFile.read(divided / name))[0] for name in ("owner.toml", "later.toml")]
    assert [(report.rows, report.fits) for report in found] == [(1, True), (2, False)]
