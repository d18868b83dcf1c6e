"""Owners as processes of their own: ``python -m privada.methods.summarization.processes owner.toml``.

The curator starts one process for each owner's file and talks to it through a pipe. What runs there is this
module: it opens the rows, the policy and the ledger that the file names, reads questions in their
file form, and writes releases, disclosures, refusals (before the rows were opened) or failures (after).
Nothing that comes through the pipe is executed. A process that dies is an owner that dropped out.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from privada.exceptions import AnswerError, InputError, PolicyError, PrivadaError, WireError
from privada.methods.summarization.nodes import OwnerNode, Transcript
from privada.parties.owner import Owner
from privada.parties.owner_file import OwnerFile
from privada.privacy import wire
from privada.privacy.receipt import Receipt
from privada.privacy.release import Disclosure, Question, Release

_LENGTH = struct.Struct(">Q")


class ProcessNode(OwnerNode):
    """An owner, or the consumer, in a process of its own.

    Parameters
    ----------
    name : str
    path : path
        Its ``owner.toml``. Only the schema is read here; rows, key and ledger are opened by the process.
    """

    def __init__(self, name: str, path: str | os.PathLike[str]) -> None:
        self.name = name
        self.view = Transcript(name)
        self._schema = OwnerFile.read(path).schema
        command = [sys.executable, "-m", __name__, str(Path(path).resolve())]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
        self._one_at_a_time = threading.Lock()

    @property
    def size(self) -> int:
        """The public number of rows."""
        if self._schema.size is None:
            raise InputError(f"{self.name}: a summary needs the schema's public size.")
        return self._schema.size

    def answer(self, question: Question) -> Release:
        """Ask the process for a release."""
        return Release.from_bytes(self._exchange(question, "", "release"))

    def disclose(self, question: Question, to: str) -> Disclosure:
        """Ask the process for rows."""
        header, arrays = wire.unpack(self._exchange(question, to, "disclosure"), kind="disclosure")
        try:
            receipt = Receipt.from_dict(header["receipt"])
            return Disclosure(
                rows=arrays, curator=header["curator"], question=header["question"], receipt=receipt
            )
        except (KeyError, TypeError):
            raise WireError("The reply is not a valid disclosure.") from None

    def _exchange(self, question: Question, to: str, wanted: str) -> bytes:
        asked = json.dumps({"to": to}).encode() + b"\n" + question.to_bytes()
        with self._one_at_a_time:
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            try:
                _send(self.process.stdin, asked)
                reply = _receive(self.process.stdout)
            except (BrokenPipeError, ValueError):
                reply = None
        if reply is None:
            raise ConnectionError(f"The process of {self.name} has ended.")
        kind, _, rest = reply.partition(b"\n")
        if kind.decode(errors="replace") != wanted:
            error = PolicyError if kind == b"refused" else AnswerError
            raise error(rest.decode(errors="replace")[:500])
        return rest

    def close(self) -> None:
        """Let the process end; one that has ended already may have left a question unread."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve(owner: Owner, questions: IO[bytes], replies: IO[bytes]) -> None:
    """Answer until the questions end."""
    while (asked := _receive(questions)) is not None:
        _send(replies, _reply(owner, asked))


def _reply(owner: Owner, asked: bytes) -> bytes:
    header, _, blob = asked.partition(b"\n")
    try:
        question, to = Question.from_bytes(blob), str(json.loads(header)["to"])
        if not question.discloses:
            return b"release\n" + owner.answer(question).to_bytes()
        disclosure = owner.disclose(question, to=to)
        plain: dict[str, Any] = {
            "curator": disclosure.curator,
            "question": disclosure.question,
            "receipt": disclosure.receipt.to_dict(),
        }
        return b"disclosure\n" + wire.pack("disclosure", plain, disclosure.rows)
    except AnswerError as error:
        return b"failed\n" + str(error).encode()
    except PrivadaError as error:
        return b"refused\n" + str(error).encode()
    except Exception as error:  # its message could show a row
        return b"failed\nfailed with " + type(error).__name__.encode()


def _send(stream: IO[bytes], blob: bytes) -> None:
    stream.write(_LENGTH.pack(len(blob)) + blob)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > wire.LARGEST_FILE:
        return None
    blob = stream.read(length)
    return blob if len(blob) == length else None


if __name__ == "__main__":
    serve(Owner.from_toml(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)

__all__ = ["ProcessNode", "serve"]
