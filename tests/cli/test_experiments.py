"""The demonstration, the audit and the experiments."""

import json
from dataclasses import replace
from importlib import metadata

import pytest

from privada.methods.method import find_method


def test_demo_shows_rows_ledger_and_page(cli, tmp_path):
    text = cli("demo", "--out", tmp_path / "out").stdout
    assert "ε = 1 (pure), add/remove one row" in text
    assert "Ledger lines of cells" in text

    assert str(tmp_path / "out" / "index.html") in text.replace("\n", "")
    assert "<svg" in (tmp_path / "out" / "index.html").read_text()


def test_demo_as_json_without_page(cli, tmp_path):
    plain = cli.json("demo", "--no-page", "--out", tmp_path / "out", "--seed", "3")
    assert plain["page"] is None
    assert not (tmp_path / "out").exists()
    (row,) = [row for row in plain["rows"] if row["method"] == "cells"]
    assert row["stamps"] == []
    assert row["without"] + 30 < row["ours"] <= row["clear"] + 5
    lines = row["ledger"]["datasets"]["digits"]["lines"]
    assert [line["kind"] for line in lines] == ["budget", "charge"]


def test_a_sound_method_passes(cli):
    """With noise from the operating system; false alarm: 1e-6 for each of its questions."""
    plain = cli.json("audit", "cells", "--trials", "400", "--confidence", "0.999999")
    assert plain["passed"]
    assert len(plain["audits"]) == len(find_method("cells").example().questions)
    assert all(audit["blackbox"]["trials"] == 400 for audit in plain["audits"])
    assert all(audit["laws"]["tests"] > 0 for audit in plain["audits"])


def test_what_leaks_is_found(cli, monkeypatch):
    """A mechanism that draws a tenth of its noise: the auditor must see it."""
    from privada.privacy.mechanism import Laplace

    honest = Laplace._integers

    def careless(self, shape, noise):
        return honest(replace(self, scale=self.scale / 10), shape, noise)

    monkeypatch.setattr(Laplace, "_integers", careless)
    failed = cli("audit", "cells", "--trials", "1000", expect=6)
    assert "FAILED" in failed.stdout


@pytest.mark.parametrize("wrong", [("magic",), ("cells", "--trials", "3"), ("cells", "--confidence", "2")])
def test_wrong_arguments(cli, wrong):
    cli("audit", *wrong, expect=2)


PACKAGE = """
from types import SimpleNamespace

from privada.report.exhibit import Figure


class Experiment(SimpleNamespace):
    name, title, files = "coin", "How often a coin shows heads", ("coins.csv",)

    def count(self, runs, *, quick):
        return runs or (2 if quick else 10)

    def taken(self, **settings):
        return {}

    def jobs(self, jobs):
        return jobs

    def skipped(self, *, pictures):
        return ["a picture of the coin"] if pictures else []

    def run(self, *, runs, data, track):
        for _ in track(range(runs), "throws"):
            pass
        yield Figure("share_of_heads", 0.5, 0.5, "higher", "a fair coin", runs)


def experiments():
    return {"coin": Experiment()}
"""


@pytest.fixture
def other_package(tmp_path, monkeypatch):
    """Install a package with one experiment, as an installer would."""
    site = tmp_path / "site"
    info = site / "coin_experiments-0.1.0.dist-info"
    info.mkdir(parents=True)
    (site / "coin_experiments.py").write_text(PACKAGE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: coin-experiments\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[privada.experiments]\ncoin = coin_experiments:experiments\n")
    monkeypatch.syspath_prepend(site)


@pytest.fixture
def no_packages(monkeypatch):
    """Hide the experiments of all installed packages."""
    entry_points = metadata.entry_points
    monkeypatch.setattr(
        metadata,
        "entry_points",
        lambda *, group: () if group == "privada.experiments" else entry_points(group=group),
    )


@pytest.mark.parametrize("words", [(), ("core",), ("core", "--json")])
def test_without_experiments_one_sentence_says_how_to_install_them(cli, no_packages, words):
    refusal = cli("reproduce", *words, expect=2)
    assert "privada-lab, which is not installed: run pip install ./lab" in " ".join(refusal.stderr.split())
    assert refusal.stdout == ""


def test_experiments_of_another_package_are_listed_and_run(cli, other_package, tmp_path):
    assert {"name": "coin", "what it shows": "How often a coin shows heads"} in cli.json("reproduce")[
        "experiments"
    ]
    (figure,) = cli("reproduce", "coin", "--quick", "--json").stdout.splitlines()
    assert json.loads(figure) | {"interval": None} == {
        "figure": "share_of_heads",
        "value": 0.5,
        "goal": 0.5,
        "better": "higher",
        "beside": "a fair coin",
        "runs": 2,
        "interval": None,
    }
    assert "share_of_heads" in cli("reproduce", "coin").stdout
    assert "coin" in cli("reproduce", "everything", expect=2).stderr


def test_out_keeps_figures_and_says_what_is_left_out(cli, other_package, tmp_path):
    run = cli("reproduce", "coin", "--json", "--out", tmp_path / "out")
    assert (tmp_path / "out" / "figures.jsonl").read_text() == run.stdout
    assert "a picture of the coin" in run.stderr


def test_a_data_folder_is_looked_through(cli, other_package, tmp_path):
    (tmp_path / "coins.csv").touch()
    files = {row["file"]: row for row in cli.json("reproduce", "--data", tmp_path)["files"]}
    assert files["coins.csv"] == {"file": "coins.csv", "there": "yes", "read by": "coin"}
    assert "--data: there is no folder" in cli("reproduce", "coin", "--data", "nowhere", expect=2).stderr
