"""Askers are bounded and printable; names that look like others open no second budget."""

import sys
import unicodedata
import warnings
from dataclasses import FrozenInstanceError

import pytest

from privada.exceptions import BudgetError, InputError, LedgerError, PrivacyLeakWarning
from privada.parties.permissions import KnownLearner, KnownLearners, LearnerCard
from privada.privacy import Asker, Vintage
from privada.privacy.accounting.filters import open_filter
from privada.privacy.asker import (
    TABLE,
    check_distinct,
    check_name,
    is_confusable,
    normal_name,
    show_name,
    skeleton,
)
from privada.privacy.ledger.account import Account
from privada.privacy.ledger.chain import opening
from tests.privacy.ledger.cases import BUDGET, gaussian

KEY = "ab" * 32


def test_an_asker_is_a_frozen_value():
    asker = Asker("alice", KEY, project="stroke", purpose="triage")
    assert asker == Asker(learner="alice", key=KEY, project="stroke", purpose="triage")
    assert asker.to_dict() == {"learner": "alice", "key": KEY, "project": "stroke", "purpose": "triage"}
    with pytest.raises(FrozenInstanceError):
        asker.learner = "bob"


@pytest.mark.parametrize("bad", ["\x1b[2J", "a\nb", "a\u202eb", "\0", " a", "a ", "\ud800", 3, None])
@pytest.mark.parametrize("field", ["learner", "project", "purpose"])
def test_what_a_terminal_would_obey_is_no_name(field, bad):
    with pytest.raises(InputError, match=f"Expected {field}"):
        Asker(**({"learner": "alice", "key": KEY} | {field: bad}))


@pytest.mark.parametrize(("field", "longest"), [("learner", 100), ("project", 200), ("purpose", 1000)])
def test_every_text_has_a_largest_length(field, longest):
    fields = {"learner": "alice", "key": KEY}
    Asker(**(fields | {field: "x" * longest}))
    with pytest.raises(InputError, match=f"Expected {field} to be text of at most {longest} characters"):
        Asker(**(fields | {field: "x" * (longest + 1)}))


def test_a_learner_has_a_name_and_a_key():
    with pytest.raises(InputError, match="Expected learner"):
        Asker("", KEY)
    with pytest.raises(InputError, match="Expected key to be a public key"):
        Asker("alice", "no key")


UNSEEN = [
    *(
        "\u00ad",
        "\u034f",
        "\u061c",
        "\u115f",
        "\u17b4",
        "\u180e",
        "\u200b",
        "\u200d",
        "\u200e",
        "\u202e",
        "\u2060",
    ),
    *("\u2800", "\u3164", "\ufe0f", "\ufeff", "\uffa0", "\U0001d173", "\U000e0041", "\U000e0100"),
    *(
        "\t",
        "\n",
        "\x00",
        "\x7f",
        "\x85",
        "\u00a0",
        "\u2003",
        "\u2028",
        "\u3000",
        "\ue000",
        "\u0378",
        "\ud800",
    ),
]
# By hand, from the code charts: Cyrillic, Greek, Armenian, Cherokee, full width, mathematical letters.
LOOK_ALIKE = {
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501": "aeopcyxijsd",
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0405\u0406\u0408": "ABEKMHOPCTXSIJ",
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7": "ABEZHIKMNOPTYX",
    "\u03bf\u03bd\u03c1\u0251\u0261\u0131\u13a0\u13a1\u13a2\u0555\u0585": "ovpagiDRTOo",
    "\uff50\uff41\uff54\uff11\uff10": "pat10",
    "\U0001d429\U0001d482\U0001d4c9\U0001d7d9\U0001d7d8": "pat10",
    "\u2134\u212f\u2110\u217c\u2223\u01c0": "oeIlll",
}


def open_as_before(ledger, name, budget=BUDGET):
    """Open a budget under a name that is refused today."""
    line = opening(name, Account.opened(name, open_filter(budget)), ledger.key)
    with ledger._storage.writing() as tables:
        tables.begin(line)
    ledger._remember(line)


