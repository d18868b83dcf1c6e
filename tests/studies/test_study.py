import pytest

from privada.exceptions import InputError, StudyError
from privada.methods import method
from privada.studies import Study
from privada.studies.outcome import run_study


def test_a_study_follows_its_owners_relation_and_unit(written):
    study = Study.read(written / "study.toml")
    assert str(study.guarantee) == "ε = 1 (pure), add/remove one row"
    assert list(study.schemas) == ["clinic"]
    (ask,) = study.first_asks
    assert (ask.owner, ask.question.guarantee) == ("clinic", study.guarantee)
    assert next(study.learner()).question == ask.question


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
    from privada.methods.registry import Method

    make, made = method("cells").study(), []

    def counted(*args, **more):
        made.append(1)
        return make(*args, **more)

    monkeypatch.setattr(Method, "study", lambda card: counted)
    study = Study.read(home / "study.toml")
    assert study.asks_in_all == study.first_asks
    assert study.states_all_asks
    assert len(run_study(study).releases) == 1
    assert len(made) == 1
    assert next(study.learner()).question == study.first_asks[0].question, "and can be run again"
    assert len(made) == 2


def test_the_command_and_the_study_must_name_one_method(written):
    from privada.studies.study import check_method

    study = Study.read(written / "study.toml")
    check_method(study, "cells")
    with pytest.raises(InputError, match="one of cells"):
        check_method(study, "magic")
