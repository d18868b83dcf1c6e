"""What is in the wheels: privada without the lab, and privada-lab without privada."""

import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes

import pytest

from benchmarks.house import HERE

SOURCES = {"privada": HERE, "privada-lab": HERE / "lab"}


def read_project(name):
    return tomllib.loads((SOURCES[name] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module", params=SOURCES)
def wheel(request, tmp_path_factory):
    """A wheel, built as pip would."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    code = f"from hatchling.build import build_wheel as build; print(build({str(folder)!r}))"
    command = [sys.executable, "-c", code]
    built = subprocess.run(command, cwd=SOURCES[request.param], capture_output=True, text=True, check=True)
    return request.param, zipfile.ZipFile(folder / built.stdout.split()[-1])


def test_a_wheel_has_the_files_of_its_package_and_no_others(wheel):
    name, archive = wheel
    package = name.replace("-", "_")
    folders = {path.split("/")[0] for path in archive.namelist()}
    assert folders == {package, f"{package}-{read_project(name)['version']}.dist-info"}
    sources = SOURCES[name] / "src"
    files = {
        path.relative_to(sources).as_posix()
        for path in sources.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {path for path in archive.namelist() if ".dist-info/" not in path} == files


def test_only_the_lab_needs_the_other(wheel):
    name, archive = wheel
    (metadata,) = (path for path in archive.namelist() if path.endswith("dist-info/METADATA"))
    needed = message_from_bytes(archive.read(metadata)).get_all("Requires-Dist")
    always = [each for each in needed if "extra ==" not in each]
    assert [each for each in always if each.startswith("privada")] == (
        [f"privada=={read_project('privada')['version']}"] if name == "privada-lab" else []
    )
    assert not any(each.startswith("privada-lab") for each in needed) or name == "privada-lab"


def test_experiments_are_announced_by_the_lab_alone(wheel):
    name, archive = wheel
    (entries,) = (path for path in archive.namelist() if path.endswith("entry_points.txt"))
    assert ("[privada.experiments]" in archive.read(entries).decode()) == (name == "privada-lab")


def test_the_versions_agree():
    assert read_project("privada")["version"] == read_project("privada-lab")["version"]
