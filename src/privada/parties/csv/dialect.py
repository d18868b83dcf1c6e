"""How a CSV file is written: declared by whoever has it, never guessed from its values."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, fields
from typing import Any, Self

from privada._toml import Section
from privada.exceptions import InputError, SchemaError

NULL_WORDS = ("", "#N/A", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null")
COMPRESSIONS = {"gz": "gzip", "gzip": "gzip", "bz2": "bz2", "zst": "zstd", "zstd": "zstd", "none": None}
SUFFIXES = {".gz": "gz", ".bz2": "bz2", ".zst": "zst"}


@dataclass(frozen=True, kw_only=True)
class Dialect:
    r"""How a CSV file is written.

    Parameters
    ----------
    delimiter : str, default=","
        One character between fields; "\t" for a tab.
    quote : str, default='"'
        One character around fields, twice for itself; a quoted field may have line ends.
    encoding : str, default="utf-8"
        Any that Python knows: "latin-1", "cp1252", "utf-16".
    decimal : str, default="."
        One character before the fraction of a number.
    thousands : str, optional
        One character between groups of three digits.
    date_format : str, optional
        As for ``strptime``: "%d.%m.%Y". By default ISO dates and times.
    null : sequence of str
        Words that mean that a value is missing, exactly as they are written.
    compression : str, optional
        "gz", "bz2", "zst" or "none"; by default what the name of the file ends with.
    names : sequence of str, optional
        Names of the columns of a file without a header line.

    >>> Dialect(delimiter=";", decimal=",", encoding="cp1252").decimal
    ','
    """

    delimiter: str = ","
    quote: str = '"'
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str | None = None
    date_format: str | None = None
    null: tuple[str, ...] = NULL_WORDS
    compression: str | None = None
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "null", tuple(self.null))
        object.__setattr__(self, "names", None if self.names is None else tuple(self.names))
        self._check_characters()
        self._check_words()
        if self.compression not in {None, *COMPRESSIONS}:
            raise InputError(f"Expected compression to be gz, bz2, zst or none, got {self.compression!r}.")
        try:
            known = codecs.lookup(self.encoding)
        except (LookupError, ValueError, TypeError):
            raise InputError(
                f"Expected encoding to be one that Python knows, got {self.encoding!r}."
            ) from None
        if not known._is_text_encoding:
            raise InputError(f"Expected encoding to be one of text, got {self.encoding!r}.")

    def _check_characters(self) -> None:
        for name in ("delimiter", "quote", "decimal", "thousands"):
            character = getattr(self, name)
            if name == "thousands" and character is None:
                continue
            if not isinstance(character, str) or len(character) != 1 or ord(character) > 127:
                raise InputError(f"Expected {name} to be one ASCII character, got {character!r}.")
            if character.isalnum() or character in "\r\n+-":
                raise InputError(f"Expected {name} to be no letter, digit, sign or line end.")
        if self.quote in {self.delimiter, self.decimal, self.thousands}:
            raise InputError("Expected quote to differ from delimiter, decimal and thousands.")
        if self.decimal == self.thousands:
            raise InputError("Expected thousands to differ from decimal.")

    def _check_words(self) -> None:
        if not all(isinstance(word, str) for word in self.null):
            raise InputError("Expected null to be a list of words.")
        if self.date_format is not None and "%" not in self.date_format:
            raise InputError(f'Expected date_format as in "%d.%m.%Y", got {self.date_format!r}.')
        if self.names is not None and (len(set(self.names)) != len(self.names) or not all(self.names)):
            raise InputError("Expected names to be those of all columns, each once.")

    @classmethod
    def from_section(cls, section: Section) -> Self:
        """Read ``[data.csv]``."""
        keys = [field.name for field in fields(cls) if field.name in section]
        lists = ("null", "names")
        with section.blaming(*keys or ["delimiter"]):
            header = section.flag("header", "names" not in section)
            if header == ("names" in section):
                section.fail("header", "a file without a header needs names, and one with a header none.")
            given: dict[str, Any] = {
                key: tuple(section.array(key)) if key in lists else section.string(key) for key in keys
            }
            made = cls(**given)
        section.done()
        return made

    def to_dict(self) -> dict[str, Any]:
        """Plain form: what differs from the default."""
        differing = [field for field in fields(self) if getattr(self, field.name) != field.default]
        return {field.name: getattr(self, field.name) for field in differing}

    @property
    def is_utf8(self) -> bool:
        """Whether the encoding is UTF-8 by any of its names, with a byte order mark or not."""
        return codecs.lookup(self.encoding).name in {"utf-8", "utf-8-sig"}

    def compression_of(self, name: str) -> str | None:
        """Arrow's name of the compression of a file of this name."""
        ending = next((SUFFIXES[end] for end in SUFFIXES if name.lower().endswith(end)), "none")
        return COMPRESSIONS[self.compression or ending]

    def check_categories(self, name: str, values: tuple[Any, ...]) -> None:
        """Refuse a category one of whose values is also a word for a missing one."""
        if clash := sorted(set(self.null) & {value for value in values if isinstance(value, str)}):
            raise SchemaError(
                f"Column {name!r} has the category {clash[0]!r}, which is also a word for a missing value; "
                "declare other words by null under [data.csv]."
            )


def is_csv(name: str) -> bool:
    """Whether a file is CSV by its name, in capitals or not, compressed or not.

    >>> is_csv("EXPORT.CSV.GZ"), is_csv("rows.parquet")
    (True, False)
    """
    lower = name.lower()
    for end in SUFFIXES:
        lower = lower.removesuffix(end)
    return lower.endswith(".csv")


__all__ = ["NULL_WORDS", "Dialect", "is_csv"]
