"""Pictures: inline, and in the page's colours."""

from matplotlib.figure import Figure

from privada.report import pictures


def drawn(text="x", label="a label"):
    figure = Figure()
    axes = figure.add_subplot()
    axes.plot([0, 1], color=pictures.ACCENT)
    axes.set_title(text, parse_math=False, color=pictures.INK)
    return pictures.svg(figure, label=label)


def test_a_picture_is_inline_in_the_pages_colours_and_read_aloud():
    text = drawn("<b>&", label="accuracy of <i>")
    assert text.startswith('<svg role="img" aria-label="accuracy of &lt;i&gt;"')
    assert "<b>" not in text
    assert all(f"var(--{colour})" in text for colour in ("ink", "accent"))
    assert "#01020" not in text
    assert "<metadata>" not in text


def test_the_same_picture_is_the_same_text():
    assert drawn() == drawn()


def test_text_stays_text_and_is_no_mathematics():
    assert "$x_1$" in drawn("$x_1$")
