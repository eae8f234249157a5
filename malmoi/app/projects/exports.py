"""A project as a file: written in the background, with a bar, then to be downloaded."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import streamlit as st

from malmoi.app.downloads import XLSX_MIME
from malmoi.app.explanation import explain
from malmoi.app.job_bar import draw_job
from malmoi.app.jobs import Job, Key, jobs
from malmoi.app.language import say
from malmoi.app.navigation import link_to
from malmoi.app.plain_text import file_stem
from malmoi.app.projects.uploads import UploadFolder
from malmoi.app.visit import OpenProject
from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.exporting import export_for, export_table
from malmoi.labels.people import AccessError
from malmoi.messages import Phrase
from malmoi.text.written_cells import EXCEL_CELL, CutCells

ExportKind = Literal["csv", "xlsx", "jsonl", "parquet", "label-studio", "doccano"]
KINDS: dict[ExportKind, tuple[str, str, str]] = {
    "csv": ("CSV", ".csv", "text/csv"),
    "xlsx": ("Excel (XLSX)", ".xlsx", XLSX_MIME),
    "jsonl": ("JSONL", ".jsonl", "application/jsonl"),
    "parquet": ("Parquet", ".parquet", "application/vnd.apache.parquet"),
    "label-studio": ("Label Studio (JSON)", ".json", "application/json"),
    "doccano": ("doccano (JSONL)", ".jsonl", "application/jsonl"),
}
_QUICK_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class WrittenExport:
    """A file that was written.

    Attributes:
        texts: in it.
        cuts: cells that a workbook does not hold whole.
        folder: holds it, and lets it go.
    """

    path: Path
    kind: ExportKind
    texts: int
    cuts: int
    folder: UploadFolder


def start_export(access: ProjectAccess, kind: ExportKind, *, labelled_only: bool) -> Job:
    """Begin to write a project in the background.

    Raises:
        InputError: the person is no reviewer, or has an export of it on the way.
    """
    with access.reading("reviewer") as connection:
        access.row(connection)
    folder = UploadFolder()

    def work(job: Job) -> WrittenExport:
        path, cuts = folder.path / f"export{KINDS[kind][1]}", CutCells()

        def report(done: int, total: int) -> None:
            job.report("texts", done, total)

        if kind == "label-studio" or kind == "doccano":
            texts = export_for(access, path, kind, progress=report)
        else:
            texts = export_table(
                access, path, labelled_only=labelled_only, progress=report, cuts=cuts
            )
        return WrittenExport(path=path, kind=kind, texts=texts, cuts=cuts.count, folder=folder)

    return jobs().start(_key(access), work)


def _key(access: ProjectAccess) -> Key:
    return ("export", access.project_id, access.person.name)


def draw_exports(project: OpenProject) -> None:
    """Choose a form, write it, download it."""
    if not project.allows("reviewer"):
        # The store refuses as well; who cannot should not have to try.
        st.info(
            say("Reviewers and admins export. Ask an admin of the project."),
            icon=":material/lock:",
        )
        return
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    kind: ExportKind = left.selectbox(
        say("Kind of file"),
        list(KINDS),
        format_func=lambda one: KINDS[one][0],
        key="export_kind",
    )
    for_tools = kind in ("label-studio", "doccano")
    everything = right.toggle(
        say("Texts without a label, too"),
        value=for_tools,
        key=f"export_all_{for_tools}",
        disabled=for_tools,
        help=say("Files for Label Studio and doccano always hold all texts."),
    )
    if st.button(say("Write the file"), type="primary", icon=":material/file_export:"):
        try:
            start_export(project.access, kind, labelled_only=not everything).wait(_QUICK_SECONDS)
        except AccessError as error:
            explain(say("You may not export this project."), error)
        except InputError as error:
            explain(say("It cannot be exported now."), error)
    _draw_state(project)
    _explain_columns()
    st.caption(say("To learn from these labels no export is needed."))
    link_to("models", say("Train a model on these labels"), query={"section": "train"})


def _draw_state(project: OpenProject) -> None:
    job = jobs().of(_key(project.access))
    if job is None:
        return
    if job.is_on:
        draw_job(job.key, say("Writing the file"), stop=say("Stop writing"))
    elif job.error is not None:
        explain(say("The file was not written."), job.error)
    elif isinstance(job.result, WrittenExport) and job.result.path.exists():
        _offer(job.result, project.project.name)


def _offer(done: WrittenExport, name: str) -> None:
    title, ending, mime = KINDS[done.kind]
    size = done.path.stat().st_size / 2**20
    if not done.texts:
        st.warning(
            say("There is nothing in it. Without labels, ask for all texts and write it again."),
            icon=":material/inbox:",
        )
        return
    if done.kind == "doccano":
        st.caption(
            say(
                "A file for doccano has decided labels only: none where people differ, nor of a "
                "text that has none of the labels."
            )
        )
    if done.kind == "label-studio":
        st.caption(
            say(
                "Texts that came from Label Studio go back to the Choices of that project. Where "
                "none did, the tags of the project there must be called label (Choices) and text "
                "(Text). Add people with an e-mail address there first: it refuses a file with an "
                "address that it does not know."
            )
        )
    st.success(
        say("{title}: {texts:text} ({size:,.1f} MB).", title=title, texts=done.texts, size=size),
        icon=":material/check:",
    )
    if done.cuts:
        st.warning(
            say(
                "{cells:cell} cut at {characters:,} characters, which is all that Excel holds; "
                "write CSV or JSONL to keep all.",
                cells=done.cuts,
                characters=EXCEL_CELL,
            ),
            icon=":material/content_cut:",
        )
    st.download_button(
        say("Download"),
        done.path.read_bytes,
        f"{file_stem(name)}{'-doccano' if done.kind == 'doccano' else ''}{ending}",
        mime,
        on_click="ignore",
        icon=":material/download:",
        key="export_file",
    )


def _explain_columns() -> None:
    columns = [
        ("text", Phrase("the text")),
        ("label", Phrase("the decided label: a reviewer's, else that of all or of more than half")),
        ("decided_by", Phrase("who decided: review, all, majority")),
        ("adjudicated_label, reviewer", Phrase("a reviewer's decision")),
        ("votes", Phrase("the label of each annotator (JSON)")),
        ("flagged_by, notes", Phrase("flags and notes")),
        (
            "suggested_label, suggested_score, suggested_model",
            Phrase("what the model suggested on screen"),
        ),
        ("drawn", Phrase("how the text was drawn: plain, scores, random")),
        ("guideline_version", Phrase("version of the guideline then")),
        ("seconds, labelled_at", Phrase("seconds it took, when (UTC)")),
        ("text_id, source, row", Phrase("id, file and line of the text")),
    ]
    with st.expander(say("What the columns mean"), icon=":material/table_chart:"):
        st.dataframe(
            {
                say("Column"): [name for name, _ in columns],
                say("Meaning"): [say(meaning) for _, meaning in columns],
            },
            hide_index=True,
        )
        st.caption(
            say(
                "Behind them come the columns of the files. Cells that look like formulas get a "
                "character in front that shows nothing, so that no program runs them; imported "
                "again they are as before."
            )
        )
