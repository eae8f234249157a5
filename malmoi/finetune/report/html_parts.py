"""The pieces that the report is put together from: escaped text, tables, shortened texts."""

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence

# Characters that a page may not contain, or that UTF-8 cannot write (halves of surrogate pairs).
_forbidden = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
# What is read at a glance, and what is kept for unfolding: 70 texts are 0.3 MB at most.
_SHORT_CHARACTERS = 140
_LONG_CHARACTERS = 1_000


def escape(text: str) -> str:
    """Text as HTML that shows it, whatever it contains, in elements and in quoted attributes."""
    return html.escape(_forbidden.sub("\ufffd", text), quote=True)


def shortened(text: str) -> str:
    """A text of any length as a paragraph; a long one unfolds, up to 1,000 characters."""
    if len(text) <= _SHORT_CHARACTERS:
        return f'<p class="text">{escape(text)}</p>'
    rest = ""
    if len(text) > _LONG_CHARACTERS:
        rest = f" … (전체 {len(text):,}자)"
    return (
        f'<details class="text"><summary><span>{escape(text[:_SHORT_CHARACTERS])}…</span></summary>'
        f"<p>{escape(text[:_LONG_CHARACTERS])}{rest}</p></details>"
    )


def section(identifier: str, title: str, *parts: str) -> str:
    """A section with a heading that the page's index links to."""
    return f'<section id="{identifier}"><h2>{escape(title)}</h2>{"".join(parts)}</section>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], name: str = "") -> str:
    """A table whose first column names the rows; cells are HTML, the head is text."""
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return wide(
        f'<table class="{name}"><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>'
    )


def wide(content: str) -> str:
    """Content that scrolls sideways by itself where the window is narrower."""
    return f'<div class="wide" tabindex="0">{content}</div>'


def figure(drawing: str, caption: str, title: str = "") -> str:
    """An SVG with a caption below and, if given, a title above."""
    above = f"<h3>{escape(title)}</h3>" if title else ""
    return f"<figure>{above}{drawing}<figcaption>{escape(caption)}</figcaption></figure>"


def bar(value: float) -> str:
    """A fraction as a number and a bar; its table has the class `bars`."""
    return f'<span class="bar">{value:.3f}<i style="--v:{value:.3f}"></i></span>'


def beside(*parts: str) -> str:
    """Parts in a row where the window is wide enough, else below each other."""
    return f'<div class="beside">{"".join(parts)}</div>'


def name_tag(label: str) -> str:
    """A label's name."""
    return f'<span class="label">{escape(label)}</span>'


def facts(values: Mapping[str, object]) -> str:
    """Names and values, such as settings; what is not a plain value is shown as JSON."""
    rows = []
    for name, value in values.items():
        plain = value is None or isinstance(value, str | int | float)
        shown = str(value) if plain else json.dumps(value, ensure_ascii=False, default=str)
        rows.append(f"<dt>{escape(name)}</dt><dd>{escape(shown)}</dd>")
    return f"<dl>{''.join(rows)}</dl>"
