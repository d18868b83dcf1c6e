"""The exchange that a command names, opened for the learner of a study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privada.exchange import Mailbox, Sender
    from privada.studies.study import Study


def open_mailbox(url: str, study: Study, key: Path | None) -> Mailbox:
    """Open an exchange to ask a study's owners, signing with a key if there is one."""
    from privada.exchange import Mailbox

    return Mailbox.open(url, keys=study.keys, sender=make_sender(study, key))


def make_sender(study: Study, key: Path | None) -> Sender:
    """Who asks: the learner of the key, for the study's project and purpose."""
    from privada.exceptions import InputError
    from privada.exchange import Sender
    from privada.privacy.keys import LearnerKey

    if key is None:
        return Sender(project=study.project, purpose=study.purpose)
    try:
        return Sender(
            learner=key.stem, key=LearnerKey.load(key), project=study.project, purpose=study.purpose
        )
    except InputError as error:  # the study's texts were checked when it was read
        raise InputError(f"--key: the name of its file is the learner's. {error}") from None


__all__ = ["make_sender", "open_mailbox"]
