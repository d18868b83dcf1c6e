"""A release as a picture: its noisy arrays, with intervals for the noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privada import _plot
from privada.exceptions import InputError

if TYPE_CHECKING:
    from privada.privacy.release import Release

MOST_PANELS = 6
MOST_POINTS = 60  # numbers whose intervals can be told apart


def draw_release(release: Release, confidence: float) -> Any:
    """A panel for each noisy array, the first few of them."""
    ends = release.interval(confidence)
    names = [name for name in sorted(release.noise) if np.size(release[name])][:MOST_PANELS]
    if not names:
        raise InputError("This release has no noisy array to draw.")
    figure, panels = _plot.new_figure(len(names))
    for axes, name in zip(panels, names, strict=True):
        _draw(axes, name, np.asarray(release[name], dtype=np.float64), ends.get(name), confidence)
    stamps = "".join(f"  [{stamp}]" for stamp in release.stamps)
    title = f"{release.kind} of {release.receipt.dataset}: {release.guarantee}{stamps}"
    figure.suptitle(title, color=_plot.INK, fontsize=11, x=0.02, ha="left", parse_math=False)
    return figure


def _draw(axes: Any, name: str, value: Any, ends: Any, confidence: float) -> None:
    flat = value.reshape(-1)
    if value.ndim > 1 and min(value.shape[0], flat.size // value.shape[0]) > 1:
        _plot.draw_table(axes, value.reshape(value.shape[0], -1))
        _plot.name_axes(axes, title=name, x="place", y="place")
        return
    low, high = (flat, flat) if ends is None else (np.reshape(end, -1) for end in ends)
    if flat.size > MOST_POINTS or ends is None:
        axes.plot(np.arange(flat.size), flat, color=_plot.ACCENT, linewidth=1)
    else:
        _plot.draw_intervals(axes, np.arange(flat.size), flat, low, high)
    axes.axhline(0, color=_plot.LINE, linewidth=1, zorder=0)
    said = "" if ends is None else f" ({confidence:.0%} intervals of the noise)"
    _plot.name_axes(axes, title=f"{name}{said}", x="place")


__all__ = ["draw_release"]
