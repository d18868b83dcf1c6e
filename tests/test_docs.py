"""Documentation that runs: every block of every page, every link, every example.

A page is read from top to bottom in a folder of its own. Its blocks are

* ``python``: run; a ``text`` block right after it is what it must print,
* ``python`` or ``toml`` whose first line is ``# path``: written to that file; owners' and studies'
  files then go through the real readers,
* ``console``: lines ``$ privada …`` and ``$ python …`` are run; they end with 0 unless the line
  says ``# exit code N``; ``$ make …`` must be a target of the Makefile. Every other command stands
  in ``NOT_RUN`` with the reason why it is not run here,
* ``sh``: commands that stay in the foreground or need another machine; each line stands in ``NOT_RUN``.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import itertools
import os
import re
import shlex
import subprocess
import sys
import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privada.cli import app
from privada.exceptions import RehearsalWarning, StudyError
from privada.parties.owner_file import OwnerFile
from privada.service.console.oidc import OidcSettings
from privada.studies import Study

HOME = Path(__file__).parents[1]
PAGES = sorted([*HOME.glob("*.md"), *(HOME / "docs").rglob("*.md"), HOME / "lab" / "README.md"])
EXAMPLES = sorted((HOME / "examples").glob("*.py"))
NAMES = [str(page.relative_to(HOME)) for page in PAGES]
SHORT_OF = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)|(?:src|href|srcset)=\"([^\"]+)\"")
MACHINE = re.compile(r"(?<![\w.])/(?:home|work|tmp|root|usr|opt|Users)/|[A-Z]:\\|pypi\.|pythonhosted")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.page.name}, line {self.line}"

    @property
    def path(self) -> str:
        """The file that the block is, if its first line names one."""
        found = re.match(r"# ([\w./-]+\.(?:py|toml))\n", self.text)
        return found.group(1) if found and self.language in ("python", "toml") else ""


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found.group(1), found.group(2))
        for found in FENCE.finditer(text)
    ]


def prose_of(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


NOT_RUN = {
    "make demo": "it installs privada first; tests/cli/test_demo.py runs the demo",
    "make test": "it is this suite",
    "pip install . ./lab": "they are installed where this suite runs; test_distributions.py builds both",
    "make demo-network": "it installs privada first; tests/exchange/test_network_demo.py runs the demo",
    "git clone REPOSITORY privada && cd privada": "the address is the reader's",
    "mkdir -m 755 exchange": "the accounts of the next lines have to own folders in it",
    "install -d -o learner exchange/questions": "it takes root, and an account learner",
    "install -d -o clinic exchange/releases exchange/refusals": "it takes root, and an account clinic",
    "privada owner serve clinic=clinic/owner.toml --exchange owner-clinic/link.toml --metrics-port 9464": (
        "it serves until it is told to end, over a broker"
    ),
    "privada run study.toml --exchange learner-alice/link.toml --key alice.key --out result.json": (
        "it waits for owners that are reached over a broker"
    ),
    "privada owner serve clinic=clinic/owner.toml --exchange s3://bucket/trial": "it takes a bucket",
    "privada run study.toml --exchange s3://bucket/trial --key alice.key": "it takes a bucket",
    "privada answer clinic/owner.toml --exchange s3://bucket/trial --name clinic": "it takes a bucket",
    "privada broker serve broker": "it runs until it is told to end",
    "nats-server -c nats.conf": "tests/exchange/broker/test_configuration.py starts three so",
    "privada broker create consortium/parties/administrator/link.toml --replicas 3": (
        "tests/exchange/broker/test_configuration.py creates it on three servers"
    ),
    "privada owner init clinic --data visits.parquet --page": "tests/browser/test_setup_page.py does",
    "privada owner open-budget clinic/owner.toml": "its owner is set up on a page",
    'privada owner console-user clinic/owner.toml "Grace Hopper" --role approver': "it asks for a passphrase",
    "privada owner serve clinic=clinic/owner.toml --exchange exchange --console": (
        "it serves until it is told to end; tests/browser/test_console.py does"
    ),
}


class Reader:
    """Reads a page in a folder, as a patient person would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, object] = {"__name__": "__docs__"}

    def read(self, blocks: list[Block]) -> None:
        for block, following in itertools.pairwise([*blocks, None]):
            if block.path:
                self.write(block)
            elif block.language == "python":
                said = self.run(block)
                if following is not None and following.language == "text":
                    compare(following, said)
            elif block.language == "console":
                self.type(block)
            elif block.language == "sh":
                for line in block.text.splitlines():
                    refuse_unlisted(block, line)

    def write(self, block: Block) -> None:
        target = self.folder / block.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.text, encoding="utf-8")
        if block.language == "toml":
            check_toml(target)

    def run(self, block: Block) -> str:
        code = "\n" * block.line + block.text
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(code, str(block.page), "exec"), self.names)
        return said.getvalue()

    def type(self, block: Block) -> None:
        for line in block.text.splitlines():
            if line.startswith(("$ privada ", "$ python ")):
                said, code = self.command(line)
                wanted = re.search(r"# exit code (\d)", line)
                assert code == int(wanted.group(1) if wanted else 0), f"{block.where}: {line}\n{said}"
            elif line.startswith("$"):
                refuse_unlisted(block, line)

    def command(self, line: str) -> tuple[str, int]:
        program, *words = shlex.split(line.removeprefix("$ "), comments=True)
        arguments = [path for word in words for path in (sorted(self.matches(word)) or [word])]
        if program == "privada":
            done = CliRunner().invoke(app, arguments, prog_name="privada", catch_exceptions=False)
            return done.output, done.exit_code
        ran = subprocess.run([sys.executable, *arguments], cwd=self.folder, capture_output=True, text=True)
        return ran.stdout + ran.stderr, ran.returncode

    def matches(self, word: str) -> list[str]:
        return [str(path.relative_to(self.folder)) for path in self.folder.glob(word)] if "*" in word else []


