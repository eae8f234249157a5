"""The page "파일 분류": a table in, the same table with labels out."""

import hashlib
import time
from dataclasses import dataclass
from pathlib import PurePath

import pandas as pd
import streamlit as st

from app.batch import (
    PERCENT,
    BatchResult,
    as_percent,
    classify_table,
    default_text_column,
)
from app.downloads import offer_table
from app.explanation import explain
from app.model_choice import choose_model
from app.visit import Visit
from malmoi.errors import InputError
from malmoi.inference.classifier import Classifier
from malmoi.text.reading.columns import has_text_column
from malmoi.text.reading.notes import HEADERS_AGAIN, HIDDEN, ReadingNotes, SourceNotes
from malmoi.text.reading.records import load_table

_TABLE, _RESULT = "file_table", "file_result"
_PREVIEW_ROWS = 5
_DELIMITERS = {"semicolon": "쌍반점(;)", "bar": "막대(|)"}
_SHOWN_ROWS = 10_000
_LISTED_ROWS = 10
_SHOWN_COUNTS = 6
# More redraws a second than a person sees only slow the work down.
_REDRAW_SECONDS = 0.2


@dataclass(frozen=True)
class _Kept:
    """Something computed from one upload, kept for the session under what it depends on."""

    key: tuple[str, ...]
    table: pd.DataFrame | None = None
    result: BatchResult | None = None
    notes: SourceNotes | None = None


def show(_visit: Visit) -> None:
    """Draw the page."""
    chosen_model = choose_model()
    if chosen_model is None:
        return
    classifier, model_key = chosen_model.classifier, chosen_model.key
    # Any kind is taken: Streamlit would refuse others in English, in a tooltip.
    uploaded = st.file_uploader("CSV, TSV, XLSX 파일", key="file_upload")
    if uploaded is None:
        st.caption(
            "첫 줄은 열 이름이어야 합니다. UTF-8, UTF-16, CP949(한글 윈도우) 파일을 읽습니다. "
            "올린 파일은 분류에만 쓰고 저장하지 않습니다."
        )
        return
    data = uploaded.getvalue()
    if not data:
        st.error("빈 파일입니다. 내용이 있는 CSV, TSV, XLSX 파일을 올려 주세요.")
        return
    digest = hashlib.sha256(data).hexdigest()
    try:
        table = _read(uploaded.name, data, digest)
        suggested = default_text_column(table)
    except InputError as error:
        explain("파일을 읽을 수 없습니다. 형식(CSV, TSV, XLSX)과 내용을 확인해 주세요.", error)
        return

    columns = [str(name) for name in table.columns]
    column = st.selectbox(
        "글이 있는 열", columns, index=columns.index(suggested), key=f"column_{digest}"
    )
    if not has_text_column(columns, None):
        st.caption(
            "이름으로는 글이 있는 열을 알 수 없어 가장 긴 열을 골랐습니다. 맞는지 확인해 주세요."
        )
    st.caption(f"{len(table):,}행 · {len(columns)}열. 앞의 {min(_PREVIEW_ROWS, len(table))}행:")
    st.dataframe(table.head(_PREVIEW_ROWS), hide_index=True, key="file_preview")

    key = (digest, column, model_key)
    if st.button("분류 시작", type="primary", icon=":material/play_arrow:"):
        # The old result goes first: a failure must not leave it looking like the new one.
        st.session_state.pop(_RESULT, None)
        try:
            result = _classify(table, column, classifier)
        except InputError as error:
            explain(f"‘{column}’ 열을 분류할 수 없습니다. 글이 있는 열을 골라 주세요.", error)
            return
        st.session_state[_RESULT] = _Kept(key, result=result)
    kept: _Kept | None = st.session_state.get(_RESULT)
    if kept is not None and kept.key == key and kept.result is not None:
        _show_result(kept.result, uploaded.name)


def _read(name: str, data: bytes, digest: str) -> pd.DataFrame:
    """The table, read once for each upload and not at every rerun."""
    key = (PurePath(name).suffix.lower(), digest)
    kept: _Kept | None = st.session_state.get(_TABLE)
    if kept is None or kept.key != key or kept.table is None:
        notes = ReadingNotes()
        kept = _Kept(key, table=load_table(name, data, notes=notes), notes=notes.sources[0])
        st.session_state[_TABLE] = kept
    assert kept.table is not None and kept.notes is not None
    for line in how_read(kept.notes):
        st.caption(line)
    return kept.table


