"""``privada owner``: set up a data set, check it, decide who may ask, and keep its key."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privada.cli import answer, owner_init, show
from privada.cli.options import (
    AsJson,
    DecidedBy,
    OwnerToml,
    decider_name,
    existing_file,
    find_learner,
    new_file,
    read_owner_file,
    whole_digest,
)
from privada.exceptions import InputError, LedgerError

if TYPE_CHECKING:
    from privada.privacy.receipt import Receipt
    from privada.report.tables import Table

app = typer.Typer(no_args_is_help=True, help="Set up an owner, and give learners its public schema.")
app.command("init", epilog="Example: privada owner init clinic --data patients.parquet --label outcome")(
    owner_init.init
)


@app.command("open-budget", epilog="Example: privada owner open-budget clinic/owner.toml")
def open_budget(owner: OwnerToml, as_json: AsJson = False) -> None:
    """Open the budget that owner.toml declares, once and for all.

    This fixes the data set, its budget and its accounting: none of them can be
    changed later, and a data set under another name has another budget. No
    question is answered before. Running the command again changes nothing.
    """
    file = read_owner_file(owner)
    receipt = file.open_budget()
    plain = {"dataset": receipt.dataset, "budget": file.budget.to_dict(), "opened": receipt.time}
    sentence = f"The budget of {receipt.dataset!r} is open since {receipt.time}: {file.budget}."
    if file.vintage is not None:
        plain["vintage"] = file.vintage.to_dict()
        sentence += f" It is for {file.vintage}."
    show.emit(plain, [sentence], as_json=as_json)


@app.command("schema", epilog="Example: privada owner schema clinic/owner.toml --out schema.toml")
def schema(
    owner: OwnerToml,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write it to this new file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the owner card, which learners need: schema, relation and public key, as TOML.

    Give it to them; a study refers to it by schema = "schema.toml" under owners.NAME.
    """
    card = read_owner_file(owner).card()
    text = card.to_toml()
    if out is not None:
        new_file(out, "--out").write_text(text, encoding="utf-8")
    plain = {"relation": card.relation.value, "public_key": card.public_key, "schema": card.schema.to_dict()}
    show.emit(plain, text.rstrip().split("\n") if out is None else [f"Wrote {out}"], as_json=as_json)


@app.command("check", epilog="Example: privada owner check clinic/owner.toml")
def check(owner: OwnerToml, as_json: AsJson = False) -> None:
    """Read all rows once and count what does not fit the schema. The exact counts are for your eyes only.

    Counts values that cannot be parsed, are missing, lie outside the bounds or are none of the categories,
    and persons with more rows than the bound. Nothing is charged, and nothing leaves this machine. If all
    rows fit, this is recorded beside the ledger, and the same rows are not read again before an answer.
    """
    from privada.parties.checks import check_file
    from privada.report.tables import Table

    file = read_owner_file(owner)
    with show.updating("Reading all rows"):
        report, remembered = check_file(file)
    plain = report.to_dict() | {"remembered": remembered}

    faults = ("unparsable", "missing", "infinite", "fraction", "outside", "below", "above")
    keys = (*faults, "first_line", "first_file")
    table = Table(
        title=f"{plain['rows']} rows",
        columns=("column", *(key.replace("_", " ") for key in keys), "fits"),
        rows=tuple(
            (column["name"], *(str(column.get(key, "")) for key in keys), "yes" if column["fits"] else "no")
            for column in plain["columns"]
        ),
        note="These counts are exact: do not publish them. "
        "Values below or above the bounds are clipped, which is not a fault.",
    )
    view: list[Table | str] = [table.without_empty_columns()]
    if persons := plain.get("persons"):
        view.append(
            f"{persons['persons']} persons; {persons['over']} have more rows than the bound, "
            f"and {persons['dropped']} of their rows are left out."
        )
        if persons["missing"]:
            view.append(f"{persons['missing']} rows name no person.")
    if plain.get("ragged_lines"):
        of_file = f" of {plain['first_ragged_file']}" if "first_ragged_file" in plain else ""
        view.append(
            f"{plain['ragged_lines']} lines have more or fewer fields than the header; "
            f"the first is line {plain['first_ragged_line']}{of_file}."
        )
    if not report.fits:
        view.append("The rows do not fit the schema: the owner cannot be loaded.")
    else:
        again = " The same rows will not be read again to check them." if remembered else ""
        view.append(f"All rows fit.{again}")
    show.emit(plain, view, as_json=as_json)
    if not report.fits:
        raise typer.Exit(show.Exit.FOUND)


app.command(
    "serve",
    epilog="Example: privada owner serve clinic=clinic/owner.toml --exchange nats://broker:4222 "
    "--metrics-port 9464",
)(answer.serve)


