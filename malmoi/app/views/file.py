"""The page "파일 분류": a table in, the same table with labels out, and wrong ones corrected."""

import hashlib
from dataclasses import dataclass
from pathlib import PurePath

import pandas as pd
import streamlit as st

from malmoi.app.batch import default_text_column
from malmoi.app.explanation import explain
from malmoi.app.file_jobs import FileJob, file_jobs
from malmoi.app.found_models import short_name
from malmoi.app.language import number_of, say
from malmoi.app.left_out import draw_left_out, explain_file, offer_left_out
from malmoi.app.model_choice import ChosenModel, choose_model, labels_of_project
from malmoi.app.result_table import show_result
from malmoi.app.visit import LOCAL_NAME, Visit
from malmoi.errors import InputError
from malmoi.labels.text_import import BAD_ROWS_KEPT
from malmoi.text.reading.bad_rows import BadRows
from malmoi.text.reading.columns import has_text_column
from malmoi.text.reading.notes import HEADERS_AGAIN, HIDDEN, ReadingNotes, SourceNotes
from malmoi.text.reading.records import load_table

_TABLE, _JOB, _LAST = "file_table", "job", "last_file_job"
# The job that this session has seen without a name.
_NAMELESS = "nameless_file_job"
_PREVIEW_ROWS = 5
# A redraw costs the work little at this rate.
_REDRAW_SECONDS = 0.5


@dataclass(frozen=True)
class _Kept:
    """A table that was read from one upload, kept for the visit."""

    key: tuple[str, ...]
    table: pd.DataFrame
    notes: SourceNotes
    bad: BadRows


def show(visit: Visit) -> None:
    """Draw the page."""
    chosen = choose_model(labels_of_project(visit))
    if chosen is None:
        return
    _ask_for_file(visit, chosen)
    job = _job_in_address(visit)
    if job is None:
        return
    st.divider()
    st.text(f"{job.name} · {job.column} · {short_name(job.model)}")
    if not job.ended:
        _follow(job)
    elif job.error is not None:
        _tell_failure(job)
    elif job.result is not None:
        show_result(
            visit,
            job.result,
            labels=job.labels,
            model=job.model,
            column=job.column,
            source=job.name,
            key=job.id,
        )


def _ask_for_file(visit: Visit, chosen: ChosenModel) -> None:
    # Any kind is taken: Streamlit would refuse others in English, in a tooltip.
    uploaded = st.file_uploader(
        say("CSV, TSV, XLSX, JSONL 파일", "CSV, TSV, XLSX or JSONL file"), key="file_upload"
    )
    if uploaded is None:
        if _JOB not in st.query_params and _LAST not in st.session_state:
            st.caption(
                say(
                    "첫 줄은 열 이름이어야 합니다. UTF-8, UTF-16, CP949(한글 윈도우) 파일을 "
                    "읽습니다. 올린 파일은 분류에만 쓰고 저장하지 않습니다.",
                    "The first line names the columns. UTF-8, UTF-16 and CP949 are read. The file "
                    "is used for this only and not kept.",
                )
            )
        return
    data = uploaded.getvalue()
    if not data:
        st.error(
            say(
                "빈 파일입니다. 내용이 있는 파일을 올려 주세요.",
                "The file is empty. Upload one with something in it.",
            )
        )
        return
    digest = hashlib.sha256(data).hexdigest()
    try:
        table = _read(uploaded.name, data, digest)
        suggested = default_text_column(table)
    except InputError as error:
        explain_file(
            say(
                "파일을 읽을 수 없습니다. 형식(CSV, TSV, XLSX, JSONL)과 내용을 확인해 주세요.",
                "The file cannot be read. Check its format (CSV, TSV, XLSX, JSONL) and content.",
            ),
            error,
        )
        return
    column = _ask_for_column(table, suggested, digest)
    if st.button(say("분류 시작", "Classify"), type="primary", icon=":material/play_arrow:"):
        job = file_jobs().start(
            visit.person.name, uploaded.name, table, column, chosen.classifier, chosen.name
        )
        st.query_params[_JOB] = st.session_state[_LAST] = job.id


def _ask_for_column(table: pd.DataFrame, suggested: str, digest: str) -> str:
    columns = [str(name) for name in table.columns]
    column = st.selectbox(
        say("글이 있는 열", "Column of the texts"),
        columns,
        index=columns.index(suggested),
        key=f"column_{digest}",
    )
    if not has_text_column(columns, None):
        st.caption(
            say(
                "이름으로는 글이 있는 열을 알 수 없어 가장 긴 열을 골랐습니다. 맞는지 확인해 "
                "주세요.",
                "No column is named like one of texts, so the longest was taken. Check it.",
            )
        )
    shown = min(_PREVIEW_ROWS, len(table))
    st.caption(
        say(
            f"{len(table):,}행 · {len(columns)}열. 앞의 {shown}행:",
            f"{number_of(len(table), 'row')}, {number_of(len(columns), 'column')}. "
            f"The first {shown}:",
        )
    )
    st.dataframe(table.head(_PREVIEW_ROWS), hide_index=True, key="file_preview")
    return column


