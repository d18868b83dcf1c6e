"""A study's ``[method]`` table becomes a learner; what is wrong in it is named by its key."""

import numpy as np
import pytest

from privada import Owner, run
from privada._toml import Section
from privada.exceptions import StudyError
from privada.methods.transport.example import example
from privada.methods.transport.method import Transport

CASE = example()


def made(text, tmp_path, **schemas):
    np.savetxt(tmp_path / "target.csv", CASE.fit_more["Xt"], delimiter=",")
    section = Section.parse(f"[method]\n{text}", name="study.toml").section("method")
    return Transport.inquire(
        section,
        schemas=schemas or {"clinic": CASE.schema},
        guarantee=CASE.questions[0].guarantee,
        home=tmp_path,
    )


def test_a_study_asks_every_owner(tmp_path):
    owners = {
        name: Owner(
            **CASE.data,
            schema=CASE.schema,
            dataset=name,
            budget=CASE.questions[0].guarantee,
            accounting="gaussian",
        )
        for name in ("clinic", "hospital")
    }
    model = run(made('target = "target.csv"', tmp_path, clinic=CASE.schema, hospital=CASE.schema), owners)
    assert len(model.releases) == 2
    assert len(model.to_dict()["labels"]) == len(CASE.fit_more["Xt"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('target = "nothing.csv"', "nothing.csv"),
        ('target = "target.csv"\nowners = ["nobody"]', "nobody"),
        ('target = "target.csv"\nprojection = "random"', "norm_bound"),
        ('target = "target.csv"\nprojekt = 1', "projekt"),
    ],
)
def test_mistakes_are_named(text, message, tmp_path):
    with pytest.raises(StudyError, match=message):
        made(text, tmp_path)
