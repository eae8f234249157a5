"""Charts of how good models are."""

from collections.abc import Mapping

import altair as alt
import pandas as pd

from malmoi.app.language import say
from malmoi.app.model_report import FoldReport

# Okabe and Ito's blue and vermilion.
_COLORS = ("#0072B2", "#D55E00")
_MOST_CELLS_WITH_NUMBERS = 400


def confusion_chart(report: FoldReport) -> alt.LayerChart | alt.FacetChart:
    """A cell for each given and predicted label, with the number of texts in it."""
    names = list(report.labels)
    rows = []
    for given, row in zip(names, report.confusion, strict=False):
        total = max(1, sum(row))
        for predicted, texts in zip(names, row, strict=False):
            share = texts / total
            rows.append({"given": given, "predicted": predicted, "texts": texts, "share": share})
    base = alt.Chart(pd.DataFrame(rows), height=alt.Step(max(18, 34 - len(names)))).encode(
        x=alt.X(
            "predicted:N",
            sort=None,
            title=say("Predicted"),
            axis=alt.Axis(labelAngle=0 if len(names) < 7 else -45, labelLimit=120),
        ),
        y=alt.Y("given:N", sort=None, title=say("Given"), axis=alt.Axis(labelLimit=160)),
        tooltip=[
            alt.Tooltip("given:N", title=say("Given")),
            alt.Tooltip("predicted:N", title=say("Predicted")),
            alt.Tooltip("texts:Q", title=say("Number of texts"), format=","),
            alt.Tooltip("share:Q", title=say("Share"), format=".1%"),
        ],
    )
    cells = base.mark_rect().encode(
        color=alt.Color("share:Q", scale=alt.Scale(scheme="blues", domain=[0, 1]), legend=None)
    )
    if len(rows) > _MOST_CELLS_WITH_NUMBERS:
        return alt.layer(cells)
    numbers = base.mark_text(fontSize=12).encode(
        text=alt.Text("texts:Q", format=","),
        color=alt.condition("datum.share > 0.5", alt.value("white"), alt.value("#1b1b1b")),
    )
    return alt.layer(cells, numbers)


def label_bars(reports: Mapping[str, FoldReport]) -> alt.Chart:
    """F1 of each label, the bars of two models beside each other."""
    rows = [
        {"label": label, "model": name, "f1": score.f1}
        for name, report in reports.items()
        for label, score in report.labels.items()
    ]
    return (
        alt.Chart(pd.DataFrame(rows), height=alt.Step(14))
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            y=alt.Y("label:N", sort=None, title=None, axis=alt.Axis(labelLimit=200)),
            yOffset=alt.YOffset("model:N", sort=list(reports)),
            x=alt.X("f1:Q", title="F1", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5)),
            color=alt.Color(
                "model:N",
                sort=list(reports),
                scale=alt.Scale(domain=list(reports), range=list(_COLORS)),
                legend=alt.Legend(title=None, orient="top", labelLimit=300),
            ),
            tooltip=[
                alt.Tooltip("model:N", title=say("Model")),
                alt.Tooltip("label:N", title=say("Label")),
                alt.Tooltip("f1:Q", title="F1", format=".3f"),
            ],
        )
    )
