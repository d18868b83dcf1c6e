import pytest

from privada.privacy import OwnerKey


@pytest.fixture
def answered(cli, home, tmp_path):
    exchange = tmp_path / "exchange"
    cli("ask", "cells", home / "study.toml", "--folder", exchange, expect=4)
    cli("answer", home / "clinic/owner.toml", "--folder", exchange, "--name", "clinic")
    (release,) = (exchange / "releases/clinic").glob("*.release")
    (question,) = (exchange / "questions/clinic").glob("*.question")
    return release, question


def test_a_release_explains_itself(cli, answered):
    release, question = answered
    text = cli("release", "show", release, "--question", question).stdout
    assert "each within ±3 with 95% confidence" in text
    plain = cli.json("release", "show", release, "--confidence", "0.5")
    low, high = plain["intervals"]["counts"]
    assert low[0][0] < plain["values"]["counts"][0][0] < high[0][0]


def test_what_does_not_hold_ends_with_5(cli, home, answered, tmp_path):
    release, _ = answered
    key = OwnerKey.generate().public
    assert "another owner's key" in cli("release", "show", release, "--public-key", key, expect=5).stderr
    other = home / "study.toml"
    other.write_text(other.read_text().replace("seed = 0", "seed = 9"))
    cli("ask", "cells", other, "--folder", tmp_path / "other", expect=4)
    (question,) = (tmp_path / "other/questions/clinic").iterdir()
    assert "another question" in cli("release", "show", release, "--question", question, expect=5).stderr
    blob = bytearray(release.read_bytes())
    blob[-1] ^= 1
    release.write_bytes(bytes(blob))
    cli("release", "show", release, expect=5)
