"""What the paper prints, beside what is measured."""

import pytest

from privada.report.tables import Table
from privada_lab.datasets.domain_pairs import CLASSIFICATIONS, REGRESSIONS, review_pairs
from privada_lab.experiments.reweighting import printed_tables


def test_every_pair_of_reviews_has_its_three_numbers():
    assert set(printed_tables.TABLE_3) == set(review_pairs())
    assert all(len(text.split(", ")) == 3 for text in printed_tables.TABLE_3.values())


def test_sets_are_named_as_their_readers_are():
    assert set(printed_tables.TABLE_1) == set(printed_tables.TABLE_2) == set(REGRESSIONS) - {"reviews"}
    assert set(printed_tables.TABLE_4) == {*CLASSIFICATIONS, "german"}


@pytest.mark.parametrize("head", ["the paper", "DM"])
def test_a_pair_is_found_by_two_cells(head):
    table = Table(title="t", columns=("source", "target"), rows=(("books", "dvd"), ("books", "hats")))
    found = printed_tables.beside_paper(table, printed_tables.TABLE_3, head)
    assert found.columns[-1] == head
    assert [row[-1] for row in found.rows] == ["0.929, 0.637, 0.761", ""]
