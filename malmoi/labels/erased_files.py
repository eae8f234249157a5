"""What is erased beside a label database: files that the app keeps, and copies of the database.

Uploads and written exports, runs that have learnt a text, and backups in the folders where the
guides put them. Backups elsewhere, and files that people have downloaded, cannot be reached.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, select
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.connection import reading_engine
from malmoi.labels.database import LabelDatabase, label_database
from malmoi.labels.erasing import ErasedPart, Wanted, erase, find
from malmoi.labels.people import Person
from malmoi.labels.schema import open_engine
from malmoi.labels.stored_text import text_hash
from malmoi.labels.tables import ERASED, ProjectRow
from malmoi.labels.vector_index import drop_vectors
from malmoi.messages import Phrase
from malmoi.paths import home, runs
from malmoi.text.reading.run_predictions import read_predictions

_COPIES = ("*.db", "*/*.db")
_LEARNT = Phrase("The model {name} with its report: it has learnt such a text")
_COPIED = Phrase("In the backup {name}, too")
_UNREAD = Phrase(
    "{name} cannot be looked into, or its training is not finished: see to it yourself"
)


@dataclass(frozen=True, kw_only=True)
class Erasure:
    """All that an erasure takes.

    Attributes:
        accesses: to the projects that were looked through.
        found: what each of them has.
        uploads: folders of uploads and of exports that wait for their download, of whoever.
        runs: folders of models that have learnt an erased text, and say so in their files.
        backups: copies of the database that have any of it.
        unread: copies and predictions that cannot be looked into, and runs that are not finished,
            which may write such a text yet.
    """

    wanted: Wanted
    accesses: Sequence[ProjectAccess]
    found: Sequence[ErasedPart]
    uploads: Sequence[Path]
    runs: Sequence[Path]
    backups: Sequence[Path]
    unread: Sequence[Path]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing of it anywhere; uploads cannot be looked into."""
        return not (self.found or self.runs or self.backups)

    def lines(self) -> Iterator[tuple[str | Path, Phrase]]:
        """What goes and what cannot be looked into: where, and a sentence, which names a path."""
        for one in self.found:
            if self.wanted.person is not None:
                name = Phrase(
                    "The name of {acts:label}, {decisions:,} decisions and {rows:,} other entries; "
                    "what they say stays, under a name that says nothing",
                    acts=one.acts,
                    decisions=one.decisions,
                    rows=one.rows,
                )
                yield one.name, name
            else:
                texts = Phrase(
                    "{texts:text} with {acts:label}, skips and notes, {decisions:,} decisions and "
                    "all columns of the files",
                    texts=len(one.texts),
                    acts=one.acts,
                    decisions=one.decisions,
                )
                yield one.name, texts
            if one.mentions:
                stays = Phrase(
                    "What stays: {mentions:,} texts, notes or guidelines that have it in them",
                    mentions=one.mentions,
                )
                yield one.name, stays
        if self.uploads:
            waiting = Phrase(
                "{uploads:,} folders of uploads, and of exports that wait for their download",
                uploads=len(self.uploads),
            )
            yield str(self.uploads[0].parent), waiting
        of_paths = ((_LEARNT, self.runs), (_COPIED, self.backups), (_UNREAD, self.unread))
        for phrase, paths in of_paths:
            yield from ((path, Phrase(phrase, name=path)) for path in paths)


def plan_erasure(accesses: Sequence[ProjectAccess], wanted: Wanted) -> Erasure:
    """Look for all that an erasure would take; nothing is changed.

    Args:
        accesses: to projects of one database, of an admin.

    Raises:
        AccessError: the person is no admin.
    """
    found = find(accesses, wanted)
    backups: list[Path] = []
    unread = sorted(runs("finetune").glob(".*.work"))
    for path in _copies(accesses[0].engine):
        try:
            if _find_in_copy(reading_engine(LabelDatabase(path=path)), accesses, wanted):
                backups.append(path)
        except (InputError, SQLAlchemyError):
            unread.append(path)
    database = Path(accesses[0].engine.url.database or "").name
    hashes = wanted.texts.union(*(one.texts for one in found))
    learnt = []
    for path in sorted(runs("finetune").glob("*/predictions.csv")) if hashes else ():
        try:
            if _has_text(path, hashes, f"{database}:" if wanted.is_project else ""):
                learnt.append(path.parent)
        except InputError:
            unread.append(path)
    return Erasure(
        wanted=wanted,
        accesses=accesses,
        found=found,
        uploads=[path for path in sorted(runs("uploads").glob("*")) if path.is_dir()],
        runs=learnt,
        backups=backups,
        unread=unread,
    )


def carry_out(erasure: Erasure) -> None:
    """Erase it for good; the database last, as what it holds is what the rest is found by.

    Raises:
        InputError: as `malmoi.labels.erasing.erase`, or a file cannot be removed.
    """
    jobs = [runs("jobs") / run.name for run in erasure.runs]
    for folder in (*erasure.uploads, *erasure.runs, *jobs):
        try:
            if folder.exists():
                shutil.rmtree(folder)
        except OSError as error:
            raise InputError(
                "expected to remove {folder}, found {error}; remove it, and erase again",
                folder=folder,
                error=error,
            ) from error
    for path in erasure.backups:
        engine = open_engine(URL.create("sqlite", database=str(path)), str(path))
        erase(_find_in_copy(engine, erasure.accesses, erasure.wanted), erasure.wanted)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            # One file that can be moved, as a backup is.
            connection.exec_driver_sql("PRAGMA journal_mode=DELETE")
    erase(erasure.found, erasure.wanted)
    for access in erasure.accesses:
        drop_vectors(access.engine, access.project_id)


def _copies(engine: Engine) -> Iterator[Path]:
    """SQLite databases beside this one and in the folders beside it."""
    places = {home().resolve(), Path.cwd()}
    own = None
    if engine.dialect.name == "sqlite":
        own = Path(engine.url.database or "").resolve()
        places |= {own.parent, own.parent.parent}
    found = {path.resolve() for place in places for one in _COPIES for path in place.glob(one)}
    yield from (path for path in sorted(found) if path != own and label_database(path) is not None)


def _find_in_copy(
    engine: Engine, accesses: Sequence[ProjectAccess], wanted: Wanted
) -> list[ErasedPart]:
    """What a copy has of it, in projects that are the same: made at the same moment."""
    query = select(ProjectRow.id, ProjectRow.created_at).where(ProjectRow.kind != ERASED)
    moments = []
    for access in accesses:
        with access.reading("admin") as connection:
            moments.append((access.project_id, access.row(connection)["created_at"]))
    with engine.connect() as connection:
        same = [row[0] for row in connection.execute(query).tuples() if row in moments]
    person = Person(name=accesses[0].person.name, is_local=True)
    return find(
        [ProjectAccess(engine=engine, project_id=one, person=person) for one in same], wanted
    )


def _has_text(predictions: Path, hashes: frozenset[str], ids: str) -> bool:
    """Whether a run has predicted one of these texts, under an id that begins so."""
    return any(
        row["id"].startswith(ids) and text_hash(row["text"]) in hashes
        for row in read_predictions(predictions)
    )
