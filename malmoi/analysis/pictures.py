"""Pictures for a slide: shares in all, in parts, over time, themes; each as SVG and as PNG."""

import base64
import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from malmoi.analysis.report import Report
from malmoi.labels.project import PALETTE
from malmoi.messages import Say

if TYPE_CHECKING:
    import pandas as pd

_INK, _RULE, _DOTS_PER_INCH = "#1c2126", "#d5dbe1", 160
# More lines or panels cannot be told apart; rows of a panel.
_MOST_LINES, _MOST_PANELS, _MOST_ROWS = 6, 4, 12
_LONGEST_NAME = 24


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture, twice.

    Attributes:
        name: of a file, without its ending.
        title: what it shows.
        svg: with letters as outlines, so that any program shows them.
        png: 2,000 pixels wide.
    """

    name: str
    title: str
    svg: bytes
    png: bytes

    def address(self, kind: str) -> str:
        """As a data: address; `kind` is svg or png."""
        content, media = (self.svg, "svg+xml") if kind == "svg" else (self.png, "png")
        return f"data:image/{media};base64,{base64.b64encode(content).decode()}"


def pictures(report: Report, say: Say) -> list[Picture]:
    """Those that the report has figures for.

    Args:
        report: what was found.
        say: puts a sentence into the language of the page.
    """
    drawn = []
    if report.labels:
        table = report.shares
        rows, title = table[table["column"] == ""], say("Share of each label")
        colors = list(report.color_of.values())
        drawn.append(_picture("shares", title, lambda figure: _dots(figure, rows, "label", colors)))
        for number, parts in enumerate(report.parts[1:], start=1):
            mine = table[table["column"] == parts.column]
            title, draw = say("Shares by {column}", column=parts.column), _panels
            if parts.period:
                title, draw = say("Shares over time"), _lines
            if len(mine["part"].unique()) > 1:
                name = "over-time" if parts.period else f"by-{number}"
                drawn.append(_picture(name, title, partial(draw, rows=mine, report=report)))
    themes = report.themes
    whole = themes[themes["label"] == ""]
    if len(whole):
        title, color = say("What the texts are about"), [PALETTE[0]]
        drawn.append(_picture("themes", title, lambda figure: _dots(figure, whole, "theme", color)))
    return drawn


def _picture(name: str, title: str, draw: Callable[[Any], None]) -> Picture:
    import koreanize_matplotlib  # noqa: F401  # its import registers a font with Hangul
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style: Any = {
        **{"font.family": "NanumGothic", "font.size": 11, "axes.unicode_minus": False},
        **{"svg.hashsalt": "malmoi", "text.color": _INK, "axes.edgecolor": _RULE},
        **{"axes.labelcolor": _INK, "xtick.color": _INK, "ytick.color": _INK},
        **{"axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 12},
    }
    svg, png = io.BytesIO(), io.BytesIO()
    with rc_context(style), warnings.catch_warnings():
        # An emoji in a name is a box in the picture, and itself in the table.
        warnings.simplefilter("ignore", UserWarning)
        figure = Figure(figsize=(9, 4.5), layout="constrained")
        draw(figure)
        figure.suptitle(title, x=0.01, ha="left", fontsize=14, fontweight="bold")
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        figure.savefig(png, format="png", dpi=_DOTS_PER_INCH, facecolor="white")
    return Picture(name=name, title=title, svg=svg.getvalue(), png=png.getvalue())


def _short(name: str) -> str:
    """A name as a picture holds it; "$" would begin a formula."""
    short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    return short.replace("$", r"\$")


def _dots(figure: Any, rows: "pd.DataFrame", name: str, colors: Sequence[str]) -> None:
    """A bar a row with its interval, the share written at its end; the first row on top."""
    figure.set_size_inches(9, max(2.2, 1.2 + 0.45 * len(rows)))
    axes = figure.subplots()
    places, share = np.arange(len(rows))[::-1], rows["share"].to_numpy()
    axes.barh(places, share, color=colors, height=0.55, alpha=0.85)
    _whiskers(axes, rows, places)
    highest = np.nan_to_num(rows["high"].to_numpy(), nan=0.0)
    for place, value, end in zip(places, share, np.maximum(highest, share), strict=True):
        axes.text(end + 0.012, place, f"{value:.0%}", va="center")
    axes.set_yticks(places, [_short(one) for one in rows[name]])
    axes.set_xlim(0, min(1.12, float(np.maximum(highest, share).max()) * 1.15 + 0.05))
    axes.xaxis.set_major_formatter(_percent)
    axes.tick_params(length=0)


def _panels(figure: Any, rows: "pd.DataFrame", report: Report) -> None:
    """A panel a label, a dot a part, the share in all as a line."""
    whole, labels = _commonest(report, _MOST_PANELS)
    parts = rows["part"].unique()[:_MOST_ROWS]
    figure.set_size_inches(9, max(2.6, 1.6 + 0.36 * len(parts)))
    panels = figure.subplots(1, len(labels), sharey=True, squeeze=False)[0]
    places = np.arange(len(parts))[::-1]
    for axes, label in zip(panels, labels, strict=True):
        mine = rows[rows["label"] == label].set_index("part").loc[parts]
        color = report.color_of[label]
        axes.axvline(whole[label], color=_RULE, linewidth=2, zorder=0)
        _whiskers(axes, mine, places, color)
        axes.scatter(mine["share"], places, color=color, s=36)
        axes.set_title(_short(label), loc="left")
        axes.set_xlim(-0.03, 1.03)
        axes.set_xticks([0, 0.5, 1])
        axes.xaxis.set_major_formatter(_percent)
        axes.tick_params(length=0)
    panels[0].set_yticks(places, [_short(part) for part in parts])


def _commonest(report: Report, most: int) -> tuple["pd.Series[float]", list[str]]:
    """The share of each label, and the commonest labels in their own order."""
    whole = report.shares[report.shares["column"] == ""].set_index("label")["share"]
    kept = whole.nlargest(most).index
    return whole, [label for label in report.labels if label in kept]


def _lines(figure: Any, rows: "pd.DataFrame", report: Report) -> None:
    """A line a label with its intervals, the newest at the right."""
    _, labels = _commonest(report, _MOST_LINES)
    axes = figure.subplots()
    parts = rows["part"].unique()
    places = np.arange(len(parts))
    for label in labels:
        mine = rows[rows["label"] == label].set_index("part").loc[parts]
        color = report.color_of[label]
        axes.plot(places, mine["share"], color=color, marker="o", markersize=4, label=_short(label))
        low, high = mine["low"].to_numpy(float), mine["high"].to_numpy(float)
        axes.fill_between(places, low, high, color=color, alpha=0.12, linewidth=0)
    step = max(1, -(-len(parts) // 8))
    axes.set_xticks(places[::step], list(parts)[::step])
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(_percent)
    axes.grid(axis="y", color=_RULE)
    axes.tick_params(length=0)
    figure.legend(loc="outside upper right", ncols=len(labels), frameon=False)


def _whiskers(axes: Any, rows: "pd.DataFrame", places: np.ndarray, color: str = _INK) -> None:
    low, high = rows["low"].to_numpy(float), rows["high"].to_numpy(float)
    axes.hlines(places, low, high, color=color, linewidth=1.6)


def _percent(value: float, _: object) -> str:
    return f"{value:.0%}"
