"""What a terminal may see of text that others wrote, and how much of it a message carries."""

import json
import unicodedata

import pytest

from privada._check import positive
from privada._text import (
    LONGEST_VALUE,
    bounded,
    escape_in_html,
    escape_in_json,
    printable,
    printable_line,
    quoted,
)
from privada._toml import Section
from privada.exceptions import InputError, StudyError

EVERYTHING = "".join(map(chr, range(0x3000)))
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def test_no_control_character_is_left():
    shown = printable(EVERYTHING + "\ud800\udfff")
    assert {char for char in shown if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")} == {"\t", "\n"}
    assert not set(BIDI) & set(shown)
    assert not {"\t", "\n"} & set(printable_line(EVERYTHING))


def test_ordinary_text_stays():
    said = "ε = 0.5, añb, 数据, emoji \U0001f469\u200d\U0001f52c, \\x1b"
    assert printable(said) == said
    assert printable_line(said) == said


def test_what_is_written_out():
    assert printable("\x1b]0;title\x07\r\x9b") == r"\x1b]0;title\x07\r\x9b"
    assert printable_line("a\nb\tc\u202e") == r"a\nb\tc\u202e"


def test_json_reads_back_as_the_same_value():
    plain = {"\x9b name": EVERYTHING + "\ud800", "n": 1.5}
    text = escape_in_json(json.dumps(plain, ensure_ascii=False, indent=2))
    assert json.loads(text) == plain
    assert text == printable(text)
    text.encode("utf-8")


def test_a_page_escapes_markup_and_control_characters():
    assert escape_in_html('<b onclick="x">\x1b') == "&lt;b onclick=&quot;x&quot;&gt;\\x1b"


@pytest.mark.parametrize("length", [0, 39, 40, 41, 1000])
def test_bounded_text_keeps_both_ends(length):
    text = "".join(chr(97 + i % 26) for i in range(length))
    short = bounded(text, most=40)
    assert len(short) == min(length, 40)
    assert bounded(short, most=40) == short
    assert text.startswith(short[:10])
    assert text.endswith(short[-10:])


@pytest.mark.parametrize(
    "value", ["x" * 10**6, [0.0] * 10**5, {"a": "b" * 10**4}], ids=["text", "list", "table"]
)
def test_a_quoted_value_is_short(value):
    assert len(quoted(value)) <= LONGEST_VALUE
    with pytest.raises(InputError) as caught:
        positive(epsilon=value)
    assert len(str(caught.value)) < LONGEST_VALUE + 80
    assert str(caught.value).startswith("Expected epsilon > 0 and finite, got ")


@pytest.mark.parametrize("value", [10**400, 10**5000], ids=["400 digits", "5000 digits"])
def test_numbers_beyond_floats_are_named(value):
    with pytest.raises(InputError, match="Expected epsilon > 0 and finite"):
        positive(epsilon=value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"epsilon = {'9' * 400}", "line 1, epsilon: expected a number below 1.8e308"),
        (f"epsilon = {'9' * 5000}", "a number is too long"),
        ("epsilon = " + "[" * 100_000, "nested too deeply"),
        (f"epsilon = '{'x' * 10**6}'", "line 1, epsilon: expected a number, got 'xxx"),
    ],
    ids=["too large", "too long", "too deep", "too wordy"],
)
def test_extreme_toml_is_named(text, message):
    with pytest.raises(StudyError, match=message) as caught:
        Section.parse(text, name="owner.toml").number("epsilon")
    assert len(str(caught.value)) < 300
