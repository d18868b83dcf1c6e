import stat
import tomllib

import pytest

from privada.parties.permissions import LearnerCard
from privada.privacy import LearnerKey


def test_a_key_and_a_card(cli, tmp_path):
    made = cli.json("learner", "init", "alice", "--organisation", "Süd & Co", "--folder", tmp_path)
    key = LearnerKey.load(tmp_path / "alice.key")
    assert stat.S_IMODE((tmp_path / "alice.key").stat().st_mode) == 0o600
    card = LearnerCard.read(tmp_path / "alice.toml")
    assert card == LearnerCard(name="alice", organisation="Süd & Co", public_key=key.public)
    assert made["public_key"] == key.public
    assert "existing" not in cli("learner", "init", "alice", "--folder", tmp_path, expect=2).stderr
    assert LearnerKey.load(tmp_path / "alice.key") == key


def test_what_is_printed_can_be_pasted(cli, tmp_path):
    said = cli("learner", "init", "bob", "--folder", tmp_path).stdout
    pasted = tomllib.loads(said[said.index("[[learners]]") :])
    assert pasted["learners"] == [{"name": "bob", "key": LearnerKey.load(tmp_path / "bob.key").public}]


def test_a_passphrase(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("PRIVADA_KEY_PASSPHRASE", "correct horse")
    cli("learner", "init", "alice", "--folder", tmp_path, "--passphrase")
    assert b"ENCRYPTED" in (tmp_path / "alice.key").read_bytes()


@pytest.mark.parametrize("name", ["../alice", "a/b", "", ".alice", "a\nb", "x" * 65])
def test_a_name_is_no_path(cli, tmp_path, name):
    assert "Expected NAME" in cli("learner", "init", "--folder", tmp_path, "--", name, expect=2).stderr
    assert list(tmp_path.iterdir()) == []
