"""One line says where every owner of a round is; who was left out is kept to the end."""

from privada.cli.studies.progress import Progress
from privada.exchange.asking import Step


def test_a_line_for_each_step_and_the_reasons_of_those_who_were_left_out():
    lines = []
    progress = Progress("Cells", lines.append)
    for number, owner, state, reason in [
        (1, "north", "asked", ""),
        (1, "south", "asked", ""),
        (1, "north", "answered", ""),
        (1, "south", "late", ""),
        (1, "south", "left out", "too late"),
        (2, "north", "asked", ""),
    ]:
        progress.note(Step(round=number, owner=owner, question="ab" * 32, state=state, reason=reason))
    assert lines[2] == "Cells, round 1: north done, south asked"
    assert lines[-1] == "Cells, round 2: north asked"
    assert progress.left_out == {"south": "too late."}
