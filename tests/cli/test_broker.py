"""``privada broker``: what it writes and says."""


def test_init_says_what_to_hand_over(cli, tmp_path):
    said = cli("broker", "init", tmp_path / "b", "--owner", "clinic", "--learner", "alice").stdout
    assert "owner-clinic: hand over" in said
    assert "privada broker serve" in said
    assert (tmp_path / "b/parties/owner-clinic/link.toml").exists()


def test_init_again_adds_a_party_and_changes_nothing_else(cli, tmp_path):
    folder = tmp_path / "b"
    first = cli.json("broker", "init", folder, "--owner", "clinic", "--port", "5000")
    assert first["urls"] == ["tls://localhost:5000"]
    second = cli.json("broker", "init", folder, "--learner", "bob")
    assert second["urls"] == first["urls"]
    assert [path.rpartition("/")[2] for path in second["parties"]][1:] == ["owner-clinic", "learner-bob"]
    assert "change port in its broker.toml" in cli("broker", "init", folder, "--port", "1", expect=2).stderr


def test_what_is_wrong_is_one_line(cli, tmp_path):
    assert "letters, digits" in cli("broker", "init", tmp_path / "b", "--owner", "a.b", expect=2).stderr
    assert not (tmp_path / "b" / "authority").exists()
    assert "no file" in cli("broker", "serve", tmp_path / "nothing", expect=2).stderr
    assert "no file" in cli("broker", "create", tmp_path / "link.toml", expect=2).stderr


def test_create_makes_the_exchange_of_a_link(cli, tmp_path, monkeypatch):
    from privada.exchange import broker

    called = []
    monkeypatch.setattr(broker, "create_exchange", lambda link, *, replicas: called.append((link, replicas)))
    (tmp_path / "link.toml").write_text("")
    assert cli.json("broker", "create", tmp_path / "link.toml", "--replicas", "3")["replicas"] == 3
    assert called == [(tmp_path / "link.toml", 3)]


def test_the_old_name_of_the_command_still_works_with_a_warning(cli, tmp_path):
    done = cli("link", "init", tmp_path / "b", "--owner", "clinic", "--json")
    assert done.stderr == "warning: privada link is now privada broker; the old name goes in 0.4.\n"
    assert (tmp_path / "b/parties/owner-clinic/link.toml").exists()
    assert "privada link" not in cli("--help").stdout
