"""Questions for raw rows: a policy must allow them, and what was sent before is not sent again."""

import math
import tracemalloc

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from privada.audit import replay
from privada.audit.transcript import witnessed
from privada.exceptions import InputError, PolicyError, WireError
from privada.methods.summarization import (
    EmbeddedRows,
    EmbeddingSum,
    FourierEmbedding,
    NearCount,
    Participation,
    RoundBids,
    RoundPoints,
    SummaryRows,
    mmd2,
)
from privada.methods.summarization.questions.rounds import NO_POINT
from privada.parties import Rows, Schema
from privada.parties.compute import batch as batch_module
from privada.privacy import ZCDP, ApproxDP, PureDP, Question, Unit
from privada.privacy.accounting import curves

E = FourierEmbedding.of(width=2, n_features=12, gamma=0.5, random_state=0)


RO, AR = "replace-one", "add/remove"


G = ApproxDP(epsilon=1, delta=1e-5, relation=RO)


def test_the_validation_mean_has_the_specified_noise():
    """privacy.md, section 5 (c): 2/(m mu); .0149 on a kernel mean at m = 500 and (1, 1e-5)."""
    question = EmbeddingSum(embedding=E, guarantee=G)
    sigma = math.sqrt(question.variance) / 500
    assert sigma == pytest.approx(2 * curves.gaussian_sigma(epsilon=1, delta=1e-5) / 500, rel=1e-4)
    assert sigma == pytest.approx(0.0149, abs=5e-5)


def test_sensitivities_follow_relation_and_unit():
    def reach(question):
        return next(iter(question.plan.draws.values())).sensitivity

    person = Unit(name="person", max_rows=3)
    for kind, more, moves in (
        (EmbeddingSum, {}, (1, 2)),
        (NearCount, {"direction": np.ones(12), "threshold": 0.0}, (1, 1)),
    ):
        for relation, move in zip((AR, RO), moves, strict=True):
            question = kind(embedding=E, guarantee=ZCDP(rho=1, relation=relation), **more)
            assert reach(question) == pytest.approx(move, rel=1e-4)
            many = kind(embedding=E, guarantee=ZCDP(rho=1, relation=relation, unit=person), **more)
            assert reach(many) == pytest.approx(3 * move, rel=1e-4)
    assert reach(EmbeddingSum(embedding=E, guarantee=PureDP(epsilon=1, relation=AR))) == pytest.approx(
        12**0.5
    )


DISCLOSING = [
    SummaryRows(embedding=E, target=np.zeros(12), size=3, variance=0.1, skip=2, guarantee=G),
    EmbeddedRows(embedding=E, target=np.zeros(12), size=3, guarantee=G),
    RoundBids(
        embedding=E, target=np.zeros(12), broadcast=np.ones(12), count=4, batch=2, sent=[1], guarantee=G
    ),
    RoundPoints(index=[0, 3], guarantee=G),
    Participation(size=10, dimension=12, batch=2, ask_share=0.5, guarantee=G),
]


@pytest.mark.parametrize("question", DISCLOSING, ids=lambda q: type(q).__name__)
def test_they_survive_the_wire(question):
    read = Question.from_bytes(question.to_bytes())
    assert read == question
    assert type(read) is type(question)


def test_rows_disclose_and_sums_do_not():
    assert [question.discloses for question in DISCLOSING] == [True, True, True, True, False]
    assert all("None" in q.__doc__ or "not differential privacy" in q.__doc__ for q in DISCLOSING[:4])
    assert not EmbeddingSum.discloses


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: EmbeddingSum(embedding=None, guarantee=G), "FourierEmbedding"),
        (lambda: NearCount(embedding=E, direction=np.ones(3), threshold=0, guarantee=G), "direction"),
        (lambda: NearCount(embedding=E, direction=np.full(12, np.nan), threshold=0, guarantee=G), "finite"),
        (lambda: NearCount(embedding=E, direction=np.ones(12), threshold=np.inf, guarantee=G), "threshold"),
        (lambda: SummaryRows(embedding=E, target=np.ones(12), size=0, guarantee=G), "size"),
        (lambda: SummaryRows(embedding=E, target=np.ones(12), size=1, variance=-1, guarantee=G), "variance"),
        (lambda: RoundPoints(index=[-1], guarantee=G), "index"),
        (lambda: Participation(size=3, dimension=12, ask_share=1.0, guarantee=G), "ask_share"),
        (lambda: Participation(size=3, dimension=12, guarantee=PureDP(epsilon=1, relation=RO)), "Gaussian"),
    ],
)
def test_bad_parameters_are_named(make, match):
    with pytest.raises(InputError, match=match):
        make()


