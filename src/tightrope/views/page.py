"""One self-contained HTML page: words, tables and pictures in a single file, for light and dark screens of any width."""

from __future__ import annotations

import base64
import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --paper: #fff; --card: #f6f8fa; --line: #d0d7de;
  --link: #0072b2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9198a1; --paper: #0d1117; --card: #151b23; --line: #3d444d; --link: #56b4e9; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 17px/1.6 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 2rem 1.1rem 4rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.35rem; margin: 2.8rem 0 .6rem; padding-top: 1.2rem; border-top: 1px solid var(--line); }
.lead { color: var(--soft); font-size: 1.08rem; margin-top: 0; }
figure { margin: 1.6rem 0; }
figure img { display: block; width: 100%; height: auto; }
figure svg { display: block; width: 100%; max-width: 30rem; height: auto; margin: 0 auto; }
figcaption { color: var(--soft); font-size: .9rem; margin-top: .5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .93rem; min-width: 100%; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { white-space: normal; vertical-align: bottom; line-height: 1.3; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
th.words, td.words { text-align: left; white-space: normal; min-width: 8rem; }
tr.best td { font-weight: 650; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .88em; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: .8rem 1rem; overflow-x: auto;
  line-height: 1.45; }
.law { background: var(--card); border-left: 4px solid var(--link); padding: .7rem 1rem; margin: 1.2rem 0;
  border-radius: 0 6px 6px 0; }
a { color: var(--link); }
sub, sup { line-height: 0; }
@media (max-width: 34rem) { th, td { padding: .3rem .3rem; } table { font-size: .8rem; } }
"""


def picture(light: bytes, dark: bytes, description: str) -> str:
    """A PNG for light pages and its twin for dark ones, inlined; the browser takes the one that fits."""
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{_inline(dark)}">'
        f'<img src="{_inline(light)}" alt="{escape(description, quote=True)}"></picture>'
    )


def drawing(svg: str, description: str) -> str:
    """An SVG, inlined as a picture of its own, so that its names and styles meet nobody else's."""
    return f'<img src="{_inline(svg.encode(), "svg+xml")}" alt="{escape(description, quote=True)}">'


def table(head: Sequence[str], rows: Sequence[Sequence[str]], best: int | None = None, *, name: str = "") -> str:
    """A table that scrolls sideways on a narrow screen, also by keyboard if it has a `name`; row `best` is set in bold."""
    kinds = [" class=words" if i and 2 * sum(_words(row[i]) for row in rows) > len(rows) else "" for i in range(len(head))]
    top = "".join(f'<th scope="col"{kind}>{escape(cell)}</th>' for cell, kind in zip(head, kinds, strict=True))
    body = "".join(
        f"<tr{' class=best' if i == best else ''}>"
        + "".join(f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(row, kinds, strict=True))
        + "</tr>"
        for i, row in enumerate(rows)
    )
    region = f' role="region" tabindex="0" aria-label="{escape(name, quote=True)}"' if name else ""
    return f'<div class="wide"{region}><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def page(title: str, body: str, style: str = "") -> str:
    """The whole document around a body of HTML; `style` is added to the style that all pages share."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}{style}</style></head>\n<body><main>\n{body}</main></body></html>\n"
    )


def _words(cell: str) -> bool:
    """Whether a cell is read rather than compared: three letters in a row, and no number first."""
    return bool(re.search(r"[^\W\d_]{3}", cell)) and not re.match(r"\W*\d", cell)


def _inline(picture: bytes, kind: str = "png") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"
