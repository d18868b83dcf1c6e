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
