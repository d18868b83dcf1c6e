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
    from privada.exchange import Sender
    from privada.privacy.keys import LearnerKey

    return Sender(
        learner="" if key is None else key.stem,
        key=None if key is None else LearnerKey.load(key),
        project=study.project,
        purpose=study.purpose,
    )


__all__ = ["make_sender", "open_mailbox"]
