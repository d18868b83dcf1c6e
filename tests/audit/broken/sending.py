"""Messages that tell a reader of the exchange something of an owner's rows."""

import json
import os

from .exhibit import protocol

ROWS, NEIGHBOUR = [3, 1, 4, 1, 5, 9], [3, 1, 4, 2, 5, 9]  # five and six different rows


def sealed(plain):
    """What a reader sees of a sealed message: random bytes, 28 more than were sealed."""
    return os.urandom(len(plain) + 28)


@protocol(ROWS, NEIGHBOUR)
def numbers_of_sent_points_in_the_open(rows):
    """The curator tells an owner which of its points it has sent: exact, of its rows, and readable by all."""
    sent = [at for at, row in enumerate(rows) if row in rows[:at]] or [0]
    yield "to-owner/bids.json", json.dumps({"count": 5, "sent": sent}).encode()


@protocol(ROWS, NEIGHBOUR)
def disclosure_as_long_as_its_rows(rows):
    """A disclosure is sealed, and as long as the owner has different rows."""
    yield "to-curator/rows.sealed", sealed(json.dumps(sorted(set(rows))).encode())


@protocol(ROWS, NEIGHBOUR)
def size_beside_the_seal(rows):
    """The content is padded before it is sealed; the envelope states its size in the clear."""
    envelope = {"rows": len(set(rows))}
    yield "to-curator/rows.sealed", json.dumps(envelope).encode() + sealed(bytes(512))


@protocol(ROWS, NEIGHBOUR)
def as_many_files_as_different_rows(rows):
    """Each different row is sealed in a file of its own, all of one length: their number tells."""
    yield from (("to-curator/row.sealed", sealed(bytes(64))) for _ in set(rows))


@protocol(ROWS, NEIGHBOUR)
def folder_by_the_content(rows):
    """Where a sealed file lies says whether the owner has more than five different rows."""
    yield f"to-curator/{'many' if len(set(rows)) > 5 else 'few'}", sealed(bytes(512))