@app.command("learners", epilog="Example: privada owner learners clinic/owner.toml")
def learners(owner: OwnerToml, as_json: AsJson = False) -> None:
    """List the learners of owner.toml, with what each may have and has used. Nothing is charged."""
    from privada.parties.permissions import KnownLearners
    from privada.report.ledger import by_learner

    file = read_owner_file(owner)
    rows = []
    with file.open_ledger() as ledger:
        listed = KnownLearners(file.learners or (), budget=ledger.budget(file.dataset))
        activity = by_learner(ledger.export(file.dataset))
        for learner in listed.learners:
            allowance = listed.allowance(learner)
            allowed = ledger.allowed(file.dataset, allowance).filter
            # A learner may have asked under its name before its key was listed, or the reverse.
            sums = [row for row in activity if learner.name == row["learner"] or learner.key == row["key"]]
            rows.append(
                {
                    "name": learner.name,
                    "key": learner.key,
                    "methods": None if learner.methods is None else list(learner.methods),
                    "allowance": None if allowed is None else allowed.budget.to_dict(),
                    "declared": None if learner.allowance is None else learner.allowance.to_dict(),
                    "left": ledger.used(file.dataset, allowance).share,
                    "expires": None if learner.expires is None else learner.expires.isoformat(),
                    "approval": learner.approval,
                    "last": max((row["last"] for row in sums), default=None),
                    **{count: sum(row[count] for row in sums) for count in _COUNTS},
                }
            )
        remaining, unlisted = ledger.remaining(file.dataset), ledger.unlisted(file.dataset)
    view: list[Table | str] = [str(remaining)]
    if file.learners is None:
        view.append("The file lists no learners: whoever the policy allows may ask.")
    else:
        view.append(_learners_table(rows))
    if unlisted:
        view.append(f"Refusals that got no line, mostly of strangers: {sum(unlisted.values())}.")
    plain = {"learners": rows, "left": remaining.share, "unlisted_refusals": unlisted}
    show.emit(plain, view, as_json=as_json)


_COUNTS = ("charges", "copies", "refusals")


def _learners_table(rows: list[dict[str, Any]]) -> Table:
    from privada.privacy.guarantee import Guarantee
    from privada.report.ledger import percent
    from privada.report.tables import Table

    columns = (
        *("learner", "key", "methods", "allowance", "used", "last day"),
        *("approval", *_COUNTS, "last asked (UTC)"),
    )
    body = tuple(
        (
            row["name"],
            row["key"][:8],
            "as the policy" if row["methods"] is None else ", ".join(row["methods"]),
            "the budget" if row["allowance"] is None else str(Guarantee.from_dict(row["allowance"])),
            "" if row["allowance"] is None else percent(1 - row["left"]),
            row["expires"] or "",
            {None: "as the policy", True: "yes", False: "no"}[row["approval"]],
            *(str(row[count]) for count in _COUNTS),
            str(row["last"] or "")[:19].replace("T", " "),
        )
        for row in rows
    )
    return Table(title="Who may ask", columns=columns, rows=body).without_empty_columns()


@app.command(
    "allow", epilog="Example: privada owner allow clinic/owner.toml alice --epsilon 0.5 --by 'Dr Who'"
)
def allow(
    owner: OwnerToml,
    learner: Annotated[
        str, typer.Argument(metavar="LEARNER", help="A learner of owner.toml.", show_default=False)
    ],
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="At most this ε.")] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="With ε; by default the budget's δ.")] = None,
    rho: Annotated[float | None, typer.Option("--rho", help="At most this ρ.")] = None,
    whole: Annotated[bool, typer.Option("--whole", help="The whole budget.")] = False,
    by: DecidedBy = None,
    as_json: AsJson = False,
) -> None:
    """Change a learner's allowance. The ledger records who changed it, from what to what, and when.

    The change takes effect at once, also for an owner that is serving. What the learner has used stays
    used. The allowance in owner.toml is what you declared; it takes effect again when you change it there.
    """
    from privada.parties.permissions import KnownLearners, part_of

    file = read_owner_file(owner)
    asker = find_learner(file, learner)
    if whole == any(number is not None for number in (epsilon, delta, rho)):
        raise InputError("Say either --whole or how much: --epsilon (with --delta) or --rho.")
    most = None if whole else part_of(file.budget, epsilon=epsilon, delta=delta, rho=rho)
    with file.open_ledger() as ledger:
        # Record the file's own allowance first, as an owner does that opens: otherwise the file
        # would seem to have been edited when it is read next, and would replace this decision.
        listed = KnownLearners(file.learners or (), budget=ledger.budget(file.dataset))
        ledger.declare(
            file.dataset, next(allowance for allowance in listed.allowances if allowance.key == asker.key)
        )
        receipt = ledger.allow(
            file.dataset, learner=asker.learner, key=asker.key, most=most, by=decider_name(by)
        )
    plain = {
        "learner": asker.learner,
        "allowance": None if most is None else most.to_dict(),
        "receipt": receipt.to_dict(),
    }
    sentence = f"{asker.learner!r} may have {most or 'the whole budget'}: {_format_place(receipt)}."
    show.emit(plain, [sentence], as_json=as_json)


