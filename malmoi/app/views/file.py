"""The page "파일 분류": a table in, the same table with labels out, and wrong ones corrected."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

import pandas as pd
import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.found_models import short_name
from malmoi.app.job_bar import draw_job
from malmoi.app.jobs import Job, Key, jobs
from malmoi.app.language import say
from malmoi.app.model_choice import ChosenModel, choose_model
from malmoi.app.result_table import show_result
from malmoi.app.rows_left_out import draw_left_out, explain_file, offer_left_out
from malmoi.app.table_classification import BatchResult, classify_table, default_text_column
from malmoi.app.visit import LOCAL_NAME, Visit
from malmoi.errors import InputError, UnexpectedError
from malmoi.labels.text_import import BAD_ROWS_KEPT
from malmoi.text.reading.bad_rows import BadRows
from malmoi.text.reading.columns import has_text_column
from malmoi.text.reading.notes import HEADERS_AGAIN, HIDDEN, ReadingNotes, SourceNotes
from malmoi.text.reading.records import load_table

_TABLE, _JOB, _LAST = "file_table", "job", "last_file_job"
# The job that this session has seen without a name.
_NAMELESS = "nameless_file_job"
_PREVIEW_ROWS = 5
# Results stay in memory, so only so many.
_KEPT = 8


@dataclass(frozen=True)
class _Kept:
    """A table that was read from one upload, kept for the visit."""

    key: tuple[str, ...]
    table: pd.DataFrame
    notes: SourceNotes
    bad: BadRows


@dataclass(frozen=True, kw_only=True)
class _Order:
    """What is classified by which model, whose labels these are."""

    name: str
    column: str
    model: str
    labels: Sequence[str]


def show(visit: Visit) -> None:
    chosen = choose_model(visit)
    if chosen is None:
        return
    _ask_for_file(visit, chosen)
    job = _job_in_address(visit)
    if job is None:
        return
    st.divider()
    order: _Order = job.keeps
    st.text(f"{order.name} · {order.column} · {short_name(order.model)}")
    if job.is_on:
        draw_job(job.key, say("Classifying"), stop=say("Stop classifying"))
        st.caption(say("Do something else meanwhile: the result will be at this address."))
    elif job.error is not None:
        if isinstance(job.error, UnexpectedError):
            st.error(say("Something unexpected happened. See the log."))
        else:
            explain(
                say("This column cannot be classified. Choose the one with the texts."), job.error
            )
    elif job.result is None:
        st.info(say("It was stopped. Press Classify to begin again."))
    else:
        show_result(
            visit,
            job.result,
            labels=order.labels,
            model=order.model,
            column=order.column,
            source=order.name,
            key=job.key[2],
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
        _start(visit, uploaded.name, table, column, chosen)


def _start(visit: Visit, name: str, table: pd.DataFrame, column: str, chosen: ChosenModel) -> None:
    """Classify in the background; only who has the unguessable address and the name sees it."""

    def work(job: Job) -> BatchResult:
        def report(done: int, total: int) -> None:
            job.report("texts", done, total)

        return classify_table(table, column, chosen.classifier, progress=report)

    labels = chosen.classifier.labels
    order = _Order(name=name, column=column, model=chosen.name, labels=labels)
    key = _key(secrets.token_urlsafe(12))
    jobs().start(key, work, person=visit.person.name, keeps=order, most_ended=_KEPT)
    st.query_params[_JOB] = st.session_state[_LAST] = key[2]


def _key(identifier: str) -> Key:
    return ("file", 0, identifier)


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
        draw_left_out(kept.bad.first, kept.bad.count)
        offer_left_out(kept.bad.first)
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


def _job_in_address(visit: Visit) -> Job | None:
    """The one of the address, else the last of this visit, as after another page."""
    wanted = st.query_params.get(_JOB) or st.session_state.get(_LAST)
    if wanted is None:
        return None
    st.session_state[_LAST] = st.query_params[_JOB] = wanted
    name, job = visit.person.name, jobs().of(_key(wanted))
    if visit.person.is_local and st.session_state.get(_NAMELESS) == wanted and name != LOCAL_NAME:
        # Who begins without a name and then types one is the same person. A name that is typed
        # after that may be a colleague's.
        if job is not None and LOCAL_NAME in job.people:
            job.people.add(name)
        del st.session_state[_NAMELESS]
    if job is not None and name not in job.people:
        job = None
    if job is not None and visit.person.is_local and name == LOCAL_NAME:
        st.session_state[_NAMELESS] = wanted
    if job is None:
        del st.session_state[_LAST]
        st.info(say("That result is no longer kept. Upload the file again."))
    return job