def how_read(notes: SourceNotes) -> list[str]:
    """What a person should know of how the file was read, and cannot see in the table."""
    lines = []
    if notes.form == "chat":
        lines.append("저장한 대화로 읽었습니다. 이름과 시각은 빼고 한 말만 남겼습니다.")
    if notes.sheets:
        lines.append(f"읽은 시트: {', '.join(notes.sheets)}")
    for hidden, words in ((False, "열이 달라서"), (True, "숨겨져 있어서")):
        names = [name for name, why in notes.sheets_left_out if (why == HIDDEN) is hidden]
        if names:
            lines.append(f"{words} 읽지 않은 시트: {', '.join(names)}")
    if notes.delimiter not in (None, "comma", "tab"):
        lines.append(f"열을 나누는 글자: {_DELIMITERS.get(notes.delimiter or '', notes.delimiter)}")
    if repeated := notes.counts[HEADERS_AGAIN]:
        lines.append(f"가운데에 되풀이된 열 이름 {repeated:,}줄은 뺐습니다.")
    return lines


def _classify(table: pd.DataFrame, column: str, classifier: Classifier) -> BatchResult:
    bar = st.progress(0.0, text=f"0 / {len(table):,}건")
    note = st.empty()
    note.caption("분류하는 동안 다른 단추를 누르면 멈춥니다.")
    started = time.perf_counter()
    drawn = 0.0

    def draw(done: int, total: int) -> None:
        nonlocal drawn
        now = time.perf_counter()
        if now - drawn < _REDRAW_SECONDS and done < total:
            return
        drawn = now
        rate = done / max(now - started, 1e-6)
        bar.progress(done / max(total, 1), text=f"{done:,} / {total:,}건 · 초당 {rate:,.0f}건")

    result = classify_table(table, column, classifier, progress=draw)
    bar.empty()
    note.empty()
    return result


def _show_result(result: BatchResult, name: str) -> None:
    table = result.table
    done = sum(result.counts.values())
    rate = done / max(result.seconds, 1e-6)
    took = f"{result.seconds:.1f}초" if result.seconds >= 1 else f"{1000 * result.seconds:.0f} ms"
    st.success(
        f"{done:,}건을 {took}에 분류했습니다(초당 {rate:,.0f}건).",
        icon=":material/check:",
    )
    if result.empty_rows:
        listed = ", ".join(f"{row:,}" for row in result.empty_rows[:_LISTED_ROWS])
        more = " …" if len(result.empty_rows) > _LISTED_ROWS else ""
        st.warning(
            f"글이 비었거나 주소·태그뿐인 행이 {len(result.empty_rows):,}개 있습니다. 예측을 비운 "
            f"채로 그대로 두었습니다: {listed}{more}번째 행"
        )
    if result.cut:
        st.info(
            f"긴 글 {result.cut:,}건은 앞부분만 읽고 예측했습니다.", icon=":material/content_cut:"
        )
    if len(result.counts) > _SHOWN_COUNTS:
        counts = {"라벨": list(result.counts), "건수": list(result.counts.values())}
        st.dataframe(pd.DataFrame(counts), hide_index=True, key="file_counts")
    else:
        places = st.columns(max(4, len(result.counts)))
        for place, (label, count) in zip(places, result.counts.items(), strict=False):
            share = f"{count / done:.1%}"
            place.metric(label, f"{count:,}", share, delta_color="off", delta_arrow="off")
    if len(table) > _SHOWN_ROWS:
        st.caption(f"화면에는 앞의 {_SHOWN_ROWS:,}행만 보입니다. 내려받은 파일에는 모두 있습니다.")
    shown = _results_first(result).head(_SHOWN_ROWS)
    st.dataframe(
        as_percent(shown, result.number_columns),
        hide_index=True,
        key="file_result_table",
        placeholder="",
        column_config={
            name: st.column_config.NumberColumn(format=PERCENT) for name in result.number_columns
        },
    )

    offer_table(lambda: table, f"{PurePath(name).stem}_예측")


def _results_first(result: BatchResult) -> pd.DataFrame:
    """For the screen only: the label is what one looks for, so it comes before wide columns."""
    columns = list(result.table.columns)
    start = columns.index(result.prediction_column)
    return result.table[[*columns[start : start + 2], *columns[:start], *columns[start + 2 :]]]
