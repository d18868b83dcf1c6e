"""Rows of the page of papers."""

from fnmatch import fnmatchcase

from privada.privacy.accounting.curves import gaussian_delta
from privada_lab.experiments import experiments
from privada_lab.experiments.papers.items import all_items
from privada_lab.experiments.papers.page import TITLES
from privada_lab.papers.reweighting import printed_mu


def test_every_row_names_a_paper_and_an_experiment_and_stands_once():
    items = all_items()
    assert {item.paper for item in items} == set(TITLES)
    assert {item.experiment for item in items} <= set(experiments())
    assert len({(item.paper, item.name) for item in items}) == len(items)


def test_a_true_delta_is_what_the_printed_noise_has():
    delta = gaussian_delta(15, printed_mu(15, 0.01))
    claims = {item.true for item in all_items() if item.paper == "003" and "(15, 0.01)" in item.true}
    assert claims
    assert all(f"at (15, 0.01) δ is {delta:.3f};" in claim for claim in claims)


def test_the_tables_of_every_paper_are_there():
    names = {(item.paper, item.name) for item in all_items()}
    assert {
        ("001", "Table 1"),
        ("001", "Table 2"),
        ("002", "Table 1"),
        ("002", "Table 2"),
        ("002", "Table 3"),
        *(("003", f"Table {number}") for number in (1, 2, 3, 4)),
        ("004", "Figure 1, top"),
    } <= names


def test_every_row_says_what_the_paper_prints():
    assert [item.name for item in all_items() if not item.printed] == []


def test_cells_are_of_exhibits_that_the_row_shows():
    for item in all_items():
        for cell in item.cells:
            title = cell.exhibit.replace("*", "")
            assert any(fnmatchcase(title, pattern) for pattern in item.exhibits), (item.name, cell)
