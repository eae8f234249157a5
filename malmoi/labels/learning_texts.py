"""What a model that learns while people label reads: labelled texts, and open ones to choose from.

Both are cheap in large projects: labelled texts are found by their votes, and of open texts a
bounded number is looked at, whichever way they may be handed out next.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Select, or_, select

from malmoi.labels.access import ProjectAccess
from malmoi.labels.final_label_rule import decided
from malmoi.labels.label_book import LabelBook
from malmoi.labels.tables import AdjudicationRow, PlaceRow, TextRow, TextScoreRow

# Fewer than the variables that a statement of SQLite may have.
_IDS = 5_000
# Of the texts to choose from: those that the random share and the order of import hand out next,
# which want a suggestion, too; those that the last model wanted most. The rest is drawn.
_NEXT_SHARE, _WANTED_SHARE = 0.1, 0.4


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
        book = LabelBook(connection, access.project_id, access.row(connection)["kind"])
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
    alone = or_(TextRow.alike.is_(None), TextRow.alike == TextRow.id)
    texts = select(TextRow.id).where(
        TextRow.project_id == access.project_id, TextRow.is_open, alone
    )
    by_lottery = texts.order_by(TextRow.lottery)
    following = int(count * _NEXT_SHARE)
    with access.reading("reviewer") as connection:
        version = access.row(connection)["scores_version"]
        chosen = dict.fromkeys(
            [
                *connection.scalars(_on_screen(access).limit(following)),
                *connection.scalars(by_lottery.limit(following)),
                *connection.scalars(texts.order_by(TextRow.id).limit(following)),
                *(
                    connection.scalars(_highest(version).limit(int(count * _WANTED_SHARE)))
                    if version is not None
                    else ()
                ),
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


def _on_screen(access: ProjectAccess) -> Select[int]:
    return (
        select(PlaceRow.text_id)
        .join(TextRow, TextRow.id == PlaceRow.text_id)
        .where(
            PlaceRow.project_id == access.project_id,
            PlaceRow.state == "leased",
            TextRow.is_open,
        )
        .order_by(PlaceRow.expires_at.desc())
    )


def _highest(version: int) -> Select[int]:
    return (
        select(TextScoreRow.text_id)
        .where(TextScoreRow.version == version, TextScoreRow.priority.is_not(None))
        .order_by(TextScoreRow.priority.desc(), TextScoreRow.text_id.desc())
    )


def _texts(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for start in range(0, len(ids), _IDS):
        part = select(TextRow.id, TextRow.text).where(TextRow.id.in_(ids[start : start + _IDS]))
        found.update(connection.execute(part).tuples().all())
    return found
