"""Shift pairs of ordinary tables, on which defaults are held against trivial rivals.

Half of the pairs are for development: look at them as often as you like. The other half is for final figures
alone, and no setting of a method may be chosen by them. Which is which was fixed before any method was run on
them: what had been looked at before (wines by colour, bikes by year, banks by contact, a hospital, splits of
the papers) went to development, and within each table different splits or labels were dealt out in turn. Both
directions of one split are in one half.

Private sides have 100 to 5,000 rows and 9 to 135 features after encoding; other rows of the same side, at
most 3,000, test. `privada_lab.datasets.table_split` says how rows are encoded, and
`privada_lab.datasets.table_readers` what the columns' public bounds are. Most
tables are read from local copies under a data folder and nothing of
them is part of this package; scikit-learn's are always there.

>>> len(table_pairs()), len(table_pairs("development")), len(table_pairs("final"))
(35, 17, 18)
>>> split = table_pair("diabetes: younger to older").split(None, seed=0)
>>> split.train.X.shape, len(split.test), split.label_bounds
((100, 9), 115, (25, 350))
"""

from __future__ import annotations

import numpy as np

from privada.exceptions import InputError
from privada.parties.schema import Category, Number
from privada_lab.datasets import table_readers as read
from privada_lab.datasets.table_readers import above_median, is_one_of, without
from privada_lab.datasets.table_split import HALVES, NumberBySource, Table, TablePair, TablePart, TableSplit

_YES = ("no", "yes")
_GASES = ("1", "2", "3", "4", "5", "6")
_QUALITY = Number(name="quality", low=0, high=10)
_HIRES = Number(name="log_hires", low=0, high=7)
_SHARES = Number(name="log_shares", low=0, high=14)
_DELAY = Number(name="arr_delay", low=-60, high=180)
_PPM = Number(name="concentration", low=0, high=1000)
_KELVIN = Number(name="critical_temp", low=0, high=185)
_CALLED = Category(name="output", values=_YES)
_INCOME = Category(name="income", values=("<=50K", ">50K"))

