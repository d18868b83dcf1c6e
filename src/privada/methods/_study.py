"""What the studies of all methods have alike: the owner that is asked, public rows, settings of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada._toml import Section
from privada.exceptions import InputError
from privada.methods._public_rows import PublicFile
from privada.parties.csv_files import Dialect
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee


def known(section: Section, key: str, owner: str, schemas: Mapping[str, Schema]) -> str:
    """An owner's name, if the study has one of that name."""
    if owner not in schemas:
        section.fail(key, f"no owner named {owner!r}; known: {', '.join(schemas)}.")
    return owner


def asked(section: Section, schemas: Mapping[str, Schema]) -> str:
    """The one owner that is asked: ``owner``, by default the study's first."""
    return known(section, "owner", section.string("owner", next(iter(schemas))), schemas)


def public_rows(section: Section, key: str, home: Path, schema: Schema) -> FloatArray:
    """Features of a public file, CSV or Parquet, encoded by an owner's card."""
    return _read(section, key, home, schema, labelled=False)[0]


def labelled_rows(
    section: Section, key: str, home: Path, schema: Schema
) -> tuple[FloatArray, npt.NDArray[Any]]:
    """Features of a public file, and its labels: codes of classes, or numbers."""
    X, y = _read(section, key, home, schema, labelled=True)
    assert y is not None
    return X, y


def _read(
    section: Section, key: str, home: Path, schema: Schema, *, labelled: bool
) -> tuple[FloatArray, npt.NDArray[Any] | None]:
    path = home / section.string(key)
    dialect = Dialect.from_section(section.section("csv")) if "csv" in section else Dialect()
    try:
        return PublicFile(path, schema, labelled, dialect).read()
    except InputError as error:
        section.fail(key, str(error).replace("Cannot read", "cannot read", 1))


def model_settings(schema: Schema, guarantee: Guarantee) -> dict[str, Any]:
    """Settings of the estimator that a study's result becomes: its columns, and what was asked for."""
    columns = replace(schema, label=None, size=None, person_id=None, max_rows=None)
    budget = {name: getattr(guarantee, name, None) for name in ("epsilon", "delta", "rho")}
    return {"schema": columns, "relation": guarantee.relation.value, **budget}


def name_columns(model: Any, schema: Schema) -> None:
    """Let a fitted estimator know the columns that its rows have."""
    model.n_features_in_ = schema.width
    model.feature_names_in_ = np.array([column.name for column in schema.columns], dtype=object)


__all__ = ["asked", "known", "labelled_rows", "model_settings", "name_columns", "public_rows"]
