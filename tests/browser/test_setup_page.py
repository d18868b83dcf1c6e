"""The guided page in a real browser: by keyboard, on a phone, in the dark."""

import pytest

pytest.importorskip("fastapi")
from privada.service.new_owner import ColumnHeader, NewOwner, serve_set_up


@pytest.fixture
def owner(tmp_path):
    columns = (ColumnHeader("age", "integer"), ColumnHeader("a_very_long_name_of_a_column_" * 3, "category"))
    return NewOwner(
        folder=tmp_path / "o", data=tmp_path / "rows.parquet", columns=columns, methods=("cells",)
    )


@pytest.mark.parametrize("dark", [False, True])
def test_an_owner_is_set_up_on_a_phone(visit, owner, dark):
    with serve_set_up(owner) as (address, _):
        seen = visit(address, width=390, dark=dark)
        seen.check()
        page = seen.page
        page.get_by_label("Epsilon").fill("2")
        page.get_by_label("Lowest").first.fill("0")
        page.get_by_label("Highest").first.fill("120")
        page.get_by_label("All values").last.fill("no; yes")
        page.get_by_role("button").focus()
        page.keyboard.press("Enter")
        page.get_by_text("is set up").wait_for()
        seen.check()
    assert owner.folder.joinpath("owner.toml").is_file()