def _format_place(receipt: Receipt) -> str:
    time = receipt.time[:19].replace("T", " ")
    return f"line {receipt.index} of {receipt.dataset!r}, {time} UTC"


Digest = Annotated[
    str, typer.Argument(metavar="DIGEST", help="All 64 digits of the question's digest.", show_default=False)
]
OfLearner = Annotated[
    str | None, typer.Option("--learner", metavar="NAME", help="Decide only for this learner of owner.toml.")
]
Reconsider = Annotated[
    bool, typer.Option("--reconsider", help="Replace an earlier decision on the same question.")
]
_A_DIGEST = "5c" * 32


@app.command("approve", epilog=f"Example: privada owner approve clinic/owner.toml {_A_DIGEST} --by 'Dr Who'")
def approve(
    owner: OwnerToml,
    digest: Digest,
    by: DecidedBy = None,
    learner: OfLearner = None,
    reconsider: Reconsider = False,
    as_json: AsJson = False,
) -> None:
    """Approve a question. The ledger records who did, and the owner answers it when it is asked next.

    Nothing is charged and no row is opened here. The first decision stands
    unless you reconsider it.
    """
    _decide(owner, digest, None, by=by, learner=learner, reconsider=reconsider, as_json=as_json)


@app.command(
    "refuse",
    epilog=f"Example: privada owner refuse clinic/owner.toml {_A_DIGEST} --by 'Dr Who' "
    "--reason 'ask for less'",
)
def refuse(
    owner: OwnerToml,
    digest: Digest,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why; the learner reads it.", show_default=False)
    ],
    by: DecidedBy = None,
    learner: OfLearner = None,
    reconsider: Reconsider = False,
    as_json: AsJson = False,
) -> None:
    """Refuse a question. The ledger records who did and why, and the owner does not answer it.

    Decide by public information only, never by what the answer would be.
    """
    _decide(owner, digest, reason, by=by, learner=learner, reconsider=reconsider, as_json=as_json)


def _decide(
    owner: Path,
    digest: str,
    reason: str | None,
    *,
    by: str | None,
    learner: str | None,
    reconsider: bool,
    as_json: bool,
) -> None:
    """Write a decision to the ledger: a refusal if there is a reason, otherwise an approval."""
    file = read_owner_file(owner)
    with file.open_ledger() as ledger:
        question, decider = whole_digest("DIGEST", digest), decider_name(by)
        asker = None if learner is None else find_learner(file, learner)
        if reason is None:
            decision = "approved"
            receipt = ledger.approve(file.dataset, question, by=decider, asker=asker, reconsider=reconsider)
        else:
            decision = "refused"
            receipt = ledger.reject(
                file.dataset, question, by=decider, reason=reason, asker=asker, reconsider=reconsider
            )
    plain = {"question": receipt.question, "decision": decision, "receipt": receipt.to_dict()}
    sentence = f"Question {receipt.question[:12]} is {decision}: {_format_place(receipt)}."
    show.emit(plain, [sentence], as_json=as_json)


