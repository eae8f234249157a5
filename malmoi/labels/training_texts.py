"""What models learn from: texts with a decided label, and open ones to choose the next from.

`iter_label_records` gives them to a training run, as records. What learns while people label asks
for `labelled_texts` and `texts_to_choose_from`, which are cheap in large projects: labelled texts
are found by their votes, and of open texts a bounded number is looked at, whichever way they may
be handed out next.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, inspect, select
from sqlalchemy.exc import SQLAlchemyError

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.connection import in_parts, reading_engine, reason
from malmoi.labels.database import LabelDatabase, as_part
from malmoi.labels.final_label_rule import as_cell, decided, final_label, iter_reviewed
from malmoi.labels.label_book import LabelBook
from malmoi.labels.label_names import normal_label
from malmoi.labels.people import Person
from malmoi.labels.projects import read_labels
from malmoi.labels.review import ReviewedText
from malmoi.labels.tables import (
    ERASED,
    AdjudicationRow,
    PlaceRow,
    ProjectRow,
    TextRow,
    TextScoreRow,
)
from malmoi.labels.text_state import first_of_its_kind
from malmoi.text.record import Record

# Whoever can open the database can read all of it anyway.
READER = Person(name="malmoi", is_local=True)
# Projects that an error names.
_NAMED = 10
# Of the texts to choose from, those on people's screens; those that the random share and the order
# of import hand out next, which want a suggestion, too; and those that the last model wanted most.
# The rest is drawn.
_SCREEN_SHARE, _NEXT_SHARE, _WANTED_SHARE = 0.5, 0.1, 0.4


# What a training run does not learn, as its report counts it.
DIFFERING = "texts on which annotators differ and nobody has decided: left out"
RETIRED = "texts whose label is retired: left out (offer it again in the app to learn it)"
RETIRED_OF_SEVERAL = "texts that lose a retired label (offer it again in the app to learn it)"


def iter_label_records(
    database: LabelDatabase, counts: Counter[str] | None = None
) -> Iterator[Record]:
    """Texts with a decided label, in the order of import; nothing is changed.

    The label is a reviewer's, else that of all annotators or of more than half of them. Of a
    `multi` project it is a JSON list. A label that is retired is not learnt.

    Args:
        database: of the app; its part names the project, which the only one needs not.
        counts: gets what is left out.

    Raises:
        InputError: there is no such database, it is not the app's, damaged or locked for long, it
            has no such project, or several of which none is named.
    """
    try:
        engine = reading_engine(database)
        with engine.connect() as connection:
            project_id = _project_id(connection, database)
        access = ProjectAccess(engine=engine, project_id=project_id, person=READER)
        with access.reading() as connection:
            kind = access.kind(connection)
            for text, labels in _learnt(access, connection, counts):
                yield Record(
                    id=f"{database.name}:{text.text_id}",
                    text=text.text,
                    label=as_cell(labels, kind),
                    source=database.name,
                )
    except (SQLAlchemyError, ImportError) as error:
        raise InputError(
            "expected the label database of the app, found {error}; export the labels in the app "
            "as CSV instead",
            place=database,
            error=reason(error),
        ) from error


def left_out_of_training(access: ProjectAccess) -> Counter[str]:
    """How many labelled texts a training run would not learn, by what is the matter.

    Raises:
        AccessError: the person is no reviewer.
    """
    counts: Counter[str] = Counter()
    with access.reading("reviewer") as connection:
        for _ in _learnt(access, connection, counts):
            pass
    return counts


def _learnt(
    access: ProjectAccess, connection: Connection, counts: Counter[str] | None
) -> Iterator[tuple[ReviewedText, tuple[str, ...]]]:
    """Texts with the decided labels that are still offered."""
    counts = Counter() if counts is None else counts
    offered = [one.name for one in read_labels(connection, access.project_id) if not one.retired]
    is_one = access.kind(connection) == "single"
    for texts in iter_reviewed(access, connection, labelled_only=True):
        for text in texts:
            final = final_label(text)
            if final is None:
                counts[DIFFERING] += 1
                continue
            labels = tuple(label for label in final.labels if label in offered)
            if labels != final.labels:
                counts[RETIRED if is_one else RETIRED_OF_SEVERAL] += 1
            if labels or not is_one:
                yield text, labels


def _project_id(connection: Connection, database: LabelDatabase) -> int:
    """The project that the part names, or the only one."""
    known: dict[str, int] = {}
    if inspect(connection).has_table(ProjectRow.__tablename__):
        query = select(ProjectRow.name, ProjectRow.id).where(ProjectRow.kind != ERASED)
        known = {name: identifier for name, identifier in connection.execute(query)}
        known = dict(sorted(known.items()))
    if not known:
        raise InputError(
            "expected a label database with a project, found none in it; make one in the app",
            place=database,
        )
    if database.part is None:
        if len(known) > 1:
            raise InputError(
                "expected the name of a project behind it, {names}, found none; write it at the "
                "end of --data",
                place=database,
                names=_named(list(known)),
            )
        return next(iter(known.values()))
    name = normal_label(database.part)
    if name not in known:
        raise InputError(
            "expected one of the projects of this database, {names}, found #{part}",
            place=database,
            names=_named(list(known)),
            part=database.part,
        )
    return known[name]


def _named(names: Sequence[str]) -> str:
    """Names of projects as they are written behind a database, the first of many."""
    shown = [f"#{as_part(name)}" for name in names[:_NAMED]]
    return ", ".join(shown) + (" …" if len(names) > _NAMED else "")


@dataclass(frozen=True, kw_only=True)
class LabelledText:
    """A text with the labels that hold: a reviewer's, else those of more than half of its votes."""

    text_id: int
    text: str
    labels: tuple[str, ...]


