"""Pictures as inline SVG, if matplotlib is there (``pip install 'privada[plot]'``), else none.

Colours are written as marks and replaced by the page's own variables, so that
one picture serves light and dark.
"""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

from privada._text import escape_in_html as escape

_MARKS = {
    "#010203": "var(--ink)",
    "#010204": "var(--soft)",
    "#010205": "var(--line)",
    "#010206": "var(--accent)",
    "#010207": "var(--plain)",
    "#010208": "var(--card)",
}
INK, SOFT, LINE, ACCENT, PLAIN, CARD = _MARKS


def svg(figure: Any, *, label: str) -> str:
    """A matplotlib figure as inline SVG in the page's colours; text stays text, ``label`` is read aloud."""
    import matplotlib as mpl

    buffer = StringIO()
    figure.patch.set_visible(False)
    for axes in figure.axes:
        axes.patch.set_visible(False)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "privada", "font.family": "sans-serif"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r"font-family: [^;\"]+|font: ([\d.]+px) [^;\"]+", _font, text)
    for mark, colour in _MARKS.items():
        text = text.replace(mark, colour)
    return text.strip().replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)


def _font(found: re.Match[str]) -> str:
    return f"font: {found.group(1)} system-ui, sans-serif" if found.group(1) else "font-family: inherit"


__all__ = ["svg"]
