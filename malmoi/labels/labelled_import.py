"""Texts of files together with what people said about them elsewhere.

The texts come in first, as `malmoi.labels.text_import` does it; then every row that was kept is
read again from the database for its labels. So both halves go on where they stopped, and nothing of
the files has to stay in memory.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import select

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, save_acts_of_others
from malmoi.labels.bulk_labels import save_labels_of_others
from malmoi.labels.label_book import LabelBook
from malmoi.labels.review import adjudicate
from malmoi.labels.tables import TextSourceRow
from malmoi.labels.text_import import BAD_ROWS_KEPT, ImportReport, import_texts
from malmoi.text.reading.bad_rows import BadRows
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import Source

# Of one transaction, for which annotators wait.
_ROWS = 500

ImportPhase = Literal["texts", "labels"]
ImportProgress = Callable[[ImportPhase, int], None]


@dataclass(frozen=True, kw_only=True)
class LabelledImport:
    """What came in.

    Attributes:
        texts: as of an import of texts alone.
        labels: acts that were new: labels, skips, notes and decisions.
        bad_rows: acts that were left out, what is wrong with them, the first 10,000; the texts of
            their rows are there, and what else the rows say.
        bad_row_count: how many there are; a row with two such acts counts twice.
        reasons: how often each of the things that are wrong was met, without the places.
    """

    texts: ImportReport
    labels: int
    bad_rows: Sequence[InputError]
    bad_row_count: int
    reasons: Mapping[str, int] = field(default_factory=dict)


@dataclass(kw_only=True)
class FoundActs:
    """What a row of a file says.

    Attributes:
        acts: by the name of whoever did them.
        decision: a reviewer, the labels, and the id of the request.
        wrong: of each part of the row that cannot be read.
    """

    acts: list[tuple[str, Act]] = field(default_factory=list)
    decision: tuple[str, list[str], str] | None = None
    wrong: list[InputError] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class StoredRow:
    """A row of an import, as the database has it.

    Attributes:
        place: as "file:place".
        cells: its columns but the text.
        request: begins the id of every request that is made of it.
        book: the labels of the project.
    """

    text_id: int
    place: str
    cells: dict[str, Any]
    request: str
    book: LabelBook


@dataclass(kw_only=True)
class _LeftOut:
    """Acts that do not fit."""

    rows: BadRows = field(default_factory=lambda: BadRows(skip=True, keep=BAD_ROWS_KEPT))
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, row: StoredRow, error: InputError) -> None:
        self.rows.add(error.at(row.place))
        self.reasons[str(error)] += 1


ReadActs = Callable[[StoredRow], FoundActs]


def import_with_acts(
    access: ProjectAccess,
    sources: Sequence[Source],
    options: ReadOptions,
    read: ReadActs,
    *,
    name: str,
    progress: ImportProgress | None = None,
    notes: ReadingNotes | None = None,
) -> LabelledImport:
    """Import texts, and the acts that `read` finds in their rows. Again, it does nothing.

    Args:
        access: of an admin.
        sources: files.
        options: how their texts are read.
        read: what a row says; raises InputError for one that does not fit.
        name: of this way of reading; the ids of requests begin with it.
        progress: called with the phase and the rows done in it so far.
        notes: gets how each file is read.

    Raises:
        InputError: as `import_texts`.
    """

    def texts_done(rows: int) -> None:
        if progress is not None:
            progress("texts", rows)

    texts = import_texts(access, sources, options, progress=texts_done, notes=notes)
    new, seen, last = 0, 0, 0
    left_out = _LeftOut()
    while rows := _rows(access, texts.import_id, last, name):
        last = rows[-1][0]
        found = [(row, _fitting(row, read, left_out)) for _, row in rows]
        new += _save(access, found, left_out)
        seen += len(rows)
        if progress is not None:
            progress("labels", seen)
    return LabelledImport(
        texts=texts,
        labels=new,
        bad_rows=left_out.rows.first,
        bad_row_count=left_out.rows.count,
        reasons=left_out.reasons,
    )


def _fitting(row: StoredRow, read: ReadActs, left_out: _LeftOut) -> FoundActs:
    """What a row says; an act with an unknown label must not keep the row's others out."""
    try:
        found = read(row)
    except InputError as error:
        found = FoundActs(wrong=[error])
    for wrong in found.wrong:
        left_out.add(row, wrong)
    fitting = []
    for who, act in found.acts:
        try:
            if act.kind == "label":
                row.book.choice(act.labels)
            fitting.append((who, act))
        except InputError as error:
            left_out.add(row, error)
    return FoundActs(acts=fitting, decision=found.decision)


def _save(
    access: ProjectAccess, found: Sequence[tuple[StoredRow, FoundActs]], left_out: _LeftOut
) -> int:
    """All at once; where something does not fit, one by one, so that all else is kept."""
    try:
        new = _save_acts(access, [act for _, said in found for act in said.acts])
    except InputError:
        new = 0
        for row, act in [(row, act) for row, said in found for act in said.acts]:
            try:
                new += _save_acts(access, [act])
            except InputError as error:
                left_out.add(row, error)
    return new + _decide(access, found, left_out)


def _save_acts(access: ProjectAccess, acts: Sequence[tuple[str, Act]]) -> int:
    votes = [one for one in acts if one[1].kind in ("label", "skip")]
    others = [one for one in acts if one[1].kind not in ("label", "skip")]
    new = save_labels_of_others(access, votes)
    return new + sum(saved.new for saved in save_acts_of_others(access, others)) if others else new


def _decide(
    access: ProjectAccess, found: Sequence[tuple[StoredRow, FoundActs]], left_out: _LeftOut
) -> int:
    new = 0
    for row, said in found:
        if said.decision is None:
            continue
        who, labels, request_id = said.decision
        # The decision is the admin's who imports it, by word of whoever made it there.
        note = f"ground truth of {who}"
        try:
            new += adjudicate(access, row.text_id, labels, request_id=request_id, note=note).new
        except InputError as error:
            left_out.add(row, error)
    return new


def _rows(
    access: ProjectAccess, import_id: int, after: int, name: str
) -> list[tuple[int, StoredRow]]:
    """The next rows of an import, with their ids."""
    query = (
        select(
            TextSourceRow.id,
            TextSourceRow.text_id,
            TextSourceRow.source,
            TextSourceRow.place,
            TextSourceRow.cells,
        )
        .where(TextSourceRow.import_id == import_id, TextSourceRow.id > after)
        .order_by(TextSourceRow.id)
        .limit(_ROWS)
    )
    with access.reading("admin") as connection:
        book = LabelBook(connection, access.project_id, access.row(connection)["kind"])
        return [
            (
                identifier,
                StoredRow(
                    text_id=text_id,
                    place=f"{source}:{place}",
                    cells=json.loads(cells),
                    request=f"{name}:{import_id}:{identifier}",
                    book=book,
                ),
            )
            for identifier, text_id, source, place, cells in connection.execute(query)
        ]