def test_widths_are_checked_against_the_schema():
    schema = Schema.of_numbers(bounds=(0, 1), width=3)
    for question in (EmbeddingSum(embedding=E, guarantee=G), DISCLOSING[0], DISCLOSING[2]):
        with pytest.raises(InputError, match="width 3"):
            question.fits(schema)


def test_a_file_with_more_than_the_question_is_refused():
    blob = EmbeddingSum(embedding=E, guarantee=G).to_bytes()
    with pytest.raises(WireError):
        Question.from_bytes(blob[:-8])


@pytest.mark.parametrize("relation", [AR, RO])
def test_a_phase_beyond_floats_moves_no_sum_by_more_than_its_sensitivity(relation):
    """It was NaN, of which an integer is -2^63."""
    wild = FourierEmbedding(frequencies=np.array([[1e6, 1e6], [1e6, -1e6], [0.1, 0.0]]))
    schema = Schema.of_numbers(bounds=(-1e306, 1e306), width=2, size=3)
    rows = np.array([[1e306, 1e306], [1.0, 2.0], [1e306, -1e306]])
    other = rows[1:] if relation == AR else np.vstack([[[0.5, 0.5]], rows[1:]])
    for question in (
        EmbeddingSum(embedding=wild, guarantee=ZCDP(rho=0.5, relation=relation)),
        EmbeddingSum(embedding=wild, guarantee=PureDP(epsilon=1, relation=relation)),
        NearCount(
            embedding=wild, direction=np.ones(6), threshold=0.0, guarantee=ZCDP(rho=0.5, relation=relation)
        ),
    ):
        found = replay(question, Rows(rows, schema=schema), Rows(other, schema=schema))
        assert found.passed, found


def test_the_memory_of_an_embedding_does_not_follow_the_number_of_rows(monkeypatch, rehearsal):
    """Many frequencies made an answer fail at owners of many rows only: how many, the failure told."""
    wide = FourierEmbedding.of(width=2, n_features=400, gamma=0.5, random_state=0)
    schema = Schema.of_numbers(bounds=(-1, 1), width=2)
    X = np.random.default_rng(0).uniform(-1, 1, size=(3000, 2))
    claim = ZCDP(rho=0.5, relation=AR)
    for question in (
        EmbeddingSum(embedding=wide, guarantee=claim),
        NearCount(embedding=wide, direction=np.ones(400), threshold=0.0, guarantee=claim),
    ):
        calls = witnessed(question, Rows(X, schema=schema), rehearsal)[0]
        monkeypatch.setattr(batch_module, "AT_ONCE", 4000)
        tracemalloc.start()
        again = witnessed(question, Rows(X, schema=schema), rehearsal)[0]
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        monkeypatch.undo()
        assert np.array_equal(calls[0].exact, again[0].exact)
        assert most < 1_000_000  # all embedded rows are 10 MB


X = np.random.default_rng(0).normal(size=(60, 5))


@pytest.mark.parametrize("orthogonal", [True, False])
def test_rows_have_norm_one_and_products_are_the_kernel(orthogonal):
    embedding = FourierEmbedding.of(
        width=5, n_features=4000, gamma=0.2, orthogonal=orthogonal, random_state=1
    )
    H = embedding.transform(X)
    assert np.all(np.linalg.norm(H, axis=1) <= 1)
    assert np.allclose(np.linalg.norm(H, axis=1), 1, atol=1e-9)
    assert np.abs(H @ H.T - np.exp(-0.2 * cdist(X, X, "sqeuclidean"))).max() < 0.1


def test_orthogonal_frequencies_have_less_error():
    kernel = np.exp(-0.2 * cdist(X, X, "sqeuclidean"))

    def error(orthogonal, seed):
        made = FourierEmbedding.of(
            width=5, n_features=20, gamma=0.2, orthogonal=orthogonal, random_state=seed
        )
        H = made.transform(X)
        return np.mean((H @ H.T - kernel) ** 2)

    errors = np.array([[error(kind, seed) for kind in (True, False)] for seed in range(40)])
    assert errors[:, 0].mean() < 0.9 * errors[:, 1].mean()


