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
from malmoi.app.language import say
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
    uploaded = st.file_uploader(say("CSV, TSV, XLSX or JSONL file"), key="file_upload")
    if uploaded is None:
        if _JOB not in st.query_params and _LAST not in st.session_state:
            st.caption(
                say(
                    "The first line names the columns. UTF-8, UTF-16 and CP949 are read. The file "
                    "is used for this only and not kept."
                )
            )
        return
    data = uploaded.getvalue()
    if not data:
        st.error(say("The file is empty. Upload one with something in it."))
        return
    digest = hashlib.sha256(data).hexdigest()
    try:
        table = _read(uploaded.name, data, digest)
        suggested = default_text_column(table)
    except InputError as error:
        explain_file(
            say("The file cannot be read. Check its format (CSV, TSV, XLSX, JSONL) and content."),
            error,
        )
        return
    column = _ask_for_column(table, suggested, digest)
    if st.button(say("Classify the file"), type="primary", icon=":material/play_arrow:"):
        job = file_jobs().start(
            visit.person.name, uploaded.name, table, column, chosen.classifier, chosen.name
        )
        st.query_params[_JOB] = st.session_state[_LAST] = job.id


def _ask_for_column(table: pd.DataFrame, suggested: str, digest: str) -> str:
    columns = [str(name) for name in table.columns]
    column = st.selectbox(
        say("Column of the texts"),
        columns,
        index=columns.index(suggested),
        key=f"column_{digest}",
    )
    if not has_text_column(columns, None):
        st.caption(say("No column is named like one of texts, so the longest was taken. Check it."))
    shown = min(_PREVIEW_ROWS, len(table))
    st.caption(
        say(
            "{rows:row}, {columns:column}. The first {shown}:",
            rows=len(table),
            columns=len(columns),
            shown=shown,
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
        lines.append(say("Read as a saved chat: what was said, without names and times."))
    if notes.sheets:
        sheets = ", ".join(notes.sheets)
        lines.append(say("Sheets read: {sheets}", sheets=sheets))
    for hidden in (False, True):
        names = [name for name, why in notes.sheets_left_out if (why == HIDDEN) is hidden]
        if names:
            left = ", ".join(names)
            why = say("hidden") if hidden else say("other columns")
            lines.append(say("Sheets left out ({why}): {left}", why=why, left=left))
    if notes.delimiter not in (None, "comma", "tab"):
        mark = {"semicolon": ";", "bar": "|"}.get(notes.delimiter or "", notes.delimiter)
        lines.append(say("Columns divided by {mark}", mark=mark))
    if repeated := notes.counts[HEADERS_AGAIN]:
        lines.append(
            say("{repeated:,} repeated lines of column names were left out.", repeated=repeated)
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
        st.info(say("That result is no longer kept. Upload the file again."))
    return job


@st.fragment(run_every=_REDRAW_SECONDS)
def _follow(job: FileJob) -> None:
    if job.ended:
        st.rerun()
    st.progress(
        min(1.0, job.done / max(job.total, 1)),
        text=say(
            "{done:,} of {total:,} · {rate:,.0f} a second",
            done=job.done,
            total=job.total,
            rate=job.rate,
        ),
    )
    st.caption(say("Do something else meanwhile: the result will be at this address."))


def _tell_failure(job: FileJob) -> None:
    if isinstance(job.error, InputError):
        explain(say("This column cannot be classified. Choose the one with the texts."), job.error)
    else:
        st.error(say("Something unexpected happened. See the log."))