def bare(line: str) -> str:
    """The command of a console's line, without prompt and comment."""
    return re.sub(r"\s+# .*", "", line.removeprefix("$")).strip()


def refuse_unlisted(block: Block, line: str) -> None:
    assert bare(line) in NOT_RUN, f"{block.where}: no test runs {line!r}; say in NOT_RUN why"


def compare(block: Block, said: str) -> None:
    if not doctest.OutputChecker().check_output(block.text, said, SHORT_OF):
        pytest.fail(f"{block.where}: expected\n{block.text}\ngot\n{said}")


def check_toml(path: Path) -> None:
    top = tomllib.loads(path.read_text(encoding="utf-8"))
    if "data" in top and "ledger" in top:
        OwnerFile.read(path)
    elif "study" in top:
        Study.read(path)
    elif "oidc" in top:
        OidcSettings.read(path)


@pytest.fixture
def reader(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("PRIVADA_OIDC_SECRET", "of the page about the console")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RehearsalWarning)
        yield Reader(tmp_path)
    for name, module in list(sys.modules.items()):  # what a page imported from its folder goes with it
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_block_does_what_the_page_says(page, reader):
    reader.read(blocks_of(page))


LIES = {
    "output": [("python", "print(1)\n"), ("text", "2\n")],
    "exit code": [("console", "$ privada run nothing.toml   # exit code 3\n")],
    "command that no test runs": [("console", "$ rm -r exchange\n")],
    "command of a shell that no test runs": [("sh", "privada owner serve nobody.toml\n")],
    "owner": [("toml", "# owner.toml\n[data]\nname = 'a'\n[ledger]\nurl = 'b'\n")],
    "warning": [("python", "import warnings\nwarnings.warn('x')\n")],
}


@pytest.mark.parametrize("lie", LIES)
def test_a_page_that_lies_is_caught(lie, reader):
    page = [Block(Path("page.md"), 1, language, text) for language, text in LIES[lie]]
    with pytest.raises((AssertionError, StudyError, UserWarning, pytest.fail.Exception)):
        reader.read(page)


def test_what_no_test_runs_stands_on_a_page():
    blocks = [block for page in PAGES for block in blocks_of(page) if block.language in ("console", "sh")]
    assert NOT_RUN.keys() <= {bare(line) for block in blocks for line in block.text.splitlines()}


@pytest.fixture
def sixth_method(reader):
    """The files of the page, announced as an installer would."""
    blocks = [block for block in blocks_of(HOME / "CONTRIBUTING.md") if block.path]
    for block in blocks:
        reader.write(block)
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    announce(Path("median_method-0.1.0.dist-info"), project)
    return [block.path for block in blocks]


