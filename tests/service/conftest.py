"""An owner that is to be made, and the answers of a person."""

import pytest

from privada.service.new_owner import ColumnHeader, NewOwner

SAID = {"relation": "add/remove", "epsilon": "2", "kind-0": "integer", "low-0": "0", "high-0": "120"}
SAID |= {"kind-1": "category", "values-1": "no; yes", "label": "ill"}


@pytest.fixture
def said():
    return dict(SAID)


@pytest.fixture
def new_owner(tmp_path):
    columns = (ColumnHeader("age", "integer"), ColumnHeader("ill", "category"))
    return NewOwner(
        folder=tmp_path / "o", data=tmp_path / "rows.parquet", columns=columns, methods=("cells",)
    )
