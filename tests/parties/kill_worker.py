"""Fork an owner that answers through a folder, kill it at a random instant, again and again.

Run as ``kill_worker.py HOME TRIALS``: HOME holds owner.toml. Prints the number of kills that hit a
child that was still at work.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from privada import CellStatistics, Folder, Nearest, Owner
from privada.privacy import Pure

CENTERS = np.array([[0.2], [0.8]])


def question(salt):
    guarantee = Pure(epsilon=0.001, relation="add/remove")
    return CellStatistics(tables=(Nearest(centers=CENTERS),), guarantee=guarantee, salt=salt)


def serve(home, trial, answers=10_000):
    """Answer one question after another until the kill comes."""
    folder, house = Folder(home / "exchange"), Owner.from_toml(home / "owner.toml")
    for i in range(answers):
        asked = question(f"{trial}-{i}")
        asked.save(folder.question_path("clinic", asked.digest))
        folder.answer("clinic", house)


def main(home, trials):
    warm = Owner(
        np.full((3, 1), 0.1),
        schema=Owner.from_toml(home / "owner.toml").schema,
        dataset="warm",
        budget=Pure(epsilon=1, relation="add/remove"),
    )
    warm.answer(question("warm"))
    started = time.monotonic()
    serve(home, "unharmed", answers=3)
    enough = (
        time.monotonic() - started
    )  # of this machine, as loaded as it is, to start and answer three times
    hits = 0
    for trial in range(trials):
        child = os.fork()
        if child == 0:
            try:
                serve(home, trial)
            finally:
                os._exit(1)
        time.sleep(random.uniform(0.0, 1.5 * enough))
        os.kill(child, signal.SIGKILL)
        hits += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    sys.stdout.write(f"{hits}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
