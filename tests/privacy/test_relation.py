import pytest

from privada.exceptions import InputError, RelationError
from privada.privacy import Relation, Unit


def test_only_the_stated_conversions_exist():
    possible = {(a, b) for a in Relation for b in Relation if a.implies(b)}
    ar, ro, att = Relation.ADD_REMOVE, Relation.REPLACE_ONE, Relation.ATTRIBUTE
    assert possible == {(ar, ar), (ro, ro), (att, att), (ar, ro), (ar, att), (ro, att)}
    assert ar.steps_to(ro) == 2
    assert ro.steps_to(att) == 1


def test_replace_one_says_nothing_about_sizes_that_differ():
    with pytest.raises(RelationError, match="replace-one says nothing about add/remove"):
        Relation.REPLACE_ONE.steps_to(Relation.ADD_REMOVE)


def test_unknown_names_are_refused_by_name():
    with pytest.raises(RelationError, match="got 'swap'"):
        Relation.parse("swap")
    with pytest.raises(InputError, match="Expected unit"):
        Unit(name="house")
    with pytest.raises(RelationError, match="max_rows=1"):
        Unit(max_rows=2)
