"""What MkDocs does not do by itself: pages from outside ``docs/``, the gallery, the reference, the menu.

* README, changelog, contributing and security become pages; links to them, and to examples, lead there.
* Each file of ``examples/`` becomes a page of the gallery: its text, its code, and the picture that it
  draws when it is run. Pictures are kept in ``build/gallery`` until the example or the package changes;
  with ``PRIVADA_GALLERY=text`` none is drawn.
* Each public package gets a page of its docstrings.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import runpy
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

HOME = Path(__file__).resolve().parents[2]
KEPT = HOME / "build" / "gallery"
OUTSIDE = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
ELSEWHERE = re.compile(
    r"\]\(((?:\.\./)*)((?:README|CHANGELOG|CONTRIBUTING|SECURITY)\.md|examples/\w+\.py|examples)((?:#[\w-]+)?)\)"
)
MENU = (
    ("Tutorials", "tutorials"),
    ("Gallery", "gallery"),
    ("How to", "how-to"),
    ("Explanation", "explanation"),
    ("Methods", "methods"),
    ("Measurements", "measurements"),
    ("Reference", "reference"),
)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not written by hand."""
    made = {name: (HOME / path).read_text(encoding="utf-8") for path, name in OUTSIDE.items()}
    made |= _gallery_pages(files, config) | _reference_pages()
    for name, text in made.items():
        files.append(File.generated(config, name, content=_with_links(text, name)))
    config.nav = _menu(files)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to files outside ``docs/`` to their pages."""
    return _with_links(markdown, page.file.src_uri)


def _with_links(text: str, name: str) -> str:
    """The text of a page with links that work on the site."""
    up = "../" * name.count("/")

    def target(found: re.Match[str]) -> str:
        path, anchor = found.group(2), found.group(3)
        if path == "examples":
            return f"]({up}gallery/index.md)"
        if path.startswith("examples/"):
            return f"]({up}gallery/{Path(path).stem}.md)"
        return f"]({up}{OUTSIDE.get(path, 'index.md')}{anchor if path in OUTSIDE else ''})"

    text = ELSEWHERE.sub(target, text)
    return re.sub(r"\]\(docs/", f"]({up}", text) if name in OUTSIDE.values() else text


def _gallery_pages(files: Files, config: Any) -> dict[str, str]:
    """A page for each example, and one that shows them all."""
    pages, cards = {}, []
    for example in sorted((HOME / "examples").glob("*.py")):
        text = _as_markdown(example.read_text(encoding="utf-8"))
        title = text.split("\n", 1)[0].removeprefix("# ")
        picture = _picture(example)
        image = ""
        if picture is not None:
            place = f"gallery/{picture.name}"
            files.append(File.generated(config, place, content=picture.read_bytes()))
            image = f"![What the example draws]({picture.name})"
        pages[f"gallery/{example.stem}.md"] = f"{text}\n{image}\n\nThe file is `examples/{example.name}`.\n"
        cards.append(f"<div markdown>[{title}]({example.stem}.md)\n\n{image}</div>")
    inner = "\n\n".join(cards)
    shown = f"<div class='gallery' markdown>\n\n{inner}\n\n</div>"
    pages["gallery/index.md"] = f"# Gallery\n\nEvery example runs as it stands.\n\n{shown}\n"
    return pages


def _as_markdown(source: str) -> str:
    """The text and the code of a file with ``# %%`` cells."""
    parts = re.split(r"^# %%( \[markdown\])?.*\n", source, flags=re.MULTILINE)
    made = []
    for mark, body in zip(parts[1::2], parts[2::2], strict=True):
        if mark:
            made.append(re.sub(r"^# ?", "", body, flags=re.MULTILINE).strip())
        elif body.strip():
            made.append(f"```python\n{body.strip()}\n```")
    return "\n\n".join(made) + "\n"


def _picture(example: Path) -> Path | None:
    """The picture that an example draws, from the last run of the same code."""
    if os.environ.get("PRIVADA_GALLERY") == "text":
        return None
    state = hashlib.sha256(example.read_bytes())
    for module in sorted(path for sources in ("src", "lab/src") for path in (HOME / sources).rglob("*.py")):
        state.update(module.read_bytes())
    folder = KEPT / f"{example.stem}-{state.hexdigest()[:16]}"
    picture = folder / f"{example.stem}.png"
    if not picture.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-W", "ignore", str(example)]
        environment = os.environ | {"MPLBACKEND": "Agg"}
        subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
    return picture


def _reference_pages() -> dict[str, str]:
    """A page of docstrings for each public package; each name is described once, where it comes first."""
    modules = runpy.run_path(str(HOME / "docs" / "generate_api.py"))["MODULES"]
    seen: set[str] = set()
    pages = {f"reference/python/{name}.md": _docstrings(name, seen) for name in modules}
    listed = "\n".join(f"- [{name}]({name}.md)" for name in modules)
    return pages | {"reference/python/index.md": f"# Docstrings\n\n{listed}\n"}


def _docstrings(name: str, seen: set[str]) -> str:
    """The page of one package."""
    module = import_module(name)
    made = [f"# {name}", inspect.cleandoc(module.__doc__ or "").split("\n")[0]]
    for public in module.__all__:
        what = getattr(module, public)
        home = f"{getattr(what, '__module__', name)}.{getattr(what, '__qualname__', public)}"
        if callable(what) and home.startswith(("privada.", "privada_lab.")) and home not in seen:
            seen.add(home)
            made.append(f"::: {home}")
    return "\n\n".join(made) + "\n"


def _menu(files: Files) -> list[Any]:
    """All pages, by folder."""
    pages = sorted(file.src_uri for file in files.documentation_pages())
    menu: list[Any] = [{"Home": "index.md"}]
    for title, folder in MENU:
        inside = [page for page in pages if page.startswith(f"{folder}/")]
        first = [page for page in inside if page.endswith("index.md")]
        menu.append({title: first + [page for page in inside if page not in first]})
    return [*menu, {"About": sorted(OUTSIDE.values())}]