def run_with_the_sixth_method(folder: Path, *words: str, cwd: Path = HOME) -> str:
    """What a command prints where the method of the page is installed."""
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    completed = subprocess.run(
        [sys.executable, "-m", *words], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


PYTEST = (
    "pytest",
    "-q",
    "-p",
    "no:cacheprovider",
    "--rootdir",
    str(HOME),
    "-c",
    str(HOME / "pyproject.toml"),
)


def test_the_method_that_contributing_adds_has_at_most_six_files_and_keeps_every_contract(
    sixth_method, reader
):
    assert len(sixth_method) <= 6
    output = run_with_the_sixth_method(reader.folder, *PYTEST, "tests/contracts", "-k", "median")
    assert int(re.search(r"(\d+) passed", output).group(1)) >= 25


def test_the_method_that_contributing_adds_is_fitted_studied_and_taken_away(sixth_method, reader):
    """By its own test, which the page shows."""
    assert "test_median.py" in sixth_method
    output = run_with_the_sixth_method(reader.folder, *PYTEST, str(reader.folder / "test_median.py"))
    assert int(re.search(r"(\d+) passed", output).group(1)) >= 4


def test_the_method_that_contributing_adds_is_audited(sixth_method, reader):
    words = ("privada.cli", "audit", "median", "--trials", "2000", "--json")
    output = run_with_the_sixth_method(reader.folder, *words, cwd=reader.folder)
    assert "median.choice" in output


def announce(info: Path, project: dict) -> None:
    """What an installer writes of a project's entry points."""
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.1.0\n")
    for group, found in project["entry-points"].items():
        (info / "entry_points.txt").write_text(
            f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in found.items())
        )


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_relative_link_resolves(page):
    for found in LINK.finditer(prose_of(page)):
        target, _, anchor = (found.group(1) or found.group(2)).partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors_of(file), f"{page.name} links to {target}#{anchor}"


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *EXAMPLES], ids=[*NAMES, *(path.name for path in EXAMPLES)])
def test_no_page_depends_on_a_machine(page):
    found = MACHINE.search(page.read_text(encoding="utf-8"))
    assert not found, f"{page.name}: {found and found.group()}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_make_command_is_a_target(page):
    targets = set(re.findall(r"^([\w-]+):", (HOME / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"(?:^\$ |`)make ([\w-]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(named) <= targets


def test_the_readme_fits_and_names_the_two_commands():
    text = (HOME / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text
    (code,) = [block.text for block in blocks_of(HOME / "README.md") if block.language == "python"]
    assert len([line for line in code.splitlines() if line.strip()]) <= 12


def test_every_page_is_reachable_from_the_index():
    docs = HOME / "docs"
    text = prose_of(docs / "index.md")
    linked = {(docs / found.group(1)).resolve() for found in LINK.finditer(text) if found.group(1)}
    pages = {page.resolve() for page in docs.rglob("*.md")} - {(docs / "index.md").resolve()}
    assert pages <= linked, sorted(str(page) for page in pages - linked)


def test_privacy_is_the_first_heading_of_every_release():
    text = (HOME / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert releases
    for release in releases:
        assert re.search(r"^### (.+)$", release, re.MULTILINE).group(1) == "Privacy", release.splitlines()[0]


def test_the_versions_agree():
    project = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
    assert f"version: {project['version']}" in (HOME / "CITATION.cff").read_text()
    assert f"## {project['version']}" in (HOME / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("name", ["api", "files"])
def test_the_reference_is_up_to_date(name):
    spec = importlib.util.spec_from_file_location(f"generate_{name}", HOME / f"docs/generate_{name}.py")
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    written = (HOME / f"docs/reference/{name}.md").read_text(encoding="utf-8")
    assert written == generator.page(), "run: make reference"


@pytest.mark.parametrize("example", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_every_example_runs_and_draws_its_picture(example, tmp_path):
    text = example.read_text(encoding="utf-8")
    assert re.match(r"# %% \[markdown\]\n# # .+\?\n", text), "its title is a question"
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=180,  # for an example that hangs: a busy machine is slow
    )
    assert ran.returncode == 0, ran.stderr
    (picture,) = tmp_path.glob("*.png")
    assert picture.stem == example.stem
    assert picture.stat().st_size > 10_000


def test_the_demo_over_a_network_finds_the_methods():
    code = "import runpy; print(*runpy.run_path('examples/network/demo.py')['all_methods']())"
    done = subprocess.run([sys.executable, "-c", code], cwd=HOME, capture_output=True, text=True, check=True)
    assert {"cells", "transport"} <= set(done.stdout.split())
