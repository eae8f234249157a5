"""Texts of files into a project: in short transactions, each text once, nothing silently left out.

An import is named by what its files hold and how they are read. It writes as it reads, so labelling
can begin at once; one that was killed goes on where it stopped when it is asked for again, and one
that is done does nothing.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from unicodedata import category

from sqlalchemy import insert, select, update

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess, database_time
from malmoi.labels.stored_text import checked, hash_of_clean
from malmoi.labels.tables import TextImportRow, TextRow, TextSourceRow
from malmoi.labels.text_state import new_text, texts_by_hash
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
        errors: what is wrong with them, as those of an `ImportReport`.
        count: how many rows and files that is.
    """

    def __init__(self, errors: Sequence[InputError], count: int) -> None:
        super().__init__(
            Phrase("expected texts to import, found none: {errors:; }", errors=errors[:_SHOWN])
        )
        self.errors, self.count = errors, count


@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """What an import did, all its parts together.

    Attributes:
        import_id: in the database.
        rows: read, with a text or without.
        new_texts: that the project did not have.
        duplicates: rows whose text it had; their other columns are kept.
        bad_rows: what is wrong with them, the first 10,000.
        bad_row_count: how many there are.
        bad_files: that cannot be read at all, or are empty.
        was_done: the same import had ended before, and nothing was written.
    """

    import_id: int
    rows: int
    new_texts: int
    duplicates: int
    bad_rows: Sequence[InputError] = ()
    bad_row_count: int = 0
    bad_files: Sequence[InputError] = ()
    was_done: bool = False


@dataclass(kw_only=True)
class _Import:
    """One on its way: the row of `TextImportRow`, and what was wrong so far."""

    id: int
    rows: int
    new: int
    done: bool
    seen: int = 0
    bad: BadRows = field(default_factory=lambda: BadRows(skip=True, keep=BAD_ROWS_KEPT))
    files: list[InputError] = field(default_factory=list)

    def report(self) -> ImportReport:
        return ImportReport(
            import_id=self.id,
            rows=self.rows,
            new_texts=self.new,
            duplicates=self.rows - self.new,
            bad_rows=self.bad.first,
            bad_row_count=self.bad.count,
            bad_files=self.files,
            was_done=self.done,
        )


def import_texts(
    access: ProjectAccess,
    sources: Sequence[Source],
    options: ReadOptions | None = None,
    *,
    progress: Callable[[int], None] | None = None,
    notes: ReadingNotes | None = None,
) -> ImportReport:
    """Add the texts of files to the project. Memory is that of one batch of rows.

    Rows whose texts are equal once clean (`text_hash`) are one text; its spelling is that of the
    first. A row of whose text nothing is left then is a bad one. Every other keeps its file, its
    place in it and its other columns.

    Args:
        access: of an admin.
        sources: files or uploads; `malmoi.text.reading.sources` finds them.
        options: what the user said of them. Bad rows never end an import: the report has them.
        progress: called after each batch with the rows done so far.
        notes: gets how each file is read.

    Raises:
        NoTextsError: nothing could be read.
        InputError: the person is no admin, or somebody else runs the same import at this moment.
    """
    options = replace(options or ReadOptions(), skip_bad_rows=True)
    if not sources:
        raise InputError("expected files to import texts from, found none")
    run = _begin(access, _content_key(sources, options))
    if run.done:
        return run.report()
    batch: list[tuple[str, Record]] = []
    size = 0
    for one, row in _rows(sources, options, run, notes or ReadingNotes()):
        batch.append((one, row))
        size += len(row.text) + sum(len(str(cell)) for cell in row.cells.values())
        if len(batch) >= _ROWS or size >= _CHARACTERS:
            _write(access, run, batch)
            batch, size = [], 0
            if progress is not None:
                progress(run.rows)
    _write(access, run, batch)
    if progress is not None:
        progress(run.rows)
    if not run.rows and (run.files or run.bad.count):
        raise NoTextsError([*run.files, *run.bad.first], len(run.files) + run.bad.count)
    _finish(access, run)
    return run.report()


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


