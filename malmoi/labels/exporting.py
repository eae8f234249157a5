"""A project as a file: a table of all that is known of its texts, or what other tools read."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, func, select

from malmoi.errors import InputError
from malmoi.files import file_at_once
from malmoi.labels.access import ProjectAccess
from malmoi.labels.doccano import as_example
from malmoi.labels.final_label_rule import as_cell, final_label, has_label, iter_reviewed
from malmoi.labels.label_studio import as_task, columns_of_task, tags_of
from malmoi.labels.project import TaskKind
from malmoi.labels.projects import read_labels
from malmoi.labels.review import ReviewedText
from malmoi.labels.tables import AnnotationRow, PlaceRow, TextRow, TextSourceRow
from malmoi.text.table_writing import check_writable, json_line, table_writer
from malmoi.text.written_cells import CutCells

OtherTool = Literal["label-studio", "doccano"]
# Between two reports of progress.
_TEXTS = 1_000
# Before the columns that the texts came with.
COLUMNS = {
    "text": "str",
    "label": "str",
    "decided_by": "str",
    "adjudicated_label": "str",
    "reviewer": "str",
    "votes": "str",
    "flagged_by": "str",
    "notes": "str",
    "suggested_label": "str",
    "suggested_score": "float",
    "suggested_model": "str",
    "drawn": "str",
    "guideline_version": "int",
    "seconds": "float",
    "labelled_at": "str",
    "text_id": "int",
    "source": "str",
    "row": "str",
}


def export_table(
    access: ProjectAccess,
    path: Path,
    *,
    labelled_only: bool = True,
    progress: Callable[[int, int], None] | None = None,
    cuts: CutCells | None = None,
) -> int:
    """Write a project as CSV, XLSX, JSON lines or Parquet; the file appears when it is whole.

    `label` and `text` are what `finetune/kfold.py --data` reads; a text without a decision has an
    empty label. `votes` is a JSON object of the labels that each annotator gave. What was
    suggested, `drawn`, `guideline_version`, `seconds` and `labelled_at` are of the latest label. A
    text that stood in several rows has the cells of the first. Formulas are made harmless in CSV
    and XLSX.

    Args:
        path: its ending decides the format.
        labelled_only: leave out texts that nobody has labelled or decided.
        progress: called with the texts written so far, and all that will be.
        cuts: counts the cells that a workbook cannot hold whole.

    Returns:
        How many texts were written.

    Raises:
        InputError: the person is no reviewer, or the format is not written.
    """
    with access.reading("reviewer") as connection:
        kind = access.row(connection)["kind"]
        total = _count(access, connection, labelled_only=labelled_only)
        check_writable(path, total, what="a file to write")
        own = _own_columns(access, connection)
        names, kinds = [*COLUMNS, *own.values()], [*COLUMNS.values(), *["str"] * len(own)]
        written = 0
        with (
            file_at_once(path) as scratch,
            table_writer(scratch, names, kinds, cuts=cuts) as write,
        ):
            for texts in iter_reviewed(access, connection, labelled_only=labelled_only):
                for row in _rows(connection, texts, kind, list(own)):
                    write(row)
                written += len(texts)
                if progress is not None:
                    progress(written, total)
    return written


def export_for(
    access: ProjectAccess,
    path: Path,
    tool: OtherTool,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Write all texts of a project for another tool, labelled or not.

    Args:
        path: a JSON file for Label Studio, JSON lines for doccano.
        tool: which one. doccano gets the decided label; Label Studio every vote, and a reviewer's
            decision as ground truth.
        progress: called with the texts written so far, and all that will be.

    Returns:
        How many texts were written.

    Raises:
        InputError: the person is no reviewer.
    """
    written = 0
    with (
        access.reading("reviewer") as connection,
        file_at_once(path) as scratch,
        scratch.open("w", encoding="utf-8") as file,
    ):
        total = _count(access, connection, labelled_only=False)
        for line in _lines(access, connection, tool):
            if tool == "label-studio":
                file.write("[\n" if not written else ",\n")
            file.write(line)
            if tool == "doccano":
                file.write("\n")
            written += 1
            if progress is not None and not written % _TEXTS:
                progress(written, total)
        if tool == "label-studio":
            file.write("\n]\n" if written else "[]\n")
    return written


