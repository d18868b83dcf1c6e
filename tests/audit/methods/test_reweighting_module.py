"""Audits of PNCnvxAdap on torch modules: replays pass, black-box bounds stay within the claim.

Noise is seeded. False alarm of a black-box audit: 1e-2 over seeds; of a replay: none.
"""

from dataclasses import replace

import numpy as np
import pytest

from privada.audit import Sample, across_batches, audit_question, landmarks, neighbours, replay
from privada.audit.transcript import coupled
from privada.methods.reweighting import ModuleAdaptation, Penalties
from privada.methods.reweighting.questions import network
from privada.parties import Category, Number, Rows, Schema
from privada.privacy import ApproxDP, Relation

torch = pytest.importorskip("torch")

N, WIDTH = 12, 4
RNG = np.random.default_rng(3)
SOURCE, TARGET = RNG.uniform(-1, 1, size=(10, WIDTH)), RNG.uniform(-1, 1, size=(N, WIDTH))
CLAIM = ApproxDP(epsilon=2.0, delta=1e-5, relation="replace-one")
CLASSES = Schema.of_numbers(
    bounds=(-1.0, 1.0), width=WIDTH, size=N, label=Category(name="label", values=("a", "b"))
)
NUMBERS = replace(CLASSES, label=Number(name="label", low=-1.0, high=1.0))


def modules():
    torch.manual_seed(0)
    dense = torch.nn.Sequential(torch.nn.Linear(WIDTH, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))
    folded = torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, 2, 2)),
        torch.nn.Conv2d(1, 2, 2),
        torch.nn.Flatten(),
        torch.nn.ReLU(),
        torch.nn.Linear(2, 2),
    )
    return (
        dense,
        folded,
        torch.nn.Sequential(torch.nn.Linear(WIDTH, 2), torch.nn.ELU(), torch.nn.Linear(2, 1)),
    )


def asked(module, labels, loss, **more):
    settings = {
        "size": N,
        "network": {"layers": network.declare(module)},
        "start": network.flat(module),
        "source": SOURCE,
        "source_labels": labels,
        "mean": np.zeros(WIDTH),
        "scale": np.ones(WIDTH),
        "penalties": Penalties(alpha=0.3, kappa1=0.5, kappa2=0.1),
        "loss": loss,
        "clip": 0.3,
        "A": 2.0,
        "steps": 3,
        "guarantee": CLAIM,
    }
    return ModuleAdaptation(**(settings | more))


def cases():
    dense, folded, single = modules()
    codes, letters = (SOURCE[:, 0] > 0).astype(float), np.where(TARGET[:, 0] > 0, "b", "a")
    for name, module in (("dense", dense), ("convolution", folded)):
        yield name, asked(module, codes, "cross-entropy"), Sample.of(TARGET, y=letters, schema=CLASSES)
    squared = asked(single, SOURCE[:, 0], "squared", stopping="average")
    yield "squared", squared, Sample.of(TARGET, y=TARGET[:, 0], schema=NUMBERS)


CASES = list(cases())


def replays(question, sample):
    rng, marks = np.random.default_rng(0), landmarks(question, sample.schema)
    for pair in neighbours(sample, relation=Relation.REPLACE_ONE, rng=rng, landmarks=marks):
        rows, neighbour = pair.sample.rows(coupled(0)), pair.neighbour.rows(coupled(1))
        yield replay(question, rows, neighbour, pair=pair.name), rows, neighbour
    pair = across_batches(sample, relation=Relation.REPLACE_ONE)
    yield replay(question, pair.sample.rows(), pair.neighbour.rows(), pair=pair.name), None, None


@pytest.mark.parametrize(("question", "sample"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_every_replay_passes(question, sample):
    shares = []
    for result, _, _ in replays(question, sample):
        assert result.passed, str(result)
        shares.append(result.share)
    assert max(shares) > 0.2


@pytest.mark.statistical
@pytest.mark.parametrize(("question", "sample"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_every_black_box_bound_stays_within_the_claim(question, sample, rehearsal):
    found = [each for each in replays(question, sample) if each[1] is not None]
    _, rows, neighbour = max(found, key=lambda each: each[0].share)
    result = audit_question(question, rows, neighbour, trials=120, noise=rehearsal)
    assert result.passed, str(result)


@pytest.mark.statistical
def test_a_good_part_of_the_claim_is_seen(rehearsal):
    """One row alone, whose label turns round, one step of a linear model: the auditor sees a good part."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(WIDTH, 1))
    settings = {"size": 1, "steps": 1, "A": 100.0, "guarantee": replace(CLAIM, epsilon=8.0)}
    question = asked(module, SOURCE[:, 0], "squared", **settings)
    schema = replace(NUMBERS, size=1)
    sides = [Rows(np.full((1, WIDTH), 0.9), schema=schema, y=np.array([y])) for y in (-1.0, 1.0)]
    result = audit_question(question, *sides, trials=800, noise=rehearsal)
    assert result.passed, str(result)
    assert result.epsilon_lower > 1


def test_a_clip_that_is_not_enforced_is_caught(monkeypatch):
    """The same steps with gradients as they come: a replay sees the sum move too far."""
    from privada.methods.reweighting.owner import module_steps

    question, sample = CASES[0][1:]

    def unclipped(gradients, factors, clip, grid):
        return grid.truncate(gradients * factors[:, None]).sum(axis=0)

    monkeypatch.setattr(module_steps, "clipped", unclipped)
    assert not all(result.passed for result, _, _ in replays(question, sample))
