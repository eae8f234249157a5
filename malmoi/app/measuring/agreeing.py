"""How far annotators agree, on the page 현황: each number with the texts behind it."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from malmoi.app.cached_results import cached_result
from malmoi.app.language import say
from malmoi.app.plain_text import two_decimals
from malmoi.app.reviewing.vote_table import SHOWN, draw_votes
from malmoi.app.row_choice import choose_row
from malmoi.app.visit import OpenProject
from malmoi.labels.agreement import (
    AgreementReport,
    Measure,
    agreement,
)
from malmoi.labels.review import texts_with_votes


@dataclass(frozen=True, kw_only=True)
class _Row:
    """One number of the table."""

    kind: str
    name: str
    measure: Measure


def draw_agreement(open_project: OpenProject) -> None:
    """Draw the part.

    Raises:
        AccessError: the visitor is no reviewer.
    """
    report = cached_result(
        open_project, "agreement", lambda: agreement(open_project.access), needed="reviewer"
    )
    if not report.alpha.texts:
        st.info(
            say(
                "No text has the labels of two people yet. Let each text have two annotators or "
                "more in the settings to see how far they agree."
            ),
            icon=":material/group:",
        )
        return
    _draw_first(report)
    if open_project.project.kind == "multi":
        st.caption(
            say(
                "Annotators agree on a text where all their labels are the same. The table below "
                "has the agreement on each label."
            )
        )
    _draw_table(open_project, _rows(open_project, report))
    _draw_confusions(open_project, report)


def _draw_first(report: AgreementReport) -> None:
    alpha, fleiss, texts, apart = st.columns(4)
    alpha.metric(
        "Krippendorff α",
        two_decimals(report.alpha.value),
        help=say(
            "1 is perfect, 0 is chance. From 0.8 on it is reliable; below 0.667 look at the "
            "guideline again (Krippendorff, Content Analysis)."
        ),
    )
    fleiss.metric("Fleiss κ", two_decimals(report.fleiss.value))
    texts.metric(say("Texts of two or more"), f"{len(report.alpha.texts):,}")
    apart.metric(say("Texts of disagreement"), f"{len(report.alpha.disagreed):,}")


def _rows(open_project: OpenProject, report: AgreementReport) -> list[_Row]:
    titles = open_project.project.titles
    everybody = say("Overall")
    rows = [
        _Row(kind="Krippendorff α", name=everybody, measure=report.alpha),
        _Row(kind="Fleiss κ", name=everybody, measure=report.fleiss),
    ]
    for name, measure in report.classes.items():
        rows.append(_Row(kind="Krippendorff α", name=titles.get(name, name), measure=measure))
    for pair in report.pairs:
        name = f"{pair.first} · {pair.second}"
        rows.append(_Row(kind="Cohen κ", name=name, measure=pair.kappa))
    return rows


def _draw_table(open_project: OpenProject, rows: Sequence[_Row]) -> None:
    st.caption(say("Choose a row to see the texts behind it on which annotators differ."))
    frame = pd.DataFrame(
        {
            "name": [row.name for row in rows],
            "kind": [row.kind for row in rows],
            "value": [row.measure.value for row in rows],
            "texts": [len(row.measure.texts) for row in rows],
            "disagreed": [len(row.measure.disagreed) for row in rows],
            "reason": [say(row.measure.reason) if row.measure.reason else "" for row in rows],
        }
    )
    column = st.column_config
    chosen = choose_row(
        frame,
        height=320,
        key="status_agreement",
        columns={
            "name": column.TextColumn(say("Of")),
            "kind": column.TextColumn(say("Measure")),
            "value": column.NumberColumn(say("Value"), format="%.2f"),
            "texts": column.NumberColumn(say("Texts in common"), format="localized"),
            "disagreed": column.NumberColumn(say("Texts of disagreement"), format="localized"),
            "reason": column.TextColumn(say("Why there is no value")),
        },
    )
    if chosen is None:
        return
    row = rows[chosen]
    behind = row.measure.disagreed
    draw_votes(
        f"{row.kind} · {row.name}",
        texts_with_votes(open_project.access, behind[:SHOWN]),
        len(behind),
        "status_agreement_texts",
    )


def _draw_confusions(open_project: OpenProject, report: AgreementReport) -> None:
    """Which labels two people take for each other."""
    rows = [
        (pair.first, one, pair.second, other, texts)
        for pair in report.pairs
        for (one, other), texts in pair.confusions.items()
    ]
    if not rows:
        return
    none = say("none of them")  # of several labels
    rows.sort(key=lambda row: -len(row[4]))
    st.text(say("Who took what for what"))
    frame = pd.DataFrame(
        {
            "first": [f"{row[0]}: {row[1] or none}" for row in rows],
            "second": [f"{row[2]}: {row[3] or none}" for row in rows],
            "texts": [len(row[4]) for row in rows],
        }
    )
    chosen = choose_row(
        frame,
        height=240,
        key="status_confusions",
        columns={
            "first": st.column_config.TextColumn(say("One annotator")),
            "second": st.column_config.TextColumn(say("The other")),
            "texts": st.column_config.NumberColumn(say("Texts"), format="localized"),
        },
    )
    if chosen is not None:
        first, one, second, other, texts = rows[chosen]
        draw_votes(
            f"{first}: {one or none} ↔ {second}: {other or none}",
            texts_with_votes(open_project.access, texts[:SHOWN]),
            len(texts),
            "status_confusion_texts",
        )
