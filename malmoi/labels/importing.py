"""One way into a project for all files: texts, tables with labels, what other tools export."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.label_columns import import_table
from malmoi.labels.labelled_import import ImportProgress, LabelledImport
from malmoi.labels.other_tools import import_labelled
from malmoi.labels.text_import import import_texts
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import Source

FileOrigin = Literal["table", "label-studio", "doccano"]


@dataclass(frozen=True, kw_only=True)
class WayOfReading:
    """How files are read.

    Attributes:
        origin: which program has made them.
        options: which column has the texts, and so on; of other tools, the column alone counts.
        label_column: of a table; None takes the texts alone. Of Label Studio, the name of the
            Choices whose labels are read; None takes those of all.
        annotator_column: of a table: who gave the label of a row.
    """

    origin: FileOrigin = "table"
    options: ReadOptions = field(default_factory=ReadOptions)
    label_column: str | None = None
    annotator_column: str | None = None


def import_files(
    access: ProjectAccess,
    sources: Sequence[Source],
    way: WayOfReading,
    *,
    progress: ImportProgress | None = None,
    notes: ReadingNotes | None = None,
) -> LabelledImport:
    """Add files to a project; again, it does nothing.

    Args:
        access: of an admin, whose labels they become where the files do not say whose they are.
        sources: files that are read in one way.
        way: which.
        progress: called with the phase, texts or labels, and the rows done in it so far.
        notes: gets how each file is read.

    Raises:
        InputError: the person is no admin, or nothing could be read.
    """
    if way.origin != "table":
        if way.origin == "doccano" and way.label_column is not None:
            raise InputError(
                "expected no column of labels for what doccano exports, found {label_column!r}; "
                "leave it out, or import the file as a table",
                label_column=way.label_column,
            )
        return import_labelled(
            access,
            sources,
            way.origin,
            text_column=way.options.text_column,
            annotator=access.person.name,
            choices=way.label_column,
            progress=progress,
            notes=notes,
        )
    if way.label_column is not None:
        return import_table(
            access,
            sources,
            way.options,
            label_column=way.label_column,
            annotator_column=way.annotator_column,
            progress=progress,
            notes=notes,
        )

    def texts_done(rows: int) -> None:
        if progress is not None:
            progress("texts", rows)

    texts = import_texts(access, sources, way.options, progress=texts_done, notes=notes)
    return LabelledImport(texts=texts, labels=0, bad_rows=[], bad_row_count=0)
