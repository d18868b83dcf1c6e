"""``privada reproduce papers``, with the cheapest of experiments."""

import pytest

from privada.exceptions import InputError
from privada_lab.experiments import papers
from privada_lab.experiments.papers.item import PaperItem


def test_the_page_is_written_from_what_experiments_find(tmp_path, monkeypatch):
    row = PaperItem(paper="000", name="σ", shows="noise", experiment="core", figures=("zcdp_*",))
    gone = PaperItem(paper="001", name="none", shows="", experiment="core", figures=("never",))
    monkeypatch.setattr(papers, "all_items", lambda: (row, gone))
    shown, minutes = papers.run(runs=1, out=tmp_path, quick=True)
    assert shown.value == 1
    assert "001 none" in shown.beside
    assert minutes.value > 0
    assert "`zcdp_rho_eps1_delta1e-5`" in (tmp_path / "papers.md").read_text()


def test_without_a_folder_for_the_page_nothing_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="--out DIR"):
        next(papers.run(runs=1))


def test_the_page_names_its_command_and_no_folder_of_the_machine(tmp_path):
    told = papers._command(tmp_path, quick=True, runs=1, only=("core",))
    assert told == "privada reproduce papers --quick --data DIR --only core"
    assert papers._command(None, quick=False, runs=3) == "privada reproduce papers --runs 3"
