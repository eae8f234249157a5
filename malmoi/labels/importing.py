"""One way into a project for all files: texts, tables with labels, what other tools export.

The texts come in first, as `malmoi.labels.text_import` does it; then the files are read again for
what people said of them. So both halves go on where they stopped, nothing of the files has to stay
in memory, and a trial counts what an import would do by the same steps.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal

from sqlalchemy import select

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.acts_here import ActsHere, import_request, known_requests
from malmoi.labels.annotating import Act
from malmoi.labels.bulk_labels import save_acts_of_others
from malmoi.labels.doccano import DoccanoReader
from malmoi.labels.label_book import LabelBook
from malmoi.labels.label_column import LabelColumnReader
from malmoi.labels.label_reader import ImportedAct, LabelReader
from malmoi.labels.label_studio import IMPORT_LABELS, LabelStudioReader
from malmoi.labels.people import LOCAL_NAME, person_name
from malmoi.labels.review import adjudicate
from malmoi.labels.scores import TextScore, scores_version, write_scores
from malmoi.labels.tables import TextImportRow, TextRow
from malmoi.labels.text_import import (
    ImportReport,
    NoTextsError,
    content_key,
    hashed_rows,
    import_texts,
)
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import Source
from malmoi.text.record import Record

# Of one transaction, for which annotators wait.
_ROWS = 500

FileOrigin = Literal["table", "label-studio", "doccano"]
ImportPhase = Literal["texts", "labels"]
ImportProgress = Callable[[ImportPhase, int], None]


@dataclass(frozen=True, kw_only=True)
class WayOfReading:
    """How files are read.

    Attributes:
        origin: which program has made them.
        options: which column has the texts, and so on; of other tools, the column alone counts. By
            default it is `data.text` of Label Studio and `text` of doccano.
        label_column: of a table; None takes the texts alone. Of Label Studio, the name of the
            Choices whose labels are read; None takes those of all.
        annotator_column: of a table: who gave the label of a row; None: the first of
            `malmoi.labels.label_column.ANNOTATOR_COLUMNS`; "": the rows do not say.
        annotator: who gave the labels where the files do not say. None: nobody is named; they are
            of whoever imports them, and a text that has the same label already gets no other.
    """

    origin: FileOrigin = "table"
    options: ReadOptions = field(default_factory=ReadOptions)
    label_column: str | None = None
    annotator_column: str | None = None
    annotator: str | None = None

    @property
    def has_labels(self) -> bool:
        """Whether more than texts is read."""
        return self.origin != "table" or self.label_column is not None

    def label_reader(self) -> LabelReader | None:
        """What reads the labels; None where texts come in alone.

        Raises:
            InputError: a column of labels is named for files that have none.
        """
        column = self.options.text_column
        if self.origin == "label-studio":
            options = ReadOptions(text_column=column or "data.text")
            return LabelStudioReader(options=options, choices=self.label_column)
        if self.origin == "doccano":
            if self.label_column is not None:
                raise InputError(
                    "expected no column of labels for what doccano exports, found "
                    "{label_column!r}; leave it out, or import the file as a table",
                    label_column=self.label_column,
                )
            options = ReadOptions(text_column=column or "text")
            return DoccanoReader(options=options)
        if self.label_column is None:
            return None
        return LabelColumnReader(
            options=self.options,
            label_column=self.label_column,
            annotator_column=self.annotator_column,
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

    Of one person the later act holds; see `malmoi.labels.acts_here`.

    Args:
        access: of an admin, whose labels they become where nobody says whose they are.
        sources: files that are read in one way.
        progress: called with the phase, texts or labels, and the rows done in it so far.

    Raises:
        InputError: as `import_texts`; or no row has labels where they were said to be.
    """
    reader = way.label_reader()

    def count(rows: int) -> None:
        progress("texts", rows)

    if reader is None:
        return import_texts(access, sources, way.options, progress=count, notes=notes)
    report = import_texts(
        access, sources, reader.options, progress=count, notes=notes, kept=reader.kept
    )
    labels = _Labels(access=access, way=way, reader=reader, report=report)
    for done in labels.read(sources):
        progress("labels", done)
    if report.rows:
        reader.require_labels()
    labels.finish()
    return report


@dataclass(kw_only=True)
class Trial:
    """What imports would have brought that were only counted.

    Attributes:
        here: what people would have said.
        looked_up: the texts that were met, by hash.
        number: of the last import that never was; its id, as no import has one below 0.
    """

    here: ActsHere = field(default_factory=lambda: ActsHere(0))
    looked_up: set[str] = field(default_factory=set)
    number: int = 0


