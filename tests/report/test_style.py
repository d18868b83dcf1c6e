"""The style: nothing is fetched, every colour that is used is defined, in light and in dark."""

import re

from privada.report.style import CSS


def defined(text):
    return set(re.findall(r"(--[\w-]+):", text))


def test_every_variable_that_is_used_is_defined_in_light_and_dark():
    used = set(re.findall(r"var\((--[\w-]+)\)", CSS)) - {"--p"}  # --p is set by each bar
    light, dark = (defined(block) for block in re.findall(r":root\{(.*?)\}", CSS, flags=re.DOTALL))
    assert used <= light == dark


def test_nothing_is_fetched():
    assert not re.search(r"url\(|@import|@font-face|http", CSS)


def test_braces_are_balanced():
    assert CSS.count("{") == CSS.count("}")


def test_the_pictures_use_these_variables():
    from privada.report.pictures import _MARKS

    assert {mark[4:-1] for mark in _MARKS.values()} <= defined(CSS)
