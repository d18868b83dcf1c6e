"""Results of contenders on splits, one JSON object a line: a long run can be stopped and continued."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from privada.exceptions import InputError

NAME = "results.jsonl"
TIME_LIMIT = "time limit"
Key = tuple[str, str, float | None, int]


@dataclass(frozen=True, kw_only=True)
class Record:
    """What one contender did on one split of one pair.

    Attributes
    ----------
    epsilon : float or None
        None where nothing is spent.
    rows, features, tests : int
        Private rows, encoded features, test rows.
    error : float or None
        None where there is none: ``failed`` says why.
    balanced, majority : float or None
        Mean error over the classes, and the share of the largest class among the test rows.
    seconds : float
    forecast, band
        Expected error over that of doing nothing, and the interval that holds it with 80 %, if there are any.
    failed : str
        Empty, "time limit", or the name of an error.
    """

    pair: str
    contender: str
    epsilon: float | None
    split: int
    rows: int
    features: int
    tests: int
    error: float | None = None
    balanced: float | None = None
    majority: float | None = None
    seconds: float = 0.0
    forecast: float | None = None
    band: tuple[float, float] | None = None
    failed: str = ""

    @property
    def key(self) -> Key:
        """What it is the result of."""
        return self.pair, self.contender, self.epsilon, self.split

    def to_line(self) -> str:
        """One JSON object."""
        return json.dumps(asdict(self))

    @classmethod
    def from_line(cls, line: str) -> Record:
        """Read back."""
        plain = json.loads(line)
        band = plain.get("band")
        return cls(**plain | {"band": None if band is None else tuple(band)})


@dataclass(eq=False)
class Results:
    """Records by what they are the results of; the last one of a key counts.

    >>> shared = {"pair": "p", "split": 0, "rows": 9, "features": 2, "tests": 5}
    >>> found = Results([Record(contender="c", epsilon=1.0, error=0.5, **shared)])
    >>> found.mean("p", "c", 1.0, [0]), found.mean("p", "c", 2.0, [0])
    (0.5, None)
    """

    records: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._known = {each.key: each for each in self.records}

    @classmethod
    def read(cls, folder: Path | None) -> Results:
        """Those of a folder; none where there is none yet. A line cut short by a stop is left out."""
        path = None if folder is None else folder / NAME
        if path is None or not path.exists():
            return cls()
        lines = path.read_text(encoding="utf-8").splitlines()
        records = []
        for number, line in enumerate(lines, start=1):
            try:
                records.append(Record.from_line(line))
            except (ValueError, TypeError):
                if number < len(lines):
                    raise InputError(f"{NAME}: line {number} is no result.") from None
        return cls(records)

    def settled(self, key: Key, limit: float | None) -> bool:
        """Whether there is a result, and not one that was given up sooner than it would be now."""
        found = self._known.get(key)
        if found is None or found.failed != TIME_LIMIT:
            return found is not None
        return limit is not None and found.seconds >= limit

    def __iter__(self) -> Iterator[Record]:
        return iter(self._known.values())

    def add(self, records: Iterable[Record]) -> None:
        """Further ones."""
        for each in records:
            self._known[each.key] = each

    def get(self, pair: str, contender: str, epsilon: float, split: int) -> Record | None:
        """The result at an epsilon; of one that spends nothing it is the same at every epsilon."""
        found = self._known.get((pair, contender, epsilon, split))
        return self._known.get((pair, contender, None, split)) if found is None else found

    def splits(self, pair: str, contender: str, epsilon: float) -> list[int]:
        """Splits on which a contender has an error."""
        numbers = {each.split for each in self if each.pair == pair and each.contender == contender}
        found = {number: self.get(pair, contender, epsilon, number) for number in sorted(numbers)}
        return [number for number, each in found.items() if each is not None and each.error is not None]

    def mean(
        self, pair: str, contender: str, epsilon: float, splits: Iterable[int], what: str = "error"
    ) -> float | None:
        """Mean error over these splits, or None if one lacks; or that of another number."""
        found = [self.get(pair, contender, epsilon, split) for split in splits]
        numbers = [None if each is None else getattr(each, what) for each in found]
        known = [each for each in numbers if each is not None]
        return math.fsum(known) / len(known) if known and len(known) == len(numbers) else None


def append(folder: Path, record: Record) -> None:
    """Write one record behind the others: a line at once, so that processes can share the file."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / NAME).open("a", encoding="utf-8") as file:
        file.write(record.to_line() + "\n")


__all__ = ["NAME", "TIME_LIMIT", "Record", "Results", "append"]
