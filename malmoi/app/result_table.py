"""The result of a classified table: counts, corrections into a project, files to download."""

from collections.abc import Sequence
from pathlib import PurePath

import pandas as pd
import streamlit as st

from malmoi.app.corrections import (
    corrected_table,
    offer_saving,
    shown_rows,
    take_edits,
    tell_left,
    tell_saved,
)
from malmoi.app.downloads import offer_table
from malmoi.app.label_saving import place_for, tell_place
from malmoi.app.language import say, say_choice_again
from malmoi.app.table_classification import PERCENT, BatchResult, as_percent
from malmoi.app.visit import Visit
from malmoi.free_names import free_name
from malmoi.labels.annotating import Suggestion

_ROWS = 100
_LISTED_ROWS = 10
_SHOWN_COUNTS = 6


def show_result(
    visit: Visit,
    result: BatchResult,
    *,
    labels: Sequence[str],
    model: str,
    column: str,
    source: str,
    key: str,
) -> None:
    """Draw a result.

    Args:
        source: name of the file, or what stands for one.
    """
    _tell_counts(result)
    rows = _choose_rows(result, key)
    _offer_corrections(visit, result, rows, (labels, model, column, source, key))
    column_of_labels = free_name(say("Right label"), result.table.columns)
    offer_table(
        lambda: corrected_table(result.table, result.corrections, column_of_labels),
        f"{PurePath(source).stem}_예측",
    )


def _tell_counts(result: BatchResult) -> None:
    done = len(result.table) - len(result.empty_rows)
    rate = done / max(result.seconds, 1e-6)
    st.success(
        say(
            "{done:text} in {seconds:.1f} s ({rate:,.0f} a second).",
            done=done,
            seconds=result.seconds,
            rate=rate,
        ),
        icon=":material/check:",
    )
    if result.empty_rows:
        listed = ", ".join(f"{row:,}" for row in result.empty_rows[:_LISTED_ROWS])
        more = " …" if len(result.empty_rows) > _LISTED_ROWS else ""
        st.warning(
            say(
                "Rows without text, or with addresses and tags only: {rows:,}. They stay without "
                "a label: {listed}{more}",
                rows=len(result.empty_rows),
                listed=listed,
                more=more,
            )
        )
    if result.cut:
        st.info(
            say("The encoder read only the beginning of {cut:long text}.", cut=result.cut),
            icon=":material/content_cut:",
        )
    if len(result.counts) > _SHOWN_COUNTS:
        counts = {
            say("Label"): list(result.counts),
            say("Number of texts"): list(result.counts.values()),
        }
        st.dataframe(pd.DataFrame(counts), hide_index=True, key="file_counts")
        return
    places = st.columns(max(4, len(result.counts)))
    for place, (label, count) in zip(places, result.counts.items(), strict=False):
        share = f"{count / done:.1%}"
        place.metric(label, f"{count:,}", share, delta_color="off", delta_arrow="off")


def _choose_rows(result: BatchResult, key: str) -> pd.DataFrame:
    """The rows of one page, of all rows in the order that was asked for."""
    orders = {
        "file": say("As in the file"),
        "low": say("Least sure first"),
        "high": say("Surest first"),
    }
    first, second, third = st.columns([2, 3, 1])
    say_choice_again(f"order_{key}")
    order = first.selectbox(
        say("Order"), list(orders), format_func=orders.__getitem__, key=f"order_{key}"
    )
    wanted = second.multiselect(
        say("Labels"),
        list(result.counts),
        key=f"only_{key}",
        placeholder=say("All"),
        select_all=False,
    )
    table = result.table
    if wanted:
        table = table[table[result.prediction_column].isin(wanted)]
    confidence = result.number_columns[0]
    if order != "file":
        table = table.sort_values(
            confidence, ascending=order == "low", kind="stable", na_position="last"
        )
    pages = max(1, -(-len(table) // _ROWS))
    page = third.number_input(
        say("Page (of {pages:,})", pages=pages),
        min_value=1,
        max_value=pages,
        key=f"page_{key}_{order}_{'|'.join(wanted)}",
    )
    return table.iloc[(int(page) - 1) * _ROWS : int(page) * _ROWS]


def _offer_corrections(
    visit: Visit,
    result: BatchResult,
    rows: pd.DataFrame,
    about: tuple[Sequence[str], str, str, str, str],
) -> None:
    """Rows of one page with a cell each for the right label, and the button that saves those."""
    labels, model, column, source, key = about
    place = place_for(visit, labels, model)
    corrections = result.corrections
    prediction, confidence = result.prediction_column, result.number_columns[0]
    others = [name for name in rows.columns if name not in (prediction, confidence, column)]
    shown = as_percent(rows, result.number_columns)[[prediction, confidence, column, *others]]
    editor = shown_rows(key, rows, corrections)
    cells = pd.Series(editor.cells, dtype="object").reindex(rows.index)
    shown.insert(0, editor.right, cells.where(cells.notna(), None))
    st.data_editor(
        shown,
        hide_index=True,
        disabled=[name for name in shown.columns if name != editor.right],
        key=editor.editor,
        placeholder="",
        column_config={
            editor.right: st.column_config.SelectboxColumn(
                say("Right label"), options=list(place.labels), width="medium"
            ),
            column: st.column_config.TextColumn(width="large"),
            **{
                name: st.column_config.NumberColumn(format=PERCENT)
                for name in result.number_columns
            },
        },
        on_change=take_edits,
        args=(corrections, editor, rows[column].fillna("").astype(str).tolist()),
    )
    waiting = list(corrections.waiting(place.id, place.labels))
    wanted = result.table.loc[waiting, [column, prediction, confidence]]
    predicted = {
        row: (
            str(text),
            Suggestion(label=label, score=float(score), model=model)
            if label and not pd.isna(score)
            else None,
        )
        for row, (text, label, score) in zip(
            waiting, wanted.itertuples(index=False, name=None), strict=True
        )
    }
    with st.container(horizontal=True, vertical_alignment="center"):
        offer_saving(visit, place, corrections, predicted, (model, source, key))
        tell_place(place)
    tell_left(visit, place, corrections)
    tell_saved(key)