@app.command(
    "console-user",
    epilog="Example: privada owner console-user clinic/owner.toml 'Grace Hopper' --role approver",
)
def console_user(
    owner: OwnerToml,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="The name that the ledger will record for decisions.", show_default=False
        ),
    ],
    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help="viewer, approver or administrator.")
    ] = "viewer",
    users: Annotated[
        Path | None,
        typer.Option("--users", metavar="FILE", help="By default console-users.json beside owner.toml."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let a person sign in to the console, or change their role and passphrase.

    The passphrase is asked for twice, or taken from PRIVADA_CONSOLE_PASSPHRASE;
    only its scrypt hash is stored. Viewers see, approvers decide.
    """
    from privada.privacy.keys import choose_passphrase
    from privada.service.console.users import FILE, User, Users

    path = users or existing_file(owner, "OWNER_TOML").with_name(FILE)
    user = User.create(name, role, choose_passphrase("PRIVADA_CONSOLE_PASSPHRASE"))
    Users(path).put(user)
    plain = {"name": user.name, "role": user.role, "users": str(path)}
    show.emit(plain, [f"{user.name} may sign in as {user.role}: {path}."], as_json=as_json)


key_app = typer.Typer(no_args_is_help=True, help="Protect an owner's key, or replace it by a new one.")
app.add_typer(key_app, name="key")


@key_app.command("passphrase", epilog="Example: privada owner key passphrase clinic/owner.toml")
def set_passphrase(
    owner: OwnerToml,
    remove: Annotated[bool, typer.Option("--remove", help="Store the key without a passphrase.")] = False,
    as_json: AsJson = False,
) -> None:
    """Set, change or remove the passphrase of an owner's key. The key itself stays the same.

    The old passphrase is taken from PRIVADA_KEY_PASSPHRASE, the new one from
    PRIVADA_NEW_KEY_PASSPHRASE; if one is not set, you are asked on the terminal.
    Backups of the key's file keep the passphrase that they had.
    """
    from privada.privacy.keys import choose_passphrase
    from privada.privacy.receipt import OwnerKey

    path = read_owner_file(owner).key
    key = OwnerKey.load(path)
    key.change_passphrase(path, passphrase=None if remove else choose_passphrase())
    plain = {"written": str(path), "public_key": key.public, "protected": not remove}
    how = "without a passphrase; only its file mode protects it" if remove else "under the new passphrase"
    show.emit(plain, [f"Wrote {path}, {how}."], as_json=as_json)


@key_app.command("rotate", epilog="Example: privada owner key rotate clinic/owner.toml")
def rotate_key(
    owner: OwnerToml,
    protect: Annotated[
        bool,
        typer.Option(
            "--passphrase",
            help="Protect the new key. The passphrase is asked for twice, or taken from "
            "PRIVADA_NEW_KEY_PASSPHRASE. Always done if the old key is protected.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Replace the key: a new key takes over the ledger, and the old one signs for it.

    Writes a hand-over file for all who know the old public key; they check it
    with privada owner key check. The old key's file is kept under another name,
    for older backups; delete it when they are gone. If the command is
    interrupted, run it again. It needs the old key: a lost key is a lost
    ledger.
    """
    from privada.privacy.keys import NEW_VARIABLE, OwnerKey, choose_passphrase, is_protected
    from privada.privacy.ledger import Ledger
    from privada.privacy.ledger.recovery import heads_of

    file = read_owner_file(owner)
    old_key = OwnerKey.load(file.key)
    draft = file.key.with_name(f"{file.key.name}.new")
    heads = heads_of(file.ledger, file.key)
    hand_over = None
    if draft.exists():  # by an earlier run that was interrupted, perhaps after the ledger changed hands
        new_key = OwnerKey.load(draft, passphrase=os.environ.get(NEW_VARIABLE))
        with suppress(LedgerError), Ledger.open(file.ledger, new_key, create=False, heads=heads) as ledger:
            hand_over = ledger.hand_overs()[-1]
    else:
        words = choose_passphrase() if protect or is_protected(file.key.read_bytes()) else None
        new_key = OwnerKey.generate()
        new_key.save(draft, passphrase=words)
    if hand_over is None:
        with Ledger.open(file.ledger, old_key, create=False, heads=heads) as ledger:
            hand_over = ledger.rotate(new_key)

    # The ledger has changed hands: from here on, an interruption leaves the new key in its draft
    old_path = file.key.with_name(f"{file.key.name}.{old_key.public[:12]}")
    _link_or_copy(file.key, old_path)
    draft.replace(file.key)
    letter = hand_over.save(owner.parent / f"handover-{new_key.public[:12]}.json")
    plain = hand_over.to_dict() | {"written": [str(file.key), str(letter)], "kept": str(old_path)}
    view = (
        f"The key {hand_over.new} took over from {hand_over.old}.",
        f"Wrote {file.key}; the old key is kept in {old_path}.",
        f"Wrote {letter}: give it, and the new schema (privada owner schema), to those who know the old key.",
    )
    show.emit(plain, view, as_json=as_json)


def _link_or_copy(key: Path, copy: Path) -> None:
    """Give the key's file a second name, so that a complete file exists under one of them at any moment."""
    try:
        os.link(key, copy)
    except FileExistsError:  # by an earlier run
        return
    except OSError:  # a file system without links
        part = copy.with_name(f"{copy.name}.partial")
        part.unlink(missing_ok=True)
        part.touch(mode=0o600)
        part.write_bytes(key.read_bytes())
        part.replace(copy)


@key_app.command("check", epilog="Example: privada owner key check handover.json --public-key 6f1e...")
def check_hand_over(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The hand-over file.", show_default=False)],
    public_key: Annotated[
        str,
        typer.Option(
            "--public-key", metavar="HEX", help="The owner's key that you know.", show_default=False
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Check a hand-over file that an owner gave you: the key that you know names the new one.

    Ends with 5 if it is not valid. It proves that a holder of the old key handed
    over; if that key was stolen, ask the owner through another channel.
    """
    from privada.privacy.ledger.chain import HandOver

    hand_over = HandOver.load(existing_file(file, "FILE"))
    hand_over.verify(old=public_key)
    sentence = f"The key {hand_over.old} handed over to {hand_over.new} at {hand_over.time}."
    show.emit(hand_over.to_dict(), [sentence], as_json=as_json)
