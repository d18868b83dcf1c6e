"""How a page looks: system fonts, one accent, light and dark."""

CSS = """
:root{--paper:#fbfaf7;--card:#fff;--ink:#1f2328;--soft:#5d6670;--line:#e4e1d9;--accent:#0b6e63;
--tint:#e3f1ee;--plain:#9aa3ab;--warn:#8a4b00;--warn-tint:#fdf0db}
@media (prefers-color-scheme:dark){:root{--paper:#14171a;--card:#1c2024;--ink:#e7e9ea;--soft:#9ba4ad;
--line:#2e343a;--accent:#5cc8b7;--tint:#15332f;--plain:#727c86;--warn:#f2b866;--warn-tint:#38290f}}
*{box-sizing:border-box}
body{margin:0 auto;padding:3rem 1.25rem 4rem;max-width:66rem;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif}
header{margin-bottom:2rem}
.mark{color:var(--accent);font-weight:650;letter-spacing:.04em}
h1{margin:.2rem 0 .4rem;font-size:2rem;line-height:1.2;letter-spacing:-.015em}
h2{margin:0 0 .35rem;font-size:1.2rem;letter-spacing:-.005em}
h3{margin:1.3rem 0 .4rem;font-size:.95rem;color:var(--soft);font-weight:600}
p{margin:.4rem 0 0;max-width:46rem}
.lead{font-size:1.1rem;color:var(--soft);text-wrap:balance}
section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:1.4rem 1.5rem;
margin:0 0 1.25rem}
.badges{display:flex;flex-wrap:wrap;gap:.4rem;margin:.35rem 0}
.badge{background:var(--tint);color:var(--accent);border-radius:99px;padding:.12rem .7rem;font-size:.86rem;
font-weight:550}
.badge.warn{background:var(--warn-tint);color:var(--warn)}
.scores{display:grid;grid-template-columns:repeat(auto-fit,minmax(11rem,1fr));gap:.8rem;margin:1.1rem 0 .2rem}
.score{border-top:3px solid var(--line);padding-top:.55rem}
.score b{display:block;font-size:1.75rem;line-height:1.15;font-weight:620;font-variant-numeric:tabular-nums}
.score span{color:var(--soft);font-size:.9rem}
.score.ours{border-color:var(--accent)}
.score.ours b{color:var(--accent)}
figure{margin:1rem 0 .2rem;display:flex;flex-wrap:wrap;gap:.6rem 1.5rem}
figure svg{display:block;flex:1 1 17rem;min-width:0;width:100%;height:auto;max-width:30rem}
figure svg:only-of-type{max-width:38rem}
figcaption{flex:0 0 100%;color:var(--soft);font-size:.9rem;max-width:46rem}
.scroll{overflow-x:auto;margin-top:.6rem}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th{text-align:left;color:var(--soft);font-weight:600;font-size:.82rem}
th,td{padding:.38rem .9rem .38rem 0;border-bottom:1px solid var(--line);vertical-align:top}
tbody tr:last-child>*{border-bottom:0}
td{font-variant-numeric:tabular-nums}
td.n,td.s{white-space:nowrap}
.bars{width:auto;min-width:24rem}
.bars td{min-width:8rem;background:linear-gradient(to right,var(--tint) var(--p),transparent 0);
padding-left:.4rem}
.note,footer{color:var(--soft);font-size:.86rem}
@media print{body{padding:0}section{break-inside:avoid}}
"""

__all__ = ["CSS"]
