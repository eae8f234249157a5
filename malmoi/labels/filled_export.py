"""The files of a project as they were imported, every row with a label: a person's or a model's."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from malmoi.files import file_at_once
from malmoi.free_names import free_name
from malmoi.labels.access import ProjectAccess
from malmoi.labels.final_label_rule import as_cell, final_label
from malmoi.labels.label_studio import columns_of_task
from malmoi.labels.project import TaskKind
from malmoi.labels.review import reviewed_texts
from malmoi.labels.tables import TextImportRow, TextRow, TextSourceRow
from malmoi.text.table_writing import check_writable, table_writer
from malmoi.text.written_cells import CutCells

# What stands behind the columns of the files; `UNSURE` where a person has to look.
COLUMNS = {"라벨": "str", "누구": "str", "확신도": "float", "확인": "str"}
PERSON, MODEL, UNSURE = "사람", "모델", "확인 필요"
_ROWS = 1_000
_WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods")
# Dates of a workbook are kept as Python writes them.
_SHORTEST_DATE = len("2024-01-03 00:00:00")


class Said(NamedTuple):
    """What a model says of a text: its labels, how sure it is, and whether that is too little."""

    labels: tuple[str, ...]
    confidence: float
    unsure: bool


Says = Callable[[Sequence[str]], Sequence[Said]]


@dataclass(kw_only=True)
class Filled:
    """How many rows were written, and whose label how many of them have."""

    rows: int = 0
    by_people: int = 0
    by_model: int = 0
    unsure: int = 0


def export_filled(
    access: ProjectAccess,
    paths: Sequence[Path],
    says: Says,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
    cuts: CutCells | None = None,
) -> Filled:
    """Write the imported rows in their order, all with a label; files appear when they are whole.

    A row has the columns of its file with their cells, and then `COLUMNS`. The label is the decided
    one (`final_label`), else what the model says. Where people differ, or have skipped the text, or
    the model is not sure, a person has to look.

    Args:
        paths: files of different formats with the same rows; their endings decide.
        says: asked of the texts without a decided label, some at a time.
        progress: called with the rows written so far, and all that will be.
        cuts: counts the cells that a workbook cannot hold whole.

    Raises:
        InputError: the person is no reviewer, or a format is not written.
    """
    done = Filled()
    with access.reading("reviewer") as connection, ExitStack() as open_files:
        kind = access.row(connection)["kind"]
        mine = TextRow.project_id == access.project_id
        counted = select(func.count(TextSourceRow.id)).join(TextRow).where(mine)
        total = connection.scalar(counted) or 0
        for path in paths:
            check_writable(path, total, what="a file to write")
        own, text_columns = _columns(access, connection)
        names = list(own)
        for name in COLUMNS:
            names.append(free_name(name, names))
        kinds = [*["str"] * len(own), *COLUMNS.values()]
        writers = [
            open_files.enter_context(
                table_writer(open_files.enter_context(file_at_once(path)), names, kinds, cuts=cuts)
            )
            for path in paths
        ]
        labels: dict[int, list[Any]] = {}
        for rows in _rows(access, connection):
            _add_labels(access, connection, rows, labels, says, kind)
            for text_id, import_id, source, text, cells in rows:
                text_column = text_columns.get((import_id, source), text_columns[0, ""])
                found = dict(columns_of_task(json.loads(cells)))
                if source.lower().endswith(_WORKBOOKS):
                    found = {name: _as_date(cell) for name, cell in found.items()}
                found[text_column] = text
                row = [*(found.get(name) for name in own), *labels[text_id]]
                for write in writers:
                    write(row)
                done.rows += 1
                done.by_people += labels[text_id][1] == PERSON
                done.unsure += labels[text_id][3] is not None
            done.by_model = done.rows - done.by_people
            progress(done.rows, total)
    return done


def _known_columns(
    access: ProjectAccess, connection: Connection
) -> tuple[dict[str, None], dict[tuple[int, str], str]]:
    """The columns that imports have written down, and which of each import and file has texts."""
    query = (
        select(TextImportRow.id, TextImportRow.columns)
        .where(TextImportRow.project_id == access.project_id)
        .order_by(TextImportRow.id)
    )
    found: dict[str, None] = {}
    texts: dict[tuple[int, str], str] = {}
    for import_id, columns in connection.execute(query):
        for source, one in json.loads(columns or "{}").items():
            found |= dict.fromkeys(one["names"])
            texts[import_id, source] = one["text"]
    return found, texts


def _columns(
    access: ProjectAccess, connection: Connection
) -> tuple[list[str], dict[tuple[int, str], str]]:
    """All columns in their order, and which of each import and file has the texts.

    Of (0, "") it is that of texts whose file does not say.
    """
    found, texts = _known_columns(access, connection)
    texts[0, ""] = next(iter(texts.values()), "text")
    if texts[0, ""] not in found:
        found = {texts[0, ""]: None, **found}
    cells = (
        select(TextSourceRow.cells)
        .join(TextRow, TextRow.id == TextSourceRow.text_id)
        .where(TextRow.project_id == access.project_id)
        .order_by(TextSourceRow.id)
    )
    # Of files that were imported before their order was kept, and of nested ones.
    for one in connection.scalars(cells, execution_options={"yield_per": _ROWS}):
        found |= dict.fromkeys(columns_of_task(json.loads(one)))
    return list(found), texts


def imported_columns(access: ProjectAccess) -> list[str]:
    """The columns of the imported files in their order, but those of the texts.

    Raises:
        AccessError: the person is no member.
    """
    with access.reading() as connection:
        names, texts = _known_columns(access, connection)
    return [name for name in names if name not in texts.values()]


def _rows(
    access: ProjectAccess, connection: Connection
) -> Iterator[Sequence[tuple[int, int, str, str, str]]]:
    """Text id, import, file, text as it stood there and other cells, some rows at a time."""
    last = 0
    while True:
        query = (
            select(
                TextSourceRow.id,
                TextSourceRow.text_id,
                TextSourceRow.import_id,
                TextSourceRow.source,
                func.coalesce(TextSourceRow.text, TextRow.text),
                TextSourceRow.cells,
            )
            .join(TextRow, TextRow.id == TextSourceRow.text_id)
            .where(TextRow.project_id == access.project_id, TextSourceRow.id > last)
            .order_by(TextSourceRow.id)
            .limit(_ROWS)
        )
        rows = connection.execute(query).all()
        if not rows:
            return
        yield [(row[1], row[2], row[3], row[4], row[5]) for row in rows]
        last = rows[-1][0]


def _add_labels(
    access: ProjectAccess,
    connection: Connection,
    rows: Sequence[tuple[int, int, str, str, str]],
    labels: dict[int, list[Any]],
    says: Says,
    kind: TaskKind,
) -> None:
    """The cells of `COLUMNS` of texts that have none yet."""
    new = [text_id for text_id in dict.fromkeys(row[0] for row in rows) if text_id not in labels]
    asked, looked_at = {}, set()
    for text in reviewed_texts(access, connection, new) if new else ():
        if (final := final_label(text)) is not None:
            labels[text.text_id] = [as_cell(final.labels, kind), PERSON, None, None]
            continue
        asked[text.text_id] = text.text
        if text.votes:
            looked_at.add(text.text_id)
    for text_id, said in zip(asked, says(list(asked.values())) if asked else (), strict=True):
        unsure = UNSURE if said.unsure or text_id in looked_at else None
        label = as_cell(said.labels, kind)
        labels[text_id] = [label, MODEL, round(said.confidence, 4), unsure]


def _as_date(cell: Any) -> Any:
    if not isinstance(cell, str) or len(cell) < _SHORTEST_DATE or cell[4:5] != "-":
        return cell
    try:
        moment = datetime.fromisoformat(cell)
    except ValueError:
        return cell
    return date(moment.year, moment.month, moment.day) if cell.endswith(" 00:00:00") else moment