def _count(access: ProjectAccess, connection: Connection, *, labelled_only: bool) -> int:
    query = select(func.count()).where(TextRow.project_id == access.project_id)
    return connection.scalar(query.where(has_label()) if labelled_only else query) or 0


def _lines(access: ProjectAccess, connection: Connection, tool: OtherTool) -> Iterator[str]:
    names = [label.name for label in read_labels(connection, access.project_id)]
    tags = tags_of(connection, access.project_id, names) if tool == "label-studio" else None
    for texts in iter_reviewed(access, connection, labelled_only=False):
        sources = first_sources(connection, [text.text_id for text in texts])
        for text in texts:
            cells = sources.get(text.text_id, ("", "", {}))[2]
            task = as_example(text, cells) if tags is None else as_task(text, cells, tags)
            yield json_line(task)


def _own_columns(access: ProjectAccess, connection: Connection) -> dict[str, str]:
    """The columns of the files, and what they are called here: one of ours gets a number behind."""
    query = (
        select(TextSourceRow.cells)
        .join(TextRow, TextRow.id == TextSourceRow.text_id)
        .where(TextRow.project_id == access.project_id)
        .distinct()
    )
    found: dict[str, str] = {}
    taken = {name.casefold() for name in COLUMNS}
    rows = connection.execute(query, execution_options={"yield_per": 1_000})
    for (cells,) in rows:
        for name in columns_of_task(json.loads(cells)):
            if name in found:
                continue
            free, again = name, 2
            while free.casefold() in taken:
                free, again = f"{name} ({again})", again + 1
            taken.add(free.casefold())
            found[name] = free
    if len(found) > 1_000:
        raise InputError(
            "expected at most 1,000 columns in the files of a project, found {count:,}; export as "
            "Label Studio JSON or doccano JSON lines instead",
            count=len(found),
        )
    return found


def _rows(
    connection: Connection, texts: Sequence[ReviewedText], kind: TaskKind, own: Sequence[str]
) -> Iterator[list[Any]]:
    ids = [text.text_id for text in texts]
    sources = first_sources(connection, ids)
    labels = _latest_labels(connection, ids)
    for text in texts:
        final = final_label(text)
        latest = labels.get(text.text_id, {})
        source, place, cells = sources.get(text.text_id, ("", "", {}))
        made = latest.get("created_at")
        cast = {vote.annotator: vote.labels for vote in text.votes if not vote.skipped}
        values = {
            "text": text.text,
            "label": None if final is None else as_cell(final.labels, kind),
            "decided_by": None if final is None else final.decided_by,
            "adjudicated_label": None
            if text.adjudicated is None
            else as_cell(text.adjudicated, kind),
            "reviewer": text.reviewer,
            "votes": json.dumps(cast, ensure_ascii=False),
            "flagged_by": ", ".join(one.annotator for one in text.remarks if one.flagged),
            "notes": "\n".join(text.notes),
            "labelled_at": None if made is None else made.isoformat(timespec="seconds"),
            "text_id": text.text_id,
            "source": source,
            "row": place,
        }
        yield [
            *(values.get(name, latest.get(name)) for name in COLUMNS),
            *(cells.get(name) for name in own),
        ]


def first_sources(
    connection: Connection, text_ids: Sequence[int]
) -> dict[int, tuple[str, str, dict[str, Any]]]:
    """File, place and other cells of the first row of each text."""
    first = (
        select(func.min(TextSourceRow.id))
        .where(TextSourceRow.text_id.in_(text_ids))
        .group_by(TextSourceRow.text_id)
    )
    query = select(
        TextSourceRow.text_id, TextSourceRow.source, TextSourceRow.place, TextSourceRow.cells
    ).where(TextSourceRow.id.in_(first))
    return {
        text_id: (source, place, dict(columns_of_task(json.loads(cells))))
        for text_id, source, place, cells in connection.execute(query)
    }


def _latest_labels(connection: Connection, text_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The row of the log of the label that was given last among those that hold, by text."""
    held = (
        select(func.max(PlaceRow.annotation_id))
        .where(PlaceRow.text_id.in_(text_ids), PlaceRow.state == "labelled")
        .group_by(PlaceRow.text_id)
    )
    query = select(AnnotationRow.__table__).where(AnnotationRow.id.in_(held))
    return {row["text_id"]: dict(row) for row in connection.execute(query).mappings()}
