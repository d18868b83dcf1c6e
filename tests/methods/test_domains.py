import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privada.exceptions import InputError
from privada.methods.domains import split_domains

XS, YS = np.arange(6.0).reshape(3, 2), np.array([0, 1, 0])
XT, YT = 10 + np.arange(4.0).reshape(2, 2), np.array([-1, -1])


def same(found, groups=None):
    assert np.array_equal(found.source.X, XS)
    assert np.array_equal(found.source.y, YS)
    assert np.array_equal(found.target.X, XT)
    assert np.array_equal(found.target.y, YT)
    assert found.source.groups is None if groups is None else np.array_equal(found.source.groups, groups)


def test_three_forms_say_the_same():
    same(split_domains(XS, YS, Xt=XT, yt=YT))
    same(split_domains(XT, YT, Xs=XS, ys=YS))
    rows, labels = np.vstack([XS, XT]), np.concatenate([YS, YT])
    same(split_domains(rows, labels, sample_domain=[1, 1, 1, -2, -2]))


@given(st.lists(st.sampled_from([1, 2, 7, -1, -3]), min_size=1).filter(lambda found: max(found) > 0))
def test_every_row_is_in_its_domain_once_and_in_order(domain):
    rows = np.arange(len(domain), dtype=float)[:, None]
    found = split_domains(rows, rows[:, 0], sample_domain=domain, groups=domain)
    assert found.source.X[:, 0].tolist() == [i for i, d in enumerate(domain) if d > 0]
    assert found.target.X[:, 0].tolist() == [i for i, d in enumerate(domain) if d < 0]
    assert found.source.y.tolist() == found.source.X[:, 0].tolist()
    parts = found.each_source()
    assert [set(part.groups.tolist()) for part in parts] == [
        {d} for d in sorted({d for d in domain if d > 0})
    ]
    assert sum(len(part.X) for part in parts) == len(found.source.X)


def test_labels_may_be_missing_and_groups_belong_to_the_source():
    found = split_domains(XS, Xt=XT, groups=[1, 2, 2])
    assert found.source.y is None
    assert found.target.y is None
    assert found.source.groups.tolist() == [1, 2, 2]
    assert found.target.groups is None
    assert len(found.each_source()) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X": XS}, "in one form"),
        ({"X": XS, "Xt": XT, "sample_domain": [1, 1, 1]}, "in one form"),
        ({"X": XS, "Xt": XT, "Xs": XS}, "in one form"),
        ({"X": XS, "Xt": XT[:, :1]}, "of one width"),
        ({"X": XS[0], "Xt": XT}, "X to be a matrix, got 1 axes"),
        ({"X": XT, "Xs": XS[0]}, "Xs to be a matrix"),
        ({"X": XS, "y": YS[:1], "Xt": XT}, "y to have one label for each row of X"),
        ({"X": XT, "Xs": XS, "ys": YS[:1]}, "ys to have one label for each row of Xs"),
        ({"X": XS, "Xt": XT, "yt": YS}, "yt to have one label for each row of Xt"),
        ({"X": XS, "Xt": XT, "groups": [1]}, "groups to have one value"),
        ({"X": XS, "sample_domain": [1, 1]}, "one sample_domain for each row"),
        ({"X": XS, "sample_domain": [1, 0, -1]}, "positive for sources, negative for the target"),
        ({"X": XS, "sample_domain": [-1, -1, -1]}, "positive for sources"),
    ],
)
def test_what_does_not_fit_is_named_without_a_value(given, message):
    with pytest.raises(InputError, match=message):
        split_domains(**given)
