"""A project as a file: written in the background, with a bar, then to be downloaded."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import streamlit as st
from sqlalchemy import func, select

from malmoi.app.downloads import XLSX_MIME
from malmoi.app.explanation import explain
from malmoi.app.language import number_of, say
from malmoi.app.projects.imports import draw_bar
from malmoi.app.projects.running import Key, Running, works
from malmoi.app.projects.uploads import UploadFolder
from malmoi.app.visit import OpenProject, Visit
from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.database import as_part, without_password
from malmoi.labels.exporting import export_table
from malmoi.labels.final_labels import texts_of
from malmoi.labels.other_tools import export_for
from malmoi.labels.people import AccessError
from malmoi.labels.project import Project
from malmoi.paths import label_database
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
_REFRESH_SECONDS = 0.5
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


def start_export(access: ProjectAccess, kind: ExportKind, *, labelled_only: bool) -> Running:
    """Begin to write a project in the background.

    Raises:
        InputError: the person is no reviewer, or has an export of it on the way.
    """
    with access.reading("reviewer") as connection:
        access.row(connection)
    folder = UploadFolder()

    def work(running: Running) -> WrittenExport:
        path, cuts = folder.path / f"export{KINDS[kind][1]}", CutCells()

        is_whole = kind in ("label-studio", "doccano") or not labelled_only
        with access.reading("reviewer") as connection:
            chosen = texts_of(access, labelled_only=not is_whole).subquery()
            total = connection.scalar(select(func.count()).select_from(chosen))

        def report(done: int) -> None:
            running.report("export", done, total)

        if kind == "label-studio" or kind == "doccano":
            texts = export_for(access, path, kind, progress=report)
        else:
            texts = export_table(
                access, path, labelled_only=labelled_only, progress=report, cuts=cuts
            )
        return WrittenExport(path=path, kind=kind, texts=texts, cuts=cuts.count, folder=folder)

    return works().start(_key(access), work)


def _key(access: ProjectAccess) -> Key:
    return ("export", access.project_id, access.person.name)


def draw_exports(visit: Visit, project: OpenProject) -> None:
    """Choose a form, write it, download it."""
    if not project.allows("reviewer"):
        # The store refuses as well; who cannot should not have to try.
        st.info(
            say(
                "내보내기는 검수자와 관리자가 합니다. 작업의 관리자에게 부탁해 주세요.",
                "Reviewers and admins export. Ask an admin of the project.",
            ),
            icon=":material/lock:",
        )
        return
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    kind: ExportKind = left.selectbox(
        say("파일 종류", "Kind of file"),
        list(KINDS),
        format_func=lambda one: KINDS[one][0],
        key="export_kind",
    )
    for_tools = kind in ("label-studio", "doccano")
    everything = right.toggle(
        say("라벨 없는 글도", "Texts without a label, too"),
        value=for_tools,
        key=f"export_all_{for_tools}",
        disabled=for_tools,
        help=say(
            "Label Studio와 doccano 파일에는 언제나 모든 글이 들어갑니다.",
            "Files for Label Studio and doccano always hold all texts.",
        ),
    )
    if st.button(
        say("파일 만들기", "Write the file"), type="primary", icon=":material/file_export:"
    ):
        try:
            start_export(project.access, kind, labelled_only=not everything).wait(_QUICK_SECONDS)
        except AccessError as error:
            explain(say("이 작업을 내보낼 수 없습니다.", "You may not export this project."), error)
        except InputError as error:
            explain(say("지금은 내보낼 수 없습니다.", "It cannot be exported now."), error)
    _draw_state(project)
    _explain_columns()
    _draw_training(visit, project)


def _draw_state(project: OpenProject) -> None:
    running = works().of(_key(project.access))
    if running is None:
        return
    if running.is_on:
        _draw_running(project.access)
    elif running.error is not None:
        explain(say("파일을 만들지 못했습니다.", "The file was not written."), running.error)
    elif isinstance(running.result, WrittenExport):
        _offer(running.result, project.project.name)


@st.fragment(run_every=_REFRESH_SECONDS)
def _draw_running(access: ProjectAccess) -> None:
    running = works().of(_key(access))
    if running is None or not running.is_on:
        st.rerun()
    assert running is not None
    draw_bar(running, say("파일을 만드는 중입니다", "Writing the file"))
    if st.button(say("멈추기", "Stop"), icon=":material/stop_circle:"):
        running.stop.set()


def _offer(done: WrittenExport, name: str) -> None:
    title, ending, mime = KINDS[done.kind]
    size = done.path.stat().st_size / 2**20
    if not done.texts:
        st.warning(
            say(
                "담을 글이 없습니다. 아직 라벨이 없다면 ‘라벨 없는 글도’를 켜고 다시 만드세요.",
                "There is nothing in it. Without labels, ask for all texts and write it again.",
            ),
            icon=":material/inbox:",
        )
        return
    if done.kind == "doccano":
        st.caption(
            say(
                "doccano 파일에는 정해진 라벨만 있습니다. 의견이 갈린 글과 ‘해당 없음’인 글은 라벨 "
                "없이 들어갑니다.",
                "A file for doccano has decided labels only: none where people differ, nor of a "
                "text that has none of the labels.",
            )
        )
    if done.kind == "label-studio":
        st.caption(
            say(
                "Label Studio에서 온 글은 그곳의 선택지(Choices) 이름으로 나갑니다. 글이 그 밖의 "
                "것이라면 태그 이름을 Choices는 label, Text는 text로 해 두세요. 이메일로 "
                "로그인한 사람은 그곳에도 먼저 등록해 두세요. 모르는 이메일이 있으면 파일을 받지 "
                "않습니다.",
                "Texts that came from Label Studio go back to the Choices of that project. Where "
                "none did, the tags of the project there must be called label (Choices) and text "
                "(Text). Add people with an e-mail address there first: it refuses a file with an "
                "address that it does not know.",
            )
        )
    st.success(
        say(
            f"{title} 파일에 글 {done.texts:,}건을 담았습니다 ({size:,.1f} MB).",
            f"{title}: {number_of(done.texts, 'text')} ({size:,.1f} MB).",
        ),
        icon=":material/check:",
    )
    if done.cuts:
        st.warning(
            say(
                f"칸 {done.cuts:,}개가 {EXCEL_CELL:,}자에서 잘렸습니다. Excel은 한 칸에 그보다 긴 "
                "글을 담지 못합니다. 모두 담으려면 CSV나 JSONL로 만드세요.",
                f"{number_of(done.cuts, 'cell')} cut at {EXCEL_CELL:,} characters, which is all "
                "that Excel holds; write CSV or JSONL to keep all.",
            ),
            icon=":material/content_cut:",
        )
    st.download_button(
        say("내려받기", "Download"),
        done.path.read_bytes,
        f"{_file_stem(name)}{'-doccano' if done.kind == 'doccano' else ''}{ending}",
        mime,
        on_click="ignore",
        icon=":material/download:",
        key="export_file",
    )


def _file_stem(name: str) -> str:
    """A name for a file on the visitor's machine: no system takes these characters."""
    return "".join("_" if char in '<>:"/\\|?*' else char for char in name).strip(". ") or "labels"


