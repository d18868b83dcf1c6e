"""What is in the folder is checked before it is learned from."""

from privada.privacy import OwnerKey


def test_a_refusal_reaches_the_learner(cli, home, edit, learner, exchange):
    edit("clinic/owner.toml", "largest_share = 0.25", "largest_share = 0.1")
    cli("ask", "cells", learner, "--folder", exchange, expect=4)
    cli("answer", home / "clinic/owner.toml", "--folder", exchange, "--name", "clinic", expect=3)
    assert "at most 10.0% at once" in cli("learn", "cells", learner, "--folder", exchange, expect=3).stderr


def test_a_release_of_another_key_is_found(cli, home, learner, exchange):
    cli("ask", "cells", learner, "--folder", exchange, expect=4)
    cli("answer", home / "clinic/owner.toml", "--folder", exchange, "--name", "clinic")
    card = home / "schema.toml"
    text = card.read_text()
    pinned = text.split('public_key = "')[1][:64]
    card.write_text(text.replace(pinned, OwnerKey.generate().public))
    refused = cli("learn", "cells", learner, "--folder", exchange, expect=4).stderr
    assert "passed over: It was signed by another key than that of clinic." in refused
    card.write_text(text.replace(f'public_key = "{pinned}"', ""))
    assert "anyone may have signed" in cli("learn", "cells", learner, "--folder", exchange).stderr


def test_another_method_than_the_studys_is_refused(cli, learner, exchange):
    exchange.mkdir()
    assert "cells" in cli("learn", "transport", learner, "--folder", exchange, expect=2).stderr


def test_the_output_is_tried_before_anything_is_learned(cli, learner, exchange):
    exchange.mkdir()
    refused = cli("learn", "cells", learner, "--folder", exchange, "--out", learner, expect=2)
    assert "was not written by an earlier run" in refused.stderr
    assert not list(exchange.rglob("*.question"))
