"""What pytest leaves out where the extra ``deep`` is not installed: docstrings that need torch."""

from importlib.util import find_spec

DEEP = [
    "src/privada/methods/reweighting/deep.py",
    "src/privada/methods/reweighting/questions/network.py",
]

collect_ignore = DEEP if find_spec("torch") is None else []
