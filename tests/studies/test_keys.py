"""Every key that a study's reader knows is in the reference, which is made from the settings."""

import re

import pytest

from privada._toml import Section
from privada.methods.method import methods
from privada.studies import Study
from privada.studies.example import example_methods, write_example

SHARED = {"csv"}  # how public files are written: documented with them
OLD = {"clustering": {"radius"}, "marginals": {"question"}, "summarization": {"rounds"}}  # of 0.2


@pytest.mark.parametrize("name", example_methods())
def test_every_key_is_documented_and_every_documented_key_is_read(name, tmp_path, monkeypatch):
    keys, take = set(), Section._take

    def take_and_note(section, key, *rest):
        if section._path == "method":
            keys.add(key)
        return take(section, key, *rest)

    monkeypatch.setattr(Section, "_take", take_and_note)
    contains = Section.__contains__

    def look_and_note(section, key):
        if section._path == "method":
            keys.add(key)
        return contains(section, key)

    monkeypatch.setattr(Section, "__contains__", look_and_note)
    write_example(tmp_path, name=name)
    _ = Study.read(tmp_path / "study.toml").inquiry
    text = methods()[name].describe_study()
    documented = set(re.findall(r"^(\w+) = ", text, re.MULTILINE))
    assert documented >= {"name"}
    assert documented - keys == set()
    # Options of one kind of a setting are named in its description.
    described = set(re.findall(r"\w+", text))
    assert keys - described - SHARED - OLD.get(name, set()) - set(methods()[name].renamed) - {""} == set()
