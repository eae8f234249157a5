"""The page "분석": what the texts of the project say, how surely, and as a page for others."""

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from malmoi.app import learning
from malmoi.app.analysing import Analysed, analysis_key, change_of, start_analysis
from malmoi.app.charts import share_intervals
from malmoi.app.downloads import XLSX_MIME
from malmoi.app.explanation import explain
from malmoi.app.job_bar import draw_job
from malmoi.app.jobs import jobs
from malmoi.app.language import language, say
from malmoi.app.navigation import go_to, link_to
from malmoi.app.plain_text import escaped, file_stem, shortened
from malmoi.app.visit import OpenProject, Visit
from malmoi.errors import InputError
from malmoi.labels.leasing import MOST_LEASES, lease_by_chance
from malmoi.labels.project import ProjectLabel
from malmoi.labels.projects import change_labels, read_project
from malmoi.labels.relabelling import relabel
from malmoi.labels.text_state import has_texts

if TYPE_CHECKING:
    import numpy as np

    from malmoi.analysis.report import Report

_PATIENCE, _SECONDS = 1.0, 2.0
_DONE = "analysis_done"
# Texts of a theme that get its label: those that are shown.
_EXAMPLES = 3
_SHOWN = 240  # characters
_FIRST_LABELS = 20
_MOST_CHANGES = 8
# Texts behind a number that are listed; the workbook has all.
_MOST_BEHIND = 500
_TABLE = ("label", "texts", "read", "share", "low", "high")
_COMPARED = "analysis_compared"


def show(visit: Visit) -> None:
    open_project = visit.needs_project()
    if open_project is None:
        return
    if not open_project.allows("reviewer"):
        st.info(
            say("Numbers about what others said are for reviewers and admins."),
            icon=":material/lock:",
        )
        return
    if not has_texts(open_project.access):
        st.info(
            say("There are no texts yet. Import a file under Projects to begin."),
            icon=":material/upload_file:",
        )
        link_to("projects", say("Import texts"))
        return
    try:
        # The elements below keep their index whether or not a bar is drawn here. At another index
        # Streamlit would draw them anew, and a click in that moment would be lost.
        with st.container():
            analysed = _analysed(open_project)
        if analysed is not None:
            _draw(open_project, analysed)
    except InputError as error:
        explain(say("The texts could not be analysed."), error)


def _analysed(open_project: OpenProject) -> Analysed | None:
    """The latest analysis; None while the first is made."""
    access = open_project.access
    key = analysis_key(access)
    job = jobs().of(key)
    change = change_of(access)
    analysed = None if job is None else job.result
    if job is None:
        job = start_analysis(access)
        if job.wait(_PATIENCE):
            analysed = job.result
    if job.is_on:
        draw_job(key, say("Reading the texts"), stop=say("Stop"))
        return analysed if isinstance(analysed, Analysed) else None
    if job.error is not None:
        explain(say("The texts could not be analysed."), job.error)
    if not isinstance(analysed, Analysed) or analysed.change != change:
        if isinstance(analysed, Analysed):
            st.caption(say("Labels or texts have changed since."))
        if st.button(say("Compute again"), icon=":material/refresh:", key="analysis_again"):
            start_analysis(access)
            st.rerun()
    return analysed if isinstance(analysed, Analysed) else None


def _draw(open_project: OpenProject, analysed: Analysed) -> None:
    from malmoi.analysis.page import notes

    if (done := st.session_state.pop(_DONE, None)) is not None:
        st.success(done, icon=":material/check_circle:")
    report = analysed.found.report
    if not report.labels:
        st.markdown(
            say(
                "No text has a label yet. Which labels fit? These are the themes of your texts; "
                "each can become a label with its first texts."
            )
        )
        _draw_themes(open_project, analysed)
        return
    for note in notes(report, say):
        st.markdown(escaped(note))
    _draw_more_texts(open_project, report)
    report = _compared(report)
    _offer(report, open_project.project.name)
    _draw_shares(report)
    _draw_labels(report)
    _draw_themes(open_project, analysed)


def _draw_more_texts(open_project: OpenProject, report: "Report") -> None:
    """The button that brings texts of the random sample, and no others."""
    more = _FIRST_LABELS if report.halving is None else report.halving[0]
    left = len(report.originals) - int(report.labelling.drawn.sum())
    count = min(more, left, MOST_LEASES)
    if count and st.button(
        say("Label {count:text} drawn by chance", count=count),
        icon=":material/casino:",
        key="analysis_more",
        help=say("Only texts that chance has chosen say how often the model is right."),
    ):
        lease_by_chance(open_project.access, count)
        go_to("labelling")


