"""``privada predict``: predictions of a saved model for rows of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
    csv_dialect,
    existing_file,
    new_file,
)

EXAMPLE = "privada predict model.privada rows.csv --out predictions.csv"
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model that was saved by privada.", show_default=False)
]
RowsFile = Annotated[Path, typer.Argument(metavar="ROWS", help="Rows as CSV.", show_default=False)]
OutFile = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write here instead of printing; a new file.")
]


def command(
    model: ModelFile,
    rows: RowsFile,
    out: OutFile = None,
    delimiter: CsvDelimiter = None,
    decimal: CsvDecimal = None,
    thousands: CsvThousands = None,
    encoding: CsvEncoding = None,
    quote: CsvQuote = None,
    date_format: CsvDateFormat = None,
    as_json: AsJson = False,
) -> None:
    """Predict, row by row, with a model that was saved.

    Predictions are post-processing of what was released when the model was fitted: they cost nothing.
    Columns with a header are found by the model's feature names, if it has any. A model of a study knows its
    columns: text, dates and missing values are read as the owner's card declares them.
    """
    import csv
    import io

    from privada.methods.models.predicting import predict_table

    target = None if out is None else new_file(out, "--out")
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
    if target is not None:
        target.write_text(text.getvalue(), encoding="utf-8")
    if as_json:
        typer.echo(show.json_text({"columns": table[0], "rows": table[1:]}))
    elif target is None:
        typer.echo(text.getvalue(), nl=False)
    else:
        typer.echo(f"Wrote {len(table) - 1} predictions to {target}")


__all__ = ["EXAMPLE", "command"]