def labelled_texts(access: ProjectAccess) -> list[LabelledText]:
    """All texts with a decided label, in the order of import; see `final_label`.

    Raises:
        AccessError: the person is no reviewer. Learning acts as a local person of the server's own.
    """
    with access.reading("reviewer") as connection:
        book = LabelBook(access, connection)
        votes: dict[int, list[tuple[str, ...]]] = {}
        names: dict[str, tuple[str, ...]] = {}
        cast = select(PlaceRow.text_id, PlaceRow.choice).where(
            PlaceRow.project_id == access.project_id, PlaceRow.state == "labelled"
        )
        for text_id, choice in connection.execute(cast):
            if choice is None:
                continue
            if choice not in names:
                names[choice] = book.labels(choice)
            votes.setdefault(text_id, []).append(names[choice])
        reviewed = (
            select(TextRow.id, AdjudicationRow.choice)
            .join(AdjudicationRow, AdjudicationRow.id == TextRow.adjudication_id)
            .where(TextRow.project_id == access.project_id, TextRow.adjudication_id.is_not(None))
        )
        adjudicated = {
            text_id: book.labels(choice)
            for text_id, choice in connection.execute(reviewed)
            if choice is not None
        }
        found = {
            text_id: final.labels
            for text_id in sorted(votes.keys() | adjudicated.keys())
            if (final := decided(adjudicated.get(text_id), votes.get(text_id, []))) is not None
        }
        texts = _texts(connection, list(found))
    return [
        LabelledText(text_id=text_id, text=texts[text_id], labels=labels)
        for text_id, labels in found.items()
    ]


def texts_to_choose_from(access: ProjectAccess, count: int) -> dict[int, str]:
    """Open texts that may be handed out next, by their ids: all of them where they are few.

    Those on somebody's screen now, the next by lottery and by import, the highest of the order
    that holds, and a random part. Of texts that are nearly the same only the first.

    Args:
        access: of a reviewer; see `labelled_texts`.
        count: about how many.
    """
    texts = select(TextRow.id).where(
        TextRow.project_id == access.project_id, TextRow.is_open, first_of_its_kind()
    )
    by_lottery = texts.order_by(TextRow.lottery)
    on_screen = (
        select(PlaceRow.text_id)
        .join(TextRow, TextRow.id == PlaceRow.text_id)
        .where(
            PlaceRow.project_id == access.project_id,
            PlaceRow.state == "leased",
            TextRow.is_open,
        )
        .order_by(PlaceRow.expires_at.desc())
    )
    following = int(count * _NEXT_SHARE)
    with access.reading("reviewer") as connection:
        highest = (
            select(TextScoreRow.text_id)
            .where(
                TextScoreRow.version == access.row(connection)["scores_version"],
                TextScoreRow.priority.is_not(None),
            )
            .order_by(TextScoreRow.priority.desc(), TextScoreRow.text_id.desc())
        )
        chosen = dict.fromkeys(
            [
                *connection.scalars(on_screen.limit(int(count * _SCREEN_SHARE))),
                *connection.scalars(by_lottery.limit(following)),
                *connection.scalars(texts.order_by(TextRow.id).limit(following)),
                *connection.scalars(highest.limit(int(count * _WANTED_SHARE))),
            ]
        )
        # Texts from any lottery number on are a random part, and are read by an index.
        start = random.random()
        for part in (TextRow.lottery >= start, TextRow.lottery < start):
            missing = count - len(chosen)
            if missing > 0:
                more = by_lottery.where(part).limit(count)
                fresh = [one for one in connection.scalars(more) if one not in chosen]
                chosen |= dict.fromkeys(fresh[:missing])
        return _texts(connection, list(chosen))


def texts_after(access: ProjectAccess, text_id: int, count: int) -> dict[int, str]:
    """The next texts of the project in the order of import, by their ids.

    Args:
        access: of a reviewer; see `labelled_texts`.
        text_id: the last one that was there before; 0 at the beginning.
        count: so many at most.
    """
    query = (
        select(TextRow.id, TextRow.text)
        .where(TextRow.project_id == access.project_id, TextRow.id > text_id)
        .order_by(TextRow.id)
        .limit(count)
    )
    with access.reading("reviewer") as connection:
        return dict(connection.execute(query).tuples().all())


def _texts(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for some in in_parts(ids):
        part = select(TextRow.id, TextRow.text).where(TextRow.id.in_(some))
        found.update(connection.execute(part).tuples().all())
    return found