def _read(name: str, data: bytes, digest: str) -> pd.DataFrame:
    """The table, read once for each upload and not at every rerun."""
    key = (PurePath(name).suffix.lower(), digest)
    kept: _Kept | None = st.session_state.get(_TABLE)
    if kept is None or kept.key != key:
        notes, bad = ReadingNotes(), BadRows(skip=True, keep=BAD_ROWS_KEPT)
        table = load_table(name, data, notes=notes, bad=bad)
        kept = _Kept(key, table, notes.sources[0], bad)
        st.session_state[_TABLE] = kept
    for line in how_read(kept.notes):
        st.caption(line)
    if kept.bad.count:
        lines = [str(error) for error in kept.bad.first]
        draw_left_out(lines, kept.bad.count)
        offer_left_out(lines)
    return kept.table


def how_read(notes: SourceNotes) -> list[str]:
    """What a person should know of how the file was read, and cannot see in the table."""
    lines = []
    if notes.form == "chat":
        lines.append(
            say(
                "저장한 대화로 읽었습니다. 이름과 시각은 빼고 한 말만 남겼습니다.",
                "Read as a saved chat: what was said, without names and times.",
            )
        )
    if notes.sheets:
        sheets = ", ".join(notes.sheets)
        lines.append(say(f"읽은 시트: {sheets}", f"Sheets read: {sheets}"))
    for hidden in (False, True):
        names = [name for name, why in notes.sheets_left_out if (why == HIDDEN) is hidden]
        if names:
            left = ", ".join(names)
            why = say("숨겨져 있어서", "hidden") if hidden else say("열이 달라서", "other columns")
            lines.append(say(f"{why} 읽지 않은 시트: {left}", f"Sheets left out ({why}): {left}"))
    if notes.delimiter not in (None, "comma", "tab"):
        mark = {"semicolon": ";", "bar": "|"}.get(notes.delimiter or "", notes.delimiter)
        lines.append(say(f"열을 나누는 글자: {mark}", f"Columns divided by {mark}"))
    if repeated := notes.counts[HEADERS_AGAIN]:
        lines.append(
            say(
                f"가운데에 되풀이된 열 이름 {repeated:,}줄은 뺐습니다.",
                f"{repeated:,} repeated lines of column names were left out.",
            )
        )
    return lines


def _job_in_address(visit: Visit) -> FileJob | None:
    """The one of the address, else the last of this visit, as after another page."""
    wanted = st.query_params.get(_JOB) or st.session_state.get(_LAST)
    if wanted is None:
        return None
    st.session_state[_LAST] = st.query_params[_JOB] = wanted
    name = visit.person.name
    if visit.person.is_local and st.session_state.get(_NAMELESS) == wanted and name != LOCAL_NAME:
        # Who begins without a name and then types one is the same person. A name that is typed
        # after that may be a colleague's.
        file_jobs().share(wanted, LOCAL_NAME, name)
        del st.session_state[_NAMELESS]
    job = file_jobs().find(wanted, name)
    if job is not None and visit.person.is_local and name == LOCAL_NAME:
        st.session_state[_NAMELESS] = wanted
    if job is None:
        del st.session_state[_LAST]
        st.info(
            say(
                "그 결과는 더 남아 있지 않습니다. 파일을 다시 올려 주세요.",
                "That result is no longer kept. Upload the file again.",
            )
        )
    return job


@st.fragment(run_every=_REDRAW_SECONDS)
def _follow(job: FileJob) -> None:
    if job.ended:
        st.rerun()
    st.progress(
        min(1.0, job.done / max(job.total, 1)),
        text=say(
            f"{job.done:,} / {job.total:,}건 · 초당 {job.rate:,.0f}건",
            f"{job.done:,} of {job.total:,} · {job.rate:,.0f} a second",
        ),
    )
    st.caption(
        say(
            "다른 일을 하셔도 됩니다. 이 주소로 돌아오면 결과가 있습니다.",
            "Do something else meanwhile: the result will be at this address.",
        )
    )


def _tell_failure(job: FileJob) -> None:
    if isinstance(job.error, InputError):
        explain(
            say(
                "이 열을 분류할 수 없습니다. 글이 있는 열을 골라 주세요.",
                "This column cannot be classified. Choose the one with the texts.",
            ),
            job.error,
        )
    else:
        st.error(
            say(
                "분류하다가 예상하지 못한 문제가 생겼습니다. 로그를 확인해 주세요.",
                "Something unexpected happened. See the log.",
            )
        )
