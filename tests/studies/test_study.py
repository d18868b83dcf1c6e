import pytest

from privada.exceptions import InputError, StudyError
from privada.methods import find_method
from privada.parties.protocol import as_round
from privada.studies import Study
from privada.studies.example import example_methods, write_example
from privada.studies.outcome import run_study


def test_a_study_follows_its_owners_relation_and_unit(written):
    study = Study.read(written / "study.toml")
    assert str(study.guarantee) == "ε = 1 (pure), add/remove one row"
    assert list(study.schemas) == ["clinic"]
    (ask,) = study.first_asks
    assert (ask.owner, ask.question.guarantee) == ("clinic", study.guarantee)
    assert next(study.inquiry.start()) == ask


def test_owners_that_protect_different_things(written, tmp_path):
    from privada.parties.owner_file import OwnerFile

    card = OwnerFile.read(written / "clinic/owner.toml").card().to_toml()
    for name, relation in (("a", "add/remove"), ("b", "attribute")):
        (tmp_path / f"{name}.toml").write_text(card.replace("add/remove", relation))
    (tmp_path / "centers.csv").write_text((written / "centers.csv").read_text())
    text = (written / "study.toml").read_text()
    two = '[owners.a]\nschema = "a.toml"\n[owners.b]\nschema = "b.toml"\n'
    start, end = text.index("[owners.clinic]"), text.index("[budget]")
    (tmp_path / "study.toml").write_text(text[:start] + two + text[end:])
    with pytest.raises(StudyError, match="budget: the owners protect different things"):
        Study.read(tmp_path / "study.toml")


def test_a_study_makes_its_learner_once_however_much_is_asked_about_it(home, monkeypatch):
    make, made = find_method("cells").inquire, []

    def counted(*args, **more):
        made.append(1)
        return make(*args, **more)

    monkeypatch.setattr(find_method("cells"), "inquire", counted)
    study = Study.read(home / "study.toml")
    assert study.inquiry.asks == study.first_asks
    assert len(run_study(study).releases) == 1
    assert len(made) == 1
    assert next(study.inquiry.start()).question == study.first_asks[0].question, "and can be run again"
    assert len(made) == 1


def test_the_command_and_the_study_must_name_one_method(written):
    from privada.studies.study import check_method

    study = Study.read(written / "study.toml")
    check_method(study, "cells")
    with pytest.raises(InputError, match="one of cells"):
        check_method(study, "magic")


@pytest.mark.parametrize("name", example_methods())
def test_price_ask_run_and_resume_see_the_same_asks_and_again_asks_others(name, tmp_path):
    write_example(tmp_path / "example", name=name)
    path = tmp_path / "example" / "study.toml"
    study = Study.read(path)
    for _ in range(2):  # a learner that resumes is started again
        assert as_round(next(study.inquiry.start())) == study.first_asks
    assert {ask.question.digest for ask in study.first_asks} <= {
        ask.question.digest for ask in study.inquiry.asks
    }
    outcome = run_study(study)
    asked = {release.question for release in outcome.releases}
    assert {ask.question.digest for ask in study.first_asks if not ask.question.discloses} <= asked
    (path.parent / "summary.npz").unlink(missing_ok=True)  # a new file each time
    assert run_study(Study.read(path)).result == outcome.result, "and kept answers are free"
    (path.parent / "summary.npz").unlink(missing_ok=True)
    text = path.read_text()
    assert "again = 0" in text
    path.write_text(text.replace("again = 0", "again = 1"))
    other = Study.read(path).inquiry
    assert not {ask.question.digest for ask in other.asks} & {
        ask.question.digest for ask in study.inquiry.asks
    }
    assert (other.optional_parties, other.forecast) == (
        study.inquiry.optional_parties,
        study.inquiry.forecast,
    )
