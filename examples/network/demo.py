"""A network on one machine: a broker, three owners and two learners, each a process of its own.

Every method's example study is run over the broker, with certificates, signed questions and allowances;
then the owners' ledgers are shown by learner, and everything is stopped. ``make demo-network`` runs it.
Nothing here is special to the demo: it only calls the commands that you would type.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PRIVADA = [sys.executable, "-m", "privada.cli"]
INSTITUTIONS = {"north": "clinic", "south": "registry"}  # who holds a data set of another name
LEARNERS = {"summarization": "curator"}  # rows go to a curator; everything else is asked by alice


@dataclass(frozen=True)
class DataSet:
    """One owner's file: its name on the exchange, and the institution that serves it."""

    name: str
    institution: str
    file: Path


def main() -> None:
    parser = argparse.ArgumentParser(description="A broker, three owners and two learners on this machine.")
    parser.add_argument("--out", type=Path, default=Path("demo-network-out"), help="a new folder")
    parser.add_argument("--method", action="append", help="only this method; repeatable")
    options = parser.parse_args()
    make_empty(options.out)
    methods = options.method or all_methods()
    for learner in ("alice", "curator"):
        privada("learner", "init", learner, "--folder", options.out)
    sets = [each for method in methods for each in prepare_study(options.out, method)]
    with running_network(options.out, sets):
        for method in methods:
            run_study(options.out, method)
    show_ledgers(sets)


def make_empty(folder: Path) -> None:
    """A new folder, in the place of an earlier demo's but of nothing else."""
    if (folder / "broker" / "broker.toml").exists():
        shutil.rmtree(folder)
    if folder.exists():
        raise SystemExit(f"{folder} is there and is not an earlier demo's: name another folder by --out.")
    folder.mkdir(parents=True)


def all_methods() -> list[str]:
    """The methods that have an example study."""
    code = "from privada.studies.example import example_methods; print(*example_methods())"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return names.stdout.split()


def privada(*words: object) -> str:
    """Run one command and return what it shows; one that fails ends the demo."""
    done = subprocess.run([*PRIVADA, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"privada {' '.join(map(str, words))} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def prepare_study(home: Path, method: str) -> list[DataSet]:
    """Write a method's example; its data sets go to their institutions, the learner keeps their cards."""
    folder = home / method
    privada("init", folder, "--method", method)
    text = (folder / "study.toml").read_text()
    sets = []
    for owner in re.findall(r"^\[owners\.([\w-]+)\]", text, re.MULTILINE):
        found = DataSet(f"{owner}-{method}", INSTITUTIONS.get(owner, owner), folder / owner / "owner.toml")
        add_learner(found.file, LEARNERS.get(method, "alice"), home)
        privada("owner", "schema", found.file, "--out", folder / f"{found.name}.toml")
        text = text.replace(f"[owners.{owner}]", f"[owners.{found.name}]")
        text = re.sub(rf'^owner = "{owner}/owner.toml"', f'schema = "{found.name}.toml"', text, flags=re.M)
        text = text.replace(f'"{owner}"', f'"{found.name}"')
        sets.append(found)
    (folder / "study.toml").write_text(text)
    return sets


def add_learner(owner: Path, learner: str, home: Path) -> None:
    """List the one learner that this owner answers."""
    card = json.dumps(str((home / f"{learner}.toml").resolve()))
    with owner.open("a") as file:
        file.write(f'\n[[learners]]\nname = "{learner}"\nkey = {card}\n')


@contextlib.contextmanager
def running_network(home: Path, sets: list[DataSet]) -> Iterator[None]:
    """Set up and start the broker and the owners; stop them at the end."""
    broker, institutions = home / "broker", sorted({each.institution for each in sets})
    owners = [f"{name}={','.join(held_names(sets, name))}" for name in institutions]
    words = [word for owner in owners for word in ("--owner", owner)]
    port = free_port()
    privada("link", "init", broker, *words, "--learner", "alice", "--learner", "curator", "--port", port)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(process(home / "broker.log", "link", "serve", broker))
        assert server.stdout is not None
        say(server.stdout.readline().strip() or f"The broker did not start: see {home / 'broker.log'}")
        for name in institutions:
            files = [f"{each.name}={each.file}" for each in sets if each.institution == name]
            link = broker / "parties" / f"owner-{name}" / "link.toml"
            stack.enter_context(process(home / f"{name}.log", "owner", "serve", *files, "--exchange", link))
            say(f"{name} serves {', '.join(held_names(sets, name))}.")
        yield
    say("Everything is stopped.")


def held_names(sets: list[DataSet], institution: str) -> list[str]:
    return [each.name for each in sets if each.institution == institution]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def process(log: Path, *words: object) -> Iterator[subprocess.Popen[str]]:
    """A command that runs until the block ends; what it logs goes into a file."""
    with log.open("w") as sink:
        command = [*PRIVADA, *map(str, words)]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=sink, text=True)
    try:
        yield running
    finally:
        running.terminate()
        running.communicate(timeout=30)
        if running.returncode:
            say(f"{log.stem} ended with {running.returncode}: see {log}")


def run_study(home: Path, method: str) -> None:
    """Ask as the learner would, over the broker."""
    learner = LEARNERS.get(method, "alice")
    link = home / "broker" / "parties" / f"learner-{learner}" / "link.toml"
    start = time.perf_counter()
    shown = privada(
        "run", home / method / "study.toml", "--exchange", link, "--key", home / f"{learner}.key",
        "--patience", 120, "--out", home / method / "result.json",
    )  # fmt: skip
    title, _, rest = shown.partition("\n")
    releases = rest.partition("Releases\n")[2].rstrip()
    say(f"\n{title}\n{method}, asked by {learner}, took {time.perf_counter() - start:.1f} s.\n{releases}")


def show_ledgers(sets: list[DataSet]) -> None:
    """What each ledger has charged, in whose name."""
    for each in sets:
        shown = privada("ledger", "show", each.file, "--by", "learner").partition("By learner\n")[2]
        say(f"\nLedger of {each.name}, held by {each.institution}, by learner\n{shown.rstrip()}")


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
