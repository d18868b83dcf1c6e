"""What a learner holds: its key (``learner``), owner cards, question and release files, saved models."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privada.cli import show
from privada.cli.options import (
    AsJson,
    CsvDateFormat,
    CsvDecimal,
    CsvDelimiter,
    CsvEncoding,
    CsvQuote,
    CsvThousands,
    ProtectKey,
    csv_dialect,
    existing_file,
    existing_folder,
    new_file,
)
from privada.exceptions import InputError

if TYPE_CHECKING:
    from privada.report.tables import Table


def _make_group(text: str) -> typer.Typer:
    """Make a group that stays a group although it has a single command."""
    group = typer.Typer(no_args_is_help=True, help=text)
    group.callback()(lambda: None)
    return group


app = _make_group("Make a learner's key, and the card by which owners know it.")
card_app = _make_group("Use an owner card before you ask.")
question_app = _make_group("See what a question asks for, before it is answered.")
release_app = _make_group("See what a release says, and whether it is genuine.")


@app.command("init", epilog="Example: privada learner init alice --organisation 'University of Somewhere'")
def init(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The learner's name, such as alice.", show_default=False)
    ],
    organisation: Annotated[
        str, typer.Option("--organisation", metavar="TEXT", help="Where the learner works.")
    ] = "",
    folder: Annotated[
        Path, typer.Option("--folder", metavar="DIR", help="Where the two files are written.")
    ] = Path(),
    passphrase: ProtectKey = False,
    as_json: AsJson = False,
) -> None:
    """Write NAME.key, which signs what the learner asks, and NAME.toml, the card for owners.

    Keep the key; give the card to every owner that should answer. An owner
    lists it among the learners of its owner.toml.
    """
    from privada.parties.permissions import LearnerCard
    from privada.privacy.keys import VARIABLE, LearnerKey, choose_passphrase

    if not re.fullmatch(r"\w[\w .-]{0,63}", name):
        raise InputError(
            f"Expected NAME to be letters, digits, spaces, dots and dashes, at most 64, got {name!r:.80}."
        )
    existing_folder(folder, "--folder")
    paths = [new_file(folder / f"{name}.{part}", "NAME") for part in ("key", "toml")]
    key = LearnerKey.generate()
    card = LearnerCard(name=name, organisation=organisation, public_key=key.public)
    key.save(paths[0], passphrase=choose_passphrase(VARIABLE) if passphrase else None)
    paths[1].write_text(card.to_toml(), encoding="utf-8")
    view = (
        *(f"Wrote {path}" for path in paths),
        "Keep the key to yourself. Owners who should answer add this to owner.toml, with their limits:",
        "",
        "[[learners]]",
        f'name = "{name}"',
        f'key = "{key.public}"',
    )
    show.emit({"written": [str(path) for path in paths], "public_key": key.public}, view, as_json=as_json)


@card_app.command("dummy", epilog="Example: privada card dummy schema.toml --rows 500 --out dummy.csv")
def dummy(
    card: Annotated[Path, typer.Argument(metavar="SCHEMA_TOML", help="The owner card.", show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="A new file: .csv or .parquet.", show_default=False)
    ],
    rows: Annotated[int, typer.Option("--rows", min=1, help="How many rows.")] = 100,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same rows.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Write made-up rows that fit an owner's schema, to develop with. They cost nothing.

    They are drawn evenly from what the card declares, and from nothing else.
    """
    from privada.parties.owner_file import Card
    from privada.parties.schema import make_dummy_rows

    if out.suffix not in (".csv", ".parquet"):
        raise InputError(f"Expected --out to end with .csv or .parquet, got {out.name!r:.80}.")
    schema = Card.read(existing_file(card, "SCHEMA_TOML")).schema
    table = make_dummy_rows(schema, rows=rows, random_state=seed)
    new_file(out, "--out")
    if out.suffix == ".csv":
        import pyarrow.csv

        pyarrow.csv.write_csv(table, out)
    else:
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, out)
    view = (
        f"Wrote {out}",
        "These rows are made of the card alone: no private row was read, and nothing was charged. "
        "They say nothing about the owner's rows but what the card says.",
    )
    plain = {"written": str(out), "rows": rows, "cost": 0, "private": False}
    show.emit(plain, view, as_json=as_json)


