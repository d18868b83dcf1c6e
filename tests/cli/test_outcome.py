"""Results as JSON, file and page; files are tried before anything is charged."""

import json

import pytest

from privada.cli.studies.outcome import MARKS, _numbers, prepare
from privada.exceptions import InputError


def charges(cli, home):
    """The number of charges to the example's clinic."""
    shown = cli.json("ledger", "show", home / "clinic/ledger.sqlite", "--key", home / "clinic/owner.key")
    return [line["kind"] for line in shown["datasets"]["patients"]["lines"]].count("charge")


def test_the_result_as_json_as_file_and_as_page(cli, home, tmp_path):
    study, out, page = home / "study.toml", tmp_path / "deep" / "result.json", tmp_path / "page.html"
    plain = cli.json("run", study, "--out", out, "--page", page)
    assert plain == json.loads(out.read_text())
    assert plain["guarantee"]["epsilon"] == 1.0
    assert plain["stamps"] == []
    counts = plain["result"]["tables"][0]["counts"]
    assert {name: len(column) for name, column in counts.items()} == {"well": 12, "ill": 12}
    assert [line["kind"] for line in plain["ledgers"]["clinic"]["datasets"]["patients"]["lines"]] == [
        "charge"
    ]
    html = page.read_text()
    assert "ε = 1 (pure), add/remove one row" in html
    assert "http" not in html.replace("http-equiv", "").replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_the_output_is_checked_before_anything_is_charged(cli, home):
    cli("run", home / "study.toml", "--out", home, expect=2)
    assert charges(cli, home) == 0


@pytest.mark.parametrize("flag", ["--out", "--page"])
def test_a_mistyped_output_takes_nothing_with_it(cli, home, flag):
    study, ledger = home / "study.toml", home / "clinic" / "ledger.sqlite"
    before = ledger.read_bytes()
    for file in (ledger, study, home / "clinic" / "owner.key"):
        assert "not written by an earlier run" in cli("run", study, flag, file, expect=2).stderr
    assert ledger.read_bytes() == before
    assert "cannot be written" in cli("run", study, flag, "/proc/privada-result", expect=2).stderr
    result = home / "result"
    for _ in range(2):  # an earlier result may be replaced
        cli("run", study, flag, result)
    assert result.stat().st_size > 100


def test_preparing_leaves_no_trace_and_makes_folders(tmp_path):
    prepare(tmp_path / "deep" / "result.json", None)
    assert (tmp_path / "deep").is_dir()
    assert not list((tmp_path / "deep").iterdir())


@pytest.mark.parametrize("text", MARKS)
def test_only_what_an_earlier_run_wrote_is_replaced(tmp_path, text):
    file = tmp_path / "result"
    file.write_text(" " * 2000 + text)
    with pytest.raises(InputError, match="not written by an earlier run"):
        prepare(file)
    file.write_text(text)
    prepare(file)
    assert file.read_text() == text


def test_a_model_is_named_in_tables_and_written_out_in_json():
    plain = {"hypothesis": {"form": "network", "weights": [1.0]}, "guarantee": "ε = 1", "error": 0.1}
    assert _numbers(plain) == {"hypothesis": "network, written out in the JSON", "error": 0.1}
    plain["hypothesis"]["reason"] = "not improved"
    assert _numbers(plain)["hypothesis"] == "not improved"
