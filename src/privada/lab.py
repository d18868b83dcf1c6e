"""Where `privada.lab` was: printed mechanisms, baselines, data sets and experiments are in privada-lab."""

from typing import NoReturn

__all__: list[str] = []


def __getattr__(name: str) -> NoReturn:
    # Python looks for __path__ when a module below this one is imported; other dunder names are only probed
    if name.startswith("__") and name != "__path__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise ImportError(
        "privada.lab is now privada_lab, of the distribution privada-lab: run pip install ./lab in a copy of "
        "privada's repository, and import privada_lab instead."
    )
