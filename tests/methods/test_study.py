"""Every room's ``[method]`` table: what is missing or unknown is named, and no file is invented."""

import pytest

from privada._toml import Section
from privada.exceptions import StudyError
from privada.methods.method import methods

METHODS = list(methods())


def made(name, text, home):
    example = methods()[name].example()
    section = Section.parse(f"[method]\n{text}", name="study.toml").section("method")
    schemas = {"north": example.schema, "south": example.schema}
    guarantee = example.questions[0].guarantee
    return methods()[name].inquire(section, schemas=schemas, guarantee=guarantee, home=home, seed=0)


@pytest.mark.parametrize("name", METHODS)
def test_an_empty_table_is_told_what_is_missing(name, tmp_path):
    with pytest.raises(StudyError, match=r"study\.toml, line 1, method[.:].*(missing|expected)"):
        made(name, "", tmp_path)


@pytest.mark.parametrize("name", METHODS)
def test_an_owner_that_nobody_knows_is_named(name, tmp_path):
    key = {"summarization": 'consumer = "nobody"', "transport": 'owners = ["nobody"]'}
    with pytest.raises(StudyError, match=r"study\.toml, line 2.*'nobody'"):
        made(name, key.get(name, 'owner = "nobody"'), tmp_path)


@pytest.mark.parametrize("name", METHODS)
def test_a_file_that_is_not_there_is_named(name, tmp_path):
    named = {"cells": "centers", "clustering": "target", "evaluation": "model", "transport": "target"}
    key = named.get(name, "source")
    if name == "summarization":
        pytest.skip("it reads no public rows")
    with pytest.raises(StudyError, match=r"line 2, method\.\w+: (?i:cannot read) nothing\.csv"):
        made(name, f'{key} = "nothing.csv"', tmp_path)
    assert not list(tmp_path.iterdir())
