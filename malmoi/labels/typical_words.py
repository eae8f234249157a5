"""Which words are typical of the texts of each label."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select

from malmoi.labels.access import ProjectAccess
from malmoi.labels.connection import in_parts
from malmoi.labels.final_label_rule import final_label, has_label
from malmoi.labels.projects import read_labels
from malmoi.labels.review import reviewed_texts
from malmoi.labels.roles import allows
from malmoi.labels.tables import PlaceRow, TextRow

if TYPE_CHECKING:
    from malmoi.text.label_keywords import LabelKeywords

# Drawn by lottery: a first look is enough.
MOST_TEXTS = 2_000


@dataclass(frozen=True, kw_only=True)
class TypicalWords:
    """Words by label, in the order of the project.

    Attributes:
        words: for each label that texts of the sample have.
        texts: of the sample.
    """

    words: Mapping[str, "LabelKeywords"]
    texts: int


def typical_words(access: ProjectAccess, *, count: int = 12) -> TypicalWords:
    """Nouns, verbs and adjectives that stand in the texts of a label more than in the others.

    By weighted log-odds (`malmoi.text.label_keywords`), over a random sample of
    labelled texts. A text with several labels counts for each. For an annotator: by own labels.

    Args:
        count: words a label at most.

    Raises:
        AccessError: the person is no member.
    """
    from malmoi.text.label_keywords import label_keywords

    texts: list[str] = []
    labels: list[str] = []
    with access.reading() as connection:
        sees_all = allows(access.role(connection), "reviewer")
        names = [label.name for label in read_labels(connection, access.project_id)]
        mine = select(PlaceRow.id).where(
            PlaceRow.text_id == TextRow.id,
            PlaceRow.annotator == access.person.name,
            PlaceRow.state == "labelled",
        )
        query = (
            select(TextRow.id)
            .where(
                TextRow.project_id == access.project_id, has_label() if sees_all else mine.exists()
            )
            .order_by(TextRow.lottery)
            .limit(MOST_TEXTS)
        )
        ids = list(connection.scalars(query))
        for some in in_parts(ids):
            for text in reviewed_texts(access, connection, some):
                own = [vote.labels for vote in text.votes if vote.annotator == access.person.name]
                final = final_label(text)
                given = (final.labels if final else ()) if sees_all else own[0]
                texts += [text.text] * len(given)
                labels += given
    known = [name for name in names if name in set(labels)]
    if len(known) < 2:
        return TypicalWords(words={}, texts=len(ids))
    found = label_keywords(texts, [known.index(one) for one in labels], len(known), count=count)
    return TypicalWords(words=dict(zip(known, found, strict=True)), texts=len(ids))
