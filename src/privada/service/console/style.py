"""How the console looks: the reports' style and blocks, and what forms and navigation need beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from privada.report.ledger import percent
from privada.report.page import CSS as REPORT
from privada.report.page import Score, badge_row, score_row, table_block

CSS = (
    REPORT
    + """
.htmx-indicator{opacity:0}
a{color:var(--accent)}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px;border-radius:4px}
.skip{position:absolute;left:-99rem}
.skip:focus{left:1rem;top:1rem;background:var(--card);padding:.5rem}
nav{display:flex;flex-wrap:wrap;gap:.4rem 1.2rem;align-items:center;margin:0 0 1.6rem}
nav a{text-decoration:none;padding:.25rem 0}
nav a[aria-current]{font-weight:650;border-bottom:2px solid var(--accent)}
nav .end{margin-left:auto;color:var(--soft);font-size:.9rem;display:flex;gap:.8rem;align-items:center}
form{margin:0}
fieldset{border:1px solid var(--line);border-radius:8px;margin:1rem 0 0;padding:.2rem 1rem 1rem;min-width:0}
legend{font-weight:650;overflow-wrap:anywhere}
input.check{width:auto;display:inline}
main>p{margin-bottom:1rem}
section h2:not(:first-child){margin-top:1.8rem}
summary{cursor:pointer;color:var(--accent);font-weight:550;margin-top:.8rem}
label{display:block;margin:.8rem 0 .2rem;font-weight:550}
input,select,textarea{display:block;font:inherit;color:var(--ink);background:var(--paper);
border:1px solid var(--plain);border-radius:8px;padding:.5rem .7rem;width:100%;max-width:32rem}
select{max-width:42rem}
button,a.button{font:inherit;font-weight:600;color:var(--card);background:var(--accent);
border:1px solid var(--accent);border-radius:8px;padding:.55rem 1.1rem;margin:.8rem .5rem 0 0;cursor:pointer}
a.button{display:inline-block;text-decoration:none}
button.quiet{color:var(--accent);background:transparent}
nav button{margin:0;padding:.2rem .7rem}
dl{display:grid;grid-template-columns:minmax(7rem,12rem) 1fr;gap:.35rem 1rem;margin:.6rem 0 0}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}
code{font-size:.86em;overflow-wrap:anywhere}
.error{background:var(--warn-tint);color:var(--warn);border-radius:8px;padding:.6rem .9rem;max-width:none}
.done{background:var(--tint);color:var(--accent);border-radius:8px;padding:.6rem .9rem;max-width:none}
.choices{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(16rem,100%),1fr));gap:1.4rem}
.choices>*{min-width:0}
.fields{grid-template-columns:repeat(auto-fit,minmax(min(11rem,100%),1fr));gap:0 1rem}
.done p{max-width:none}
.done p:first-child{margin-top:0}
div.done{margin-bottom:1rem}
.pair{grid-template-columns:repeat(auto-fit,minmax(min(24rem,100%),1fr));margin-top:1.4rem;gap:1.6rem 2rem}
.pair>*{border-top:1px solid var(--line);padding-top:1rem}
.pair h3{margin-top:0;font-size:1.05rem;color:var(--ink)}
.pair figure svg.burn,.pair figure svg.burn:only-of-type{height:5rem}
figure svg.burn,figure svg.burn:only-of-type{flex:0 0 100%;max-width:none;height:7rem;
border-bottom:1px solid var(--plain);border-left:1px solid var(--plain)}
.burn .fill{fill:var(--tint)}
.burn .edge{fill:none;stroke:var(--accent);stroke-width:2;vector-effect:non-scaling-stroke}
.burn+figcaption{display:flex;justify-content:space-between;max-width:none}
@media (max-width:40rem){body{padding:1.2rem .9rem 3rem}section{padding:1rem}dl{grid-template-columns:1fr}
dd{margin-bottom:.4rem}nav .end{margin-left:0}}
@media print{nav,form,.skip{display:none}}
"""
)

PAGES = Path(__file__).parent / "pages"


def open_templates(*folders: Path) -> Environment:
    """Templates of some folders and of the console, which escape everything but the reports' own blocks."""
    loader = FileSystemLoader([*folders, PAGES])
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    blocks: dict[str, Callable[..., str]] = {"badges": badge_row, "scores": score_row, "table": table_block}
    made.globals.update({name: _marked(block) for name, block in blocks.items()})
    made.globals.update(percent=percent, score=Score)
    return made


def _marked(block: Callable[..., str]) -> Callable[..., Markup]:
    """A block that a template does not escape again: the reports have escaped its text."""

    def make(*args: object, **named: object) -> Markup:
        return Markup(block(*args, **named))  # noqa: S704 - escaped by the block

    return make


__all__ = ["CSS", "PAGES", "open_templates"]