def test_a_row_is_embedded_alike_wherever_it_stands():
    embedding = FourierEmbedding.of(width=5, n_features=30, gamma=0.2, random_state=1)
    alone = np.vstack([embedding.transform(row[None]) for row in X])
    assert embedding.transform(X).tobytes() == alone.tobytes()
    assert embedding.transform(X[::-1])[::-1].tobytes() == alone.tobytes()


def test_mmd_is_the_definition():
    Y = X[:20] + 0.5
    kernel = [np.exp(-0.3 * cdist(A, B, "sqeuclidean")).mean() for A, B in ((X, X), (X, Y), (Y, Y))]
    assert mmd2(X, Y, gamma=0.3) == pytest.approx(kernel[0] - 2 * kernel[1] + kernel[2])
    assert mmd2(X, X, gamma=0.3) == 0


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"n_features": 7}, "n_features to be even"),
        ({"gamma": 0}, "gamma > 0"),
        ({"width": 0}, "width"),
    ],
)
def test_bad_parameters_of_an_embedding_are_named(wrong, match):
    with pytest.raises(InputError, match=match):
        FourierEmbedding.of(**({"width": 2, "n_features": 8, "gamma": 1.0} | wrong))
    with pytest.raises(InputError, match="columns"):
        FourierEmbedding.of(width=2, n_features=8, gamma=1.0).transform(X)
    with pytest.raises(InputError, match="finite"):
        FourierEmbedding(frequencies=[[np.inf, 1.0]])


def question(matching, kind=SummaryRows, **more):
    settings = {"target": np.zeros(40), "size": 3} | more
    return kind(embedding=matching.embedding, guarantee=matching.owners, **settings)


def test_rows_go_to_a_named_curator_only(matching, made_owner):
    owner = made_owner(np.random.default_rng(0).normal(size=(30, 2)), name="o", seed=1)
    with pytest.raises(PolicyError, match="mallory"):
        owner.disclose(question(matching), to="mallory")
    assert owner.disclose(question(matching), to="curator").rows["X"].shape == (3, 2)
    embedded = owner.disclose(question(matching, EmbeddedRows), to="curator").rows
    assert set(embedded) == {"H"}
    assert embedded["H"].shape == (3, 40)


def test_skipped_rows_are_those_that_came_first(matching, made_owner):
    owner = made_owner(np.random.default_rng(0).normal(size=(30, 2)), name="o", seed=1)
    whole = owner.disclose(question(matching, size=5), to="curator").rows["X"]
    rest = owner.disclose(question(matching, size=3, skip=2), to="curator").rows["X"]
    assert np.array_equal(whole[2:], rest)
    assert len(owner.disclose(question(matching, size=99), to="curator").rows["X"]) == 30


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"size": 0}, "size"),
        ({"skip": -1}, "skip"),
        ({"size": 10**7, "skip": 1}, "size and skip"),
        ({"variance": -1.0}, "variance"),
        ({"target": np.zeros(3)}, "target"),
        ({"target": np.full(40, np.inf)}, "target"),
    ],
)
def test_bad_parameters_of_questions_for_rows_are_named(matching, bad, named):
    with pytest.raises(InputError, match=named):
        question(matching, **bad)


@pytest.mark.parametrize("size", [1, 7, 30, 99])
def test_no_disclosure_is_larger_than_its_question_says(matching, made_owner, size):
    """Its length on the way is that of these shapes, however many rows differ, with labels or without."""
    rng = np.random.default_rng(0)
    for X in (rng.normal(size=(30, 2)), np.ones((30, 2))):
        for y in (None, np.arange(30) % 2):
            owner = made_owner(X, y, name="o", seed=1)
            index = np.array([*range(min(size, 3)), NO_POINT])
            for asked in (
                question(matching, size=size),
                question(matching, EmbeddedRows, size=size),
                RoundPoints(index=index, guarantee=matching.owners),
                RoundBids(
                    embedding=matching.embedding,
                    target=np.ones(40),
                    broadcast=np.zeros(40),
                    count=3,
                    batch=size,
                    sent=index,
                    guarantee=matching.owners,
                ),
            ):
                shapes = asked.disclosed_shapes(owner.schema)
                disclosure = owner.disclose(asked, to="curator")
                assert disclosure.rows.keys() == shapes.keys()
                assert disclosure.most_bytes == 8 * sum(map(np.prod, shapes.values()))
                for name, array in disclosure.rows.items():
                    assert array.shape[1:] == shapes[name][1:]
                    assert len(array) <= shapes[name][0]
                    assert array.itemsize <= 8
