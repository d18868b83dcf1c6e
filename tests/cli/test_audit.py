from dataclasses import replace

import pytest

from privada.methods import method


def test_a_sound_method_passes(cli):
    """With noise from the operating system; false alarm: 1e-6 for each of its questions."""
    plain = cli.json("audit", "cells", "--trials", "400", "--confidence", "0.999999")
    assert plain["passed"]
    assert len(plain["audits"]) == len(method("cells").example().questions)
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
