"""Persons instead of rows, in every estimator."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privada import (
    CellClassifier,
    Dataset,
    Number,
    Owner,
    PureDP,
    Schema,
    TransportClassifier,
    Unit,
)
from privada.exceptions import InputError, PrivacyLeakWarning, SchemaError
from privada.model_selection import PrivateSearchCV
from tests.methods.every_estimator import CASES, ROWS, table

pytestmark = pytest.mark.filterwarnings(
    "ignore:No gain is expected", "ignore:No gain", "ignore:The release is not"
)

PERSON = Unit(name="person", max_rows=2)
PEOPLE = np.arange(ROWS) // 3  # three rows each
CELLS = {"centers": [[0.2, 0.2], [0.8, 0.8]], "classes": ("no", "yes"), "bounds": (0, 1), "epsilon": 0.5}


def public_of(case):
    """The public side; other parties have persons, too."""
    if "owners" not in case.public:
        return case.public
    return {
        "owners": {
            name: (X, None, np.arange(len(X)) // 2 + 1000) for name, X in case.public["owners"].items()
        }
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_unit_is_a_person_and_a_second_fit_adds_up(case):
    X, y = case.private(1)
    model = case.make(dataset=Dataset(max_rows=2, table="first year"))
    model.fit(X, y, person=PEOPLE, **public_of(case))
    assert model.guarantee_.unit == model.spent_.unit == PERSON
    assert model.guarantee_.relation == model.spent_.relation
    first = model.spent_
    other = case.private(2)[0]  # the same persons with new rows
    model = case.make(dataset=Dataset(max_rows=2, table="second year"))
    with pytest.warns(PrivacyLeakWarning, match="used before"):
        model.fit(other, y, person=PEOPLE, **public_of(case))
    assert not model.spent_ <= first


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_persons_and_their_bound_belong_together(case):
    X, y = case.private(3)
    with pytest.raises(InputError, match="max_rows and person together"):
        case.make().fit(X, y, person=PEOPLE, **case.public)
    with pytest.raises(InputError, match="max_rows and person together"):
        case.make(dataset=Dataset(max_rows=2)).fit(X, y, **case.public)
    with pytest.raises(InputError, match="one identifier"):
        case.make(dataset=Dataset(max_rows=2)).fit(X, y, person=PEOPLE[1:], **case.public)


def test_rows_beyond_the_bound_do_not_count():
    X, y, _ = table(4, 300)
    model = CellClassifier(**CELLS | {"epsilon": 500.0}, dataset=Dataset(max_rows=2))
    model.fit(X, y, person=np.repeat(["a", "b", "c"], 100))
    assert model.counts_.sum() == pytest.approx(6, abs=0.5)


def test_persons_of_a_list_do_not_become_one():
    """If they did, whether one is there would decide which rows of the other count."""
    X, y, _ = table(11, 3)
    model = CellClassifier(**CELLS | {"epsilon": 500.0}, dataset=Dataset(max_rows=1))
    assert model.fit(X, y, person=["a", "a\0", "b"]).counts_.sum() == pytest.approx(3, abs=0.5)
    for people in ([1, "1", "2"], [True, 1, 2]):
        with pytest.raises(SchemaError, match="several types"):
            model.fit(X, y, person=people)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_a_column_of_a_frame_names_persons_and_is_no_feature(frame):
    X, y, _ = table(5, ROWS)
    rows = frame({"a": X[:, 0], "who": PEOPLE.astype(str), "b": X[:, 1]})
    model = CellClassifier(**CELLS, dataset=Dataset(max_rows=2)).fit(rows, y, person="who")
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.guarantee_.unit == PERSON
    assert len(model.predict(rows)) == ROWS
    assert (model.predict(rows) == model.predict(X)).all()
    with pytest.raises(InputError, match="'nobody'"):
        CellClassifier(**CELLS, dataset=Dataset(max_rows=2)).fit(rows, y, person="nobody")


def test_a_schema_names_persons():
    X, y, _ = table(6, ROWS)
    columns = [Number(name="a", low=0, high=1), Number(name="b", low=0, high=1)]
    schema = Schema(columns=columns, person_id="who", max_rows=2)
    rows = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "who": PEOPLE})
    settings = {name: value for name, value in CELLS.items() if name != "bounds"}
    model = CellClassifier(**settings, schema=schema).fit(rows, y)
    assert model.guarantee_.unit == PERSON
    with pytest.raises(InputError, match="schema's, 2, got 3"):
        CellClassifier(**settings, schema=schema, dataset=Dataset(max_rows=3)).fit(rows, y)


def test_rows_are_not_used_as_persons_later_nor_the_other_way_round():
    X, y, _ = table(7, ROWS)
    CellClassifier(**CELLS).fit(X, y)
    with pytest.raises(InputError, match="one unit in every fit"):
        CellClassifier(**CELLS, dataset=Dataset(max_rows=2)).fit(X, y, person=PEOPLE)
    X, y, _ = table(8, ROWS)
    CellClassifier(**CELLS, dataset=Dataset(max_rows=2)).fit(X, y, person=PEOPLE)
    with pytest.raises(InputError, match="one unit in every fit"):
        CellClassifier(**CELLS).fit(X, y)
    with pytest.raises(InputError, match="one unit in every fit"):
        CellClassifier(**CELLS, dataset=Dataset(max_rows=3)).fit(X, y, person=PEOPLE)


def test_the_same_person_in_another_form_is_recognised_and_neighbours_are_told_apart():
    big = 2**24 + 1 + np.arange(40)  # single precision would mix them up
    X, y, _ = table(9, 40)

    def fit(X, people, table):
        model = CellClassifier(**CELLS, dataset=Dataset(max_rows=1, table=table))
        return model.fit(X, y[20:], person=people)

    fit(X[:20], big[:20], "others")
    before = fit(X[20:], big[20:], "these").spent_.epsilon
    assert before == pytest.approx(0.5)
    for form in (str, np.int64, np.float64, object):
        with pytest.warns(PrivacyLeakWarning) if form is str else _quiet():
            model = fit(X[20:] + 0.001, big[20:].astype(form), f"persons as {form.__name__}")
        assert model.spent_.epsilon == pytest.approx(before + 0.5)
        before = model.spent_.epsilon


def _quiet():
    import contextlib

    return contextlib.nullcontext()


def test_sources_have_persons_of_their_own_domain():
    X, y, _ = table(10, 120)
    domain = np.repeat([1, 2, -3], 40)
    y = np.where(domain > 0, y, None)
    people = np.repeat(np.arange(60), 2)
    model = TransportClassifier(
        epsilon=0.5, delta=1e-6, classes=("no", "yes"), bounds=(0, 1), dataset=Dataset(max_rows=2)
    ).fit(X, y, sample_domain=domain, person=people)
    assert len(model.releases_) == 2
    assert model.question_.size == 20 * 2  # persons of one source, and the rows that each may have
    shared = np.where(np.arange(120) == 0, people[40], people) + 100  # one of source 2 in source 1, too
    with pytest.raises(InputError, match="all rows of a person in one source"):
        model.fit(X, y, sample_domain=domain, person=shared)
    with pytest.raises(InputError, match="no max_rows"):
        TransportClassifier(
            epsilon=0.5,
            delta=1e-6,
            classes=("no", "yes"),
            bounds=(0, 1),
            dataset=Dataset(max_rows=2),
            algorithm="rows",
        ).fit(X[:60] / 2, y[:60], X[60:], person=people[:60] + 100)


def test_the_public_size_is_of_persons_and_not_of_rows():
    X, y, _ = table(11, 200)
    sizes = set()
    for rows in (100, 150):  # of 50 persons
        model = TransportClassifier(
            epsilon=0.5, delta=1e-6, classes=("no", "yes"), bounds=(0, 1), dataset=Dataset(max_rows=3)
        )
        people = np.arange(rows) % 50
        model.fit(X[:rows], y[:rows], X[150:], person=people + 1000 * rows)
        sizes.add(model.question_.size)
    assert sizes == {150}


def test_missing_persons_are_refused_before_anything_is_charged():
    X, y, _ = table(13, 4)
    with pytest.raises(SchemaError, match="missing"):
        CellClassifier(**CELLS, dataset=Dataset(max_rows=2)).fit(
            X, y, person=np.array(["a", None, "b", "c"], dtype=object)
        )


def test_an_owner_of_persons_has_its_own():
    X, _, _ = table(14, ROWS)
    schema = Schema(
        columns=[Number(name="a", low=0, high=1), Number(name="b", low=0, high=1)],
        person_id="who",
        max_rows=2,
    )
    owner = Owner(
        X,
        person=PEOPLE,
        schema=schema,
        dataset="w",
        budget=PureDP(epsilon=1, relation="add/remove", unit=PERSON),
    )
    with pytest.raises(InputError, match="no person beside owner"):
        CellClassifier(**CELLS, dataset=Dataset(max_rows=2)).fit(owner=owner, person=PEOPLE)


def test_a_search_holds_persons_out_whole():
    X, y, _ = table(15, 900)
    people = np.arange(900) // 3
    grid = {"centers": [[[0.2, 0.2], [0.8, 0.8]], [[0.5, 0.5]]]}
    search = PrivateSearchCV(
        CellClassifier(**CELLS, dataset=Dataset(max_rows=3)), grid, selection_epsilon=1.0
    )
    assert search.price().unit.max_rows == 3
    search.fit(X, y, person=people)
    assert search.spent_ == search.quote_
    assert search.spent_.unit == Unit(name="person", max_rows=3)


@pytest.mark.parametrize("choice", ["exponential", "random stopping"])
def test_a_search_of_persons_under_replace_one_shows_their_number_and_not_that_of_rows(choice):
    """The public size is that of persons, of whom a fixed number is held out: 720 fits any number of rows."""
    for rows in (800, 900):  # of 300 persons, of whom 60 are held out
        X, y, _ = table(rows, rows)
        model = CellClassifier(
            **CELLS, dataset=Dataset(max_rows=3, table=str(rows)), relation="replace-one", size=240 * 3
        )
        grid = {"centers": [[[0.2, 0.2], [0.8, 0.8]], [[0.5, 0.5]]]}
        search = PrivateSearchCV(model, grid, selection_epsilon=1.0, choice=choice, runs=2)
        people = np.arange(rows) % 300 + rows * 1000
        search.fit(X, y, person=people)
        assert search.spent_ == search.quote_
        assert search.spent_.unit == Unit(name="person", max_rows=3)
