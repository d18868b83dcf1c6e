"""Transport in a declarative study: the ``[method]`` table becomes a learner.

::

    [method]
    name = "transport"
    owners = ["clinic", "hospital"]   # one or several; all of the study's by default
    target = "target.csv"             # public target rows, in the owners' features
    projection = "target"             # or "random": "target" shows the owners something of the target
    norm_bound = 1.0                  # with "random", unless rows are rescaled
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from privada._toml import Section
from privada.methods import _study
from privada.methods.transport.learner.default import default_map
from privada.methods.transport.learner.learn import TransportModel, learn
from privada.methods.transport.questions.statistics import ClassStatistics
from privada.parties.protocol import Learner
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee


def learner(
    section: Section, *, schemas: Mapping[str, Schema], guarantee: Guarantee, home: Path, seed: int = 0
) -> Learner[TransportModel]:
    """Make the learner that a study's ``[method]`` describes; another seed is another asking."""
    owners = section.array("owners") if "owners" in section else list(schemas)
    for owner in owners:
        _study.known(section, "owners", owner, schemas)
    target = _study.public_rows(section, "target", home)
    projection = section.string("projection", "target")
    components, radius = section.whole("n_components", None), section.number("norm_bound", None)
    section.done()
    schema = schemas[owners[0]]
    with section.blaming("target"):
        features = default_map(
            target, low=schema.box.low, projection=projection, components=components, norm_bound=radius
        )
        question = ClassStatistics(
            features=features,
            n_classes=len(schema.classes),
            guarantee=guarantee,
            salt=f"seed {seed}" if seed else "",
        )
        for owner in owners:
            question.fits(schemas[owner])
    return learn(dict.fromkeys(owners, question), target, classes=schema.classes.names)


__all__ = ["learner"]
