"""Tables with a column of labels: texts that were labelled in a file come in with their labels."""

import hashlib
from collections.abc import Collection, Sequence
from typing import Any

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act
from malmoi.labels.label_names import normal_label
from malmoi.labels.labelled_import import (
    FoundActs,
    ImportProgress,
    LabelledImport,
    StoredRow,
    import_with_acts,
)
from malmoi.labels.listed_labels import agreed, chosen, is_annotations, listed
from malmoi.labels.project import TaskKind
from malmoi.labels.projects import read_project
from malmoi.text.reading.columns import label_text
from malmoi.text.reading.json_rows import refuse_unaccepted
from malmoi.text.reading.nested import with_inner_keys
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import Source

# Between the labels of one cell, where a cell is not one label by itself.
SEPARATORS = (",", ";", "|", "/", "#")


def import_table(
    access: ProjectAccess,
    sources: Sequence[Source],
    options: ReadOptions,
    *,
    label_column: str,
    annotator_column: str | None = None,
    progress: ImportProgress | None = None,
    notes: ReadingNotes | None = None,
) -> LabelledImport:
    """Texts with the labels of a column; a row with an empty cell has a text only.

    Args:
        access: of an admin, whose labels they become.
        sources: tables of the same columns.
        options: how they are read.
        label_column: of the labels, as `distinct_names` calls it. Where a text may have several,
            a cell is a list as `listed_labels` knows them, or names with commas, semicolons, bars,
            slashes or doccano's # between them.
        annotator_column: of who labelled; a row without one is of the person who imports.
        progress: called with the phase, texts or labels, and the rows done in it so far.
        notes: gets how each file is read.

    Raises:
        InputError: as `malmoi.labels.text_import.import_texts`, or no row has such a column.
    """
    kind, was_met = read_project(access).kind, False
    # Another column says other things of the same rows.
    name = f"table:{_short(label_column, annotator_column or '')}"

    def read(row: StoredRow) -> FoundActs:
        nonlocal was_met
        cells = with_inner_keys(row.cells)
        was_met = was_met or label_column in cells
        refuse_unaccepted(cells)
        labels = labels_of_cell(cells.get(label_column), kind, row.book.names)
        if labels is None:
            return FoundActs()
        who = _annotator(cells, annotator_column) or access.person.name
        # So does another person.
        request = f"{row.request}:{_short(who)}"
        act = Act(text_id=row.text_id, kind="label", request_id=request, labels=labels)
        return FoundActs(acts=[(who, act)])

    done = import_with_acts(
        access, sources, options, read, name=name, progress=progress, notes=notes
    )
    if done.texts.rows and not was_met:
        raise InputError(
            "expected a column {label_column!r} with labels, found none of that name; the texts "
            "are imported, their labels are not: import the files again with the right name",
            label_column=label_column,
        )
    return done


def labels_of_cell(cell: Any, kind: TaskKind, names: Collection[str]) -> list[str] | None:
    """The labels that a cell names; None where it is empty.

    A written `[]` says that a text of a `multi` project has none of the labels, which is something
    else than nobody having said so.

    Args:
        cell: of any kind that a file can have.
        kind: of the project.
        names: of its labels.

    Raises:
        InputError: the cell holds something that is no label.
    """
    text = label_text(cell, "the column of labels")
    if text is None:
        return None
    if is_annotations(found := listed(text)):
        labels = agreed(found or [])
        return None if labels is None or (not labels and kind == "single") else labels
    spelled = _list_in(text)
    if spelled is not None:
        return spelled if spelled or kind == "multi" else None
    if kind == "single" or normal_label(text) in names:
        return [text]
    for separator in SEPARATORS:
        parts = [part.strip() for part in text.split(separator)]
        if len(parts) > 1 and all(normal_label(part) in names for part in parts):
            return parts
    return [text]


def _short(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]


def _list_in(text: str) -> list[str] | None:
    found = listed(text)
    if found is None:
        return None
    if isinstance(found, dict) or any(isinstance(one, dict) for one in found):
        found = chosen(found)
    if found is None or any(isinstance(one, list | tuple | dict | set) for one in found):
        raise InputError("expected names of labels in a list, found {text!r}", text=text[:100])
    # The order of a set is no order.
    return [str(one) for one in (sorted(found, key=str) if isinstance(found, set) else found)]


def _annotator(cells: dict[str, Any], column: str | None) -> str:
    value = None if column is None else cells.get(column)
    return "" if value is None else str(value).strip()
