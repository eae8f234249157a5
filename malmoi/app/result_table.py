"""The result of a classified table: counts, corrections into a project, files to download."""

from collections.abc import Sequence
from pathlib import PurePath

import pandas as pd
import streamlit as st

from malmoi.app.batch import PERCENT, BatchResult, as_percent
from malmoi.app.corrections import (
    PredictedRow,
    corrected_table,
    offer_saving,
    shown_rows,
    take_edits,
    tell_left,
    tell_saved,
)
from malmoi.app.downloads import offer_table
from malmoi.app.keeping import place_for, tell_place
from malmoi.app.language import number_of, say, say_choice_again
from malmoi.app.visit import Visit
from malmoi.free_names import free_name

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
        visit: who looks at it.
        result: the classified table.
        labels: of the model.
        model: its name.
        column: of the texts.
        source: name of the file, or what stands for one.
        key: names the result among widgets.
    """
    _tell_counts(result)
    rows = _choose_rows(result, key)
    _offer_corrections(visit, result, rows, (labels, model, column, source, key))
    offer_table(
        lambda: corrected_table(result.table, result.corrections, _right_column(result.table)),
        f"{PurePath(source).stem}_예측",
    )


def _tell_counts(result: BatchResult) -> None:
    done = len(result.table) - len(result.empty_rows)
    rate = done / max(result.seconds, 1e-6)
    took = f"{result.seconds:.1f}초" if result.seconds >= 1 else f"{1000 * result.seconds:.0f} ms"
    st.success(
        say(
            f"{done:,}건을 {took}에 분류했습니다(초당 {rate:,.0f}건).",
            f"{number_of(done, 'text')} in {result.seconds:.1f} s ({rate:,.0f} a second).",
        ),
        icon=":material/check:",
    )
    if result.empty_rows:
        listed = ", ".join(f"{row:,}" for row in result.empty_rows[:_LISTED_ROWS])
        more = " …" if len(result.empty_rows) > _LISTED_ROWS else ""
        st.warning(
            say(
                f"글이 비었거나 주소·태그뿐인 행이 {len(result.empty_rows):,}개 있습니다. 예측을 "
                f"비운 채로 그대로 두었습니다: {listed}{more}번째 행",
                f"Rows without text, or with addresses and tags only: {len(result.empty_rows):,}. "
                f"They stay without a label: {listed}{more}",
            )
        )
    if result.cut:
        st.info(
            say(
                f"긴 글 {result.cut:,}건은 언어 모델이 앞부분만 읽고 예측했습니다.",
                f"The encoder read only the beginning of {number_of(result.cut, 'long text')}.",
            ),
            icon=":material/content_cut:",
        )
    if len(result.counts) > _SHOWN_COUNTS:
        counts = {
            say("라벨", "Label"): list(result.counts),
            say("건수", "Texts"): list(result.counts.values()),
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
        "file": say("파일 순서", "As in the file"),
        "low": say("확신도 낮은 순", "Least sure first"),
        "high": say("확신도 높은 순", "Surest first"),
    }
    first, second, third = st.columns([2, 3, 1])
    say_choice_again(f"order_{key}")
    order = first.selectbox(
        say("순서", "Order"), list(orders), format_func=orders.__getitem__, key=f"order_{key}"
    )
    wanted = second.multiselect(
        say("라벨", "Labels"),
        list(result.counts),
        key=f"only_{key}",
        placeholder=say("모두", "All"),
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
        say(f"쪽 (모두 {pages:,})", f"Page (of {pages:,})"),
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
                say("맞는 라벨", "Right label"), options=list(place.labels), width="medium"
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
        row: PredictedRow(
            text=str(text),
            label=str(label or ""),
            confidence=None if pd.isna(score) else float(score),
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


def _right_column(table: pd.DataFrame) -> str:
    return free_name(say("맞는 라벨", "Right label"), table.columns)
