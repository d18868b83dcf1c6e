"""``privada reproduce`` without the lab, and with experiments of another package."""

import json
from importlib import metadata

import pytest

PACKAGE = """
from types import SimpleNamespace

from privada.report.figure import Figure


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
