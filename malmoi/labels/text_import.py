"""Texts of files into a project: in short transactions, each text once, nothing silently left out.

An import is named by what its files hold and how they are read. It writes as it reads, so labelling
can begin at once; one that was killed goes on where it stopped when it is asked for again, and one
that is done does nothing.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any
from unicodedata import category

from sqlalchemy import Connection, insert, select, update

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess, database_time
from malmoi.labels.acts_here import Verdict
from malmoi.labels.stored_text import checked, sha256_of
from malmoi.labels.tables import TextImportRow, TextSourceRow
from malmoi.labels.text_state import add_missing_texts
from malmoi.messages import Phrase
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.corpus.clean_corpus import sources_hash
from malmoi.text.reading.bad_rows import BadRows
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.records import iter_whole_rows
from malmoi.text.reading.sources import Source
from malmoi.text.record import Record
from malmoi.text.table_writing import json_line

# A transaction of this size takes a fraction of a second, for which annotators wait.
_ROWS, _CHARACTERS = 1_000, 2_000_000
BAD_ROWS_KEPT = 10_000
_SHOWN, _SHOWN_CHARACTERS = 5, 60


class NoTextsError(InputError):
    """None of the rows can be read.

    Attributes:
        errors: what is wrong with them, as far as it was kept.
        count: how many rows and files that is.
    """

    def __init__(self, errors: Sequence[InputError], count: int) -> None:
        super().__init__(
            Phrase("expected texts to import, found none: {errors:; }", errors=errors[:_SHOWN])
        )
        self.errors, self.count = errors, count


def _bad_rows() -> BadRows:
    return BadRows(skip=True, keep=BAD_ROWS_KEPT)


@dataclass(kw_only=True)
class ImportReport:
    """What an import did, or several: the rows that were read, and what was left out and why.

    Attributes:
        import_id: in the database.
        rows: that are in, all parts of the import together.
        new_texts: that the project did not have.
        labels: acts that were new: labels, skips, notes and decisions.
        verdicts: what became of labels, skips and decisions, new ones among them.
        suggestions: of a model, which came in.
        unread_suggestions: that did not, as the project has suggestions of its own.
        model: whose suggestions they are; None where there are none.
        renamed: people of another machine who have no name, and under which one they came in.
        was_done: the same texts had come in before, and none was written.
        known: files of which that is so, where a report is of several imports.
        bad_files: that cannot be read at all, or are empty.
        bad_rows: those without a text that can be read; the first 10,000 are kept.
        bad_labels: acts that were left out, likewise; the texts of their rows are in, and what else
            the rows say. A row with two such acts counts twice.
        reasons: how often labels were left out for each of them, without the places.
    """

    import_id: int
    rows: int = 0
    new_texts: int = 0
    labels: int = 0
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    suggestions: int = 0
    unread_suggestions: int = 0
    model: str | None = None
    renamed: dict[str, str] = field(default_factory=dict)
    was_done: bool = False
    known: int = 0
    bad_files: list[InputError] = field(default_factory=list)
    bad_rows: BadRows = field(default_factory=_bad_rows)
    bad_labels: BadRows = field(default_factory=_bad_rows)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def duplicates(self) -> int:
        """Rows whose text the project had; their other columns are kept."""
        return self.rows - self.new_texts

    @property
    def is_new(self) -> bool:
        """Whether anything comes in that the project has not."""
        return bool(self.new_texts or self.labels or self.suggestions)

    @property
    def left_out(self) -> list[InputError]:
        """What is wrong with files, rows and labels that were left out, as far as it was kept."""
        return [*self.bad_files, *self.bad_rows.first, *self.bad_labels.first]

    @property
    def left_out_count(self) -> int:
        """How many files, rows and labels were left out."""
        return len(self.bad_files) + self.bad_rows.count + self.bad_labels.count

    def add(self, done: "ImportReport", files: int) -> None:
        """Count in an import of so many files; of texts that had come in before only the labels."""
        if done.was_done:
            self.known += files
        else:
            self.rows += done.rows
            self.new_texts += done.new_texts
        self.labels += done.labels
        self.verdicts += done.verdicts
        self.suggestions += done.suggestions
        self.renamed |= done.renamed
        self.leave_out(done.left_out, done.left_out_count)

    def leave_out(self, errors: Sequence[InputError], count: int) -> None:
        """Count in what was left out, and keep what is wrong with the first of it."""
        self.bad_rows.first += errors[: BAD_ROWS_KEPT - len(self.bad_rows.first)]
        self.bad_rows.count += count

    def leave_label_out(self, place: str, error: InputError) -> None:
        """Take note of an act that does not fit."""
        self.bad_labels.add(error.at(place))
        self.reasons[str(error)] += 1


def import_texts(
    access: ProjectAccess,
    sources: Sequence[Source],
    options: ReadOptions | None = None,
    *,
    progress: Callable[[int], None] | None = None,
    notes: ReadingNotes | None = None,
    kept: Callable[[Mapping[str, Any], str], Mapping[str, Any]] = lambda cells, column: cells,
) -> ImportReport:
    """Add the texts of files to the project. Memory is that of one batch of rows.

    Rows whose texts are equal once clean (`text_hash`) are one text; its spelling is that of the
    first. A row of whose text nothing is left then is a bad one. Every other keeps its file, its
    place in it and its other columns.

    Args:
        sources: files or uploads; `malmoi.text.reading.sources` finds them.
        options: what the user said of them. Bad rows never end an import: the report has them.
        progress: called after each batch with the rows done so far.
        kept: of the columns of a row, but the text, and the name of that one: those that stay.

    Raises:
        NoTextsError: nothing could be read.
        InputError: the person is no admin, or somebody else runs the same import at this moment.
    """
    options = replace(options or ReadOptions(), skip_bad_rows=True)
    if not sources:
        raise InputError("expected files to import texts from, found none")
    key = content_key(sources, options)
    with access.writing("admin") as connection:
        before = import_row(connection, access, key)
    report = ImportReport(
        import_id=before["id"],
        rows=before["rows_read"],
        new_texts=before["new_texts"],
        was_done=before["finished_at"] is not None,
    )
    if report.was_done:
        return report
    batch: list[tuple[str, Record]] = []
    size = 0
    rows = hashed_rows(sources, options, report, notes or ReadingNotes())
    # Those that an earlier try has written are passed over.
    for one, row in islice(rows, report.rows, None):
        batch.append((one, row))
        size += len(row.text) + sum(len(str(cell)) for cell in row.cells.values())
        if len(batch) >= _ROWS or size >= _CHARACTERS:
            _write(access, report, batch, kept)
            batch, size = [], 0
            if progress is not None:
                progress(report.rows)
    _write(access, report, batch, kept)
    if progress is not None:
        progress(report.rows)
    if not report.rows and report.left_out_count:
        raise NoTextsError(report.left_out, report.left_out_count)
    _finish(access, report)
    return report


def content_key(sources: Sequence[Source], options: ReadOptions) -> str:
    """Names an import by what its files hold and how they are read."""
    said = json.dumps(asdict(replace(options, skip_bad_rows=True)), sort_keys=True)
    return hashlib.sha256(f"{sources_hash(sources)}\0{said}".encode()).hexdigest()


def _finish(access: ProjectAccess, report: ImportReport) -> None:
    with access.writing("admin") as connection:
        mine = TextImportRow.id == report.import_id
        now = database_time(connection)
        connection.execute(update(TextImportRow).where(mine).values(finished_at=now))
        done = {
            "import": report.import_id,
            "rows": report.rows,
            "new_texts": report.new_texts,
            "bad_rows": report.bad_rows.count,
        }
        access.note(connection, "import", done)


def first_cells(access: ProjectAccess, import_id: int) -> dict[str, Any]:
    """The columns, but the text, of the first row of an import; empty where it has none.

    Raises:
        AccessError: the person is no admin.
    """
    query = (
        select(TextSourceRow.cells)
        .where(TextSourceRow.import_id == import_id)
        .order_by(TextSourceRow.id)
        .limit(1)
    )
    with access.reading("admin") as connection:
        found: dict[str, Any] = json.loads(connection.scalar(query) or "{}")
    return found


def hashed_rows(
    sources: Sequence[Source], options: ReadOptions, report: ImportReport, notes: ReadingNotes
) -> Iterator[tuple[str, Record]]:
    """All rows with a text, with `text_hash` of each; a file that cannot be read is left out.

    Args:
        options: how they are read; its bad rows are left out.
        report: gets what was left out.
    """
    for source in sources:
        try:
            for row in iter_whole_rows([source], options, notes=notes, bad=report.bad_rows):
                try:
                    yield _hash(row), row
                except InputError as error:
                    report.bad_rows.add(error)
        except InputError as error:
            report.bad_files.append(error)


def _hash(row: Record) -> str:
    """`text_hash` of a row's text.

    Raises:
        InputError: it has none that somebody could label.
    """
    where = f"{row.source}:{row.place}"
    if not row.text.strip():
        raise InputError("expected a text, found an empty cell", place=where)
    clean = clean_text(checked(row.text, Phrase("a text in {where}", where=where)))
    # Marks without a letter, such as a lone selector of a form, show nothing either.
    if not any(category(one)[0] in "LNPS" for one in clean):
        raise InputError(
            "expected a text, found nothing that is left once it is clean, in {text!a}",
            place=where,
            text=row.text[:_SHOWN_CHARACTERS],
        )
    return sha256_of(clean)


def import_row(connection: Connection, access: ProjectAccess, content_key: str) -> dict[str, Any]:
    """The row of `TextImportRow` of an import, which is made where there is none.

    Args:
        connection: of a transaction that writes.
        content_key: names the import.
    """
    mine = (TextImportRow.project_id == access.project_id, TextImportRow.content_key == content_key)
    query = select(TextImportRow.__table__).where(*mine)
    found = connection.execute(query).mappings().one_or_none()
    if found is not None:
        return dict(found)
    connection.execute(
        insert(TextImportRow).values(
            project_id=access.project_id,
            content_key=content_key,
            person=access.person.name,
            rows_read=0,
            new_texts=0,
            started_at=database_time(connection),
        )
    )
    return dict(connection.execute(query).mappings().one())


def _write(
    access: ProjectAccess,
    report: ImportReport,
    batch: Sequence[tuple[str, Record]],
    kept: Callable[[Mapping[str, Any], str], Mapping[str, Any]],
) -> None:
    if not batch:
        return
    first: dict[str, str] = {}
    for one, row in batch:
        first.setdefault(one, row.text)
    mine = TextImportRow.id == report.import_id
    with access.writing("admin") as connection:
        known, new = add_missing_texts(connection, access.project_id, first)
        rows = []
        for one, row in batch:
            text_id, spelling = known[one]
            cells = {name: cell for name, cell in row.cells.items() if name != row.text_column}
            rows.append(
                {
                    "text_id": text_id,
                    "import_id": report.import_id,
                    "source": row.source,
                    "place": row.place,
                    "text": None if row.text == spelling else row.text,
                    # As JSON, NUL is written as an escape; halves of characters are left out.
                    "cells": json_line(dict(kept(cells, row.text_column))),
                }
            )
        connection.execute(insert(TextSourceRow), rows)
        columns = connection.scalar(select(TextImportRow.columns).where(mine))
        moved = connection.execute(
            update(TextImportRow)
            .where(mine, TextImportRow.rows_read == report.rows)
            .values(
                columns=_columns(columns, [row for _, row in batch]),
                rows_read=TextImportRow.rows_read + len(batch),
                new_texts=TextImportRow.new_texts + len(new),
            )
        )
        if moved.rowcount != 1:
            raise InputError(
                "expected to be the only one to import these files, found somebody else who does; "
                "wait until that import has ended"
            )
    report.rows += len(batch)
    report.new_texts += len(new)


def _columns(known: str | None, rows: Sequence[Record]) -> str:
    """`TextImportRow.columns`, with those of more rows; a nested text has no column."""
    found = json.loads(known or "{}")
    for row in rows:
        if row.text_column in row.cells:
            one = found.setdefault(row.source, {"text": row.text_column, "names": []})
            one["names"] += [name for name in row.cells if name not in one["names"]]
    return json.dumps(found, ensure_ascii=False)
