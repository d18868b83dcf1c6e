"""``privada learn``: finish a study from the releases in an exchange."""

from __future__ import annotations

from privada.cli import show
from privada.cli.options import (
    AsJson,
    ExchangeUrl,
    LearnerKeyFile,
    MethodName,
    ModelOut,
    PageFile,
    ResultFile,
    StudyFile,
    existing_exchange,
    existing_file,
)

EXAMPLE = "privada learn cells study.toml --exchange exchange --out result.json"


def command(
    method: MethodName,
    study: StudyFile,
    exchange: ExchangeUrl,
    key: LearnerKeyFile = None,
    out: ResultFile = None,
    page: PageFile = None,
    model: ModelOut = None,
    as_json: AsJson = False,
) -> None:
    """Compute a study's result from the releases that owners put into the exchange.

    Signatures are checked, against the owner's public key where the study's
    schema file names it. Ends with 4 while a release is missing; the questions
    of the next round are then written.
    """
    from privada.cli.studies.mailbox import open_mailbox
    from privada.cli.studies.outcome import finish, prepare, prepare_model
    from privada.parties.owner_file import Card
    from privada.studies.outcome import learn_from
    from privada.studies.study import Study, check_method

    read = Study.read(existing_file(study, "STUDY"))
    check_method(read, method)
    prepare(out, page)
    keep = prepare_model(model, read)
    with (
        open_mailbox(existing_exchange(exchange, "--exchange"), read, key) as mailbox,
        show.working(f"Learning {read.title}"),
    ):
        outcome = learn_from(mailbox, read)
    for name, party in read.parties.items():
        if isinstance(party, Card) and party.public_key is None:
            show.note(f"the schema of {name} names no public_key: anyone may have signed its releases.")
    finish(outcome, out=out, page=page, keep=keep, as_json=as_json)


__all__ = ["EXAMPLE", "command"]