def try_import(
    access: ProjectAccess,
    sources: Sequence[Source],
    way: WayOfReading,
    *,
    progress: ImportProgress = lambda phase, rows: None,
    trial: Trial | None = None,
) -> ImportReport:
    """Count what `import_files` would do; nothing is written.

    Args:
        access: as for `import_files`, like all others.
        progress: called with the phase and the rows done.
        trial: what was counted before, which counts as done; this import is counted in.

    Raises:
        InputError: as `import_files`.
    """
    trial = trial or Trial()
    reader = way.label_reader()
    key = content_key(sources, way.options if reader is None else reader.options)
    with access.reading("admin") as connection:
        query = select(TextImportRow.id, TextImportRow.finished_at).where(
            TextImportRow.project_id == access.project_id, TextImportRow.content_key == key
        )
        before = connection.execute(query).one_or_none()
    trial.number -= 1
    report = ImportReport(import_id=trial.number if before is None else before.id)
    report.was_done = before is not None and before.finished_at is not None
    trial.here.import_id = report.import_id
    labels = _Labels(access=access, way=way, reader=reader, report=report, trial=trial)
    for done in labels.read(sources):
        progress("labels", done)
    if not report.rows and report.left_out_count:
        raise NoTextsError(report.left_out, report.left_out_count)
    if report.rows and reader is not None:
        reader.require_labels()
    labels.finish()
    return report


@dataclass(frozen=True, kw_only=True)
class _PlacedAct:
    """What somebody did with a text, and where in the files it stands."""

    text: str
    place: str
    person: str
    is_named: bool
    said: ImportedAct
    request_id: str

    def as_act(self, text_id: int) -> Act:
        """As the log takes it."""
        assert self.said.kind in ("label", "skip", "note")
        return Act(
            text_id=text_id,
            kind=self.said.kind,
            request_id=self.request_id,
            labels=self.said.labels,
            note=self.said.note,
            seconds=self.said.seconds,
        )


