"""The examples of ``privada init``: complete, generated, within their own bounds, each key its own."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.method import methods
from privada.parties.owner_file import OwnerFile
from privada.studies import Study
from privada.studies.example import example_methods, find_template, write_example


def test_every_method_that_makes_something_has_an_example():
    assert set(example_methods()) >= {
        "cells",
        "clustering",
        "evaluation",
        "marginals",
        "reweighting",
        "summarization",
        "transport",
    }


def test_every_file_that_is_named_is_there(written):
    names = {str(path.relative_to(written)) for path in written.rglob("*") if path.is_file()}
    assert names >= {
        "README.md",
        "study.toml",
        "centers.csv",
        "clinic/owner.toml",
        "clinic/rows.csv",
        "clinic/owner.key",
        "clinic/ledger.sqlite",
    }


@pytest.mark.parametrize("name", example_methods())
def test_rows_are_generated_the_same_each_time_and_within_the_public_bounds(name, tmp_path):
    write_example(tmp_path, name=name)
    template, again = find_template(name), find_template(name)
    for owner, described in template.owners.items():
        assert described.table.to_csv() == again.owners[owner].table.to_csv()
        file = OwnerFile.read(tmp_path / owner / "owner.toml")
        rows, box = described.table.rows, file.schema.box
        assert np.all(rows >= np.array(box.low))
        assert np.all(rows <= np.array(box.high))


@pytest.mark.parametrize("name", example_methods())
def test_each_study_is_read_and_paid_for_by_budgets_that_are_open(name, tmp_path):
    write_example(tmp_path, name=name)
    study = Study.read(tmp_path / "study.toml")
    assert study.method is methods()[name]
    assert study.first_asks
    for ask in study.first_asks:
        assert study.at_hand[ask.owner].price(ask.question).affordable


def test_the_readme_names_what_is_there(written):
    text = (written / "README.md").read_text()
    assert "`clinic/`" in text
    assert "`centers.csv` is public" in text


def test_a_method_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(InputError, match=r"Expected method to be one of .*, got 'astrology'"):
        write_example(tmp_path / "new", name="astrology")
    assert not (tmp_path / "new").exists()


def test_the_key_is_the_owners_alone_and_each_example_has_its_own(written, tmp_path):
    assert (written / "clinic/owner.key").stat().st_mode & 0o077 == 0
    write_example(tmp_path)
    assert (tmp_path / "clinic/owner.key").read_bytes() != (written / "clinic/owner.key").read_bytes()


def test_one_run_takes_a_quarter_of_a_budget_that_is_open(written):
    file = OwnerFile.read(written / "clinic/owner.toml")
    (ask,) = Study.read(written / "study.toml").first_asks
    assert file.share(ask.question) == file.policy.largest_share == 0.25
    with file.open_ledger() as ledger:
        assert list(ledger.datasets()) == ["patients"]
        assert ledger.spent("patients") is None
