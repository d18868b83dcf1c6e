"""Every method says when it is the one to take, and no two say the same."""

from itertools import product

from privada.methods.method import methods
from privada.methods.situation import SIDES, WANTS, YOURS, Situation


def test_every_method_has_a_situation_in_known_words():
    for card in methods().values():
        assert card.situation is not None, card.name
        assert card.situation.want in WANTS
        assert card.situation.private in {"", *SIDES}
        assert card.situation.yours in {"", *YOURS}
        assert card.situation.because.endswith(".")


def test_a_complete_answer_leads_to_one_method_at_most():
    for private, yours in product(SIDES, YOURS):
        said = {"want": "model", "private": private, "yours": yours}
        assert len([card for card in methods().values() if card.situation.fits(**said)]) == 1
    for want in WANTS.keys() - {"model"}:
        assert len([card for card in methods().values() if card.situation.fits(want=want)]) <= 1


def test_what_is_not_said_is_left_open():
    one = Situation(want="model", private="target", yours="labelled", because="It fits.")
    assert one.fits(want="model")
    assert not one.fits(want="model", private="source")
