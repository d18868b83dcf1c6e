import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privada.exceptions import InputError
from privada.methods.sides import separate_sides

XS, YS = np.arange(6.0).reshape(3, 2), np.array([0, 1, 0])
XT, YT = 10 + np.arange(4.0).reshape(2, 2), np.array([1, -1])


def check_sides(sides, private_side):
    """One private party and a public side, each with its own rows and labels."""
    (part,) = sides.private
    source, target = (part, sides.public) if private_side == "source" else (sides.public, part)
    for rows, X, y in ((source, XS, YS), (target, XT, YT)):
        assert np.array_equal(rows.X, X)
        assert np.array_equal(rows.y, y)


@pytest.mark.parametrize("private_side", ["source", "target"])
def test_three_forms_say_the_same(private_side):
    check_sides(separate_sides(XS, YS, Xt=XT, yt=YT, private_side=private_side), private_side)
    check_sides(separate_sides(XT, YT, Xs=XS, ys=YS, private_side=private_side), private_side)
    rows, labels = np.vstack([XS, XT]), np.concatenate([YS, YT])
    sides = separate_sides(rows, labels, sample_domain=[1, 1, 1, -2, -2], private_side=private_side)
    check_sides(sides, private_side)


@given(
    st.lists(st.sampled_from([1, 2, 7, -1, -3]), min_size=1).filter(
        lambda domain: max(domain) > 0 > min(domain)
    )
)
def test_every_row_is_in_its_domain_once_and_in_order(domain):
    rows = np.arange(len(domain), dtype=float)[:, None]
    sides = separate_sides(rows, rows[:, 0], sample_domain=domain, private_side="source", person=rows[:, 0])
    numbers = sorted({number for number in domain if number > 0})
    assert len(sides.private) == len(numbers)
    for part, number in zip(sides.private, numbers, strict=True):
        places = [place for place, own in enumerate(domain) if own == number]
        assert part.X[:, 0].tolist() == part.y.tolist() == part.person.tolist() == places
    assert sides.public.X[:, 0].tolist() == [place for place, own in enumerate(domain) if own < 0]


def test_labels_may_be_missing_and_persons_belong_to_the_private_side():
    sides = separate_sides(XS, Xt=XT, person=np.array([1, 2, 2]), private_side="source")
    assert sides.private[0].y is None
    assert sides.public.y is None
    assert sides.private[0].person.tolist() == [1, 2, 2]
    sides = separate_sides(XS, Xt=XT, person=np.array([1, 2]), private_side="target")
    assert sides.private[0].person.tolist() == [1, 2]


def test_a_person_in_several_sources_is_refused():
    rows, domain = np.arange(4.0)[:, None], [1, 2, 2, -1]
    with pytest.raises(InputError, match="all rows of a person in one source"):
        separate_sides(rows, sample_domain=domain, person=np.array([5, 5, 6, 7]), private_side="source")


@pytest.mark.parametrize("masks", [[-1, -1], [np.nan, np.nan]], ids=["classes", "numbers"])
def test_masked_labels_of_a_private_target_are_refused(masks):
    rows, labels = np.vstack([XS, XT]), np.concatenate([YS, masks])
    with pytest.raises(InputError, match="mask_target_labels=False"):
        separate_sides(rows, labels, sample_domain=[1, 1, 1, -1, -1], private_side="target")


@pytest.mark.parametrize(
    ("arguments", "message"),
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
        ({"X": XS, "Xt": XT, "person": [1]}, "person to have one value"),
        ({"X": XS, "sample_domain": [1, 1]}, "one sample_domain for each row"),
        ({"X": XS, "sample_domain": [1, 0, -1]}, "positive for sources, negative for the target"),
        ({"X": XS, "sample_domain": [-1, -1, -1]}, "positive for sources"),
    ],
)
def test_what_does_not_fit_is_named_without_a_value(arguments, message):
    with pytest.raises(InputError, match=message):
        separate_sides(**arguments, private_side="source")
