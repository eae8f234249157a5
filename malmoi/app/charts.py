"""Charts of the app, in Altair: colours that colour-blind people can tell apart, and never alone.

Columns of the frames have fixed names, as Altair reads a meaning into some characters of names;
people's words stand in the cells only. The font is that of the theme, which has Hangul.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from malmoi.app.language import say
from malmoi.labels.project import PALETTE

_WIDEST_LABEL = 200
# Of a panel: two beside each other fit a phone.
_PANEL = 115
# Columns whose names fit side by side; more are written aslant.
_MOST_LEVEL = 7
_MOST_CELLS_WITH_NUMBERS = 400
Layered = alt.LayerChart | alt.FacetChart
_INTERVAL = ("part", "label", "share", "low", "high")


def bars(
    frame: pd.DataFrame, title: str, *, color: str = PALETTE[0], written: str = ","
) -> alt.Chart:
    """Horizontal bars; the number stands with the name, where it has the colour of the theme.

    Args:
        frame: `name` and `number`, in the order of the bars; `color` of each where they differ.
        title: what the numbers are; shares, which `written` as a percentage tells, go up to 1.
        color: of all.
        written: how, as Python and https://d3js.org/d3-format understand it.
    """
    frame = frame.assign(
        shown=[
            f"{name}  {number:{written}}"
            for name, number in zip(frame["name"], frame["number"], strict=True)
        ]
    )
    axis, scale = alt.Axis(tickCount=4), alt.Scale()
    if written.endswith("%"):
        axis, scale = alt.Axis(tickCount=4, format=".0%"), alt.Scale(domain=[0, 1])
    return (
        alt.Chart(frame, height=alt.Step(24))
        .mark_bar()
        .encode(
            y=alt.Y("shown:N", sort=None, title=None, axis=alt.Axis(labelLimit=_WIDEST_LABEL)),
            x=alt.X("number:Q", title=title, scale=scale, axis=axis),
            color=alt.Color("color:N", scale=None) if "color" in frame else alt.value(color),
            tooltip=[
                alt.Tooltip("name:N", title=" "),
                alt.Tooltip("number:Q", title=title, format=written),
            ],
        )
    )


def over_time(frame: pd.DataFrame, title: str) -> alt.Chart:
    """Stacked bars by time; people are told apart by colour, and named by the pointer and a table.

    Args:
        frame: `time` (as it is written on the axis), `name`, `number`.
    """
    return (
        alt.Chart(frame, height=220)
        .mark_bar(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X(
                "time:O", sort=None, title=None, axis=alt.Axis(labelAngle=0, labelOverlap=True)
            ),
            y=alt.Y("number:Q", title=title, axis=alt.Axis(tickMinStep=1)),
            color=alt.Color(
                "name:N",
                title=None,
                scale=alt.Scale(range=list(PALETTE[:7])),
                legend=alt.Legend(orient="top", columns=3, labelLimit=100),
            ),
            tooltip=[
                alt.Tooltip("time:O", title=" "),
                alt.Tooltip("name:N", title=" "),
                alt.Tooltip("number:Q", title=title),
            ],
        )
    )


def confusion(frame: pd.DataFrame, rows: str, columns: str, order: Sequence[str]) -> Layered:
    """A table of numbers, darker where they are higher.

    Args:
        frame: `row`, `column`, `number`; of each row a cell is darker by its share.
        order: of the names in both.
    """
    order = list(order)
    totals = frame.groupby("row")["number"].transform("sum")
    frame = frame.assign(share=frame["number"] / totals.clip(lower=1))
    base = alt.Chart(frame, height=alt.Step(max(18, 36 - len(order)))).encode(
        y=alt.Y("row:N", sort=order, title=rows, axis=alt.Axis(labelLimit=_WIDEST_LABEL)),
        x=alt.X(
            "column:N",
            sort=order,
            title=columns,
            axis=alt.Axis(
                labelAngle=0 if len(order) < _MOST_LEVEL else -45, labelLimit=120, orient="top"
            ),
        ),
        tooltip=[
            alt.Tooltip("row:N", title=rows),
            alt.Tooltip("column:N", title=columns),
            alt.Tooltip("number:Q", title=say("Number of texts"), format=","),
            alt.Tooltip("share:Q", title=say("Share"), format=".1%"),
        ],
    )
    cells = base.mark_rect(stroke="white").encode(
        color=alt.Color("share:Q", scale=alt.Scale(scheme="blues", domain=[0, 1]), legend=None)
    )
    if len(frame) > _MOST_CELLS_WITH_NUMBERS:
        return alt.layer(cells)
    numbers = base.mark_text().encode(
        text=alt.Text("number:Q", format=","),
        color=alt.condition(alt.datum.share > 0.5, alt.value("white"), alt.value("#1d2a26")),
    )
    return alt.layer(cells, numbers)


def label_scores(frame: pd.DataFrame, names: Sequence[str]) -> alt.Chart:
    """F1 of each label, the bars of two models beside each other.

    Args:
        frame: `label`, `model`, `f1`.
    """
    names = list(names)
    return (
        alt.Chart(frame, height=alt.Step(14))
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            y=alt.Y("label:N", sort=None, title=None, axis=alt.Axis(labelLimit=_WIDEST_LABEL)),
            yOffset=alt.YOffset("model:N", sort=names),
            x=alt.X("f1:Q", title="F1", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5)),
            color=alt.Color(
                "model:N",
                sort=names,
                scale=alt.Scale(domain=names, range=list(PALETTE[: len(names)])),
                legend=alt.Legend(title=None, orient="top", labelLimit=300),
            ),
            tooltip=[
                alt.Tooltip("model:N", title=say("Model")),
                alt.Tooltip("label:N", title=say("Label")),
                alt.Tooltip("f1:Q", title="F1", format=".3f"),
            ],
        )
    )


def share_intervals(frame: pd.DataFrame, colors: Mapping[str, str], *, by_time: bool) -> Layered:
    """Shares with their intervals: a dot a part in a panel a label, or a line a label over time.

    Args:
        frame: `part`, `label`, `share`, `low`, `high`, in the order of the parts.
        colors: of the labels, in their order.
        by_time: whether the parts are weeks or months.
    """
    frame = frame[list(_INTERVAL)].astype({"part": str})
    percent = alt.Axis(format=".0%", tickCount=4)
    color = alt.Color(
        "label:N",
        title=None,
        scale=alt.Scale(domain=list(colors), range=list(colors.values())),
        legend=alt.Legend(orient="top", labelLimit=160) if by_time else None,
    )
    tooltip = [
        alt.Tooltip("part:N", title=" "),
        alt.Tooltip("label:N", title=say("Label")),
        *(
            alt.Tooltip(f"{name}:Q", title=title, format=".1%")
            for name, title in (
                ("share", say("Share")),
                ("low", say("Low end")),
                ("high", say("High end")),
            )
        ),
    ]
    base = alt.Chart(frame).encode(color=color, tooltip=tooltip)
    if by_time:
        x = alt.X("part:O", sort=None, title=None, axis=alt.Axis(labelAngle=0, labelOverlap=True))
        band = base.mark_area(opacity=0.12).encode(x=x, y="low:Q", y2="high:Q")
        line = base.mark_line(point=True).encode(
            x=x, y=alt.Y("share:Q", title=say("Share"), axis=percent)
        )
        return alt.layer(band, line)
    one_part = frame["part"].nunique() == 1
    rows = "label:N" if one_part else "part:N"
    y = alt.Y(rows, sort=None, title=None, axis=alt.Axis(labelLimit=_WIDEST_LABEL))
    scale = alt.Scale(domain=[0, 1])
    rule = base.mark_rule(strokeWidth=2).encode(
        y=y, x=alt.X("low:Q", scale=scale, axis=percent, title=None), x2="high:Q"
    )
    dot = base.mark_circle(size=70, opacity=1).encode(y=y, x=alt.X("share:Q", scale=scale))
    if one_part:
        return alt.layer(rule, dot).properties(height=alt.Step(28))
    return (
        alt.layer(rule, dot)
        .properties(width=_PANEL, height=alt.Step(22))
        .facet(facet=alt.Facet("label:N", sort=list(colors), title=None), columns=2)
    )
