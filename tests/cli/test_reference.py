"""The page of the reference is what the commands say."""

from privada.cli.reference import commands, reference
from privada.cli.show import Exit


def test_the_reference_is_up_to_date(request):
    page = request.config.rootpath / "docs" / "reference" / "cli.md"
    assert page.read_text(encoding="utf-8") == reference(), "run: make reference"


def test_every_command_and_exit_code_has_a_place_on_the_page():
    page = reference()
    sections = [line[3:] for line in page.splitlines() if line.startswith("## ")]
    assert sections == ["Exit codes", *(name for name, _ in commands())]
    assert all(f"| {int(code)} | " in page for code in Exit)


def test_a_section_says_what_is_required_and_what_is_the_default():
    page = reference()
    assert "privada answer OWNER_TOML --exchange URL [OPTIONS]" in page
    assert ", `--folder URL` | The exchange: a folder" in page
    assert "privada ask cells study.toml --exchange exchange\n```" in page
