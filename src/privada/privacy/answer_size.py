"""The size of an answer's file, known from its question alone: no row decides whether it can be read.

A release that is larger than `wire.LARGEST_FILE` can be written, and charged, but nobody can load it;
nor one of so many arrays that its header passes `wire.LARGEST_HEADER`. Both are refused beforehand.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from privada.exceptions import InputError
from privada.privacy import wire

if TYPE_CHECKING:
    from privada.privacy.release import PublicSchema, Question

NUMBER_BYTES = 8  # bytes: payloads are double precision or 64-bit integers
OVERHEAD_BYTES = 1 << 16  # bytes for what the question does not know: receipt, signature, names


def header_bytes(question: Question) -> int:
    """Most bytes of a release's header: guarantee, price, a note and an entry for each array.

    Raises
    ------
    InputError
        If a number in it is not finite, so that no file could contain it.
    """
    shapes = question.answer_shapes()
    notes = {name: draw.note() for name, draw in question.plan.draws.items() if name in shapes}
    header = {
        "guarantee": question.guarantee.to_dict(),
        "price": question.price.to_dict(),
        "noise": notes,
    }
    last = wire.LARGEST_FILE
    entries = {
        name: {"dtype": "F64", "shape": shape, "data_offsets": [last, last]} for name, shape in shapes.items()
    }
    try:
        text = wire.canonical(header).decode()
    except ValueError:
        raise InputError("The answer to this question has a price that no file can hold.") from None
    return len(json.dumps({"__metadata__": {"privada": text}} | entries)) + OVERHEAD_BYTES


def answer_bytes(question: Question) -> int:
    """Most bytes of the file form of a question's release."""
    numbers = sum(math.prod(shape) for shape in question.answer_shapes().values())
    return header_bytes(question) + NUMBER_BYTES * numbers


def disclosed_bytes(question: Question, schema: PublicSchema) -> int:
    """Most bytes of the rows of a disclosure; raises `InputError` if nobody could load so many."""
    shapes = question.disclosed_shapes(schema)
    size = NUMBER_BYTES * sum(math.prod(shape) for shape in shapes.values())
    if size > wire.LARGEST_FILE:
        raise InputError(
            f"Expected a question for at most {wire.LARGEST_FILE:,} bytes of rows, got one for {size:,}; "
            "ask for fewer rows."
        )
    return size


def check_answer_size(question: Question) -> None:
    """Refuse a question whose release nobody could load."""
    if header_bytes(question) > wire.LARGEST_HEADER:
        count = len(question.answer_shapes())
        raise InputError(f"Expected an answer of fewer arrays, got {count:,}: nobody could load its file.")
    if (size := answer_bytes(question)) > wire.LARGEST_FILE:
        raise InputError(
            f"Expected an answer of at most {wire.LARGEST_FILE:,} bytes, got up to {size:,}: "
            "nobody could load its file."
        )


__all__ = ["answer_bytes", "check_answer_size", "disclosed_bytes", "header_bytes"]