def _explain_columns() -> None:
    columns = [
        ("text", "글", "the text"),
        (
            "label",
            "정해진 라벨: 검수자가 정한 것, 없으면 모두나 절반 넘게 고른 것",
            "the decided label: a reviewer's, else that of all or of more than half",
        ),
        (
            "decided_by",
            "누가 정했는지: review(검수), all(모두 같음), majority(절반 넘음)",
            "who decided: review, all, majority",
        ),
        ("adjudicated_label, reviewer", "검수자가 정한 라벨과 검수자", "a reviewer's decision"),
        ("votes", "사람마다 붙인 라벨 (JSON)", "the label of each annotator (JSON)"),
        ("flagged_by, notes", "표시한 사람, 남긴 메모", "flags and notes"),
        (
            "suggested_label, suggested_score, suggested_model",
            "라벨을 붙일 때 화면에 보인 모델의 제안",
            "what the model suggested on screen",
        ),
        (
            "drawn",
            "글이 나온 차례: plain(순서대로), scores(모델), random(무작위)",
            "how the text was drawn: plain, scores, random",
        ),
        ("guideline_version", "그때의 지침 판", "version of the guideline then"),
        ("seconds, labelled_at", "걸린 시간(초), 붙인 때(UTC)", "seconds it took, when (UTC)"),
        ("text_id, source, row", "글 번호, 온 파일과 줄", "id, file and line of the text"),
    ]
    with st.expander(say("열의 뜻", "What the columns mean"), icon=":material/table_chart:"):
        st.dataframe(
            {
                say("열", "Column"): [name for name, _, _ in columns],
                say("뜻", "Meaning"): [say(korean, english) for _, korean, english in columns],
            },
            hide_index=True,
        )
        st.caption(
            say(
                "그 뒤로 올린 파일의 열이 이어집니다. 수식처럼 보이는 칸(=, + 등)은 표 프로그램이 "
                "실행하지 못하게 앞에 보이지 않는 글자를 붙입니다. 다시 가져오면 원래대로입니다.",
                "Behind them come the columns of the files. Cells that look like formulas get a "
                "character in front that shows nothing, so that no program runs them; imported "
                "again they are as before.",
            )
        )


def _draw_training(visit: Visit, project: OpenProject) -> None:
    with st.expander(
        say("이 라벨로 모델 학습하기", "Train a model on these labels"),
        icon=":material/model_training:",
    ):
        st.caption(
            say(
                "내보내지 않아도 데이터베이스에서 바로 읽어 학습합니다.",
                "No export is needed: training reads the database itself.",
            )
        )
        st.code(training_command(visit, project.project), language="bash")


def training_command(visit: Visit, project: Project) -> str:
    """The command that learns from the project, without a password."""
    url = visit.store.engine.url
    if url.get_backend_name() == "sqlite":
        own = Path(url.database or "")
        is_own = own.absolute() == label_database().absolute()
        place = str(label_database()) if is_own else str(own)
    else:
        place = without_password(url.render_as_string(hide_password=False))
    several = " --task multi" if project.kind == "multi" else ""
    data = shlex.quote(f"{place}#{as_part(project.name)}")
    return f"python finetune/kfold.py --data {data}{several}"
