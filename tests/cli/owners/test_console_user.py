from privada.service.console.users import Users


def test_a_person_may_sign_in_afterwards(cli, home, monkeypatch):
    monkeypatch.setenv("PRIVADA_CONSOLE_PASSPHRASE", "correct horse")
    owner = home / "clinic/owner.toml"
    said = cli.json("owner", "console-user", owner, "Grace", "--role", "approver")
    assert said["role"] == "approver"
    user = Users(home / "clinic/console-users.json").sign_in("Grace", "correct horse")
    assert (user.name, user.role) == ("Grace", "approver")


def test_an_unknown_role_is_named(cli, home, monkeypatch):
    monkeypatch.setenv("PRIVADA_CONSOLE_PASSPHRASE", "correct horse")
    owner = home / "clinic/owner.toml"
    assert "one of viewer" in cli("owner", "console-user", owner, "G", "--role", "x", expect=2).stderr
