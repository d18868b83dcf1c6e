"""What ``pip install privada`` brings: a wheel is built and installed into a new environment, and used there.

* ``installed_megabytes``: size of all that was installed, without pip itself.
* ``installed_packages``: number of distributions, privada included.
* ``wheel_works``: 1 if the commands of a newcomer end well in that environment.
* ``sdist_builds``: 1 if a wheel can be built from the source distribution alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks._figures import Figure, main

HERE = Path(__file__).resolve().parent.parent
COMMANDS = (
    ("--version",),
    ("demo", "--help"),
    ("init", "study"),
    ("price", "study/study.toml"),
    ("run", "study/study.toml"),
)


def measure(quick: bool) -> Iterator[Figure]:
    """Build, install, run, weigh."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        wheel = build("wheel", HERE, folder)
        python = install(wheel, folder / "environment")
        packages = folder.glob("environment/lib/python*/site-packages")
        inside = next(packages)
        megabytes = sum(each.lstat().st_size for each in inside.rglob("*") if each.is_file()) / 2**20
        count = len(list(inside.glob("*.dist-info")))
        yield Figure("installed_megabytes", megabytes, 750, "lower", "pip install privada", 1)
        yield Figure("installed_packages", count, 35, "lower", "pip install privada", 1)
        yield Figure("wheel_works", float(works(python, folder)), 1, "higher", "commands of a newcomer", 1)
        if not quick:
            yield Figure("sdist_builds", float(rebuilds(folder)), 1, "higher", "wheel from the sdist", 1)


def build(kind: str, source: Path, folder: Path) -> Path:
    """Build a wheel or an sdist by hatchling, as pip would."""
    call = f"from hatchling.build import build_{kind} as b; print(b({str(folder)!r}))"
    made = subprocess.run(
        [sys.executable, "-c", call], cwd=source, check=True, capture_output=True, text=True
    )
    return folder / made.stdout.strip().splitlines()[-1]


def install(wheel: Path, place: Path) -> Path:
    """A new environment with nothing but the wheel and what it needs; returns its Python."""
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    python = place / "bin" / "python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
    constraint = str(HERE / "constraints.txt")
    subprocess.run([*pip, "install", "--quiet", "--constraint", constraint, str(wheel)], check=True)
    subprocess.run([*pip, "uninstall", "--quiet", "--yes", "setuptools", "pip"], check=True)
    return python


def works(python: Path, folder: Path) -> bool:
    """Whether the commands of a newcomer end well, with no other code in reach."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(python.with_name("privada"))]
    runs = [
        subprocess.run([*command, *words], cwd=folder, env=clean, stdout=subprocess.DEVNULL, check=False)
        for words in COMMANDS
    ]
    return all(run.returncode == 0 for run in runs)


def rebuilds(folder: Path) -> bool:
    """Whether the source distribution holds all that a wheel needs."""
    import tarfile

    sdist = build("sdist", HERE, folder)
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return build("wheel", folder / sdist.name.removesuffix(".tar.gz"), folder).exists()


if __name__ == "__main__":
    main(measure, "What pip install privada brings")
