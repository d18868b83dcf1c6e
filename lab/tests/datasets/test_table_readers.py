"""Readers of tables, on generated files in the layout of the real ones."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privada.exceptions import InputError
from privada_lab.datasets import table_readers as read


def write(folder, *parts, **columns):
    path = Path(folder, *parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def test_flights_meet_the_weather_of_their_hour_and_need_an_arrival(tmp_path):
    write(
        tmp_path,
        "nycflights13",
        "flights.parquet",
        origin=pa.array(["EWR", "JFK", "LGA", "EWR"]).dictionary_encode(),
        month=[1, 1, 2, 1],
        day=[3, 3, 4, 3],
        hour=[6, 6, 7, 6],
        carrier=["UA", "B6", "DL", "UA"],
        sched_dep_time=[615, 630, 745, 600],
        distance=[100, 200, 300, 400],
        dep_delay=[0.0, 1.0, 2.0, None],
        arr_delay=[20.0, 15.0, -5.0, None],
    )
    weather = {
        name: pa.array([7.0, 8.0, None])
        for name in ("temp", "dewp", "humid", "wind_speed", "wind_gust", "precip", "pressure", "visib")
    }
    write(
        tmp_path,
        "nycflights13",
        "weather.parquet",
        origin=["JFK", "EWR", "EWR"],
        month=[1, 1, 1],
        day=[3, 3, 3],
        hour=[6, 6, 5],
        **weather,
    )
    table = read.flights(tmp_path)
    assert len(table) == 3
    assert table["late"].tolist() == ["yes", "no", "no"]
    assert table["temp"][:2].tolist() == [8, 7]
    assert np.isnan(table["temp"][2])
    assert table["sched_dep_time"].tolist() == [6.25, 6.5, 7.75]


def test_marks_of_missing_values_become_missing(tmp_path):
    numbers = ("age", "sex", "fbs", "exang", "oldpeak", "restecg", "slope", "thal", "cp")
    write(
        tmp_path,
        "tables",
        "heart.parquet",
        **{name: [1.0, 2.0] for name in numbers},
        trestbps=[0.0, 120.0],
        chol=[200.0, 0.0],
        thalach=[None, 150.0],
        ca=[9.0, 1.0],
        num=[0, 3],
        hospital=["hungary", "cleveland"],
    )
    table = read.heart(tmp_path)
    assert np.isnan(table["trestbps"]).tolist() == [True, False]
    assert np.isnan(table["chol"]).tolist() == [False, True]
    assert np.isnan(table["ca"]).tolist() == [True, False]
    assert table["ill"].tolist() == ["no", "yes"]
    assert table["cp"].tolist() == ["1", "2"]
    assert len(read.heart_rates(tmp_path)) == 1


def test_materials_come_once(tmp_path):
    columns = {column.name: [1.0, 2.0, 1.0] for column in read.SUPERCONDUCTIVITY}
    write(
        tmp_path, "superconductivity", "superconductivity.parquet", **columns, critical_temp=[5.0, 6.0, 7.0]
    )
    assert read.superconductivity(tmp_path)["critical_temp"].tolist() == [5, 6]


def test_columns_are_taken_out_by_name():
    kept = read.without(read.WINE, "pH")
    assert len(kept) == len(read.WINE) - 1
    with pytest.raises(InputError, match="colour"):
        read.without(read.WINE, "colour")
