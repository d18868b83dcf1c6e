"""The example of ``privada init``: complete, generated, within its own bounds, its key its own."""

import numpy as np

from privada.parties.owner_file import OwnerFile
from privada.studies import Study
from privada.studies.example import CELLS, generate, write_example


def test_every_file_that_is_named_is_there(written):
    names = {str(path.relative_to(written)) for path in written.rglob("*") if path.is_file()}
    assert names >= {
        "README.md",
        "study.toml",
        "survey.csv",
        "centers.csv",
        "clinic/owner.toml",
        "clinic/patients.csv",
        "clinic/owner.key",
        "clinic/ledger.sqlite",
    }


def test_rows_are_generated_the_same_each_time_and_within_the_public_bounds():
    survey, patients, outcome = generate()
    again = generate()
    assert all(np.array_equal(a, b) for a, b in zip((survey, patients, outcome), again, strict=True))
    assert not np.array_equal(survey, generate(1)[0])
    for numbers in (survey, patients):
        assert 0 <= numbers.min() <= numbers.max() <= 10
    assert set(outcome) == {"well", "ill"}


def test_the_survey_has_no_outcome_and_the_clinic_sees_other_people(written):
    assert (written / "survey.csv").read_text().startswith("marker_a,marker_b\n")
    assert (written / "clinic/patients.csv").read_text().startswith("marker_a,marker_b,outcome\n")
    public, private, _ = generate()
    assert np.linalg.norm(public.mean(axis=0) - private.mean(axis=0)) > 0.5
    assert np.loadtxt(written / "centers.csv", delimiter=",").shape == (CELLS, 2)


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
