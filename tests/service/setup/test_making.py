"""An owner's folder: complete with answers, and never over what is there."""

from pathlib import Path

import pytest

from privada.exceptions import InputError
from privada.parties.owner_file import OwnerFile
from privada.parties.sources.databases import Database
from privada.service.setup.answers import Answers, ColumnAnswer
from privada.service.setup.headers import ColumnHeader
from privada.service.setup.making import NewOwner

ODD = 'a "quoted" \\ name [x]'
ANSWERS = Answers(
    columns=(
        ColumnAnswer(name=ODD, kind="number", low="0", high="1.5", missing=True),
        ColumnAnswer(name="born", kind="date", low="1900-01-01", high="2020-12-31"),
        ColumnAnswer(name="ill", kind="category", values="no; yes"),
        ColumnAnswer(name="note", kind="left out"),
    ),
    relation="replace-one",
    epsilon="2",
    delta="1e-6",
    label="ill",
    size="100",
)


def new_owner(folder, data):
    columns = tuple(ColumnHeader(column.name) for column in ANSWERS.columns)
    return NewOwner(folder=folder, data=data, columns=columns, methods=("cells",))


def test_answers_make_a_file_that_loads(tmp_path):
    owner = new_owner(tmp_path / "clinic", tmp_path / "rows.csv")
    paths, _ = owner.create(owner.text(answers=ANSWERS))
    file = OwnerFile.read(paths[0])
    assert file.budget == ANSWERS.check()
    assert file.schema.features[0] == ODD
    assert file.schema.size == 100
    assert file.dataset == "rows"
    assert Path(file.source.place).resolve() == (tmp_path / "rows.csv").resolve()
    file.open_budget()


def test_a_database_is_seen_from_the_folder(tmp_path):
    database = Database(url=f"sqlite:///{tmp_path / 'rows.sqlite'}", table="registry.patients")
    owner = new_owner(tmp_path / "clinic", database)
    paths, _ = owner.create(owner.text(answers=ANSWERS))
    file = OwnerFile.read(paths[0])
    assert file.dataset == "patients"
    assert file.source.file.resolve() == (tmp_path / "rows.sqlite").resolve()
    assert str(tmp_path) not in paths[0].read_text()


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "owner.key").write_text("precious")
    owner = new_owner(tmp_path, None)
    with pytest.raises(InputError, match="exists and is not overwritten"):
        owner.create(owner.text())
    assert [path.name for path in tmp_path.iterdir()] == ["owner.key"]