def _compared(report: "Report") -> "Report":
    """The report by the columns that the visitor has chosen."""
    names = list(map(str, report.cells.columns))
    if not names:
        return report
    first, second = st.columns(2)
    by = first.multiselect(
        say("Compare by"),
        names,
        key="analysis_by",
        placeholder=say("Columns of your file"),
        select_all=False,
    )
    time = second.selectbox(
        say("Over time"),
        names,
        index=None,
        key="analysis_time",
        placeholder=say("A column of dates"),
    )
    if not by and time is None:
        return report
    chosen = (id(report), tuple(by), time)
    held = st.session_state.get(_COMPARED)
    if held is None or held[0] != chosen:
        try:
            held = st.session_state[_COMPARED] = chosen, report.compared(by, time)
        except InputError as error:
            explain(say("The texts could not be analysed."), error)
            return report
    compared: Report = held[1]
    return compared


def _offer(report: "Report", name: str) -> None:
    """The page and the workbook, made when a button is clicked."""
    from malmoi.analysis.page import report_page
    from malmoi.analysis.workbook import workbook_bytes

    spoken = language()
    with st.container(horizontal=True):
        st.download_button(
            say("Page to show and print"),
            lambda: report_page(report, language=spoken).encode(),
            f"{file_stem(name)}.html",
            "text/html",
            on_click="ignore",
            icon=":material/description:",
            type="primary",
            key="analysis_page",
        )
        st.download_button(
            say("Workbook"),
            lambda: workbook_bytes(report, language=spoken),
            f"{file_stem(name)}-{say('Analysis')}.xlsx",
            XLSX_MIME,
            on_click="ignore",
            icon=":material/table_view:",
            key="analysis_workbook",
        )


def _draw_shares(report: "Report") -> None:
    from malmoi.analysis.page import change_sentence
    from malmoi.analysis.report import rows_of

    if len(report.parts) > 1:
        st.subheader(say("What stands out"), anchor=False)
        changes = report.changes.head(_MOST_CHANGES)
        for number, one in enumerate(rows_of(changes)):
            with st.expander(
                escaped(change_sentence(one, say)),
                key=f"analysis_change_{number}",
                on_change="rerun",
            ) as opened:
                if opened.open:
                    _draw_behind(report, report.behind(one.column, one.part, one.label))
        if changes.empty:
            st.markdown(say("Nothing: every difference may be chance."))
    for number, parts in enumerate(report.parts):
        rows = report.shares[report.shares["column"] == parts.column]
        title = say("Share of each label")
        if parts.period is not None:
            title = say("Shares over time")
        elif parts.column:
            title = say("Shares by {column}", column=escaped(parts.column))
        st.subheader(title, anchor=False)
        st.altair_chart(
            share_intervals(rows, report.color_of, by_time=parts.period is not None), alt=title
        )
        with st.expander(say("As a table"), expanded=not parts.column):
            picked = st.dataframe(
                rows[[*(["part"] * bool(parts.column)), *_TABLE]].round(2),
                hide_index=True,
                key=f"analysis_table_{number}_{parts.column}",
                on_select="rerun",
                selection_mode="single-cell",
                column_config={
                    "part": parts.column,
                    "label": say("Label"),
                    "texts": st.column_config.NumberColumn(say("Texts"), format="localized"),
                    "read": say("Read by people"),
                    **{
                        name: st.column_config.NumberColumn(shown, format="percent")
                        for name, shown in (
                            ("share", say("Share")),
                            ("low", say("Low end")),
                            ("high", say("High end")),
                        )
                    },
                },
            )
            if not picked["selection"]["cells"]:
                st.caption(say("Click on a number to read its texts."))
            for row, _ in picked["selection"]["cells"]:
                one = rows.iloc[row]
                st.markdown(f"**{escaped(' · '.join(filter(None, (one.part, one.label))))}**")
                _draw_behind(report, report.behind(parts.column, one.part, one.label))