def _content_key(sources: Sequence[Source], options: ReadOptions) -> str:
    said = json.dumps(asdict(options), sort_keys=True)
    return hashlib.sha256(f"{sources_hash(sources)}\0{said}".encode()).hexdigest()


def _rows(
    sources: Sequence[Source], options: ReadOptions, run: _Import, notes: ReadingNotes
) -> Iterator[tuple[str, Record]]:
    """The rows that an earlier try has not written, with `text_hash` of each.

    A file that cannot be read is left out.
    """
    for source in sources:
        try:
            for row in iter_whole_rows([source], options, notes=notes, bad=run.bad):
                if (one := _hash(row, run.bad)) is None:
                    continue
                run.seen += 1
                if run.seen > run.rows:
                    yield one, row
        except InputError as error:
            run.files.append(error)


def _hash(row: Record, bad: BadRows) -> str | None:
    """`text_hash` of a row's text; None where it has none that somebody could label."""
    where = f"{row.source}:{row.place}"
    try:
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
    except InputError as error:
        bad.add(error)
        return None
    return hash_of_clean(clean)


def _begin(access: ProjectAccess, key: str) -> _Import:
    mine = (TextImportRow.project_id == access.project_id, TextImportRow.content_key == key)
    with access.writing("admin") as connection:
        found = connection.execute(select(TextImportRow.__table__).where(*mine)).mappings()
        row = found.one_or_none()
        if row is not None:
            done = row["finished_at"] is not None
            return _Import(id=row["id"], rows=row["rows_read"], new=row["new_texts"], done=done)
        made = connection.execute(
            insert(TextImportRow).values(
                project_id=access.project_id,
                content_key=key,
                person=access.person.name,
                rows_read=0,
                new_texts=0,
                started_at=database_time(connection),
            )
        )
        (identifier,) = made.inserted_primary_key or (0,)
        return _Import(id=identifier, rows=0, new=0, done=False)


def _write(access: ProjectAccess, run: _Import, batch: Sequence[tuple[str, Record]]) -> None:
    if not batch:
        return
    hashes = [one for one, _ in batch]
    with access.writing("admin") as connection:
        known = texts_by_hash(connection, access.project_id, hashes)
        first: dict[str, Record] = {}
        for one, row in batch:
            if one not in known:
                first.setdefault(one, row)
        if first:
            connection.execute(
                insert(TextRow),
                [new_text(access.project_id, one, row.text) for one, row in first.items()],
            )
            known = texts_by_hash(connection, access.project_id, hashes)
        connection.execute(
            insert(TextSourceRow),
            [_source_values(run.id, row, *known[one]) for one, row in batch],
        )
        moved = connection.execute(
            update(TextImportRow)
            .where(TextImportRow.id == run.id, TextImportRow.rows_read == run.rows)
            .values(
                rows_read=TextImportRow.rows_read + len(batch),
                new_texts=TextImportRow.new_texts + len(first),
            )
        )
        if moved.rowcount != 1:
            raise InputError(
                "expected to be the only one to import these files, found somebody else who does; "
                "wait until that import has ended"
            )
    run.rows += len(batch)
    run.new += len(first)


def _source_values(import_id: int, row: Record, text_id: int, kept: str) -> dict[str, Any]:
    cells = {name: cell for name, cell in row.cells.items() if name != row.text_column}
    return {
        "text_id": text_id,
        "import_id": import_id,
        "source": row.source,
        "place": row.place,
        "text": None if row.text == kept else row.text,
        # As JSON, NUL is written as an escape; halves of characters are left out.
        "cells": json_line(cells),
    }


def _finish(access: ProjectAccess, run: _Import) -> None:
    with access.writing("admin") as connection:
        connection.execute(
            update(TextImportRow)
            .where(TextImportRow.id == run.id)
            .values(finished_at=database_time(connection))
        )
        access.note(
            connection,
            "import",
            {"import": run.id, "rows": run.rows, "new_texts": run.new, "bad_rows": run.bad.count},
        )