@pytest.mark.parametrize(
    "name",
    ["patients 2024", " patients 2024", "patients\u00a02024 ", "patients\t 2024", "\uff50atients 2024"],
)
def test_names_that_differ_in_spaces_and_forms_are_one(name, ledger):
    assert normal_name(name) == "patients 2024"
    assert normal_name(normal_name(name)) == normal_name(name)
    receipt = ledger.open_budget("patients 2024", BUDGET)
    assert ledger.open_budget(name, BUDGET) == receipt


@pytest.mark.parametrize("name", ["Patients", "PATIENTS", "patient\u017f"])
def test_a_name_that_differs_in_case_only_is_refused(ledger, name):
    with pytest.raises(LedgerError, match="would be taken for it"):
        check_distinct(normal_name(name), ["others", "patients"])
    ledger.open_budget("patients", BUDGET)
    with pytest.raises(LedgerError):
        ledger.open_budget("Patients", BUDGET)
    assert ledger.datasets() == ("patients",)


def test_other_names_are_distinct():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_distinct("patients 2024", ["patients", "patients 2023", "patient 2024"])
        check_distinct("Krankenhaus", ["Krankenh\u00e4user", "\u60a3\u8005", "\u067e\u0632\u0634\u06a9"])


@pytest.mark.parametrize("known", [True, False])
def test_what_nobody_sees_opens_no_budget(ledger, known):
    if known:
        ledger.open_budget("caf\u00e9", BUDGET)
    names = [form % unseen for unseen in UNSEEN for form in ("caf\u00e9%s", "ca%sf\u00e9", "cafe\u0301%s")]
    for name in names:
        if known and normal_name(name) == "caf\u00e9":
            continue  # spaces at the ends: it is the same budget
        with pytest.raises((InputError, LedgerError)) as refused:
            ledger.open_budget(name, BUDGET)
        assert str(refused.value).isprintable()
        assert not set(str(refused.value)) & set(UNSEEN)
    assert ledger.datasets() == (("caf\u00e9",) if known else ())


@pytest.mark.parametrize("name", [" patients", "patients ", "", " "])
def test_a_new_name_has_no_spaces_at_its_ends(ledger, name):
    with pytest.raises(InputError):
        ledger.open_budget(name, BUDGET)


@pytest.mark.parametrize(
    "name", ["patients", "Stra\u00dfe 7", "cafe\u0301", "\u60a3\u8005", "o'neill-2", "\u0939\u093f"]
)
def test_ordinary_names_in_any_language_are_fine(name, ledger):
    assert check_name(dataset=name, longest=200) == name
    ledger.open_budget(name, BUDGET)
    assert ledger.datasets() == (normal_name(name),)


def test_an_old_name_keeps_its_budget_and_no_second_one_is_opened(ledger):
    old = "caf\u00e9\u200b"
    open_as_before(ledger, old)
    ledger.charge(old, gaussian(), question="ab" * 32)
    assert ledger.verify().lines == 2
    assert [line.dataset for line in ledger.lines(old)] == [old, old]
    assert ledger.check_budget(old, BUDGET) == old
    with pytest.raises(
        LedgerError, match=r"budget of 'caf\u00e9\\u200b'; one of 'caf\u00e9' would be taken for it"
    ):
        ledger.open_budget("caf\u00e9", BUDGET)
    with pytest.raises(BudgetError):
        ledger.charge("caf\u00e9", gaussian(), question="cd" * 32)


