"""What is in a file, before any of it is read in: its columns and their first cells."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from malmoi.errors import InputError
from malmoi.labels.importing import FileOrigin, WayOfReading
from malmoi.labels.label_names import SEPARATORS, joined_by, normal_label, separator_between
from malmoi.labels.label_studio import choices_in
from malmoi.labels.project import TaskKind
from malmoi.text.reading.bad_rows import BadRows
from malmoi.text.reading.columns import (
    LABEL_COLUMNS,
    SAMPLE_ROWS,
    ColumnRequest,
    distinct_names,
    has_text_column,
    header_below,
    plain_name,
)
from malmoi.text.reading.nested import texts_inside
from malmoi.text.reading.notes import ReadingNotes, SourceNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.records import iter_whole_rows
from malmoi.text.reading.sources import Source
from malmoi.text.reading.tables import open_table

# More than anybody would give a key to; a column with more is no column of labels.
MOST_LABELS = 100
_CELL = 300
# Before what a task of Label Studio holds.
_DATA = "data."


@dataclass(frozen=True, kw_only=True)
class FilePreview:
    """The beginning of a file.

    Attributes:
        columns: as the cells of its rows are named.
        header: the same columns as the file names them: some may have no name, or that of another.
        rows: the first ones, as they are shown.
        text: which column most likely holds the texts.
        label: which one most likely holds labels; None where none is called so.
        is_list: one text a line, without columns.
        origin: which program has most likely made it.
        choices: of Label Studio, the names of the Choices that its first rows have filled in.
        notes: how it is read.
        header_below: which of the rows, from 1, looks like the header that the first line is not.
    """

    columns: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: int
    label: int | None
    is_list: bool
    origin: FileOrigin
    notes: SourceNotes
    choices: tuple[str, ...] = ()
    header_below: int | None = None

    def way(
        self,
        *,
        text: int,
        label: int | None,
        no_header: bool,
        origin: FileOrigin = "table",
        choices: str | None = None,
        annotator_column: str | None = None,
        annotator: str | None = None,
    ) -> WayOfReading:
        """How to read it, by the places of its columns and the name of the Choices."""
        if self.is_list:
            return WayOfReading(options=ReadOptions(delimiter=None))
        name = self.header[text]
        alike = sum(plain_name(name) == plain_name(other) for other in self.header)
        # A number names a column where its name does not.
        column = name if plain_name(name) and alike == 1 else str(text + 1)
        if origin != "table":
            options = ReadOptions(text_column=column)
            return WayOfReading(
                origin=origin, options=options, label_column=choices, annotator=annotator
            )
        return WayOfReading(
            options=ReadOptions(
                text_column=str(text + 1) if no_header else column, no_header=no_header
            ),
            label_column=None if label is None else self.columns[label],
            annotator_column=annotator_column,
            annotator=annotator,
        )


def look_at(source: Source, *, no_header: bool = False) -> FilePreview:
    """Read the beginning of a file.

    Raises:
        InputError: it is empty, damaged or of another kind than its name says.
    """
    notes, bad = SourceNotes(source=source.name), BadRows(skip=True)
    # Of a table without names, any column will do to see them all.
    options = ReadOptions(no_header=no_header, text_column="1" if no_header else None)
    with open_table(source, ColumnRequest(any_sheet=True), options, notes, bad) as table:
        if not table.columns:
            raise bad.first[0]
        if table.objects is not None:
            seen = _preview(table.columns, table.sample, notes, source)
            rows = (dict(zip(table.columns, row, strict=True)) for row in table.sample)
            if seen.origin != "table" or not (paths := texts_inside(rows)):
                return seen
            if ColumnRequest().fits(table.columns, table.sample):
                return seen
            columns = [*table.columns, *paths]
            sample = [[*row, *paths.values()] for row in table.sample]
            return replace(_preview(columns, sample, notes, source), text=len(table.columns))
        seen = _preview(distinct_names(table.columns), table.sample, notes, source)
        below = None
        if not no_header and not has_text_column(table.columns, None):
            below = header_below(table.sample, None)
        return replace(
            seen,
            header=tuple(table.columns),
            header_below=below,
            is_list=table.is_list,
        )


def _preview(
    columns: Sequence[str], sample: Sequence[Sequence[object]], notes: SourceNotes, source: Source
) -> FilePreview:
    rows = [[_shown(cell) for cell in row] for row in sample[:SAMPLE_ROWS]]
    names = {plain_name(name) for name in LABEL_COLUMNS}
    label = next((n for n, name in enumerate(columns) if plain_name(name) in names), None)
    text = _text_place(columns, sample, rows)
    origin = _origin(columns, sample, source)
    if origin == "label-studio":
        text = _place_in_data(columns, sample, rows, text)
    return FilePreview(
        columns=tuple(columns),
        header=tuple(columns),
        rows=tuple(tuple(row) for row in rows),
        text=text,
        label=None if label == text else label,
        is_list=False,
        origin=origin,
        notes=notes,
        choices=_choices_of(columns, sample) if origin == "label-studio" else (),
    )


def _choices_of(columns: Sequence[str], sample: Sequence[Sequence[object]]) -> tuple[str, ...]:
    tasks = (dict(zip(columns, row, strict=False)) for row in sample)
    return tuple(dict.fromkeys(name for task in tasks for name in choices_in(task)))


def _shown(cell: object) -> str:
    if cell is None:
        return ""
    text = json.dumps(cell, ensure_ascii=False) if isinstance(cell, list | dict) else str(cell)
    return text if len(text) <= _CELL else f"{text[:_CELL]}…"


def _text_place(
    columns: Sequence[str], sample: Sequence[Sequence[object]], rows: Sequence[Sequence[str]]
) -> int:
    """The column that every command would take, else the one with the longest cells."""
    try:
        return ColumnRequest().locate(columns, "", sample).text
    except InputError:
        lengths = [sum(len(row[n]) for row in rows if n < len(row)) for n in range(len(columns))]
        return max(range(len(columns)), key=lengths.__getitem__)


def _place_in_data(
    columns: Sequence[str],
    sample: Sequence[Sequence[object]],
    rows: Sequence[Sequence[str]],
    otherwise: int,
) -> int:
    """The column of the texts among the fields of `data`, which every project names as it likes."""
    places = [n for n, name in enumerate(columns) if name.startswith(_DATA)]
    if not places:
        return otherwise

    def fields(row: Sequence[Any]) -> list[Any]:
        return [row[n] if n < len(row) else None for n in places]

    names = [columns[n].removeprefix(_DATA) for n in places]
    shown = [[cell or "" for cell in fields(row)] for row in rows]
    return places[_text_place(names, [fields(row) for row in sample], shown)]


def _origin(
    columns: Sequence[str], sample: Sequence[Sequence[object]], source: Source
) -> FileOrigin:
    if source.format not in (".json", ".jsonl"):
        return "table"
    if "annotations" in columns and "data" in columns:
        return "label-studio"
    if "text" in columns and "label" in columns:
        place = list(columns).index("label")
        if all(isinstance(row[place], list) for row in sample if row[place] is not None):
            return "doccano"
    return "table"


def label_values(source: Source, way: WayOfReading, kind: TaskKind) -> list[str]:
    """The labels that a file has, in its order: of its label column, or of what another tool wrote.

    Raises:
        InputError: the file cannot be read, it has more than `MOST_LABELS`, or none that can be
            read.
    """
    reader = way.label_reader()
    if reader is None:
        return []
    found: dict[str, None] = {}
    wrong: list[InputError] = []
    # Of several labels in a cell, every combination is a value.
    most = MOST_LABELS if kind == "single" else 10 * MOST_LABELS
    options, bad = replace(reader.options, skip_bad_rows=True), BadRows(skip=True)
    for row in iter_whole_rows([source], options, notes=ReadingNotes(), bad=bad):
        for said in reader.read(row.cells, kind, ()):
            if isinstance(said, InputError):
                wrong.append(said.at(f"{row.source}:{row.place}"))
            else:
                found |= dict.fromkeys(said.labels)
        if len(found) > most:
            break
    if wrong and not found:
        raise wrong[0]
    joined = kind == "multi" and way.origin == "table"
    separator = joined_by(list(found), SEPARATORS, alone=False) if joined else None
    names = list(found)
    while separator is not None:
        parts = [part for name in names for part in name.split(separator)]
        names = list(dict.fromkeys(map(normal_label, parts)))
        separator = separator_between(set(names), set(names))
    names = [name for name in dict.fromkeys(map(normal_label, names)) if name]
    if len(names) > MOST_LABELS:
        raise InputError(
            "expected at most {most} different labels in the column {label_column}, found more; "
            "choose another column",
            place=source.shown,
            most=MOST_LABELS,
            label_column=way.label_column,
        )
    return names
