"""Where `privada.lab` was: printed mechanisms, baselines, data sets and experiments are in privada-lab."""

from typing import NoReturn

__all__: list[str] = []


def __getattr__(name: str) -> NoReturn:
    # Python asks for __path__ when a module below this one is imported
    if name in {"__path__", "baselines", "datasets", "experiments", "papers"}:
        raise ImportError(
            "privada.lab is now privada_lab, of the distribution privada-lab: run pip install ./lab in a "
            "copy of privada's repository, and import privada_lab instead."
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