@pytest.mark.parametrize("old", ["caf\u00e9\u200b", "caf\u00e9\ufeff", "\ufeffcaf\u00e9", "cafe\u0301"])
def test_of_two_budgets_that_look_the_same_one_is_charged(ledger, old):
    ledger.open_budget("caf\u00e9", BUDGET)
    open_as_before(ledger, old)
    ledger.charge("caf\u00e9", gaussian(), question="ab" * 32)
    assert [line.dataset for line in ledger.lines(old)] == [old], "each name finds its own lines"
    assert (ledger.spent(old), ledger.remaining(old).share) == (None, 1.0)
    for refused in (
        lambda: ledger.charge(old, gaussian(), question="ab" * 32),
        lambda: ledger.charge_once(old, gaussian(), question="ab" * 32),
        lambda: ledger.check_budget(old, BUDGET),
    ):
        with pytest.raises(LedgerError, match="which look the same"):
            refused()
    with pytest.warns(PrivacyLeakWarning, match="have names that look the same"):
        assert ledger.verify().lines == 3


def test_vintages_of_one_data_set_are_those_of_its_name(ledger):
    first = Vintage(of="caf\u00e9", name="2026", column="day", since="2026-01-01", until="2027-01-01")
    second = Vintage(of="caf\u00e9", name="2026\u200b", column="day", since="2026-06-01", until="2027-06-01")
    third = Vintage(of="c\u00adaf\u00e9", name="b", column="day", since="2026-06-01", until="2027-06-01")
    ledger.open_budget(first.dataset, BUDGET, vintage=first)
    for vintage in (second, third):
        with pytest.raises(InputError, match="no invisible character"):
            ledger.open_budget(vintage.dataset, BUDGET, vintage=vintage)


@pytest.mark.parametrize("letters", LOOK_ALIKE, ids=LOOK_ALIKE.values())
def test_letters_of_other_alphabets_warn(letters):
    assert skeleton(letters) == skeleton(LOOK_ALIKE[letters])
    for other, plain in zip(letters, LOOK_ALIKE[letters], strict=True):
        new, existing = normal_name(f"x{other}y"), f"x{plain}y"
        if new != existing:
            with pytest.warns(PrivacyLeakWarning, match="look like"):
                check_distinct(new, [existing])


def test_every_character_that_unicode_says_looks_like_ascii_is_recognised():
    pairs = [
        (chr(int(source, 16)), line.split()[0])
        for line in TABLE.read_text(encoding="ascii").splitlines()
        if not line.startswith("#")
        for source in line.split()[1:]
    ]
    # The others of Unicode's 1,851 have ASCII letters for their compatibility form.
    listed = {letter for letter, _ in pairs}
    folded = [
        (letter, plain)
        for letter in map(chr, range(0x80, sys.maxunicode + 1))
        if (plain := unicodedata.normalize("NFKC", letter)).isascii()
        and plain.isalnum()
        and letter not in listed
    ]
    assert len(pairs) == 742
    assert len(folded) > 1000
    for letter, plain in pairs + folded:
        assert is_confusable(f"x{letter}y", f"x{plain}y"), ascii(letter)
        assert is_confusable(f"X{letter}Y", f"x{plain}y"), ascii(letter)


def test_a_budget_whose_letters_look_like_anothers_is_opened_with_a_warning(ledger):
    ledger.open_budget("scope", BUDGET)
    with pytest.warns(PrivacyLeakWarning, match=r"'scope', whose letters look like those of '.u0455"):
        ledger.open_budget("\u0455\u0441\u043e\u0440\u0435", BUDGET)
    assert len(ledger.datasets()) == 2


def test_learners_have_names_that_can_be_told_apart():
    for make in (
        lambda name: KnownLearner(name=name, key="ab" * 32),
        lambda name: LearnerCard(name=name, public_key="ab" * 32),
    ):
        make("alice")
        with pytest.raises(InputError, match="no invisible character"):
            make("alice\u200b")
    alike = [KnownLearner(name="alice", key="ab" * 32), KnownLearner(name="\u0430lice", key="cd" * 32)]
    with pytest.warns(PrivacyLeakWarning, match="look the same"):
        KnownLearners(alike, budget=open_filter(BUDGET))


def test_a_name_in_a_message_shows_what_nobody_sees():
    assert show_name("a\u3164b\u200b\u00e9") == "'a\\u3164b\\u200b\u00e9'"