@question_app.command("show", epilog="Example: privada question show asked.question")
def show_question(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A question file.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Say in words what is asked, what comes back, how noisy it is, and what it costs.

    Nothing is charged and no row is read. If the question came signed, its signature is
    checked; ends with 5 if it does not hold.
    """
    from privada.exchange.posting import load_question
    from privada.report import wording
    from privada.report.tables import Table

    question = load_question(existing_file(file, "FILE"))
    parts = wording.parts_of(question)
    plain = {
        "kind": question.kind,
        "question": question.digest,
        "asked": wording.say_asked(question),
        "guarantee": question.guarantee.to_dict(),
        "risk": None if question.discloses else wording.say_risk(question.guarantee),
        "confidence": wording.CONFIDENCE,
        "parts": [vars(part) for part in parts],
    }
    cost = f"It costs {question.guarantee}."
    view: list[Table | str] = [wording.say_asked(question), cost]
    if not question.discloses:
        columns = ("what comes back", "shape", "noise", f"each number, {wording.CONFIDENCE:.0%}")
        rows = tuple((part.name, part.shape, part.noise, part.within) for part in parts)
        table = Table(title=question.kind, columns=columns, rows=rows)
        view = [wording.say_asked(question), table, cost, wording.say_risk(question.guarantee)]
    show.emit(plain, view, as_json=as_json)


@release_app.command("show", epilog="Example: privada release show answer.release --question asked.question")
def show_release(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A release file.", show_default=False)],
    question: Annotated[
        Path | None, typer.Option("--question", metavar="FILE", help="The question that it should answer.")
    ] = None,
    public_key: Annotated[
        str | None, typer.Option("--public-key", metavar="HEX", help="The key that should have signed it.")
    ] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", min=0.01, max=0.9999, help="Confidence of the intervals.")
    ] = 0.95,
    as_json: AsJson = False,
) -> None:
    """Explain a release in words, with an interval for every number, and check its signature.

    Ends with 5 if the file or its signature is not valid, or its key or question is another one.
    """
    from privada.exchange.posting import load_question, load_release
    from privada.report.tables import Table

    release = load_release(existing_file(file, "FILE"))
    expected = None if question is None else load_question(existing_file(question, "--question"))
    release.verify(public=public_key, question=expected)
    intervals = release.interval(confidence)
    plain = {
        "kind": release.kind,
        "guarantee": release.guarantee.to_dict(),
        "stamps": list(release.stamps),
        "question": release.question,
        "receipt": release.receipt.to_dict(),
        "confidence": confidence,
        "values": {
            name: value.tolist() if hasattr(value, "tolist") else value
            for name, value in release.payload.items()
        },
        "intervals": {name: [low.tolist(), high.tolist()] for name, (low, high) in intervals.items()},
    }
    view: list[Table | str] = [
        *release.explain(confidence).split("\n"),
        f"Signed by {release.receipt.public}, line {release.receipt.index} of its ledger.",
    ]
    columns = ("number", "released", f"low ({confidence:.0%})", f"high ({confidence:.0%})")
    for name, (low, high) in intervals.items():
        numbers = zip(release[name].ravel(), low.ravel(), high.ravel(), strict=True)
        rows = tuple((str(i), *(f"{number:.6g}" for number in row)) for i, row in enumerate(numbers))
        view.append(Table(title=name, columns=columns, rows=rows).shortened())
    show.emit(plain, view, as_json=as_json)


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model that was saved by privada.", show_default=False)
    ],
    rows: Annotated[Path, typer.Argument(metavar="ROWS", help="Rows as CSV.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write to this new file instead of printing.")
    ] = None,
    delimiter: CsvDelimiter = None,
    decimal: CsvDecimal = None,
    thousands: CsvThousands = None,
    encoding: CsvEncoding = None,
    quote: CsvQuote = None,
    date_format: CsvDateFormat = None,
    as_json: AsJson = False,
) -> None:
    """Predict, row by row, with a saved model.

    Predictions are post-processing of what was released when the model was fitted: they cost nothing.
    If the file has a header, columns are matched by the model's feature names, if it has any. A model of a
    study knows its columns: text, dates and missing values are read as the owner's card declares them.
    """
    from privada.methods.models.predicting import predict_table

    if out is not None:
        new_file(out, "--out")
    dialect = csv_dialect(
        delimiter=delimiter,
        decimal=decimal,
        thousands=thousands,
        encoding=encoding,
        quote=quote,
        date_format=date_format,
    )
    table = predict_table(existing_file(model, "MODEL"), existing_file(rows, "ROWS"), dialect=dialect)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table)
    if out is not None:
        out.write_text(text.getvalue(), encoding="utf-8")
    if as_json:
        show.json_line({"columns": table[0], "rows": table[1:]})
    elif out is None:
        typer.echo(text.getvalue(), nl=False)
    else:
        typer.echo(f"Wrote {len(table) - 1} predictions to {out}")