@dataclass(kw_only=True)
class _Labels:
    """The labels of files on their way into a project, or only counted.

    Attributes:
        trial: None where they are written.
        suggestions: by model, and of each text its label and the probability.
        text_column: of the first row.
    """

    access: ProjectAccess
    way: WayOfReading
    reader: LabelReader | None
    report: ImportReport
    trial: Trial | None = None
    suggestions: dict[str, dict[str, tuple[str, float]]] = field(default_factory=dict)
    text_column: str = ""

    def read(self, sources: Sequence[Source]) -> Iterator[int]:
        """Go through the rows; after some of them, how many are done."""
        options = self.way.options if self.reader is None else self.reader.options
        options = replace(options, skip_bad_rows=True)
        # What is left out of the texts was told when they came in.
        left_out = self.report if self.trial else ImportReport(import_id=0)
        rows = hashed_rows(sources, options, left_out, ReadingNotes())
        done = 0
        while batch := list(islice(rows, _ROWS)):
            self._take(batch, self.trial.here if self.trial else ActsHere(self.report.import_id))
            done += len(batch)
            yield done

    def _take(self, batch: Sequence[tuple[str, Record]], here: ActsHere) -> None:
        self.text_column = self.text_column or batch[0][1].text_column
        with self.access.reading("admin") as connection:
            book = LabelBook(self.access, connection)
            query = select(TextRow.text_sha256, TextRow.id).where(
                TextRow.project_id == self.access.project_id,
                TextRow.text_sha256.in_({text for text, _ in batch}),
            )
            ids = dict(connection.execute(query).tuples().all())
            # What a trial has counted in already is in no log.
            fresh = {text for text, _ in batch}
            if self.trial:
                fresh -= self.trial.looked_up
            here.read(connection, {ids[text]: text for text in fresh & ids.keys()})
            found = [one for text, row in batch for one in self._acts_of_row(text, row, book)]
            known = known_requests(connection, [one.request_id for one in found])
        if self.trial:
            self.report.rows += len(batch)
            self.report.new_texts += len(fresh - ids.keys())
            self.trial.looked_up |= fresh
        new = []
        for one in found:
            if one.request_id not in known and (act := self._if_new(one, here, book)):
                new.append(act)
        if self.trial:
            self.report.labels += len(new)
        else:
            self._save(new, ids)

    def _acts_of_row(self, text: str, row: Record, book: LabelBook) -> Iterator[_PlacedAct]:
        """What a row says and fits the project; the rest is left out."""
        place = f"{row.source}:{row.place}"
        if self.reader is None:
            return
        cells = {name: cell for name, cell in row.cells.items() if name != row.text_column}
        for said in self.reader.read(cells, book.kind, book.names):
            try:
                if isinstance(said, InputError):
                    raise said
                if said.kind == "suggestion":
                    self._suggest(text, said, book)
                    continue
                if said.kind in ("label", "decision"):
                    book.choice(said.labels)
                person = person_name(self._person(said, row.source))
            except InputError as error:
                self.report.leave_label_out(place, error)
                continue
            words = (self.reader.name, row.source, row.place, said.key, person)
            yield _PlacedAct(
                text=text,
                place=place,
                person=person,
                is_named=bool(self.way.annotator) or said.annotator not in (None, LOCAL_NAME),
                said=said,
                request_id=import_request(
                    self.report.import_id, *words, is_dated=said.labelled_at is not None
                ),
            )

    def _suggest(self, text: str, said: ImportedAct, book: LabelBook) -> None:
        choice = book.labels(book.choice(said.labels))
        if len(choice) == 1:
            of_model = self.suggestions.setdefault(said.annotator or "", {})
            of_model[text] = choice[0], said.score or 0.0

    def _person(self, said: ImportedAct, source: str) -> str:
        """Who it was: whoever has no name on another machine is somebody else than here."""
        if said.annotator == LOCAL_NAME and not self.way.annotator:
            return f"{LOCAL_NAME} ({source})"
        named = None if said.annotator == LOCAL_NAME else said.annotator
        return named or self.way.annotator or self.access.person.name

    def _if_new(self, one: _PlacedAct, here: ActsHere, book: LabelBook) -> _PlacedAct | None:
        """The act, or what is new of it; None where nothing is."""
        said = one.said
        if said.kind == "note":
            # `as_example` puts the name in front, which must not grow with each way round.
            lines = [line.removeprefix(f"{one.person}: ") for line in said.note.splitlines()]
            note = here.new_note(one.text, one.person, "\n".join(lines))
            if note == "":
                self.report.verdicts["undated"] += 1
            return replace(one, said=replace(said, note=note)) if note else None
        verdict = here.verdict(
            one.text,
            one.person,
            "skip" if said.kind == "skip" else book.choice(said.labels),
            at=said.labelled_at,
            request_id=one.request_id,
            is_named=one.is_named,
            is_decision=said.kind == "decision",
        )
        self.report.verdicts[verdict] += 1
        if verdict not in ("new", "differing"):
            return None
        if said.annotator == LOCAL_NAME:
            self.report.renamed[one.person] = LOCAL_NAME
        return one

    def _save(self, new: Sequence[_PlacedAct], ids: Mapping[str, int]) -> None:
        """Save what is new; what does not fit must not keep the rest out."""
        votes = [one for one in new if one.said.kind in ("label", "skip")]
        notes = [one for one in new if one.said.kind == "note"]
        self._save_some([*votes, *notes], ids, self._save_acts)
        for one in new:
            if one.said.kind == "decision":
                self._save_some([one], ids, self._save_decision)

    def _save_some(
        self,
        some: Sequence[_PlacedAct],
        ids: Mapping[str, int],
        save: Callable[[Sequence[_PlacedAct], Mapping[str, int]], int],
    ) -> None:
        """All at once; where something does not fit, one by one, so that all else is kept."""
        try:
            self.report.labels += save(some, ids) if some else 0
        except InputError as error:
            if len(some) == 1:
                self.report.leave_label_out(some[0].place, error)
                return
            for one in some:
                self._save_some([one], ids, save)

    def _save_acts(self, some: Sequence[_PlacedAct], ids: Mapping[str, int]) -> int:
        acts = [(one.person, one.as_act(ids[one.text])) for one in some]
        times = {one.request_id: at for one in some if (at := one.said.labelled_at)}
        return save_acts_of_others(self.access, acts, times)

    def _save_decision(self, some: Sequence[_PlacedAct], ids: Mapping[str, int]) -> int:
        (one,) = some
        # The decision is the admin's who imports it, by word of whoever made it there.
        made = adjudicate(
            self.access,
            ids[one.text],
            one.said.labels,
            request_id=one.request_id,
            note=f"ground truth of {one.person}",
            decided_at=one.said.labelled_at,
            announces=False,
        )
        return made.new

    def finish(self) -> None:
        """Let suggestions hold where there are none yet, and write down what was done."""
        report = self.report
        if self.suggestions:
            report.model = max(self.suggestions, key=lambda name: len(self.suggestions[name]))
            if scores_version(self.access) is None:
                of_model = self.suggestions.pop(report.model)
                report.suggestions = len(of_model)
                if not self.trial:
                    write_scores(self.access, report.model, self._scores(of_model))
            report.unread_suggestions = sum(map(len, self.suggestions.values()))
        if self.trial or not (report.labels or report.suggestions):
            return
        details: dict[str, Any] = {"import": report.import_id, "labels": report.labels}
        details["verdicts"] = dict(report.verdicts)
        if isinstance(self.reader, LabelStudioReader):
            details["tags"] = self.reader.tags
            details["text_field"] = self.text_column.removeprefix("data.")
        with self.access.writing("admin") as connection:
            self.access.note(connection, IMPORT_LABELS, details)

    def _scores(self, of_model: Mapping[str, tuple[str, float]]) -> Iterator[TextScore]:
        """What a model says, the least sure first, as the order of texts takes it."""
        rest = iter(of_model)
        while texts := list(islice(rest, _ROWS)):
            query = select(TextRow.text_sha256, TextRow.id).where(
                TextRow.project_id == self.access.project_id, TextRow.text_sha256.in_(texts)
            )
            with self.access.reading("admin") as connection:
                found = connection.execute(query).all()
            for text, identifier in found:
                label, score = of_model[text]
                yield TextScore(text_id=identifier, priority=1 - score, label=label, score=score)