def _draw_behind(report: "Report", places: "np.ndarray") -> None:
    """The texts behind a number, some by chance where there are too many to list."""
    texts = report.texts_at(places[:_MOST_BEHIND])
    whose = {"person": say("a person"), "model": say("the model"), "": ""}
    if len(places) > len(texts):
        st.caption(
            say(
                "{shown:,} of {texts:text}, drawn by chance; the workbook has all.",
                shown=len(texts),
                texts=len(places),
            )
        )
    else:
        st.caption(say("{texts:text}", texts=len(texts)))
    st.dataframe(
        texts.assign(labelled_by=texts["labelled_by"].map(whose)).round(2),
        hide_index=True,
        column_config={
            "text": st.column_config.TextColumn(say("Text"), width="large"),
            "label": say("Label"),
            "labelled_by": say("Whose label"),
            "confidence": st.column_config.NumberColumn(say("Confidence"), format="percent"),
        },
    )


def _draw_labels(report: "Report") -> None:
    """Words and examples of each label."""
    st.subheader(say("What each label is about"), anchor=False)
    words, examples = report.words, report.examples
    for label in report.labels:
        of_label = words[(words["column"] == "") & (words["label"] == label)]
        mine = examples[examples["label"] == label]
        if of_label.empty and mine.empty:
            continue
        dot = f':color[●]{{foreground="{report.color_of[label]}"}}'
        with st.expander(f"{dot} {escaped(label)}"):
            st.markdown(" · ".join(map(escaped, of_label["word"])))
            for kind, title in (
                ("typical", say("Texts that stand for it")),
                ("extreme", say("Texts that the model is surest of")),
            ):
                texts = mine[mine["kind"] == kind]["text"].tolist()
                if texts:
                    st.caption(title)
                    _draw_texts(texts)


def _draw_themes(open_project: OpenProject, analysed: Analysed) -> None:
    """Groups of texts of like meaning; each may become a label."""
    import numpy as np

    from malmoi.analysis.report import rows_of

    report = analysed.found.report
    st.subheader(say("What the texts are about"), anchor=False)
    themes = report.themes
    if themes.empty:
        if learning.reads_meaning() and report.vectors is None:
            learning.ask_for_vectors(open_project.access)
            _wait_for_meaning(open_project)
        else:
            st.caption(say("There are too few texts for themes."))
        return
    st.caption(say("Texts of like meaning, found without labels and named by their words."))
    for number, theme in enumerate(rows_of(themes[themes["label"] == ""])):
        with st.container(border=True):
            line = st.container(horizontal=True, vertical_alignment="center")
            line.markdown(f"**{escaped(theme.theme)}** · {theme.share:.0%}", width="stretch")
            if open_project.allows("admin") and line.button(
                say("Make it a label"), icon=":material/new_label:", key=f"analysis_theme_{number}"
            ):
                _make_label(open_project, analysed, theme.theme, theme.places[:_EXAMPLES])
            _draw_texts(theme.examples)
            with st.expander(
                say("All {texts:text}", texts=theme.texts),
                key=f"analysis_theme_texts_{number}",
                on_change="rerun",
            ) as opened:
                if opened.open:
                    _draw_behind(report, np.array(theme.places))


@st.fragment(run_every=_SECONDS)
def _wait_for_meaning(open_project: OpenProject) -> None:
    """How far the vectors are; then the texts are analysed with them."""
    job = learning.vectors_of(open_project.access)
    if job.error is not None:
        explain(say("The meaning of the texts cannot be read."), job.error)
    elif job.is_on or not job.done:
        share = min(1.0, job.done / job.total) if job.total else 0.0
        st.progress(share, text=say("Reading the meaning of the texts"))
    else:
        start_analysis(open_project.access)
        st.rerun()


def _make_label(
    open_project: OpenProject, analysed: Analysed, name: str, places: Sequence[int]
) -> None:
    """A new label, which the texts that are shown get."""
    access = open_project.access
    short = " ".join(name.split(" · ")[:2])
    known = read_project(access).labels
    if short not in {one.name for one in known}:
        change_labels(access, [*known, ProjectLabel(name=short)])
    ids = [analysed.found.text_ids[place] for place in places]
    relabel(access, ids, [short], request_id=f"theme-{uuid.uuid4().hex}", expected=len(ids))
    learning.after_labels(access, len(ids))
    st.session_state[_DONE] = say(
        "{texts:text} now have the label {label}.", texts=len(ids), label=escaped(short)
    )
    st.rerun()


def _draw_texts(texts: Sequence[str]) -> None:
    for text in texts:
        st.markdown(f"- {escaped(shortened(text, _SHOWN))}")
