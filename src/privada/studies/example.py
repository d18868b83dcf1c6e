"""The examples that ``privada init`` writes: a study of each method, with generated rows, ready to run."""

from __future__ import annotations

from pathlib import Path

from privada.exceptions import InputError
from privada.methods.method import find_method, methods
from privada.methods.templates import StudyTemplate, Table

README = """\
# An example study: {method}

{story}

- `study.toml` says who is asked, for how much, and by which method. Every line is explained there.
- {owners}: private rows, a policy (`owner.toml`), a signing key and a ledger.
{files}
Price it: `privada price study.toml`. Run it: `privada run study.toml --page result.html`.
The same study again gets the same answer and costs nothing more; another `again` asks anew and is paid for
until the owner's budget is used up, whatever the study says.
See what was paid: `privada ledger show {first}/owner.toml`. All rows are generated.
"""


def example_methods() -> list[str]:
    """The methods that have an example study."""
    return [name for name, method in methods().items() if method.has_part("template")]


def write_example(folder: Path, *, name: str = "cells") -> list[Path]:
    """Write the example study of a method into a new or empty folder; returns the files."""
    template = find_template(name)
    texts = {"README.md": _readme(name, template), "study.toml": template.study}
    texts |= {file: _text(content) for file, content in template.files.items()}
    for owner, described in template.owners.items():
        texts |= {f"{owner}/owner.toml": described.toml, f"{owner}/rows.csv": described.table.to_csv()}
    for file, text in texts.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
    ledger_files = [path for owner in template.owners for path in _open_ledger(folder / owner)]
    return [*(folder / file for file in texts), *ledger_files]


def find_template(name: str) -> StudyTemplate:
    """The example study of a method, or an `InputError` that lists those that have one."""
    if not find_method(name).has_part("template"):
        raise InputError(f"The method {name} has no example study; {', '.join(example_methods())} have one.")
    return find_method(name).template()


def _text(content: Table | str) -> str:
    return content if isinstance(content, str) else content.to_csv()


def _open_ledger(folder: Path) -> list[Path]:
    """Make an owner's key and ledger, and open the budget that its file names."""
    from privada.parties.owner_file import OwnerFile
    from privada.privacy.ledger import Ledger
    from privada.privacy.receipt import OwnerKey

    key = OwnerKey.generate()
    key.save(folder / "owner.key")
    Ledger.open(folder / "ledger.sqlite", key).close()
    OwnerFile.read(folder / "owner.toml").open_budget()
    return [folder / "owner.key", folder / "ledger.sqlite"]


def _readme(name: str, template: StudyTemplate) -> str:
    owners = " and ".join(f"`{owner}/`" for owner in template.owners)
    return README.format(
        method=name,
        story=template.story,
        owners=f"{owners} {'is an owner' if len(template.owners) == 1 else 'are owners'}",
        files="".join(f"- `{file}` is public.\n" for file in template.files),
        first=next(iter(template.owners)),
    )


__all__ = ["example_methods", "find_template", "write_example"]
