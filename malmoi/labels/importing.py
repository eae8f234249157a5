"""One way into a project for all files: texts, tables with labels, what other tools export.

The texts come in first, as `malmoi.labels.text_import` does it; then every row that was kept is
read again from the database for what people said of its text. So both halves go on where they
stopped, and nothing of the files has to stay in memory.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sqlalchemy import select

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, save_acts_of_others
from malmoi.labels.bulk_labels import save_labels_of_others
from malmoi.labels.doccano import DoccanoReader
from malmoi.labels.label_book import LabelBook
from malmoi.labels.label_column import LabelColumnReader
from malmoi.labels.label_reader import ImportedAct, ImportedRow, LabelReader
from malmoi.labels.label_studio import LabelStudioReader
from malmoi.labels.review import adjudicate
from malmoi.labels.tables import TextSourceRow
from malmoi.labels.text_import import ImportReport, import_texts
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import Source

# Of one transaction, for which annotators wait.
_ROWS = 500

FileOrigin = Literal["table", "label-studio", "doccano"]
ImportPhase = Literal["texts", "labels"]
ImportProgress = Callable[[ImportPhase, int], None]
# Of a row of a file: its place, who did it, and what.
_PlacedAct = tuple[str, str, Act]


@dataclass(frozen=True, kw_only=True)
class WayOfReading:
    """How files are read.

    Attributes:
        origin: which program has made them.
        options: which column has the texts, and so on; of other tools, the column alone counts. By
            default it is `data.text` of Label Studio and `text` of doccano.
        label_column: of a table; None takes the texts alone. Of Label Studio, the name of the
            Choices whose labels are read; None takes those of all.
        annotator_column: of a table: who gave the label of a row.
    """

    origin: FileOrigin = "table"
    options: ReadOptions = field(default_factory=ReadOptions)
    label_column: str | None = None
    annotator_column: str | None = None

    def label_reader(self, annotator: str) -> LabelReader | None:
        """What reads the labels; None where texts come in alone.

        Args:
            annotator: whose labels they are where the files do not say.

        Raises:
            InputError: a column of labels is named for files that have none.
        """
        column = self.options.text_column
        if self.origin == "label-studio":
            options = ReadOptions(text_column=column or "data.text")
            return LabelStudioReader(
                options=options, annotator=annotator, choices=self.label_column
            )
        if self.origin == "doccano":
            if self.label_column is not None:
                raise InputError(
                    "expected no column of labels for what doccano exports, found "
                    "{label_column!r}; leave it out, or import the file as a table",
                    label_column=self.label_column,
                )
            options = ReadOptions(text_column=column or "text")
            return DoccanoReader(options=options, annotator=annotator)
        if self.label_column is None:
            return None
        return LabelColumnReader(
            options=self.options,
            label_column=self.label_column,
            annotator_column=self.annotator_column,
            annotator=annotator,
        )


def import_files(
    access: ProjectAccess,
    sources: Sequence[Source],
    way: WayOfReading,
    *,
    progress: ImportProgress = lambda phase, rows: None,
    notes: ReadingNotes | None = None,
) -> ImportReport:
    """Add texts of files to a project, and what people said of them; again, it does nothing.

    Args:
        access: of an admin, whose labels they become where the files do not say whose they are.
        sources: files that are read in one way.
        way: which.
        progress: called with the phase, texts or labels, and the rows done in it so far.
        notes: gets how each file is read.

    Raises:
        InputError: as `import_texts`; or no row has labels where they were said to be.
    """
    reader = way.label_reader(access.person.name)
    options = way.options if reader is None else reader.options
    report = import_texts(
        access, sources, options, progress=lambda rows: progress("texts", rows), notes=notes
    )
    if reader is not None:
        done, last = 0, 0
        while rows := _rows(access, report.import_id, last):
            _import_acts(access, rows, reader, report)
            done, last = done + len(rows), rows[-1].id
            progress("labels", done)
        if report.rows:
            reader.require_labels()
    return report


def _rows(access: ProjectAccess, import_id: int, after: int) -> list[ImportedRow]:
    """The next rows of an import."""
    columns = (TextSourceRow.id, TextSourceRow.text_id, TextSourceRow.source, TextSourceRow.place)
    query = (
        select(*columns, TextSourceRow.cells)
        .where(TextSourceRow.import_id == import_id, TextSourceRow.id > after)
        .order_by(TextSourceRow.id)
        .limit(_ROWS)
    )
    with access.reading("admin") as connection:
        return [
            ImportedRow(
                id=identifier, text_id=text_id, place=f"{source}:{place}", cells=json.loads(cells)
            )
            for identifier, text_id, source, place, cells in connection.execute(query)
        ]


def _import_acts(
    access: ProjectAccess, rows: Sequence[ImportedRow], reader: LabelReader, report: ImportReport
) -> None:
    """Save what rows say; what does not fit must not keep the rest out."""
    with access.reading("admin") as connection:
        book = LabelBook(access, connection)
    # With the same request, an act that comes again is one.
    begin = f"{reader.name}:{report.import_id}"
    votes: list[_PlacedAct] = []
    notes: list[_PlacedAct] = []
    decisions: dict[int, tuple[ImportedRow, ImportedAct]] = {}
    for row in rows:
        for said in reader.read(row.cells, book.kind, book.names):
            try:
                if isinstance(said, InputError):
                    raise said
                if said.kind in ("label", "decision"):
                    book.choice(said.labels)
                if said.kind == "decision":
                    decisions[row.id] = row, said
                    continue
                act = Act(
                    text_id=row.text_id,
                    kind=said.kind,
                    request_id=f"{begin}:{row.id}:{said.key}",
                    labels=said.labels,
                    note=said.note,
                    seconds=said.seconds,
                )
                (notes if act.kind == "note" else votes).append((row.place, said.annotator, act))
            except InputError as error:
                report.leave_label_out(row.place, error)
    _save(votes, lambda acts: save_labels_of_others(access, acts), report)
    if notes:
        _save(notes, lambda acts: sum(one.new for one in save_acts_of_others(access, acts)), report)
    for row, said in decisions.values():
        request_id = f"{begin}:{row.id}:{said.key}"
        # The decision is the admin's who imports it, by word of whoever made it there.
        note = f"ground truth of {said.annotator}"
        try:
            made = adjudicate(access, row.text_id, said.labels, request_id=request_id, note=note)
            report.labels += made.new
        except InputError as error:
            report.leave_label_out(row.place, error)


def _save(
    acts: Sequence[_PlacedAct],
    save: Callable[[Sequence[tuple[str, Act]]], int],
    report: ImportReport,
) -> None:
    """All at once; where something does not fit, one by one, so that all else is kept."""
    try:
        report.labels += save([(who, act) for _, who, act in acts])
    except InputError:
        for place, who, act in acts:
            try:
                report.labels += save([(who, act)])
            except InputError as error:
                report.leave_label_out(place, error)
