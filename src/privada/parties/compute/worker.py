"""What a worker of a cluster runs: one thread's work on one part, by the code that is installed there."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import SourceError
from privada.parties.compute.batch import Batch, Part
from privada.parties.compute.folds import Fold
from privada.parties.compute.tasks import Task
from privada.parties.compute.threads import Threads
from privada.parties.schema import Schema

ALONE = Threads(1)


def tell_versions() -> tuple[str, ...]:
    """All that the last bit of a float may depend on: versions and the kind of processor."""
    import llvmlite.binding as llvm
    import numba
    import pyarrow as pa

    from privada import __version__

    kind = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    return __version__, np.__version__, numba.__version__, pa.__version__, kind


def hold(value: Any) -> Any:
    """Keep a value on a worker: an address of a part, or a question's file."""
    return value


def open_frame(frame: Any, schema: Schema) -> Part:
    """A partition of a Dask collection as a part."""
    from privada.parties.sources import open_source

    return Part(open_source(frame, schema, None, None), schema)


def narrow(part: Part, mask: npt.NDArray[np.bool_]) -> Part:
    """Let only some rows count."""
    return part.only(mask)


def select(part: Part, names: tuple[str, ...]) -> Part:
    """Let only some columns be read."""
    return part.reading(names)


def remember_column(part: Part, name: str) -> Part:
    """The part, with the person of each row."""
    return replace(part, people=np.array(part.source.column(name)))


def people_of(part: Part) -> npt.NDArray[Any] | None:
    """The person of each row."""
    return part.people


def check_people(part: Part, digest: str) -> Part:
    """The part, if its persons are still those of a digest.

    A part whose worker was lost is read again, and a frame may be another one by then. Which rows are kept
    was chosen for the persons that the owner saw; of others, one could have any number of rows.
    """
    if digest_people(part.people) != digest:
        raise SourceError("The rows' persons have changed since they were loaded; load the owner again.")
    return part


def digest_people(people: npt.NDArray[Any] | None) -> str:
    """SHA-256 of the persons of all rows, in their order."""
    return sha256(repr(None if people is None else people.tolist()).encode()).hexdigest()


def count(part: Part) -> int:
    """Rows of a part that count; all are read."""
    return ALONE.counts([part])[0]


def read(part: Part) -> list[Batch]:
    """All rows of a part that count."""
    return list(part.batches())


def fold(part: Part, schema: Schema, task: Task, question: bytes, fold: Fold[Any], numbers: int) -> Any:
    """Join what a task makes of the batches of a part."""
    with np.errstate(all="ignore"):  # see `privada.parties.answering.answered`
        return ALONE.fold([part], schema, task.function(question), fold, numbers)


def join(fold: Fold[Any], *results: Any) -> Any:
    """Join results of several parts."""
    import copy

    joined = copy.deepcopy(results[0])  # others may read it, too
    for more in results[1:]:
        joined = fold.join(joined, more)
    return joined


def prepare(part: Part, schema: Schema, task: Task, question: bytes) -> list[Any]:
    """What a task makes of each batch of a part."""
    with np.errstate(all="ignore"):
        return list(ALONE.prepare([part], schema, task.function(question)))


def fold_prepared(prepared: list[Any], task: Task, question: bytes, fold: Fold[Any]) -> Any:
    """Join what a task makes of what was prepared of a part."""
    with np.errstate(all="ignore"):
        return ALONE.fold_prepared(prepared, task.function(question), fold)


def map_prepared(prepared: list[Any], task: Task, question: bytes) -> list[Any]:
    """What a task makes of each."""
    with np.errstate(all="ignore"):
        return list(ALONE.map_prepared(prepared, task.function(question)))


__all__ = [
    "check_people",
    "count",
    "digest_people",
    "fold",
    "fold_prepared",
    "hold",
    "join",
    "map_prepared",
    "narrow",
    "open_frame",
    "people_of",
    "prepare",
    "read",
    "remember_column",
    "select",
    "tell_versions",
]