_DEVELOPMENT = (
    TablePair(
        name="wine: white to red",
        half="development",
        read=read.wine,
        columns=read.WINE,
        label=_QUALITY,
        private=is_one_of("colour", "red"),
        rows=800,
    ),
    TablePair(
        name="wine: red to white",
        half="development",
        read=read.wine,
        columns=read.WINE,
        label=_QUALITY,
        private=is_one_of("colour", "white"),
        rows=2000,
    ),
    TablePair(
        name="wine: good ones, red to white",
        half="development",
        read=read.wine,
        columns=read.WINE,
        label=Category(name="good", values=_YES),
        private=is_one_of("colour", "white"),
        rows=1000,
    ),
    TablePair(
        name="bike: 2011 to 2012",
        half="development",
        read=read.bike,
        columns=read.BIKE,
        label=_HIRES,
        private=is_one_of("yr", 1.0),
        rows=2000,
    ),
    TablePair(
        name="bank: cellular to telephone",
        half="development",
        read=read.bank,
        columns=without(read.BANK, "contact"),
        label=_CALLED,
        private=is_one_of("contact", "telephone"),
        rows=5000,
    ),
    TablePair(
        name="bank: working to students and retired",
        half="development",
        read=read.bank,
        columns=without(read.BANK, "job"),
        label=_CALLED,
        private=is_one_of("job", "student", "retired"),
        rows=1000,
    ),
    TablePair(
        name="heart: two hospitals to Hungary",
        half="development",
        read=read.heart,
        columns=read.HEART,
        label=Category(name="ill", values=_YES),
        private=is_one_of("hospital", "hungary"),
        rows=150,
    ),
    TablePair(
        name="adult: men to women",
        half="development",
        read=read.adult,
        columns=without(read.ADULT, "sex"),
        label=_INCOME,
        private=is_one_of("sex", "Female"),
        rows=5000,
    ),
    TablePair(
        name="adult: hours, United States to abroad",
        half="development",
        read=read.adult,
        columns=without(read.ADULT, "hours_per_week", "native_country"),
        label=Number(name="hours_per_week", low=1, high=99),
        private=lambda table: ~np.isin(table["native_country"].astype(str), ("United-States", "None")),
        public=is_one_of("native_country", "United-States"),
        rows=1500,
    ),
    TablePair(
        name="news: weekdays to Sunday",
        half="development",
        read=read.news,
        columns=without(read.NEWS, "weekday"),
        label=_SHARES,
        private=is_one_of("weekday", "6"),
        rows=1000,
    ),
    TablePair(
        name="wind: other months to January",
        half="development",
        read=read.wind,
        columns=without(read.WIND, "MAL", "month"),
        label=Number(name="MAL", low=0, high=45),
        private=is_one_of("month", "1"),
        rows=100,
    ),
    TablePair(
        name="gas: concentrations, other batches to the sixth",
        half="development",
        read=read.gas,
        columns=read.GAS,
        label=_PPM,
        private=is_one_of("batch", 6.0),
        rows=1500,
    ),
    TablePair(
        name="gas: kinds, batches 1 to 3 to batches 4 and 5",
        half="development",
        read=read.gas,
        columns=without(read.GAS, "gas"),
        label=Category(name="gas", values=_GASES),
        private=is_one_of("batch", 4.0, 5.0),
        public=is_one_of("batch", 1.0, 2.0, 3.0),
        rows=200,
    ),
    TablePair(
        name="flights: delays, Newark to LaGuardia",
        half="development",
        read=read.flights,
        columns=read.FLIGHTS,
        label=_DELAY,
        private=is_one_of("origin", "LGA"),
        public=is_one_of("origin", "EWR"),
        rows=5000,
    ),
    TablePair(
        name="superconductivity: even to uneven valences",
        half="development",
        read=read.superconductivity,
        columns=without(read.SUPERCONDUCTIVITY, "wtd_std_Valence"),
        label=_KELVIN,
        private=above_median("wtd_std_Valence"),
        rows=1000,
    ),
    TablePair(
        name="ctg: states, low to high heart rates",
        half="development",
        read=read.ctg,
        columns=without(read.CTG, "LB"),
        label=Category(name="NSP", values=("1", "2", "3")),
        private=above_median("LB"),
        rows=500,
    ),
    TablePair(
        name="cancer: smooth to rough",
        half="development",
        read=read.cancer,
        columns=without(read.CANCER, "mean smoothness"),
        label=Category(name="diagnosis", values=("malignant", "benign")),
        private=above_median("mean smoothness"),
        rows=150,
    ),
)
_FINAL = (
    TablePair(
        name="bike: other seasons to the first",
        half="final",
        read=read.bike,
        columns=without(read.BIKE, "season", "mnth"),
        label=_HIRES,
        private=is_one_of("season", "1"),
        rows=500,
    ),
    TablePair(
        name="bike: working days to days off",
        half="final",
        read=read.bike,
        columns=without(read.BIKE, "workingday", "weekday", "holiday"),
        label=_HIRES,
        private=is_one_of("workingday", 0.0),
        rows=1000,
    ),
    TablePair(
        name="wine: colours, light to strong",
        half="final",
        read=read.wine,
        columns=without(read.WINE, "alcohol"),
        label=Category(name="colour", values=("red", "white")),
        private=above_median("alcohol"),
        rows=1500,
    ),
    TablePair(
        name="bank: other months to November",
        half="final",
        read=read.bank,
        columns=without(read.BANK, "month"),
        label=_CALLED,
        private=is_one_of("month", "nov"),
        rows=2000,
    ),
    TablePair(
        name="heart: highest rates, two hospitals to Cleveland",
        half="final",
        read=read.heart_rates,
        columns=without(read.HEART, "thalach"),
        label=Number(name="thalach", low=60, high=210),
        private=is_one_of("hospital", "cleveland"),
        rows=150,
    ),
    TablePair(
        name="adult: private sector to government",
        half="final",
        read=read.adult,
        columns=without(read.ADULT, "workclass"),
        label=_INCOME,
        private=is_one_of("workclass", "Federal-gov", "Local-gov", "State-gov"),
        public=is_one_of("workclass", "Private"),
        rows=3000,
    ),
    TablePair(
        name="news: other channels to the world",
        half="final",
        read=read.news,
        columns=tuple(each for each in read.NEWS if "channel" not in each.name),
        label=_SHARES,
        private=is_one_of("data_channel_is_world", 1.0),
        rows=3000,
    ),
    TablePair(
        name="news: popular ones, other channels to technology",
        half="final",
        read=read.news,
        columns=tuple(each for each in read.NEWS if "channel" not in each.name),
        label=Category(name="popular", values=_YES),
        private=is_one_of("data_channel_is_tech", 1.0),
        rows=2000,
    ),
    TablePair(
        name="wind: the sixties to the seventies",
        half="final",
        read=read.wind,
        columns=without(read.WIND, "RPT"),
        label=Number(name="RPT", low=0, high=45),
        private=lambda table: np.asarray(table["year"] >= 70, dtype=np.bool_),
        rows=1000,
    ),
    TablePair(
        name="gas: concentrations, batches 1 and 2 to the third",
        half="final",
        read=read.gas,
        columns=read.GAS,
        label=_PPM,
        private=is_one_of("batch", 3.0),
        public=is_one_of("batch", 1.0, 2.0),
        rows=800,
    ),
    TablePair(
        name="gas: kinds, batches 1 to 6 to batches 8 and 9",
        half="final",
        read=read.gas,
        columns=without(read.GAS, "gas"),
        label=Category(name="gas", values=_GASES),
        private=is_one_of("batch", 8.0, 9.0),
        rows=400,
    ),
    TablePair(
        name="flights: delays at Kennedy, other airlines to JetBlue",
        half="final",
        read=read.flights,
        columns=without(read.FLIGHTS, "carrier"),
        label=_DELAY,
        private=lambda table: (table["carrier"] == "B6") & (table["origin"] == "JFK"),
        public=lambda table: (table["carrier"] != "B6") & (table["origin"] == "JFK"),
        rows=300,
    ),
    TablePair(
        name="flights: late ones from Kennedy, other months to December",
        half="final",
        read=read.flights,
        columns=without(read.FLIGHTS, "month", "dep_delay"),
        label=Category(name="late", values=_YES),
        private=lambda table: (table["month"] == "12") & (table["origin"] == "JFK"),
        public=lambda table: (table["month"] != "12") & (table["origin"] == "JFK"),
        rows=5000,
    ),
    TablePair(
        name="superconductivity: few to many elements",
        half="final",
        read=read.superconductivity,
        columns=without(read.SUPERCONDUCTIVITY, "number_of_elements"),
        label=_KELVIN,
        private=above_median("number_of_elements"),
        rows=3000,
    ),
    TablePair(
        name="ctg: patterns, narrow to wide histograms",
        half="final",
        read=read.ctg,
        columns=without(read.CTG, "Width"),
        label=Category(name="CLASS", values=tuple(str(each) for each in range(1, 11))),
        private=above_median("Width"),
        rows=500,
    ),
    TablePair(
        name="accent: Americans, by the first coefficient",
        half="final",
        read=read.accent,
        columns=without(read.ACCENT, "X1"),
        label=Category(name="american", values=_YES),
        private=above_median("X1"),
        rows=100,
    ),
    TablePair(
        name="diabetes: younger to older",
        half="final",
        read=read.diabetes,
        columns=without(read.DIABETES, "age"),
        label=Number(name="progression", low=25, high=350),
        private=above_median("age"),
        rows=100,
    ),
    TablePair(
        name="digits: light to dark",
        half="final",
        read=read.digits,
        columns=read.DIGITS,
        label=Category(name="digit", values=tuple(str(each) for each in range(10))),
        private=above_median("ink"),
        rows=450,
    ),
)


def table_pairs(half: str | None = None) -> tuple[TablePair, ...]:
    """All pairs, or those of one half, in a fixed order."""
    if half is not None and half not in HALVES:
        raise InputError(f"Expected half to be one of {', '.join(HALVES)}, got {half!r}.")
    return tuple(pair for pair in (*_DEVELOPMENT, *_FINAL) if half in (None, pair.half))


def table_pair(name: str) -> TablePair:
    """The pair of this name."""
    for pair in table_pairs():
        if pair.name == name:
            return pair
    raise InputError(f"Expected the name of a pair, one of {'; '.join(each.name for each in table_pairs())}.")


__all__ = [
    "HALVES",
    "NumberBySource",
    "Table",
    "TablePair",
    "TablePart",
    "TableSplit",
    "table_pair",
    "table_pairs",
]
