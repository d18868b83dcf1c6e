"""An evaluation as a picture: confusion matrix, ROC and calibration with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privada import _plot

if TYPE_CHECKING:
    from privada.methods.evaluation.learner.classification import Classification


def draw_classification(found: Classification) -> Any:
    """A panel for everything that was asked for."""
    scored = len(found.question.edges) > 0
    curve = scored and (found.question.n_classes == 2 or found.question.positive is not None)
    figure, panels = _plot.new_figure(1 + scored + curve)
    _draw_confusion(panels[0], found)
    if curve:
        _draw_curve(panels[1], found)
    if scored:
        _draw_calibration(panels[-1], found)
    stamps = "".join(f"  [{stamp}]" for stamp in found.release.stamps)
    title = f"accuracy {found.accuracy}; {found.release.guarantee}{stamps}"
    figure.suptitle(title, color=_plot.INK, fontsize=11, x=0.02, ha="left", parse_math=False)
    return figure


def _draw_confusion(axes: Any, found: Classification) -> None:
    names = [str(name) for name in found.classes]
    _plot.draw_table(axes, found.confusion, rows=names, columns=names)
    _plot.name_axes(axes, title="rows by class (noisy counts)", x="predicted", y="true")


def _draw_curve(axes: Any, found: Classification) -> None:
    """The curve, and for each point the rectangle of its two intervals."""
    from matplotlib.patches import Rectangle

    points = [(point.false_positives, point.true_positives) for point in found.roc]
    for across, up in points:
        corner, size = (across.low, up.low), (across.high - across.low, up.high - up.low)
        axes.add_patch(Rectangle(corner, *size, color=_plot.ACCENT, alpha=0.12, linewidth=0))
    x = [0.0, *(across.value for across, _ in points), 1.0]
    y = [0.0, *(up.value for _, up in points), 1.0]
    axes.plot([0, 1], [0, 1], color=_plot.LINE, linewidth=1.5, zorder=0)
    axes.plot(x, y, "o-", color=_plot.ACCENT, markersize=4, linewidth=1.5)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    title = f"ROC of {found.classes[found.positive]}: area {found.auc.value:.3f}"
    _plot.name_axes(axes, title=title, x="false positives", y="true positives")


def _draw_calibration(axes: Any, found: Classification) -> None:
    bins = found.calibration
    ends = np.clip([(each.low, each.high) for each in bins], *_score_range(found))
    shares = np.array([(each.share.value, each.share.low, each.share.high) for each in bins])
    axes.plot([0, 1], [0, 1], color=_plot.LINE, linewidth=1.5, zorder=0)
    axes.hlines(shares[:, 0], ends[:, 0], ends[:, 1], color=_plot.ACCENT, alpha=0.35, linewidth=1.5)
    _plot.draw_intervals(axes, ends.mean(axis=1), shares[:, 0], shares[:, 1], shares[:, 2])
    axes.set_ylim(-0.02, 1.02)
    _plot.name_axes(axes, title="calibration", x="score", y="share that is true")


def _score_range(found: Classification) -> tuple[float, float]:
    """Where scores are drawn: from 0 to 1, or a little beyond the edges if these are elsewhere."""
    edges = found.question.edges
    return min(0.0, float(edges[0]) - 0.1), max(1.0, float(edges[-1]) + 0.1)


__all__ = ["draw_classification"]
