"""The example study is complete, private where it must be, and runs."""


def test_init_then_run(cli, tmp_path):
    written = cli.json("init", tmp_path / "new")["written"]
    assert {path.rpartition("/")[2] for path in written} >= {
        "study.toml",
        "owner.toml",
        "owner.key",
        "README.md",
    }
    assert len((tmp_path / "new" / "README.md").read_text().splitlines()) <= 15
    assert (tmp_path / "new" / "clinic" / "owner.key").stat().st_mode & 0o077 == 0
    assert "Releases" in cli("run", tmp_path / "new" / "study.toml").stdout
    assert "not empty" in cli("init", tmp_path / "new", expect=2).stderr


def test_a_file_or_a_full_folder_is_left_alone(cli, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("full", "file"):
        assert "not empty; name a new folder" in cli("init", tmp_path / name, expect=2).stderr
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    shown = cli("init", tmp_path / "empty").stdout
    assert f"Next: privada run {tmp_path / 'empty' / 'study.toml'}" in shown.replace("\n", "")
